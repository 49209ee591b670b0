/** An account's usage of today and its strikes, on every path. */
import type { AccountKey } from '../contract.ts'
import { given } from '../db/given.ts'
import { type Db, type Sql, sql, type Tx } from '../db/sql.ts'
import type { ChatNumber } from '../lib/shapes.ts'
import { dayOf } from './workspace-days.ts'

/** Today's date in the time zone of the account's workspace. */
const today = (workspace_id: string): Sql =>
  sql`(select ${dayOf(sql`w`, sql`domain_now()`)} from workspaces w where w.id = ${workspace_id})`

/**
 * Whether the person in a chat has ever written to the account. The limit makes PostgreSQL look it up for each row; without it,
 * the planner may choose to read all messages once.
 */
export function hasWritten(account_id: Sql, chat_id: Sql): Sql {
  return sql`(
    select m.id from messages m where m.account_id = ${account_id} and m.chat_id = ${chat_id}
      and not m.is_sender -- guard: what we have sent is no answer
    limit 1) is not null`
}

/** A message that went out, by its operation. */
interface SentMessage extends AccountKey {
  readonly id: string
  readonly chat_id: ChatNumber
}

/**
 * Counts sent messages on the day their operations ended. Cold are those to people who have never written to the
 * account.
 */
export function countSent(tx: Tx, sent: readonly SentMessage[]): void {
  if (sent.length === 0) return
  // The clock may have passed midnight since the operations ended, even within this transaction.
  tx.atCommit(sql`
    insert into account_days as d (account_id, workspace_id, day, sent, cold)
    select g.account_id, g.workspace_id, ${dayOf(sql`w`, sql`o.finished_at`)}, count(*),
      count(*) filter (where g.chat_id > 0 and not ${hasWritten(sql`g.account_id`, sql`g.chat_id`)})
    from ${given(sent, { id: 'uuid', account_id: 'text', workspace_id: 'uuid', chat_id: 'bigint' })} as g
    join operations o on o.id = g.id
    join workspaces w on w.id = g.workspace_id
    group by 1, 2, 3 order by 1, 3
    on conflict (account_id, day) do update set sent = d.sent + excluded.sent, cold = d.cold + excluded.cold`)
}

/** Adds one campaign submission to an account's day, or takes one off. */
export interface UseChange extends AccountKey {
  readonly day: string
  readonly cold: boolean
  readonly by: 1 | -1
}

/** Refunds a campaign submission's use of a day when nothing was sent, and takes it again when the submission is put back. */
export function changeUse(tx: Tx, changes: readonly UseChange[]): void {
  if (changes.length === 0) return
  tx.atCommit(sql`
    with changes as materialized (
      select account_id, workspace_id, day, sum(n)::int as used, coalesce(sum(n) filter (where cold), 0)::int as used_cold
      from ${given(changes, {
        account_id: 'text',
        workspace_id: 'uuid',
        day: 'date',
        cold: 'boolean',
        n: ['int', ({ by }) => by],
      })} as g
      group by 1, 2, 3 order by 1, 3),
    missing as (
      insert into account_days (account_id, workspace_id, day, used, used_cold)
      select account_id, workspace_id, day, used, used_cold from changes
      where not exists (
        select from account_days d where d.account_id = changes.account_id and d.day = changes.day)
      returning account_id, day)
    update account_days d set used = d.used + c.used, used_cold = d.used_cold + c.used_cold
    from changes c where d.account_id = c.account_id and d.day = c.day
      and not exists (select from missing m where m.account_id = d.account_id and m.day = d.day)`)
}

/** Counts a look-up by name or number: platforms limit these more strictly than anything else. */
export async function countLookup(db: Db, { account_id, workspace_id }: AccountKey): Promise<void> {
  await db.run(sql`
    insert into account_days as d (account_id, workspace_id, day, lookups)
    select ${account_id}, ${workspace_id}, ${today(workspace_id)}, 1
    on conflict (account_id, day) do update set lookups = d.lookups + 1`)
}

interface Strike {
  readonly kind: string
  readonly seconds: number | null
  readonly operation_id: string | null
}

export async function noteStrike(
  db: Db,
  { account_id, workspace_id }: AccountKey,
  strike: Strike,
): Promise<void> {
  await db.run(sql`
    insert into account_strikes (account_id, workspace_id, kind, seconds, operation_id)
    values (${account_id}, ${workspace_id}, ${strike.kind}, ${strike.seconds}, ${strike.operation_id})`)
}

/** The platform has sent the account a login code at this time. */
export async function noteLoginCode(tx: Tx, account_id: string, at: string): Promise<void> {
  await tx.run(sql`
    update account_hosts set login_code_at = greatest(login_code_at, ${at}::timestamptz) where account_id = ${account_id}`)
}

/** The platform refuses the account's first messages to people who never wrote: it sends no more of them. */
export async function stopCold(tx: Tx, account_id: string): Promise<void> {
  await tx.run(sql`
    update account_hosts set cold_stopped_at = coalesce(cold_stopped_at, domain_now()) where account_id = ${account_id}`)
}

/** An operator lets the account write first messages again. False: they were not stopped. */
export async function allowCold(tx: Tx, account_id: string): Promise<boolean> {
  const changed = await tx.run(sql`
    update account_hosts set cold_stopped_at = null where account_id = ${account_id} and cold_stopped_at is not null`)
  return changed > 0
}

/** Why the boundary forbids operation `o`: it would be a first message, and the platform has stopped these. */
export const forbiddenWhileColdStopped: Sql = sql`
  case when o.chat_id > 0
    and exists (select from account_hosts h where h.account_id = o.account_id and h.cold_stopped_at is not null)
    and not ${hasWritten(sql`o.account_id`, sql`o.chat_id`)}
  then 'cold_stopped' end`

export interface AccountUsage {
  readonly account_id: string
  /** The end of the wait for sends; null when there is none. */
  readonly flood_until: Date | null
  /** The same for look-ups, and for reading. */
  readonly lookup_flood_until: Date | null
  readonly reading_flood_until: Date | null
  /** When the platform began to refuse its first messages; null: it does not refuse them. */
  readonly cold_stopped_at: Date | null
  /** Since when its campaign messages hold (`holds.ts`); null: they do not. */
  readonly campaigns_held_at: Date | null
  readonly sent_today: number
  readonly cold_today: number
  readonly lookups_today: number
  readonly strikes_30d: number
  readonly last_strike: string | null
}

export function listAccountUsage(db: Db, workspace_id: string): Promise<AccountUsage[]> {
  return db.rows<AccountUsage>(sql`
    select a.id as account_id, case when h.flood_until > domain_now() then h.flood_until end as flood_until,
      case when h.lookup_flood_until > domain_now() then h.lookup_flood_until end as lookup_flood_until,
      case when h.reading_flood_until > domain_now() then h.reading_flood_until end as reading_flood_until,
      h.cold_stopped_at, h.campaigns_held_at,
      coalesce(d.sent, 0) as sent_today, coalesce(d.cold, 0) as cold_today, coalesce(d.lookups, 0) as lookups_today,
      s.count as strikes_30d, s.last as last_strike
    from accounts a
    left join account_hosts h on h.account_id = a.id
    left join account_days d on d.account_id = a.id and d.day = ${today(workspace_id)}
    cross join lateral (
      select count(*)::int as count, (array_agg(kind order by at desc))[1] as last from account_strikes
      where account_id = a.id and at > domain_now() - interval '30 days') s
    where a.workspace_id = ${workspace_id} order by a.created_at, a.id`)
}
