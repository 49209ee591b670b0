/**
 * What a campaign does next for one recipient, and why not now. Pure: the same facts give the same answer, whether the
 * worker picks, the boundary checks again, a page shows `blocked_by`, or a preview plays a whole campaign through.
 */

import { sha256 } from '../../../lib/secrets.ts'
import { type SendingWindow, windowOpens } from '../../../lib/sending-window.ts'
import { isSameDay, localDay, nextDay } from '../../../lib/zones.ts'
import { formOf, render } from './personalize.ts'

export const branches = ['no_reply', 'seen', 'unseen'] as const
export type Branch = (typeof branches)[number]
export type CampaignStatus = 'scheduled' | 'queued' | 'sending' | 'paused' | 'cancelled' | 'completed'
export type RecipientStatus =
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
  /** Null: a broadcast, which no quota holds. */
  readonly daily_quota_per_account: number | null
  readonly max_followups: number
  readonly scheduled_at: Date | null
  /** In the order given. */
  readonly steps: readonly Step[]
  /**
   * Everything that must be open is: dispatch, gates, allowlists, the user not disabled, the suppression list readable.
   */
  readonly allowed: boolean
}

export interface PlannedRecipient {
  readonly id: string
  readonly status: RecipientStatus
  /** How many messages it has had; the next one's `step_no`. */
  readonly step: number
  /** Null: a contact that has not been looked up yet. */
  readonly chat_id: string | null
  readonly name: string | null
  readonly username: string | null
  /** When the message before was sent; null where there was none. */
  readonly last_sent_at: Date | null
  /** When the first message is due: creation, or the schedule. Later ones are due by `last_sent_at` and their wait. */
  readonly next_action_at: Date | null
  /** The last message has been read, as far as we were told. */
  readonly read: boolean
  /** While submitting: nobody knows the outcome. */
  readonly unknown_since: Date | null
  /** This person has never written to the account. Decides only about the first message. */
  readonly cold: boolean
}

/** The account that is to write, with what it has used of today. */
export interface PlannedAccount {
  /** READY, and its session is live. */
  readonly ready: boolean
  readonly flood_until: Date | null
  /** The pause between two messages is over then. */
  readonly next_campaign_at: Date | null
  readonly cold_per_day: number | null
  readonly lookups_per_day: number
  /** Of `quotaDay(now, timezone)`. */
  readonly used: number
  readonly used_cold: number
  readonly lookups: number
}

/** The workspace's zone and sending window. */
export interface Hours {
  readonly timezone: string
  /** Null: always. */
  readonly window: SendingWindow | null
}

export interface Facts {
  readonly campaign: PlannedCampaign
  readonly recipient: PlannedRecipient
  /** Null: no account may take this contact as things stand. */
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
      /** It uses the account's allowance for people who never wrote. */
      readonly cold: boolean
    }
  /** A contact has to be found first. Then it is planned again. */
  | { readonly do: 'look_up' }
  /** `until`: the earliest moment as things stand; null where somebody has to act. */
  | { readonly do: 'wait'; readonly until: Date | null; readonly blocked_by: Block }
  | {
      readonly do: 'end'
      readonly status: 'completed' | 'cancelled' | 'failed' | 'ambiguous'
      readonly reason: string | null
    }
  /** It is in flight or final. */
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
  return held(facts) ?? sendOrEnd(facts, next)
}

/** Nobody knows whether the last message went out. When the next would be due, that stays so. */
function planUnknown({ unknown_since, next_action_at }: PlannedRecipient, now: Date): Plan {
  if (!unknown_since) return { do: 'nothing' }
  if (next_action_at && now < next_action_at) {
    return { do: 'wait', until: next_action_at, blocked_by: 'ambiguous' }
  }
  return { do: 'end', status: 'ambiguous', reason: null }
}

interface NextStep {
  readonly due: Date
  /** Null: the first message, or no step of the track that the recipient is on by then. */
  readonly step: Step | null
}

