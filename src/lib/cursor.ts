/** Opaque page cursors, signed over everything they belong to: a forged or foreign cursor is refused. */
import { isUtf8 } from 'node:buffer'
import { timingSafeEqual } from 'node:crypto'
import { canonicalize } from 'json-canonicalize'
import { ApiError } from './errors.ts'
import type { Secrets } from './secrets.ts'

/** What a cursor is valid for: one workspace, one operation, one set of filters. */
export interface CursorScope {
  /** Null for a list outside workspaces, whose filters name its owner. */
  readonly workspace_id: string | null
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
  // Base64 can spell the same bytes in several ways; only our spelling is accepted.
  if (given.length < macBytes || !isUtf8(signed) || bytes.toString('base64url') !== cursor) {
    throw new ApiError('invalid_cursor')
  }
  const payload = signed.toString()
  if (!timingSafeEqual(given, mac(secrets, scope, payload))) throw new ApiError('invalid_cursor')
  return JSON.parse(payload)
}

/** Where a page begins, and how to make the cursor of the next page, both in one scope. */
export interface Paging {
  readonly after: Position | undefined
  readonly next: (position: Position) => string
}

/** Throws if the cursor was made for another query. Without a cursor, it is the first page. */
export function readPaging(secrets: Secrets, scope: CursorScope, cursor: string | undefined): Paging {
  return {
    after: cursor === undefined ? undefined : readCursor(secrets, scope, cursor),
    next: (position) => makeCursor(secrets, scope, position),
  }
}

function mac(secrets: Secrets, scope: CursorScope, payload: string): Buffer {
  const { workspace_id, operation, filters } = scope
  return secrets
    .sign('cursor', workspace_id ?? '', operation, canonicalize(filters), payload)
    .subarray(0, macBytes)
}
