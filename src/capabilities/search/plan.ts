/** How far back each step of a search looks: as far as the newest messages say is needed, and no further. Pure. */

/** What the newest messages of one account, or of one chat, show. */
export interface Sample {
  /** Messages looked at, at most `wanted`, and how many of them match. */
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
  /** Everything there is to look through; undefined when that is nothing. */
  readonly range: Window | undefined
  /** The samples were all there is. */
  readonly small: boolean
  /** The part of the newest messages that match. */
  readonly density: number
  /** Messages a millisecond. */
  readonly rate: number
}

export function lookOut(samples: readonly Sample[], wanted: number, bounds: Window): Outlook {
  const known = samples.filter(({ seen }) => seen > 0)
  const from = Math.max(bounds.from, Math.min(...known.map(({ oldest_at }) => Number(oldest_at))))
  const until = Math.min(bounds.until, Math.max(...known.map(({ newest_at }) => Number(newest_at))) + 1)
  const seen = sum(known.map((sample) => sample.seen))
  return {
    range: from < until ? { from, until } : undefined,
    small: known.every((sample) => sample.seen < wanted),
    // Half a hit where there was none: the rarest word that the sample cannot rule out.
    density: Math.max(sum(known.map(({ hits }) => hits)), 0.5) / Math.max(seen, 1),
    rate: sum(known.map((sample) => sample.seen / Math.max(until - Number(sample.since), 1))),
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

/** The newest part that should hold `count` matches, and as much again; undefined when that is most of it all. */
export function recentWindows({ range, density, rate }: Outlook, count: number): Window[] | undefined {
  if (!range) return undefined
  const span = (1.2 * count) / density / rate
  if (span > (range.until - range.from) / 8) return undefined
  return [
    { from: range.until - span, until: range.until },
    { from: range.until - 3 * span, until: range.until - span },
  ]
}

/** So many messages are looked up at once where their matches have to be put in order. */
const stepMessages = 150_000
const evenSteps = 40

/** All of it, newest first, in steps that hold so many messages; far back they grow, so that they stay few. */
export function allWindows({ range, rate }: Outlook): Window[] {
  const windows: Window[] = []
  if (!range) return windows
  let step = stepMessages / rate
  let { until } = range
  while (until > range.from) {
    const from = Math.max(range.from, until - step)
    windows.push({ from, until })
    until = from
    if (windows.length >= evenSteps) step *= 2
  }
  return windows
}
