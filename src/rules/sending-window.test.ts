import { describe, expect, test } from 'vitest'
import { describeWindow, formatWindow, parseWindow, windowOpens } from './sending-window.ts'

const utc = (text: string) => new Date(`${text}Z`)

function opens(text: string, timezone: string, at: string): string {
  const window = parseWindow(text)
  if (!window) throw new Error(text)
  return windowOpens(window, timezone, utc(at)).toISOString().slice(0, 16)
}

describe('a sending window', () => {
  test('is days and times, in one format', () => {
    const written = {
      'mon-fri 09:00-18:00': 'mon-fri 09:00-18:00',
      ' MON - FRI  9:00 - 18:00 ': 'mon-fri 09:00-18:00',
      'sat,sun 00:00-24:00': 'sat,sun 00:00-24:00',
      'fri-mon 8:30-12:00': 'mon,fri-sun 08:30-12:00',
      'wed,mon,tue,sun 08:30-12:00': 'mon-wed,sun 08:30-12:00',
    }
    for (const [given, stored] of Object.entries(written)) {
      const window = parseWindow(given)
      expect(window && formatWindow(window), given).toBe(stored)
    }
    const said = (text: string) => describeWindow(parseWindow(text) ?? { days: [], from: 0, to: 0 })
    expect(said('mon-fri 09:00-18:00')).toBe('Mon to Fri, 09:00 to 18:00')
    expect(said('mon,tue,sat 00:00-24:00')).toBe('Mon, Tue, Sat, 00:00 to 24:00')
    for (const none of [
      '',
      'always',
      '09:00-18:00',
      'mon-fri',
      'mon-fri 18:00-09:00',
      'mon-fri 09:00-09:00',
      'mon-fri 09:00-24:01',
      'mon-fri 09:60-18:00',
      'mon-tue-wed 09:00-18:00',
      'mon- 09:00-18:00',
      'mo 09:00-18:00',
      'mon,,tue 09:00-18:00',
    ]) {
      expect(parseWindow(none), none).toBeUndefined()
    }
  })

  test('opens at its first minute and is closed at its last', () => {
    const office = 'mon-fri 09:00-18:00'
    // 2026-06-05 is a Friday.
    expect(opens(office, 'UTC', '2026-06-05T08:59')).toBe('2026-06-05T09:00')
    expect(opens(office, 'UTC', '2026-06-05T09:00')).toBe('2026-06-05T09:00')
    expect(opens(office, 'UTC', '2026-06-05T17:59')).toBe('2026-06-05T17:59')
    expect(opens(office, 'UTC', '2026-06-05T18:00')).toBe('2026-06-08T09:00')
    expect(opens(office, 'Europe/Berlin', '2026-06-05T16:00')).toBe('2026-06-08T07:00')
    expect(opens('mon 09:00-10:00', 'UTC', '2026-06-01T10:00')).toBe('2026-06-08T09:00')
  })

  test('follows the local clock, also on the day it changes', () => {
    const early = 'sun 02:15-04:00'
    // 02:15 is skipped on 2026-03-29: it opens when clocks jump to 03:00.
    expect(opens(early, 'Europe/Berlin', '2026-03-29T00:00')).toBe('2026-03-29T01:00')
    // The hour occurs twice, and both are inside.
    expect(opens(early, 'Europe/Berlin', '2026-10-25T01:30')).toBe('2026-10-25T01:30')
    // All of this window is skipped that Sunday.
    expect(opens('sun 02:00-03:00', 'Europe/Berlin', '2026-03-29T00:00')).toBe('2026-04-05T00:00')
  })

  test('opens again when clocks pass it twice, or go back into it', () => {
    // On 2026-10-25 clocks go from 03:00 back to 02:00, at 01:00 UTC.
    const short = 'sun 02:30-02:45'
    expect(opens(short, 'Europe/Berlin', '2026-10-25T00:00')).toBe('2026-10-25T00:30')
    expect(opens(short, 'Europe/Berlin', '2026-10-25T00:45')).toBe('2026-10-25T01:30')
    expect(opens(short, 'Europe/Berlin', '2026-10-25T01:45')).toBe('2026-11-01T01:30')
    expect(opens('sun 01:30-02:15', 'Europe/Berlin', '2026-10-25T00:15')).toBe('2026-10-25T01:00')
  })
})
