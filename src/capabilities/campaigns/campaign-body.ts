/** The body of creation and preview, and which fields contradict each other although each is valid. Pure. */
import { z } from 'zod'
import { absent, present } from '../../lib/json-schema.ts'
import {
  accountId,
  chatId,
  chatNumber,
  personChatPattern,
  readTime,
  text,
  textSchema,
  timeSchema,
} from '../../lib/shapes.ts'
import { isBlank, lengthOf } from '../../lib/text.ts'
import { contactsMax } from '../../rules/contact-table.ts'
import {
  nameMax,
  quotaDefault,
  quotaMax,
  recipientsMax,
  textMax,
  trackMax,
  variantsMax,
  waitHoursMax,
  waitHoursMin,
} from '../../rules/limits.ts'
import { branches, type Step } from './planning/plan.ts'

const poolMax = 100

const personChat = chatId
  .refine((value) => !chatNumber(value).startsWith('-'), {
    message: 'must be platform:chat: and a non-negative integer: a campaign writes to people only',
  })
  .meta({
    description: 'A private chat.',
    openapi: { type: 'string', pattern: personChatPattern },
  })

const label = (description: string) =>
  z
    .string()
    .refine((value) => lengthOf(value) <= nameMax, {
      message: `must have at most ${nameMax} characters`,
    })
    .transform((value) => (isBlank(value) ? undefined : value))
    .optional()
    .meta({ description, openapi: { type: 'string', maxLength: nameMax } })

const step = z
  .strictObject({
    branch: z
      .enum(branches)
      .meta({ description: 'Which recipients get the step: all who did not reply, or one track.' }),
    wait_hours: z
      .number()
      .min(waitHoursMin)
      .max(waitHoursMax)
      .meta({ description: 'Hours after the previous message.' }),
    variants: z
      .array(text(textMax))
      .min(1)
      .max(variantsMax)
      .meta({ description: 'Texts; each recipient gets one of them.' }),
  })
  .meta({ id: 'CampaignStepRequest', description: 'A follow-up.' })

const recipient = z
  .strictObject({ account_id: accountId, chat_id: personChat })
  .meta({ id: 'CampaignRecipientRequest', description: 'A chat and the account that has it.' })

const contact = z
  .strictObject({
    name: label('Value of `{{name}}`. Default: the name on the platform.'),
    identifier: z.string().meta({
      description: 'A username, a link to one, a phone number, or a platform id.',
      openapi: textSchema(256),
    }),
    chat_id: personChat.optional(),
  })
  .meta({
    id: 'CampaignContactRequest',
    description: 'A person to write to; the account need not know them yet.',
  })

/** Describes in the document what `faultOf` refuses about these four. */
const recipientsOrContacts = {
  not: {
    anyOf: [
      absent('recipients', 'contacts'),
      present('recipients', 'contacts'),
      present('recipients', 'account_id'),
      present('recipients', 'account_pool'),
      present('recipients', 'stop_on_own_message'),
      present('account_id', 'account_pool'),
      { ...absent('account_id', 'account_pool'), ...present('contacts') },
    ],
  },
}

