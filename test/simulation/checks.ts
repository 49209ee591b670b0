/**
 * What is read after every step, in one statement, and what must have held when a message crossed. Only one thing happens per
 * step, so whatever held a campaign before the step still holds it afterwards.
 */
import { type Database, sql } from '../../src/db/sql.ts'
import { parseWindow } from '../../src/rules/sending-window.ts'
import { type StoredName, storedNames } from './persons.ts'

export interface Flying {
  readonly id: string
  readonly no: number
  readonly random_id: string
  readonly token: string
  readonly owner: string
  readonly account_id: string
}

interface Look {
  readonly flying: readonly Flying[]
  /** Account-days whose use differs from what has crossed. */
  readonly days: number
  /** Totals that differ from the number of their rows. */
  readonly totals: number
  /** Recipients in flight without an operation in flight, and the other way round. */
  readonly apart: number
  /** Accounts with two messages in flight. */
  readonly twice: number
  /** People to whom a campaign of contacts has sent one step twice, under whatever names. */
  readonly repeated: number
  /** Recipients that are due before their account checks the campaign again. */
  readonly unseen: number
  /** Names on the suppression list that accounts have stored for people. */
  readonly listed: readonly StoredName[]
  /** Recipients that ended because another one of their campaign is the same person. */
  readonly duplicates: readonly string[]
  /** How far the updates of each account are stored. */
  readonly positions: Readonly<Record<string, string>>
  /** The number of recipients by status, for the trace. */
  readonly statuses: string
}

/** The one cheap statement after each step. */
export function look(db: Database): Promise<Look> {
  return db.one<Look>(sql`
    with o as materialized (
      select id, attempt_no, random_id, attempt_token, owner, account_id, recipient_id, state, quota_day, campaign_id,
        chat_id, step_no
      from operations where campaign_id is not null)
    select
      (select coalesce(json_agg(json_build_object('id', id, 'no', attempt_no, 'random_id', random_id::text,
        'token', attempt_token, 'owner', owner, 'account_id', account_id) order by id), '[]')
        from o where state = 'submitting') as flying,
      (select count(*)::int from (
        select account_id, quota_day as day, count(*) as used from o
        where quota_day is not null and state in ('submitting', 'completed', 'ambiguous') group by 1, 2) o
        full join (select account_id, day, used from account_days where used > 0) d using (account_id, day)
        where o.used is distinct from d.used) as days,
      (select count(*)::int from (
        select campaign_id, coalesce(account_id, '') as account_id, status, count(*) as n from campaign_recipients
        group by 1, 2, 3) r
        full join (
          select campaign_id, account_id, v.status, v.n from campaign_accounts cross join lateral (values
            ('queued', queued), ('submitting', submitting), ('waiting', waiting), ('completed', completed),
            ('replied', replied), ('failed', failed), ('ambiguous', ambiguous), ('cancelled', cancelled),
            ('suppressed', suppressed)) as v (status, n) where v.n > 0) c using (campaign_id, account_id, status)
        where r.n is distinct from c.n) as totals,
      (select count(*)::int from (
        select id from campaign_recipients where status = 'submitting' and unknown_since is null) r
        full join (select recipient_id as id from o where state = 'submitting') f using (id)
        where r.id is null or f.id is null) as apart,
      (select count(*)::int from (
        select account_id from o where state = 'submitting' group by 1 having count(*) > 1) t) as twice,
      (select count(*)::int from (
        select from o join campaigns k on k.id = o.campaign_id and k.kind = 'contacts'
        where o.state in ('submitting', 'completed', 'ambiguous')
        group by o.campaign_id, o.chat_id, o.step_no having count(*) > 1) t) as repeated,
      (select count(*)::int from campaign_recipients r join campaign_accounts c
        on c.campaign_id = r.campaign_id and c.account_id = r.account_id
        where r.status in ('queued', 'waiting') and r.next_action_at < c.due_at) as unseen,
      ${storedNames} as listed,
      (select coalesce(json_agg(id order by id), '[]') from campaign_recipients where reason = 'duplicate') as duplicates,
      (select coalesce(json_object_agg(account_id, position), '{}') from account_hosts
        where position is not null) as positions,
      (select string_agg(status || ' ' || n, ', ' order by status) from (
        select status, count(*) as n from campaign_recipients group by 1) s) as statuses`)
}

export function* wrongIn({ days, totals, apart, twice, repeated, unseen }: Look): Generator<string> {
  if (days > 0) yield 'P6: the use of a day is not what crossed on it'
  if (totals > 0) yield 'totals: they are not the number of their rows'
  if (apart > 0) yield 'agreement: a recipient and its operation do not agree whether it is in flight'
  if (unseen > 0) yield 'due: a recipient is due before its account looks for it'
  if (twice > 0) yield 'P1: an account has two messages in flight'
  if (repeated > 0) yield 'P1: a person gets one step of a campaign twice'
}

