import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseWindow } from '../../rules/sending-window.ts'
import { localDay } from '../../rules/zones.ts'
import {
  Forecast,
  type ForecastCampaign,
  type ForecastRecipient,
  type PlannedMessage,
  type Story,
} from './forecast.ts'
import type { PlannedAccount, Step } from './planning/plan.ts'

/** A Friday morning. */
const now = new Date('2026-06-05T10:00:00Z')
const step = (wait_hours: number, branch: Step['branch'] = 'no_reply'): Step => ({
  branch,
  wait_hours,
  variants: ['x'],
})

function campaign(given: Partial<ForecastCampaign> = {}): ForecastCampaign {
  return {
    id: 'a',
    kind: 'scoped',
    status: 'queued',
    message_text: 'Hello',
    branching_enabled: false,
    daily_quota_per_account: 30,
    max_followups: 5,
    scheduled_at: null,
    steps: [],
    allowed: true,
    pool: [],
    ...given,
  }
}

function people(count: number, given: Partial<ForecastRecipient> = {}): ForecastRecipient[] {
  return Array.from({ length: count }, (_, position) => ({
    id: `${given.campaign_id ?? 'a'}${position}`,
    campaign_id: 'a',
    position,
    account_id: 'one',
    status: 'queued',
    step: 0,
    chat_id: '7',
    name: 'Ada',
    username: null,
    last_sent_at: null,
    next_action_at: now,
    read: false,
    unknown_since: null,
    cold: true,
    ...given,
  }))
}

const account: PlannedAccount = {
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
}

function play(given: Partial<Story>): PlannedMessage[] {
  const story: Story = {
    campaigns: [campaign()],
    recipients: [],
    accounts: new Map([['one', account]]),
    hours: { timezone: 'UTC', window: null },
    now,
    pacing_ms: 15_000,
    ...given,
  }
  return [...new Forecast(story).steps()].filter((one) => one !== undefined)
}

const linesOf = (messages: readonly PlannedMessage[]) =>
  messages.map(({ recipient_id, step_no, account_id, at }) =>
    [recipient_id, step_no, account_id, at.toISOString().slice(5, 19)].join(' '),
  )

