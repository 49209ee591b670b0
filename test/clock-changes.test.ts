/**
 * Sending windows, days of quotas and schedules around every clock change of five years, in every zone that Node
 * knows, compared with a walk that goes from minute to minute and reads the clock. Zones with the same change at the
 * same moment are walked once.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { type SendingWindow, windowOpens } from '../src/rules/sending-window.ts'
import { firstInstant, laterInstant, localDay, nextDay } from '../src/rules/zones.ts'
import { makeRandom, type Random } from './faults/random.ts'

const minuteMs = 60_000
const dayMs = 86_400_000
const [first, last] = [Date.UTC(2024, 0, 1), Date.UTC(2029, 0, 1)]

interface ClockChange {
  readonly zones: string[]
  readonly at: number
  /** The offset from UTC before and after it. */
  readonly before: number
  readonly after: number
}

let changes: ClockChange[]
beforeAll(() => {
  changes = listChanges()
})

/** By the name of the offset, which the code under test does not read. */
function offsetReader(timeZone: string): (ms: number) => number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
  return (ms) => {
    const name = format.formatToParts(ms).find(({ type }) => type === 'timeZoneName')?.value
    const [, sign, hours, minutes] = /^GMT(?:([+-])(\d\d):(\d\d))?$/.exec(name ?? '') ?? []
    return (sign === '-' ? -1 : 1) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * minuteMs
  }
}

function listChanges(): ClockChange[] {
  const found = new Map<string, ClockChange>()
  for (const zone of Intl.supportedValuesOf('timeZone')) {
    const offset = offsetReader(zone)
    let before = offset(first)
    // No zone changes its clocks and back again within a week.
    for (let ms = first; ms < last; ms += 7 * dayMs) {
      const after = offset(ms + 7 * dayMs)
      if (after === before) continue
      let [low, high] = [ms / minuteMs, (ms + 7 * dayMs) / minuteMs]
      while (high - low > 1) {
        const middle = Math.floor((low + high) / 2)
        if (offset(middle * minuteMs) === before) low = middle
        else high = middle
      }
      const change = { zones: [zone], at: high * minuteMs, before, after }
      const known = found.get(`${change.at} ${before} ${after}`)
      if (known) known.zones.push(zone)
      else found.set(`${change.at} ${before} ${after}`, change)
      before = after
    }
  }
  return [...found.values()]
}

/** The local time at each minute from three days before a change to eighteen days after it. */
class Walk {
  readonly zone: string
  readonly begins: number
  readonly random: Random
  readonly #change: ClockChange
  readonly #local = new Float64Array((21 * dayMs) / minuteMs)

  constructor(change: ClockChange) {
    this.random = makeRandom(change.at / minuteMs + change.before / minuteMs)
    this.zone = this.random.pick(change.zones)
    this.#change = change
    this.begins = change.at - 3 * dayMs
    const own = changes
      .filter(({ zones, at }) => at >= change.at && zones.includes(this.zone))
      .sort((one, other) => one.at - other.at)
    let offset = change.before
    for (let n = 0; n < this.#local.length; n++) {
      const ms = this.begins + n * minuteMs
      if (ms === own[0]?.at) offset = own.shift()?.after ?? offset
      this.#local[n] = ms + offset
    }
  }

  /** Near the change, not always at the beginning of a minute. */
  moments(count: number): number[] {
    const { at } = this.#change
    const edges = [-1, 0, 1].map((minutes) => at + minutes * minuteMs)
    const near = Array.from({ length: count }, () => at + this.random.whole(5 * 3_600_000) - 2.5 * 3_600_000)
    const far = Array.from({ length: count }, () => at + this.random.whole(4 * dayMs) - 2 * dayMs)
    return [...edges, ...near.map((ms) => ms - (ms % minuteMs)), ...far]
  }

  /** Local times that exist, are skipped or repeat around the change. */
  localTimes(count: number): number[] {
    const { at, before, after } = this.#change
    const [low, high] = [at + Math.min(before, after), at + Math.max(before, after)]
    const near = Array.from({ length: count }, () => low + this.random.whole(high - low + 120) - 60)
    const edges = [low, high].flatMap((ms) => [ms - minuteMs, ms, ms + minuteMs])
    const far = Array.from({ length: count }, () => low + this.random.whole(2 * dayMs) - dayMs)
    return [...edges, ...near, ...far].map((ms) => ms - (ms % minuteMs))
  }

