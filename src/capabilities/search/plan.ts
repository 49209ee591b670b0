/** How far back each step of a search looks: as far as the newest messages say is needed, and no further. Pure. */
import { seasonMs, stretchMs } from '../../lib/tokens-message.ts'

/** What the newest messages of one account, or of one chat, show. */
export interface Sample {
  /** Messages looked at, and how many of them match. */
  readonly seen: number
  readonly hits: number
  /** How many have the words that may go on, and how many the others, where both were asked for. */
  readonly open_hits: number
  readonly closed_hits: number
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
  /** How many there are to look through. */
  readonly accounts: number
  /** Everything there is to look through. */
  readonly range: Window
  /** The samples were all there is. */
  readonly small: boolean
  /** Matches among the newest messages, and the part of them that these are. */
  readonly hits: number
  readonly density: number
  /** Messages a millisecond. */
  readonly rate: number
  /** Words that may go on are better checked in the messages that have the others. */
  readonly check_open: boolean
}

/** With fewer the sample says only that it is rare, or was common long ago. */
const hitsMin = 3

/** To fetch a message costs as much as to put so many into a list. */
const fetchCost = 100

/** Undefined: there is nothing to look through. `each`: how many were to be looked at in each place. */
export function lookOut(samples: readonly Sample[], each: number, bounds: Window): Outlook | undefined {
  const known = samples.filter(({ seen }) => seen > 0)
  const from = Math.max(bounds.from, Math.min(...known.map(({ oldest_at }) => Number(oldest_at))))
  const until = Math.min(bounds.until, Math.max(...known.map(({ newest_at }) => Number(newest_at))) + 1)
  if (!(from < until)) return undefined
  const seen = sum(known.map((sample) => sample.seen))
  const hits = sum(known.map((sample) => sample.hits))
  const open = sum(known.map((sample) => sample.open_hits))
  const closed = sum(known.map((sample) => sample.closed_hits))
  return {
    accounts: samples.length,
    range: { from, until },
    small: known.every((sample) => sample.seen < each),
    hits,
    density: Math.max(hits, hitsMin) / seen,
    rate: sum(known.map((sample) => sample.seen / Math.max(until - Number(sample.since), 1))),
    check_open: open > fetchCost * (Math.max(closed, 0.5) - hits),
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

/** Everything, newest first, in parts that grow: the first should hold a page, so that it is whole before all are counted. */
export function allWindows(outlook: Outlook, { page, count }: { page: number; count: number }): Window[] {
  const { range, density, rate } = outlook
  const windows: Window[] = []
  // What is rare fills no page wherever one looks, and every part costs something.
  const expected = isRare(outlook) ? count : 2 * page
  let span = expected / density / rate
  let { until } = range
  while (until > range.from) {
    const from = Math.max(range.from, startBefore(until, span, outlook.accounts))
    windows.push({ from, until })
    until = from
    span *= 2
  }
  return windows
}

/** Of everything, the parts that should be enough; undefined if nobody can know. */
export function recentWindows(outlook: Outlook, windows: readonly Window[]): Window[] | undefined {
  return isRare(outlook) ? undefined : windows.slice(0, recentMax)
}

const recentMax = 6

function isRare({ hits }: Outlook): boolean {
  return hits < hitsMin
}

/** The windows before this place, and this one in small pieces: it held more than a page. Undefined if it has none. */
export function splitWindow(
  windows: readonly Window[],
  place: number,
  accounts: number,
): Window[] | undefined {
  const { from, until } = windows[place] ?? { from: 0, until: 0 }
  const pieces: Window[] = []
  for (let end = until; end > from; ) {
    const start = Math.max(from, startBefore(end, (until - from) / piecesMax, accounts))
    pieces.push({ from: start, until: end })
    end = start
  }
  return pieces.length > 1 ? windows.toSpliced(place, 1, ...pieces) : undefined
}

const piecesMax = 16

/** So long before, or a little more: where a stretch or a season begins. */
function startBefore(until: number, span: number, accounts: number): number {
  const ms = isShort({ from: until - span, until }, accounts) ? stretchMs : seasonMs
  return Math.min(until - 1, Math.floor((until - span) / ms) * ms)
}

/** Looked into by the hours, because these are few and a season is long. */
export function isShort({ from, until }: Window, accounts: number): boolean {
  return until - from <= Math.min(stretchesMax, stretchesOfAllMax / accounts) * stretchMs
}

const stretchesMax = 64
const stretchesOfAllMax = 192
