/** The campaign oracle: it accepts the truth, and names each lie by the promise it breaks. */
import { describe, expect, test } from 'vitest'
import {
  type CampaignEvidence,
  type CampaignViolation,
  checkListed,
  judgeCampaigns,
} from './campaign-oracle.ts'

const at = (hours: number) => new Date(Date.UTC(2026, 10, 2, 9) + hours * 3_600_000)

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
type Lists = {
  [K in keyof Omit<CampaignEvidence, 'in_flight'>]-?: Mutable<NonNullable<CampaignEvidence[K]>[number]>[]
}

/** A sequence of two to two people: one has received both, the other waits for the second. */
function truth(): Lists {
  const message = (recipient_id: string, step_no: number, hours: number) => ({
    ...{ id: `${recipient_id}-${step_no}`, campaign_id: 'k', recipient_id, step_no, account_id: 'a' },
    ...{ random_id: `${recipient_id}${step_no}`, state: 'completed', closed_as: null as string | null },
    ...{
      quota_day: `2026-11-0${2 + Math.floor(hours / 24)}` as string | null,
      branch: step_no ? 'no_reply' : null,
    },
    ...{ crossed_at: at(hours) as Date | null, sent_at: at(hours) as Date | null },
  })
  const messages = [message('one', 0, 0), message('two', 0, 1), message('one', 1, 24)]
  const recipient = { campaign_id: 'k', account_id: 'a', unknown_since: null, replied_at: null }
  return {
    campaigns: [
      {
        ...{
          id: 'k',
          kind: 'scoped',
          status: 'sending',
          branching_enabled: false,
          daily_quota_per_account: 2,
        },
        ...{ scheduled_at: null, cancelled_at: null, steps: [{ branch: 'no_reply', wait_hours: 24 }] },
      },
    ],
    recipients: [
      { ...recipient, id: 'one', status: 'completed', step: 2, next_action_at: null, ended_at: at(24) },
      { ...recipient, id: 'two', status: 'waiting', step: 1, next_action_at: at(25), ended_at: null },
    ],
    messages,
    days: [
      { account_id: 'a', day: '2026-11-02', used: 2 },
      { account_id: 'a', day: '2026-11-03', used: 1 },
    ],
    totals: [
      { campaign_id: 'k', account_id: 'a', status: 'completed', count: 1 },
      { campaign_id: 'k', account_id: 'a', status: 'waiting', count: 1 },
    ],
    journal: messages.map(({ account_id, recipient_id, random_id, crossed_at }) => ({
      ...{ kind: 'send' as const, account_id, random_id, at: crossed_at?.toISOString() ?? '' },
      chat_id: `platform:chat:${recipient_id}`,
    })),
    stops: [],
  }
}

test('accepts the truth', () => {
  expect(judgeCampaigns(truth())).toEqual([])
})

/** Both are the same person, under two names; the platform accepted the first message of each. */
function onePerson(kind: string, change: (evidence: Lists) => void = () => {}): CampaignViolation[] {
  const evidence = truth()
  first(evidence.campaigns).kind = kind
  for (const entry of evidence.journal) entry.chat_id = 'platform:chat:7'
  change(evidence)
  return judgeCampaigns(evidence)
}

const twice = [{ promise: 'P1', what: 'platform:chat:7 got 2 messages of step 0', id: 'one-0' }]

describe('a person who got the same step twice', () => {
  test('under two names, from one account', () => {
    expect(onePerson('contacts')).toEqual(twice)
  })

  test('under two names, from two accounts of the pool', () => {
    const violations = onePerson('contacts', ({ recipients, messages, journal, days, totals }) => {
      for (const row of [first(recipients, 1), first(messages, 1), first(journal, 1), first(totals, 1)]) {
        row.account_id = 'b'
      }
      first(days).used = 1
      days.push({ account_id: 'b', day: '2026-11-02', used: 1 })
    })
    expect(violations).toEqual(twice)
  })

  test('whom the recipients treat as two', () => {
    // The ledger's record of the second is lost: only the platform still knows that it was accepted.
    const violations = onePerson('contacts', ({ messages }) => {
      Object.assign(first(messages, 1), { state: 'released', quota_day: null })
    })
    expect(violations).toEqual(expect.arrayContaining(twice))
  })

  test('does not count if the steps differ, or another campaign wrote', () => {
    expect(onePerson('contacts', ({ journal }) => void journal.splice(0, 1))).not.toContainEqual(twice[0])
    const other = onePerson('contacts', ({ campaigns, recipients, messages, totals }) => {
      campaigns.push({ ...first(campaigns), id: 'other' })
      for (const row of [first(recipients, 1), first(messages, 1), first(totals, 1)])
        row.campaign_id = 'other'
    })
    expect(other).toEqual([])
  })

  test('does not count if the caller chose both chats', () => {
    expect(onePerson('scoped')).toEqual([])
  })
})

function addReply(
  { recipients, totals }: Lists,
  { written, stored }: { written: number; stored: number },
): void {
  Object.assign(first(recipients), { status: 'replied', replied_at: at(written), ended_at: at(stored) })
  first(totals).status = 'replied'
}

test('accepts a reply that was written before our message crossed, and received only after it', () => {
  const evidence = truth()
  addReply(evidence, { written: 23, stored: 25 })
  expect(judgeCampaigns(evidence)).toEqual([])
})

/** The last message is in flight, and the platform has accepted it. */
function inFlight(): Lists {
  const evidence = truth()
  Object.assign(first(evidence.messages, 2), { state: 'submitting', sent_at: null })
  Object.assign(first(evidence.recipients), {
    status: 'submitting',
    step: 1,
    next_action_at: null,
    ended_at: null,
  })
  first(evidence.totals).status = 'submitting'
  return evidence
}

