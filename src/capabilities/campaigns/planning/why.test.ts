import { describe, expect, test } from 'vitest'
import { parseWindow } from '../../../rules/sending-window.ts'
import { type Block, blocks, plan } from './plan.ts'
import {
  type CampaignStop,
  type Circumstances,
  type causes,
  type endings,
  type exclusions,
  type NamedAccount,
  shortTime,
  whyExcluded,
  whyOf,
} from './why.ts'

const at = (text: string) => new Date(`2026-${text}Z`)
/** A Monday. */
const now = at('06-08T10:00')

const account: NamedAccount = {
  name: 'Sales',
  status: 'READY',
  gap: false,
  held_by: null,
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
  readonly campaign?: Partial<Circumstances['campaign']>
  readonly recipient?: Partial<Circumstances['recipient']>
  readonly account?: Partial<NamedAccount> | null
  readonly stop?: CampaignStop
  readonly pause_reason?: 'requested' | 'late'
  readonly pool_unconfirmed?: boolean
  readonly window?: string
  readonly timezone?: string
}

function circumstancesOf(given: Given): Circumstances {
  return {
    campaign: {
      kind: 'scoped',
      status: 'sending',
      message_text: 'Hi',
      branching_enabled: false,
      daily_quota_per_account: 30,
      max_followups: 5,
      scheduled_at: null,
      steps: [],
      allowed: given.stop === undefined,
      ...given.campaign,
    },
    recipient: {
      id: '0190b0c0-0000-8000-8000-000000000001',
      status: 'queued',
      step: 0,
      chat_id: '7',
      name: 'Ada',
      username: null,
      last_sent_at: null,
      next_action_at: at('06-08T09:00'),
      read: false,
      unknown_since: null,
      cold: true,
      ...given.recipient,
    },
    account: given.account === null ? null : { ...account, ...given.account },
    hours: { timezone: given.timezone ?? 'UTC', window: parseWindow(given.window ?? 'x') ?? null },
    now,
    stop: given.stop ?? null,
    pause_reason: given.pause_reason ?? null,
    pool_unconfirmed: given.pool_unconfirmed ?? false,
  }
}

function explain(given: Given, past: { reason?: string; replied_at?: Date; opted_out?: boolean } = {}) {
  const about = circumstancesOf(given)
  const { reason = null, replied_at = null, opted_out = false } = past
  const planned = plan(about)
  const sentence = whyOf({ ...about.recipient, reason, replied_at, opted_out }, planned, about)
  return [planned.do === 'wait' ? planned.blocked_by : planned.do, sentence]
}

const unready = (given: Partial<NamedAccount>) => ({ account: { ready: false, ...given } })
const stopped = (by: Exclude<CampaignStop['by'], 'gate'>): Given => ({ stop: { by } })
const stranger = { kind: 'contacts', steps: [] } as const
const followed = { status: 'waiting', step: 1, last_sent_at: at('06-08T09:00') } as const
const steps = [{ branch: 'no_reply', wait_hours: 48, variants: ['Again'] }] as const

