/** Tables as text, as RFC 4180 defines them, with the separators that spreadsheets write. Pure. */

export interface CsvRow {
  /** The line it begins on, counted from 1. */
  readonly line: number
  /** The line it ends on: a cell between quotes may have several. */
  readonly endLine: number
  readonly cells: readonly string[]
}

/** The whole text cannot be read as a table; the message says why. */
export class TableFault extends Error {
  override readonly name = 'TableFault'
  readonly line: number

  constructor(line: number, sentence: string) {
    super(sentence)
    this.line = line
  }
}

/** A longer row has a quote that was never closed, and would take the whole file into memory. */
const rowLengthMax = 1_000_000

/** In this order: where the comma is the decimal sign, spreadsheets separate by semicolon, and a number may have a comma. */
const separators = ['\t', ';', ','] as const // guard: the comma of a number
type Separator = (typeof separators)[number]

/** Rows of one cell say nothing about the separator. After this many the text is one column, or separated by commas. */
const undecidedRowsMax = 100

const signs = { mark: 0xfeff, quote: 0x22, space: 0x20, lf: 0x0a, cr: 0x0d } as const

/** The position in a cell: before it, in blanks before it, in a bare one, between quotes, or after a quote that may end it. */
type Place = 'start' | 'blank' | 'bare' | 'quoted' | 'quote'

/**
 * Returns rows as the text arrives, in whatever pieces. Accepts any line ending and a byte order mark, and skips blank lines.
 * The first row with a tab, a semicolon or a comma decides for the whole text what separates its cells. Throws a
 * `TableFault` for a quote that never ends, because every row after it would be part of its cell.
 */
export class RowReader {
  #separator: Separator | undefined
  /** The text of rows that do not decide the separator, while it is not known. */
  #undecided = ''
  #undecidedRows = 0
  #place: Place = 'start'
  #cell = ''
  #cells: string[] = []
  /** Empty cells since the last that is not: a row without any other costs no list. */
  #empty = 0
  /** Characters of the row so far. */
  #length = 0
  #line = 1
  #rowLine = 1
  #quoteAt = 1
  /** The last character of the piece before; undefined at the beginning of the text. */
  #before: number | undefined
  #rows: CsvRow[] = []

  /** Returns the rows that end in it. */
  read(piece: string): CsvRow[] {
    this.#rows = []
    this.#take(this.#separator === undefined ? this.#decide(piece) : piece)
    return this.#rows
  }

  end(): CsvRow[] {
    this.#rows = []
    this.#separator ??= separatorOf(this.#undecided).separator ?? ','
    this.#take(this.#undecided)
    this.#undecided = ''
    if (this.#place === 'quoted') {
      throw new TableFault(this.#quoteAt, `The quote that begins on line ${this.#quoteAt} is never closed.`)
    }
    if (this.#place !== 'start' || this.#cells.length > 0) this.#endRow(this.#line)
    return this.#rows
  }

  /** Returns the text that can be taken: whole rows, and everything once the separator is known. */
  #decide(piece: string): string {
    const text = this.#undecided + piece
    let from = 0
    while (this.#separator === undefined) {
      const { separator, end } = separatorOf(text, from)
      // A row that is too long is taken, and refused.
      if (end === undefined && text.length - from <= rowLengthMax) break
      this.#separator = separator
      if (end === undefined || ++this.#undecidedRows > undecidedRowsMax) this.#separator ??= ','
      from = end ?? text.length
    }
    this.#undecided = this.#separator === undefined ? text.slice(from) : ''
    return this.#separator === undefined ? text.slice(0, from) : text
  }

  /** Cells are cut out of the text as they are: only one that is between quotes, or that two pieces share, is put together. */
  #take(text: string): void {
    const separator = this.#separator?.charCodeAt(0)
    let at = this.#before === undefined && text.charCodeAt(0) === signs.mark ? 1 : 0
    while (at < text.length) {
      const end =
        this.#place === 'quoted' ? this.#endOfQuoted(text, at) : this.#endOfBare(text, at, separator)
      this.#measure(end + 1 - at)
      if (end > at) this.#cell += text.slice(at, end)
      if (end < text.length) this.#takeSign(text.charCodeAt(end), this.#isRestOfLineEnd(text, end))
      at = end + 1
    }
    if (text !== '') this.#before = text.charCodeAt(text.length - 1)
  }

  #measure(length: number): void {
    this.#length += length
    if (this.#length <= rowLengthMax) return
    throw new TableFault(
      this.#rowLine,
      `The row that begins on line ${this.#rowLine} is longer than ${rowLengthMax} characters.`,
    )
  }

  /** Where the characters end that are the cell's own: at its separator, a line end, or a quote at its beginning. */
  #endOfBare(text: string, from: number, separator: number | undefined): number {
    let at = from
    for (; at < text.length; at++) {
      const sign = text.charCodeAt(at)
      if (sign === separator || sign === signs.lf || sign === signs.cr) break
      if (sign === signs.quote && this.#place !== 'bare') break
      const blank = sign === signs.space && (this.#place === 'start' || this.#place === 'blank')
      this.#place = blank ? 'blank' : 'bare'
    }
    return at
  }

  /** Where the next quote is. The lines in between belong to the cell. */
  #endOfQuoted(text: string, from: number): number {
    let at = from
    for (; at < text.length; at++) {
      const sign = text.charCodeAt(at)
      if (sign === signs.quote) break
      if (sign === signs.cr || (sign === signs.lf && !this.#isRestOfLineEnd(text, at))) this.#line++
    }
    return at
  }

  /** Whether this is the second half of a line end of two characters. */
  #isRestOfLineEnd(text: string, at: number): boolean {
    const before = at === 0 ? this.#before : text.charCodeAt(at - 1)
    return before === signs.cr && text.charCodeAt(at) === signs.lf
  }

  #takeSign(sign: number, rest: boolean): void {
    if (sign === signs.quote) {
      this.#takeQuote()
    } else if (sign !== signs.lf && sign !== signs.cr) {
      this.#endCell()
    } else if (!rest) {
      this.#endRow(this.#line++)
    }
  }

  #takeQuote(): void {
    if (this.#place === 'start' || this.#place === 'blank') {
      this.#quoteAt = this.#line
      this.#cell = ''
    }
    // Two quotes between quotes stand for one.
    if (this.#place === 'quote') this.#cell += '"'
    this.#place = this.#place === 'quoted' ? 'quote' : 'quoted'
  }

  #endCell(): void {
    this.#place = 'start'
    if (this.#cell === '') {
      this.#empty++
      return
    }
    this.#addEmpty()
    this.#cells.push(this.#cell)
    this.#cell = ''
  }

