/**
 * Decides what a campaign does next for one recipient, or why not now. Pure: the same facts give the same answer when the
 * worker picks, when the boundary checks again, when a page shows `blocked_by`, and when a preview simulates a campaign.
 */

import { sha256 } from '../../../lib/secrets.ts'
import { type Fault, render } from '../../../rules/placeholders.ts'
import { type SendingWindow, windowOpensIn } from '../../../rules/sending-window.ts'
import { dayAt, dayEnds, isSameDayIn, type Zone } from '../../../rules/zones.ts'
import { type ColdAllowance, coldLimit } from './cold.ts'
import { formOf } from './personalize.ts'

export const branches = ['no_reply', 'seen', 'unseen'] as const
type Branch = (typeof branches)[number]
export type CampaignStatus = 'scheduled' | 'queued' | 'sending' | 'paused' | 'cancelled' | 'completed'
type RecipientStatus =
  | 'queued'
  | 'submitting'
  | 'waiting'
  | 'completed'
  | 'replied'
  | 'failed'
  | 'ambiguous'
  | 'cancelled'
  | 'suppressed'

/** Why a recipient does not move. */
export const blocks = [
  'scheduled',
  'waiting',
  'quota',
  'pacing',
  'flood_wait',
  'account_not_ready',
  'ambiguous',
  'gate',
  'window',
  'paused',
] as const
export type Block = (typeof blocks)[number]

export interface Step {
  readonly branch: Branch
  readonly wait_hours: number
  readonly variants: readonly string[]
}

export interface PlannedCampaign {
  readonly kind: 'scoped' | 'contacts' | 'broadcast'
  readonly status: CampaignStatus
  readonly message_text: string
  readonly branching_enabled: boolean
  /** Null: a broadcast, which has no quota. */
  readonly daily_quota_per_account: number | null
  readonly max_followups: number
  readonly scheduled_at: Date | null
  /** In the order given. */
  readonly steps: readonly Step[]
  /** All conditions hold: dispatch on, gates open, allowlists, user not disabled, suppression list readable. */
  readonly allowed: boolean
}

export interface PlannedRecipient {
  readonly id: string
  readonly status: RecipientStatus
  /** How many messages it has got; the `step_no` of the next one. */
  readonly step: number
  /** Null: a contact that has not been looked up yet. */
  readonly chat_id: string | null
  /** From then on the platform must be asked again who it is. Null: it need not be. */
  readonly known_until?: Date | null
  /** Asking takes the account a look-up, because none of its chats shows whose name it is. Unless it is known, it does. */
  readonly needs_lookup?: boolean
  /** The platform has said once that nobody has the name, and is asked again when the first message is due. */
  readonly unfound?: boolean
  readonly name: string | null
  readonly username: string | null
  /** When the previous message was sent; null if there was none. */
  readonly last_sent_at: Date | null
  /** When the first message is due: at creation, or as scheduled. `last_sent_at` and their wait decide about later ones. */
  readonly next_action_at: Date | null
  /** Whether the last message has been read, as far as the platform reported it. */
  readonly read: boolean
  /** Set while submitting if the outcome is unknown. */
  readonly unknown_since: Date | null
  /** Whether a member has written to the person by hand, which would end the sequence, is not decided. A forecast leaves it out. */
  readonly undecided?: boolean
  /** This person has never written to the account. Matters only for the first message. */
  readonly cold: boolean
}

/** The account that would write, with what it has used today. */
export interface PlannedAccount extends ColdAllowance {
  /** READY, and its session is live. */
  readonly ready: boolean
  /** The end of the wait for sends, and of the wait for look-ups. */
  readonly flood_until: Date | null
  readonly lookup_flood_until: Date | null
  /** When the pause between two messages ends. */
  readonly next_campaign_at: Date | null
  readonly lookups_per_day: number
  /** On `quotaDay(now, hours)`, like the two below. */
  readonly used: number
  readonly used_cold: number
  readonly lookups: number
}

/** The workspace's time zone and sending window. */
export interface Hours extends Zone {
  /** Null: always. */
  readonly window: SendingWindow | null
}

export interface Facts {
  readonly campaign: PlannedCampaign
  readonly recipient: PlannedRecipient
  /** Null: at present no account may take this contact. */
  readonly account: PlannedAccount | null
  readonly hours: Hours
  readonly now: Date
}