  /** A window on the days of the change, with edges near the skipped or repeated hours. */
  window(): SendingWindow {
    const { at, before, after } = this.#change
    const clock = (offset: number) => Math.round(((at + offset) % dayMs) / minuteMs)
    const edge = () =>
      Math.min(
        Math.max(this.random.pick([clock(before), clock(after)]) + this.random.whole(240) - 120, 0),
        1_440,
      )
    const day = () =>
      new Date(at + this.random.pick([before, after]) + this.random.pick([-1, 0, 0, 0]) * dayMs)
    const [from, to] = [edge(), edge()].sort((one, other) => one - other) as [number, number]
    const days = new Set([day(), day()].map((one) => one.getUTCDay() || 7))
    return {
      days: [...days].sort(),
      from: Math.min(from, 1_439),
      to: Math.min(Math.max(to, from + 1), 1_440),
    }
  }

  /** The first matching moment from this one on: itself, or the beginning of a later minute. */
  find(from: number, fits: (local: number) => boolean): number {
    const minute = Math.floor((from - this.begins) / minuteMs)
    for (let n = minute; n < this.#local.length; n++) {
      if (fits(this.#local[n] ?? Number.NaN)) return Math.max(from, this.begins + n * minuteMs)
    }
    throw new Error('The walk ends before it.')
  }

  clockAt(ms: number): number {
    return this.#local[Math.floor((ms - this.begins) / minuteMs)] ?? Number.NaN
  }

  /** Every minute with this local time. */
  listShown(local: number): number[] {
    const found: number[] = []
    for (let n = this.#local.indexOf(local); n >= 0; n = this.#local.indexOf(local, n + 1)) {
      found.push(this.begins + n * minuteMs)
    }
    return found
  }
}

/** Looks up each minute of a week, from Monday on. */
function insideOf({ days, from, to }: SendingWindow): (local: number) => boolean {
  const inside = Array.from({ length: 7 * 1_440 }, (_, minute) => {
    const ofDay = minute % 1_440
    return days.includes(Math.floor(minute / 1_440) + 1) && ofDay >= from && ofDay < to
  })
  // 1970 began on a Thursday.
  return (local) => inside[(local / minuteMs + 3 * 1_440) % inside.length] ?? false
}

const dayNumber = (local: number) => Math.floor(local / dayMs)
const time = (ms: number | Date) => new Date(ms).toISOString()

describe('around every clock change', () => {
  test('there are changes of all kinds', () => {
    const kinds = new Set(changes.map(({ before, after }) => (after - before) / minuteMs))
    expect(kinds).toEqual(new Set([60, -60, 30, -30, 120, -120]))
    expect(changes.length).toBeGreaterThan(200)
  })

  test('a sending window opens at its first minute', () => {
    for (const change of changes) {
      const walk = new Walk(change)
      for (let n = 0; n < 4; n++) {
        const window = walk.window()
        const isInside = insideOf(window)
        for (const ms of walk.moments(2)) {
          const opens = windowOpens(window, walk.zone, new Date(ms))
          const expected = walk.find(ms, isInside)
          expect(time(opens), `${walk.zone} ${time(ms)} ${JSON.stringify(window)}`).toBe(time(expected))
        }
      }
    }
  })

  test("a quota's day is the local date, and ends with the first minute of another", () => {
    for (const change of changes) {
      const walk = new Walk(change)
      for (const ms of walk.moments(3)) {
        const at = new Date(ms)
        const said = `${walk.zone} ${time(ms)}`
        const today = walk.clockAt(ms)
        expect(localDay(at, walk.zone), said).toBe(time(today).slice(0, 10))
        const ends = walk.find(ms, (local) => dayNumber(local) !== dayNumber(today))
        expect(time(nextDay(at, walk.zone)), said).toBe(time(ends))
      }
    }
  })

  test('a schedule means the last minute with its local time, and a skipped one is later by as much as was skipped', () => {
    for (const change of changes) {
      const walk = new Walk(change)
      for (const local of walk.localTimes(3)) {
        const said = `${walk.zone} ${time(local)}`
        const instants = walk.listShown(local)
        const skipped = local - change.before
        const later = laterInstant(new Date(local), walk.zone)
        expect(time(later.at), said).toBe(time(instants.at(-1) ?? skipped))
        expect(later.kind, said).toBe(['skipped', 'plain', 'repeated'][instants.length])
        const reached = walk.find(walk.begins, (clock) => clock >= local)
        expect(time(firstInstant(new Date(local), walk.zone)), said).toBe(time(reached))
      }
    }
  })
})
