/** Parses the suppression list from a CSV file and says what is wrong with rows that it cannot read. Pure. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type CsvRow, parseCsv } from '../../lib/csv.ts'
import { ApiError } from '../../lib/errors.ts'
import { quote } from '../../lib/text.ts'
import { type Entry, type Kind, kinds, toEntry } from './entries.ts'

export interface SkippedRow {
  readonly line: number
  readonly reason: string
}

export interface FoundEntry {
  readonly line: number
  readonly entry: Entry
}

/** The file's text in pieces of any size. */
export type Text = AsyncIterable<string> | Iterable<string>

/** The first row names the columns: `kind` and `value`, or one for each kind of identity. Others are ignored. */
export async function* readTable(text: Text): AsyncGenerator<FoundEntry | SkippedRow, void> {
  const rows = parseCsv(text)
  const head = await rows.next()
  const names = head.done ? [] : head.value.cells.map((cell) => cell.trim().toLowerCase())
  const read = rowReader(names)
  let found = 0
  for await (const row of rows) {
    for (const one of read(row)) {
      yield one
      if (++found % foundAtOnce === 0) await nextTurn() // guard: other requests run while a file is parsed
    }
  }
}

/** A chunk of the file can have a hundred thousand bad rows, and nothing is stored between them that would let others run. */
const foundAtOnce = 1_000

type ReadRow = (row: CsvRow) => Iterable<FoundEntry | SkippedRow>

/** Looks the columns up once: a first line can name hundreds of thousands. */
function rowReader(names: readonly string[]): ReadRow {
  const [kindAt, valueAt] = [names.indexOf('kind'), names.indexOf('value')]
  if (kindAt >= 0 && valueAt >= 0) return (row) => [readPair(row, kindAt, valueAt)]
  const columns = names.flatMap((name, at) => (isKind(name) ? [{ kind: name, at }] : []))
  if (columns.length > 0) return (row) => readColumns(row, columns)
  throw new ApiError('invalid_request', {
    detail: `The first line must name the columns: kind and value, or any of ${kinds.join(', ')}. Nothing was imported.`,
  })
}

function isKind(name: string): name is Kind {
  return kinds.includes(name as Kind)
}

function readPair({ line, cells }: CsvRow, kindAt: number, valueAt: number): FoundEntry | SkippedRow {
  const kind = cells[kindAt]?.trim().toLowerCase() ?? ''
  if (isKind(kind)) return toFound(line, kind, cells[valueAt] ?? '')
  return { line, reason: `${quote(kind)} is not a kind: one of ${kinds.join(', ')}.` }
}

interface Column {
  readonly kind: Kind
  readonly at: number
}

/** Each identity of the row becomes its own entry. */
function* readColumns(
  { line, cells }: CsvRow,
  columns: readonly Column[],
): Generator<FoundEntry | SkippedRow> {
  let empty = true
  for (const { kind, at } of columns) {
    if (at >= cells.length) break // guard: a row costs no more than its cells
    const value = cells[at] ?? ''
    if (value.trim() === '') continue
    empty = false
    yield toFound(line, kind, value)
  }
  if (empty) yield { line, reason: `The row has no ${kinds.join(', no ')}.` }
}

function toFound(line: number, kind: Kind, value: string): FoundEntry | SkippedRow {
  const entry = toEntry(kind, value)
  return typeof entry === 'string' ? { line, reason: entry } : { line, entry }
}
