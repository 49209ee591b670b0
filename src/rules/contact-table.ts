/**
 * Contacts from a table, by the same rules for a file at the terminal and for a list that a user pastes into the editor. No row is
 * repaired: one that is not a contact is skipped with its reason. Pure.
 */
import { type CsvRow, RowReader, TableFault } from './csv.ts'
import {
  contactOf,
  cutNumber,
  type IdentityColumn,
  identityColumns,
  readIdentity,
  writeIdentity,
} from './identifier.ts'
import { nameMax } from './limits.ts'
import { isWellFormed, lengthOf, quote } from './text.ts'

export const contactsMax = 5_000

export interface ListedContact {
  /** As a request takes it. */
  readonly identifier: string
  readonly name: string | null
}

export interface SkippedLine {
  /** From 1. */
  readonly line: number
  readonly reason: string
}

const firstLine = `The first line must name the columns: one of ${identityColumns.join(', ')}, and optionally name.`

/** A pasted list may do without a first line that names its columns. */
const unnamed = ['identifier', 'name']

/** Takes the rows of one table in their order. */
export class ContactReader {
  readonly contacts: ListedContact[] = []
  /** The line of each contact, by its normal form. */
  readonly lines = new Map<string, number>()
  readonly skipped: SkippedLine[] = []
  /** Whether contacts were skipped because a campaign cannot have more. */
  tooMany = false
  readonly #headed: boolean
  #columns: readonly string[] | undefined

  constructor({ headed }: { readonly headed: boolean }) {
    this.#headed = headed
  }

  take(row: CsvRow): void {
    const header = this.#columns === undefined ? this.#readHeader(row) : 'taken'
    if (header === 'named') return
    const reason = this.#refusal(row, this.#columns ?? unnamed)
    if (reason !== undefined) this.skipped.push({ line: row.line, reason })
  }

  /** Whether the first row names the columns. */
  #readHeader(row: CsvRow): 'named' | 'unnamed' {
    const names = row.cells.map((cell) => cell.trim().toLowerCase())
    const named = identityColumns.some((column) => names.includes(column))
    // A line such as `Name;Telefon` would be a person.
    const misread = names.includes('name') && typeof readContact(row, unnamed) === 'object' // guard: names of columns
    if (!named && (this.#headed || misread)) throw new TableFault(row.line, firstLine)
    this.#columns = named ? names : unnamed
    return named ? 'named' : 'unnamed'
  }

  /** Adds the row's contact, or returns why it does not. */
  #refusal(row: CsvRow, columns: readonly string[]): string | undefined {
    const read = readContact(row, columns)
    if (typeof read === 'string') return read
    const before = this.lines.get(read.key)
    if (before !== undefined) return `Duplicate of line ${before}.`
    if (this.contacts.length === contactsMax) {
      this.tooMany = true
      return tooManyContacts
    }
    this.lines.set(read.key, row.line)
    this.contacts.push(read.contact)
    return undefined
  }
}

export const tooManyContacts = `A campaign can have at most ${contactsMax.toLocaleString('en')} contacts.`

function readContact(
  { cells }: CsvRow,
  columns: readonly string[],
): { readonly key: string; readonly contact: ListedContact } | string {
  const cell = (name: string) => cells[columns.indexOf(name)]?.trim() ?? ''
  const column = identityColumns.find((each) => cell(each) !== '')
  if (column === undefined) return `The row has no ${columnsOf(columns).join(', no ')}.`
  if (columns === unnamed && cells.slice(2).some((each) => each.trim() !== '')) {
    return `This row has ${cells.length} columns. Only two are used here: who, and their name.`
  }
  const cut = cutNumber(cells, columns.indexOf(column))
  if (cut !== undefined) return cut // guard: a number that a separator cuts in two
  const identity = readIdentity(column, cell(column))
  if (typeof identity === 'string') return identity
  const name = cell('name') || null
  const fault = name === null ? undefined : faultOfName(name)
  return (
    fault ?? {
      key: contactOf(identity),
      contact: { identifier: writeIdentity(identity, cell(column)), name },
    }
  )
}

/** The columns that can say whom a row means: those that the table has. */
function columnsOf(columns: readonly string[]): readonly IdentityColumn[] {
  return identityColumns.filter((each) => columns.includes(each))
}

function faultOfName(name: string): string | undefined {
  if (lengthOf(name) > nameMax || !isWellFormed(name)) {
    return `The name ${quote(name)} has more than ${nameMax} characters, or a character that is not allowed.`
  }
  // A spreadsheet's formula would be sent as it is written.
  return /^[=+\-@]/.test(name)
    ? `The name ${quote(name)} starts with “${name[0]}”, like a formula. It would be sent exactly like this.`
    : undefined
}

export interface ContactList {
  readonly contacts: readonly ListedContact[]
  readonly skipped: readonly SkippedLine[]
}

/** About 400 characters for each contact. */
const listCharactersMax = 2_000_000

/** A pasted list, or the text of a file. If it cannot be read as a table, no line of it is a contact. */
export function readContactList(text: string): ContactList {
  if (text.length > listCharactersMax) {
    const reason = `The list is longer than ${listCharactersMax.toLocaleString('en')} characters.`
    return { contacts: [], skipped: [{ line: 1, reason }] }
  }
  const contacts = new ContactReader({ headed: false })
  try {
    for (const row of rowsOf(text)) contacts.take(row)
  } catch (error) {
    if (!(error instanceof TableFault)) throw error
    return { contacts: [], skipped: [{ line: error.line, reason: error.message }] }
  }
  return contacts
}

function rowsOf(text: string): CsvRow[] {
  const reader = new RowReader()
  return [...reader.read(text), ...reader.end()]
}

/** The list without the rows that begin on these lines. */
export function withoutLines(text: string, skipped: readonly SkippedLine[]): string {
  const gone = new Set(skipped.map(({ line }) => line))
  for (const { line, endLine } of readableRows(text)) {
    if (gone.has(line)) for (let at = line; at <= endLine; at++) gone.add(at)
  }
  return text
    .split(/\r\n|\n|\r/)
    .filter((_, at) => !gone.has(at + 1))
    .join('\n')
}

/** Without rows, lines are taken out one by one: a quote that is never closed is on one of them. */
function readableRows(text: string): CsvRow[] {
  try {
    return rowsOf(text)
  } catch (error) {
    if (!(error instanceof TableFault)) throw error
    return []
  }
}
