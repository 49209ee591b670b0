/**
 * Says in one sentence why a recipient gets no message now, how it ended, or why a preview excludes it. Every value has its
 * sentence: the records below do not compile without one. For people only; `/api/v1` has the codes. Pure.
 */
import type { Gate } from '../../../contract.ts'
import type { PlatformRefusal } from '../../../platform/port.ts'
import { textMax } from '../../../rules/limits.ts'
import type { Fault } from '../../../rules/placeholders.ts'
import { formatWindow } from '../../../rules/sending-window.ts'
import { localDay, localTime, zoneAt, zoneWords } from '../../../rules/zones.ts'
import { coldLimit } from './cold.ts'
import { type Block, type Facts, type Plan, type PlannedAccount, usedUp } from './plan.ts'

/** Why a recipient is final, where its status alone does not say it: every value that `reason` can have. */
export type EndReason =
  | Fault
  | PlatformRefusal
  | 'suppressed'
  | 'duplicate'
  | 'name_changed'
  | 'noted_not_sent'
  | 'never_written'
  | 'answered_by_hand'

/** Why a recipient cannot be in a campaign. */
export type ExclusionReason =
  | 'foreign'
  | 'not_ready'
  | 'no_chat'
  | 'no_person'
  | 'suppressed'
  | 'nameless'
  | 'too_long'

/** What stops a whole campaign until an operator acts. */
export type CampaignStop =
  | { readonly by: 'dispatch' | 'user' | 'allowlists' | 'campaign_user' | 'campaign_workspace' }
  | { readonly by: 'gate'; readonly gate: Gate }

/** The account that would write, with what people call it and why it may not be ready. */
export interface NamedAccount extends PlannedAccount {
  readonly name: string
  readonly status: 'CONNECTING' | 'READY' | 'NEEDS_LOGIN' | 'RESTRICTED' | 'DISABLED'
  /** Updates of the account are missing. */
  readonly gap: boolean
  /** The unlisted error because of which its campaign messages hold; null: they do not. */
  readonly held_by: string | null
}

/** The planner's facts, and what its answer leaves out. */
export interface Circumstances extends Facts {
  readonly account: NamedAccount | null
  readonly stop: CampaignStop | null
  readonly pause_reason: 'requested' | 'late' | null
  /** After a restore, an account of the pool has not connected yet. */
  readonly pool_unconfirmed: boolean
}

type Cause =
  | Exclude<Block, 'quota' | 'flood_wait' | 'account_not_ready' | 'gate' | 'paused'>
  | 'messages_used'
  | 'lookups_used'
  | 'cold_used'
  | 'cold_forbidden'
  | 'cold_stopped'
  | 'flood_sends'
  | 'flood_lookups'
  | 'no_account'
  | 'pool_unconfirmed'
  | 'connecting'
  | 'needs_login'
  | 'restricted'
  | 'disabled'
  | 'gap'
  | 'held'
  | 'not_connected'
  | `stopped_by_${CampaignStop['by']}`
  | 'paused'
  | 'missed_start'
  | 'undecided'
  | 'unfound'

const causeOf: Record<Block, (about: Circumstances) => Cause> = {
  scheduled: () => 'scheduled',
  waiting: ({ recipient }) => (recipient.unfound && recipient.step === 0 ? 'unfound' : 'waiting'),
  pacing: () => 'pacing',
  ambiguous: ({ recipient }) => (recipient.undecided ? 'undecided' : 'ambiguous'),
  window: () => 'window',
  quota: (about) => {
    const used = about.account ? usedUp(about, about.account) : undefined
    if (used !== 'cold' || !about.account) return used === 'lookups' ? 'lookups_used' : 'messages_used'
    if (about.account.cold_stopped) return 'cold_stopped'
    return allowanceOf(about) === 0 ? 'cold_forbidden' : 'cold_used'
  },
  flood_wait: ({ account, now }) =>
    account?.flood_until && account.flood_until > now ? 'flood_sends' : 'flood_lookups',
  account_not_ready: ({ account, pool_unconfirmed }) => {
    if (!account) return pool_unconfirmed ? 'pool_unconfirmed' : 'no_account'
    return unready[account.status](account)
  },
  gate: ({ stop }) => `stopped_by_${stop?.by ?? 'dispatch'}`,
  paused: ({ pause_reason }) => (pause_reason === 'late' ? 'missed_start' : 'paused'),
}

