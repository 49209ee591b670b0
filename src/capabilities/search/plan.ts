/** How far back each step of a search looks: as far as the newest messages say is needed, and no further. Pure. */
import { type Calendar, days, seasons } from '../../lib/tokens-message.ts'

/** What the newest messages of one account, or of one chat, show. */
export interface Sample {
  /** Messages looked at, and how many of them match. */
  readonly seen: number
  readonly hits: number
  /** The time of the oldest of them. */
  readonly since: Date | null
  readonly oldest_at: Date | null
  readonly newest_at: Date | null
}

/** From `from` until before `until`, in milliseconds since 1970. */
export interface Window {
  readonly from: number
  readonly until: number
}

export interface Outlook {
  /** Everything there is to look through. */
  readonly range: Window
  /** The samples were all there is. */
  readonly small: boolean
  /** Matches among the newest messages, and the part of them that these are. */
  readonly hits: number
  readonly density: number
  /** Messages a millisecond. */
  readonly rate: number
}

/** With fewer the sample says only that it is rare, or was common long ago. */
const hitsMin = 5

/** Undefined: there is nothing to look through. `each`: how many were to be looked at in each place. */
export function lookOut(samples: readonly Sample[], each: number, bounds: Window): Outlook | undefined {
  const known = samples.filter(({ seen }) => seen > 0)
  const from = Math.max(bounds.from, Math.min(...known.map(({ oldest_at }) => Number(oldest_at))))
  const until = Math.min(bounds.until, Math.max(...known.map(({ newest_at }) => Number(newest_at))) + 1)
  if (!(from < until)) return undefined
  const seen = sum(known.map((sample) => sample.seen))
  const hits = sum(known.map((sample) => sample.hits))
  return {
    range: { from, until },
    small: known.every((sample) => sample.seen < each),
    hits,
    density: Math.max(hits, hitsMin) / seen,
    rate: sum(known.map((sample) => sample.seen / Math.max(until - Number(sample.since), 1))),
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

/** The newest part that should hold `count` matches and a few more, and as much again; undefined if nobody can know. */
export function recentWindows(outlook: Outlook, count: number): Window[] | undefined {
  return outlook.hits < hitsMin ? undefined : allWindows(outlook, count).slice(0, 2)
}

/** Everything, newest first: a part that should hold `count` matches, then parts that grow, so that they stay few. */
export function allWindows({ range, density, rate }: Outlook, count: number): Window[] {
  const windows: Window[] = []
  let span = (1.15 * count) / density / rate
  let { until } = range
  while (until > range.from) {
    const from = Math.max(range.from, startBefore(until, span))
    windows.push({ from, until })
    until = from
    if (windows.length > 1) span *= 2
  }
  return windows
}

/** The same with the window at this place in small pieces: it held more than can be put in order. */
export function splitWindow(windows: readonly Window[], place: number): Window[] {
  const pieces: Window[] = []
  const { from, until } = windows[place] ?? { from: 0, until: 0 }
  for (let end = until; end > from; ) {
    const start = Math.max(from, startBefore(end, (until - from) / piecesMax))
    pieces.push({ from: start, until: end })
    end = start
  }
  return windows.toSpliced(place, 1, ...pieces)
}

const piecesMax = 16

/** So long before, or a little more: where a day or a season begins. */
function startBefore(until: number, span: number): number {
  const { ms } = calendarFor({ from: until - span, until })
  return Math.min(until - 1, Math.floor((until - span) / ms) * ms)
}

/** So many days are looked into one by one; beyond that, seasons. */
const daysMax = 64

/** How the time of a window is divided. */
export function calendarFor({ from, until }: Window): Calendar {
  return until - from <= daysMax * days.ms ? days : seasons
}
