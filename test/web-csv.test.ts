/** CSV made in a page: safe to open in a spreadsheet, and the same cells as the service writes. */
import { expect, test } from 'vitest'
import { writeCsv } from '../src/lib/csv.ts'
import { csvOf } from '../web/src/csv.ts'
import { scaleTop } from '../web/src/pages/analytics/day-scale.ts'

test('a text never becomes a formula, and a number stays one', () => {
  const texts = [
    '=1+1',
    '+49 170',
    '-2',
    '@sum',
    '\tx',
    '\rx',
    'a "quoted", text',
    'two\r\nlines',
    'שלום',
    '',
  ]
  expect(csvOf([texts])).toBe(writeCsv([texts]))
  expect(csvOf([['=HYPERLINK("x")', -2, 0.25]])).toBe(`"'=HYPERLINK(""x"")",-2,0.25\r\n`)
})

test('the scale of a chart ends at a round number that is high enough', () => {
  expect([0, 1, 4, 5, 9, 10, 11, 40, 41, 95, 1_234].map(scaleTop)).toEqual([
    4, 4, 4, 6, 10, 10, 20, 40, 60, 100, 2_000,
  ])
  for (let most = 0; most < 5_000; most++) {
    expect(scaleTop(most)).toBeGreaterThanOrEqual(most)
    expect(Number.isInteger(scaleTop(most) / 2)).toBe(true)
  }
})
