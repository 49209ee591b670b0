/** Tables as text, as RFC 4180 has them. */

export interface CsvRow {
  /** Where it begins in the file, from 1 on. */
  readonly line: number
  readonly cells: readonly string[]
}

/** Takes either end of line and a byte order mark; quotes that never end take the rest with them. Blank lines are none. */
export function* parseCsv(text: string): Generator<CsvRow> {
  const cell = /"((?:[^"]|"")*)"?([^,\r\n]*)|([^,\r\n]*)/y
  let at = text.startsWith('\uFEFF') ? 1 : 0
  let line = 1
  let begun = line
  let cells: string[] = []
  while (at < text.length) {
    cell.lastIndex = at
    const [whole = '', quoted, after = '', plain = ''] = cell.exec(text) ?? []
    cells.push(quoted === undefined ? plain : quoted.replaceAll('""', '"') + after)
    for (const character of whole) if (character === '\n') line++
    at += whole.length
    if (text[at] === ',') {
      at++
      // A comma at the very end has an empty cell behind it.
      if (at < text.length) continue
      cells.push('')
    }
    if (cells.some((each) => each !== '')) yield { line: begun, cells }
    cells = []
    if (text[at] === '\r') at++
    if (text[at] === '\n') {
      at++
      line++
    }
    begun = line
  }
}

export function writeCsv(rows: readonly (readonly string[])[]): string {
  return rows.map((cells) => `${cells.map(writeCell).join(',')}\r\n`).join('')
}

/** A spreadsheet would take what begins like a formula for one. */
function writeCell(cell: string): string {
  const safe = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
