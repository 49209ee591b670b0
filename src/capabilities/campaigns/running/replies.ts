/** What recipients do: a reply ends their sequence, and a read may change its track. */
import type { App } from '../../../app.ts'
import type { AccountKey } from '../../../contract.ts'
import { given } from '../../../db/given.ts'
import { type Sql, sql, type Tx } from '../../../db/sql.ts'
import type { NewEvent } from '../../../events/emit.ts'
import { type ChatNumber, chatIdOf } from '../../../lib/shapes.ts'
import type { Message } from '../../../platform/port.ts'
import { isOptOut } from '../../suppressions/suppressions.ts'
import { dueAt, type PlannedCampaign, type Step } from '../planning/plan.ts'
import { stepsOf } from '../planning/recipient-facts.ts'
import { countOutcomes, countReply } from './counts.ts'

/** How long after a campaign's last message a reply counts as one. While it has follow-ups left, any message does. */
const replyDays = 30
/** How far the clocks of platform and database may differ. A message that is older than the campaign by more is no reply. */
const clockHours = 1

export interface Reply extends AccountKey {
  readonly campaign_id: string
  readonly recipient_id: string
  readonly chat_id: string
  /** The account that the person wrote to. In a pool it may differ from the account that wrote to them. */
  readonly reply_account_id: string
  readonly message_id: string
  readonly replied_at: Date
  /** The step that was answered. */
  readonly step: number
  readonly variant: number | null
  /** Whether it asks to stop. */
  readonly opted_out: boolean
}

export function repliedEvent(reply: Reply): NewEvent {
  const { campaign_id, recipient_id, reply_account_id: account_id, message_id, step, opted_out } = reply
  const chat_id = chatIdOf(reply.chat_id as ChatNumber)
  const variant = reply.variant ?? 0
  const data = { campaign_id, recipient_id, account_id, chat_id, message_id, step, variant, opted_out }
  return { type: 'campaign.replied', occurred_at: reply.replied_at.toISOString(), data }
}

/** What events and counters need about recipient `r`, who has replied. */
export const replyColumns = sql`r.id as recipient_id, r.campaign_id, r.workspace_id, r.account_id, r.chat_id::text,
  coalesce(r.reply_account_id, r.account_id) as reply_account_id, r.reply_message_id::text as message_id, r.replied_at,
  coalesce(r.reply_step, 0) as step, r.reply_variant as variant, r.opted_out, r.status`

/** Counts those whose new status is `replied`, and returns their events. */
export function countReplies(tx: Tx, changed: readonly (Reply & { readonly status: string })[]): NewEvent[] {
  const replies = changed.filter(({ status }) => status === 'replied')
  countOutcomes(
    tx,
    replies.map((reply) => countReply({ ...reply, at: reply.replied_at })),
  )
  return replies.map(repliedEvent)
}

/**
 * Whether operation `o` has sent its message before another one. `message_id` is null if that one is of another account: every
 * account numbers its messages itself, so messages of two accounts are compared by time.
 */
export const isSentBefore = ({
  message_id,
  at,
}: {
  readonly message_id: Sql
  readonly at: Sql
}): Sql => sql`case
  -- An operator closed it as sent, so only its time is known and not its message. Platforms report whole seconds.
  when o.state <> 'completed' then o.closed_as = 'sent'
    and date_trunc('second', o.crossed_at) <= ${at} -- guard: what came before one closed as sent is no reply
  when ${message_id} is not null then (o.reply_body ->> 'message_id')::bigint < ${message_id}
  else (o.reply_body ->> 'timestamp')::timestamptz <= ${at} -- guard: two accounts are compared by time
  end`

/** When operation `o` has sent its message, by the clock of the platform. Null while that is unknown. */
export const sentAt: Sql = sql`coalesce((o.reply_body ->> 'timestamp')::timestamptz, o.proof_at,
  case when o.closed_as = 'sent' then date_trunc('second', o.crossed_at) end)`

/** A message from the other side of a private chat. */
interface IncomingMessage {
  readonly chat_id: ChatNumber
  readonly message: Message
}

/**
 * The first reply ends what waits for that person, in the transaction that stores it. Of completed campaigns, only the last
 * to write is answered. A reply that arrives while a message is in flight or unknown is stored, and decides once that
 * message is proven. Broadcasts get no replies. Messages may arrive late, out of order and repeatedly. Returns the events.
 */
