/** Local times in time zones whose clocks change. Pure. */

const formats = new Map<string, Intl.DateTimeFormat>()
const dayMs = 86_400_000

/** The local date and time, as if it were UTC. Throws if the zone is unknown. */
export function localTime(at: Date, timezone: string): Date {
  return new Date(at.getTime() + offsetAt(at.getTime(), timezone))
}

/** `Berlin time`: stands beside a time that follows this zone and not the reader's. */
export function zoneWords(timezone: string): string {
  const place = timezone.split('/').at(-1)?.replaceAll('_', ' ') ?? timezone
  return timezone.includes('/') && !timezone.startsWith('Etc/') ? `${place} time` : place
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

export interface LocalInstant {
  readonly at: Date
  /** What the clocks do at this local time. */
  readonly kind: 'plain' | 'skipped' | 'repeated'
}

/** The instant of a local time. If a clock change skips or repeats it, this is the later of the possible instants. */
export function laterInstant(local: Date, timezone: string): LocalInstant {
  const valid = instantsOf(local, timezone)
  const at = valid.at(-1) ?? candidates(local, timezone).at(-1) ?? local
  return { at, kind: valid.length === 0 ? 'skipped' : valid.length === 1 ? 'plain' : 'repeated' }
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

/** The change of a workspace's zone that was made last. */
export interface ZoneChange {
  /** The zone that holds until `from`. */
  readonly before: string
  /** The end of the day that had begun at the change. */
  readonly from: Date
  /** That day. Days never go back behind it, however far the two zones are apart. */
  readonly floor: string
}

/** The clocks of a workspace. A new zone holds from the end of the day that has begun, so a change opens no second day. */
export interface Zone {
  readonly timezone: string
  readonly change?: ZoneChange | null
}

/** The zone that holds at this moment. */
export function zoneAt({ timezone, change }: Zone, at: Date): string {
  return change && at < change.from ? change.before : timezone // guard: a new zone holds from the end of the day
}

/** The workspace's day at this moment, such as 2026-03-29: whose quota a message uses. */
export function dayAt(zone: Zone, at: Date): string {
  const day = localDay(at, zoneAt(zone, at))
  const floor = zone.change?.floor ?? day
  return day < floor ? floor : day // guard: days do not go back
}

export function isSameDayIn(zone: Zone, one: Date, other: Date): boolean {
  return zone.change ? dayAt(zone, one) === dayAt(zone, other) : isSameDay(one, other, zone.timezone)
}

/** When the workspace's next day begins. */
export function dayEnds(zone: Zone, at: Date): Date {
  const { timezone, change } = zone
  if (!change) return nextDay(at, timezone)
  const today = dayAt(zone, at)
  let ends = at
  do ends = midnightAfter(zone, ends)
  while (dayAt(zone, ends) <= today) // guard: the day goes on in a zone that is behind
  return ends
}

/** When the day ends in the zone that holds at this moment, and at the latest when the next zone begins to hold. */
function midnightAfter(zone: Zone, at: Date): Date {
  const midnight = nextDay(at, zoneAt(zone, at))
  const from = zone.change?.from
  return from && at < from && midnight > from ? from : midnight
}

/** What a change to another zone stores. Of several changes in one day, each holds from the end of that day. */
export function changeOf(zone: Zone, now: Date): ZoneChange {
  return { before: zoneAt(zone, now), from: midnightAfter(zone, now), floor: dayAt(zone, now) }
}

/** The first moment after `from`, at most `to`, at which the zone's clocks change; undefined if they do not. */
export function firstChange(from: number, to: number, timezone: string): number | undefined {
  for (let number = Math.floor(from / spanMs); number * spanMs <= to; number++) {
    const { before, changesAt, after } = spanOf(number, timezone)
    if (before !== after && changesAt > from) return changesAt <= to ? changesAt : undefined
  }
  return undefined
}
