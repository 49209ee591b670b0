/** What a verb prints: exactly one JSON document with --json, otherwise a table for people. */
import { addressDefault, type Config } from '../config.ts'
import { Refusal } from '../lib/errors.ts'

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

/** What was found, printed as any result is; then the command ends with this sentence and exit code 1. */
export class Failed {
  readonly found: Row | Plain
  readonly sentence: string

  constructor(found: Failed['found'], sentence: string) {
    this.found = found
    this.sentence = sentence
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

export type Result = Row | readonly Row[] | Plain | Noted | Failed

/** How wide a table may be where it is piped and no terminal says its width. */
const columnsPiped = 100

export async function print(result: Result, { json }: { json: boolean }): Promise<void> {
  if (result instanceof Failed) {
    await print(result.found, { json })
    throw new Refusal(result.sentence)
  }
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

function dataOf(result: Exclude<Result, Failed>): Row | readonly Row[] | Promise<Row> {
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
  const columns = process.stdout.columns || columnsPiped
  // A terminal would break wider lines in two, which nobody can read: each row becomes a block of lines instead.
  const fits = lines.every(({ length }) => length <= columns)
  return fits ? lines.join('\n') : result.map((row) => facts(row, columns)).join('\n\n')
}

export function write(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** A line for each fact; a value that is wider than `columns` goes on below itself. */
function facts(row: Row, columns = Number.POSITIVE_INFINITY): string {
  const width = Math.max(...Object.keys(row).map((name) => name.length)) + 2
  return Object.entries(row)
    .map(([name, value]) => {
      const lines = wrap(show(value), columns - width)
      return `${name.padEnd(width)}${lines.join(`\n${' '.repeat(width)}`)}`
    })
    .join('\n')
}

/** Breaks at spaces only: an id or a link stays whole, so that it can be copied. */
function wrap(text: string, columns: number): string[] {
  const lines: string[] = []
  let line: string | undefined
  for (const word of text.split(' ')) {
    const longer: string = line === undefined ? word : `${line} ${word}`
    if (line === undefined || longer.length <= columns) line = longer
    else {
      lines.push(line)
      line = word
    }
  }
  return [...lines, line ?? '']
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
