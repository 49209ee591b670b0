/**
 * Settles recipients together with their message, in the transaction of every change of the operation, whatever caused it
 * (an answer, the sweep, a proof, a journal, an operator), so that the two never disagree.
 */

import { given } from '../../../db/given.ts'
import { sql, type Tx } from '../../../db/sql.ts'
import { emit } from '../../../events/emit.ts'
import { executable } from '../../../ledger/columns.ts'
import type { SettledOperation } from '../../../operation.ts'
import type { PlatformRefusal } from '../../../platform/port.ts'
import { dueAt, type PlannedCampaign, type PlannedRecipient } from '../planning/plan.ts'
import { type FactsRow, isSuppressed, stepsOf } from '../planning/recipient-facts.ts'
import type { EndReason } from '../planning/why.ts'
import { type CountChange, countOutcomes, countReply } from './counts.ts'
import { noteStoredMessages } from './hand-messages.ts'
import { repliedEvent, sentAt } from './replies.ts'

/** A recipient, its campaign and the operation, locked and current. */
interface SettledRow
  extends Pick<
      FactsRow,
      'campaign_id' | 'workspace_id' | 'account_id' | 'kind' | 'campaign_status' | 'branching_enabled'
    >,
    Pick<FactsRow, 'max_followups' | 'steps' | 'status' | 'step' | 'last_sent_at' | 'suppressed' | 'now'> {
  readonly id: string
  readonly operation_id: string
  readonly chat_id: string
  readonly reason: EndReason | null
  readonly replied_at: Date | null
  readonly reply_account_id: string
  readonly reply_message_id: string | null
  readonly reply_step: number | null
  readonly reply_variant: number | null
  /** Whether the reply asks to stop. */
  readonly opted_out: boolean
  /** The message was unknown until now. */
  readonly late: boolean
  readonly crossed_at: Date
  /** Null unless the message was accepted. */
  readonly message_id: string | null
  readonly sent_at: Date | null
  readonly read_at: Date | null
  readonly branch: string | null
  readonly variant: number | null
}

/** A recipient's new state. Undefined leaves a column unchanged. */
interface NextState {
  readonly status: PlannedRecipient['status']
  readonly next_action_at?: Date | null
  readonly reason?: EndReason | null
  readonly unknown_since?: Date | null
  /** The message counts as sent. */
  readonly accepted?: boolean
}

export async function settleRecipients(tx: Tx, operations: readonly SettledOperation[]): Promise<void> {
  const byId = new Map(operations.map((operation) => [operation.id, operation]))
  const rows = await lockRows(tx, operations)
  const changes = rows.flatMap((row) => {
    const operation = byId.get(row.operation_id)
    const next = operation && nextOf(row, operation)
    return operation && next ? [{ row, operation, next }] : []
  })
  await write(tx, changes)
  const late = rows.flatMap((row) => (row.late ? [row.operation_id] : []))
  await noteStoredMessages(tx, late) // guard: a message by hand before its recipient is known
  const replied = changes.filter(({ row, next }) => next.status === 'replied' && row.status !== 'replied')
  countOutcomes(tx, [
    ...rows.flatMap((row) => countOf(row, byId.get(row.operation_id))),
    ...replied.map(({ row }) => countReply({ ...row, at: row.now })),
  ])
  for (const [workspace_id, own] of Map.groupBy(replied, ({ row }) => row.workspace_id)) {
    emit(
      tx,
      workspace_id,
      own.map(({ row, operation }) => eventOf(row, operation)),
    )
  }
}

/** The event for the reply that arrived while the message was in flight. */
function eventOf(row: SettledRow, { step_no }: SettledOperation) {
  const { reply_message_id: message_id, replied_at } = row
  const step = row.reply_step ?? step_no ?? 0
  const variant = row.reply_variant ?? row.variant ?? 0
  return repliedEvent({
    ...row,
    recipient_id: row.id,
    message_id: message_id ?? '0',
    replied_at: replied_at ?? row.now,
    step,
    variant,
  })
}

/** Applies what the ledger knows about messages whose recipients were created again after a restore. */
export async function adoptOutcomes(tx: Tx, operation_ids: readonly string[]): Promise<void> {
  const operations = await tx.rows<SettledOperation>(sql`
    select ${executable}, o.state as from_state, o.state, o.reason, o.detail, o.closed_as
    from operations o where o.id = any(${operation_ids}::uuid[])`)
  await settleRecipients(tx, operations)
}

/**
 * Those that were unknown until now, as are those that the platform has proven. While a message is in flight, its recipient shows that to
 * what arrives meanwhile; a message that a restore has lost is in no row, and what the person or the team has written since is stored
 * without any effect.
 */
