/**
 * The campaigns' statement at the boundary: it crosses messages of many accounts in one transaction, in two round trips. The
 * first locks and reads, in the order that every transaction keeps. The second writes the decisions on the locked rows:
 * operations, recipients and the day's quota use.
 */
import type { App } from '../../../app.ts'
import { planOnce, type Tx } from '../../../db/sql.ts'
import {
  Boundary,
  type BoundaryOptions,
  type Crossing,
  type StatementAnswer,
} from '../../../ledger/boundary.ts'
import type { Instance } from '../../../ledger/crossing.ts'
import {
  insertAttempts,
  type LockedDay,
  lockAccounts,
  lockDays,
  type NewAttempt,
} from '../../../ledger/direct-crossing.ts'
import type { HeldLease } from '../../../ledger/leases.ts'
import type { Operation } from '../../../operation.ts'
import type { Sent } from '../../../platform/port.ts'
import {
  type Crossable,
  decideCrossing,
  type LockedRow,
  lockPeople,
  lockRecipients,
  type MessageCrossing,
  markEnded,
  markSubmitting,
} from './locked-recipients.ts'
import { adoptOutcomes } from './outcomes.ts'

/** A message that asks to cross. */
type WantedMessage = Omit<MessageCrossing, 'id' | 'token'>

/** `ended`: nothing is sent, and the recipient's row says why. */
type MessageAnswer =
  | (StatementAnswer & {
      readonly status: 'crossed'
      readonly operation: Operation
      readonly proof: Sent | null
    })
  | (StatementAnswer & { readonly status: 'ended' | 'busy' | 'behind' | 'no' })

export type MessageBoundary = Boundary<WantedMessage, MessageAnswer>

export function messageBoundary(app: App, options: BoundaryOptions): MessageBoundary {
  return new Boundary(app, options, (instance, crossings) => crossMessages(app, instance, crossings))
}

async function crossMessages(
  app: App,
  instance: Instance,
  crossings: readonly Crossing<WantedMessage>[],
): Promise<MessageAnswer[]> {
  const all = crossings.map(({ id, token, wanted }): MessageCrossing => ({ id, token, ...wanted }))
  const held = [...new Map(crossings.map((one) => [one.held.account_id, one.held])).values()]
  return app.db.transaction(async (tx) => {
    const facts = await lockAll(app, tx, { instance, held, wanted: all })
    // crash point 3b: everything is locked, nothing is written
    const decisions = decideAll(app, all, facts)
    const writes = await writeAll(tx, instance, { decisions, rows: facts.rows })
    // crash point 3c: everything is written, nothing is committed
    return all.map((one) => answerOf(decisions.get(one), writes.get(one.row.recipient_id) ?? null))
  })
}

/** The first round trip: pipelined statements, which the database executes in this order. */
async function lockAll(
  app: App,
  tx: Tx,
  {
    instance,
    held,
    wanted,
  }: { instance: Instance; held: readonly HeldLease[]; wanted: readonly MessageCrossing[] },
): Promise<LockedFacts> {
  const account_ids = held.map(({ account_id }) => account_id)
  const [, accounts, contended, rows, days] = await Promise.all([
    tx.run(planOnce),
    lockAccounts(tx, instance, held),
    lockPeople(tx, wanted),
    lockRecipients(app, tx, wanted),
    lockDays(tx, account_ids),
  ])
  return {
    statuses: new Map(accounts.map(({ account_id, status }) => [account_id, status])),
    rows: new Map(rows.map((row) => [row.recipient_id, row])),
    days: new Map(days.map((day) => [day.account_id, day])),
    contended,
  }
}

interface LockedFacts {
  readonly statuses: ReadonlyMap<string, 'held' | 'busy' | 'behind' | 'no'>
  readonly rows: ReadonlyMap<string, LockedRow>
  readonly days: ReadonlyMap<string, LockedDay>
  /** Contacts that resolved to a person another transaction has locked. */
  readonly contended: ReadonlySet<string>
}

