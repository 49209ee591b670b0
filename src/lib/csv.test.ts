import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { timed } from '../../test/harness/timed.ts'
import { type CsvRow, writeCsv } from '../rules/csv.ts'
import { parseCsv } from './csv.ts'

async function parse(...pieces: readonly string[]): Promise<CsvRow[]> {
  const rows: CsvRow[] = []
  for await (const some of parseCsv(pieces)) rows.push(...some)
  return rows
}

describe('a table as text', () => {
  test('has cells, quotes, line ends, blank lines, and the line where each row begins', async () => {
    expect(await parse('\uFEFFa,b\r\n"x, ""y""\nz",2\n\n,\n3,\n')).toEqual([
      { line: 1, endLine: 1, cells: ['a', 'b'] },
      { line: 2, endLine: 3, cells: ['x, "y"\nz', '2'] },
      { line: 6, endLine: 6, cells: ['3', ''] },
    ])
    expect(await parse('')).toEqual([])
    expect(await parse('a,')).toEqual([{ line: 1, endLine: 1, cells: ['a', ''] }])
    expect(await parse('a\rb\r\n\r\n"c\rd"\re')).toEqual([
      { line: 1, endLine: 1, cells: ['a'] },
      { line: 2, endLine: 2, cells: ['b'] },
      { line: 4, endLine: 5, cells: ['c\rd'] },
      { line: 6, endLine: 6, cells: ['e'] },
    ])
    expect(await parse('5" pipe,"a"b')).toEqual([{ line: 1, endLine: 1, cells: ['5" pipe', 'ab'] }])
  })

  test('has one separator, which the first row with one shows, however the text is cut', async () => {
    const cellsOf = async (...pieces: string[]) => (await parse(...pieces)).map(({ cells }) => cells)
    const tables: readonly (readonly [string, string[][]])[] = [
      [
        'a;b\nc,d;e\n',
        [
          ['a', 'b'],
          ['c,d', 'e'],
        ],
      ],
      ['a,b;c\nd,e\n', [['a,b', 'c'], ['d,e']]],
      ['a\tb;c\r\nd\n', [['a', 'b;c'], ['d']]],
      ['"a;b",c\nd;e\n', [['a;b', 'c'], ['d;e']]],
      ['a\nb\n"c""\n;",d\ne;f', [['a'], ['b'], ['c"\n;', 'd'], ['e;f']]],
      ['a, "b, c"\n', [['a', 'b, c']]],
      ['5" a;b" c,d', [['5" a', 'b" c,d']]],
    ]
    for (const [text, cells] of tables) {
      for (let at = 0; at <= text.length; at++) {
        expect(await cellsOf(text.slice(0, at), text.slice(at)), `${text} at ${at}`).toEqual(cells)
      }
    }
    // A long column is not searched for one to its end.
    expect(await cellsOf('a\n'.repeat(200), 'b,c;d')).toContainEqual(['b', 'c;d'])
  })

  test('refuses a quote that never ends and an endless row, which would hide everything behind them', async () => {
    await expect(parse('a\nb,"never ends,\n1\n2')).rejects.toThrow('begins on line 2 is never closed')
    await expect(parse(`a\n"${'x\n'.repeat(1_000_000)}"\nb`)).rejects.toThrow('begins on line 2 is longer')
    // A note may be long.
    expect(await parse(`a,"${'x'.repeat(900_000)}"\nb,`)).toHaveLength(2)
  })

  test('reads what it wrote, whatever it is and however it is cut', async () => {
    const cell = fc.string({ unit: 'binary' }).filter((text) => !/^[=+\-@\t\r]/.test(text))
    const rows = fc.array(fc.array(cell, { minLength: 1 }).filter((row) => row.some(Boolean)))
    await fc.assert(
      fc.asyncProperty(rows, fc.nat(), async (given, cut) => {
        // Where a decoder would cut it: never inside a character.
        const characters = [...writeCsv(given)]
        const at = cut % (characters.length + 1)
        const pieces = [characters.slice(0, at).join(''), characters.slice(at).join('')]
        const read = (await parse(...pieces)).map(({ cells }) => cells)
        // A byte order mark at the very beginning is not part of the text.
        const [first, ...rest] = given
        const [mark, ...more] = first ?? []
        const bare = mark?.startsWith('\uFEFF') ? [[mark.slice(1), ...more], ...rest] : given
        expect(read).toEqual(bare.filter((row) => row.some(Boolean)))
      }),
    )
  })

  test('writes as text what a spreadsheet would take for a formula', () => {
    expect(writeCsv([['=1+1', '@x', '-2', 'a']])).toBe("'=1+1,'@x,'-2,a\r\n")
  })

  test('reads or refuses any text, in time proportional to its length', timed, async () => {
    const text = fc.string({ unit: 'binary' })
    await fc.assert(fc.asyncProperty(text, async (each) => void (await parse(each).catch(() => []))))
    const startedAt = performance.now()
    await parse('"'.repeat(200_000))
    await parse('"a",'.repeat(100_000))
    expect(performance.now() - startedAt).toBeLessThan(2_000)
  })
})
