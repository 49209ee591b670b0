import { describe, expect, test } from 'vitest'
import { renumber } from './merge.ts'
import { encodeList, mergeSorted, stride } from './posting-lists.ts'

const encodeDocIds = (docIds: ArrayLike<number>) => encodeList(docIds, { positions: false })
const encodeOccurrences = (occurrences: ArrayLike<number>) => encodeList(occurrences, { positions: true })

const dropped = -1

describe('a merge of posting lists', () => {
  test.each([1000, 80_000])('merges two lists of %i in order, without tombstones', (size) => {
    // One by one in turn; every tenth document of the second segment has a tombstone.
    const first = Float64Array.from({ length: size }, (_, docId) => 2 * docId)
    const second = Float64Array.from({ length: size }, (_, docId) => (docId % 10 ? 2 * docId + 1 : dropped))
    const docIds = new Map([
      ['1', first],
      ['2', second],
    ])
    const bytes = encodeDocIds(Array.from({ length: size }, (_, docId) => docId))
    const lists = ['1', '2'].map((id) => renumber({ id, word: 'word', bytes }, docIds))
    const expected = [...first, ...second].filter((docId) => docId !== dropped).sort((a, b) => a - b)
    expect([...mergeSorted(lists)]).toEqual(expected)
  })

  test('keeps positions', () => {
    const bytes = encodeOccurrences([0 * stride + 3, 0 * stride + 9, 1 * stride + 1, 2 * stride + 4095])
    const docIds = new Map([['1', Float64Array.of(5, dropped, 6)]])
    const moved = renumber({ id: '1', word: '@word', bytes }, docIds)
    expect([...moved]).toEqual([5 * stride + 3, 5 * stride + 9, 6 * stride + 4095])
  })
})
