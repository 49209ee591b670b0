/** The shapes that several operations share, as the contract defines them. */
import { z } from 'zod'
import { isBlank, lengthOf } from './text.ts'

export const chatPrefix = 'platform:chat:'

/** A chat as the contract names it, such as `platform:chat:42`. */
export type ChatId = `${typeof chatPrefix}${number}`

/** The same chat in the database and on the platforms, such as `42`. Neither is ever a JavaScript number. */
export type ChatNumber = `${number}`

const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n }
const canonical = /^(0|-?[1-9][0-9]{0,18})$/

/** For the document: the whole numbers from 1 to `most`, which has 19 digits, as a regular expression. */
function upTo(most: bigint): string {
  const digits = [...String(most)].map(Number)
  const below = digits.flatMap((digit, at) => {
    const least = at === 0 ? 1 : 0
    const start = digits.slice(0, at).join('')
    const rest = digits.length - at - 1
    return digit > least ? [`${start}[${least}-${digit - 1}]${rest > 0 ? `[0-9]{${rest}}` : ''}`] : []
  })
  return ['[1-9][0-9]{0,17}', ...below, String(most)].join('|')
}

const positive = upTo(int64.max)
/** What callers may write. In answers a shorter pattern says enough. */
export const givenChatPattern = `^platform:chat:(0|-?(${positive})|${int64.min})$`
export const personChatPattern = `^platform:chat:(0|${positive})$`
export const chatPattern = '^platform:chat:(0|-?[1-9][0-9]{0,18})$'

/** `platform:chat:<integer>`, a canonical int64. */
export const chatId = z
  .string()
  .refine(isChatId, { message: 'must be platform:chat: and an integer, such as platform:chat:42' })
  .transform((text) => text as ChatId)
  .meta({
    description: 'Id of the chat, such as `platform:chat:42`.',
    openapi: { type: 'string', pattern: givenChatPattern, examples: ['platform:chat:42'] },
  })

export const chatNumberShape = z.custom<ChatNumber>(
  (value) => typeof value === 'string' && canonical.test(value),
)

function isChatId(text: string): boolean {
  if (!text.startsWith(chatPrefix)) return false
  return isInt64(text.slice(chatPrefix.length))
}

function isInt64(digits: string): boolean {
  if (!canonical.test(digits)) return false
  const value = BigInt(digits)
  return value >= int64.min && value <= int64.max
}

export function chatNumber(chat_id: ChatId): ChatNumber {
  return chat_id.slice(chatPrefix.length) as ChatNumber
}

export function chatIdOf(number: ChatNumber): ChatId {
  return `${chatPrefix}${number}`
}

/** Id of a message: an int64, as the platforms number them. */
export const messageId = z
  .string()
  .refine(isInt64, { message: 'must be the id of a message' })
  .meta({ openapi: { type: 'string', pattern: `^(0|-?(${positive})|${int64.min})$` } })

export const accountId = z
  .string()
  .min(1, 'must not be empty')
  .max(100, 'is not an account id')
  .meta({
    description: 'Id of the account, from `GET /me`.',
    openapi: { type: 'string', minLength: 1, maxLength: 100, examples: ['acc_2Jk9vQ7wXb4LmN8pRt3Z'] },
  })

/** For operations whose contract requires it, unless the operator has opened the gate `extended`. */
export const scopedAccountId = accountId.optional().meta({
  description: 'Id of the account, from `GET /me`. Required unless the gate `extended` is open.',
})

/** Text of 1 to `most` code points that is not just white space, in the document. */
export function textSchema(most: number) {
  return { type: 'string', minLength: 1, maxLength: most, pattern: '\\S' }
}

/** Text of 1 to `most` code points that is not just white space. */
export function text(most: number) {
  return z
    .string()
    .refine((value) => !isBlank(value), { message: 'must not be blank' })
    .refine((value) => lengthOf(value) <= most, { message: `must have at most ${most} characters` })
    .meta({ openapi: textSchema(most) })
}

/** The colour of something new; null or undefined: none. `requireColor` checks its name. */
export const newColor = z
  .string()
  .nullable()
  .optional()
  .meta({ description: 'A name such as blue, or #3366ff.' })

/** The same, of something that has one: null removes it. */
export const color = newColor.meta({ description: 'A name such as blue, or #3366ff; null removes it.' })