/** What each cause is called, the facts that lead to it, the block on the wire and the sentence. */
const waits: Record<keyof typeof causes, readonly [Given, Block, string]> = {
  unfound: [
    { campaign: stranger, recipient: { chat_id: null, unfound: true, next_action_at: at('06-10T00:00') } },
    'waiting',
    'The platform found no person with this identifier, though one had it. It is asked once more. Wed 00:00 UTC',
  ],
  scheduled: [
    { campaign: { status: 'scheduled', scheduled_at: at('06-11T08:30') } },
    'scheduled',
    'The campaign starts later. Thu 08:30 UTC',
  ],
  waiting: [
    { campaign: { steps }, recipient: followed },
    'waiting',
    'The next message is not due yet. Wed 09:00 UTC',
  ],
  messages_used: [
    { account: { used: 30 }, window: 'mon-fri 09:00-18:00' },
    'quota',
    'Sales has sent its 30 for today. Tue 09:00 UTC',
  ],
  lookups_used: [
    { campaign: stranger, recipient: { chat_id: null }, account: { lookups: 200 } },
    'quota',
    'Sales has used its 200 lookups for today. Tue 00:00 UTC',
  ],
  cold_used: [
    { account: { cold_per_day: 5, used_cold: 5 } },
    'quota',
    'Sales has sent its 5 first messages for today. Tue 00:00 UTC',
  ],
  cold_forbidden: [{ account: { cold_per_day: 0 } }, 'quota', 'Sales may not send first messages.'],
  cold_stopped: [
    { account: { cold_stopped: true, cold_per_day: 5 } },
    'quota',
    'The platform stopped first messages from Sales. An admin has to enable the account again.',
  ],
  pacing: [
    { account: { next_campaign_at: at('06-08T10:02') } },
    'pacing',
    'Sales pauses between two messages. Mon 10:02 UTC',
  ],
  flood_sends: [
    { account: { flood_until: at('06-08T11:00') } },
    'flood_wait',
    'The platform makes Sales wait before it sends again. Mon 11:00 UTC',
  ],
  flood_lookups: [
    { campaign: stranger, recipient: { chat_id: null }, account: { lookup_flood_until: at('06-08T12:00') } },
    'flood_wait',
    'The platform makes Sales wait before it looks up contacts again. Mon 12:00 UTC',
  ],
  no_account: [{ account: null }, 'account_not_ready', 'No account of this campaign is ready.'],
  pool_unconfirmed: [
    { account: null, pool_unconfirmed: true },
    'account_not_ready',
    'An account of this campaign has not connected since the database was restored.',
  ],
  connecting: [unready({ status: 'CONNECTING' }), 'account_not_ready', 'Sales is connecting.'],
  needs_login: [unready({ status: 'NEEDS_LOGIN' }), 'account_not_ready', 'Sales has to log in again.'],
  restricted: [unready({ status: 'RESTRICTED' }), 'account_not_ready', 'The platform restricted Sales.'],
  disabled: [unready({ status: 'DISABLED' }), 'account_not_ready', 'Sales is disabled.'],
  gap: [unready({ gap: true }), 'account_not_ready', 'Sales still loads messages that it missed.'],
  held: [
    unready({ held_by: 'NEW_LIMIT', gap: true }),
    'account_not_ready',
    'Sends from Sales kept ending with the unknown error NEW_LIMIT. An admin has to enable the account again.',
  ],
  not_connected: [unready({}), 'account_not_ready', 'Sales is not connected.'],
  ambiguous: [
    { recipient: { status: 'submitting', unknown_since: now, next_action_at: at('06-10T10:31') } },
    'ambiguous',
    'Waits for proof that the message arrived, until Wed 10:31 UTC. It is not sent again.',
  ],
  undecided: [
    {
      recipient: { status: 'waiting', step: 1, last_sent_at: at('06-01T10:30'), undecided: true },
      campaign: { steps },
    },
    'ambiguous',
    'Waits until it is known whether a member of the team has written to this person by hand, which ends the sequence.',
  ],
  stopped_by_dispatch: [stopped('dispatch'), 'gate', 'Sending is switched off on this instance.'],
  stopped_by_user: [stopped('user'), 'gate', 'The user who created the campaign is disabled.'],
  stopped_by_allowlists: [stopped('allowlists'), 'gate', 'The campaign allowlists are not installed.'],
  stopped_by_campaign_user: [
    stopped('campaign_user'),
    'gate',
    'The user who created the campaign is not on the campaign allowlist.',
  ],
  stopped_by_campaign_workspace: [
    stopped('campaign_workspace'),
    'gate',
    'The workspace is not on the campaign allowlist.',
  ],
  stopped_by_gate: [
    { stop: { by: 'gate', gate: 'branching' } },
    'gate',
    'The feature "branching" is switched off on this instance.',
  ],
  window: [
    { window: 'tue-fri 09:00-18:00' },
    'window',
    'Outside the sending window tue-fri 09:00-18:00. Tue 09:00 UTC',
  ],
  paused: [
    { campaign: { status: 'paused' }, pause_reason: 'requested' },
    'paused',
    'The campaign is paused.',
  ],
  missed_start: [
    { campaign: { status: 'paused' }, pause_reason: 'late' },
    'paused',
    'The campaign is paused because it missed its start.',
  ],
}

describe('why a recipient gets no message now', () => {
  test.each(Object.entries(waits))('%s', (_, [given, block, sentence]) => {
    expect(explain(given)).toEqual([block, sentence])
  })

  test('covers every block of the contract', () => {
    const covered = new Set(Object.values(waits).map(([, block]) => block))
    expect([...covered].toSorted()).toEqual(blocks.toSorted())
  })

  test('says that a message is due or on its way', () => {
    expect(explain({})).toEqual(['send', 'Due now.'])
    expect(explain({ recipient: { status: 'submitting' } })).toEqual([
      'nothing',
      'The message is being sent.',
    ])
  })
})