interface CrossedMessage {
  readonly id: string
  readonly status: string
  readonly allowed: boolean
  readonly suppressed: boolean
  readonly replied: boolean
  readonly flooded: boolean
  readonly used: number
  readonly quota: number | null
  readonly used_cold: number
  readonly cold: boolean
  readonly cold_per_day: number | null
  readonly window: string | null
  readonly weekday: number
  readonly minute: number
  readonly quota_day: string | null
  readonly today: string
  readonly due: boolean
  readonly paced: boolean
}

/** What holds a campaign, determined without the planner. */
function readCrossed(db: Database, ids: readonly string[]): Promise<CrossedMessage[]> {
  return db.rows<CrossedMessage>(sql`
    select o.id, k.status, exists (select from suppressions s where s.workspace_id = o.workspace_id
        and s.kind = 'platform_id' and s.value = o.chat_id::text) as suppressed,
      (select value from settings where name = 'dispatch') = 'true'::jsonb and (select enabled from gates
        where name = case when k.kind = 'broadcast' then 'broadcast' else 'campaigns' end) as allowed,
      k.kind <> 'broadcast' and o.step_no > 0 and r.last_sent_at > domain_now() - interval '30 days' and exists (
        select from messages m where m.account_id = o.account_id and m.chat_id = o.chat_id and not m.is_sender
          and m.id > r.last_message_id) as replied,
      coalesce(h.flood_until > domain_now(), false) as flooded,
      (select count(*)::int from operations d where d.account_id = o.account_id and d.quota_day = o.quota_day
        and d.state in ('submitting', 'completed', 'ambiguous')) as used,
      k.daily_quota_per_account as quota,
      (select count(*)::int from operations d where d.account_id = o.account_id and d.quota_day = o.quota_day and d.cold
        and d.state in ('submitting', 'completed', 'ambiguous')) as used_cold,
      coalesce(o.cold, false) as cold, a.cold_per_day, w.sending_window as window,
      extract(isodow from t.local)::int as weekday,
      extract(hour from t.local)::int * 60 + extract(minute from t.local)::int as minute,
      o.quota_day::text, t.local::date::text as today,
      r.next_action_at is null or r.next_action_at <= domain_now() or o.step_no > 0 as due,
      not exists (select from operations p where p.account_id = o.account_id and p.id <> o.id
        and p.campaign_id is not null and p.state in ('completed', 'ambiguous')
        and p.crossed_at > o.crossed_at - interval '15 s') as paced
    from operations o join campaign_recipients r on r.id = o.recipient_id join campaigns k on k.id = r.campaign_id
    join accounts a on a.id = o.account_id join account_hosts h on h.account_id = a.id
    join workspaces w on w.id = o.workspace_id
    cross join lateral (select domain_now() at time zone w.timezone as local) t
    where o.id = any(${ids}::uuid[]) and o.proof_message_id is null`)
}

/** Whether the messages that crossed in the last step were allowed to. */
export async function wrongCrossings(db: Database, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return []
  return (await readCrossed(db, ids)).flatMap((row) => [...wrongCrossing(row)])
}

function* wrongCrossing(row: CrossedMessage): Generator<string> {
  const { status, used, quota, cold, used_cold, cold_per_day, window, weekday, minute } = row
  if (status !== 'queued' && status !== 'sending') yield `P5: crossed while its campaign was ${status}`
  if (!row.allowed) yield 'P5: crossed while its gate was closed'
  if (row.suppressed) yield 'suppressed: crossed to a person on the list'
  if (row.replied) yield 'after the end: crossed to a person who had answered'
  if (row.flooded) yield 'flood: crossed during a flood wait'
  if (!row.due) yield 'early: crossed before it was due'
  if (!row.paced) yield 'pacing: crossed too soon after the message before'
  if (quota !== null && used > quota) yield `P6: ${used} of at most ${quota} on one day`
  if (row.quota_day !== null && row.quota_day !== row.today) yield 'P6: counted on another day'
  if (cold && cold_per_day !== null && used_cold > cold_per_day) {
    yield `P6: ${used_cold} first messages of at most ${cold_per_day}`
  }
  const hours = window === null ? undefined : parseWindow(window)
  if (hours && !(hours.days.includes(weekday) && minute >= hours.from && minute < hours.to)) {
    yield 'window: crossed outside of the sending window'
  }
}

/** How long after its crossing a call may be made. */
const submitSecondsMax = 10

/** A call that a worker has just made: it must have a row, and its crossing must be fresh. */
export async function wrongSubmission(db: Database, random_id: string): Promise<string[]> {
  const row = await db.maybe<{ state: string; seconds: number }>(sql`
    select state, 60 - extract(epoch from lease_until - real_now())::float8 as seconds from operations
    where random_id = ${random_id}::bigint`)
  if (!row) return ['P2: submitted without a row']
  if (row.state !== 'submitting' && row.state !== 'ambiguous')
    return [`P1: submitted while its row was ${row.state}`]
  return row.seconds > submitSecondsMax + 0.001
    ? [`deadline: submitted ${row.seconds} s after its crossing`]
    : []
}
