/** Checks that a campaign's records agree: counts with rows, messages with the ledger, an account's day with both. */
import { type Db, type Sql, sql } from '../../db/sql.ts'

export interface Check {
  readonly name: string
  readonly ok: boolean
  readonly detail: string
}

export interface Verification {
  readonly ok: boolean
  readonly checks: readonly Check[]
}

interface Rule {
  readonly name: string
  /** The sentence if nothing is wrong. */
  readonly good: string
  /** Selects the wrong rows, at most eleven, each with one `id`. */
  readonly wrong: (campaign_id: string) => Sql
}

const rules: readonly Rule[] = [
  {
    name: 'totals',
    good: 'The totals equal the recipients, by account and status.',
    wrong: (id) => sql`
      select coalesce(c.account_id, r.account_id) as id from (
        select account_id, jsonb_object_agg(status, n) as counts from campaign_accounts c
        cross join lateral (values ('queued', queued), ('submitting', submitting), ('waiting', waiting),
          ('completed', completed), ('replied', replied), ('failed', failed), ('ambiguous', ambiguous),
          ('cancelled', cancelled), ('suppressed', suppressed)) as v (status, n)
        where c.campaign_id = ${id} and n > 0 group by 1) c
      full join (
        select account_id, jsonb_object_agg(status, n) as counts from (
          select coalesce(account_id, '') as account_id, status, count(*) as n from campaign_recipients
          where campaign_id = ${id} group by 1, 2) s group by 1) r on r.account_id = c.account_id
      where r.counts is distinct from c.counts limit 11`,
  },
  {
    name: 'one_operation_per_step',
    good: 'Every recipient has exactly one operation for each step sent.',
    wrong: (id) => sql`
      select r.id from campaign_recipients r
      cross join lateral (
        select count(*) filter (where o.state = 'completed' or o.closed_as = 'sent') as done,
          count(distinct o.step_no) as steps, count(*) as all_rows, coalesce(max(o.step_no) + 1, 0) as last
        from operations o where o.recipient_id = r.id) o
      where r.campaign_id = ${id} and (o.done <> r.step or o.steps <> o.all_rows or o.last not in (r.step, r.step + 1))
      limit 11`,
  },
  {
    name: 'messages',
    good: 'Every message that the platform accepted is stored.',
    wrong: (id) => sql`
      select o.id from campaign_recipients r join operations o on o.recipient_id = r.id
      where r.campaign_id = ${id} and o.state = 'completed' and not exists (
        select from messages m where m.account_id = o.account_id and m.chat_id = o.chat_id
          and m.id = coalesce(o.reply_body ->> 'message_id', o.proof_message_id::text)::bigint) limit 11`,
  },
  {
    name: 'quota',
    good: 'The daily quota that each account used equals the rows of the ledger.',
    wrong: (id) => sql`
      select coalesce(d.account_id, o.account_id) || ' ' || coalesce(d.day, o.day) as id from (
        select account_id, day, used from account_days
        where used > 0 and account_id in (select account_id from campaign_accounts where campaign_id = ${id})) d
      full join (
        select account_id, quota_day as day, count(*) as used from operations
        where kind = 'campaign_message' and quota_day is not null and state in ('submitting', 'completed', 'ambiguous')
          and account_id in (select account_id from campaign_accounts where campaign_id = ${id})
        group by 1, 2) o on o.account_id = d.account_id and o.day = d.day
      where o.used is distinct from d.used limit 11`,
  },
  {
    name: 'nothing_after_the_end',
    good: 'Nothing was submitted after a recipient had ended or the campaign was cancelled.',
    // A reply ends a recipient when it is stored. Its platform time may be before a message that crossed meanwhile.
    wrong: (id) => sql`
      select o.id from campaign_recipients r join campaigns k on k.id = r.campaign_id
      join operations o on o.recipient_id = r.id
      where r.campaign_id = ${id} and o.crossed_at > least(r.ended_at, k.cancelled_at) limit 11`,
  },
]

export async function verifyCampaign(db: Db, campaign_id: string): Promise<Verification> {
  const checks: Check[] = []
  for (const { name, good, wrong } of rules) {
    const rows = await db.rows<{ id: string }>(wrong(campaign_id))
    const ids = rows.map(({ id }) => id || 'contacts without an account')
    checks.push(describeCheck(name, ids, good))
  }
  return { ok: checks.every(({ ok }) => ok), checks }
}

/** Names the first ten wrong rows. */
export function describeCheck(name: string, wrong: readonly string[], good: string): Check {
  const more = wrong.length > 10 ? ' and more' : ''
  const detail = wrong.length === 0 ? good : `This check fails for ${wrong.slice(0, 10).join(', ')}${more}.`
  return { name, ok: wrong.length === 0, detail }
}
