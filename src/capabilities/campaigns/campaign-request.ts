/** A normalised creation request: the recipients, the texts, the start. Pure. */
import { ApiError } from '../../lib/errors.ts'
import { type ChatNumber, chatNumber, readTime } from '../../lib/shapes.ts'
import { quote } from '../../lib/text.ts'
import { contactOf, parseIdentifier } from '../../rules/identifier.ts'
import { parseTemplate, type Template } from '../../rules/placeholders.ts'
import { type LocalInstant, laterInstant } from '../../rules/zones.ts'
import type { CampaignBody } from './campaign-body.ts'
import { formOf, requireKnown } from './planning/personalize.ts'
import { branches, type Step, trackOf } from './planning/plan.ts'

/** A recipient that the request names, in normal form. */
export interface RequestedRecipient {
  readonly contact: string
  readonly account_id: string | null
  readonly chat_id: ChatNumber | null
  readonly identifier: string | null
  readonly name: string | null
}

/** A request whose shape is valid. */
export interface CampaignRequest {
  readonly kind: 'scoped' | 'contacts'
  readonly name: string | null
  readonly message_text: string
  readonly templates: readonly Template[]
  readonly wanted: readonly RequestedRecipient[]
  /** Accounts that may take contacts; empty if every recipient names its own account. */
  readonly pool: readonly string[]
  readonly steps: readonly Step[]
  readonly branching_enabled: boolean
  readonly stop_on_own_message: boolean
  readonly daily_quota_per_account: number
  readonly max_followups: number
  readonly scheduled_at: Date | null
  readonly schedule_timezone: string
  readonly warnings: readonly string[]
}

/** Parses identifiers, placeholders and the start, and merges duplicates. Expects a valid time zone. */
export function readRequest(body: CampaignBody): CampaignRequest {
  const kind = body.contacts ? 'contacts' : 'scoped'
  const longest = Math.max(
    ...branches.map((branch) => body.steps.filter((one) => one.branch === branch).length),
  )
  const max_followups = body.max_followups ?? (kind === 'contacts' ? longest : 2)
  const start = readStart(body.scheduled_at, body.schedule_timezone)
  const wanted = new Map<string, RequestedRecipient>()
  for (const one of body.contacts ? readContacts(body.contacts) : readRecipients(body.recipients ?? [])) {
    if (!wanted.has(one.contact)) wanted.set(one.contact, one)
  }
  const templates = readTemplates(body, kind, max_followups)
  return {
    kind,
    name: body.name ?? null,
    message_text: body.message_text,
    templates,
    wanted: [...wanted.values()],
    pool: [...new Set(body.account_pool ?? (body.account_id === undefined ? [] : [body.account_id]))],
    steps: body.steps,
    branching_enabled: body.branching_enabled,
    stop_on_own_message: body.stop_on_own_message ?? false,
    daily_quota_per_account: body.daily_quota_per_account,
    max_followups,
    scheduled_at: start?.at ?? null,
    schedule_timezone: body.schedule_timezone,
    warnings: [
      ...(start && start.kind !== 'plain' ? ['scheduled_at_adjusted'] : []),
      ...(longest > max_followups ? ['steps_truncated'] : []),
    ],
  }
}

/** Every text that a recipient can get. Throws on a placeholder that can never be filled, even in steps that are cut off. */
function readTemplates(body: CampaignBody, kind: 'scoped' | 'contacts', max_followups: number): Template[] {
  const form = formOf(kind)
  const textsOf = (steps: readonly Step[]) => [
    body.message_text,
    ...steps.flatMap(({ variants }) => variants),
  ]
  for (const one of textsOf(body.steps)) requireKnown(parseTemplate(one, form), form)
  const steps = branches.flatMap((branch) => trackOf({ steps: body.steps, max_followups }, branch))
  return textsOf(steps).map((one) => parseTemplate(one, form))
}

function readStart(given: string | undefined, timezone: string): LocalInstant | undefined {
  const read = given === undefined ? undefined : readTime(given)
  if (given === undefined || !read) return undefined
  // Matches what `readTime` accepts, which reads a space before an offset as a plus.
  const offset = /([Zz]|[+ -]\d\d:\d\d)$/.test(given)
  return offset ? { at: read.at, kind: 'plain' } : laterInstant(read.at, timezone)
}

function readRecipients(recipients: NonNullable<CampaignBody['recipients']>): RequestedRecipient[] {
  return recipients.map(({ account_id, chat_id }) => {
    const number = chatNumber(chat_id)
    return { contact: `${account_id}:${number}`, account_id, chat_id: number, identifier: null, name: null }
  })
}

function readContacts(contacts: NonNullable<CampaignBody['contacts']>): RequestedRecipient[] {
  const faults = { invalid: [] as string[], unsupported: [] as string[] }
  const wanted = contacts.flatMap(({ identifier, chat_id, name }): RequestedRecipient[] => {
    const parsed = parseIdentifier(identifier)
    if (typeof parsed === 'string') {
      faults[parsed].push(identifier)
      return []
    }
    const contact = contactOf(parsed)
    const number = chat_id === undefined ? null : chatNumber(chat_id)
    return [{ contact, account_id: null, chat_id: number, identifier: identifier.trim(), name: name ?? null }]
  })
  if (faults.invalid.length > 0) {
    const detail = `Not usernames: ${listed(faults.invalid)}. A username has 3 to 32 letters, digits and underscores, a letter first.`
    throw new ApiError('invalid_username', { detail })
  }
  if (faults.unsupported.length > 0) {
    const detail = `Not usernames, links to one, phone numbers or platform ids: ${listed(faults.unsupported)}.`
    throw new ApiError('unsupported_identifier', { detail })
  }
  return wanted
}

/** The first ten, and how many more there are. */
export function listed(names: readonly string[]): string {
  const more = names.length > 10 ? ` and ${names.length - 10} more` : ''
  return names.slice(0, 10).map(quote).join(', ') + more
}