function lateOf(operations: readonly SettledOperation[]): string[] {
  return operations.filter(({ from_state }) => from_state !== 'submitting').map(({ id }) => id)
}

/**
 * Locks campaigns before recipients, in the order that every transaction keeps. A cancel waits for this, or this sees the
 * cancel: no recipient keeps waiting in a cancelled campaign.
 */
async function lockRows(tx: Tx, operations: readonly SettledOperation[]): Promise<SettledRow[]> {
  const ids = operations.map(({ recipient_id }) => recipient_id)
  const late = lateOf(operations)
  const released = operations.filter(({ state }) => state === 'released').map(({ id }) => id)
  const [, , rows] = await Promise.all([
    tx.run(sql`
      select 1 from campaigns where id in (select campaign_id from campaign_recipients where id = any(${ids}::uuid[]))
      order by id for share -- guard: a settlement sees the cancel
      `),
    tx.run(sql`select 1 from campaign_recipients where id = any(${ids}::uuid[]) order by id for update`),
    tx.rows<SettledRow>(sql`
      select r.id, o.id as operation_id, k.id as campaign_id, k.workspace_id, o.account_id, o.chat_id::text, k.kind,
        k.status as campaign_status, k.branching_enabled, k.max_followups, ${stepsOf} as steps,
        r.status, r.reason, r.step, r.last_sent_at, coalesce(r.replied_at, newer.sent_at) as replied_at,
        coalesce(r.reply_account_id, newer.account_id, o.account_id) as reply_account_id,
        coalesce(r.reply_message_id, newer.id)::text as reply_message_id, r.reply_step, r.reply_variant,
        r.opted_out, o.reconciled or o.id = any(${late}::uuid[]) as late, (select domain_now()) as now,
        coalesce(o.crossed_at, o.created_at) as crossed_at,
        coalesce(o.reply_body ->> 'message_id', o.proof_message_id::text) as message_id,
        coalesce((o.reply_body ->> 'timestamp')::timestamptz, o.proof_at) as sent_at,
        case when chat.read_by_them_id >= (o.reply_body ->> 'message_id')::bigint then chat.read_by_them_at end
          as read_at,
        o.payload ->> 'branch' as branch, (o.payload ->> 'variant')::int as variant,
        -- Who gets no other message is not asked about.
        case when o.id = any(${released}::uuid[]) -- guard: a retry is asked about
          or (k.max_followups > coalesce(o.step_no, 0) and exists (
            select from campaign_steps s where s.campaign_id = k.id)) -- guard: a follow_up is asked about
          then ${isSuppressed(sql`o.account_id`, sql`o.chat_id`)} else false end as suppressed
      from operations o join campaign_recipients r on r.id = o.recipient_id join campaigns k on k.id = r.campaign_id
      left join chats chat on chat.account_id = o.account_id and chat.chat_id = o.chat_id
      -- After a restore, the reply may be stored before the message is known, so noteReplies could not match it.
      left join lateral (
        select m.account_id, m.id, m.sent_at from messages m where r.reply_message_id is null and k.kind <> 'broadcast'
          and m.account_id = o.account_id and m.chat_id = o.chat_id
          and not m.is_sender -- guard: a stored answer is an answer
          and m.id > coalesce(o.reply_body ->> 'message_id', o.proof_message_id::text)::bigint
        union all
        select m.account_id, m.id, m.sent_at
        from accounts own join accounts a on a.workspace_id = own.workspace_id
          and a.platform = own.platform -- guard: a stored answer of the same person
        cross join lateral (
          select m.account_id, m.id, m.sent_at from messages m
          where m.account_id = a.id and m.chat_id = o.chat_id and not m.is_sender
            and m.sent_at >= ${sentAt} -- guard: a stored answer came later
            -- Where only the second of our message is known, what the same chat has in it was there before.
            and (a.id <> o.account_id or m.sent_at > coalesce(o.crossed_at, o.created_at))
          order by m.sent_at, m.id limit 1) m
        where own.id = o.account_id and r.reply_message_id is null and k.kind <> 'broadcast'
          and (o.reconciled or o.id = any(${late}::uuid[])) -- guard: a stored answer to another account
          and (a.id <> o.account_id or coalesce(o.reply_body ->> 'message_id', o.proof_message_id::text) is null)
        order by sent_at, id limit 1) newer on true
      where o.id = any(${operations.map(({ id }) => id)}::uuid[])
      order by r.id, o.step_no`),
  ])
  return rows
}

