/** Finds the documents of a segment that match a query, in the parts of its posting lists that were read. Pure. */
import {
  countBelow,
  type DocIds,
  decodeDocIds,
  decodeOccurrences,
  docIdOf,
  encodeList,
  mergeSorted,
  OccurrenceReader,
  select,
  unite,
} from './posting-lists.ts'
import { type IndexQuery, nameOfRange, type TermPhrase } from './terms.ts'

/** A posting list as it was read: whole, or only its beginning. */
export interface StoredList {
  readonly bytes: Uint8Array
  /** Bytes of the whole list. */
  readonly length: number
}

/** The lists of a range's terms, by the range's name. */
export type ListsRead = ReadonlyMap<string, readonly StoredList[]>

export interface Evaluation {
  readonly docIds: DocIds
  /** Every match below this docId is known. Infinity: every match. */
  readonly horizon: number
}

export function evaluate({ must, mustNot }: IndexQuery, lists: ListsRead): Evaluation {
  let horizon = Infinity
  const match = (phrase: TermPhrase): DocIds => {
    const ofTerms = phrase.map((range) => lists.get(nameOfRange(range)) ?? [])
    const matched =
      ofTerms.length === 1 ? matchTerms(ofTerms.flat()) : matchPhrase(ofTerms.map(uniteOccurrences))
    horizon = Math.min(horizon, matched.horizon)
    return matched.docIds
  }
  let found = intersect(
    must.map((alternatives) => unite(alternatives.map((phrases) => intersect(phrases.map(match))))),
  )
  for (const phrase of mustNot) found = select(found, match(phrase), { without: true })
  return { docIds: found.subarray(0, countBelow(found, horizon)), horizon }
}

function matchTerms(lists: readonly StoredList[]): Evaluation {
  const decoded = lists.map(({ bytes }) => decodeDocIds(bytes))
  let horizon = Infinity
  for (const [at, { bytes, length }] of lists.entries()) {
    if (bytes.length < length) horizon = Math.min(horizon, 1 + (decoded[at]?.at(-1) ?? -1))
  }
  return { docIds: unite(decoded), horizon }
}

/** Documents with an occurrence of the first list, one of the second at the next position, and so on. */
function matchPhrase(lists: readonly StoredList[]): Evaluation {
  const readers = lists.map(({ bytes }) => new OccurrenceReader(bytes))
  const found: number[] = []
  let [docId, position] = [0, 0]
  for (;;) {
    let isMatch = true
    for (const [distance, reader] of readers.entries()) {
      if (!reader.advance(docId, position + distance)) {
        // The document in which a list was cut off is undecided: it may have more occurrences.
        const { bytes, length } = lists[distance] as StoredList
        return { docIds: Uint32Array.from(found), horizon: bytes.length < length ? reader.docId : Infinity }
      }
      if (reader.docId !== docId || reader.position !== position + distance) {
        isMatch = distance === 0
        docId = reader.docId
        position = Math.max(0, reader.position - distance)
        if (!isMatch) break
      }
    }
    if (isMatch) {
      found.push(docId)
      docId++
      position = 0
    }
  }
}

/** Merges the lists of terms with a common prefix, up to where all of them are known. */
function uniteOccurrences(lists: readonly StoredList[]): StoredList {
  const [first = { bytes: new Uint8Array(), length: 0 }] = lists
  if (lists.length <= 1) return first
  const decoded = lists.map(({ bytes }) => decodeOccurrences(bytes))
  let last = Infinity
  for (const [at, { bytes, length }] of lists.entries()) {
    if (bytes.length < length) last = Math.min(last, docIdOf(decoded[at]?.at(-1) ?? 0))
  }
  const known = mergeSorted(decoded).filter((occurrence) => docIdOf(occurrence) <= last)
  const bytes = encodeList(known, { positions: true })
  return { bytes, length: bytes.length + (last === Infinity ? 0 : 1) }
}

/** The documents that all lists have, starting from the shortest. */
function intersect(lists: readonly DocIds[]): DocIds {
  return lists.toSorted((a, b) => a.length - b.length).reduce((found, list) => select(found, list))
}
