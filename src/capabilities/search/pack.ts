/** Lists as they are stored, in parts, and as they travel: many in one value, which the driver reads much faster than an array. */
import { type Sql, sql } from '../../db/sql.ts'

/** A list, or its beginning. */
export interface Piece {
  readonly bytes: Uint8Array
  /** Of the whole list. */
  readonly length: number
}

/** Four parts fill a page of the database. */
export const partBytes = 1940

/** Every list has fewer. */
export const partsMax = 2 ** 20

/** Aggregates the first parts of lists, in order of the key of `search_lists`: before each list its length, and how much of it there is. */
export function packed(parts: number, order: Sql): Sql {
  return sql`string_agg(
    case when l.part = 0 then int4send(l.length) || int4send(least(l.length, ${parts * partBytes}::int)) || l.bytes
      else l.bytes end, '' order by ${order})`
}

/** A long list comes in several values: a string as long as that would be made where garbage stays for long. */
export function chunked(low: Sql, high: Sql): Sql {
  return sql`case when ${low} = ${high} then l.part / ${chunkParts}::int else 0 end`
}

const chunkParts = 24

export function unpack(lists: Buffer): Piece[] {
  const pieces: Piece[] = []
  for (let at = 0; at < lists.length; ) {
    const length = lists.readInt32BE(at)
    const read = lists.readInt32BE(at + 4)
    at += 8
    pieces.push({ bytes: lists.subarray(at, at + read), length })
    at += read
  }
  return pieces
}
