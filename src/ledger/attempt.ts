/**
 * One attempt at one operation, from preparing it to recording its outcome. What fails before the boundary has not
 * happened; what fails after it is never repeated.
 */

import type { App } from '../app.ts'
import { toWellFormed } from '../lib/text.ts'
import type { Forbidden, Operation, OperationKind, Submit } from '../operation.ts'
import type { Outcome, Sent, Session } from '../platform/port.ts'
import type { OperationBoundary } from './boundary.ts'
import { attemptSeconds, releaseNeverSent } from './crossing.ts'
import type { Echoes, Expectation, RecordedMessage } from './echoes.ts'
import type { Journal } from './journal.ts'
import { findHandOver, type HeldLease, holdsLease } from './leases.ts'
import { type QueuedOperation, settleQueued, settleUncrossed } from './queue.ts'
import { isTrouble, noteFloodWait, type Recorder } from './recording.ts'
import type { Ending } from './settle.ts'
import { observeStage } from './timings.ts'
import { within } from './within.ts'

/** From before the boundary to the call: a process that was paused for longer does not submit. */
const submitMsMax = 10_000 // limit: from boundary to call
/** How long the platform may take. After that the outcome is unknown, but a late answer is still recorded. */
const answerMsMax = { text: 20_000, file: 100_000 } as const // limit: answer of the platform
const prepareMsMax = { text: 15_000, file: 100_000 } as const
/** The pause before an operation that stays queued is tried again: without it, it would be prepared again and again. */
const uncrossedMs = 500

/** An account with a session, driven by this process. */
export interface DrivenAccount {
  readonly held: HeldLease
  readonly session: Session
  /** Keeps the session open for this work, at least for a while, when the account moves to another process. */
  readonly awaits: (work: Promise<unknown>) => void
  /** The platform's jitter and pace. */
  readonly gapJitter: number
  readonly paceMs: number
}

/** What an attempt works with. */
export interface Ways {
  readonly boundary: OperationBoundary
  readonly journal: Journal
  readonly recorder: Recorder
  readonly echoes: Echoes
}

type PreparedSubmit = Outcome<Submit> | Forbidden

export async function attempt(
  app: App,
  ways: Ways,
  operation: QueuedOperation,
  account: DrivenAccount,
): Promise<void> {
  const { held } = account
  const size = operation.file_id === null ? 'text' : 'file'
  const kind = app.operations.get(operation.kind)
  if (!kind) return settleQueued(app, operation, { to: 'released', reason: 'unknown_kind' })
  if (kind.asks(operation) && !(await mayAsk(app, operation, held))) return // guard: who may not send does not ask
  const prepared = await within(app.sources, prepareMsMax[size], prepare(app, kind, operation, account))
  if (prepared?.kind !== 'accepted')
    return settleUnprepared(app, ways, operation, { held, outcome: prepared })
  // Before the boundary, so that a pause anywhere after it counts.
  const startedAt = app.sources.now() // guard: clock starts before the boundary
  // crash point 3a: it is prepared, the boundary is not crossed
  const { id, attempt_token: seen_token } = operation
  const wanted = { seen_token, seconds: attemptSeconds[size] }
  const answer = await ways.boundary.cross({ id, held, wanted })
  const { token, status } = answer
  if (status === 'lost') return takeBack(app, ways, answer, () => releaseNeverSent(app, { id, token }))
  if ('proof' in answer && answer.proof)
    return concludeProven(app, ways, operation, { token, proof: answer.proof })
  if (status === 'forbidden')
    return settleQueued(app, operation, {
      to: 'released',
      reason: status,
      detail: answer.forbidden ?? status,
    })
  if (status !== 'crossed') return leave(app, operation, held) // guard: only what has crossed is submitted
  observeStage(app, 'wait', operation.waited_seconds ?? 0) // guard: the wait for a worker is observed
  return submitCrossed(app, ways, operation, { token, startedAt, held, submit: prepared.value })
}

interface CrossedAttempt {
  readonly token: string
  /** Read before the boundary, so that a pause anywhere after it counts. */
  readonly startedAt: number
  readonly held: HeldLease
  readonly submit: Submit
}

