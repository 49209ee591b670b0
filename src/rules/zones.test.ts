import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseWindow, windowOpens, windowOpensIn } from './sending-window.ts'
import {
  changeOf,
  dayAt,
  dayEnds,
  firstInstant,
  isSameDay,
  isSameDayIn,
  laterInstant,
  localDay,
  localTime,
  nextDay,
  type Zone,
} from './zones.ts'

const utc = (text: string) => new Date(`${text}Z`)

describe('local times', () => {
  test('are what local clocks show', () => {
    const at = utc('2026-03-29T00:59:59.250')
    expect(localTime(at, 'Europe/Berlin')).toEqual(utc('2026-03-29T01:59:59.250'))
    expect(localTime(utc('2026-03-29T01:00:00'), 'Europe/Berlin')).toEqual(utc('2026-03-29T03:00:00'))
    expect(localTime(at, 'Asia/Kathmandu')).toEqual(utc('2026-03-29T06:44:59.250'))
    expect(localDay(utc('2026-01-01T00:30:00'), 'America/New_York')).toBe('2025-12-31')
    expect(() => localTime(at, 'Nowhere/Land')).toThrow()
  })

  test('that a clock change skips or repeats mean the later instant', () => {
    const later = (local: string) => laterInstant(utc(local), 'Europe/Berlin')
    expect(later('2026-06-01T09:00:00')).toEqual({ at: utc('2026-06-01T07:00:00'), kind: 'plain' })
    // 02:30 is not shown on this day: half past three, summer time.
    expect(later('2026-03-29T02:30:00')).toEqual({ at: utc('2026-03-29T01:30:00'), kind: 'skipped' })
    // 02:30 is shown twice: the second one.
    expect(later('2026-10-25T02:30:00')).toEqual({ at: utc('2026-10-25T01:30:00'), kind: 'repeated' })
  })

  test('have a first instant, also when they are skipped', () => {
    expect(firstInstant(utc('2026-03-29T02:30:00'), 'Europe/Berlin')).toEqual(utc('2026-03-29T01:00:00'))
    expect(firstInstant(utc('2026-10-25T02:30:00'), 'Europe/Berlin')).toEqual(utc('2026-10-25T00:30:00'))
  })

  test('the next day begins at local midnight, or with its first moment', () => {
    expect(nextDay(utc('2026-03-28T23:30:00'), 'Europe/Berlin')).toEqual(utc('2026-03-29T22:00:00'))
    expect(nextDay(utc('2026-06-01T00:00:00'), 'UTC')).toEqual(utc('2026-06-02T00:00:00'))
    // Midnight was skipped in Cairo on 2023-04-28: the day began at 01:00.
    expect(nextDay(utc('2023-04-27T20:00:00'), 'Africa/Cairo')).toEqual(utc('2023-04-27T22:00:00'))
    // A day that never existed: Samoa went from the 29th to the 31st.
    expect(nextDay(utc('2011-12-30T05:00:00'), 'Pacific/Apia')).toEqual(utc('2011-12-30T10:00:00'))
  })

  test('equal those of Intl, in every zone, before and after a clock change', () => {
    const zones = Intl.supportedValuesOf('timeZone')
    const moments = fc.record({
      timezone: fc.constantFrom(
        ...zones,
        'Asia/Gaza',
        'Africa/Casablanca',
        'America/Recife',
        'Africa/Monrovia',
      ),
      // From 1950 on; a third of them within a day of the change of clocks in Europe or in Gaza.
      at: fc.oneof(
        fc.integer({ min: -631_152_000_000, max: 4_000_000_000_000 }),
        fc.integer({ min: -86_400_000, max: 86_400_000 }).map((away) => Date.UTC(2026, 2, 29, 1) + away),
        fc.integer({ min: -86_400_000, max: 8 * 86_400_000 }).map((away) => 2_234_304_000_000 + away),
      ),
    })
    fc.assert(
      fc.property(moments, ({ timezone, at }) => {
        const shown = new Intl.DateTimeFormat('sv-SE', {
          timeZone: timezone,
          dateStyle: 'short',
          timeStyle: 'medium',
        })
        const local = localTime(new Date(at), timezone)
        expect(local.toISOString().slice(0, 19).replace('T', ' ')).toBe(shown.format(at))
        expect(isSameDay(new Date(at), new Date(at + 3_600_000), timezone)).toBe(
          localDay(new Date(at), timezone) === localDay(new Date(at + 3_600_000), timezone),
        )
      }),
      { numRuns: 500 * Number(process.env.RUNS ?? 1) },
    )
  })
})

