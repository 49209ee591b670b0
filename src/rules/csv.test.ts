import { expect, test } from 'vitest'
import { RowReader, writeCsv } from './csv.ts'

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
  const reader = new RowReader()
  const [row] = [...reader.read(writeCsv([texts])), ...reader.end()]
  expect(row?.cells).toEqual(texts.map((text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text)))
  expect(writeCsv([['=HYPERLINK("x")', -2, 0.25]])).toBe(`"'=HYPERLINK(""x"")",-2,0.25\r\n`)
})
