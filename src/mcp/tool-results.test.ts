import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cutToFit, fits, refusalOf, resultOf } from './tool-results.ts'

/** The size of both forms together on the wire. */
const wire = (text: string) => Buffer.byteLength(JSON.stringify(resultOf(text)))

test('leaves unchanged what fits, to the last byte', () => {
  const text = JSON.stringify({ text: 'é"\\\n'.repeat(1_000) })
  expect(cutToFit(text)).toBe(text)
})

test('fits returns false before the wire has 100,000 bytes', () => {
  for (let length = 30_000; length < 60_000; length += 100) {
    const text = JSON.stringify({ text: 'a'.repeat(length) })
    if (fits(text)) expect(wire(text)).toBeLessThan(100_000)
  }
  expect(fits(JSON.stringify({ text: 'a'.repeat(49_000) }))).toBe(true)
  expect(fits(JSON.stringify({ text: 'a'.repeat(50_000) }))).toBe(false)
})

test('cuts a text in whole characters, and keeps most of it', () => {
  const { text, truncated } = JSON.parse(cutToFit(JSON.stringify({ text: '😀'.repeat(40_000) })))
  expect(truncated).toBe(true)
  expect(text.isWellFormed()).toBe(true)
  expect(text).toBe('😀'.repeat(text.length / 2))
  expect(text.length).toBeGreaterThan(10_000)
})

test('cuts the longest text first, and leaves the rest unchanged', () => {
  const short = { id: '7', name: 'Ines', list: [1, 2, 3] }
  const { long, items, ...rest } = JSON.parse(
    cutToFit(JSON.stringify({ ...short, items: ['a', 'b'], long: 'x'.repeat(200_000) })),
  )
  expect(rest).toEqual({ ...short, truncated: true })
  expect(items).toEqual(['a', 'b'])
  expect(long.length).toBeGreaterThan(20_000)
})

test('cuts the item of a list of one instead of emptying the list', () => {
  const page = { messages: [{ id: '1', text: 'y'.repeat(150_000) }], has_more: false }
  const { messages, truncated } = JSON.parse(cutToFit(JSON.stringify(page)))
  expect([truncated, messages.length, messages[0].id]).toEqual([true, 1, '1'])
})

test('makes any result fit', () => {
  const texts = fc.oneof(fc.string(), fc.string({ unit: 'binary', maxLength: 50 }), fc.constant('"\\\u0001'))
  const long = fc.tuple(texts, fc.integer({ min: 1, max: 2_000 })).map(([text, times]) => text.repeat(times))
  const items = fc.array(fc.oneof(long, fc.record({ id: fc.string(), text: texts })), { maxLength: 20 })
  fc.assert(
    fc.property(fc.dictionary(fc.string({ maxLength: 10 }), fc.oneof(items, long)), (value) => {
      const text = cutToFit(JSON.stringify(value).toWellFormed())
      expect(wire(text)).toBeLessThan(100_000)
      expect(fits(text)).toBe(true)
    }),
    { numRuns: 30 },
  )
})

test('an answer from which nothing can be cut is a bug, not a loop', () => {
  const numbers = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`n${at}`, at]))
  expect(() => cutToFit(JSON.stringify(numbers))).toThrow('Parley failed unexpectedly')
})

test('cuts a refusal like any other answer', () => {
  const { structuredContent, isError } = refusalOf({ code: 'x', error: 'e'.repeat(200_000) })
  expect(isError).toBe(true)
  expect(structuredContent).toMatchObject({ ok: false, code: 'x', truncated: true })
})