export const campaignBody = z
  .strictObject({
    name: label('Name of the campaign, shown to people.'),
    message_text: text(textMax).meta({
      description:
        'The first message. Its placeholders are `[[name]]` and `[[username]]` with `recipients`, and `{{name}}` with `contacts`; ' +
        'text after a `|` is the fallback: `[[name|there]]`, `{{name|there}}`. Letter case and blanks do not matter; any other ' +
        'placeholder is refused.',
    }),
    recipients: z
      .array(recipient)
      .min(1)
      .max(recipientsMax)
      .optional()
      .meta({ description: 'The chats to write to.' }),
    contacts: z
      .array(contact)
      .min(1)
      .max(contactsMax)
      .optional()
      .meta({ description: 'The people to write to.' }),
    account_id: accountId.optional(),
    account_pool: z
      .array(accountId)
      .min(1)
      .max(poolMax)
      .optional()
      .meta({ description: 'The accounts that share the contacts.' }),
    steps: z
      .array(step)
      .max(2 * trackMax)
      .default([])
      .meta({ description: 'Follow-ups in order.' }),
    branching_enabled: z
      .boolean()
      .default(false)
      .meta({ description: 'Whether the steps belong to the tracks `seen` and `unseen`.' }),
    daily_quota_per_account: z
      .int()
      .min(1)
      .max(quotaMax)
      .default(quotaDefault)
      .meta({ description: 'Campaign messages per account and day.' }),
    max_followups: z
      .int()
      .min(0)
      .max(trackMax)
      .optional()
      .meta({ description: 'Follow-ups per recipient. Default: 2; with contacts, every step.' }),
    stop_on_own_message: z
      .boolean()
      .optional()
      .meta({
        description:
          'With `contacts`: whether a message that the team writes to a person by hand, from any account and device, ends ' +
          'their sequence, with the reason `answered_by_hand`. Default: false.',
      }),
    scheduled_at: z
      .string()
      .refine((value) => /[Tt ]/.test(value) && readTime(value) !== undefined, {
        message: 'must be an RFC 3339 time, such as 2026-11-16T09:00:00+01:00',
      })
      .optional()
      .meta({
        description: 'When the campaign starts. A time without an offset is in `schedule_timezone`.',
        openapi: timeSchema,
      }),
    schedule_timezone: z
      .string()
      .min(1)
      .max(100)
      .default('UTC')
      .meta({ description: 'An IANA time zone, such as Europe/Berlin.' }),
  })
  .superRefine((body, context) => {
    const fault = faultOf(body)
    if (fault) context.addIssue({ code: 'custom', ...fault })
  })
  .meta({
    id: 'CampaignRequest',
    description: 'A new campaign: either `recipients`, or `contacts` with an account or a pool.',
    ...recipientsOrContacts,
  })

export type CampaignBody = z.infer<typeof campaignBody>

interface ParsedBody {
  readonly recipients?: unknown
  readonly contacts?: unknown
  readonly account_id?: unknown
  readonly account_pool?: unknown
  readonly branching_enabled: boolean
  readonly stop_on_own_message?: unknown
  readonly steps: readonly Step[]
}

/** The first contradiction between fields that are each valid. */
function faultOf(body: ParsedBody): { message: string; path: (string | number)[] } | undefined {
  const { recipients, contacts, account_id, account_pool, branching_enabled, steps } = body
  if ((recipients === undefined) === (contacts === undefined)) {
    return { message: 'must have either recipients or contacts', path: [] }
  }
  const accounts = [account_id, account_pool].filter((given) => given !== undefined).length
  if (recipients !== undefined && accounts > 0) {
    const path = [account_id === undefined ? 'account_pool' : 'account_id']
    return { message: 'is allowed with contacts only: every recipient names its own account', path }
  }
  if (contacts !== undefined && accounts !== 1) {
    return { message: 'must have either account_id or account_pool with contacts', path: [] }
  }
  // guard: only campaigns of contacts stop for a hand
  if (contacts === undefined && body.stop_on_own_message !== undefined) {
    return { message: 'is allowed with contacts only', path: ['stop_on_own_message'] }
  }
  const wrong = steps.findIndex(({ branch }) => (branch === 'no_reply') === branching_enabled)
  if (wrong >= 0) {
    const fits = branching_enabled ? 'seen or unseen while' : 'no_reply unless'
    return { message: `must be ${fits} branching_enabled is true`, path: ['steps', wrong, 'branch'] }
  }
  for (const branch of branches) {
    const count = steps.filter((one) => one.branch === branch).length
    if (count > trackMax) {
      return { message: `must have at most ${trackMax} steps in the track ${branch}`, path: ['steps'] }
    }
  }
  return undefined
}
