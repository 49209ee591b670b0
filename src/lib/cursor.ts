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
  const mac = secrets.sign('cursor', ...partsOf(scope, payload)).subarray(0, macBytes)
  return Buffer.concat([mac, Buffer.from(payload)]).toString('base64url')
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
  const isOurs = macs(secrets, scope, payload).some((mac) => timingSafeEqual(given, mac))
  if (!isOurs) throw new ApiError('invalid_cursor')
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

/** A cursor of before a rotation is valid while this process knows the old secret. */
function macs(secrets: Secrets, scope: CursorScope, payload: string): readonly Buffer[] {
  return secrets.signatures('cursor', ...partsOf(scope, payload)).map((mac) => mac.subarray(0, macBytes))
}

function partsOf({ workspace_id, operation, filters }: CursorScope, payload: string): readonly string[] {
  return [workspace_id ?? '', operation, canonicalize(filters), payload]
}
