/** How a caller reaches the platform: queues an operation under its key, and returns what is known of its outcome. */
import type { App, LedgerOperation, QueuedAttempt } from '../app.ts'
import type { Caller } from '../contract.ts'
import { isConnectionLost, isDuplicate, isNotConnected, LostCommit } from '../db/errors.ts'
import type { Tx } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import type { NewOperation } from '../operation.ts'
import type { Reply } from '../route.ts'
import {
  enqueue,
  enqueued,
  findById,
  findOperation,
  type OperationRequest,
  waits,
  withdraw,
} from './enqueue.ts'
import { markOperations } from './operation-marks.ts'
import { releasedError } from './released.ts'

/** How operations differ in their error responses. */
interface StatusOverrides {
  /** Status for a key that was used with another payload. */
  readonly collision?: 400 | 409
  /** Status for a flood wait. */
  readonly flood?: 429 | 503
  /** How to retry what provably did not happen, as the end of a sentence. */
  readonly again?: string
}

interface Consumption {
  /**
   * Runs first in the transaction that queues the operation, and consumes what allowed it. A caller that passes it
   * answers repeats itself, so the key is not looked up here.
   */
  readonly consume?: ((tx: Tx) => Promise<void>) | undefined
}

/** Queues the operation once for its key and waits for it. Repeating the key returns the first result and sends nothing. */
export async function requestOperation(
  app: App,
  caller: Caller,
  asked: OperationRequest &
    Consumption & { overrides: StatusOverrides; want: (queued_no: number) => Promise<NewOperation> },
): Promise<Reply> {
  const { overrides, consume } = asked
  const known = consume ? undefined : await findOperation(app.db, caller.workspace_id, asked)
  if (known) requireSame(known, asked)
  if (known && known.state !== 'released') return repeat(known)
  const wanted = await asked.want(known?.queued_no ?? 0)
  // crash point 1: the key is free, no row is written
  const queued = await claim(app, caller, { ...asked, wanted })
  if (queued === undefined) {
    if (consume) throw new ApiError('operation_in_progress')
    const other = await findOperation(app.db, caller.workspace_id, asked)
    if (other) requireSame(other, asked) // guard: a released key stays bound to its payload
    // It ended and was deleted in between.
    if (!other || other.state === 'released') throw new ApiError('operation_in_progress')
    return repeat(other)
  }
  // crash point 2: the row is committed, no worker was notified
  app.wake.signal(enqueued)
  markOperations(app, [{ ...wanted, workspace_id: caller.workspace_id }])
  const { wait_ms } = wanted.file_id === undefined ? waits.text : waits.file
  const settled = await app.waiting.settled(queued, wait_ms)
  // crash point 9: the outcome is stored, the caller was not answered
  return first(app, settled ?? (await giveUp(app, queued)), overrides)
}

function requireSame(
  known: LedgerOperation,
  { fingerprint, overrides }: OperationRequest & { overrides: StatusOverrides },
): void {
  if (!known.fingerprint.equals(fingerprint)) {
    throw new ApiError('idempotency_collision', { status: overrides.collision ?? 400 })
  }
}

async function claim(
  app: App,
  caller: Caller,
  asked: OperationRequest & Consumption & { wanted: NewOperation },
): Promise<QueuedAttempt | undefined> {
  const { consume } = asked
  try {
    if (!consume) return await enqueue(app, caller, asked)
    const queued = await app.db.transaction(async (tx) => {
      await consume(tx)
      const made = await enqueue(app, caller, { ...asked, tx })
      // Throwing rolls back what was consumed.
      // guard: a taken key consumes nothing
      if (!made) throw new ApiError('operation_in_progress')
      return made
    })
    // crash point 16: the approval is consumed, no worker was notified
    return queued
  } catch (cause) {
    // Two callers used one key at the same instant: the index of random ids may reject the second before the key's index.
    if (isDuplicate(cause, 'operations')) return undefined
    // The row may be committed, and a worker may take it.
    if (isLost(cause)) throw new ApiError('outcome_ambiguous', { cause })
    throw cause
  }
}

function isLost(error: unknown): boolean {
  // guard: what was never asked is not unknown
  return !isNotConnected(error) && (error instanceof LostCommit || isConnectionLost(error))
}

/** No worker took it in time, so it is withdrawn. If that comes too late, the outcome is unknown. */
async function giveUp(app: App, queued: QueuedAttempt): Promise<LedgerOperation> {
  try {
    await withdraw(app, queued)
    const row = await findById(app.db, queued.id)
    // The database crashed before it flushed the row, and what was never flushed was never submitted. Thrown without a cause,
    // which distinguishes it below from a database that did not answer.
    if (!row) throw new ApiError('store_unavailable')
    return row
  } catch (cause) {
    if (cause instanceof ApiError && cause.code === 'store_unavailable' && cause.cause === undefined)
      throw cause
    throw new ApiError('outcome_ambiguous', { cause })
  }
}

/** The response to the first caller. */
async function first(app: App, row: LedgerOperation, overrides: StatusOverrides): Promise<Reply> {
  const headers = { 'X-Operation-Id': row.id }
  switch (row.state) {
    case 'completed':
    case 'refused':
      return { status: row.reply_status ?? 500, body: row.reply_body, headers }
    case 'released':
      return refuse(await releasedError(app, row, overrides), headers)
    case 'queued':
    case 'submitting':
    case 'ambiguous':
      return refuse(new ApiError('outcome_ambiguous'), headers)
  }
}

/** The response to a repeat. */
function repeat(row: LedgerOperation): Reply {
  const headers = { 'X-Operation-Id': row.id }
  switch (row.state) {
    case 'completed':
    case 'refused': {
      const status = row.reply_status ?? 500
      return { status, body: row.reply_body, headers: { ...headers, 'Idempotent-Replayed': 'true' } }
    }
    case 'ambiguous':
      return refuse(new ApiError('outcome_ambiguous', { status: 409 }), headers)
    default:
      return refuse(new ApiError('operation_in_progress'), headers)
  }
}

function refuse({ status, code, message, retry_after }: ApiError, headers: Record<string, string>): Reply {
  const wait = retry_after === undefined ? {} : { 'Retry-After': String(retry_after) }
  return { status, body: { error: message, code }, headers: { ...headers, ...wait } }
}
