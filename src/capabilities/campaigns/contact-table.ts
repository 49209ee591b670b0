/** Reads contacts from a CSV file, by the rules that pasted lists follow too (`rules/contact-table.ts`). */
import { asRefusal, parseCsv } from '../../lib/csv.ts'
import { ApiError } from '../../lib/errors.ts'
import {
  ContactReader,
  type ListedContact,
  type SkippedLine,
  tooManyContacts,
} from '../../rules/contact-table.ts'

export interface ContactTable {
  readonly contacts: readonly ListedContact[]
  /** The line of each contact in the file, by its normal form. */
  readonly lines: ReadonlyMap<string, number>
  readonly skipped: readonly SkippedLine[]
}

/** The first row names the columns; unknown columns are ignored. */
export async function readContactTable(
  text: AsyncIterable<string> | Iterable<string>,
): Promise<ContactTable> {
  const reader = new ContactReader({ headed: true })
  for await (const rows of parseCsv(text)) {
    for (const row of rows) {
      asRefusal(() => reader.take(row))
      if (reader.tooMany) throw new ApiError('invalid_request', { detail: tooManyContacts })
    }
  }
  return reader
}
