/** What counts as text here, and how JSON from untrusted callers is read. */
import { isWellFormed, quote } from '../rules/text.ts'
import { ApiError } from './errors.ts'

export { hideTokens, isBlank, isWellFormed, lengthOf, quote, shorten } from '../rules/text.ts'

export const depthMax = 32
/** Twice what the largest legal body has, and far below a size that is costly to check. */
export const propertiesMax = 200
export const itemsMax = 10_000
/** Of a whole body: five times what the largest legal one has, and few enough to take over from a thread in 20 ms. */
export const valuesMax = 100_000
/** Different ones in a whole body, which the engine keeps one by one: 750,000 took the thread that serves requests for 3 s. */
export const namesMax = 1_000

/**
 * The same value without what cannot be stored. For data from platforms, where refusing would block everything behind it;
 * data from callers is refused.
 */
export function toWellFormed<T>(value: T): T {
  const text = JSON.stringify(value)
  // JSON escapes both NUL and lone surrogates, so this finds them; most values contain neither.
  if (!/\\u(0000|d[89a-f])/.test(text)) return value
  return JSON.parse(text, (_, each) =>
    typeof each === 'string' ? each.replaceAll('\0', '').toWellFormed() : each,
  )
}

/** Parses JSON and refuses what `JSON.parse` would accept or crash on. */
export function parseJson(bytes: Uint8Array): unknown {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new ApiError('invalid_text', { detail: 'The body is not valid UTF-8.' })
  }
  refuseOddStructure(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new ApiError('invalid_request', { detail: 'The body is not valid JSON.' })
  }
  requireWellFormed(value)
  noteWellFormed(value)
  return value
}

/** Bodies that have been checked, so that no schema checks them a second time. */
const wellFormed = new WeakSet<object>()

/** Only for a value that `requireWellFormed` has passed, and that no code changes. */
export function noteWellFormed(value: unknown): void {
  if (typeof value === 'object' && value !== null) wellFormed.add(value)
}

/** An object with its keys so far, or an array; and the number of commas in it. */
interface Level {
  readonly keys: Set<string> | null
  commas: number
}

/**
 * One pass over the raw text: depth, size of objects, arrays and the whole, keys that appear twice in one object or are
 * too many, `__proto__`.
 */
function refuseOddStructure(text: string): void {
  const levels: Level[] = []
  const names = new Set<string>()
  let values = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x7b: // {
      case 0x5b: // [
        values++
        levels.push({ keys: text.charCodeAt(at) === 0x7b ? new Set() : null, commas: 0 })
        if (levels.length > depthMax) {
          throw new ApiError('invalid_request', {
            detail: `The body is nested deeper than ${depthMax} levels.`,
          })
        }
        break
      case 0x7d: // }
      case 0x5d: // ]
        levels.pop()
        break
      case 0x2c: // ,
        values++
        countComma(levels.at(-1))
        break
      case 0x22: {
        const end = endOfString(text, at)
        const seen = levels.at(-1)?.keys
        if (seen && isKey(text, end)) names.add(readKey(text.slice(at, end + 1), seen))
        at = end
      }
    }
    if (values > valuesMax) throw tooMany('values', valuesMax) // guard: values of a body
    if (names.size > namesMax) throw tooMany('different property names', namesMax) // guard: property names of a body
  }
}

function tooMany(what: string, most: number): ApiError {
  const detail = `The body has more than ${most.toLocaleString('en')} ${what}.`
  return new ApiError('invalid_request', { detail })
}

/** Each comma means one more property or item. */
function countComma(level: Level | undefined): void {
  if (!level) return
  level.commas++
  if (level.keys && level.commas >= propertiesMax) {
    throw new ApiError('invalid_request', {
      detail: `An object in the body has more than ${propertiesMax} properties.`,
    })
  }
  if (level.commas >= itemsMax) {
    throw new ApiError('invalid_request', {
      detail: `An array in the body has more than ${itemsMax.toLocaleString('en')} items.`,
    })
  }
}

function endOfString(text: string, start: number): number {
  for (let at = start; ; ) {
    const end = text.indexOf('"', at + 1)
    if (end < 0) return text.length
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes++
    // Two of them stand for one, and an odd one escapes the quote.
    if (slashes % 2 === 0) return end
    at = end
  }
}

function isKey(text: string, end: number): boolean {
  let at = end + 1
  while (' \t\r\n'.includes(text.charAt(at)) && at < text.length) at++
  return text.charCodeAt(at) === 0x3a
}

function readKey(literal: string, seen: Set<string>): string {
  const key = literal.includes('\\') ? decodeKey(literal) : literal.slice(1, -1)
  if (key === '__proto__') {
    throw new ApiError('invalid_request', { detail: 'The property "__proto__" is not allowed.' })
  }
  if (seen.has(key)) {
    throw new ApiError('invalid_request', { detail: `The property ${quote(key)} appears twice.` })
  }
  seen.add(key)
  return key
}

function decodeKey(literal: string): string {
  try {
    return JSON.parse(literal)
  } catch {
    throw new ApiError('invalid_request', { detail: 'The body is not valid JSON.' })
  }
}

type Path = readonly (string | number | symbol)[]

/** Throws unless every string and key of the value is well-formed and every number finite. */
export function requireWellFormed(value: unknown): void {
  if (typeof value === 'object' && value !== null && wellFormed.has(value)) return
  const fault = findFault(value)
  if (!fault) return
  const where = nameOf(fault.path)
  if (fault.kind === 'number') {
    throw new ApiError('invalid_request', { detail: `${where || 'A number'} is out of range.` })
  }
  throw new ApiError(
    'invalid_text',
    where ? { detail: `${where} contains a NUL character or a lone surrogate.` } : {},
  )
}

interface Fault {
  readonly kind: 'text' | 'number'
  readonly path: (string | number)[]
}

/** Where the first fault is; builds the path only if there is one. */
function findFault(value: unknown): Fault | undefined {
  if (typeof value === 'string') return isWellFormed(value) ? undefined : { kind: 'text', path: [] }
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : { kind: 'number', path: [] }
  if (value === null || typeof value !== 'object') return undefined
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      const fault = findFault(value[at])
      if (fault) return { ...fault, path: [at, ...fault.path] }
    }
    return undefined
  }
  for (const key in value) {
    if (!isWellFormed(key)) return { kind: 'text', path: [] }
    const fault = findFault((value as Record<string, unknown>)[key])
    if (fault) return { ...fault, path: [key, ...fault.path] }
  }
  return undefined
}

/** A place in a value as people write it: `recipients[3].chat_id`. */
export function nameOf(path: Path): string {
  return path
    .map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at ? '.' : ''}${String(part)}`))
    .join('')
}
