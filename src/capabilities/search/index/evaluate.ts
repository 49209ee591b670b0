/** Which documents of a segment match a query, by as much of its posting lists as was read. Pure. */
import {
  countBelow,
  countNumbers,
  type DocIds,
  decodeDocIds,
  decodeOccurrences,
  docIdOf,
  docIdsOf,
  followedBy,
  select,
  sorted,
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
  const match = (phrase: Phrase): DocIds => {
    const matched = phrase.length === 1 ? matchTerms(phrase[0], lists) : matchPhrase(phrase, lists)
    horizon = Math.min(horizon, matched.horizon)
    return matched.docIds
  }
  const clauses = must.map((alternatives) =>
    unite(alternatives.map((phrases) => intersect(phrases.map(match)))),
  )
  let found = intersect(clauses)
  for (const phrase of mustNot) found = select(found, match(phrase), { without: true })
  return { docIds: found.subarray(0, countBelow(found, horizon)), horizon }
}

/** What all of them have, from the shortest on. */
function intersect(lists: readonly DocIds[]): DocIds {
  const [shortest = new Uint32Array(), ...rest] = lists.toSorted((a, b) => a.length - b.length)
  return rest.reduce((found, list) => select(found, list), shortest)
}

function matchTerms(range: TermRange | undefined, lists: ListsRead): Evaluated {
  const some = range ? (lists.get(nameOfRange(range)) ?? []) : []
  const docIds = new Uint32Array(some.reduce((sum, { bytes }) => sum + countNumbers(bytes), 0))
  let horizon = Infinity
  let end = 0
  for (const { bytes, length } of some) {
    const start = end
    end = decodeDocIds(bytes, docIds, start)
    if (bytes.length < length)
      horizon = Math.min(horizon, end === start ? 0 : 1 + (docIds[end - 1] as number))
  }
  return { docIds: some.length > 1 ? sorted([docIds]) : docIds, horizon }
}

function matchPhrase(phrase: Phrase, lists: ListsRead): Evaluated {
  let horizon = Infinity
  const places = phrase.map((range) => {
    const some = lists.get(nameOfRange(range)) ?? []
    const occurrences = some.map(({ bytes, length }) => {
      const read = decodeOccurrences(bytes)
      // The document it was cut in may have more of them.
      if (bytes.length < length) horizon = Math.min(horizon, docIdOf(read.at(-1) ?? 0))
      return read
    })
    return inOrder(occurrences)
  })
  const [first = new Float64Array(), ...rest] = places
  const starts = rest.reduce((found, next, at) => followedBy(found, next, at + 1), first)
  return { docIds: docIdsOf(starts), horizon }
}

function inOrder(lists: readonly Float64Array<ArrayBuffer>[]): Float64Array<ArrayBuffer> {
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
