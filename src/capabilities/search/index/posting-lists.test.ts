import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  countBelow,
  decodeDocIds,
  decodeOccurrences,
  encodeList,
  mergeSorted,
  OccurrenceReader,
  select,
  stride,
  unite,
} from './posting-lists.ts'

const encodeDocIds = (docIds: ArrayLike<number>) => encodeList(docIds, { positions: false })
const encodeOccurrences = (occurrences: ArrayLike<number>) => encodeList(occurrences, { positions: true })

const docId = fc.oneof(
  fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  fc.integer({ min: 0, max: 50 }),
  fc.nat(5000),
)
const near = fc.nat(5000)
const inOrder = (one: fc.Arbitrary<number>) =>
  fc.uniqueArray(one, { maxLength: 60 }).map((some) => some.sort((a, b) => a - b))
const docIds = inOrder(docId)
const occurrence = fc
  .tuple(docId, fc.oneof(fc.nat(20), fc.nat(4095)))
  .map(([doc, position]) => doc * stride + position)
const occurrences = inOrder(occurrence)
const sorted = inOrder(near).map((some) => Uint32Array.from(some))

function decode(bytes: Uint8Array): number[] {
  return [...decodeDocIds(bytes)]
}

describe('lists', () => {
  test('decode to what was encoded', () => {
    fc.assert(
      fc.property(docIds, (some) => {
        expect(decode(encodeDocIds(some))).toEqual(some)
      }),
    )
    fc.assert(
      fc.property(occurrences, (some) => {
        expect([...decodeOccurrences(encodeOccurrences(some))]).toEqual(some)
      }),
    )
  })

  test('decode to a prefix of what was encoded, wherever they are cut', () => {
    const piece = (bytes: Buffer, percent: number) =>
      bytes.subarray(0, Math.floor((bytes.length * percent) / 100))
    fc.assert(
      fc.property(docIds, fc.nat(100), (some, percent) => {
        const read = decode(piece(encodeDocIds(some), percent))
        expect(read).toEqual(some.slice(0, read.length))
      }),
    )
    fc.assert(
      fc.property(occurrences, fc.nat(100), (some, percent) => {
        const read = [...decodeOccurrences(piece(encodeOccurrences(some), percent))]
        expect(read).toEqual(some.slice(0, read.length))
      }),
    )
  })

  test('take a byte per message for a term in one message of ten', () => {
    const tenth = Array.from({ length: 1000 }, (_, at) => at * 10)
    expect(encodeDocIds(tenth).length).toBe(1000)
  })
})

describe('OccurrenceReader', () => {
  test('skips to the first occurrence at or after a key, wherever the list is cut', () => {
    fc.assert(
      fc.property(
        occurrences,
        fc.array(occurrence, { maxLength: 20 }),
        fc.nat(100),
        (some, targets, percent) => {
          const bytes = encodeOccurrences(some)
          const piece = bytes.subarray(0, Math.floor((bytes.length * percent) / 100))
          const known = [...decodeOccurrences(piece)]
          const reader = new OccurrenceReader(piece)
          for (const target of targets.sort((a, b) => a - b)) {
            const docId = Math.floor(target / stride)
            const expected = known.find((one) => one >= target)
            expect(reader.advance(docId, target - docId * stride)).toBe(expected !== undefined)
            const last = expected ?? known.at(-1) ?? -1
            if (last >= 0) expect(reader.docId * stride + reader.position).toBe(last)
          }
        },
      ),
    )
  })
})

test('mergeSorted returns all of them in order', () => {
  fc.assert(
    fc.property(fc.array(inOrder(near), { maxLength: 9 }), (lists) => {
      const merged = mergeSorted(lists.map((list) => Float64Array.from(list)))
      expect([...merged]).toEqual(lists.flat().sort((a, b) => a - b))
    }),
  )
})

describe('sets', () => {
  test('unite returns all, each once, in order', () => {
    fc.assert(
      fc.property(fc.array(sorted, { maxLength: 4 }), (lists) => {
        const all = new Set(lists.flatMap((list) => [...list]))
        expect([...unite(lists)]).toEqual([...all].sort((a, b) => a - b))
      }),
    )
  })

  test('select returns those that the other list has, or does not have', () => {
    fc.assert(
      fc.property(sorted, sorted, (some, other) => {
        const isIn = (one: number) => other.includes(one)
        expect([...select(some, other)]).toEqual([...some].filter(isIn))
        expect([...select(some, other, { without: true })]).toEqual([...some].filter((one) => !isIn(one)))
      }),
    )
  })

  test('countBelow counts those below', () => {
    fc.assert(
      fc.property(sorted, near, (some, least) => {
        expect(countBelow(some, least)).toBe([...some].filter((one) => one < least).length)
      }),
    )
  })
})
