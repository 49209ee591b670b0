/** What a verb prints: exactly one JSON document with --json, otherwise a table for people. */
import { addressDefault, type Config } from '../config.ts'
import { Refusal } from '../lib/errors.ts'

type Row = Readonly<Record<string, unknown>>

/** Text that is printed as it is, however long, and the document that --json prints instead. */
export class Plain {
  readonly text: AsyncIterable<string> | Iterable<string>
  readonly data: () => Row | Promise<Row>

  constructor(text: Plain['text'], data: Plain['data']) {
    this.text = text
    this.data = data
  }
}

/** Facts, and a note for people about them. The JSON document has the facts only. */
export class Noted {
  readonly facts: Row
  readonly note: string

  constructor(facts: object, note: string) {
    this.facts = { ...facts }
    this.note = note
  }
}

/** Prints the facts like any result, then ends the command with this sentence and exit code 1. */
export class Failed {
  readonly found: Row | Plain
  readonly sentence: string

  constructor(found: Failed['found'], sentence: string) {
    this.found = found
    this.sentence = sentence
  }
}

/** Printed below every new key. */
export const keyNote = 'The key is shown only now: Parley stores only its hash. Keep it like a password.'

/** Printed below a link: without PARLEY_BASE_URL a verb does not know where the service listens. */
export function noteLink(note: string, { base_url }: Pick<Config, 'base_url'>): string {
  if (base_url !== undefined) return note
  const sentence = `The link uses ${addressDefault}, because PARLEY_BASE_URL is not set`
  return `${note}\n${sentence}. If the service has another address, change that part.`
}

export type Result = Row | readonly Row[] | Plain | Noted | Failed

/** The width of a table whose output is piped, so that no terminal gives one. */
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

/** Waits until everything is written: a pipe takes it in pieces, and the process ends right after. */
function put(text: string): Promise<void> {
  return new Promise((resolve) => void process.stdout.write(text, () => resolve()))
}

function readable(result: Row | readonly Row[]): string {
  if (!Array.isArray(result)) return facts(result as Row)
  if (result.length === 0) return 'None yet.'
  const lines = table(result)
  const columns = process.stdout.columns || columnsPiped
  // A terminal would wrap wider lines, which makes a table unreadable: each row becomes a block of lines instead.
  const fits = lines.every(({ length }) => length <= columns)
  return fits ? lines.join('\n') : result.map((row) => facts(row, columns)).join('\n\n')
}

export function write(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** One line per fact; a value wider than `columns` wraps below itself. */
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

/** A value as people read it, safe for a terminal. */
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
  // A control character in a name from outside could move the terminal's cursor.
  return String(value).replaceAll(/\p{Cc}/gu, '�')
}

/** The API's format for every time. */
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** To the minute: --json has the full time. */
function showTime(iso: string): string {
  return `${iso.slice(0, 16).replace('T', ' ')}Z`
}
