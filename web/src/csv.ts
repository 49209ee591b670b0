/** CSV made in the page from what it shows. */

export function csvOf(rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((cells) => `${cells.map(cellOf).join(',')}\r\n`).join('')
}

/** An apostrophe keeps a spreadsheet from reading a text as a formula. A number is none. */
function cellOf(cell: string | number): string {
  if (typeof cell === 'number') return String(cell)
  const safe = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell // guard: cells of a spreadsheet made in the page
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
