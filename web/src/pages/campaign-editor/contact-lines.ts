/**
 * Reads a pasted list or a CSV file: one contact a line, an identifier and, after a comma, semicolon or tab, a name. A first
 * line that names the columns may give them in the other order. Every line that is not a contact has its sentence; no line
 * is repaired. Pure.
 */
export interface ListedContact {
  readonly identifier: string
  readonly name: string | null
}

export interface LineFault {
  /** From 1. */
  readonly line: number
  readonly sentence: string
}

export interface ContactList {
  readonly contacts: readonly ListedContact[]
  readonly faults: readonly LineFault[]
}

export const contactsMax = 5_000
const nameMax = 200
/** About 400 characters for each of 5,000 contacts. */
export const listCharactersMax = 2_000_000

export function readContacts(text: string): ContactList {
  if (text.trim() === '') return { contacts: [], faults: [] }
  if (text.length > listCharactersMax) {
    return { contacts: [], faults: [{ line: 1, sentence: 'The list is longer than 2,000,000 characters.' }] }
  }
  const lines = linesOf(text)
  const header = readHeader(lines[0] ?? '')
  if (header && 'sentence' in header) return { contacts: [], faults: [{ line: 1, ...header }] }
  const columns = header?.columns ?? ['identifier', 'name']
  const contacts: ListedContact[] = []
  const faults: LineFault[] = []
  const seen = new Map<string, number>()
  for (const [at, line] of lines.entries()) {
    if (header && at === 0) continue
    const read = readLine(line, columns)
    const sentence =
      'sentence' in read
        ? read.sentence
        : seen.has(read.key)
          ? `This is the same contact as in line ${seen.get(read.key)}.`
          : contacts.length === contactsMax
            ? 'A campaign has at most 5,000 contacts.'
            : undefined
    if (sentence !== undefined) faults.push({ line: at + 1, sentence })
    else if ('key' in read) {
      seen.set(read.key, at + 1)
      contacts.push(read.contact)
    }
  }
  return { contacts, faults }
}

/** The list without these lines. */
export function withoutLines(text: string, faults: readonly LineFault[]): string {
  const gone = new Set(faults.map(({ line }) => line))
  return linesOf(text)
    .filter((_, at) => !gone.has(at + 1))
    .join('\n')
}

/** The end of the last line begins no new one. A file may begin with a mark of its encoding. */
function linesOf(text: string): string[] {
  return text
    .replace(/^\ufeff/, '')
    .replace(/\r?\n$/, '')
    .split(/\r?\n|\r/)
}

type ColumnName = 'identifier' | 'name'
type Fault = { readonly sentence: string }

/** Undefined: the first line is a contact. */
function readHeader(line: string): { readonly columns: ColumnName[] } | Fault | undefined {
  const cells = splitCells(line)
  if ('sentence' in cells) return undefined
  const names = cells.map((cell) => cell.trim().toLowerCase())
  if (!names.includes('identifier')) return undefined
  const columns = names.filter((name): name is ColumnName => name === 'identifier' || name === 'name')
  const wrong = names.find((name) => name !== 'identifier' && name !== 'name')
  if (wrong !== undefined) return { sentence: `${shown(wrong)} is not a column. Use identifier and name.` }
  if (new Set(columns).size < columns.length) return { sentence: 'A column is named twice.' }
  return { columns }
}

function readLine(line: string, columns: readonly ColumnName[]): LineResult {
  if (line.trim() === '') return { sentence: 'The line is empty.' }
  if (!line.isWellFormed() || line.includes('\0'))
    return { sentence: 'The line has a character that cannot be sent.' }
  const cells = splitCells(line)
  if ('sentence' in cells) return cells
  const used = cells.map((cell) => cell.trim())
  while (used.length > columns.length && used.at(-1) === '') used.pop()
  if (used.length > columns.length) {
    return { sentence: `The line has ${used.length} columns: an identifier and a name are two.` }
  }
  const identifier = used[columns.indexOf('identifier')] ?? ''
  const name = used[columns.indexOf('name')] || null
  const key = keyOf(identifier)
  if (typeof key === 'object') return key
  const fault = name === null ? undefined : faultOfName(name)
  return fault ?? { key, contact: { identifier, name } }
}

