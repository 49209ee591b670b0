/** The sending window as the API writes it, such as `mon-fri 09:00-18:00`, and as the page paints it. */

export interface SendingWindow {
  /** ISO numbers, 1 is Monday. */
  readonly days: readonly number[]
  /** Minutes of the day; `to` is excluded. */
  readonly from: number
  readonly to: number
}

export const dayNames = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const
const dayMinutes = 24 * 60

/** Null: always. Also for a text that this page does not know. */
export function readWindow(text: string | null): SendingWindow | null {
  const found = /^([a-z,-]+) (\d\d):(\d\d)-(\d\d):(\d\d)$/.exec(text ?? '')
  if (!found) return null
  const [, list = '', ...clock] = found
  const [fromHour = 0, fromMinute = 0, toHour = 0, toMinute = 0] = clock.map(Number)
  const numberOf = (name: string | undefined) => dayNames.findIndex((each) => each.toLowerCase() === name) + 1
  const days = list.split(',').flatMap((part) => {
    const [first, last = first] = part.split('-')
    return spanOf(numberOf(first), numberOf(last))
  })
  return { days, from: fromHour * 60 + fromMinute, to: toHour * 60 + toMinute }
}

/** Null if there is nothing to send in. */
export function writeWindow({ days, from, to }: SendingWindow): string | null {
  if (days.length === 0 || from >= to) return null
  const names = days.map((day) => dayNames[day - 1]?.toLowerCase())
  return `${names.join(',')} ${clockOf(from)}-${clockOf(to)}`
}

export function clockOf(minutes: number): string {
  const two = (value: number) => String(value).padStart(2, '0')
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}

/** Both ends included, in either order. */
function spanOf(one: number, other: number): number[] {
  const first = Math.min(one, other)
  return Array.from({ length: Math.abs(one - other) + 1 }, (_, at) => first + at)
}

/** A field of the week: a day and an hour. */
export interface WeekField {
  readonly day: number
  readonly hour: number
}

/** The window from one corner of what was painted to the other. */
export function windowBetween(one: WeekField, other: WeekField): SendingWindow {
  return {
    days: spanOf(one.day, other.day),
    from: Math.min(one.hour, other.hour) * 60,
    to: (Math.max(one.hour, other.hour) + 1) * 60,
  }
}

/** Which part of an hour is inside, from 0 to 1, and where it begins. */
export function partOf({ days, from, to }: SendingWindow, { day, hour }: WeekField) {
  const begins = Math.max(from, hour * 60)
  const ends = Math.min(to, (hour + 1) * 60)
  const inside = days.includes(day) && ends > begins
  return inside ? { start: (begins - hour * 60) / 60, size: (ends - begins) / 60 } : { start: 0, size: 0 }
}

export function isDay({ from, to }: SendingWindow): boolean {
  return from >= 0 && from < to && to <= dayMinutes
}

/** For people: “Mon, Tue, Wed, 09:00 to 18:00”. */
export function describeWindow({ days, from, to }: SendingWindow): string {
  if (days.length === 0) return 'No day is chosen'
  const runs: number[][] = []
  for (const day of days) {
    const run = runs.at(-1)
    if (run?.at(-1) === day - 1) run.push(day)
    else runs.push([day])
  }
  const name = (day: number | undefined) => dayNames[(day ?? 1) - 1]
  const list = runs.map((run) =>
    run.length > 2 ? `${name(run[0])} to ${name(run.at(-1))}` : run.map(name).join(', '),
  )
  return `${list.join(', ')}, ${clockOf(from)} to ${clockOf(to)}`
}