/**
 * The step that comes next and when it is due, by schedule and wait alone. Undefined: none is left. With branches the
 * track is the one that fits as of now; where only the other has such a step, its wait sets the moment all the same.
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

/** Never early: a fraction of a millisecond counts as a whole one. */
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

/** The day whose quota a message of now uses. */
export function quotaDay(now: Date, timezone: string): string {
  return localDay(now, timezone)
}

function notYet(facts: Facts, due: Date): Wait | undefined {
  const { campaign, now } = facts
  const { status, scheduled_at } = campaign
  if (status === 'scheduled') {
    return { do: 'wait', until: earliest(facts, scheduled_at ?? due), blocked_by: 'scheduled' }
  }
  return now < due ? { do: 'wait', until: earliest(facts, due), blocked_by: 'waiting' } : undefined
}

/** It is due, and something holds it: the account first, then the hour, the day's use, and the gap between messages. */
function held(facts: Facts): Wait | undefined {
  const { account, hours, now } = facts
  const wait = (blocked_by: Block): Wait => ({ do: 'wait', until: earliest(facts, now), blocked_by })
  if (!account?.ready) return { do: 'wait', until: null, blocked_by: 'account_not_ready' }
  if (account.flood_until && account.flood_until > now) return wait('flood_wait')
  if (hours.window && windowOpens(hours.window, hours.timezone, now) > now) return wait('window')
  if (usedUp(facts, account)) return wait('quota')
  if (account.next_campaign_at && account.next_campaign_at > now) return wait('pacing')
  return undefined
}

/** Nothing more of this kind goes out from the account today. */
function usedUp({ campaign, recipient }: Facts, account: PlannedAccount): boolean {
  const quota = campaign.daily_quota_per_account
  if (quota !== null && account.used >= quota) return true
  if (recipient.chat_id === null && account.lookups >= account.lookups_per_day) return true
  return (
    isCold(campaign, recipient) && account.used_cold >= (account.cold_per_day ?? Number.POSITIVE_INFINITY)
  )
}

/** Whoever has not been looked up has not written to the account, as far as anybody knows. */
function isCold(campaign: PlannedCampaign, { step, cold }: PlannedRecipient): boolean {
  return campaign.kind !== 'broadcast' && step === 0 && cold
}

/** The earliest moment from `from` on, as things stand. Null where nothing would ever go out without somebody acting. */
function earliest(facts: Facts, from: Date): Date | null {
  const { account, hours, now, campaign, recipient } = facts
  const gaps = [account?.flood_until?.getTime() ?? 0, account?.next_campaign_at?.getTime() ?? 0] as const
  let at = new Date(Math.max(from.getTime(), now.getTime(), ...gaps))
  const open = () => (hours.window ? windowOpens(hours.window, hours.timezone, at) : at)
  at = open()
  if (account && usedUp(facts, account) && isSameDay(now, at, hours.timezone)) {
    if (account.cold_per_day === 0 && isCold(campaign, recipient)) return null
    at = nextDay(at, hours.timezone)
    at = open()
  }
  return at
}

function sendOrEnd({ campaign, recipient }: Facts, { step }: NextStep): Plan {
  if (recipient.chat_id === null) return { do: 'look_up' }
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

/** By a hash of recipient and step: even over many, and the same whenever it is asked. */
export function variantOf(recipient_id: string, step_no: number, count: number): number {
  return count === 1 ? 0 : sha256(`${recipient_id}:${step_no}`).readUInt32BE() % count
}

/**
 * What becomes of a schedule. A sequence whose start was missed by more than the lateness that is tolerated is paused,
 * because it would write at an hour that nobody chose.
 */
export function planStart(
  { scheduled_at, sequence }: { readonly scheduled_at: Date; readonly sequence: boolean },
  { now, lateness_seconds }: { readonly now: Date; readonly lateness_seconds: number | undefined },
): 'wait' | 'start' | 'pause' {
  if (now < scheduled_at) return 'wait'
  const late = now.getTime() - scheduled_at.getTime()
  return sequence && lateness_seconds !== undefined && late > lateness_seconds * 1_000 ? 'pause' : 'start'
}
