/** Which documents of a segment match a query, by as much of its posting lists as was read. Pure. */
import {
  countBelow,
  type DocIds,
  decodeDocIds,
  decodeOccurrences,
  docIdOf,
  docIdsOf,
  followedBy,
  type Occurrences,
  select,
  unite,
} from './posting-lists.ts'
import { type IndexQuery, nameOfRange, type Phrase, type TermRange } from './terms.ts'

/** A posting list as it was read: whole, or its beginning. */
export interface StoredList {
  readonly bytes: Uint8Array
  /** Of the whole list. */
  readonly length: number
}

/** By the name of a range the lists of its terms. */
export type ListsRead = ReadonlyMap<string, readonly StoredList[]>

export interface Evaluated {
  readonly docIds: DocIds
  /** Every match below this docId is known. Infinity: every match. */
  readonly horizon: number
}

export function evaluate({ must, mustNot }: IndexQuery, lists: ListsRead): Evaluated {
  let horizon = Infinity
  const decode = <T extends DocIds | Occurrences>(
    range: TermRange,
    decodeOne: (bytes: Uint8Array) => T,
    horizonAfter: (last: number) => number,
  ): T[] =>
    (lists.get(nameOfRange(range)) ?? []).map(({ bytes, length }) => {
      const entries = decodeOne(bytes)
      if (bytes.length < length) horizon = Math.min(horizon, horizonAfter(entries.at(-1) ?? -1))
      return entries
    })
  const match = (phrase: Phrase): DocIds => {
    const [first, ...rest] = phrase
    if (first && rest.length === 0) return unite(decode(first, decodeDocIds, (last) => last + 1))
    // The document in which a list was cut may have more occurrences: nothing is known of it.
    const places = phrase.map((range) => inOrder(decode(range, decodeOccurrences, docIdOf)))
    return docIdsOf(places.reduce((found, next, distance) => followedBy(found, next, distance)))
  }
  let found = intersect(
    must.map((alternatives) => unite(alternatives.map((phrases) => intersect(phrases.map(match))))),
  )
  for (const phrase of mustNot) found = select(found, match(phrase), { without: true })
  return { docIds: found.subarray(0, countBelow(found, horizon)), horizon }
}

/** What all of them have, from the shortest on. */
function intersect(lists: readonly DocIds[]): DocIds {
  return lists.toSorted((a, b) => a.length - b.length).reduce((found, list) => select(found, list))
}

/** Lists of terms that begin alike, as one. */
function inOrder(lists: readonly Occurrences[]): Occurrences {
  const [first = new Float64Array()] = lists
  if (lists.length <= 1) return first
  const all = new Float64Array(lists.reduce((sum, { length }) => sum + length, 0))
  let end = 0
  for (const list of lists) {
    all.set(list, end)
    end += list.length
  }
  return all.sort()
}
