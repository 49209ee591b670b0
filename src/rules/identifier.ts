/** Parses whom a caller means: a username as people write it and, where allowed, a phone number or an id. Pure. */
import { quote } from './text.ts'

export type Identifier =
  | { readonly kind: 'username'; readonly value: string }
  | { readonly kind: 'phone'; readonly value: string }
  | { readonly kind: 'id'; readonly value: string }

/** `invalid`: looks like a username and is not one. `unsupported`: something else. */
type ParsedIdentifier = Identifier | 'invalid' | 'unsupported'

const username = /^[A-Za-z][A-Za-z0-9_]{2,31}$/
const hosts = new Set([
  't.me',
  'www.t.me',
  'telegram.me',
  'www.telegram.me',
  'telegram.dog',
  'www.telegram.dog',
])
/** Addresses of the platform that are not people. */
const reserved = new Set([
  'joinchat',
  'addstickers',
  'addemoji',
  'addlist',
  'share',
  'proxy',
  'socks',
  'setlanguage',
  'login',
  'iv',
  'contact',
  'confirmphone',
  'addtheme',
  'bg',
  'boost',
  'invoice',
])
export const identifierMax = 256

export function parseIdentifier(given: string): ParsedIdentifier {
  const text = given.trim()
  if (text === '' || text.length > identifierMax) return 'invalid'
  if (text.startsWith('@')) return asUsername(text.slice(1))
  if (/^tg:/i.test(text)) return fromAppLink(text)
  if (/^https?:\/\//i.test(text)) return fromLink(text)
  if (/^[a-z.]*\.(me|dog)(\/|$)/i.test(text)) return fromLink(`https://${text}`)
  if (/^\+/.test(text)) return asPhone(text)
  if (isPlatformId(text)) return { kind: 'id', value: text }
  if (/^[\d\s().-]+$/.test(text)) return asPhone(text)
  if (/[/:.?#\\]/.test(text)) return 'unsupported'
  return asUsername(text)
}

/** A platform counts people with 64 bits. */
function isPlatformId(text: string): boolean {
  return /^[1-9]\d{0,18}$/.test(text) && BigInt(text) < 2n ** 63n
}

function asUsername(text: string): ParsedIdentifier {
  return username.test(text) ? { kind: 'username', value: text } : 'invalid'
}

function asPhone(text: string): ParsedIdentifier {
  const digits = phoneDigits(text)
  return digits === undefined ? 'unsupported' : { kind: 'phone', value: `+${digits}` }
}

/**
 * The digits of a phone number, starting with the country code, however it is written: +49 170…, 0049 170…, +49 (0)170….
 * Undefined if it is not one. Without a country code, none of which begins with zero, it is not one either: the country would
 * be a guess.
 */
export function phoneDigits(text: string): string | undefined {
  if (!/^\+?[\d\s().-]+$/.test(text.trimStart())) return undefined
  const digits = text
    .replaceAll(/\(\s*0\s*\)/g, '')
    .replaceAll(/\D/g, '')
    .replace(/^00/, '')
  return /^[1-9]\d{6,14}$/.test(digits) ? digits : undefined
}

/** A zero after the country code. In Italy, the Ivory Coast and the Congo it belongs to the number. */
const trunkZero =
  /^(?!225|242)([17]|2[07]|3[0-46]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|(?:2[1-689]|3[578]|42|5[09]|6[789]|8[035789]|9[679])\d)0/

/**
 * The digits of a number as the suppression list stores them: +49 0170… is the same number as +49 170…. Must equal
 * `phone_digits` in the database. Undefined if it is not a number.
 */
export function listedDigits(text: string): string | undefined {
  return phoneDigits(text)?.replace(trunkZero, '$1')
}

/** `tg://resolve?domain=name`, or `?phone=`. */
function fromAppLink(text: string): ParsedIdentifier {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || (url.host || url.pathname.replaceAll('/', '')) !== 'resolve') return 'unsupported'
  const domain = url.searchParams.get('domain')
  if (domain !== null) return asUsername(domain)
  const phone = url.searchParams.get('phone')
  return phone === null ? 'unsupported' : asPhone(phone)
}

/** `t.me/name`, `name.t.me`, `t.me/+49…`. A link to a message, an invitation or a file names no person. */
function fromLink(text: string): ParsedIdentifier {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || url.username || url.port) return 'unsupported'
  const segments = url.pathname.split('/').filter(Boolean)
  const [, subdomain] = /^([a-z0-9_]+)\.t\.me$/i.exec(url.hostname) ?? []
  if (subdomain && subdomain !== 'www') return segments.length === 0 ? asUsername(subdomain) : 'unsupported'
  const [name, ...more] = segments
  if (!hosts.has(url.hostname) || name === undefined || more.length > 0) return 'unsupported'
  if (name.startsWith('+')) return asPhone(name)
  if (reserved.has(name.toLowerCase()) || name.includes('%')) return 'unsupported'
  return asUsername(name.replace(/^@/, ''))
}

const contactKinds = { username: 'username', phone: 'phone', id: 'platform_id' } as const

/** One person has one normal form, however they are written: the same as on the suppression list. */
export function contactOf({ kind, value }: Identifier): string {
  return `${contactKinds[kind]}:${kind === 'phone' ? value.slice(1) : value.toLowerCase()}`
}

/** What a column of a table says about its cells; those of `identifier` may be of any kind. */
export const identityColumns = ['identifier', 'username', 'phone', 'platform_id'] as const
export type IdentityColumn = (typeof identityColumns)[number]

/** Whom the cell of such a column means, or a sentence that says why it means no person. */
export function readIdentity(column: IdentityColumn, cell: string): Identifier | string {
  const text = cell.trim()
  if (isScientific(text)) return scientific(text) // guard: digits that a spreadsheet dropped
  if (column === 'platform_id') {
    return isPlatformId(text)
      ? { kind: 'id', value: text }
      : `${quote(text)} is not a platform id: a positive whole number.`
  }
  if (column === 'phone') {
    const parsed = asPhone(text)
    return typeof parsed === 'string'
      ? `${quote(text)} is not a phone number: 7 to 15 digits, beginning with the country code.`
      : parsed
  }
  const parsed = parseIdentifier(text)
  if (typeof parsed === 'object' && (column === 'identifier' || parsed.kind === 'username')) return parsed
  return faultOfName(column, parsed, text)
}

/** As a caller writes them in a request: digits alone would be read as an id there. */
export function writeIdentity(identity: Identifier, cell: string): string {
  const parsed = parseIdentifier(cell)
  return typeof parsed === 'object' && contactOf(parsed) === contactOf(identity)
    ? cell.trim()
    : identity.value
}

function faultOfName(column: IdentityColumn, parsed: ParsedIdentifier, text: string): string {
  // Few texts have one, and looking at each sign takes long.
  const foreign = !/[^\x20-\x7e]/.test(text)
    ? undefined
    : [...text].find((sign) => /\p{L}/u.test(sign) && !/[A-Za-z]/.test(sign))
  if (parsed === 'invalid' && foreign !== undefined) {
    const code = `U+${foreign.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`
    return `${quote(text)} has the letter ${foreign} (${code}). A username has only a to z.`
  }
  return column === 'username' || parsed === 'invalid'
    ? `${quote(text)} is not a username: 3 to 32 letters, digits and underscores, a letter first.`
    : `${quote(text)} is not a username, a link to one, a phone number with its country code, or a platform id.`
}

function isScientific(text: string): boolean {
  return /^[+-]?\d+(?:[.,]\d*)?E[+-]?\d+$/i.test(text)
}

/**
 * The sentence if a row is cut at the comma of such a number: `4,91701E+11` in a table whose cells are separated by commas
 * would be id 4.
 */
export function cutNumber(cells: readonly string[], at: number): string | undefined {
  const number = cells[at]?.trim() ?? ''
  if (!/^[+-]?\d+$/.test(number)) return undefined
  const whole = `${number},${/^\d*E[+-]?\d+/i.exec(cells[at + 1]?.trim() ?? '')?.[0]}`
  return isScientific(whole) ? scientific(whole) : undefined
}

function scientific(text: string): string {
  return `${quote(text)} is scientific notation, in which a spreadsheet drops digits of a number. Format the column as text there, enter the numbers again, and save the file once more.`
}
