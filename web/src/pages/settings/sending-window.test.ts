import { expect, test } from 'vitest'
import { partOf, windowBetween } from './sending-window.ts'

test('what is painted is the same window from either corner, with both ends', () => {
  const window = { days: [1, 2, 3], from: 9 * 60, to: 18 * 60 }
  const [first, last] = [
    { day: 1, hour: 9 },
    { day: 3, hour: 17 },
  ]
  expect(windowBetween(first, last)).toEqual(window)
  expect(windowBetween(last, first)).toEqual(window)
  expect(windowBetween({ day: 3, hour: 9 }, { day: 1, hour: 17 })).toEqual(window)
})

test('a window that begins or ends within an hour fills a part of it', () => {
  const window = { days: [1], from: 9 * 60 + 15, to: 10 * 60 + 30 }
  expect(partOf(window, { day: 1, hour: 9 })).toEqual({ start: 0.25, size: 0.75 })
  expect(partOf(window, { day: 1, hour: 10 })).toEqual({ start: 0, size: 0.5 })
  for (const field of [
    { day: 1, hour: 8 },
    { day: 1, hour: 11 },
    { day: 2, hour: 9 },
  ]) {
    expect(partOf(window, field)).toEqual({ start: 0, size: 0 })
  }
})