type LineResult = Fault | { readonly key: string; readonly contact: ListedContact }

/** The first comma, semicolon or tab separates the columns of its line; inside quotes it is text. */
function splitCells(line: string): string[] | Fault {
  const cells: string[] = []
  let separator: string | undefined
  let cell = ''
  let quoted = false
  for (let at = 0; at < line.length; at++) {
    const sign = line[at] ?? ''
    if (quoted && sign === '"' && line[at + 1] === '"') cell += line[at++]
    else if (sign === '"' && (quoted || cell.trim() === '')) quoted = !quoted
    else if (!quoted && (separator === undefined ? /[,;\t]/.test(sign) : sign === separator)) {
      separator = sign
      cells.push(cell)
      cell = ''
    } else cell += sign
  }
  if (quoted) return { sentence: 'A quotation mark is not closed on this line.' }
  return [...cells, cell]
}

function faultOfName(name: string): Fault | undefined {
  if ([...name].length > nameMax) return { sentence: 'The name has more than 200 characters.' }
  if (/^[=+\-@]/.test(name)) {
    return {
      sentence: `The name begins with ${name[0]}, as a formula does. It would be sent as it is written.`,
    }
  }
  return undefined
}

const username = /^[A-Za-z][A-Za-z0-9_]{2,31}$/

/** One contact has one key, however it is written: the service merges the same ones. Else what is wrong with it. */
function keyOf(given: string): string | Fault {
  if (given === '') return { sentence: 'The line has no identifier.' }
  if (given.length > 256) return { sentence: 'The identifier has more than 256 characters.' }
  if (given.startsWith('@')) return asUsername(given.slice(1), given)
  if (/^[1-9]\d{0,18}$/.test(given)) return `platform_id:${given}`
  if (/^\+|^[\d\s().-]+$/.test(given)) return asPhone(given)
  // The service reads every form of link; here one that does not look like a link to a person is refused.
  const [, inLink] =
    /^(?:https?:\/\/)?(?:www\.)?(?:t|telegram)\.(?:me|dog)\/@?([^/?#]+)\/?$/i.exec(given) ?? []
  if (inLink !== undefined) return inLink.startsWith('+') ? asPhone(inLink) : asUsername(inLink, given)
  if (/[/:.?#\\]/.test(given)) return unsupported(given)
  return asUsername(given, given)
}

function asUsername(text: string, given: string): string | Fault {
  if (username.test(text)) return `username:${text.toLowerCase()}`
  const foreign = [...text].find((sign) => !/[A-Za-z0-9_]/.test(sign) && sign.trim() !== '')
  if (foreign !== undefined && /\p{L}/u.test(foreign)) {
    const code = `U+${foreign.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`
    return { sentence: `${shown(given)} has the letter ${foreign} (${code}). A username has only a to z.` }
  }
  return {
    sentence: `${shown(given)} is not a username: 3 to 32 letters, digits and underscores, a letter first.`,
  }
}

function asPhone(text: string): string | Fault {
  if (!/^\+?[\d\s().-]+$/.test(text)) return unsupported(text)
  const digits = text
    .replaceAll(/\(\s*0\s*\)/g, '')
    .replaceAll(/\D/g, '')
    .replace(/^00/, '')
  return /^[1-9]\d{6,14}$/.test(digits) ? `phone:${digits}` : unsupported(text)
}

const unsupported = (given: string): Fault => ({
  sentence: `${shown(given)} is not a username, a link to one, a phone number with its country code, or an id.`,
})

const shown = (text: string) => `“${[...text].slice(0, 40).join('')}${[...text].length > 40 ? '…' : ''}”`
