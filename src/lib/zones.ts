/** Local times in time zones whose clocks change. Pure. */

const formats = new Map<string, Intl.DateTimeFormat>()
const dayMs = 86_400_000

/** The local date and time, as if it were UTC. Throws where the zone is unknown. */
export function localTime(at: Date, timezone: string): Date {
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
  const parts: Record<string, string> = {}
  for (const { type, value } of format.formatToParts(at)) parts[type] = value
  const number = (name: string) => Number(parts[name])
  const [year, month] = [number('year'), number('month') - 1]
  const ms = at.getTime()
  const below = ((ms % 1_000) + 1_000) % 1_000
  return new Date(
    Date.UTC(year, month, number('day'), number('hour'), number('minute'), number('second'), below),
  )
}

/** The day it is there, such as 2026-03-29. */
export function localDay(at: Date, timezone: string): string {
  return localTime(at, timezone).toISOString().slice(0, 10)
}

/**
 * Every instant at which clocks there show this local time, earliest first: one, two where the hour is repeated, none
 * where it is skipped.
 */
function instantsOf(local: Date, timezone: string): Date[] {
  const both = candidates(local, timezone)
  return both.filter((at) => localTime(at, timezone).getTime() === local.getTime())
}

/** What the local time would be with the offset of the day before, and of the day after. */
function candidates(local: Date, timezone: string): Date[] {
  const found = [-dayMs, dayMs].map((away) => {
    const at = new Date(local.getTime() + away)
    const offset = localTime(at, timezone).getTime() - at.getTime()
    return local.getTime() - offset
  })
  return [...new Set(found)].sort((one, other) => one - other).map((ms) => new Date(ms))
}

/**
 * When this local time is. A time that a clock change skips or repeats means the later instant that it could mean, and
 * `changed` says so.
 */
export function laterInstant(
  local: Date,
  timezone: string,
): { readonly at: Date; readonly changed: boolean } {
  const valid = instantsOf(local, timezone)
  const at = valid.at(-1) ?? candidates(local, timezone).at(-1) ?? local
  return { at, changed: valid.length !== 1 }
}

/** The first instant from which on clocks there show this local time or a later one. */
export function firstInstant(local: Date, timezone: string): Date {
  const [valid] = instantsOf(local, timezone)
  if (valid) return valid
  const both = candidates(local, timezone).map((at) => at.getTime())
  let [before, after] = [Math.min(...both) - 1, Math.max(...both)]
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (localTime(new Date(middle), timezone).getTime() >= local.getTime()) after = middle
    else before = middle
  }
  return new Date(after)
}

/** When the next day begins there. Where midnight is skipped, with the first moment there is. */
export function nextDay(at: Date, timezone: string): Date {
  const today = localTime(at, timezone)
  today.setUTCHours(0, 0, 0, 0)
  for (let days = 1; ; days++) {
    const begins = firstInstant(new Date(today.getTime() + days * dayMs), timezone)
    if (begins > at) return begins
  }
}

/** The first moment after `from` and not after `to` from which on clocks there are set differently; undefined: none. */
export function firstChange(from: Date, to: Date, timezone: string): Date | undefined {
  const offset = (ms: number) => localTime(new Date(ms), timezone).getTime() - ms
  const before = offset(from.getTime())
  // A day at a time: no zone changes its clocks twice within one.
  for (let known = from.getTime(); known < to.getTime(); ) {
    let different = Math.min(known + dayMs, to.getTime())
    if (offset(different) === before) {
      known = different
      continue
    }
    while (different - known > 1) {
      const middle = Math.floor((known + different) / 2)
      if (offset(middle) === before) known = middle
      else different = middle
    }
    return new Date(different)
  }
  return undefined
}
