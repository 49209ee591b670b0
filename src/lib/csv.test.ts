import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseCsv, writeCsv } from './csv.ts'

const parse = (text: string) => [...parseCsv(text)]

describe('a table as text', () => {
  test('cells, quotes, ends of lines, blank lines, and where each row begins', () => {
    expect(parse('\uFEFFa,b\r\n"x, ""y""\nz",2\n\n,\n3,\n')).toEqual([
      { line: 1, cells: ['a', 'b'] },
      { line: 2, cells: ['x, "y"\nz', '2'] },
      { line: 6, cells: ['3', ''] },
    ])
    expect(parse('')).toEqual([])
    expect(parse('a,')).toEqual([{ line: 1, cells: ['a', ''] }])
    expect(parse('"never ends,\n1')).toEqual([{ line: 1, cells: ['never ends,\n1'] }])
    expect(parse('a\rb')).toEqual([
      { line: 1, cells: ['a'] },
      { line: 1, cells: ['b'] },
    ])
  })

  test('what is written is read again, whatever it is', () => {
    const cell = fc.string({ unit: 'binary' }).filter((text) => !/^[=+\-@\t\r]/.test(text))
    fc.assert(
      fc.property(fc.array(fc.array(cell, { minLength: 1 }).filter((row) => row.some(Boolean))), (rows) => {
        expect(parse(writeCsv(rows)).map(({ cells }) => cells)).toEqual(rows)
      }),
    )
  })

  test('what a spreadsheet would take for a formula is written as a text', () => {
    expect(writeCsv([['=1+1', '@x', '-2', 'a']])).toBe("'=1+1,'@x,'-2,a\r\n")
  })

  test('any text is read to its end, in time that grows with its length', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void parse(text)))
    const startedAt = performance.now()
    parse('"'.repeat(200_001))
    parse('"a'.repeat(100_000))
    expect(performance.now() - startedAt).toBeLessThan(2_000)
  })
})