describe('a forecast', () => {
  test('sends one message at a time, with the gap between them, then the follow-ups when they are due', () => {
    const messages = play({ campaigns: [campaign({ steps: [step(1)] })], recipients: people(3) })
    expect(linesOf(messages)).toEqual([
      'a0 0 one 06-05T10:00:00',
      'a1 0 one 06-05T10:00:15',
      'a2 0 one 06-05T10:00:30',
      'a0 1 one 06-05T11:00:00',
      'a1 1 one 06-05T11:00:15',
      'a2 1 one 06-05T11:00:30',
    ])
  })

  test('continues on the next day when the quota is used up, follow-ups first', () => {
    const messages = play({
      campaigns: [campaign({ steps: [step(14)], daily_quota_per_account: 2 })],
      recipients: people(3),
    })
    expect(linesOf(messages)).toEqual([
      'a0 0 one 06-05T10:00:00',
      'a1 0 one 06-05T10:00:15',
      'a0 1 one 06-06T00:00:00',
      'a1 1 one 06-06T00:00:15',
      'a2 0 one 06-07T00:00:00',
      'a2 1 one 06-07T14:00:00',
    ])
  })

  test("leaves a contact to the pool's other accounts when one cannot take it today", () => {
    const free = { account_id: null, chat_id: null }
    const unable: Record<string, Partial<PlannedAccount>> = {
      'no look-up left': { lookups: 200 },
      'no first message left': { cold_per_day: 1, used_cold: 1 },
      'a flood wait': { flood_until: new Date('2026-06-05T12:00:00Z') },
    }
    for (const [why, state] of Object.entries(unable)) {
      const messages = play({
        campaigns: [campaign({ kind: 'contacts', pool: ['one', 'two'] })],
        recipients: people(3, free),
        accounts: new Map([
          ['one', { ...account, ...state }],
          ['two', { ...account, used: 1 }],
        ]),
      })
      expect(linesOf(messages), why).toEqual([
        'a0 0 two 06-05T10:00:00',
        'a1 0 two 06-05T10:00:15',
        'a2 0 two 06-05T10:00:30',
      ])
    }
  })

  test('respects the window, another campaign on the account, and a schedule', () => {
    const later = new Date('2026-06-05T10:00:10Z')
    const messages = play({
      campaigns: [campaign(), campaign({ id: 'b', status: 'scheduled', scheduled_at: later })],
      recipients: [...people(2), ...people(1, { campaign_id: 'b', next_action_at: later })],
    })
    expect(linesOf(messages)).toEqual([
      'a0 0 one 06-05T10:00:00',
      'a1 0 one 06-05T10:00:15',
      'b0 0 one 06-05T10:00:30',
    ])
    const windowed = play({
      recipients: people(6),
      pacing_ms: 600_000,
      hours: { timezone: 'UTC', window: parseWindow('mon-fri 09:00-10:30') ?? null },
    })
    expect(linesOf(windowed).slice(2, 4)).toEqual(['a2 0 one 06-05T10:20:00', 'a3 0 one 06-08T09:00:00'])
  })

  test('uses the unseen track for unread messages, and the seen track for those already read', () => {
    const steps = [step(1, 'seen'), step(2, 'unseen')]
    const had = { status: 'waiting', step: 1, last_sent_at: now, next_action_at: now } as const
    const messages = play({
      campaigns: [campaign({ branching_enabled: true, steps })],
      recipients: [...people(1), ...people(1, { ...had, id: 'seen', position: 1, read: true })],
    })
    expect(messages.map(({ recipient_id, branch, at }) => [recipient_id, branch, at.getUTCHours()])).toEqual([
      ['a0', null, 10],
      ['seen', 'seen', 11],
      ['a0', 'unseen', 12],
    ])
  })

  test('assigns contacts to the account with most quota left, and keeps them with the one that wrote first', () => {
    const accounts = new Map([
      ['one', { ...account, used: 3 }],
      ['two', { ...account, used: 1 }],
      ['off', { ...account, ready: false }],
    ])
    const messages = play({
      campaigns: [campaign({ kind: 'contacts', pool: ['one', 'two', 'off'], steps: [step(1)] })],
      recipients: people(6, { account_id: null, chat_id: null, name: null }),
      accounts,
    })
    const first = messages.filter(({ step_no }) => step_no === 0).map(({ account_id }) => account_id)
    expect(first.slice(0, 2)).toEqual(['two', 'two'])
    expect(first.filter((id) => id === 'two')).toHaveLength(4)
    const writers = new Map(messages.map(({ recipient_id, account_id }) => [recipient_id, account_id]))
    for (const { recipient_id, account_id } of messages) expect(writers.get(recipient_id)).toBe(account_id)
    expect(messages).toHaveLength(12)
  })

  test('counts look-ups and people who never wrote against their own allowances', () => {
    const cold = play({
      recipients: people(3),
      accounts: new Map([['one', { ...account, cold_per_day: 1 }]]),
    })
    expect(cold.map(({ day }) => day)).toEqual(['2026-06-05', '2026-06-06', '2026-06-07'])
    const warm = play({
      recipients: [...people(2), ...people(1, { id: 'warm', position: 2, cold: false })],
      accounts: new Map([['one', { ...account, cold_per_day: 1 }]]),
    })
    expect(warm.map(({ recipient_id, day }) => `${recipient_id} ${day}`)).toEqual([
      'a0 2026-06-05',
      'warm 2026-06-05',
      'a1 2026-06-06',
    ])
  })

  test('counts a look-up only for those whom the account cannot ask about', () => {
    const contacts = people(4, { chat_id: null }).map((one) => ({
      ...one,
      asked_by: one.position < 2 ? ['one'] : ['two'],
    }))
    const messages = play({
      campaigns: [campaign({ kind: 'contacts', pool: ['one'] })],
      recipients: contacts,
      accounts: new Map([['one', { ...account, lookups_per_day: 1 }]]),
    })
    expect(messages.map(({ recipient_id, day }) => `${recipient_id} ${day}`)).toEqual([
      'a0 2026-06-05',
      'a1 2026-06-05',
      'a2 2026-06-05',
      'a3 2026-06-06',
    ])
  })

  test('forecasts nothing while an operator has to act first', () => {
    expect(play({ campaigns: [campaign({ status: 'paused' })], recipients: people(2) })).toEqual([])
    expect(play({ campaigns: [campaign({ allowed: false })], recipients: people(2) })).toEqual([])
    expect(
      play({ recipients: people(2), accounts: new Map([['one', { ...account, ready: false }]]) }),
    ).toEqual([])
    expect(
      play({ recipients: people(2), accounts: new Map([['one', { ...account, cold_per_day: 0 }]]) }),
    ).toEqual([])
  })

  test('stays in order, never early, never above the quota, with every step once, for any campaign', () => {
    const stories = fc.record({
      recipients: fc.integer({ min: 1, max: 12 }),
      waits: fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 3 }),
      quota: fc.integer({ min: 1, max: 5 }),
      free: fc.boolean(),
      timezone: fc.constantFrom('UTC', 'Europe/Berlin', 'Pacific/Apia'),
      window: fc.constantFrom('mon-fri 09:00-18:00', 'sat 00:00-24:00', null),
    })
    fc.assert(
      fc.property(stories, ({ recipients, waits, quota, free, timezone, window }) => {
        const steps = waits.map((hours) => step(hours))
        const messages = play({
          campaigns: [
            campaign({
              kind: 'contacts',
              steps,
              daily_quota_per_account: quota,
              pool: free ? ['one', 'two'] : [],
            }),
          ],
          recipients: people(recipients, { account_id: free ? null : 'one', chat_id: free ? null : '7' }),
          accounts: new Map([
            ['one', account],
            ['two', account],
          ]),
          hours: { timezone, window: window === null ? null : (parseWindow(window) ?? null) },
        })
        expect(messages).toHaveLength(recipients * (1 + steps.length))
        const days = new Map<string, number>()
        const last = new Map<string, PlannedMessage>()
        let before = now
        for (const one of messages) {
          expect(one.at.getTime()).toBeGreaterThanOrEqual(before.getTime())
          before = one.at
          const previous = last.get(one.recipient_id)
          expect(one.step_no).toBe(previous ? previous.step_no + 1 : 0)
          const wait = previous ? (waits[one.step_no - 1] ?? 0) * 3_600_000 : 0
          expect(one.at.getTime() - (previous?.at.getTime() ?? 0)).toBeGreaterThanOrEqual(wait)
          last.set(one.recipient_id, one)
          expect(one.day).toBe(localDay(one.at, timezone))
          const key = `${one.account_id} ${one.day}`
          days.set(key, (days.get(key) ?? 0) + 1)
          expect(days.get(key)).toBeLessThanOrEqual(quota)
        }
      }),
      { numRuns: 60 * Number(process.env.RUNS ?? 1) },
    )
  })
})