describe('a zone that changes', () => {
  /** Far apart, at the date line, with skipped and repeated midnights, with half an hour of summer time. */
  const names = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Tokyo', 'Pacific/Kiritimati', 'Etc/GMT+12']
  const odd = ['America/Havana', 'Africa/Cairo', 'Australia/Lord_Howe', 'America/Santiago', 'Asia/Kathmandu']
  const zone = fc.constantFrom(...names, ...odd)
  const minute = 60_000
  const dayMs = 24 * 60 * minute
  const begins = utc('2026-01-01T00:00:00').getTime()
  /** Any moment of a year of clock changes. */
  const moment = fc.integer({ min: 0, max: 366 * 24 * 4 }).map((quarter) => begins + quarter * 15 * minute)

  test('holds from the end of the day that has begun', () => {
    const at = utc('2026-06-01T13:00:00')
    const change = changeOf({ timezone: 'Europe/Berlin' }, at)
    expect(change).toEqual({ before: 'Europe/Berlin', from: utc('2026-06-01T22:00:00'), floor: '2026-06-01' })
    // Tokyo is ahead: at midnight in Berlin its second of June has begun, and ends at 15:00 UTC.
    const ahead: Zone = { timezone: 'Asia/Tokyo', change }
    expect(dayAt(ahead, utc('2026-06-01T21:59:00'))).toBe('2026-06-01')
    expect(dayEnds(ahead, at)).toEqual(utc('2026-06-01T22:00:00'))
    expect(dayAt(ahead, utc('2026-06-01T22:00:00'))).toBe('2026-06-02')
    expect(dayEnds(ahead, utc('2026-06-01T22:00:00'))).toEqual(utc('2026-06-02T15:00:00'))
    // New York is behind: there the first of June goes on, and its day has no new quota before 04:00 UTC.
    const behind: Zone = { timezone: 'America/New_York', change }
    expect(dayAt(behind, utc('2026-06-02T03:59:00'))).toBe('2026-06-01')
    expect(dayEnds(behind, at)).toEqual(utc('2026-06-02T04:00:00'))
  })

  test('several times a day opens no other day: days only go on, and each change keeps the day that has begun', () => {
    const changes = fc.array(fc.record({ to: zone, after: fc.integer({ min: 0, max: 30 * 60 }) }), {
      minLength: 1,
      maxLength: 6,
    })
    const property = fc.property(zone, moment, changes, (first, start, given) => {
      let clocks: Zone = { timezone: first }
      let at = start
      let day = dayAt(clocks, new Date(at))
      let ends = dayEnds(clocks, new Date(at))
      for (const { to, after } of given) {
        const until = at + after * minute
        for (; at < until; at += 30 * minute) {
          const now = new Date(at)
          const today = dayAt(clocks, now)
          expect(today >= day).toBe(true)
          // A new day begins exactly when the end of the day before was announced.
          expect(today > day).toBe(now >= ends)
          if (today > day) ends = dayEnds(clocks, now)
          expect(isSameDayIn(clocks, now, new Date(ends.getTime() - 1))).toBe(true)
          day = today
        }
        at = until
        const now = new Date(at)
        if (dayAt(clocks, now) > day) ends = dayEnds(clocks, now)
        day = dayAt(clocks, now)
        const change = changeOf(clocks, now)
        expect(change.from <= ends).toBe(true)
        clocks = { timezone: to, change }
        expect(dayAt(clocks, now)).toBe(day)
        // The day that has begun goes on at least to its end in the zone that holds; in a zone behind it for longer.
        ends = dayEnds(clocks, now)
        expect(ends >= change.from).toBe(true)
      }
      // Days are dates: none is used twice, and no more than two begin in a day.
      const elapsed = (Date.parse(day) - Date.parse(localDay(new Date(start), first))) / dayMs
      expect(elapsed).toBeLessThanOrEqual((at - start) / dayMs + 3)
    })
    fc.assert(property, { numRuns: 300 })
  })

  test('moves the sending window with it', () => {
    const window = parseWindow('mon-sun 09:00-18:00')
    if (!window) throw new Error('no window')
    const property = fc.property(
      zone,
      zone,
      moment,
      fc.integer({ min: 0, max: 72 * 60 }),
      (one, other, ms, after) => {
        const change = changeOf({ timezone: one }, new Date(ms))
        const clocks: Zone = { timezone: other, change }
        const at = new Date(ms + after * minute)
        const opens = windowOpensIn(window, clocks, at)
        const zoneThen = opens < change.from ? one : other
        expect(windowOpens(window, zoneThen, opens)).toEqual(opens)
        for (let ms = at.getTime(); ms < opens.getTime(); ms += 15 * minute) {
          const zoneNow = new Date(ms) < change.from ? one : other
          expect(windowOpens(window, zoneNow, new Date(ms)).getTime()).toBeGreaterThan(ms)
        }
      },
    )
    fc.assert(property, { numRuns: 200 })
  })
})
