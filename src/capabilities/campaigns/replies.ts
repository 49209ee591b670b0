/** What recipients do: they answer, which ends their sequence, and they read, which may change its track. */
import type { App } from '../../app.ts'
import type { AccountKey } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import type { NewEvent } from '../../events/emit.ts'
import { type ChatNumber, chatIdOf } from '../../lib/shapes.ts'
import type { Message } from '../../platform/port.ts'
import { isOptOut } from '../suppressions/suppressions.ts'
import { countOutcomes, countReply } from './counts.ts'
import { dueAt, type PlannedCampaign, type Step } from './plan.ts'
import { stepsOf } from './recipient-facts.ts'

/** How long after a campaign's last message an answer still counts as one to it. While it has more to say, any does. */
const replyDays = 30

export interface Reply extends AccountKey {
  readonly campaign_id: string
  readonly recipient_id: string
  readonly chat_id: string
  readonly message_id: string
  readonly replied_at: Date
  /** The message that was answered. */
  readonly step: number
  readonly variant: number | null
  /** Whether it asks to stop. */
  readonly opted_out: boolean
}

export function repliedEvent(reply: Reply): NewEvent {
  const { campaign_id, recipient_id, account_id, message_id, step, opted_out } = reply
  const chat_id = chatIdOf(reply.chat_id as ChatNumber)
  const variant = reply.variant ?? 0
  const data = { campaign_id, recipient_id, account_id, chat_id, message_id, step, variant, opted_out }
  return { type: 'campaign.replied', occurred_at: reply.replied_at.toISOString(), data }
}

/** What is told of recipient `r`, who has answered. */
export const replyColumns = sql`r.id as recipient_id, r.campaign_id, r.workspace_id, r.account_id, r.chat_id::text,
  r.reply_message_id::text as message_id, r.replied_at, coalesce(r.reply_step, 0) as step, r.reply_variant as variant,
  r.opted_out, r.status`

/** Recipients whose status has changed, of whom some are `replied` now: those are counted. Answers their events. */
export function countReplies(tx: Tx, changed: readonly (Reply & { readonly status: string })[]): NewEvent[] {
  const replies = changed.filter(({ status }) => status === 'replied')
  countOutcomes(
    tx,
    replies.map((reply) => countReply({ ...reply, at: reply.replied_at })),
  )
  return replies.map(repliedEvent)
}

/** A live message of the other side of a private chat. */
interface Heard {
  readonly chat_id: ChatNumber
  readonly message: Message
}

/**
 * The first answer ends what waits for that person, in the transaction that stores it; of campaigns that have had their
 * say only the last to write is answered. Heard while a message is in flight or unknown, it is noted, and decides once that
 * message is proven. Broadcasts are not answered. Answers the events.
 */
export async function noteReplies(
  app: App,
  tx: Tx,
  account: AccountKey,
  heard: readonly Heard[],
): Promise<NewEvent[]> {
  const first = new Map<string, Heard>()
  for (const one of heard) {
    const known = first.get(one.chat_id)
    if (!known || BigInt(one.message.id) < BigInt(known.message.id)) first.set(one.chat_id, one)
  }
  if (first.size === 0) return []
  const messages = [...first.values()]
  const { account_id } = account
  const chats = messages.map(({ chat_id }) => chat_id)
  await tx.run(sql`
    select 1 from campaign_recipients where account_id = ${account_id} and chat_id = any(${chats}::bigint[])
    order by id for update`)
  const replies = await tx.rows<Reply & { status: string }>(sql`
    with heard as materialized (
      select * from unnest(${chats}::bigint[], ${messages.map(({ message }) => message.id)}::bigint[],
        ${messages.map(({ message }) => message.timestamp)}::timestamptz[],
        ${messages.map(({ message }) => isOptOut(app.config.opt_out_words, message.text))}::boolean[])
        as h (chat_id, message_id, at, opted_out)),
    answered as materialized (
      select r.id, r.status, r.step, h.*, sent.step_no, sent.variant, sent.branch,
        row_number() over (partition by h.chat_id, r.status order by r.last_sent_at desc nulls last, r.id) as latest
      from heard h join campaign_recipients r on r.account_id = ${account_id} and r.chat_id = h.chat_id
      join campaigns k on k.id = r.campaign_id and k.kind <> 'broadcast'
      left join lateral (
        select o.step_no, (o.payload ->> 'variant')::int as variant, o.payload ->> 'branch' as branch from operations o
        where o.recipient_id = r.id and case when o.state = 'completed' then
            (o.reply_body ->> 'message_id')::bigint < h.message_id
          -- Somebody noted it as sent: which message it became is not known, but when. Platforms tell whole seconds.
          else o.closed_as = 'sent' and date_trunc('second', o.crossed_at) <= h.at end
        order by o.step_no desc limit 1) sent on true
      where (sent.step_no is not null and (r.status = 'waiting' or (r.status = 'completed'
          and h.at <= r.last_sent_at + make_interval(days => ${replyDays})
          -- They have answered since, another campaign that wrote later: this is not the first message after this one.
          and not exists (
            select from campaign_recipients later
            where later.account_id = r.account_id and later.chat_id = r.chat_id and later.status = 'replied'
              and (later.last_sent_at, r.id) > (r.last_sent_at, later.id)))))
        -- Whether it is an answer is known once ours is: until then the last one that was heard is kept.
        or (r.status in ('submitting', 'ambiguous') and r.reply_step is null))
    update campaign_recipients r set replied_at = a.at, reply_message_id = a.message_id, opted_out = a.opted_out,
      reply_step = a.step_no, reply_variant = a.variant, reply_branch = a.branch,
      status = case when r.status in ('waiting', 'completed') then 'replied' else r.status end,
      next_action_at = case when r.status = 'waiting' then null else r.next_action_at end,
      ended_at = case when r.status in ('waiting', 'completed') then domain_now() else r.ended_at end
    from answered a where r.id = a.id and (a.status <> 'completed' or a.latest = 1)
    returning ${replyColumns}`)
  return countReplies(tx, replies)
}

