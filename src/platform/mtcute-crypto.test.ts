import { expect, test } from 'vitest'
import { Crypto } from './mtcute-crypto.ts'

test('refuses to factor more than eight bytes', () => {
  const crypto = new Crypto()
  // Even numbers are factored at once.
  const [p, q] = crypto.factorizePQ(Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 14))
  expect([...p, ...q]).toEqual([2, 7])
  expect(() => crypto.factorizePQ(Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0, 6))).toThrow('too long')
})
