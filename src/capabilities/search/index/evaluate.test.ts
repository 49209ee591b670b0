import { describe, expect, test } from 'vitest'
import { evaluate, type ListsRead, type StoredList } from './evaluate.ts'
import { encodeList, stride } from './posting-lists.ts'
import { type IndexQuery, nameOfRange, type TermPhrase } from './terms.ts'

const encodeDocIds = (docIds: ArrayLike<number>) => encodeList(docIds, { positions: false })
const encodeOccurrences = (occurrences: ArrayLike<number>) => encodeList(occurrences, { positions: true })

function docs(...docIds: number[]): StoredList {
  const bytes = encodeDocIds(docIds)
  return { bytes, length: bytes.length }
}

function places(...occurrences: (readonly [docId: number, position: number])[]): StoredList {
  const bytes = encodeOccurrences(occurrences.map(([docId, position]) => docId * stride + position))
  return { bytes, length: bytes.length }
}

/** As if only its beginning had been read. */
function cut({ bytes, length }: StoredList, read: number): StoredList {
  return { bytes: bytes.subarray(0, read), length }
}

const range = (term: string) => ({ low: term, high: term })
const phrase = (...terms: string[]): TermPhrase => terms.map(range)

function listsOf(lists: Readonly<Record<string, readonly StoredList[]>>): ListsRead {
  return new Map(Object.entries(lists).map(([term, some]) => [nameOfRange(range(term)), some]))
}

function run(query: Partial<IndexQuery>, lists: Readonly<Record<string, readonly StoredList[]>>) {
  const { docIds, horizon } = evaluate({ must: [], mustNot: [], ...query }, listsOf(lists))
  return [Array.from(docIds), horizon]
}

describe('evaluate', () => {
  test('matches every term with the same beginning', () => {
    const prefix = { low: '20260', high: '20260\u{10ffff}' }
    const many = Array.from({ length: 200_000 }, (_, at) => docs(at))
    const lists = new Map([[nameOfRange(prefix), many]])
    const { docIds, horizon } = evaluate({ must: [[[[prefix]]]], mustNot: [] }, lists)
    expect([docIds.length, docIds.at(-1), horizon]).toEqual([200_000, 199_999, Infinity])
  })

  test('requires all of must, any alternative of each, and none of mustNot', () => {
    const lists = { a: [docs(1, 2, 3, 4)], b: [docs(2, 4)], c: [docs(3)], d: [docs(4)] }
    expect(run({ must: [[[phrase('a')]], [[phrase('b')], [phrase('c')]]] }, lists)).toEqual([
      [2, 3, 4],
      Infinity,
    ])
    expect(run({ must: [[[phrase('a'), phrase('b')]]], mustNot: [phrase('d')] }, lists)).toEqual([
      [2],
      Infinity,
    ])
    expect(run({ must: [[[phrase('a')]], []] }, lists)).toEqual([[], Infinity])
    expect(run({ must: [[[phrase('nowhere')]]] }, lists)).toEqual([[], Infinity])
  })

  test('matches a phrase by its positions', () => {
    const lists = {
      '@a': [places([1, 0], [1, 5], [2, 0], [3, 4095], [5, 7])],
      '@b': [places([1, 6], [2, 2], [4, 0], [5, 8])],
      '@c': [places([5, 9])],
    }
    expect(run({ must: [[[phrase('@a', '@b')]]] }, lists)).toEqual([[1, 5], Infinity])
    expect(run({ must: [[[phrase('@a', '@b', '@c')]]] }, lists)).toEqual([[5], Infinity])
    expect(run({ must: [[[phrase('@b', '@a')]]] }, lists)).toEqual([[], Infinity])
  })

  test('returns nothing beyond what was read of a list', () => {
    const a = docs(1, 2, 300, 301)
    const all = docs(...Array.from({ length: 400 }, (_, at) => at))
    expect(run({ must: [[[phrase('a')]], [[phrase('b')]]] }, { a: [a], b: [cut(all, 302)] })).toEqual([
      [1, 2, 300, 301],
      302,
    ])
    expect(run({ must: [[[phrase('a')]], [[phrase('b')]]] }, { a: [a], b: [cut(all, 50)] })).toEqual([
      [1, 2],
      50,
    ])
    // Until a document's entries are read to the end, it is unknown whether something excludes it.
    expect(run({ must: [[[phrase('b')]]], mustNot: [phrase('a')] }, { a: [cut(a, 2)], b: [all] })).toEqual([
      [0],
      3,
    ])
    const one = places([0, 0], [1, 3], [1, 9])
    const next = places([0, 1], [1, 10])
    expect(run({ must: [[[phrase('@a', '@b')]]] }, { '@a': [cut(one, 4)], '@b': [next] })).toEqual([[0], 1])
    // A list that was read whole shows that nothing follows, however much of the others was read.
    const longer = places([0, 0], [1, 3], [7, 9])
    expect(run({ must: [[[phrase('@a', '@b')]]] }, { '@a': [cut(longer, 5)], '@b': [next] })).toEqual([
      [0],
      1,
    ])
    expect(
      run({ must: [[[phrase('@b', '@a')]]] }, { '@a': [cut(longer, 4)], '@b': [places([0, 9])] }),
    ).toEqual([[], Infinity])
  })
})
