/** A campaign while it is written, the request that it becomes, and what is wrong with it before any request. Pure. */

import type { ListedContact } from '../../../../src/rules/contact-table.ts'
import {
  nameMax,
  quotaDefault,
  quotaMax,
  recipientsMax,
  waitHoursMax,
  waitHoursMin,
} from '../../../../src/rules/limits.ts'
import type { PlaceholderForm, Values } from '../../../../src/rules/placeholders.ts'
import { lengthOf } from '../../../../src/rules/text.ts'
import { type LocalInstant, laterInstant } from '../../../../src/rules/zones.ts'
import type { CampaignRequest } from '../../data/api-types.ts'
import { type AudienceFilter, isFiltered, noFilter, type Person, personKey } from '../../data/audience.ts'
import { faultOfText, toForm } from '../../ui/placeholders.ts'

export type Branch = 'no_reply' | 'seen' | 'unseen'

export const units = { minutes: 1 / 60, hours: 1, days: 24 } as const
export type Unit = keyof typeof units

export interface DraftStep {
  /** Of the draft only: React's key. */
  readonly id: string
  readonly branch: Branch
  /** As it is typed. */
  readonly wait: string
  readonly unit: Unit
  readonly variants: readonly string[]
}

export interface CampaignDraft {
  readonly name: string
  readonly who: 'chats' | 'list'
  readonly filter: AudienceFilter
  /** Of an audience of more than 100 chats, the 100 most recent. */
  readonly newest: boolean
  /** Chats and contacts that the user left out, by `personKey` or identifier. */
  readonly left_out: readonly string[]
  /** The pasted list. */
  readonly list: string
  /** The accounts that write to the list. */
  readonly accounts: readonly string[]
  readonly message_text: string
  readonly steps: readonly DraftStep[]
  readonly branching: boolean
  /** A message by hand ends the sequence of a contact. A draft from before this setting has none: it is on. */
  readonly stop_on_own_message?: boolean
  /** Empty: as soon as it is created. */
  readonly start_at: string
  readonly quota: string
}

export type Change = (next: (draft: CampaignDraft) => CampaignDraft) => void

export const emptyDraft: CampaignDraft = {
  name: '',
  who: 'chats',
  filter: noFilter,
  newest: false,
  left_out: [],
  list: '',
  accounts: [],
  message_text: '',
  steps: [],
  branching: false,
  stop_on_own_message: true,
  start_at: '',
  quota: String(quotaDefault),
}

export const isEmptyDraft = (draft: CampaignDraft) =>
  draft.name === '' && draft.message_text === '' && draft.list === '' && draft.steps.length === 0

export const formOf = ({ who }: Pick<CampaignDraft, 'who'>): PlaceholderForm =>
  who === 'chats' ? 'brackets' : 'braces'

/** Writes every placeholder in the form of the new kind. */
export function changeWho(draft: CampaignDraft, who: CampaignDraft['who']): CampaignDraft {
  const form = formOf({ who })
  return {
    ...draft,
    who,
    message_text: toForm(draft.message_text, form),
    steps: draft.steps.map((step) => ({
      ...step,
      variants: step.variants.map((text) => toForm(text, form)),
    })),
  }
}

/** With branching, each follow-up is there twice: for those who have read the message before it, and for the others. */
export function changeBranching(draft: CampaignDraft, branching: boolean): CampaignDraft {
  const steps = branching
    ? (['seen', 'unseen'] as const).flatMap((branch) =>
        draft.steps.map((step) => ({ ...step, id: `${step.id} ${branch}`, branch })),
      )
    : draft.steps
        .filter(({ branch }) => branch !== 'seen')
        .map((step) => ({ ...step, branch: 'no_reply' as const }))
  return { ...draft, branching, steps }
}

function hoursOf({ wait, unit }: Pick<DraftStep, 'wait' | 'unit'>): number | undefined {
  const number = /^\d+([.,]\d+)?$/.test(wait.trim()) ? Number(wait.trim().replace(',', '.')) : undefined
  return number === undefined ? undefined : number * units[unit]
}

export interface Circumstances {
  /** The chats of the audience; undefined while they are unknown. */
  readonly people: readonly Person[] | undefined
  /** How many chats the audience has. */
  readonly chats: number
  readonly contacts: readonly ListedContact[]
  /** Lines of the list that are no contacts. */
  readonly bad_lines: number
  readonly timezone: string
  readonly now: Date
}

/** The request refuses the id of a group, so the page excludes groups itself. */
const isGroup = ({ chat_id }: Person) => chat_id.startsWith('platform:chat:-') // guard: no campaign to a group

/** Whom the draft writes to, and the groups among its chats, to which no campaign writes. */
export function recipientsOf(draft: CampaignDraft, { people = [], contacts }: Circumstances) {
  const out = new Set(draft.left_out)
  if (draft.who === 'list') {
    return { people: [], groups: [], contacts: contacts.filter(({ identifier }) => !out.has(identifier)) }
  }
  const wanted = people.filter((each) => !out.has(personKey(each)))
  return { people: wanted.filter((each) => !isGroup(each)), groups: wanted.filter(isGroup), contacts: [] }
}

/** Only campaigns to a list have it, and only follow-ups can be stopped. */
export const mayStopByHand = ({ who, steps }: CampaignDraft) => who === 'list' && steps.length > 0

