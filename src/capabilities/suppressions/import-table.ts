/** Parses the suppression list from a CSV file and says what is wrong with rows that it cannot read. Pure. */
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
  const read = names.includes('kind') && names.includes('value') ? readPair : readColumns
  if (read === readColumns && !names.some((name) => kinds.includes(name as Kind))) {
    throw new ApiError('invalid_request', {
      detail: `The first line must name the columns: kind and value, or any of ${kinds.join(', ')}. Nothing was imported.`,
    })
  }
  for await (const row of rows) yield* read(names, row)
}

function* readPair(names: readonly string[], { line, cells }: CsvRow): Generator<FoundEntry | SkippedRow> {
  const kind = cells[names.indexOf('kind')]?.trim().toLowerCase() ?? ''
  const value = cells[names.indexOf('value')] ?? ''
  if (kinds.includes(kind as Kind)) yield toFound(line, kind as Kind, value)
  else yield { line, reason: `${quote(kind)} is not a kind: one of ${kinds.join(', ')}.` }
}

/** Each identity of the row becomes its own entry. */
function* readColumns(names: readonly string[], { line, cells }: CsvRow): Generator<FoundEntry | SkippedRow> {
  let empty = true
  for (const [at, name] of names.entries()) {
    const value = cells[at] ?? ''
    if (!kinds.includes(name as Kind) || value.trim() === '') continue
    empty = false
    yield toFound(line, name as Kind, value)
  }
  if (empty) yield { line, reason: `The row has no ${kinds.join(', no ')}.` }
}

function toFound(line: number, kind: Kind, value: string): FoundEntry | SkippedRow {
  const entry = toEntry(kind, value)
  return typeof entry === 'string' ? { line, reason: entry } : { line, entry }
}
