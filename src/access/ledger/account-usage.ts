/** What an account has done today and what the platform held against it: the same for every path that uses it. */
import type { AccountKey } from '../../contract.ts'
import { type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import type { ChatNumber } from '../../lib/shapes.ts'

/** Today's date in the time zone of the account's workspace. */
const today = (workspace_id: string): Sql =>
  sql`(domain_now() at time zone (select timezone from workspaces where id = ${workspace_id}))::date`

/** A message went out; cold if this person has never written to the account. */
export function countSent(tx: Tx, { account_id, workspace_id }: AccountKey, chat_id: ChatNumber): void {
  tx.atCommit(sql`
    insert into account_days as d (account_id, workspace_id, day, sent, cold)
    select ${account_id}, ${workspace_id}, ${today(workspace_id)}, 1,
      (${chat_id}::bigint > 0 and not exists (
        select from messages where account_id = ${account_id} and chat_id = ${chat_id} and not is_sender))::int
    on conflict (account_id, day) do update set sent = d.sent + 1, cold = d.cold + excluded.cold`)
}

/** Somebody was looked up by name or number: platforms count these more strictly than anything else. */
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

export interface AccountUsage {
  readonly account_id: string
  /** The end of the account's flood wait; null when there is none. */
  readonly flood_until: Date | null
  readonly sent_today: number
  readonly cold_today: number
  readonly lookups_today: number
  readonly strikes_30d: number
  readonly last_strike: string | null
}

export function listAccountUsage(db: Db, workspace_id: string): Promise<AccountUsage[]> {
  return db.rows<AccountUsage>(sql`
    select a.id as account_id, case when h.flood_until > domain_now() then h.flood_until end as flood_until,
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
