import { describe, expect, test } from 'vitest'
import { type PlayAnswer, type PlayHead, type PlayJob, type PlayRow, Plays } from './play.ts'

/** A Friday morning. */
const now = Date.parse('2026-06-05T10:00:00Z')

const head: PlayHead = {
  campaign: {
    id: 'a',
    kind: 'contacts',
    status: 'queued',
    message_text: 'Hello {{name|you}}',
    branching_enabled: false,
    daily_quota_per_account: 1,
    max_followups: 5,
    scheduled_at: null,
    steps: [{ branch: 'no_reply', wait_hours: 24, variants: ['Again'] }],
    allowed: true,
    pool: ['one'],
  },
  others: [],
  accounts: [
    [
      'one',
      {
        ready: true,
        flood_until: null,
        lookup_flood_until: null,
        cold_stopped: false,
        cold_ramp_from: null,
        next_campaign_at: null,
        cold_per_day: null,
        lookups_per_day: 200,
        used: 0,
        used_cold: 0,
        lookups: 0,
      },
    ],
  ],
  hours: { timezone: 'UTC', window: null },
  pacing_ms: 15_000,
}

function job(
  count: number,
  given: Partial<PlayJob> = {},
  campaign: Partial<PlayHead['campaign']> = {},
): PlayJob {
  const rows = Array.from({ length: count }, (_, position): PlayRow => {
    const who = [`id${position}`, 'a', position, null, null, `@person_${position}`, null, null] as const
    return [...who, ...(['queued', 0, null, 'now', null, false, true] as const)]
  })
  return {
    head: JSON.stringify({ ...head, campaign: { ...head.campaign, ...campaign } }),
    rows: [JSON.stringify(rows)],
    now,
    cpu_ms: 60_000,
    stop: new Int32Array(new SharedArrayBuffer(4)),
    after: -1,
    limit: 10,
    ...given,
  }
}

interface PlayResult {
  readonly texts: readonly { readonly identifier: string }[]
  readonly timetable: readonly {
    readonly identifier: string
    readonly messages: readonly { readonly step: number; readonly at: string }[]
  }[]
  readonly load: readonly { readonly day: string; readonly messages: number; readonly total: number }[]
  readonly end: string | null
}

function read(answer: PlayAnswer | undefined): PlayResult {
  expect(answer).toBeDefined()
  return JSON.parse(answer?.text ?? '')
}

describe('a play', () => {
  test('returns a page of the timetable, the load of every day and the end', () => {
    const answer = new Plays().answer(job(3, { limit: 2 }))
    expect(answer?.next).toBe(1)
    const { texts, timetable, load, end } = read(answer)
    expect(texts.map(({ identifier }) => identifier)).toEqual(['@person_0', '@person_1', '@person_2'])
    expect(timetable.map(({ messages }) => messages.map(({ at }) => at.slice(5, 16)))).toEqual([
      ['06-05T10:00', '06-07T00:00'],
      ['06-06T00:00', '06-08T00:00'],
    ])
    expect(load).toHaveLength(6)
    expect(load[0]).toEqual({ account_id: 'one', day: '2026-06-05', messages: 1, total: 1 })
    expect(end).toBe('2026-06-10T00:00:00.000Z')
    expect(read(new Plays().answer(job(3, { after: 1 }))).timetable).toHaveLength(1)
  })

  test('serves further pages for a minute, but not after something has changed', () => {
    const plays = new Plays()
    const endAt = (given: Partial<PlayJob>, campaign?: object) =>
      read(plays.answer(job(1, given, campaign))).end
    const end = endAt({})
    expect(end).toBe('2026-06-06T10:00:00.000Z')
    expect(endAt({ now: now + 59_999, after: 0 })).toBe(end)
    expect(endAt({ now: now + 1_000 }, { message_text: 'Other' })).toBe('2026-06-06T10:00:01.000Z')
    // The clock was set back.
    expect(endAt({ now: now - 1_000 })).toBe('2026-06-06T09:59:59.000Z')
    expect(endAt({ now: now + 59_000 })).toBe('2026-06-06T10:00:59.000Z')
  })

  test('stops when no caller waits for it, and is not kept', () => {
    const plays = new Plays()
    const stop = new Int32Array(new SharedArrayBuffer(4))
    Atomics.store(stop, 0, 1)
    expect(plays.answer(job(500, { stop }))).toBeUndefined()
    expect(read(plays.answer(job(500))).end).not.toBeNull()
  })

  test('returns what it has, without an end, when its processor time is used up', () => {
    const { end, load } = read(new Plays().answer(job(2_000, { cpu_ms: 0 })))
    expect(end).toBeNull()
    expect(load.length).toBeGreaterThan(0)
    expect(load.length).toBeLessThan(1_000)
  })
})