function nextOf(known: SettledRow, operation: SettledOperation): NextState | undefined {
  // Outcomes of earlier messages change nothing: the next message was sent because they had gone out.
  const step = operation.step_no ?? 0
  if (known.step > step) return undefined // guard: the outcome of an earlier message changes nothing
  const row = { ...known, step }
  if (row.status === 'suppressed' || row.status === 'cancelled') return stopped(row, operation) // guard: what was stopped stays so
  switch (operation.state) {
    case 'completed':
      return accepted(row, row.sent_at ?? row.now)
    case 'refused':
      // Meanwhile the person answered an earlier message.
      return row.reply_step === null // guard: what was refused after a reply is replied
        ? { status: 'failed', reason: refusalOf(operation) }
        : { status: 'replied' }
    case 'released':
      return released(row)
    case 'ambiguous':
      if (operation.closed_as === 'sent') return accepted(row, row.crossed_at)
      if (operation.closed_as === 'not_sent') return { status: 'failed', reason: 'noted_not_sent' }
      return unknown(row)
    case 'submitting':
      return { status: 'submitting' }
    default:
      return undefined
  }
}

/** `settle` writes only the names of refusals there. */
function refusalOf({ detail }: SettledOperation): PlatformRefusal | null {
  return detail as PlatformRefusal | null
}

/** The recipient ended while the database had lost the message: a sent message still counts, and nothing else changes. */
function stopped(
  { status, reason }: SettledRow,
  { state, closed_as }: SettledOperation,
): NextState | undefined {
  return state === 'completed' || closed_as === 'sent' ? { status, reason, accepted: true } : undefined
}

/** The recipient got the message: plans the next one, if any. */
function accepted(row: SettledRow, sent_at: Date): NextState {
  const was = row.status
  if (isAnswered(row)) return { status: 'replied', accepted: true }
  // A final recipient stays final; proof only completes it, and no follow-up is sent.
  const over = was === 'ambiguous' || was === 'failed' || row.campaign_status === 'cancelled' // guard: what is final stays so
  const due = over ? null : dueAfter(row, sent_at)
  if (due === null) return { status: 'completed', accepted: true }
  if (row.suppressed) return { status: 'suppressed', reason: 'suppressed', accepted: true }
  return { status: 'waiting', next_action_at: due, accepted: true }
}

/** A reply arrived meanwhile, and it came after one of our messages. */
function isAnswered(row: SettledRow): boolean {
  const { reply_message_id, replied_at, reply_step, message_id, crossed_at, sent_at } = row
  if (reply_message_id === null) return false
  if (reply_step !== null) return true // guard: an answer to an earlier message counts
  const comparable = row.reply_account_id === row.account_id // guard: numbers of two accounts are not compared
  // An operator closed it as sent, so only its time is known and not its message. Platforms report whole seconds.
  if (message_id === null || !comparable) {
    if (replied_at === null) return false
    if (replied_at.getTime() > crossed_at.getTime() - 1_000) return true // guard: a reply within the second of the crossing
    // What a journal has put back has the time of the platform, and not that of its crossing.
    return sent_at !== null && replied_at >= sent_at // guard: answers in two accounts are compared by time
  }
  return BigInt(reply_message_id) > BigInt(message_id) // guard: a reply that overtakes our answer counts
}

/** Provably nothing went out: the message is due again, unless there is no longer a reason to send it. */
function released(row: SettledRow): NextState | undefined {
  if (row.status === 'ambiguous') return { status: 'failed', reason: 'never_written' }
  if (row.status !== 'submitting') return undefined // guard: only what is in flight is released
  if (row.campaign_status === 'cancelled') return { status: 'cancelled' } // guard: what was released in a cancelled campaign ends
  if (row.suppressed) return { status: 'suppressed', reason: 'suppressed' }
  if (row.reply_step !== null) return { status: 'replied' } // guard: what was released is not sent after a reply
  return { status: row.step === 0 ? 'queued' : 'waiting', next_action_at: row.now }
}

/** Stays open until the next message would be due; if none is left or the campaign was cancelled, it is final at once. */
function unknown(row: SettledRow): NextState | undefined {
  if (row.status !== 'submitting' && row.status !== 'queued' && row.status !== 'waiting') return undefined
  // guard: unknown in a cancelled campaign is final
  const due = row.campaign_status === 'cancelled' ? null : dueAfter(row, row.crossed_at)
  if (due === null || due <= row.now) return { status: 'ambiguous', unknown_since: row.now }
  return { status: 'submitting', unknown_since: row.now, next_action_at: due }
}