type Decision = Crossable | { readonly do: 'busy' | 'behind' | 'no' }
type Decisions = ReadonlyMap<MessageCrossing, Decision>

/**
 * At most one message from each account, and one to each person of a campaign, whichever accounts would write to them.
 * Decides in recipient order: of two contacts that are one person, always the same one gets the message.
 */
function decideAll(app: App, wanted: readonly MessageCrossing[], facts: LockedFacts): Decisions {
  const decisions = new Map<MessageCrossing, Decision>()
  const sending = new Set<string>()
  const ordered = wanted.toSorted((one, other) => (one.row.recipient_id < other.row.recipient_id ? -1 : 1))
  for (const one of ordered) {
    const decision = decideOne(app, one, facts)
    const places = decision.do === 'send' ? placesOf(one, decision.attempt) : []
    const taken = places.some((place) => sending.has(place)) // guard: one message of an account in a batch
    for (const place of places) sending.add(place)
    decisions.set(one, taken ? { do: 'busy' } : decision)
  }
  return decisions
}

/** What no other message of the batch may use. In a campaign of chats, one person in two accounts is two recipients. */
function placesOf({ row }: MessageCrossing, { chat_id }: NewAttempt): readonly string[] {
  const { account_id, campaign_id, kind } = row
  const person = kind === 'contacts' ? chat_id : `${account_id} ${chat_id}` // guard: one person of a batch
  return [account_id, `${campaign_id} ${person}`]
}

function decideOne(
  app: App,
  wanted: MessageCrossing,
  { statuses, rows, days, contended }: LockedFacts,
): Decision {
  const { account_id, recipient_id } = wanted.row
  const status = statuses.get(account_id) ?? 'no'
  if (status !== 'held') return { do: status }
  const row = rows.get(recipient_id)
  const day = days.get(account_id)
  // Another transaction holds the recipient, or it has changed since it was picked: the next pick decides again.
  if (!row || !day) return { do: 'no' }
  // guard: what another transaction holds is left alone
  if (day.busy || row.forbidden === 'busy' || contended.has(recipient_id)) return { do: 'busy' }
  return decideCrossing(app, wanted, row, day)
}

interface DecidedBatch {
  readonly decisions: Decisions
  readonly rows: ReadonlyMap<string, LockedRow>
}

/** The second round trip. Returns each account's count of writes, by recipient. */
async function writeAll(
  tx: Tx,
  instance: Instance,
  { decisions, rows }: DecidedBatch,
): Promise<ReadonlyMap<string, string>> {
  const attempts: NewAttempt[] = []
  const ended: Parameters<typeof markEnded>[1][number][] = []
  const adopted: string[] = []
  for (const [{ row }, decision] of decisions) {
    if (decision.do === 'send') attempts.push(decision.attempt)
    else if (decision.do === 'end') ended.push({ ...decision, recipient_id: row.recipient_id })
    else if (decision.do === 'adopt') adopted.push(decision.operation_id)
  }
  const [inserted] = await Promise.all([
    insertAttempts(tx, instance.worker_id, attempts),
    markSubmitting(tx, attempts, rows), // guard: the recipient crosses with its operation
    markEnded(tx, ended),
  ])
  if (adopted.length > 0) await adoptOutcomes(tx, adopted)
  // guard: a message without its operation does not cross
  if (inserted.length !== attempts.length) throw new Error('A message of the batch has an operation already.')
  return new Map(inserted.map((one) => [one.recipient_id, one.writes]))
}

function answerOf(decision: Decision | undefined, writes: string | null): MessageAnswer {
  switch (decision?.do) {
    case 'send': {
      const { proof } = decision.attempt
      return { status: 'crossed', writes, operation: operationOf(decision.attempt), proof } // guard: proven message is not sent
    }
    case 'end':
    case 'adopt':
      return { status: 'ended', writes }
    case 'busy':
    case 'behind':
      return { status: decision.do, writes }
    default:
      return { status: 'no', writes }
  }
}

function operationOf(attempt: NewAttempt): Operation {
  return { ...attempt, idempotency_key: null, file_id: null }
}
