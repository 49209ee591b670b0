/**
 * Checks the promises of campaigns against the database and against what the platform accepted. Pure, like `oracle.ts`: it judges
 * evidence that others have gathered.
 *
 *   P1 one submission for each recipient and step, and one for each person, step and campaign of contacts · P5 nothing after a stop · P6 use of a day · totals equal rows ·
 *   recipients agree with their operations · never before due · nothing after an end
 */
import type { JournalEntry } from '../../src/platform/sandbox/entries.ts'

export interface CampaignFact {
  readonly id: string
  readonly kind: string
  readonly status: string
  readonly branching_enabled: boolean
  readonly daily_quota_per_account: number | null
  readonly scheduled_at: Date | null
  readonly cancelled_at: Date | null
  readonly steps: readonly { readonly branch: string; readonly wait_hours: number }[]
}

export interface RecipientFact {
  readonly id: string
  readonly campaign_id: string
  readonly account_id: string | null
  readonly status: string
  readonly step: number
  readonly next_action_at: Date | null
  readonly unknown_since: Date | null
  readonly replied_at: Date | null
  readonly ended_at: Date | null
}

export interface MessageFact {
  readonly id: string
  readonly campaign_id: string
  readonly recipient_id: string
  readonly step_no: number
  readonly account_id: string
  readonly random_id: string
  readonly state: string
  readonly closed_as: string | null
  readonly quota_day: string | null
  readonly branch: string | null
  readonly crossed_at: Date | null
  readonly sent_at: Date | null
}

export interface DayFact {
  readonly account_id: string
  readonly day: string
  readonly used: number
}

export interface TotalFact {
  readonly campaign_id: string
  readonly account_id: string
  readonly status: string
  readonly count: number
}

export interface CampaignEvidence {
  readonly campaigns: readonly CampaignFact[]
  readonly recipients: readonly RecipientFact[]
  readonly messages: readonly MessageFact[]
  readonly days: readonly DayFact[]
  readonly totals: readonly TotalFact[]
  /** What the platform accepted. A chat with a person has that person's number, on every account. */
  readonly journal: readonly Pick<JournalEntry, 'kind' | 'account_id' | 'chat_id' | 'random_id' | 'at'>[]
  /** Operations that their workers are still processing: an outcome may be known and not recorded yet. */
  readonly in_flight?: readonly string[]
  /** When each campaign was stopped and resumed, as its caller saw it. */
  readonly stops?: readonly { readonly campaign_id: string; readonly from: Date; readonly to: Date | null }[]
}

/** A person on the suppression list, by sequence numbers of the platform's journal. */
export interface ListedFact {
  readonly chat_id: string
  /** The last number when the entry was known to be committed. */
  readonly from_seq: number
  /** The last number when the database went back to before the entry; null if the entry stayed. */
  readonly to_seq: number | null
  /** Random ids of messages that had crossed by then and had no outcome. */
  readonly in_flight: readonly string[]
}

export interface CampaignViolation {
  readonly promise: 'P1' | 'P2' | 'P3' | 'P5' | 'P6' | 'totals' | 'agreement' | 'early' | 'after the end'
  readonly what: string
  readonly id?: string
}

const crossed = new Set(['submitting', 'completed', 'ambiguous'])

export function judgeCampaigns(evidence: CampaignEvidence): CampaignViolation[] {
  return [
    ...checkSubmissions(evidence),
    ...checkPeople(evidence),
    ...checkStops(evidence),
    ...checkUse(evidence),
    ...checkTotals(evidence),
    ...checkRecipients(evidence),
  ]
}

/** P1 to P3: the platform's journal and the operations agree. */
function* checkSubmissions({ messages, journal, in_flight }: CampaignEvidence): Generator<CampaignViolation> {
  const accepted = Map.groupBy(
    journal.filter(({ kind }) => kind === 'send'),
    ({ random_id }) => random_id,
  )
  const byStep = Map.groupBy(messages, ({ recipient_id, step_no }) => `${recipient_id} ${step_no}`)
  for (const [, rows] of byStep) {
    const [first] = rows
    if (!first) continue
    if (rows.length > 1) yield { promise: 'P1', what: 'two operations for one step', id: first.id }
    // One account of the pool may have been refused before another took over: all its sends share one random id.
    const times = accepted.get(first.random_id)?.length ?? 0
    if (times > 1) yield { promise: 'P1', what: `accepted ${times} times`, id: first.id }
    // An accepted message may be unrecorded only while its worker is processing it.
    const flying = first.state === 'submitting' && in_flight?.includes(first.id)
    if (times > 0 && !flying && first.state !== 'completed' && first.state !== 'ambiguous') {
      yield { promise: 'P2', what: `accepted, and its operation is ${first.state}`, id: first.id }
    }
    if (first.state === 'completed' && times === 0) {
      yield { promise: 'P3', what: 'completed, and nothing was accepted', id: first.id }
    }
  }
}