  #addEmpty(): void {
    for (; this.#empty > 0; this.#empty--) this.#cells.push('')
  }

  #endRow(endLine: number): void {
    this.#endCell()
    if (this.#cells.length > 0) {
      this.#addEmpty()
      this.#rows.push({ line: this.#rowLine, endLine, cells: this.#cells })
      this.#cells = []
    }
    this.#empty = 0
    this.#length = 0
    this.#rowLine = endLine + 1
  }
}

interface FirstRow {
  readonly separator: Separator | undefined
  /** Where the row ends, with its line end; undefined if the text ends first. */
  readonly end: number | undefined
}

/** The separator that the row beginning at `from` shows: the first of `separators` that it has outside quotes. */
function separatorOf(text: string, from = 0): FirstRow {
  const found = new Set<string>()
  let quoted = false
  /** A quote is one only at the beginning of a cell, or where it doubles another. */
  let opens = true
  let end: number | undefined
  for (let at = from; at < text.length && end === undefined; at++) {
    const sign = text.charAt(at)
    if (sign === '"' && (quoted || opens)) {
      quoted = !quoted
      opens = true
    } else if (!quoted) {
      if (sign === '\n' || sign === '\r') end = at + 1
      const separates = separators.includes(sign as Separator)
      if (separates) found.add(sign)
      opens = separates || (opens && sign === ' ')
    }
  }
  return { separator: separators.find((each) => found.has(each)), end }
}

/** Separated by commas, whatever cells contain. */
export function writeCsv(rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((cells) => `${cells.map(writeCell).join(',')}\r\n`).join('')
}

/** An apostrophe keeps a spreadsheet from reading a text as a formula. A number is none. */
function writeCell(cell: string | number): string {
  if (typeof cell === 'number') return String(cell)
  const safe = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell // guard: cells of a spreadsheet
  return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** The text of a whole file, or the sentence about its first line that is not UTF-8. */
export function decodeTable(
  bytes: Uint8Array<ArrayBuffer>,
): { readonly text: string } | { readonly sentence: string } {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    return { text: decoder.decode(bytes) }
  } catch {
    let line = 0
    for (let from = 0; from <= bytes.length; from++) {
      line++
      const end = bytes.indexOf(0x0a, from)
      try {
        decoder.decode(bytes.subarray(from, end < 0 ? bytes.length : end))
      } catch {
        break
      }
      if (end < 0) break
      from = end
    }
    return { sentence: notUtf8(line) }
  }
}

/** What to do about bytes that are not UTF-8: a guessed encoding would change names without a sign. */
export function notUtf8(line: number): string {
  return `Line ${line} is not UTF-8. In the spreadsheet, save the file as “CSV UTF-8”, and use that file.`
}