export type Plan =
  | {
      readonly do: 'send'
      readonly step_no: number
      /** The track; null for the first message. */
      readonly branch: Branch | null
      readonly variant: number
      readonly text: string
      /** It uses the account's daily allowance for people who never wrote. */
      readonly cold: boolean
    }
  /** The platform has to be asked first who the contact is, which is then planned again. */
  | { readonly do: 'look_up' }
  /** `until`: the earliest possible time at present; null if a person has to act. */
  | { readonly do: 'wait'; readonly until: Date | null; readonly blocked_by: Block }
  | {
      readonly do: 'end'
      readonly status: 'completed' | 'cancelled' | 'failed' | 'ambiguous'
      readonly reason: Fault | null
    }
  /** The message is in flight, or the recipient is final. */
  | { readonly do: 'nothing' }

type Wait = Extract<Plan, { do: 'wait' }>

export function plan(facts: Facts): Plan {
  const { campaign, recipient, now } = facts
  if (recipient.status === 'submitting') return planUnknown(recipient, now)
  if (recipient.status !== 'queued' && recipient.status !== 'waiting') return { do: 'nothing' }
  if (campaign.status === 'cancelled') return { do: 'end', status: 'cancelled', reason: null }
  if (campaign.status === 'paused') return { do: 'wait', until: null, blocked_by: 'paused' }
  const next = nextStep(campaign, recipient)
  if (!next) return { do: 'end', status: 'completed', reason: null }
  if (!campaign.allowed) return { do: 'wait', until: null, blocked_by: 'gate' }
  const early = notYet(facts, next.due)
  if (early) return early
  if (!next.step && recipient.step > 0) return { do: 'end', status: 'completed', reason: null }
  if (recipient.undecided) return { do: 'wait', until: null, blocked_by: 'ambiguous' } // guard: a follow_up waits for the decision
  return held(facts) ?? sendOrEnd(facts, next)
}

/** The last message's outcome is unknown. Once the next message is due, it becomes final. */
function planUnknown({ unknown_since, next_action_at }: PlannedRecipient, now: Date): Plan {
  if (!unknown_since) return { do: 'nothing' }
  if (next_action_at && now < next_action_at) {
    return { do: 'wait', until: next_action_at, blocked_by: 'ambiguous' }
  }
  return { do: 'end', status: 'ambiguous', reason: null }
}

interface NextStep {
  readonly due: Date
  /** Null: the first message, or the recipient's track has no such step. */
  readonly step: Step | null
}

/**
 * The next step and when it is due, by schedule and wait alone. Undefined: none is left. With branches, `read` selects the
 * track; if only the other track has such a step, its wait still sets the time.
 */
function nextStep(campaign: PlannedCampaign, recipient: PlannedRecipient): NextStep | undefined {
  const { step: done, last_sent_at, next_action_at, read } = recipient
  if (done === 0 || !last_sent_at) return { due: next_action_at ?? new Date(0), step: null }
  const step = (branch: Branch) => trackOf(campaign, branch)[done - 1]
  const own = campaign.branching_enabled ? step(read ? 'seen' : 'unseen') : step('no_reply')
  const other = campaign.branching_enabled ? step(read ? 'unseen' : 'seen') : undefined
  const wait_hours = (own ?? other)?.wait_hours
  if (wait_hours === undefined) return undefined
  return { due: new Date(last_sent_at.getTime() + waitMs(wait_hours)), step: own ?? null }
}

/** Never early: rounds up to whole milliseconds. */
function waitMs(hours: number): number {
  return Math.ceil(hours * 3_600_000)
}

/** The steps of one track that a recipient can get. */
export function trackOf(
  { steps, max_followups }: Pick<PlannedCampaign, 'steps' | 'max_followups'>,
  branch: Branch,
): readonly Step[] {
  return steps.filter((step) => step.branch === branch).slice(0, max_followups)
}

/** When the next message is due by schedule and wait alone: what `next_action_at` stores. Null: none is left. */
export function dueAt(campaign: PlannedCampaign, recipient: PlannedRecipient): Date | null {
  return nextStep(campaign, recipient)?.due ?? null
}

/** The day whose quota a message sent now uses. */
export function quotaDay(now: Date, zone: Zone): string {
  return dayAt(zone, now)
}

function notYet(facts: Facts, due: Date): Wait | undefined {
  const { campaign, now } = facts
  const { status, scheduled_at } = campaign
  if (status === 'scheduled') {
    return { do: 'wait', until: earliest(facts, scheduled_at ?? due), blocked_by: 'scheduled' }
  }
  return now < due ? { do: 'wait', until: earliest(facts, due), blocked_by: 'waiting' } : undefined
}

