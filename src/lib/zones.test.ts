import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { firstInstant, isSameDay, laterInstant, localDay, localTime, nextDay } from './zones.ts'

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
    expect(later('2026-06-01T09:00:00')).toEqual({ at: utc('2026-06-01T07:00:00'), changed: false })
    // 02:30 is not shown on this day: half past three, summer time.
    expect(later('2026-03-29T02:30:00')).toEqual({ at: utc('2026-03-29T01:30:00'), changed: true })
    // 02:30 is shown twice: the second one.
    expect(later('2026-10-25T02:30:00')).toEqual({ at: utc('2026-10-25T01:30:00'), changed: true })
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