export const stopsByHand = (draft: CampaignDraft) => draft.stop_on_own_message !== false // guard: an older draft stops by hand

export function bodyOf(draft: CampaignDraft, about: Circumstances): CampaignRequest {
  const { people, contacts } = recipientsOf(draft, about)
  const [account = ''] = draft.accounts
  const steps = draft.steps.map(({ branch, variants, ...wait }) => ({
    branch,
    wait_hours: hoursOf(wait) ?? 0,
    variants: [...variants],
  }))
  const longest = Math.max(
    0,
    ...(['no_reply', 'seen', 'unseen'] as const).map(
      (track) => steps.filter(({ branch }) => branch === track).length,
    ),
  )
  return {
    ...(draft.name.trim() !== '' && { name: draft.name.trim() }),
    message_text: draft.message_text,
    ...(draft.who === 'chats'
      ? { recipients: people.map(({ account_id, chat_id }) => ({ account_id, chat_id })) }
      : {
          contacts: contacts.map(({ identifier, name }) => ({ identifier, ...(name !== null && { name }) })),
          ...(draft.accounts.length > 1 ? { account_pool: [...draft.accounts] } : { account_id: account }),
        }),
    ...(steps.length > 0 && { steps, max_followups: longest }),
    ...(draft.branching && { branching_enabled: true }),
    ...(mayStopByHand(draft) && { stop_on_own_message: stopsByHand(draft) }),
    daily_quota_per_account: Number(draft.quota),
    ...(draft.start_at !== '' && {
      scheduled_at: `${draft.start_at}:00`,
      schedule_timezone: about.timezone,
    }),
  }
}

/** By field: `who`, `name`, `message_text`, `wait 0`, `text 0 0` (step and variant), `start_at`, `quota`. */
export type Faults = ReadonlyMap<string, string>

/** What would be refused, at its field. A missing value is no fault: `missingOf` names it. */
export function faultsOf(draft: CampaignDraft, about: Circumstances): Faults {
  const faults = new Map<string, string>()
  const put = (field: string, sentence: string | undefined) => {
    if (sentence !== undefined) faults.set(field, sentence)
  }
  const { people, contacts } = recipientsOf(draft, about)
  const named: readonly Values[] =
    draft.who === 'chats' ? people : contacts.map(({ name }) => ({ name, username: null }))
  const form = formOf(draft)
  put('name', lengthOf(draft.name) > nameMax ? `A name has at most ${nameMax} characters.` : undefined)
  put('message_text', faultOfText(draft.message_text, form, named))
  for (const [at, step] of draft.steps.entries()) {
    put(`wait ${at}`, faultOfWait(step))
    for (const [variant, text] of step.variants.entries()) {
      put(`text ${at} ${variant}`, faultOfText(text, form, named))
    }
  }
  const quota = Number(draft.quota)
  put(
    'quota',
    Number.isInteger(quota) && quota >= 1 && quota <= quotaMax
      ? undefined
      : `From 1 to ${quotaMax} messages.`,
  )
  put('start_at', faultOfStart(draft.start_at, about))
  return faults
}

function faultOfWait(step: DraftStep): string | undefined {
  const hours = hoursOf(step)
  if (hours === undefined) return 'Write the wait as a number.'
  if (hours < waitHoursMin) return 'Wait at least 5 minutes.'
  if (hours > waitHoursMax) return 'Wait at most ten years.'
  return undefined
}

const yearMs = 366 * 86_400_000

/** `local` is as a date field has it: 2026-03-29T02:30. Undefined if it is not a time. */
export function startOf(local: string, timezone: string): LocalInstant | undefined {
  const ms = Date.parse(`${local}Z`)
  return Number.isNaN(ms) ? undefined : laterInstant(new Date(ms), timezone)
}

function faultOfStart(start_at: string, { timezone, now }: Circumstances): string | undefined {
  if (start_at === '') return undefined
  const start = startOf(start_at, timezone)
  if (!start) return 'Choose a date and a time.'
  if (start.at < now) return 'This time has passed.' // guard: no start in the past
  if (start.at.getTime() - now.getTime() > yearMs) return 'Start within a year.'
  return undefined
}

/** What is still to be chosen or written before a preview is possible, in the order of the page. */
export function missingOf(draft: CampaignDraft, about: Circumstances): string | undefined {
  const { people, contacts } = recipientsOf(draft, about)
  if (draft.who === 'chats') {
    if (!isFiltered(draft.filter)) return 'Choose a stage or a column.'
    if (about.people === undefined) return 'The chats are being counted.'
    if (about.chats > recipientsMax && !draft.newest) return 'Choose at most 100 chats.' // guard: an audience of at most 100
    if (people.length === 0) return 'Nobody is left to write to.'
  } else {
    if (about.bad_lines > 0) return 'Some lines of the list are not contacts.' // guard: a list without bad lines
    if (contacts.length === 0) return 'Paste a list of contacts.'
    if (draft.accounts.length === 0) return 'Choose the accounts that write.'
  }
  if (draft.message_text.trim() === '') return 'Write the first message.'
  const blank = draft.steps.some(({ variants }) => variants.some((text) => text.trim() === ''))
  return blank ? 'A follow-up has no text yet.' : undefined
}
