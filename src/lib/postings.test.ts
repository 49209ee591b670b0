import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  countFrom,
  decodeList,
  decodeTagged,
  encodeList,
  mergeLists,
  positionAt,
  positionOf,
  secondOf,
  select,
  tagMax,
  unite,
} from './postings.ts'

const position = fc.oneof(fc.integer({ min: 0, max: 2 ** 52 - 1 }), fc.integer({ min: 0, max: 50 }))
const positions = fc.uniqueArray(position, { maxLength: 60 }).map((some) => some.sort((a, b) => b - a))
const sorted = positions.map((some) => Float64Array.from(some))
const tagged = positions.chain((some) =>
  fc.record({
    positions: fc.constant(some),
    tags: fc.array(fc.nat(tagMax - 1), { minLength: some.length, maxLength: some.length }),
  }),
)

describe('positionOf', () => {
  const message = { chat_id: '42', id: '7', sent_at: Date.UTC(2026, 1, 3, 4, 5, 6, 789), listing: 0 }

  test('is later for what was sent in a later second, and another for another listing', () => {
    const at = positionOf(message)
    expect(secondOf(at)).toBe(Math.floor(message.sent_at / 1000))
    expect(at).toBeGreaterThanOrEqual(positionAt(message.sent_at))
    expect(positionOf({ ...message, sent_at: message.sent_at + 1000 })).toBeGreaterThan(at)
    expect(positionOf({ ...message, listing: 1 })).not.toBe(at)
    expect(positionOf({ ...message, id: '8' })).not.toBe(at)
  })

  test('has an end on both sides', () => {
    for (const sent_at of [-1, Date.UTC(1900, 0), Date.UTC(9999, 11, 31)]) {
      const at = positionOf({ ...message, sent_at })
      expect(at).toBeGreaterThanOrEqual(0)
      expect(decodeList(encodeList({ positions: [at] }))).toEqual(Float64Array.of(at))
    }
  })

  test('hardly ever meets another in the same second', () => {
    const all = Array.from({ length: 1000 }, (_, id) => positionOf({ ...message, id: String(id) }))
    expect(new Set(all).size).toBeGreaterThan(995)
  })
})

describe('lists', () => {
  test('are read as they were written', () => {
    fc.assert(
      fc.property(positions, (some) => {
        expect([...decodeList(encodeList({ positions: some }))]).toEqual(some)
      }),
    )
    fc.assert(
      fc.property(tagged, (list) => {
        const read = decodeTagged(encodeList(list))
        expect([[...read.positions], [...read.tags]]).toEqual([list.positions, list.tags])
      }),
    )
  })

  test('begin as they were written, wherever they are cut', () => {
    fc.assert(
      fc.property(tagged, fc.nat(100), fc.boolean(), (list, percent, plain) => {
        const bytes = encodeList(plain ? { positions: list.positions } : list)
        const piece = bytes.subarray(0, Math.floor((bytes.length * percent) / 100))
        const read = plain ? decodeList(piece) : decodeTagged(piece).positions
        expect([...read]).toEqual(list.positions.slice(0, read.length))
      }),
    )
  })

  test('take a few bytes a message', () => {
    const minutely = Array.from({ length: 1000 }, (_, at) => positionAt(1_790_000_000_000 - at * 60_000))
    expect(encodeList({ positions: minutely }).length).toBeLessThan(5000)
  })

  test('become one', () => {
    fc.assert(
      fc.property(fc.array(positions, { maxLength: 5 }), positions, (lists, gone) => {
        const merged = mergeLists(
          lists.map((some) => ({ positions: some })),
          (one) => !gone.includes(one),
        )
        const expected = lists.flat().filter((one) => !gone.includes(one))
        expect([...Array.from(merged.positions)]).toEqual(expected.sort((a, b) => b - a))
      }),
    )
    const one = { positions: [9, 5], tags: [1, 2] }
    const other = { positions: [7, 5], tags: [3, 4] }
    expect(mergeLists([one, other], () => true)).toEqual({ positions: [9, 7, 5, 5], tags: [1, 3, 2, 4] })
  })
})

describe('sets', () => {
  test('unite: all, each once, the highest first', () => {
    fc.assert(
      fc.property(fc.array(sorted, { maxLength: 4 }), (lists) => {
        const all = new Set(lists.flatMap((list) => [...list]))
        expect([...unite(lists)]).toEqual([...all].sort((a, b) => b - a))
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

  test('countFrom: how many are at or above', () => {
    fc.assert(
      fc.property(sorted, position, (some, least) => {
        expect(countFrom(some, least)).toBe([...some].filter((one) => one >= least).length)
      }),
    )
  })
})
