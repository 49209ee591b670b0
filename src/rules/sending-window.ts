/** A workspace's sending window: on which days of the week, and between which local times. Pure. */
import { firstChange, offsetAt, type Zone } from './zones.ts'

/** Minutes of the local day on certain days of the week (ISO numbers, 1 is Monday). Excludes `to`. */
export interface SendingWindow {
  readonly days: readonly number[]
  readonly from: number
  readonly to: number
}

/** From Monday on. */
export const dayNames = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const
const spelled = dayNames.map((name) => name.toLowerCase())
const dayMs = 86_400_000
const minuteMs = 60_000

/** `mon-fri 09:00-18:00`, `mon,wed,sat-sun 8:30-24:00`. Undefined if it is not a window. */
export function parseWindow(text: string): SendingWindow | undefined {
  const found = /^\s*([a-z,\s-]+?)\s+(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})\s*$/i.exec(text)
  if (!found) return undefined
  const [, list = '', ...times] = found
  const [fromHour = 0, fromMinute = 0, toHour = 0, toMinute = 0] = times.map(Number)
  const days = new Set<number>()
  for (const part of list.toLowerCase().split(',')) {
    const [first, last, more] = part.split('-').map((name) => spelled.indexOf(name.trim()))
    if (first === undefined || first < 0 || last === -1 || more !== undefined) return undefined
    for (let day = first; ; day = (day + 1) % 7) {
      days.add(day + 1)
      if (day === (last ?? first)) break
    }
  }
  const [from, to] = [fromHour * 60 + fromMinute, toHour * 60 + toMinute]
  if (fromMinute > 59 || toMinute > 59 || to > 24 * 60 || from >= to) return undefined
  return { days: [...days].sort(), from, to }
}

/** The canonical spelling, as stored. */
export function formatWindow({ days, from, to }: SendingWindow): string {
  return `${listDays(days, ',', '-').toLowerCase()} ${clockOf(from)}-${clockOf(to)}`
}

/** As people say it: “Mon to Fri, 09:00 to 18:00”. */
export function describeWindow({ days, from, to }: SendingWindow): string {
  return `${listDays(days, ', ', ' to ')}, ${clockOf(from)} to ${clockOf(to)}`
}

/** Three days or more that follow each other are a span. */
function listDays(days: readonly number[], comma: string, to: string): string {
  const runs: number[][] = []
  for (const day of days) {
    const run = runs.at(-1)
    if (run?.at(-1) === day - 1) run.push(day)
    else runs.push([day])
  }
  const name = (day: number | undefined) => dayNames[(day ?? 1) - 1]
  return runs
    .map((run) => (run.length > 2 ? `${name(run[0])}${to}${name(run.at(-1))}` : run.map(name).join(comma)))
    .join(comma)
}

/** Such as 09:00. */
export function clockOf(minutes: number): string {
  const two = (value: number) => String(value).padStart(2, '0')
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}

/**
 * The earliest moment inside the window from `at` on; `at` itself if it is inside. A clock change can open the window
 * without the clocks reaching its beginning, repeat it or skip it, so this follows the clocks from one change to the next.
 */
export function windowOpens(window: SendingWindow, timezone: string, at: Date): Date {
  const begins = at.getTime()
  // A change can skip a whole window, so the same day of the week may have to come round twice.
  const last = begins + 16 * dayMs
  for (let from = begins; from < last; ) {
    const wait = untilInside(window, from + offsetAt(from, timezone))
    if (wait === 0) return from === begins ? at : new Date(from)
    const opens = from + wait
    const change = firstChange(from, opens, timezone) // guard: a clock change on the way to the window
    if (change === undefined) return new Date(opens)
    from = change
  }
  throw new Error(`The sending window ${formatWindow(window)} never opens in ${timezone}.`)
}

/** The same on the clocks of a workspace, whose zone may change on the way. */
export function windowOpensIn(window: SendingWindow, zone: Zone, at: Date): Date {
  const { timezone, change } = zone
  if (!change || at >= change.from) return windowOpens(window, timezone, at)
  const opens = windowOpens(window, change.before, at)
  return opens < change.from ? opens : windowOpens(window, timezone, change.from) // guard: the window follows the new zone
}

/** Milliseconds from this local time, as if it were UTC, until one that is inside, on clocks that do not change. */
function untilInside({ days, from, to }: SendingWindow, local: number): number {
  const day = Math.floor(local / dayMs)
  const sinceMidnight = local - day * dayMs
  // The first day of 1970 was a Thursday, the fourth of the week.
  const weekday = (((day + 3) % 7) + 7) % 7
  for (let ahead = 0; ahead <= 7; ahead++) {
    if (!days.includes(((weekday + ahead) % 7) + 1)) continue
    const ends = ahead * dayMs + to * minuteMs
    if (sinceMidnight < ends) return Math.max(0, ahead * dayMs + from * minuteMs - sinceMidnight)
  }
  throw new Error('A sending window needs at least one day.')
}
