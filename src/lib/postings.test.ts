import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { countBelow, decodeList, decodeTagged, encodeList, select, tagMax, unite } from './postings.ts'

const rank = fc.oneof(fc.integer({ min: 0, max: 2 ** 31 - 1 }), fc.integer({ min: 0, max: 50 }), fc.nat(5000))
const near = fc.nat(5000)
const ranksOf = (one: fc.Arbitrary<number>) =>
  fc.uniqueArray(one, { maxLength: 60 }).map((some) => some.sort((a, b) => a - b))
const ranks = ranksOf(rank)
const sorted = ranksOf(near).map((some) => Uint32Array.from(some))
const tagged = ranks.chain((some) =>
  fc.record({
    ranks: fc.constant(some),
    tags: fc.array(fc.nat(tagMax - 1), { minLength: some.length, maxLength: some.length }),
  }),
)

describe('lists', () => {
  test('are read as they were written', () => {
    fc.assert(
      fc.property(ranks, (some) => {
        expect([...decodeList(encodeList({ ranks: some }))]).toEqual(some)
      }),
    )
    fc.assert(
      fc.property(tagged, (list) => {
        const read = decodeTagged(encodeList(list))
        expect([read.ranks, read.tags, read.last]).toEqual([list.ranks, list.tags, list.ranks.at(-1)])
      }),
    )
  })

  test('begin as they were written, wherever they are cut', () => {
    fc.assert(
      fc.property(tagged, fc.nat(100), fc.boolean(), (list, percent, plain) => {
        const bytes = encodeList(plain ? { ranks: list.ranks } : list)
        const piece = bytes.subarray(0, Math.floor((bytes.length * percent) / 100))
        const read = plain ? decodeList(piece) : decodeTagged(piece).ranks
        expect([...read]).toEqual(list.ranks.slice(0, read.length))
      }),
    )
  })

  test('take a byte for a message in ten', () => {
    const tenth = Array.from({ length: 1000 }, (_, at) => at * 10)
    expect(encodeList({ ranks: tenth }).length).toBe(1000)
  })

  test('give what has a tag, and tell how far they were read', () => {
    const bytes = encodeList({ ranks: [3, 3, 9, 12], tags: [1, 2, 1, 2] })
    expect(decodeTagged(bytes, 1)).toEqual({ ranks: [3, 9], tags: [1, 1], last: 12 })
    expect(decodeTagged(bytes.subarray(0, -1), 2)).toEqual({ ranks: [3], tags: [2], last: 9 })
    expect(decodeTagged(bytes.subarray(0, 3))).toEqual({ ranks: [], tags: [], last: undefined })
  })
})

describe('sets', () => {
  test('unite: all, each once, in order', () => {
    fc.assert(
      fc.property(fc.array(sorted, { maxLength: 4 }), (lists) => {
        const all = new Set(lists.flatMap((list) => [...list]))
        expect([...unite(lists)]).toEqual([...all].sort((a, b) => a - b))
      }),
    )
  })

  test('select: those that are in one of the lists, or in none', () => {
    fc.assert(
      fc.property(sorted, fc.array(sorted, { maxLength: 3 }), (some, lists) => {
        const isIn = (one: number) => lists.some((list) => list.includes(one))
        expect([...select(some, lists)]).toEqual([...some].filter(isIn))
        expect([...select(some, lists, { without: true })]).toEqual([...some].filter((one) => !isIn(one)))
      }),
    )
  })

  test('countBelow: how many are below', () => {
    fc.assert(
      fc.property(sorted, near, (some, least) => {
        expect(countBelow(some, least)).toBe([...some].filter((one) => one < least).length)
      }),
    )
  })
})
