/** Parses the suppression list from a CSV file and says what is wrong with rows that it cannot read. Pure. */
import { parseCsv } from '../../lib/csv.ts'
import { ApiError } from '../../lib/errors.ts'
import { quote } from '../../lib/text.ts'
import type { CsvRow } from '../../rules/csv.ts'
import { cutNumber } from '../../rules/identifier.ts'
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

/**
 * The first row names the columns: `kind` and `value`, or one for each kind of identity. Others are ignored. Yields what each
 * piece of the text says.
 */
export async function* readTable(text: Text): AsyncGenerator<readonly (FoundEntry | SkippedRow)[], void> {
  let read: ReadRow | undefined
  let invalid = 0
  for await (const rows of parseCsv(text)) {
    const known: (FoundEntry | SkippedRow)[] = []
    for (const row of rows) {
      if (read === undefined) {
        read = rowReader(row.cells)
        continue
      }
      for (const one of read(row)) {
        if ('reason' in one && ++invalid > invalidMax) throw tooManyInvalid(one) // guard: invalid rows of an import
        known.push(one)
      }
    }
    yield known
  }
  if (read === undefined) rowReader([])
}

/** A file with more invalid rows is another file than the person meant, or was made to keep us busy. */
const invalidMax = 1_000_000

function tooManyInvalid({ line, reason }: SkippedRow): ApiError {
  return new ApiError('invalid_request', {
    detail: `More than ${invalidMax.toLocaleString('en')} rows have no identity, up to line ${line}: ${reason} Nothing was imported.`,
  })
}

type ReadRow = (row: CsvRow) => readonly (FoundEntry | SkippedRow)[]

/** Looks the columns up once: a first line can name hundreds of thousands. */
function rowReader(head: readonly string[]): ReadRow {
  const names = head.map((cell) => cell.trim().toLowerCase())
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
  if (isKind(kind)) return toFound(line, kind, cells, valueAt)
  return { line, reason: `${quote(kind)} is not a kind: one of ${kinds.join(', ')}.` }
}

interface Column {
  readonly kind: Kind
  readonly at: number
}

/** Each identity of the row becomes its own entry. */
function readColumns({ line, cells }: CsvRow, columns: readonly Column[]): (FoundEntry | SkippedRow)[] {
  const read: (FoundEntry | SkippedRow)[] = []
  for (const { kind, at } of columns) {
    if (at >= cells.length) break // guard: a row costs no more than its cells
    if ((cells[at] ?? '').trim() !== '') read.push(toFound(line, kind, cells, at))
  }
  return read.length > 0 ? read : [{ line, reason: `The row has no ${kinds.join(', no ')}.` }]
}

function toFound(line: number, kind: Kind, cells: readonly string[], at: number): FoundEntry | SkippedRow {
  const entry = cutNumber(cells, at) ?? toEntry(kind, cells[at] ?? '')
  return typeof entry === 'string' ? { line, reason: entry } : { line, entry }
}
