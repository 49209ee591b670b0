/** Opaque page cursors, signed over everything they belong to: a forged or foreign one is refused. */
import { timingSafeEqual } from 'node:crypto'
import { canonicalize } from 'json-canonicalize'
import { ApiError } from './errors.ts'
import type { Secrets } from './secrets.ts'

/** What a cursor is good for: one workspace, one operation, one set of filters. */
export interface CursorScope {
  readonly workspace_id: string
  readonly operation: string
  readonly filters: Readonly<Record<string, unknown>>
}

const macBytes = 16
const cursorLengthMax = 2048

export type Position = readonly (string | number | null)[]

export function makeCursor(secrets: Secrets, scope: CursorScope, position: Position): string {
  const payload = JSON.stringify(position)
  return Buffer.concat([mac(secrets, scope, payload), Buffer.from(payload)]).toString('base64url')
}

export function readCursor(secrets: Secrets, scope: CursorScope, cursor: string): Position {
  if (cursor.length > cursorLengthMax || !/^[\w-]+$/.test(cursor)) throw new ApiError('invalid_cursor')
  const bytes = Buffer.from(cursor, 'base64url')
  const payload = bytes.subarray(macBytes).toString()
  const given = bytes.subarray(0, macBytes)
  // Re-encoding refuses other padding bits than ours, and bytes that are not UTF-8.
  const again = Buffer.concat([given, Buffer.from(payload)]).toString('base64url')
  if (given.length < macBytes || again !== cursor) throw new ApiError('invalid_cursor')
  if (!timingSafeEqual(given, mac(secrets, scope, payload))) throw new ApiError('invalid_cursor')
  return JSON.parse(payload)
}

const positions = new WeakMap<object, Position>()

/** An operation refuses a bad cursor before it looks at the account, and begins its page after: one reading for both. */
export function readOnce(query: object, read: () => Position): Position {
  const position = positions.get(query) ?? read()
  positions.set(query, position)
  return position
}

function mac(secrets: Secrets, scope: CursorScope, payload: string): Buffer {
  const { workspace_id, operation, filters } = scope
  return secrets.sign('cursor', workspace_id, operation, canonicalize(filters), payload).subarray(0, macBytes)
}