interface ReadMark {
  readonly chat_id: ChatNumber
  readonly up_to_message_id: string
  readonly at: string
}

interface Waiting {
  readonly id: string
  readonly step: number
  readonly last_sent_at: Date
  readonly max_followups: number
  readonly steps: readonly Step[]
}

/**
 * Our messages were read, up to one of them: it need not be the last. Where the track depends on the last, and that was read,
 * the next message is planned anew.
 */
export async function noteReads(
  tx: Tx,
  { account_id }: AccountKey,
  marks: readonly ReadMark[],
): Promise<void> {
  if (marks.length === 0) return
  const rows = await tx.rows<Waiting & { branches: boolean }>(sql`
    with marks as materialized (
      select chat_id, max(id) as id, max(at) as at from unnest(${marks.map(({ chat_id }) => chat_id)}::bigint[],
        ${marks.map(({ up_to_message_id }) => up_to_message_id)}::bigint[],
        ${marks.map(({ at }) => at)}::timestamptz[]) as m (chat_id, id, at) group by 1),
    locked as materialized (
      select r.id, r.step, r.last_message_id, m.id as up_to, m.at
      from marks m join campaign_recipients r on r.account_id = ${account_id} and r.chat_id = m.chat_id
      where r.step > 0 and r.reads[r.step] is null order by r.id for update of r),
    read as materialized (
      select l.id, l.at, max(case when l.last_message_id <= l.up_to then l.step else o.step_no + 1 end) as steps
      from locked l left join operations o on o.recipient_id = l.id and o.step_no < l.step
        and coalesce(o.reply_body ->> 'message_id', o.proof_message_id::text)::bigint <= l.up_to
      group by 1, 2)
    update campaign_recipients r set reads =
      array(select coalesce(r.reads[n], l.at) from generate_series(1, l.steps) as n)
    from read l, campaigns k where r.id = l.id and k.id = r.campaign_id
      and r.reads[l.steps] is null and l.steps > 0
    returning r.id, r.step, r.last_sent_at, k.max_followups, ${stepsOf} as steps,
      k.branching_enabled and r.status = 'waiting' and r.reads[r.step] is not null as branches`)
  for (const row of rows.filter(({ branches }) => branches)) {
    await tx.run(sql`
      update campaign_recipients set next_action_at = ${dueWhenRead(row)?.toISOString()}::timestamptz
      where id = ${row.id} and status = 'waiting'`)
  }
}

/** It is `waiting`, so there is a step to come on one of the tracks. */
function dueWhenRead({ id, step, last_sent_at, max_followups, steps }: Waiting): Date {
  const campaign: PlannedCampaign = {
    ...{ kind: 'scoped', status: 'sending', message_text: '', branching_enabled: true, max_followups, steps },
    ...{ daily_quota_per_account: null, scheduled_at: null, allowed: true },
  }
  const due = dueAt(campaign, {
    ...{ id, status: 'waiting', step, chat_id: null, name: null, username: null, last_sent_at, read: true },
    ...{ next_action_at: null, unknown_since: null, cold: false },
  })
  return due ?? last_sent_at
}