const unready: Record<NamedAccount['status'], (account: NamedAccount) => Cause> = {
  CONNECTING: () => 'connecting',
  NEEDS_LOGIN: () => 'needs_login',
  RESTRICTED: () => 'restricted',
  DISABLED: () => 'disabled',
  READY: ({ gap, held_by }) => (held_by !== null ? 'held' : gap ? 'gap' : 'not_connected'),
}

function allowanceOf({ account, now, hours }: Circumstances): number {
  return account ? coldLimit(account, now, hours) : 0
}

const nameOf = ({ account }: { readonly account: { readonly name: string } | null }) =>
  account?.name ?? 'The account'

/** `when` is the earliest time, which follows the sentence unless the sentence has it. */
export const causes: Record<Cause, (about: Circumstances, when: string | null) => string> = {
  scheduled: () => 'The campaign starts later.',
  waiting: () => 'The next message is not due yet.',
  unfound: () =>
    'The platform found no person with this identifier, though one had it. It is asked once more.',
  messages_used: (about) =>
    `${nameOf(about)} has sent its ${about.campaign.daily_quota_per_account} for today.`,
  lookups_used: (about) =>
    `${nameOf(about)} has used its ${about.account?.lookups_per_day} lookups for today.`,
  cold_used: (about) => `${nameOf(about)} has sent its ${allowanceOf(about)} first messages for today.`,
  cold_forbidden: (about) => `${nameOf(about)} may not send first messages.`,
  cold_stopped: (about) =>
    `The platform stopped first messages from ${nameOf(about)}. An admin has to enable the account again.`,
  pacing: (about) => `${nameOf(about)} pauses between two messages.`,
  flood_sends: (about) => `The platform makes ${nameOf(about)} wait before it sends again.`,
  flood_lookups: (about) => `The platform makes ${nameOf(about)} wait before it looks up contacts again.`,
  no_account: () => 'No account of this campaign is ready.',
  pool_unconfirmed: () => 'An account of this campaign has not connected since the database was restored.',
  connecting: (about) => `${nameOf(about)} is connecting.`,
  needs_login: (about) => `${nameOf(about)} has to log in again.`,
  restricted: (about) => `The platform restricted ${nameOf(about)}.`,
  disabled: (about) => `${nameOf(about)} is disabled.`,
  gap: (about) => `${nameOf(about)} still loads messages that it missed.`,
  held: (about) =>
    `Sends from ${nameOf(about)} kept ending with the unknown error ${about.account?.held_by}. An admin has to enable the account again.`,
  not_connected: (about) => `${nameOf(about)} is not connected.`,
  ambiguous: (_, when) =>
    `Waits for proof that the message arrived${when === null ? '' : `, until ${when}`}. It is not sent again.`,
  undecided: () =>
    'Waits until it is known whether a member of the team has written to this person by hand, which ends the sequence.',
  stopped_by_dispatch: () => 'Sending is switched off on this instance.',
  stopped_by_user: () => 'The user who created the campaign is disabled.',
  stopped_by_allowlists: () => 'The campaign allowlists are not installed.',
  stopped_by_campaign_user: () => 'The user who created the campaign is not on the campaign allowlist.',
  stopped_by_campaign_workspace: () => 'The workspace is not on the campaign allowlist.',
  stopped_by_gate: ({ stop }) =>
    `The feature "${stop?.by === 'gate' ? stop.gate : 'campaigns'}" is switched off on this instance.`,
  window: ({ hours }) => `Outside the sending window ${hours.window ? formatWindow(hours.window) : ''}.`,
  paused: () => 'The campaign is paused.',
  missed_start: () => 'The campaign is paused because it missed its start.',
}

/** Why an open recipient gets no message now, with the earliest time at which it may. */
function whyNotYet(planned: Plan, about: Circumstances): string {
  if (planned.do === 'nothing') return 'The message is being sent.'
  if (planned.do !== 'wait') return 'Due now.'
  const when = planned.until && shortTime(planned.until, about)
  const sentence = causes[causeOf[planned.blocked_by](about)](about, when)
  return when === null || sentence.includes(when) ? sentence : `${sentence} ${when}`
}

type AboutEnd = (account: string) => string

const person = {
  suppressed: () => 'The person is on the suppression list.',
  nameless: () => 'A placeholder in the text has no value for this person.',
  too_long: () => `The text has more than ${textMax} characters for this person.`,
  ineligible: () => 'This is not a person who can receive messages.',
}

