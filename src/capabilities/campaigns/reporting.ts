/** How a campaign's messages did: by step and variant, and for one recipient in order. */
import { type Db, sql } from '../../db/sql.ts'
import type { State } from '../../operation.ts'

/** A row of the ledger: one message to one recipient. */
export interface OperationRow {
  readonly id: string
  readonly recipient_id: string
  readonly step: number
  readonly kind: string
  readonly state: State
  readonly account_id: string | null
  readonly chat_id: string | null
  readonly variant: number | null
  readonly created_at: Date
  readonly crossed_at: Date | null
  readonly finished_at: Date | null
  readonly reconciled: boolean
  readonly reason: string | null
  readonly detail: string | null
  readonly message_id: string | null
}

interface Report {
  readonly step: number
  readonly branch: string | null
  readonly variant: number | null
  readonly sent: number
  readonly failed: number
  readonly ambiguous: number
  readonly replies: number
  readonly opted_out: number
}

/**
 * Lists every text that a recipient may get, including those that none has got. Finds messages by recipient and not by the
 * campaign they name: a message that a journal restored may name a campaign that the restored database had lost.
 */
export function readReporting(db: Db, campaign_id: string): Promise<Report[]> {
  return db.rows<Report>(sql`
    with texts as (
      select 0 as step, null::text as branch, 0 as variant
      union all
      select s.step::int, s.branch, v.number - 1
      from campaigns k
      join (
        select campaign_id, branch, variants, row_number() over (partition by branch order by position) as step
        from campaign_steps where campaign_id = ${campaign_id}) s on s.campaign_id = k.id
      cross join generate_series(1, cardinality(s.variants)) as v (number)
      where s.step <= k.max_followups),
    messages as (
      select o.step_no as step, o.payload ->> 'branch' as branch, (o.payload ->> 'variant')::int as variant,
        count(*) filter (where o.state = 'completed') as sent, count(*) filter (where o.state = 'refused') as failed,
        count(*) filter (where o.state = 'ambiguous') as ambiguous, 0 as replies, 0 as opted_out
      from campaign_recipients r join operations o on o.recipient_id = r.id
      where r.campaign_id = ${campaign_id} and o.state in ('completed', 'refused', 'ambiguous')
      group by 1, 2, 3),
    answers as (
      select reply_step as step, reply_branch as branch, reply_variant as variant, 0, 0, 0, count(*) as replies,
        count(*) filter (where opted_out) as opted_out
      from campaign_recipients where campaign_id = ${campaign_id} and status = 'replied'
      group by 1, 2, 3)
    select step, branch, variant, sum(sent)::int as sent, sum(failed)::int as failed,
      sum(ambiguous)::int as ambiguous, sum(replies)::int as replies, sum(opted_out)::int as opted_out
    from (
      select *, 0 as sent, 0 as failed, 0 as ambiguous, 0 as replies, 0 as opted_out from texts
      union all select * from messages union all select * from answers) counted
    group by step, branch, variant order by step, branch nulls first, variant nulls first`)
}

/** What has happened to a recipient. */
export interface RecipientHistory {
  readonly status: string
  readonly reason: string | null
  readonly reads: readonly (Date | null)[]
  readonly replied_at: Date | null
  readonly reply_message_id: string | null
  readonly reply_step: number | null
  readonly reply_variant: number | null
  readonly ended_at: Date | null
}

interface TimelineEntry {
  readonly type: 'message' | 'read' | 'reply' | 'block'
  readonly at: Date
  readonly step: number
  readonly variant: number | null
  readonly message_id: string | null
  readonly operation_id: string | null
}

/** Without texts. Includes reads only while read receipts are switched on. */
export function timelineOf(
  recipient: RecipientHistory,
  operations: readonly OperationRow[],
  showReads: boolean,
): TimelineEntry[] {
  const entries: TimelineEntry[] = []
  for (const { id, step, state, detail, variant, finished_at, message_id } of operations) {
    if (!finished_at) continue
    const of = { step, variant, message_id, operation_id: id }
    if (state === 'completed') entries.push({ type: 'message', at: finished_at, ...of })
    if (state === 'refused' && detail === 'blocked_by_person') {
      entries.push({ type: 'block', at: finished_at, ...of })
    }
    const read = recipient.reads[step]
    if (showReads && state === 'completed' && read) entries.push({ type: 'read', at: read, ...of })
  }
  if (recipient.replied_at) {
    const operation = operations.find(({ step }) => step === recipient.reply_step)
    entries.push({
      type: 'reply',
      at: recipient.replied_at,
      step: recipient.reply_step ?? 0,
      variant: recipient.reply_variant,
      message_id: recipient.reply_message_id,
      operation_id: operation?.id ?? null,
    })
  }
  return entries.sort((one, other) => one.at.getTime() - other.at.getTime())
}
