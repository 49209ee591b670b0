/** The one door to the platform for a caller: an operation under its key, and an honest answer about it. */
import type { App, Queued, Settled } from '../app.ts'
import type { Caller } from '../contract.ts'
import { isConnectionLost, isNotConnected, LostCommit } from '../db/errors.ts'
import type { Tx } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import type { NewOperation } from '../operation.ts'
import type { Reply } from '../route.ts'
import { type Asked, enqueue, enqueued, findById, findOperation, waits, withdraw } from './enqueue.ts'
import { releasedError } from './released.ts'

/** What differs between operations when the answer is no. */
export interface StatusOverrides {
  /** A key that was used for another payload. */
  readonly collision?: 400 | 409
  /** What a platform that asks to slow down is to the caller. */
  readonly flood?: 429 | 503
  /** How to try again what provably did not happen, as the end of a sentence. */
  readonly again?: string
}

interface Consuming {
  /**
   * Runs first in the transaction that queues the operation, and uses up what allowed it. Whoever brings it answers
   * repeats, so here the key is not looked up.
   */
  readonly consume?: ((tx: Tx) => Promise<void>) | undefined
}

/** Queues the operation once for its key and waits for it. A repeat is told what the first one came to. */
export async function submit(
  app: App,
  caller: Caller,
  asked: Asked & Consuming & { overrides: StatusOverrides; want: () => Promise<NewOperation> },
): Promise<Reply> {
  const { overrides, consume } = asked
  const known = consume ? undefined : await findOperation(app.db, caller.workspace_id, asked)
  if (known) requireSame(known, asked)
  if (known && known.state !== 'released') return repeat(known)
  const wanted = await asked.want()
  // crash point 1: the key is free, no row is written
  const queued = await claim(app, caller, { ...asked, wanted })
  if (queued === undefined) {
    if (consume) throw new ApiError('operation_in_progress')
    const other = await findOperation(app.db, caller.workspace_id, asked)
    if (other) requireSame(other, asked) // guard: a released key stays bound to its payload
    // It ended and was forgotten in between.
    if (!other || other.state === 'released') throw new ApiError('operation_in_progress')
    return repeat(other)
  }
  // crash point 2: the row is committed, nobody was told
  app.wake.signal(enqueued)
  const { wait_ms } = wanted.file_id === undefined ? waits.text : waits.file
  const settled = await app.waiting.settled(queued, wait_ms)
  // crash point 9: the outcome is stored, the caller was not answered
  return first(app, settled ?? (await giveUp(app, queued)), overrides)
}

function requireSame(
  known: Settled,
  { fingerprint, overrides }: Asked & { overrides: StatusOverrides },
): void {
  if (!known.fingerprint.equals(fingerprint)) {
    throw new ApiError('idempotency_collision', { status: overrides.collision ?? 400 })
  }
}

async function claim(
  app: App,
  caller: Caller,
  asked: Asked & Consuming & { wanted: NewOperation },
): Promise<Queued | undefined> {
  const { consume } = asked
  try {
    if (!consume) return await enqueue(app, caller, asked)
    const queued = await app.db.transaction(async (tx) => {
      await consume(tx)
      const made = await enqueue(app, caller, { ...asked, tx })
      // Thrown, it takes back what was consumed.
      // guard: a taken key consumes nothing
      if (!made) throw new ApiError('operation_in_progress')
      return made
    })
    // crash point 16: the approval is consumed, nobody was told
    return queued
  } catch (cause) {
    // Two callers of one key in the same instant: the index of random ids may be the first to notice.
    if (isTaken(cause)) return undefined
    // The row may be there, and a worker may take it.
    if (isLost(cause)) throw new ApiError('outcome_ambiguous', { cause })
    throw cause
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === '23505'
}

function isLost(error: unknown): boolean {
  // guard: what was never asked is not unknown
  return !isNotConnected(error) && (error instanceof LostCommit || isConnectionLost(error))
}

/** Nobody took it in time: then it is taken back, and if that is too late, nobody knows. */
async function giveUp(app: App, queued: Queued): Promise<Settled> {
  try {
    await withdraw(app, queued)
    const row = await findById(app.db, queued.id)
    // The database crashed before it was flushed: what was never flushed was never submitted. Thrown without a cause, which
    // tells it below from a database that did not answer.
    if (!row) throw new ApiError('store_unavailable')
    return row
  } catch (cause) {
    if (cause instanceof ApiError && cause.code === 'store_unavailable' && cause.cause === undefined)
      throw cause
    throw new ApiError('outcome_ambiguous', { cause })
  }
}

/** What the first caller is told. */
async function first(app: App, row: Settled, overrides: StatusOverrides): Promise<Reply> {
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

/** What a repeat is told. */
function repeat(row: Settled): Reply {
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
