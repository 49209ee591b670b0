import { describe, expect, test } from 'vitest'
import { encodeList } from '../../lib/postings.ts'
import { mergeLists, noRank } from './renumber.ts'

/** A list of all, as one row of the database would bring it. */
function rowOf(id: string, size: number) {
  const bytes = encodeList({ ranks: Array.from({ length: size }, (_, rank) => rank) })
  const head = Buffer.alloc(8)
  head.writeInt32BE(bytes.length)
  head.writeInt32BE(bytes.length, 4)
  return { id, word: 'word', lists: Buffer.concat([head, bytes]) }
}

describe('mergeLists', () => {
  test.each([1000, 80_000])('puts two lists of %i in one order, without what is stale', (size) => {
    // One by one in turn; of the second segment every tenth is stale.
    const first = Uint32Array.from({ length: size }, (_, rank) => 2 * rank)
    const second = Uint32Array.from({ length: size }, (_, rank) => (rank % 10 ? 2 * rank + 1 : noRank))
    const ranks = new Map([
      ['1', first],
      ['2', second],
    ])
    const expected = [...first, ...second].filter((rank) => rank !== noRank).sort((a, b) => a - b)
    const merged = mergeLists([rowOf('1', size), rowOf('2', size)], ranks).get('word')
    expect(Array.from(merged?.ranks ?? [])).toEqual(expected)
  })
})