/** From the boundary to the recorded outcome, for callers' operations and for campaign messages. */
export async function submitCrossed(
  app: App,
  ways: Ways,
  operation: Operation,
  { token, startedAt, held, submit }: CrossedAttempt,
): Promise<void> {
  const size = operation.file_id === null ? 'text' : 'file'
  // crash point 5: the boundary is committed, the journal is not written
  const intended = await intend(app, ways, operation, token) // guard: journal before call
  // crash point 12: the journal is written, the deadline is not checked
  // guard: deadline
  if (!intended || app.sources.now() - startedAt > submitMsMax) {
    const reason = intended ? 'deadline' : 'journal'
    return conclude(app, ways, operation, { token, held, outcome: { kind: 'not_written', reason } })
  }
  const echo = ways.echoes.expect(held.account_id, operation.random_id)
  // crash point 5a: the journal is written, nothing is submitted
  const calledAt = app.sources.now()
  const answer = ask(submit)
  const outcome = await within(app.sources, answerMsMax[size], answer)
  const answeredAt = app.sources.now()
  observeStage(app, 'call', (answeredAt - calledAt) / 1_000) // guard: the call is observed
  // crash point 7: the answer is read, nothing is recorded
  // guard: no answer is unknown
  const known: Outcome<unknown> = outcome ?? { kind: 'unknown', reason: 'timeout' }
  echo.answered()
  await conclude(app, ways, operation, { token, held, outcome: known, echo })
  observeStage(app, 'record', (app.sources.now() - answeredAt) / 1_000) // guard: the recording is observed
  if (!outcome) void concludeLate(app, ways, operation, { token, held, answer }) // guard: a late answer is recorded
}

/** Before preparation calls the platform, checks what the boundary checks: our lease, sending on, no flood wait. */
async function mayAsk(app: App, operation: QueuedOperation, held: HeldLease): Promise<boolean> {
  if (await settleUncrossed(app, held, operation)) return false
  if (await holdsLease(app.db, held.worker_id, held)) return true
  await app.sources.sleep(uncrossedMs)
  return false
}

const preparationFailed = 'preparation_failed'

/** A failure here has cost nothing; the caller may retry. */
async function prepare(
  { db, log }: App,
  kind: OperationKind,
  operation: QueuedOperation,
  { held, session }: DrivenAccount,
): Promise<PreparedSubmit> {
  try {
    return await kind.prepare({ db, account: held, session }, operation)
  } catch (err) {
    log.error({ err, operation_id: operation.id }, 'the worker could not prepare an operation')
    return { kind: 'not_written', reason: preparationFailed }
  }
}

/** Nothing was submitted yet, so the outcome cannot be unknown. */
async function settleUnprepared(
  app: App,
  { recorder }: Ways,
  operation: QueuedOperation,
  { held, outcome }: { held: HeldLease; outcome: Exclude<PreparedSubmit, { kind: 'accepted' }> | undefined },
): Promise<void> {
  const released = (detail: string): Ending => ({ to: 'released', reason: 'not_prepared', detail })
  if (outcome?.kind === 'refused') {
    const { reason } = outcome
    // guard: trouble of the account refuses no message
    if (!isTrouble(reason)) return settleQueued(app, operation, { to: 'refused', refusal: reason })
    await recorder.noteTrouble(held, reason)
    return settleQueued(app, operation, released(reason))
  }
  // The session was closed because another worker holds the account's lease, or will: that worker will do it.
  const lost = outcome === undefined || outcome.kind === 'not_written' || outcome.kind === 'unknown'
  if (lost && !(await holdsLease(app.db, held.worker_id, held))) return
  if (lost && (await findHandOver(app.db, held.account_id))) return // guard: given up during preparation
  if (outcome?.kind === 'flood_wait') {
    const { retry_after_seconds: seconds } = outcome
    await app.db.transaction((tx) => noteFloodWait(tx, operation, outcome))
    const { id: operation_id, account_id } = operation
    app.log.warn({ account_id, operation_id, seconds }, 'the platform asks to slow down')
  }
  await settleQueued(app, operation, released(detailOf(outcome)))
}

function detailOf(outcome: Exclude<PreparedSubmit, { kind: 'accepted' | 'refused' }> | undefined): string {
  if (!outcome) return 'timeout'
  if (outcome.kind === 'forbidden') return outcome.detail
  return outcome.kind === 'not_written' && outcome.reason === preparationFailed
    ? preparationFailed
    : outcome.kind
}

async function leave(app: App, operation: QueuedOperation, held: HeldLease): Promise<void> {
  if (!(await settleUncrossed(app, held, operation))) await app.sources.sleep(uncrossedMs)
}