export const endings: Record<EndReason, AboutEnd> = {
  unresolved_personalization: person.nameless,
  text_too_long: person.too_long,
  suppressed: person.suppressed,
  identity_ineligible: person.ineligible,
  duplicate: () => 'Another recipient of this campaign is the same person.',
  name_changed: () => 'The identifier belongs to another person now.',
  noted_not_sent: () => 'A user closed the message as not sent.',
  never_written: () => 'It turned out later that the message was not sent.',
  answered_by_hand: () => 'A member of the team wrote to this person by hand.',
  username_not_found: () => 'The platform found no person with this identifier.',
  chat_unavailable: (account) => `${account} cannot write to this chat.`,
  blocked_by_person: (account) => `The person blocked ${account}.`,
  privacy_restricted: (account) => `The person does not accept messages from ${account}.`,
  cold_stopped: (account) => `The platform stopped first messages from ${account}.`,
  message_invalid: () => 'The platform refused the text.',
  file_unavailable: () => 'The platform no longer has the file.',
  needs_login: (account) => `${account} was logged out.`,
  restricted: (account) => `The platform restricted ${account}.`,
}

export const exclusions: Record<ExclusionReason, AboutEnd> = {
  foreign: () => 'The account is not an account of this workspace.',
  not_ready: (account) => `${account} is not ready.`,
  no_chat: (account) => `${account} has no such chat.`,
  no_person: person.ineligible,
  suppressed: person.suppressed,
  nameless: person.nameless,
  too_long: person.too_long,
}

/** A recipient, and what has happened to it. */
interface Explained {
  readonly status: Facts['recipient']['status']
  readonly reason: string | null
  readonly step: number
  readonly replied_at: Date | null
  readonly opted_out: boolean
}

type AboutRecipient = (recipient: Explained, planned: Plan, about: Circumstances) => string

const byStatus: Record<Explained['status'], AboutRecipient> = {
  queued: (_, planned, about) => whyNotYet(planned, about),
  waiting: (_, planned, about) => whyNotYet(planned, about),
  submitting: (_, planned, about) => whyNotYet(planned, about),
  completed: ({ step }) => `Got ${step === 1 ? '1 message' : `${step} messages`}.`,
  replied: ({ opted_out, replied_at }, _, about) => {
    const when = replied_at ? ` ${shortTime(replied_at, about)}` : ''
    return opted_out ? `Asked to stop.${when}` : `Replied.${when}`
  },
  ambiguous: () => 'It is unknown whether the message arrived. It is not sent again.',
  cancelled: () => 'The campaign was cancelled.',
  failed: () => 'The message was not sent.',
  suppressed: person.suppressed,
}

export function whyOf(recipient: Explained, planned: Plan, about: Circumstances): string {
  const { status, reason } = recipient
  // A reason of an older version may have no sentence any more.
  const known = reason !== null && Object.hasOwn(endings, reason)
  return known ? endings[reason as EndReason](nameOf(about)) : byStatus[status](recipient, planned, about)
}

/** Why a preview excludes somebody. `name`: of the recipient's account, where it has one. */
export function whyExcluded(reason: ExclusionReason, name: string | undefined): string {
  return exclusions[reason](name ?? 'The account')
}

const weekdays = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const dayMs = 86_400_000

/**
 * In the workspace's zone, which stands beside it, because the reader's can be another: `Tue 09:00 Berlin time`, and with its date
 * if the weekday alone could mean another week.
 */
export function shortTime(at: Date, { now, hours }: Pick<Facts, 'now' | 'hours'>): string {
  const [zone, zoneNow] = [zoneAt(hours, at), zoneAt(hours, now)]
  const local = localTime(at, zone)
  const days = (Date.parse(localDay(at, zone)) - Date.parse(localDay(now, zoneNow))) / dayMs
  const date = ` ${local.getUTCDate()} ${months[local.getUTCMonth()]}`
  const year =
    local.getUTCFullYear() === localTime(now, zoneNow).getUTCFullYear() ? '' : ` ${local.getUTCFullYear()}`
  const day = Math.abs(days) < 7 ? '' : `${date}${year}`
  return `${weekdays[local.getUTCDay()]}${day} ${local.toISOString().slice(11, 16)} ${zoneWords(hours.timezone)}` // guard: a time with its zone
}
