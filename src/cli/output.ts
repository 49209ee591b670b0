/** What a verb prints: exactly one JSON document with --json, otherwise a table for people. */
import { addressDefault, type Config } from '../config.ts'

type Row = Readonly<Record<string, unknown>>

/** Text that is printed as it is, however long, and the document that stands for it with --json. */
export class Plain {
  readonly text: AsyncIterable<string> | Iterable<string>
  readonly data: () => Row | Promise<Row>

  constructor(text: Plain['text'], data: Plain['data']) {
    this.text = text
    this.data = data
  }
}

/** Facts, and what a person has to know about them. The document is the facts alone. */
export class Noted {
  readonly facts: Row
  readonly note: string

  constructor(facts: object, note: string) {
    this.facts = { ...facts }
    this.note = note
  }
}

/** Below every key that was just made. */
export const keyNote = 'The key is shown this once: only its hash is stored. Keep it where secrets are kept.'

/** Below a link: a verb does not know where the service listens, unless PARLEY_BASE_URL says so. */
export function noteLink(note: string, { base_url }: Pick<Config, 'base_url'>): string {
  if (base_url !== undefined) return note
  const sentence = `The link leads to ${addressDefault}, because PARLEY_BASE_URL is not set`
  return `${note}\n${sentence}: if the service is elsewhere, change that part.`
}

export type Result = Row | readonly Row[] | Plain | Noted

export async function print(result: Result, { json }: { json: boolean }): Promise<void> {
  // Whoever stops reading, such as `head`, has seen enough: no failure.
  process.stdout.on('error', () => {})
  if (result instanceof Plain && !json) {
    for await (const text of result.text) {
      if (!process.stdout.writable) return
      await put(text)
    }
    return
  }
  const data = await dataOf(result)
  if (json) return put(`${JSON.stringify(data, null, 2)}\n`)
  await put(`${readable(data)}\n${result instanceof Noted ? `\n${result.note}\n` : ''}`)
}

function dataOf(result: Result): Row | readonly Row[] | Promise<Row> {
  if (result instanceof Plain) return result.data()
  return result instanceof Noted ? result.facts : result
}

/** Waits until all of it is written: a pipe takes it in pieces, and the process ends right after. */
function put(text: string): Promise<void> {
  return new Promise((resolve) => void process.stdout.write(text, () => resolve()))
}

function readable(result: Row | readonly Row[]): string {
  if (!Array.isArray(result)) return facts(result as Row)
  if (result.length === 0) return 'None yet.'
  const lines = table(result)
  // A terminal would break them in two, which nobody can read: there each row stands by itself.
  const fits = lines.every(({ length }) => length <= (process.stdout.columns || length))
  return fits ? lines.join('\n') : result.map(facts).join('\n\n')
}

export function write(text: string): void {
  process.stdout.write(`${text}\n`)
}

function facts(row: Row): string {
  const width = Math.max(...Object.keys(row).map((name) => name.length))
  return Object.entries(row)
    .map(([name, value]) => `${name.padEnd(width)}  ${show(value)}`)
    .join('\n')
}

function table(rows: readonly Row[]): string[] {
  const names = Object.keys(rows[0] ?? {})
  const lines = [names, ...rows.map((row) => names.map((name) => show(row[name])))]
  const widths = names.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)))
  return lines.map((line) =>
    line
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** A value as people read it. */
export function show(value: unknown): string {
  if (value === null || value === undefined || value === '') return '–'
  if (value instanceof Date) return showTime(value.toISOString())
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'string' && isoTime.test(value)) return showTime(value)
  if (Array.isArray(value)) return value.map(show).join(', ') || '–'
  if (typeof value === 'object') {
    const named = Object.entries(value).map(([name, own]) => `${name}=${show(own)}`)
    return named.join(' ') || '–'
  }
  // A name from outside must not move the cursor of the terminal.
  return String(value).replaceAll(/\p{Cc}/gu, '�')
}

/** As the API writes every moment. */
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** To the minute: a table is for reading, and --json has the rest. */
function showTime(iso: string): string {
  return `${iso.slice(0, 16).replace('T', ' ')}Z`
}
