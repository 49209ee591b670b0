/** Local times in time zones whose clocks change. Pure. */

const formats = new Map<string, Intl.DateTimeFormat>()
const dayMs = 86_400_000

/** The local date and time, as if it were UTC. Throws if the zone is unknown. */
export function localTime(at: Date, timezone: string): Date {
  return new Date(at.getTime() + offsetAt(at.getTime(), timezone))
}

/** Some days of a zone. Its clocks change at most once in them, at `changesAt`. */
interface Span {
  readonly before: number
  readonly changesAt: number
  readonly after: number
}

/** By zone, then by number. `Intl` takes microseconds, and a forecast reads the days of years. */
const spans = new Map<string, Map<number, Span>>()
/** No zone has changed its clocks twice within six days since 1970. */
const spanMs = 4 * dayMs
/** For all zones together: about 4 MB. */
const spansMax = 50_000
let spansKnown = 0

/** The span that was asked for last: a forecast asks for the same days again and again. */
let lastSpan: { readonly timezone: string; readonly number: number; readonly span: Span } | undefined

/** How far the zone's clocks are ahead of UTC, in milliseconds. */
export function offsetAt(ms: number, timezone: string): number {
  if (ms < 0) return readOffset(ms, timezone)
  const { before, changesAt, after } = spanOf(Math.floor(ms / spanMs), timezone)
  return ms < changesAt ? before : after
}

function spanOf(number: number, timezone: string): Span {
  if (lastSpan?.number === number && lastSpan.timezone === timezone) return lastSpan.span
  const span = spans.get(timezone)?.get(number) ?? learnSpan(number, timezone)
  lastSpan = { timezone, number, span }
  return span
}

function learnSpan(number: number, timezone: string): Span {
  if (++spansKnown > spansMax) {
    spans.clear()
    spansKnown = 1
  }
  const known = spans.get(timezone) ?? new Map<number, Span>()
  spans.set(timezone, known)
  const [from, to] = [number * spanMs, (number + 1) * spanMs]
  const before = known.get(number - 1)?.after ?? readOffset(from, timezone)
  const after = readOffset(to, timezone)
  const changesAt =
    before === after ? to : bisect(from, to, 1_000, (ms) => readOffset(ms, timezone) === after)
  const span = { before, changesAt, after }
  known.set(number, span)
  return span
}

/** The first moment above `low`, at most `high`, from which on `holds` is true. `high - low` is a multiple of `unit`. */
function bisect(low: number, high: number, unit: number, holds: (ms: number) => boolean): number {
  let [before, after] = [low, high]
  while (after - before > unit) {
    const middle = before + Math.floor((after - before) / (2 * unit)) * unit
    if (holds(middle)) after = middle
    else before = middle
  }
  return after
}

function readOffset(ms: number, timezone: string): number {
  let format = formats.get(timezone)
  if (!format) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: timezone,
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    formats.set(timezone, format)
  }
  // As "3/29/2026 A, 03:00:00": takes a third of the time of `formatToParts`.
  const numbers = format.format(ms).match(/\d+/g)?.map(Number) ?? []
  const [month = 0, day = 0, year = 0, hour = 0, minute = 0, second = 0] = numbers
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / 1_000) * 1_000
}

/** The zone's local date, such as 2026-03-29. */
export function localDay(at: Date, timezone: string): string {
  const local = localTime(at, timezone)
  const year = local.getUTCFullYear()
  if (year < 1_000 || year > 9_999) return local.toISOString().slice(0, 10)
  const two = (value: number) => (value < 10 ? `0${value}` : value)
  return `${year}-${two(local.getUTCMonth() + 1)}-${two(local.getUTCDate())}`
}

/** Whether the zone's clocks show the same day at both moments. */
export function isSameDay(one: Date, other: Date, timezone: string): boolean {
  return dayNumber(one, timezone) === dayNumber(other, timezone)
}

function dayNumber(at: Date, timezone: string): number {
  return Math.floor((at.getTime() + offsetAt(at.getTime(), timezone)) / dayMs)
}

/**
 * Every instant at which the zone's clocks show this local time, earliest first: one, two if the hour is repeated, none if
 * it is skipped.
 */
function instantsOf(local: Date, timezone: string): Date[] {
  const both = candidates(local, timezone)
  return both.filter((at) => localTime(at, timezone).getTime() === local.getTime())
}

/** The instants that the offsets of the day before and of the day after give for the local time, earliest first. */
function candidates(local: Date, timezone: string): Date[] {
  const ms = local.getTime()
  const [before, after] = [offsetAt(ms - dayMs, timezone), offsetAt(ms + dayMs, timezone)]
  if (before === after) return [new Date(ms - before)]
  return [new Date(ms - Math.max(before, after)), new Date(ms - Math.min(before, after))]
}

/**
 * The instant of a local time. If a clock change skips or repeats it, this is the later of the possible instants, and
 * `changed` is true.
 */
export function laterInstant(
  local: Date,
  timezone: string,
): { readonly at: Date; readonly changed: boolean } {
  const valid = instantsOf(local, timezone)
  const at = valid.at(-1) ?? candidates(local, timezone).at(-1) ?? local
  return { at, changed: valid.length !== 1 }
}

/** The first instant from which on the zone's clocks show this local time or a later one. */
export function firstInstant(local: Date, timezone: string): Date {
  const [valid] = instantsOf(local, timezone)
  if (valid) return valid
  const both = candidates(local, timezone).map((at) => at.getTime())
  const reached = (ms: number) => localTime(new Date(ms), timezone).getTime() >= local.getTime()
  return new Date(bisect(Math.min(...both) - 1, Math.max(...both), 1, reached))
}

/** The last result: a forecast asks for the same day again and again. */
let lastDay = { timezone: '', from: 0, ends: 0 }

/** When the zone's next day begins. If midnight is skipped, it begins with the first moment there is. */
export function nextDay(at: Date, timezone: string): Date {
  const ms = at.getTime()
  if (timezone === lastDay.timezone && ms >= lastDay.from && ms < lastDay.ends) return new Date(lastDay.ends)
  const today = dayNumber(at, timezone)
  for (let days = 1; ; days++) {
    const begins = firstInstant(new Date((today + days) * dayMs), timezone)
    if (begins <= at) continue
    lastDay = { timezone, from: ms, ends: begins.getTime() }
    return begins
  }
}

/** The first moment after `from`, at most `to`, at which the zone's clocks change; undefined if they do not. */
export function firstChange(from: number, to: number, timezone: string): number | undefined {
  for (let number = Math.floor(from / spanMs); number * spanMs <= to; number++) {
    const { before, changesAt, after } = spanOf(number, timezone)
    if (before !== after && changesAt > from) return changesAt <= to ? changesAt : undefined
  }
  return undefined
}