export async function noteReplies(
  app: App,
  tx: Tx,
  account: AccountKey,
  incoming: readonly IncomingMessage[],
): Promise<NewEvent[]> {
  if (incoming.length === 0) return []
  const { account_id } = account
  const chats = incoming.map(({ chat_id }) => chat_id)
  const recipients = await lockWriters(tx, account, chats)
  if (recipients.length === 0) return []
  const replies = await tx.rows<Reply & { status: string }>(sql`
    with incoming as materialized ${given(incoming, {
      chat_id: 'bigint',
      message_id: ['bigint', ({ message }) => message.id],
      at: ['timestamptz', ({ message }) => message.timestamp],
      opted_out: ['boolean', ({ message }) => isOptOut(app.config.opt_out_words, message.text)],
    })},
    answers as materialized (
      select distinct on (r.id) r.id, r.status, r.last_sent_at, h.*, sent.step_no, sent.variant, sent.branch
      from campaign_recipients r join incoming h on h.chat_id = r.chat_id
      join campaigns k on k.id = r.campaign_id and k.kind <> 'broadcast'
      left join lateral (
        select o.step_no, (o.payload ->> 'variant')::int as variant, o.payload ->> 'branch' as branch from operations o
        where o.recipient_id = r.id and ${isSentBefore({
          message_id: sql`case when r.account_id = ${account_id} then h.message_id end`,
          at: sql`h.at`,
        })}
        order by o.step_no desc limit 1) sent on true
      where r.id = any(${recipients}::uuid[]) and case r.status
        when 'waiting' then sent.step_no is not null
        when 'completed' then sent.step_no is not null
          and r.account_id = ${account_id} -- guard: nothing is left to end elsewhere
          and h.at <= r.last_sent_at + make_interval(days => ${replyDays})
          -- They have since answered another campaign that wrote later, so this is not their first message after this one.
          and not exists (
            select from campaign_recipients later
            where later.account_id = r.account_id and later.chat_id = r.chat_id and later.status = 'replied'
              and (later.last_sent_at, r.id) > (r.last_sent_at, later.id))
        -- Whether it is a reply is known once our message is proven: until then the newest one is stored.
        else r.status in ('submitting', 'ambiguous')
          and r.reply_step is null -- guard: the first reply is kept
          and (sent.step_no is not null or (
          h.at > k.created_at - make_interval(hours => ${clockHours}) -- guard: older than the campaign
          and (r.replied_at is null or (h.at, h.message_id) > (r.replied_at, r.reply_message_id)) -- guard: newest is kept
          )) end
      order by r.id, sent.step_no is null, case when sent.step_no is not null then h.message_id end,
        h.at desc, h.message_id desc),
    answered as materialized (
      select *, row_number() over (
        partition by chat_id, message_id, status order by last_sent_at desc nulls last, id) as latest from answers)
    update campaign_recipients r set replied_at = a.at, reply_message_id = a.message_id, opted_out = a.opted_out,
      reply_account_id = ${account_id}, reply_step = a.step_no, reply_variant = a.variant, reply_branch = a.branch,
      status = case when r.status in ('waiting', 'completed') then 'replied' else r.status end,
      next_action_at = case when r.status = 'waiting' then null else r.next_action_at end,
      ended_at = case when r.status in ('waiting', 'completed') then domain_now() else r.ended_at end
    from answered a where r.id = a.id and (a.status <> 'completed' or a.latest = 1)
    returning ${replyColumns}`)
  return countReplies(tx, replies)
}

/**
 * The recipients that may have written to these people: the account's own, and those of every other account of the workspace on
 * the same platform whose sequence has not ended. Locked in one order, so that the caller decides on their present state. Each
 * is locked by its key: a plan cached while there were few recipients would scan all of them once there are many.
 */
async function lockWriters(
  tx: Tx,
  { account_id, workspace_id }: AccountKey,
  chats: readonly ChatNumber[],
): Promise<string[]> {
  const rows = await tx.rows<{ id: string }>(sql`
    with writers as materialized (
      select r.id from campaign_recipients r where r.account_id = ${account_id} and r.chat_id = any(${chats}::bigint[])
      union
      select r.id from campaign_recipients r
      join accounts other on other.id = r.account_id
      join accounts own on own.id = ${account_id}
        and own.platform = other.platform -- guard: a reply on another platform
      where r.chat_id = any(${chats}::bigint[])
        and r.workspace_id = ${workspace_id} -- guard: a reply ends sequences of its workspace
        and r.status in ('submitting', 'waiting', 'ambiguous') -- guard: a reply to another account
      order by id)
    select r.id from writers w
    cross join lateral (select r.id from campaign_recipients r where r.id = w.id for update) r`)
  return rows.map(({ id }) => id)
}

interface ReadMark {
  readonly chat_id: ChatNumber
  readonly up_to_message_id: string
  readonly at: string
}

interface WaitingRecipient {
  readonly id: string
  readonly step: number
  readonly last_sent_at: Date
  readonly max_followups: number
  readonly steps: readonly Step[]
}

/**
 * Stores that our messages were read, up to one that need not be the last. If the track depends on the last one and that was
 * read, the next message is planned again.
 */
export async function noteReads(
  tx: Tx,
  { account_id }: AccountKey,
  marks: readonly ReadMark[],
): Promise<void> {
  if (marks.length === 0) return
  const rows = await tx.rows<WaitingRecipient & { branches: boolean }>(sql`
    with marks as materialized (
      select chat_id, max(id) as id, max(at) as at from ${given(marks, {
        chat_id: 'bigint',
        id: ['bigint', ({ up_to_message_id }) => up_to_message_id],
        at: 'timestamptz',
      })} as m group by 1),
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

/** The recipient is `waiting`, so one of the tracks has a next step. */
function dueWhenRead({ id, step, last_sent_at, max_followups, steps }: WaitingRecipient): Date {
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