/** What blocks a due message: the account first, then the sending window, the quota, and the gap between messages. */
function held(facts: Facts): Wait | undefined {
  const { account, hours, now } = facts
  const wait = (blocked_by: Block): Wait => ({ do: 'wait', until: earliest(facts, now), blocked_by })
  if (!account?.ready) return { do: 'wait', until: null, blocked_by: 'account_not_ready' }
  if (floodEnd(facts, account) > now.getTime()) return wait('flood_wait')
  if (hours.window && windowOpensIn(hours.window, hours, now) > now) return wait('window')
  if (usedUp(facts, account)) return wait('quota')
  if (account.next_campaign_at && account.next_campaign_at > now) return wait('pacing')
  return undefined
}

/** When the flood waits end that stop this message. */
function floodEnd(facts: Facts, { flood_until, lookup_flood_until }: PlannedAccount): number {
  const lookups = mustLookUp(facts) ? lookup_flood_until : null // guard: only who must be looked up waits for lookups
  return Math.max(flood_until?.getTime() ?? 0, lookups?.getTime() ?? 0)
}

/** Whether the platform has to be asked who the recipient is before anything is sent. */
function mustAsk({ chat_id, known_until = null }: PlannedRecipient, now: Date): boolean {
  return chat_id === null || (known_until !== null && known_until <= now) // guard: a name is asked about again
}

function mustLookUp({ recipient, now }: Facts): boolean {
  return mustAsk(recipient, now) && recipient.needs_lookup !== false // guard: asking about the person known is no lookup
}

/** Which of its limits the account has used up today, so that it may send nothing more of this kind. */
export function usedUp(facts: Facts, account: PlannedAccount): 'messages' | 'lookups' | 'cold' | undefined {
  const { campaign, recipient, hours, now } = facts
  const quota = campaign.daily_quota_per_account
  if (quota !== null && account.used >= quota) return 'messages'
  if (mustLookUp(facts) && account.lookups >= account.lookups_per_day) return 'lookups'
  const cold = isCold(campaign, recipient) && account.used_cold >= coldLimit(account, now, hours)
  return cold ? 'cold' : undefined
}

/** A contact that was never looked up is cold too: as far as we know, they never wrote to the account. */
function isCold(campaign: PlannedCampaign, { step, cold }: PlannedRecipient): boolean {
  return campaign.kind !== 'broadcast' && step === 0 && cold
}

/** The earliest possible time from `from` on, at present. Null if nothing can go out until a person acts. */
function earliest(facts: Facts, from: Date): Date | null {
  const { account, hours, now, campaign, recipient } = facts
  const flood = account ? floodEnd(facts, account) : 0
  const pause = account?.next_campaign_at?.getTime() ?? 0
  let at = new Date(Math.max(from.getTime(), now.getTime(), flood, pause))
  const open = () => (hours.window ? windowOpensIn(hours.window, hours, at) : at)
  at = open()
  if (account && usedUp(facts, account) && isSameDayIn(hours, now, at)) {
    if (isCold(campaign, recipient) && coldLimit(account, now, hours) === 0) return null
    at = dayEnds(hours, at)
    at = open()
  }
  return at
}

function sendOrEnd({ campaign, recipient, now }: Facts, { step }: NextStep): Plan {
  if (mustAsk(recipient, now)) return { do: 'look_up' }
  const { step: step_no, name, username } = recipient
  const variants = step?.variants ?? [campaign.message_text]
  const variant = variantOf(recipient.id, step_no, variants.length)
  const rendered = render(variants[variant] ?? '', formOf(campaign.kind), { name, username })
  if ('fault' in rendered) return { do: 'end', status: 'failed', reason: rendered.fault }
  return {
    do: 'send',
    step_no,
    branch: step?.branch ?? null,
    variant,
    text: rendered.text,
    cold: isCold(campaign, recipient),
  }
}

/** Hashes recipient and step: evenly distributed, and always the same for the same recipient. */
export function variantOf(recipient_id: string, step_no: number, count: number): number {
  return count === 1 ? 0 : sha256(`${recipient_id}:${step_no}`).readUInt32BE() % count
}

/**
 * Whether a scheduled campaign waits, starts or pauses. A sequence that is later than the tolerated lateness pauses, because
 * it would write at an hour that no user chose.
 */
export function planStart(
  { scheduled_at, sequence }: { readonly scheduled_at: Date; readonly sequence: boolean },
  { now, lateness_seconds }: { readonly now: Date; readonly lateness_seconds: number | undefined },
): 'wait' | 'start' | 'pause' {
  if (now < scheduled_at) return 'wait'
  const late = now.getTime() - scheduled_at.getTime()
  return sequence && lateness_seconds !== undefined && late > lateness_seconds * 1_000 ? 'pause' : 'start'
}
