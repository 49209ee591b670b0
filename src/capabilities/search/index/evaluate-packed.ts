/** Evaluates posting lists as the database returns them. Pure: it also runs in a thread. */
import { type Evaluation, evaluate, type StoredList } from './evaluate.ts'
import type { IndexQuery } from './terms.ts'

/** The lists of a range as the text of one `bytea`, each after its length and the length of the part read. */
export type PackedLists = readonly (readonly [range: string, packed: string | null])[]

export interface PackedSegment {
  readonly query: IndexQuery
  readonly lists: PackedLists
}

export function evaluatePacked(segments: readonly PackedSegment[]): Evaluation[] {
  return segments.map(({ query, lists }) =>
    evaluate(query, new Map(lists.map(([range, packed]) => [range, packed ? unpack(packed) : []]))),
  )
}

function unpack(text: string): StoredList[] {
  // After the `\x` of a bytea.
  const packed = Buffer.from(text.slice(2), 'hex')
  const lists: StoredList[] = []
  for (let at = 0; at < packed.length; ) {
    const length = packed.readInt32BE(at)
    const read = packed.readInt32BE(at + 4)
    at += 8
    lists.push({ bytes: packed.subarray(at, at + read), length })
    at += read
  }
  return lists
}