/** Written independently of the code. */
const ended: Record<keyof typeof endings, string> = {
  unresolved_personalization: 'A placeholder in the text has no value for this person.',
  text_too_long: 'The text has more than 4096 characters for this person.',
  suppressed: 'The person is on the suppression list.',
  identity_ineligible: 'This is not a person who can receive messages.',
  name_changed: 'The identifier belongs to another person now.',
  duplicate: 'Another recipient of this campaign is the same person.',
  noted_not_sent: 'A user closed the message as not sent.',
  answered_by_hand: 'A member of the team wrote to this person by hand.',
  never_written: 'It turned out later that the message was not sent.',
  username_not_found: 'The platform found no person with this identifier.',
  chat_unavailable: 'Sales cannot write to this chat.',
  blocked_by_person: 'The person blocked Sales.',
  privacy_restricted: 'The person does not accept messages from Sales.',
  cold_stopped: 'The platform stopped first messages from Sales.',
  message_invalid: 'The platform refused the text.',
  file_unavailable: 'The platform no longer has the file.',
  needs_login: 'Sales was logged out.',
  restricted: 'The platform restricted Sales.',
}

describe('how a recipient ended', () => {
  test.each(Object.entries(ended))('%s', (reason, sentence) => {
    expect(explain({ recipient: { status: 'failed' } }, { reason })).toEqual(['nothing', sentence])
  })

  test('without a reason, and with one that this version does not know', () => {
    const final = (status: Circumstances['recipient']['status'], past = {}, step = 2) =>
      explain({ recipient: { status, step } }, past)[1]
    expect(final('completed')).toBe('Got 2 messages.')
    expect(final('completed', {}, 1)).toBe('Got 1 message.')
    expect(final('replied', { replied_at: at('06-08T09:31') })).toBe('Replied. Mon 09:31 UTC')
    expect(final('replied', { replied_at: at('06-08T09:31'), opted_out: true })).toBe(
      'Asked to stop. Mon 09:31 UTC',
    )
    expect(final('ambiguous')).toBe('It is unknown whether the message arrived. It is not sent again.')
    expect(final('cancelled')).toBe('The campaign was cancelled.')
    expect(final('suppressed')).toBe('The person is on the suppression list.')
    expect(final('failed', { reason: 'constructor' })).toBe('The message was not sent.')
  })
})

const excluded: Record<keyof typeof exclusions, string> = {
  foreign: 'The account is not an account of this workspace.',
  not_ready: 'Sales is not ready.',
  no_chat: 'Sales has no such chat.',
  no_person: 'This is not a person who can receive messages.',
  suppressed: 'The person is on the suppression list.',
  nameless: 'A placeholder in the text has no value for this person.',
  too_long: 'The text has more than 4096 characters for this person.',
}

test.each(Object.entries(excluded))('why a preview excludes a recipient: %s', (reason, sentence) => {
  expect(whyExcluded(reason as keyof typeof excluded, 'Sales')).toBe(sentence)
})

test('a time is in the zone of the workspace, with its date where the weekday could mean another week', () => {
  const at = (text: string, timezone = 'Europe/Berlin') =>
    shortTime(new Date(text), { now, hours: { timezone, window: null } })
  expect(at('2026-06-09T07:00Z')).toBe('Tue 09:00 Berlin time')
  expect(at('2026-06-08T22:30Z')).toBe('Tue 00:30 Berlin time')
  expect(at('2026-06-14T21:59Z')).toBe('Sun 23:59 Berlin time')
  expect(at('2026-06-14T22:00Z')).toBe('Mon 15 Jun 00:00 Berlin time')
  expect(at('2027-01-04T08:00Z')).toBe('Mon 4 Jan 2027 09:00 Berlin time')
  expect(at('2026-06-01T10:00Z')).toBe('Mon 1 Jun 12:00 Berlin time')
  expect(at('2026-06-08T10:00Z', 'Asia/Kathmandu')).toBe('Mon 15:45 Kathmandu time')
  expect(at('2026-06-08T10:00Z', 'UTC')).toBe('Mon 10:00 UTC')
  expect(at('2026-06-08T10:00Z', 'America/Argentina/Buenos_Aires')).toBe('Mon 07:00 Buenos Aires time')
})
