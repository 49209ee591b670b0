/** Times as people say them, with the exact time on hover, in the profile's time zone. */
import { createContext, useContext } from 'react'
import { SharedState, useShared } from '../data/shared-state.ts'

/** Null: the browser's own. */
export const TimeZone = createContext<string | null>(null)

const words = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const dayMs = 86_400_000
const units: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['hour', 3_600],
  ['minute', 60],
]

function relative(at: Date, now: Date): string {
  const seconds = (at.getTime() - now.getTime()) / 1_000
  for (const [unit, length] of units) {
    if (Math.abs(seconds) >= length) return words.format(Math.round(seconds / length), unit)
  }
  return seconds > 0 ? 'in less than a minute' : 'just now'
}

/** One clock for all times on a page: otherwise every row of a long list would have its own timer. */
const clockOf = (everyMs: number) =>
  new SharedState(new Date(), {
    read: (before) => (Date.now() - before.getTime() > everyMs ? new Date() : before),
    follow: (set) => {
      const timer = setInterval(() => set(new Date()), everyMs)
      return () => clearInterval(timer)
    },
  })

const slow = clockOf(30_000)
const fast = clockOf(500)

/** The time, as often as pages show another one. */
export const useNow = () => useShared(slow)

const formats = new Map<string, Intl.DateTimeFormat>()

/** Creating a formatter takes longer than a list can afford per row. */
function format(zone: string | null, name: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${zone} ${name}`
  const timeZone = zone ?? undefined // guard: times in the zone of the profile
  const made = formats.get(key) ?? new Intl.DateTimeFormat('en-GB', { ...options, timeZone })
  formats.set(key, made)
  return made
}

interface TimeProps {
  at: string
  exact?: boolean
  /** It may lie ahead. Otherwise it has happened, which the page's clock, that ticks twice a minute, may not know yet. */
  ahead?: boolean
}

/** Relative up to a day, then the date. */
export function Time({ at, exact = false, ahead = false }: TimeProps) {
  const zone = useContext(TimeZone)
  const ticked = useNow()
  const date = new Date(at)
  const now = !ahead && date > ticked ? date : ticked
  const timeStyle = exact ? 'short' : 'long'
  const full = format(zone, timeStyle, { dateStyle: 'medium', timeStyle }).format(date)
  const day = format(zone, 'medium', { dateStyle: 'medium' }).format(date)
  return (
    <time dateTime={at} title={full} className="whitespace-nowrap">
      {exact ? full : Math.abs(date.getTime() - now.getTime()) < dayMs ? relative(date, now) : day}
    </time>
  )
}

/** The minutes and seconds left. Screen readers announce only minutes, or they would never be quiet. */
export function Countdown({ until, label, calm = false }: CountdownProps) {
  const now = useShared(fast)
  const left = Math.max(0, Math.ceil((new Date(until).getTime() - now.getTime()) / 1_000))
  const minutes = Math.floor(left / 60)
  const hours = Math.floor(minutes / 60)
  const spoken = hours > 0 ? `${hours} h` : minutes > 0 ? `${minutes} min` : 'less than a minute'
  return (
    <span role="timer" aria-label={`${label}: ${spoken}`}>
      <span aria-hidden className={left < 120 && !calm ? 'font-semibold text-warn' : ''}>
        {hours > 0 ? `${hours}:${twoDigits(minutes % 60)}` : minutes}:{twoDigits(left % 60)}
      </span>
    </span>
  )
}

/** Whether this time has come. The page is drawn again when it does. */
export function useHasCome(at: string): boolean {
  return useShared(fast) >= new Date(at)
}

interface CountdownProps {
  until: string
  label: string
  /** The user has nothing to do before the end. */
  calm?: boolean
}

const twoDigits = (value: number) => String(value).padStart(2, '0')

/** The time of day; for another day its date too. */
export function ClockTime({ at }: { at: string }) {
  const { clock, moment, isToday } = useClock()
  return (
    <time dateTime={at} className="whitespace-nowrap">
      {isToday(at) ? clock(at) : moment(at)}
    </time>
  )
}

/** Times of messages and lists, in the profile's time zone. */
export function useClock() {
  const zone = useContext(TimeZone)
  const now = useNow()
  const numbers = { year: 'numeric', month: '2-digit', day: '2-digit' } as const
  const dayKey = (date: Date) => format(zone, 'key', numbers).format(date)
  const isToday = (at: string) => dayKey(new Date(at)) === dayKey(now)
  const minutes = { hour: '2-digit', minute: '2-digit' } as const
  const clock = (at: string) => format(zone, 'clock', minutes).format(new Date(at))
  /** The time of another day, as in "Mon, 9 Nov, 10:12". */
  const moment = (at: string) =>
    format(zone, 'moment', { weekday: 'short', day: 'numeric', month: 'short', ...minutes }).format(
      new Date(at),
    )
  /** The heading above the messages of one day. */
  const day = (at: string): string => {
    const date = new Date(at)
    if (isToday(at)) return 'Today'
    if (dayKey(date) === dayKey(new Date(now.getTime() - dayMs))) return 'Yesterday'
    const isOfThisYear = now.getTime() - date.getTime() < 300 * dayMs
    const long = { weekday: 'long', day: 'numeric', month: 'long' } as const
    return isOfThisYear
      ? format(zone, 'day', long).format(date)
      : format(zone, 'year', { ...long, year: 'numeric' }).format(date)
  }
  /** The day, as in "on 9 Nov". */
  const date = (at: string): string => {
    const day = { day: 'numeric', month: 'short' } as const
    return now.getTime() - new Date(at).getTime() < 300 * dayMs
      ? format(zone, 'date', day).format(new Date(at))
      : format(zone, 'dated', { ...day, year: 'numeric' }).format(new Date(at))
  }
  /** Short, for lists: the time today, the weekday this week, else the date. */
  const short = (at: string): string => {
    const date = new Date(at)
    const agoMs = now.getTime() - date.getTime()
    if (isToday(at)) return clock(at)
    if (agoMs < 6 * dayMs) return format(zone, 'weekday', { weekday: 'short' }).format(date)
    if (agoMs < 300 * dayMs) return format(zone, 'date', { day: 'numeric', month: 'short' }).format(date)
    return format(zone, 'old', { month: 'short', year: 'numeric' }).format(date)
  }
  return { clock, date, day, isToday, moment, short, dayKey: (at: string) => dayKey(new Date(at)) }
}
