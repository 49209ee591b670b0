/** Which values each column type allows. Pure. */
import { parseTime } from '../../lib/shapes.ts'
import { isBlank, lengthOf, quote } from '../../lib/text.ts'

export const columnTypes = ['select', 'multi_select', 'text', 'number', 'date', 'checkbox', 'url'] as const
export type ColumnType = (typeof columnTypes)[number]

const textMax = 2_000
const urlMax = 2_048

/** What is wrong with the value, as a continuation of "value …"; undefined if it is valid. An empty value clears. */
export function findProblem(
  type: ColumnType,
  value: readonly string[],
  options: readonly string[],
): string | undefined {
  if (value.length === 0) return undefined
  if (type === 'multi_select') {
    const twice = value.find((each, at) => value.indexOf(each) !== at)
    if (twice !== undefined) return `names ${quote(twice)} twice`
    const unknown = value.find((each) => !options.includes(each))
    return unknown === undefined ? undefined : notAnOption(unknown, options)
  }
  const [one = '', another] = value
  if (another !== undefined) return `must have one item, because the column's type is ${type}`
  return type === 'select'
    ? options.includes(one)
      ? undefined
      : notAnOption(one, options)
    : rules[type](one)
}

/** How many options an error lists. */
const namedMax = 10

function notAnOption(value: string, options: readonly string[]): string {
  const which = options.length > namedMax ? 'its first ten are' : 'they are'
  const named = options.slice(0, namedMax).map(quote).join(', ')
  return `must be an option of the column; ${quote(value)} is none${named && `, ${which} ${named}`}`
}

const rules: Record<Exclude<ColumnType, 'select' | 'multi_select'>, (text: string) => string | undefined> = {
  text: (text) =>
    isBlank(text) || lengthOf(text) > textMax
      ? `must be a text of 1 to ${textMax} characters; an empty array clears the value`
      : undefined,
  number: (text) =>
    isCanonical(text)
      ? undefined
      : 'must be a number in its shortest form, such as -3, 0 or 12.5, with at most 18 digits on each side of the point',
  date: (text) =>
    /^\d{4}-\d\d-\d\d$/.test(text) && parseTime(text) ? undefined : 'must be a date, such as 2027-01-31',
  checkbox: (text) => (text === 'true' || text === 'false' ? undefined : 'must be "true" or "false"'),
  url: (text) =>
    isWebAddress(text)
      ? undefined
      : `must be a URL that begins with http:// or https://, of at most ${urlMax} characters`,
}

/** Each number has one form, so that equal values are equal texts: no exponent, no plus, no superfluous zeros. */
function isCanonical(text: string): boolean {
  return /^(0|-?[1-9]\d{0,17}|-?(0|[1-9]\d{0,17})\.\d{0,17}[1-9])$/.test(text)
}

/** Refuses addresses that display another host than they open: with a user name, or with characters that reverse text. */
function isWebAddress(text: string): boolean {
  const plain = /^https?:\/\/[^/?#@\s]+([/?#]|$)/i.test(text) && !/[\s\p{Cc}\p{Bidi_Control}\\]/u.test(text)
  return plain && lengthOf(text) <= urlMax && URL.canParse(text)
}