test('an accepted message may be unrecorded while its worker processes it, and no longer', () => {
  expect(judgeCampaigns({ ...inFlight(), in_flight: ['one-1'] })).toEqual([])
  expect(judgeCampaigns(inFlight()).map(({ promise }) => promise)).toEqual(['P2'])
})

function first<T>(list: T[], at = 0): T {
  const one = list[at]
  if (!one) throw new Error('The truth has no such row.')
  return one
}

test.each<[string, CampaignViolation['promise'], (lie: Lists) => void]>([
  ['a message that the platform accepted twice', 'P1', ({ journal }) => journal.push({ ...first(journal) })],
  [
    'a second operation for a step',
    'P1',
    ({ messages }) => messages.push({ ...first(messages), id: 'again', state: 'released', quota_day: null }),
  ],
  [
    'an accepted message whose operation was released',
    'P2',
    (lie) => Object.assign(first(lie.messages, 1), { state: 'released' }),
  ],
  ['a completed message that the platform did not accept', 'P3', ({ journal }) => journal.splice(1, 1)],
  [
    'a message after the cancel',
    'P5',
    (lie) => Object.assign(first(lie.campaigns), { cancelled_at: at(12) }),
  ],
  [
    'a message while it was paused',
    'P5',
    ({ stops }) => stops.push({ campaign_id: 'k', from: at(0.5), to: at(2) }),
  ],
  ['a use that was not counted', 'P6', (lie) => Object.assign(first(lie.days), { used: 1 })],
  [
    'a refund to another day',
    'P6',
    ({ days }) => {
      Object.assign(first(days), { used: 1 })
      Object.assign(first(days, 1), { used: 2 })
    },
  ],
  ['more than the quota', 'P6', (lie) => Object.assign(first(lie.campaigns), { daily_quota_per_account: 1 })],
  ['totals that are not the rows', 'totals', (lie) => Object.assign(first(lie.totals), { count: 2 })],
  [
    'a status that is not counted',
    'totals',
    (lie) => Object.assign(first(lie.recipients), { status: 'failed' }),
  ],
  [
    'a recipient that knows of fewer messages',
    'agreement',
    (lie) => Object.assign(first(lie.recipients), { step: 1 }),
  ],
  [
    'one in flight whose recipient waits',
    'agreement',
    (lie) => {
      lie.messages.push({
        ...first(lie.messages, 2),
        id: 'two-1',
        recipient_id: 'two',
        random_id: 'two1',
        state: 'submitting',
        crossed_at: at(25),
        sent_at: null,
      })
      first(lie.days, 1).used = 2
    },
  ],
  [
    'a recipient in flight without an operation',
    'agreement',
    (lie) => {
      first(lie.recipients, 1).status = 'submitting'
      first(lie.totals, 1).status = 'submitting'
    },
  ],
  [
    'a waiting recipient in a cancelled campaign',
    'agreement',
    (lie) => Object.assign(first(lie.campaigns), { status: 'cancelled', cancelled_at: at(30) }),
  ],
  [
    'a waiting recipient in a completed campaign',
    'agreement',
    (lie) => Object.assign(first(lie.campaigns), { status: 'completed' }),
  ],
  [
    'a step before its wait was over',
    'early',
    (lie) => Object.assign(first(lie.messages, 2), { crossed_at: at(23) }),
  ],
  [
    'a message before its schedule',
    'early',
    (lie) => Object.assign(first(lie.campaigns), { scheduled_at: at(0.5) }),
  ],
  [
    'a second step without a first',
    'early',
    ({ messages, journal, days, recipients }) => {
      messages.shift()
      journal.shift()
      first(days).used = 1
      first(recipients).step = 1
    },
  ],
  ['a message after the reply', 'after the end', (lie) => addReply(lie, { written: 20, stored: 21 })],
  [
    'a reply without its time',
    'agreement',
    (lie) => {
      addReply(lie, { written: 24, stored: 25 })
      first(lie.recipients).replied_at = null
    },
  ],
  [
    'a message after the end',
    'after the end',
    (lie) => Object.assign(first(lie.recipients), { ended_at: at(23) }),
  ],
])('%s', (_, promise, applyLie) => {
  const lie = truth()
  applyLie(lie)
  expect(new Set(judgeCampaigns(lie).map((violation) => violation.promise))).toContain(promise)
})

describe('people on the suppression list', () => {
  const send = (seq: number, random_id: string) => ({
    ...{ kind: 'send' as const, seq, random_id },
    chat_id: 'platform:chat:1',
  })
  const listed = { chat_id: 'platform:chat:1', from_seq: 10, to_seq: null, in_flight: ['crossed'] }

  test.each([
    ['what was accepted before the entry', send(10, 'before'), listed],
    ['what had crossed before the entry', send(11, 'crossed'), listed],
    ['what another person got', { ...send(11, 'late'), chat_id: 'platform:chat:2' }, listed],
    ['what was accepted after the database forgot the entry', send(21, 'late'), { ...listed, to_seq: 20 }],
  ])('accepts %s', (_, entry, fact) => {
    expect([...checkListed([fact], [entry])]).toEqual([])
  })

  test('a message after the entry is P5, also if the database lost the entry later', () => {
    const facts = [listed, { ...listed, to_seq: 20 }]
    for (const fact of facts) {
      expect([...checkListed([fact], [send(11, 'late')])]).toMatchObject([{ promise: 'P5' }])
    }
  })
})
