/** Opaque page cursors, signed over everything they belong to: a forged or foreign one is refused. */
import { isUtf8 } from 'node:buffer'
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
  if (cursor.length > cursorLengthMax) throw new ApiError('invalid_cursor')
  const bytes = Buffer.from(cursor, 'base64url')
  const given = bytes.subarray(0, macBytes)
  const signed = bytes.subarray(macBytes)
  // Other letters and padding bits than ours do not come out again as they went in.
  if (given.length < macBytes || !isUtf8(signed) || bytes.toString('base64url') !== cursor) {
    throw new ApiError('invalid_cursor')
  }
  const payload = signed.toString()
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
