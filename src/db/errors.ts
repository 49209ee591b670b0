/** What a failure of the database means: to the connection, to a transaction, to a caller. */
import pg from 'pg'
import { ApiError } from '../lib/errors.ts'

/** The answer to COMMIT was lost: the transaction may have committed. */
export class LostCommit extends Error {
  override readonly name = 'LostCommit'
}

/** No connection could be opened, so nothing was sent to the database. */
class NotConnected extends Error {
  override readonly name = 'NotConnected'
  /** From the driver, or from the server that refused. */
  readonly code: unknown

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.code = (cause as { readonly code?: unknown }).code
  }
}

export function isNotConnected(error: unknown): boolean {
  return error instanceof ApiError && error.cause instanceof NotConnected
}

/** True when this connection cannot be used any more. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof LostCommit || error instanceof NotConnected) return true
  if (error instanceof ApiError) return isConnectionLost(error.cause)
  if (!(error instanceof pg.DatabaseError)) return error instanceof Error && !isOurs(error)
  return /^(08|57P)/.test(error.code ?? '')
}

/** True when the database did not answer, or did not confirm the commit: a retry may succeed. */
export function isAway(error: unknown): boolean {
  return error instanceof LostCommit || (error instanceof ApiError && error.code === 'store_unavailable')
}

/** True when another transaction kept what the statement waited for. */
export function isLocked(error: unknown): boolean {
  return error instanceof ApiError && error.cause instanceof pg.DatabaseError && error.cause.code === '55P03'
}

/** The code of a failure in a log line. */
export function codeOf(error: unknown): string {
  if (error instanceof LostCommit) return 'lost_commit'
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'string' ? code : 'internal'
}

/** True when an earlier failure has ended the transaction: the first error says why. */
export function isAborted(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25P02'
}

/** True when a unique index of the table rejected the row. */
export function isDuplicate(error: unknown, table: string): boolean {
  return error instanceof pg.DatabaseError && error.code === '23505' && error.table === table
}

/** Errors that our own code throws inside a transaction leave the connection usable. */
function isOurs(error: Error): boolean {
  const code = (error as NodeJS.ErrnoException).code
  if (typeof code === 'string' && /^E[A-Z]+$/.test(code)) return false
  return !/^(Connection terminated|Query read timeout|timeout e|Client has encountered|Client was closed)/i.test(
    error.message,
  )
}

/** Failing to connect, for whatever reason, is a state of the installation, not a bug. */
export function notConnected(cause: unknown): ApiError {
  return new ApiError('store_unavailable', { cause: new NotConnected(cause) })
}

export function unavailable(cause: unknown): never {
  throw notConnected(cause)
}

/** What a failure of the database means to a caller. A statement that is simply wrong stays a bug. */
export function rethrow(error: unknown): never {
  if (error instanceof ApiError || error instanceof LostCommit) throw error
  if (error instanceof pg.DatabaseError) {
    const code = error.code ?? ''
    // A table or column that is missing or that we may not read.
    if (['42P01', '42703', '42501'].includes(code)) throw new ApiError('schema_unavailable', { cause: error })
    // Connections, resources, cancellations, time limits, recovery, and follow-up errors.
    if (/^(08|53|57|58|25006|25P02|25P03|40|55P03)/.test(code)) {
      throw new ApiError('store_unavailable', { cause: error })
    }
    throw error
  }
  if (isConnectionLost(error)) throw new ApiError('store_unavailable', { cause: error })
  throw error
}
