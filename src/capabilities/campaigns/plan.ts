/**
 * What a campaign does next for one recipient, and why not now. Pure: the same facts give the same answer, whether the
 * worker picks, the boundary checks again, a page shows `blocked_by`, or a preview plays a whole campaign through.
 */

export type Branch = 'no_reply' | 'seen' | 'unseen'
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

/** Minutes of the local day on certain days of the week; ISO numbers, 1 is Monday. */
export interface SendingWindow {
  readonly days: readonly number[]
  readonly from: number
  readonly to: number
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
