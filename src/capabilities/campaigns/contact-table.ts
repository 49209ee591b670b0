/** Parses contacts from a CSV file and says why rows are skipped. Pure. */
import { parseCsv } from '../../lib/csv.ts'
import { ApiError } from '../../lib/errors.ts'
import { isWellFormed, lengthOf, quote } from '../../lib/text.ts'
import { parseIdentifier } from '../../platform/identifier.ts'
import { contactsMax, nameMax } from './campaign-body.ts'
import { contactOf } from './campaign-request.ts'

/** The columns that can identify a contact; the first non-empty one does. */
const identifiers = ['identifier', 'username', 'phone', 'platform_id'] as const

export interface SkippedLine {
  readonly line: number
  readonly reason: string
}

export interface ContactTable {
  readonly contacts: readonly { readonly identifier: string; readonly name: string | undefined }[]
  /** The line of each contact in the file, by its normal form. */
  readonly lines: ReadonlyMap<string, number>
  readonly skipped: readonly SkippedLine[]
}

/** The first row names the columns; unknown columns are ignored. */
export async function readContactTable(
  text: AsyncIterable<string> | Iterable<string>,
): Promise<ContactTable> {
  const rows = parseCsv(text)
  const head = await rows.next()
  const names = head.done ? [] : head.value.cells.map((cell) => cell.trim().toLowerCase())
  if (!identifiers.some((name) => names.includes(name))) {
    throw new ApiError('invalid_request', {
      detail: `The first line must name the columns: one of ${identifiers.join(', ')}, and optionally name.`,
    })
  }
  const contacts: { identifier: string; name: string | undefined }[] = []
  const lines = new Map<string, number>()
  const skipped: SkippedLine[] = []
  for await (const { line, cells } of rows) {
    const cell = (name: string) => cells[names.indexOf(name)]?.trim() ?? ''
    const identifier = identifiers.map(cell).find((value) => value !== '') ?? ''
    const parsed = parseIdentifier(identifier)
    if (typeof parsed === 'string') {
      skipped.push({ line, reason: faultOf(identifier) })
      continue
    }
    const name = cell('name')
    if (lengthOf(name) > nameMax || !isWellFormed(name)) {
      const reason = `The name ${quote(name)} has more than ${nameMax} characters, or a character that is not allowed.`
      skipped.push({ line, reason })
      continue
    }
    const before = lines.get(contactOf(parsed))
    if (before !== undefined) {
      skipped.push({ line, reason: `Duplicate of line ${before}.` })
      continue
    }
    lines.set(contactOf(parsed), line)
    contacts.push({ identifier, name: name || undefined })
    if (contacts.length > contactsMax) {
      throw new ApiError('invalid_request', {
        detail: `A campaign can have at most ${contactsMax} contacts.`,
      })
    }
  }
  return { contacts, lines, skipped }
}

function faultOf(identifier: string): string {
  if (identifier === '') return `The row has no ${identifiers.join(', no ')}.`
  return `${quote(identifier)} is not a username, a link to one, a phone number with its country code, or a platform id.`
}
