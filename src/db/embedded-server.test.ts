import { expect, test } from 'vitest'
import { buffersFor } from './embedded-server.ts'

test('buffersFor: an eighth of the memory, neither too little nor too much', () => {
  const gigabyte = 1024 ** 3
  expect([0.5, 1, 4, 24, 512].map((size) => buffersFor(size * gigabyte))).toEqual([
    '128MB',
    '128MB',
    '512MB',
    '2048MB',
    '2048MB',
  ])
})
