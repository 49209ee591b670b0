/** Lists as they travel: many in one value, each with its length. The driver reads a value of bytes many times faster than an array. */
import { type Sql, sql } from '../../db/sql.ts'

/** A list, or its beginning. */
export interface Piece {
  readonly bytes: Uint8Array
  /** Of the whole list. */
  readonly length: number
}

/** Aggregates lists, of each so many bytes at most. */
export function packed(list: Sql, depth: number = 2 ** 30): Sql {
  return sql`string_agg(int4send(octet_length(${list})) || int4send(least(octet_length(${list}), ${depth}::int))
    || substring(${list} from 1 for ${depth}::int), '')`
}

export function unpack(lists: Buffer | null): Piece[] {
  const pieces: Piece[] = []
  for (let at = 0; lists && at < lists.length; ) {
    const length = lists.readInt32BE(at)
    const read = lists.readInt32BE(at + 4)
    at += 8
    pieces.push({ bytes: lists.subarray(at, at + read), length })
    at += read
  }
  return pieces
}
