import { expect, test } from 'vitest'
import { scaleTop } from './day-scale.ts'

test('the scale of a chart ends at a round number that is high enough', () => {
  expect([0, 1, 4, 5, 9, 10, 11, 40, 41, 95, 1_234].map(scaleTop)).toEqual([
    4, 4, 4, 6, 10, 10, 20, 40, 60, 100, 2_000,
  ])
  for (let most = 0; most < 5_000; most++) {
    expect(scaleTop(most)).toBeGreaterThanOrEqual(most)
    expect(Number.isInteger(scaleTop(most) / 2)).toBe(true)
  }
})