/**
 * P1 for people: contacts that are one person under several names get what one contact would, whichever accounts of the pool
 * write to them. The platform's journal decides who got a message, not the recipients.
 */
function* checkPeople({ campaigns, messages, journal }: CampaignEvidence): Generator<CampaignViolation> {
  const ofContacts = new Set(campaigns.filter(({ kind }) => kind === 'contacts').map(({ id }) => id))
  const byRandomId = new Map(messages.map((message) => [message.random_id, message]))
  const accepted = journal.flatMap(({ kind, chat_id, random_id }) => {
    const message = kind === 'send' && random_id !== null ? byRandomId.get(random_id) : undefined
    return message && ofContacts.has(message.campaign_id) ? [{ chat_id, message }] : []
  })
  const places = Map.groupBy(
    accepted,
    ({ chat_id, message }) => `${message.campaign_id} ${message.step_no} ${chat_id}`,
  )
  for (const [, [first, ...more]] of places) {
    if (!first || more.length === 0) continue
    const what = `${first.chat_id} got ${1 + more.length} messages of step ${first.message.step_no}`
    yield { promise: 'P1', what, id: first.message.id }
  }
}

/** P5: finds what crossed between a stop and its end. */
function* checkStops({ campaigns, messages, stops = [] }: CampaignEvidence): Generator<CampaignViolation> {
  const cancelled = campaigns.flatMap(({ id, cancelled_at }) =>
    cancelled_at ? [{ campaign_id: id, from: cancelled_at, to: null }] : [],
  )
  for (const { campaign_id, from, to } of [...stops, ...cancelled]) {
    for (const { id, campaign_id: own, crossed_at } of messages) {
      if (own !== campaign_id || !crossed_at || crossed_at <= from || (to && crossed_at >= to)) continue
      yield { promise: 'P5', what: 'crossed while it was stopped', id }
    }
  }
}

/** P5 for people: no one on the list gets a message, except what had crossed before. */
export function* checkListed(
  listed: readonly ListedFact[],
  journal: readonly Pick<JournalEntry, 'kind' | 'seq' | 'chat_id' | 'random_id'>[],
): Generator<CampaignViolation> {
  const sends = journal.filter(({ kind }) => kind === 'send')
  const byChat = Map.groupBy(sends, ({ chat_id }) => chat_id)
  for (const { chat_id, from_seq, to_seq, in_flight } of listed) {
    for (const { seq, random_id } of byChat.get(chat_id) ?? []) {
      if (seq <= from_seq || (to_seq !== null && seq > to_seq) || in_flight.includes(random_id ?? ''))
        continue
      yield { promise: 'P5', what: `${chat_id} got message ${seq}, on the list since ${from_seq}` }
    }
  }
}

/** P6: the use of a day equals what crossed on it, and never exceeds the largest quota of any campaign. */
function* checkUse({ campaigns, messages, days }: CampaignEvidence): Generator<CampaignViolation> {
  const quotas = new Map(campaigns.map(({ id, daily_quota_per_account }) => [id, daily_quota_per_account]))
  const counted = messages.filter(({ state, quota_day }) => quota_day !== null && crossed.has(state))
  const used = Map.groupBy(counted, ({ account_id, quota_day }) => `${account_id} ${quota_day}`)
  const recorded = new Map(days.map(({ account_id, day, used }) => [`${account_id} ${day}`, used]))
  for (const place of new Set([...used.keys(), ...recorded.keys()])) {
    const own = used.get(place) ?? []
    if ((recorded.get(place) ?? 0) !== own.length) {
      yield { promise: 'P6', what: `${place}: used ${recorded.get(place) ?? 0}, crossed ${own.length}` }
    }
    const most = Math.max(
      0,
      ...own.map(({ campaign_id }) => quotas.get(campaign_id) ?? Number.POSITIVE_INFINITY),
    )
    if (own.length > most) yield { promise: 'P6', what: `${place}: ${own.length} of at most ${most}` }
  }
}