/** The answer to COMMIT is lost, so the row may be `submitting`. Nothing is sent, and `release` is retried until it is stored. */
export async function takeBack(
  app: App,
  { journal, recorder }: Ways,
  { id, token }: { readonly id: string; readonly token: string },
  release: () => Promise<void>,
): Promise<void> {
  app.log.warn(
    { code: 'lost_commit', operation_id: id },
    'the database did not respond at the boundary; nothing was sent',
  )
  // crash point 4: the answer to COMMIT is lost, its worker has not said that nothing is sent
  // If this process ends while the database is away, the journal proves that nothing was sent. Its reader finds the
  // operation by the token.
  await journalOutcome(app, journal, { id, token, outcome: { kind: 'not_written', reason: 'lost_commit' } }) // guard: lost commit is in the journal
  await recorder.retryUntilStored(id, release) // guard: lost commit is released
}

async function intend(app: App, { journal }: Ways, operation: Operation, token: string): Promise<boolean> {
  const { id, workspace_id, kind, account_id, chat_id, random_id, idempotency_key: key } = operation
  const { campaign_id, recipient_id, step_no, quota_day, cold } = operation
  const fingerprint = operation.fingerprint.toString('hex')
  const place = recipient_id === null ? {} : { campaign_id, recipient_id, step_no, quota_day, cold }
  try {
    await journal.intend({
      ...{ id, token, workspace_id, kind, account_id, chat_id, random_id, key, fingerprint },
      ...place,
    })
    return true
  } catch (err) {
    app.log.error({ err, operation_id: id }, 'the worker cannot write its journal; nothing was sent')
    return false // guard: unwritable journal
  }
}

interface Conclusion {
  readonly token: string
  readonly held: HeldLease
  readonly outcome: Outcome<unknown>
  readonly echo?: Expectation
}

/** Writes the outcome to the journal, which a restored database may need, and to the ledger. */
async function conclude(
  app: App,
  { journal, recorder }: Ways,
  operation: Operation,
  { token, held, outcome, echo }: Conclusion,
): Promise<void> {
  const { id } = operation
  const sound = toWellFormed(outcome)
  // crash point 10: the outcome is read, the journal does not know it
  await journalOutcome(app, journal, { id, token, outcome: journaledOf(app, operation, sound) })
  // crash point 8: the outcome is in the journal, the row does not know it
  try {
    await recorder.record({ operation, public_id: id, token, held, outcome: sound })
    echo?.resolve(recordedOf(app, operation, sound))
  } catch (error) {
    echo?.resolve(undefined)
    throw error
  }
}

/** A journal outlives an erasure, so it keeps ids of people and none of their names. */
function journaledOf({ operations }: App, { kind }: Operation, outcome: Outcome<unknown>): Outcome<unknown> {
  if (outcome.kind !== 'accepted') return outcome
  return { kind: 'accepted', value: operations.get(kind)?.journaled(outcome.value) ?? outcome.value } // guard: no names in the journal
}

async function journalOutcome(
  { log }: App,
  journal: Journal,
  known: Parameters<Journal['conclude']>[0],
): Promise<void> {
  await journal.conclude(known).catch((err) => {
    log.warn({ err, operation_id: known.id }, 'the worker could not write an outcome to its journal')
  })
}

/** A late answer still counts: it settles an operation whose outcome was unknown. */
async function concludeLate(
  app: App,
  ways: Ways,
  operation: Operation,
  { token, held, answer }: { token: string; held: HeldLease; answer: Promise<Outcome<unknown>> },
): Promise<void> {
  await answer
    .then((late) => conclude(app, ways, operation, { token, held, outcome: late }))
    .catch((err) => app.log.error({ err, operation_id: operation.id }, 'a late answer was lost'))
}

/** A stored message carries our random id: it was accepted before, and is not submitted again. */
export async function concludeProven(
  app: App,
  ways: Ways,
  operation: Operation,
  { token, proof }: { token: string; proof: Sent },
): Promise<void> {
  app.log.warn({ operation_id: operation.id }, 'the platform already has this message; it is not sent again')
  const outcome = { kind: 'accepted', value: proof } as const
  // If the database is restored once more, it forgets this row as well.
  await intend(app, ways, operation, token) // guard: a proven message is in the journal
  await journalOutcome(app, ways.journal, { id: operation.id, token, outcome })
  await ways.recorder.record({ operation, public_id: operation.id, token, outcome, reconciled: true })
}

/** A call that throws instead of answering leaves the outcome unknown. */
async function ask(call: Submit): Promise<Outcome<unknown>> {
  try {
    return await call()
  } catch (error) {
    return { kind: 'unknown', reason: error instanceof Error ? error.message : String(error) }
  }
}

function recordedOf(app: App, operation: Operation, outcome: Outcome<unknown>): RecordedMessage | undefined {
  if (outcome.kind !== 'accepted' || operation.chat_id === null) return undefined
  const message = app.operations.get(operation.kind)?.message(operation, outcome.value)
  return message && { ...message, chat_id: operation.chat_id }
}