/** A place in an order that people choose. Beyond the end it means the end. */
export const place = z
  .int()
  .min(1)
  .max(1_000)
  .optional()
  .meta({ description: 'Position in the order, from 1.' })

/** A page size in a query string: outside its range is refused, never clamped. */
function pageSize(most: number) {
  return z
    .string()
    .refine((value) => /^[1-9][0-9]{0,3}$/.test(value) && Number(value) <= most, {
      message: `must be a whole number from 1 to ${most}`,
    })
    .transform(Number)
}

export function limit(most: number, standard: number) {
  return pageSize(most)
    .default(standard)
    .meta({
      description: 'Maximum number of items per page.',
      openapi: { type: 'integer', minimum: 1, maximum: most, default: standard },
    })
}

/** An optional page size: without it, one answer returns everything. */
export function pageLimit(most: number) {
  return pageSize(most)
    .optional()
    .meta({
      description: 'Maximum number of items per page. Without it, one response returns everything.',
      openapi: { type: 'integer', minimum: 1, maximum: most },
    })
}

export const cursor = z
  .string()
  .optional()
  .meta({ description: '`next_cursor` of the previous page.', openapi: { type: 'string' } })

const rfc3339 =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+ -])(\d\d):(\d\d))?)?$/

/** A time as written: to the millisecond, plus the digits below it. */
interface WrittenTime {
  readonly at: Date
  readonly finer: string
}

/** Reads a time as the contract allows: RFC 3339, UTC when no offset is given, or a bare date. */
export function readTime(value: string): WrittenTime | undefined {
  const match = rfc3339.exec(value)
  if (!match) return undefined
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', sign, oh, om] = match
  // Date reads 24:00 as the next midnight; RFC 3339 has no such hour.
  if (Number(hour) > 23 || Number(oh ?? 0) > 23 || Number(om ?? 0) > 59) return undefined
  // In a query string the plus of an offset arrives as a space.
  const offset = sign ? `${sign === ' ' ? '+' : sign}${oh}:${om}` : 'Z'
  // No clock here counts leap seconds: one reads as the second after it.
  const leap = second === '60'
  const whole = `${year}-${month}-${day}T${hour}:${minute}:${leap ? '59' : second}${offset}`
  const at = new Date(Date.parse(whole) + (leap ? 1_000 : 0) + Number(fraction.slice(0, 3).padEnd(3, '0')))
  // Nor may an offset carry it outside the years that four digits can express.
  const inYears = at.getUTCFullYear() >= 1 && at.getUTCFullYear() <= 9999
  if (Number(year) < 1 || !inYears) return undefined
  // Date rolls the 31st of a short month over; here it is not a date.
  const rolled = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)))
  if (rolled.getUTCMonth() !== Number(month) - 1 || rolled.getUTCDate() !== Number(day)) return undefined
  return { at, finer: fraction.slice(3) }
}

export function parseTime(value: string): Date | undefined {
  return readTime(value)?.at
}

/**
 * The first millisecond that is not before this time. Messages have milliseconds, so "before" and "from" select the same
 * messages as the written time, however fine it is.
 */
export function parseBound(value: string): Date | undefined {
  const time = readTime(value)
  return time && new Date(time.at.getTime() + (/[1-9]/.test(time.finer) ? 1 : 0))
}

const leapYear = '([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)'
/** A day that exists, for the document. */
const day = [
  '(?!0000)([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])',
  '(0[469]|11)-(0[1-9]|[12][0-9]|30)',
  `02-(0[1-9]|1[0-9]|2[0-8]))|${leapYear}-02-29)`,
].join('|')
const clock =
  '[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?'

/**
 * The format `date-time` requires an offset, which the contract does not. One string with a pattern: generators make `unknown` of
 * a choice between formats.
 */
export const timeSchema = { type: 'string', pattern: `^${day}${clock}$`, examples: ['2026-11-16T09:00:00Z'] }
export const timeOrDateSchema = {
  ...{ type: 'string', pattern: `^${day}(${clock})?$` },
  examples: ['2026-11-16', '2026-11-16T09:00:00Z'],
}

/** A bound of a search: a date or a time. */
export const time = z
  .string()
  .refine((value) => parseBound(value) !== undefined, { message: 'must be a date or an RFC 3339 time' })
  .transform((value) => parseBound(value) as Date)
  .meta({ openapi: timeOrDateSchema })