function* checkTotals({ recipients, totals }: CampaignEvidence): Generator<CampaignViolation> {
  const place = (one: { campaign_id: string; account_id: string | null; status: string }) =>
    `${one.campaign_id} ${one.account_id ?? ''} ${one.status}`
  const rows = Map.groupBy(recipients, place)
  const recorded = new Map(totals.map((total) => [place(total), total.count]))
  for (const at of new Set([...rows.keys(), ...recorded.keys()])) {
    const [have, say] = [rows.get(at)?.length ?? 0, recorded.get(at) ?? 0]
    if (have !== say) yield { promise: 'totals', what: `${at}: ${say} counted, ${have} there` }
  }
}

function* checkRecipients({
  campaigns,
  recipients,
  messages,
}: CampaignEvidence): Generator<CampaignViolation> {
  const byId = new Map(campaigns.map((campaign) => [campaign.id, campaign]))
  const byRecipient = Map.groupBy(messages, ({ recipient_id }) => recipient_id)
  for (const recipient of recipients) {
    const campaign = byId.get(recipient.campaign_id)
    const own = (byRecipient.get(recipient.id) ?? []).toSorted((one, other) => one.step_no - other.step_no)
    if (campaign) yield* checkRecipient(recipient, campaign, own)
  }
}

/** A recipient's state matches the outcomes of its operations, in order, and each crossed when it was due. */
function* checkRecipient(
  recipient: RecipientFact,
  campaign: CampaignFact,
  own: readonly MessageFact[],
): Generator<CampaignViolation> {
  const { id, status, step, next_action_at, unknown_since, replied_at, ended_at } = recipient
  const had = own.filter(({ state, closed_as }) => state === 'completed' || closed_as === 'sent')
  const open = own.find(
    ({ step_no, state }) => step_no >= step && crossed.has(state) && state !== 'completed',
  )
  const wrong = (what: string): CampaignViolation => ({ promise: 'agreement', what, id })
  if (step !== had.length) yield wrong(`${step} messages counted, ${had.length} completed`)
  if (status === 'submitting' && !open) yield wrong('submitting, and no operation is')
  if ((status === 'queued' || status === 'waiting') && open && open.closed_as === null) {
    yield wrong(`${status}, and an operation is ${open.state}`)
  }
  if ((status === 'queued' || status === 'waiting') && next_action_at === null)
    yield wrong(`${status}, never due`)
  if (status === 'submitting' && (unknown_since === null) !== (open?.state === 'submitting')) {
    yield wrong(`submitting since ${unknown_since?.toISOString()}, and its operation is ${open?.state}`)
  }
  if (status === 'queued' && step > 0) yield wrong('queued after a message')
  if (status === 'replied' && !replied_at) yield wrong('replied, without a time')
  if (campaign.status === 'cancelled' && (status === 'queued' || status === 'waiting')) {
    yield wrong(`${status} in a campaign that was cancelled`)
  }
  if (campaign.status === 'completed' && !ended_at) yield wrong(`${status} in a campaign that is completed`)
  yield* checkTimes(recipient, campaign, own)
}

function* checkTimes(
  { ended_at, status }: RecipientFact,
  campaign: CampaignFact,
  own: readonly MessageFact[],
): Generator<CampaignViolation> {
  for (const [at, message] of own.entries()) {
    const { id, crossed_at, step_no, branch } = message
    if (!crossed_at) continue
    if (campaign.scheduled_at && crossed_at < campaign.scheduled_at) {
      yield { promise: 'early', what: 'before its schedule', id }
    }
    const before = own[at - 1]
    const track = campaign.steps.filter((step) => step.branch === (branch ?? 'no_reply'))
    const wait = track[step_no - 1]?.wait_hours
    if (before?.sent_at && wait !== undefined) {
      const due = before.sent_at.getTime() + wait * 3_600_000
      if (crossed_at.getTime() < due - 1) yield { promise: 'early', what: 'before its wait was over', id }
    }
    if (step_no > 0 && !before) yield { promise: 'early', what: `step ${step_no} without the one before`, id }
    // A reply ends the recipient when it is stored, which is later than when it was written.
    if (ended_at && crossed_at > ended_at)
      yield { promise: 'after the end', what: `crossed after ${status}`, id }
  }
}
