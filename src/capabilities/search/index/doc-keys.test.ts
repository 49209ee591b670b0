import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { byTime, decodeKey, encodeKeys, keyBytes } from './doc-keys.ts'

const big = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String)
const key = fc.record({
  chat_id: big,
  id: big,
  at: fc.integer({ min: Date.UTC(1900, 0), max: Date.UTC(9999, 11, 31) }),
  listing: fc.nat(32_767),
})

describe('keys', () => {
  test('decode to what was encoded', () => {
    fc.assert(
      fc.property(fc.array(key, { maxLength: 5 }), (keys) => {
        const bytes = encodeKeys(keys)
        expect(keys.map((_, place) => decodeKey(bytes, place * keyBytes))).toEqual(keys)
      }),
    )
  })

  test('compare as bytes as they compare as keys', () => {
    fc.assert(
      fc.property(key, key, fc.boolean(), (one, other, sameTime) => {
        const two = sameTime ? { ...other, at: one.at } : other
        const order = Math.sign(byTime(one, two))
        if (order !== 0) expect(encodeKeys([two]).compare(encodeKeys([one]))).toBe(order)
      }),
    )
  })
})

test('put a time beyond the range last', () => {
  const far = { chat_id: '1', id: '1', at: 8.64e15, listing: 0 }
  expect(decodeKey(encodeKeys([far]), 0).at).toBeGreaterThan(Date.UTC(9999, 11, 31))
  expect(decodeKey(encodeKeys([{ ...far, at: -far.at }]), 0).at).toBeLessThan(Date.UTC(1500, 0))
})
