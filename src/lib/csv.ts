/** Tables as text, as RFC 4180 defines them. */
import { isUtf8 } from 'node:buffer'
import { ApiError } from './errors.ts'

export interface CsvRow {
  /** The line it begins on, counted from 1. */
  readonly line: number
  readonly cells: readonly string[]
}

/** A longer row has a quote that was never closed, and would take the whole file into memory. */
const rowLengthMax = 1_000_000

/**
 * Yields rows as the text arrives, in whatever pieces. Accepts any line ending and a byte order mark, and skips blank lines.
 * Refuses a quote that never ends, because every row after it would be part of its cell.
 */
export async function* parseCsv(
  pieces: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<CsvRow, void> {
  const reader = new RowReader()
  // Not `yield*`, which takes several times as long for each row.
  for await (const piece of pieces) for (const row of reader.read(piece)) yield row
  for (const row of reader.end()) yield row
}

const pieceBytes = 32 * 1024
const [lf, cr] = [0x0a, 0x0d]

/** The text of a file in small pieces: parsing one holds up nobody for long. Refuses bytes that are not UTF-8 with their line. */
export async function* decodeCsv(chunks: AsyncIterable<Buffer>): AsyncGenerator<string, void> {
  let held: Buffer = Buffer.alloc(0)
  let line = 1
  let before = 0
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += pieceBytes) {
      const bytes = Buffer.concat([held, chunk.subarray(at, at + pieceBytes)])
      const whole = bytes.subarray(0, wholeCharacters(bytes))
      held = bytes.subarray(whole.length)
      if (!isUtf8(whole)) throw notUtf8(line + countLineEnds(soundLines(whole), before))
      line += countLineEnds(whole, before)
      before = whole.at(-1) ?? before
      yield whole.toString()
    }
  }
  if (held.length > 0) throw notUtf8(line)
}

function notUtf8(line: number): ApiError {
  return new ApiError('invalid_request', { detail: `Line ${line} is not UTF-8.` })
}

/** How many bytes there are without a last character that the next bytes complete. */
function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}

/** The bytes up to the first line that is not UTF-8. */
function soundLines(bytes: Buffer): Buffer {
  let start = 0
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] !== lf && bytes[at] !== cr) continue
    if (!isUtf8(bytes.subarray(start, at))) break
    start = at + 1
  }
  return bytes.subarray(0, start)
}

function countLineEnds(bytes: Buffer, previous: number): number {
  let count = 0
  let before = previous
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte === cr || (byte === lf && before !== cr)) count++
    before = byte
  }
  return count
}

/** The position in a cell: before it, in a bare one, between quotes, or after a quote that may end it. */
type Place = 'start' | 'bare' | 'quoted' | 'quote'

class RowReader {
  #place: Place = 'start'
  #cell = ''
  #cells: string[] = []
  /** Characters of the row so far. */
  #length = 0
  #line = 1
  #rowLine = 1
  #quoteAt = 1
  #before = ''
  #rows: CsvRow[] = []

  /** Returns the rows that end in it. */
  read(piece: string): CsvRow[] {
    this.#rows = []
    for (const character of piece) {
      if (character !== '\uFEFF' || this.#before !== '') this.#take(character)
      this.#before = character
    }
    return this.#rows
  }

  end(): CsvRow[] {
    if (this.#place === 'quoted') {
      throw new ApiError('invalid_request', {
        detail: `The quote that begins on line ${this.#quoteAt} is never closed.`,
      })
    }
    this.#rows = []
    if (this.#place !== 'start' || this.#cells.length > 0) this.#endRow()
    return this.#rows
  }

  #take(character: string): void {
    const rest = character === '\n' && this.#before === '\r'
    const endsLine = character === '\r' || (character === '\n' && !rest)
    if (endsLine) this.#line++
    if (++this.#length > rowLengthMax) {
      throw new ApiError('invalid_request', {
        detail: `The row that begins on line ${this.#rowLine} is longer than ${rowLengthMax} characters.`,
      })
    }
    if (this.#place === 'quoted' && character !== '"') {
      this.#cell += character
    } else if (character === '"' && this.#place !== 'bare') {
      this.#takeQuote()
    } else if (endsLine) {
      this.#endRow()
    } else if (character === ',') {
      this.#endCell()
    } else if (!rest) {
      this.#cell += character
      this.#place = 'bare'
    }
  }

  #takeQuote(): void {
    if (this.#place === 'start') this.#quoteAt = this.#line
    // Two quotes between quotes stand for one.
    if (this.#place === 'quote') this.#cell += '"'
    this.#place = this.#place === 'quoted' ? 'quote' : 'quoted'
  }

  #endCell(): void {
    this.#cells.push(this.#cell)
    this.#cell = ''
    this.#place = 'start'
  }

  #endRow(): void {
    this.#endCell()
    if (this.#cells.some((cell) => cell !== '')) this.#rows.push({ line: this.#rowLine, cells: this.#cells })
    this.#cells = []
    this.#length = 0
    this.#rowLine = this.#line
  }
}

export function writeCsv(rows: readonly (readonly string[])[]): string {
  return rows.map((cells) => `${cells.map(writeCell).join(',')}\r\n`).join('')
}

/** An apostrophe keeps a spreadsheet from reading the cell as a formula. */
function writeCell(cell: string): string {
  const safe = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
