import { describe, expect, test } from 'vitest'
import { parseWindow } from '../../../rules/sending-window.ts'
import {
  dueAt,
  type Facts,
  type Plan,
  type PlannedAccount,
  type PlannedCampaign,
  type PlannedRecipient,
  plan,
  planStart,
  quotaDay,
  type Step,
  variantOf,
} from './plan.ts'

const at = (text: string) => new Date(`2026-${text}Z`)
/** A Friday. */
const now = at('06-05T10:00')

const campaign: PlannedCampaign = {
  kind: 'scoped',
  status: 'sending',
  message_text: 'Hi [[name]]',
  branching_enabled: false,
  daily_quota_per_account: 30,
  max_followups: 5,
  scheduled_at: null,
  steps: [],
  allowed: true,
}
const recipient: PlannedRecipient = {
  id: '0190b0c0-0000-8000-8000-000000000001',
  status: 'queued',
  step: 0,
  chat_id: '7',
  name: 'Ada',
  username: null,
  last_sent_at: null,
  next_action_at: at('06-05T09:00'),
  read: false,
  unknown_since: null,
  cold: true,
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

interface Given {
  readonly campaign?: Partial<PlannedCampaign>
  readonly recipient?: Partial<PlannedRecipient>
  readonly account?: Partial<PlannedAccount> | null
  readonly timezone?: string
  readonly window?: string
  readonly now?: Date
}

function factsOf(given: Given): Facts {
  const window = given.window === undefined ? null : parseWindow(given.window)
  if (window === undefined) throw new Error(given.window)
  return {
    campaign: { ...campaign, ...given.campaign },
    recipient: { ...recipient, ...given.recipient },
    account: given.account === null ? null : { ...account, ...given.account },
    hours: { timezone: given.timezone ?? 'UTC', window },
    now: given.now ?? now,
  }
}

const first: Plan = { do: 'send', step_no: 0, branch: null, variant: 0, text: 'Hi Ada', cold: true }
const wait = (blocked_by: string, until: string | null): object => ({
  do: 'wait',
  blocked_by,
  until: until === null ? null : at(until),
})
const end = (status: string, reason: string | null = null): object => ({ do: 'end', status, reason })
const step = (branch: Step['branch'], wait_hours: number, text: string): Step => ({
  branch,
  wait_hours,
  variants: [text],
})

/** It got its first message an hour ago. */
const followed: Partial<PlannedRecipient> = { status: 'waiting', step: 1, last_sent_at: at('06-05T09:00') }
const once = { steps: [step('no_reply', 1, 'Again')] }
const tracks = {
  branching_enabled: true,
  steps: [step('seen', 1, 'Seen 1'), step('unseen', 2, 'Unseen 1'), step('unseen', 2, 'Unseen 2')],
}

const table: [title: string, given: Given, planned: object][] = [
  ['a first message that is due goes out', {}, first],
  ['at the very moment it is due', { recipient: { next_action_at: now } }, first],
  ['a contact is looked up first', { recipient: { chat_id: null } }, { do: 'look_up' }],

  // States that decide by themselves.
  ['in flight: nothing', { recipient: { status: 'submitting', next_action_at: null } }, { do: 'nothing' }],
  ...(['completed', 'replied', 'failed', 'ambiguous', 'cancelled', 'suppressed'] as const).map(
    (status): [string, Given, object] => [`${status}: nothing`, { recipient: { status } }, { do: 'nothing' }],
  ),
  [
    'an unknown outcome waits until the next message would be due',
    { recipient: { status: 'submitting', unknown_since: now, next_action_at: at('06-05T11:00') } },
    wait('ambiguous', '06-05T11:00'),
  ],
  [
    'and is final then',
    { recipient: { status: 'submitting', unknown_since: at('06-05T09:00'), next_action_at: now } },
    end('ambiguous'),
  ],
  [
    'a follow-up waits until it is decided whether somebody has written by hand',
    {
      campaign: { steps: [{ branch: 'no_reply', wait_hours: 1, variants: ['Again'] }] },
      recipient: { status: 'waiting', step: 1, last_sent_at: at('06-04T09:00'), undecided: true },
    },
    wait('ambiguous', null),
  ],
  ['a cancelled campaign ends it', { campaign: { status: 'cancelled' } }, end('cancelled')],

  // An operator has to act.
  ['paused', { campaign: { status: 'paused' } }, wait('paused', null)],
  [
    'paused, also before it is due',
    { campaign: { status: 'paused' }, recipient: { next_action_at: at('06-09T10:00') } },
    wait('paused', null),
  ],
  ['a closed gate', { campaign: { allowed: false } }, wait('gate', null)],
  [
    'a pause is reported before a closed gate',
    { campaign: { allowed: false, status: 'paused' } },
    wait('paused', null),
  ],
  ['an account that is not ready', { account: { ready: false } }, wait('account_not_ready', null)],
  ['no account that may take the contact', { account: null }, wait('account_not_ready', null)],

  // Schedules and waits.
  [
    'scheduled',
    { campaign: { status: 'scheduled', scheduled_at: at('06-08T09:00') } },
    wait('scheduled', '06-08T09:00'),
  ],
  [
    'scheduled and due, but not started by the loop yet',
    { campaign: { status: 'scheduled', scheduled_at: at('06-05T09:00') } },
    wait('scheduled', '06-05T10:00'),
  ],
  [
    'scheduled for a time outside the window',
    { campaign: { status: 'scheduled', scheduled_at: at('06-06T10:00') }, window: 'mon-fri 09:00-18:00' },
    wait('scheduled', '06-08T09:00'),
  ],
  [
    'one millisecond before its wait is over',
    { campaign: once, recipient: followed, now: new Date(now.getTime() - 1) },
    wait('waiting', '06-05T10:00'),
  ],
  [
    'its wait is over',
    { campaign: once, recipient: followed },
    { do: 'send', step_no: 1, branch: 'no_reply', variant: 0, text: 'Again', cold: false },
  ],
  ['no step is left', { recipient: followed }, end('completed')],
  [
    'max_followups leaves none',
    { campaign: { ...once, max_followups: 0 }, recipient: followed },
    end('completed'),
  ],
  [
    'a wait that would end on a used-up day',
    { campaign: once, recipient: followed, account: { used: 30 }, now: at('06-05T09:30') },
    wait('waiting', '06-06T00:00'),
  ],
  [
    'a wait that ends tomorrow does not mind today',
    {
      campaign: { steps: [step('no_reply', 24, 'Again')] },
      recipient: followed,
      account: { used: 30 },
    },
    wait('waiting', '06-06T09:00'),
  ],

  // Branches.
  [
    'read: the seen track',
    { campaign: tracks, recipient: { ...followed, read: true } },
    { do: 'send', step_no: 1, branch: 'seen', variant: 0, text: 'Seen 1', cold: false },
  ],
  [
    'not read: the unseen track waits longer',
    { campaign: tracks, recipient: followed },
    wait('waiting', '06-05T11:00'),
  ],
  [
    'not read when its wait is over',
    { campaign: tracks, recipient: followed, now: at('06-05T11:00') },
    { do: 'send', step_no: 1, branch: 'unseen', variant: 0, text: 'Unseen 1', cold: false },
  ],
  [
    'only the other track has the step: its wait sets the moment',
    { campaign: tracks, recipient: { ...followed, step: 2, read: true } },
    wait('waiting', '06-05T11:00'),
  ],
  [
    'and it ends there if it does not match',
    { campaign: tracks, recipient: { ...followed, step: 2, read: true }, now: at('06-05T11:00') },
    end('completed'),
  ],
  [
    'or sends if it matches',
    { campaign: tracks, recipient: { ...followed, step: 2 }, now: at('06-05T11:00') },
    { do: 'send', step_no: 2, branch: 'unseen', variant: 0, text: 'Unseen 2', cold: false },
  ],
  [
    'it ends there though the account could not write',
    {
      campaign: tracks,
      recipient: { ...followed, step: 2, read: true },
      account: null,
      now: at('06-05T11:00'),
    },
    end('completed'),
  ],
  ['neither track has the step', { campaign: tracks, recipient: { ...followed, step: 3 } }, end('completed')],
  [
    'a track is cut at max_followups',
    { campaign: { ...tracks, max_followups: 1 }, recipient: { ...followed, step: 2 } },
    end('completed'),
  ],

  // What holds an account.
  ['a flood wait', { account: { flood_until: at('06-05T10:30') } }, wait('flood_wait', '06-05T10:30')],
  ['a flood wait that is over', { account: { flood_until: now } }, first],
  [
    'a flood wait for look-ups, in a known chat',
    { account: { lookup_flood_until: at('06-05T10:30') } },
    first,
  ],
  [
    'a flood wait for look-ups, of a contact who must be looked up',
    { account: { lookup_flood_until: at('06-05T10:30') }, recipient: { chat_id: null } },
    wait('flood_wait', '06-05T10:30'),
  ],
  [
    'a contact whose name the platform told less than an hour ago',
    { recipient: { known_until: at('06-05T10:00:01') } },
    first,
  ],
  [
    'a contact whose name the platform told an hour ago',
    { recipient: { known_until: now } },
    { do: 'look_up' },
  ],
  [
    'a flood wait for look-ups, of a contact whose name the platform told an hour ago',
    { account: { lookup_flood_until: at('06-05T10:30') }, recipient: { known_until: now } },
    wait('flood_wait', '06-05T10:30'),
  ],
  [
    'a flood wait for look-ups, of a contact whom a chat proves',
    { account: { lookup_flood_until: at('06-05T10:30') }, recipient: { chat_id: null, needs_lookup: false } },
    { do: 'look_up' },
  ],
  [
    'a flood wait into the night',
    { account: { flood_until: at('06-05T20:00') }, window: 'mon-fri 09:00-18:00' },
    wait('flood_wait', '06-08T09:00'),
  ],
  ['pacing', { account: { next_campaign_at: at('06-05T10:00:15') } }, wait('pacing', '06-05T10:00:15')],
  ['pacing that is over', { account: { next_campaign_at: now } }, first],
  ['inside the window', { window: 'fri 10:00-11:00' }, first],
  ['outside the window', { window: 'mon-fri 11:00-12:00' }, wait('window', '06-05T11:00')],
  [
    'outside the window, by the clocks there',
    { window: 'mon-fri 09:00-12:00', timezone: 'Europe/Berlin' },
    wait('window', '06-08T07:00'),
  ],
  ['one below the quota', { account: { used: 29 } }, first],
  ['the quota is used', { account: { used: 30 } }, wait('quota', '06-06T00:00')],
  ['more than the quota, by other campaigns', { account: { used: 31 } }, wait('quota', '06-06T00:00')],
  [
    'a follow-up uses the same quota',
    { campaign: once, recipient: followed, account: { used: 30 } },
    wait('quota', '06-06T00:00'),
  ],
  [
    "the day is the workspace's",
    { account: { used: 30 }, timezone: 'Europe/Berlin' },
    wait('quota', '06-05T22:00'),
  ],
  [
    'the quota is used and tomorrow is closed',
    { account: { used: 30 }, window: 'mon-fri 09:00-18:00' },
    wait('quota', '06-08T09:00'),
  ],
  [
    'the quota is used on the night that clocks change',
    {
      account: { used: 30 },
      timezone: 'Europe/Berlin',
      now: at('03-28T23:30'),
      recipient: { next_action_at: at('03-28T09:00') },
    },
    wait('quota', '03-29T22:00'),
  ],
  [
    'a broadcast knows no quota',
    {
      campaign: { kind: 'broadcast', daily_quota_per_account: null, message_text: 'Hi {{name}}' },
      account: { used: 500, used_cold: 500, cold_per_day: 0 },
    },
    { ...first, cold: false },
  ],
  [
    'a broadcast knows the window',
    { campaign: { kind: 'broadcast', daily_quota_per_account: null }, window: 'sat 10:00-11:00' },
    wait('window', '06-06T10:00'),
  ],

  // People who never wrote.
  ['one below the cold allowance', { account: { cold_per_day: 5, used_cold: 4 } }, first],
  [
    'the cold allowance is used',
    { account: { cold_per_day: 5, used_cold: 5 } },
    wait('quota', '06-06T00:00'),
  ],
  [
    'first messages stopped by the platform',
    { account: { cold_stopped: true, cold_per_day: 9 } },
    wait('quota', null),
  ],
  [
    'first messages stopped, to someone who wrote before',
    { account: { cold_stopped: true }, recipient: { cold: false } },
    { ...first, cold: false },
  ],
  ['one below the first day of a ramp', { account: { cold_ramp_from: '2026-06-05', used_cold: 4 } }, first],
  [
    'as many as the first day of a ramp allows',
    { account: { cold_ramp_from: '2026-06-05', used_cold: 5 } },
    wait('quota', '06-06T00:00'),
  ],
  ['one below the third day of a ramp', { account: { cold_ramp_from: '2026-06-03', used_cold: 14 } }, first],
  [
    'as many as a ramp allows at most',
    { account: { cold_ramp_from: '2026-05-20', used_cold: 20 } },
    wait('quota', '06-06T00:00'),
  ],
  [
    'more than the ramp where an operator says so',
    { account: { cold_ramp_from: '2026-06-05', cold_per_day: 30, used_cold: 29 } },
    first,
  ],
  ['no cold messages at all', { account: { cold_per_day: 0 } }, wait('quota', null)],
  [
    'a person who wrote before is not cold',
    { account: { cold_per_day: 0 }, recipient: { cold: false } },
    { ...first, cold: false },
  ],
  [
    'a follow-up is not a first message',
    { campaign: once, recipient: followed, account: { cold_per_day: 0 } },
    { do: 'send', step_no: 1, branch: 'no_reply', variant: 0, text: 'Again', cold: false },
  ],
  [
    'the look-ups of the day are used',
    { recipient: { chat_id: null }, account: { lookups: 200 } },
    wait('quota', '06-06T00:00'),
  ],
  ['a known person needs no look-up', { account: { lookups: 200 } }, first],

  // Texts.
  ['a missing name', { recipient: { name: null } }, end('failed', 'unresolved_personalization')],
  ['a name that is too long', { recipient: { name: 'x'.repeat(4_094) } }, end('failed', 'text_too_long')],
  [
    'a text that cannot be sent waits like any other',
    { recipient: { name: null }, account: { used: 30 } },
    wait('quota', '06-06T00:00'),
  ],
  [
    'contacts have the other form',
    { campaign: { kind: 'contacts', message_text: 'Hi {{name|there}}' }, recipient: { name: null } },
    { ...first, text: 'Hi there' },
  ],
]

describe('the plan', () => {
  test.each(table)('%s', (_, given, planned) => {
    expect(plan(factsOf(given))).toEqual(planned)
  })

  test('a message is never due early, whatever the fraction of an hour', () => {
    const steps = [step('no_reply', 0.0833, 'Again')]
    const due = dueAt({ ...campaign, steps }, { ...recipient, ...followed })
    expect(due?.getTime()).toBe(at('06-05T09:00').getTime() + 299_880)
    expect(dueAt(campaign, { ...recipient, ...followed })).toBeNull()
    expect(dueAt(campaign, recipient)).toEqual(recipient.next_action_at)
  })

  test("the quota's day is the local day of the zone", () => {
    expect(quotaDay(at('03-28T23:30'), { timezone: 'Europe/Berlin' })).toBe('2026-03-29')
    expect(quotaDay(at('03-29T22:30'), { timezone: 'Europe/Berlin' })).toBe('2026-03-30')
    expect(quotaDay(at('03-28T23:30'), { timezone: 'America/New_York' })).toBe('2026-03-28')
  })

  test('variants are distributed evenly over recipients, and are the same every time', () => {
    const chosen = [0, 0, 0, 0, 0]
    for (let n = 0; n < 5_000; n++) {
      const variant = variantOf(`recipient ${n}`, 1, 5)
      expect(variantOf(`recipient ${n}`, 1, 5)).toBe(variant)
      chosen[variant] = (chosen[variant] ?? 0) + 1
    }
    for (const count of chosen) expect(Math.abs(count - 1_000)).toBeLessThan(150)
    const steps = Array.from({ length: 100 }, (_, step_no) => variantOf('recipient', step_no, 5))
    expect(new Set(steps).size).toBe(5)
  })

  test('a schedule starts on time, and late only within the tolerance', () => {
    const scheduled_at = at('06-05T10:00')
    const starts = (time: string, sequence: boolean, lateness_seconds: number | undefined) =>
      planStart({ scheduled_at, sequence }, { now: at(time), lateness_seconds })
    expect(starts('06-05T09:59:59.999', true, 60)).toBe('wait')
    expect(starts('06-05T10:00', true, 60)).toBe('start')
    expect(starts('06-05T10:01', true, 60)).toBe('start')
    expect(starts('06-05T10:01:00.001', true, 60)).toBe('pause')
    expect(starts('06-05T10:01:00.001', false, 60)).toBe('start')
    expect(starts('06-09T10:00', true, undefined)).toBe('start')
  })
})