/** When the next message after this one would be due; null if there is none. */
function dueAfter(row: SettledRow, last_sent_at: Date): Date | null {
  const { kind, branching_enabled, max_followups, steps } = row
  const campaign: PlannedCampaign = {
    ...{ kind, branching_enabled, max_followups, steps, status: 'sending', message_text: '', allowed: true },
    ...{ daily_quota_per_account: null, scheduled_at: null },
  }
  const recipient: PlannedRecipient = {
    ...{
      id: row.id,
      status: 'waiting',
      step: row.step + 1,
      chat_id: row.chat_id,
      name: null,
      username: null,
    },
    ...{ last_sent_at, next_action_at: null, read: row.read_at !== null, unknown_since: null, cold: false },
  }
  return dueAt(campaign, recipient)
}

interface Change {
  readonly row: SettledRow
  readonly operation: SettledOperation
  readonly next: NextState
}

const final = new Set(['completed', 'replied', 'failed', 'ambiguous', 'cancelled', 'suppressed'])

async function write(tx: Tx, changes: readonly Change[]): Promise<void> {
  if (changes.length === 0) return
  await tx.run(sql`
    update campaign_recipients r set status = g.status,
      account_id = g.account_id, chat_id = g.chat_id, -- guard: a recipient belongs to the account of its message
      next_action_at = g.next_action_at, reason = g.reason, unknown_since = g.unknown_since,
      ended_at = case when g.final then coalesce(r.ended_at, (select domain_now())) end,
      step = case when g.accepted then g.step_no + 1 else greatest(r.step, g.step_no) end,
      last_sent_at = case when g.accepted then g.sent_at else r.last_sent_at end,
      last_message_id = case when g.accepted then g.message_id else r.last_message_id end,
      branch = case when g.accepted then g.branch else r.branch end,
      variant = case when g.accepted then g.variant else r.variant end,
      reads = case when g.read_at is null then r.reads else
        array(select coalesce(r.reads[n], g.read_at) from generate_series(1, g.step_no + 1) as n) end,
      replied_at = case when g.status = 'replied' then g.replied_at when not g.unanswered then r.replied_at end,
      reply_message_id = case when g.status = 'replied' then g.reply_message_id
        when not g.unanswered then r.reply_message_id end,
      reply_account_id = case when g.status = 'replied' then g.reply_account_id
        when not g.unanswered then r.reply_account_id end,
      reply_step = case when g.status = 'replied' then coalesce(r.reply_step, g.step_no) else r.reply_step end,
      reply_variant = case when g.status = 'replied' then coalesce(r.reply_variant, g.variant) else r.reply_variant end,
      reply_branch = case when g.status = 'replied' then coalesce(r.reply_branch, g.branch) else r.reply_branch end
    from ${given(changes, {
      id: ['uuid', ({ row }) => row.id],
      status: ['text', ({ next }) => next.status],
      final: ['boolean', ({ next }) => final.has(next.status)],
      account_id: ['text', ({ row }) => row.account_id],
      chat_id: ['bigint', ({ row }) => row.chat_id],
      next_action_at: ['timestamptz', ({ next }) => next.next_action_at?.toISOString()],
      reason: ['text', ({ next }) => next.reason],
      unknown_since: ['timestamptz', ({ next }) => next.unknown_since?.toISOString()],
      accepted: ['boolean', ({ next }) => next.accepted ?? false],
      unanswered: ['boolean', ({ next }) => (next.accepted ?? false) || next.status === 'queued'],
      step_no: ['int', ({ operation }) => operation.step_no ?? 0],
      sent_at: ['timestamptz', ({ row }) => (row.sent_at ?? row.crossed_at).toISOString()],
      message_id: ['bigint', ({ row }) => row.message_id],
      branch: ['text', ({ row }) => row.branch],
      variant: ['int', ({ row }) => row.variant],
      read_at: ['timestamptz', ({ row }) => row.read_at?.toISOString()],
      replied_at: ['timestamptz', ({ row }) => row.replied_at?.toISOString()],
      reply_message_id: ['bigint', ({ row }) => row.reply_message_id],
      reply_account_id: ['text', ({ row }) => row.reply_account_id],
    })} as g
    where r.id = g.id`)
}

/** The change of the campaign's counters, at the time of the crossing. A broadcast has none. */
function countOf(row: SettledRow, operation: SettledOperation | undefined): CountChange[] {
  if (!operation || row.kind === 'broadcast') return []
  const { campaign_id, workspace_id, account_id, crossed_at: at } = row
  const { from_state, state, step_no } = operation
  // guard: an unknown outcome that becomes known counts once
  const came = (to: string) => (state === to ? 1 : 0) - (from_state === to && state !== from_state ? 1 : 0)
  if (from_state === state) return []
  return [
    {
      ...{ campaign_id, workspace_id, account_id, at },
      sent: came('completed'),
      failed: came('refused'),
      ambiguous: came('ambiguous'),
      reached: step_no === 0 ? came('completed') : 0,
      ...{ replied: 0, opted_out: 0 },
    },
  ]
}
