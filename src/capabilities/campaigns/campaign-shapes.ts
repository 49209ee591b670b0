/** What campaigns look like on the wire. */
import { z } from 'zod'
import { count, moment, momentOrNull, pageEnd, said, uuid } from '../../lib/wire.ts'
import { blocks, branches } from './planning/plan.ts'

export const warnings = ['steps_truncated', 'scheduled_at_adjusted', 'already_in_campaign'] as const
const statuses = ['scheduled', 'queued', 'sending', 'paused', 'cancelled', 'completed'] as const
export const recipientStatuses = [
  'queued',
  'submitting',
  'waiting',
  'completed',
  'replied',
  'failed',
  'ambiguous',
  'cancelled',
  'suppressed',
] as const

const textOrNull = (description: string) => z.string().nullable().meta({ description })
const numberOrNull = (description: string) => z.int().min(0).nullable().meta({ description })
const branchOrNull = z
  .enum(branches)
  .nullable()
  .meta({ description: 'Track of the step; null for the first message.' })
const stepOut = count('0 is the first message, 1 the first follow-up.')

export const totalsOut = z
  .object(
    Object.fromEntries(
      recipientStatuses.map((status) => [status, count(`Recipients with the status ${status}.`)]),
    ) as Record<(typeof recipientStatuses)[number], ReturnType<typeof count>>,
  )
  .meta({ id: 'CampaignTotals', description: 'Recipients by status.' })

const campaignFields = {
  id: uuid('Id of the campaign.'),
  name: textOrNull('Name of the campaign.'),
  status: z.enum(statuses).meta({ description: 'Current status.' }),
  kind: z
    .enum(['scoped', 'contacts'])
    .meta({ description: 'Whether it was created for chats or for contacts.' }),
  message_text: said('The first message with its placeholders.'),
  branching_enabled: z
    .boolean()
    .meta({ description: 'Whether follow-ups depend on the message having been read.' }),
  daily_quota_per_account: count(
    'The campaign stops sending from an account that has sent this many campaign messages that day.',
  ),
  max_followups: count('Maximum number of follow-ups per recipient.'),
  scheduled_at: momentOrNull('The scheduled start; null if it starts immediately.'),
  schedule_timezone: said('Time zone of the scheduled start.'),
  created_at: moment('When it was created.'),
  started_at: momentOrNull('When its first message was submitted.'),
  completed_at: momentOrNull('When its last recipient reached a final status.'),
  cancelled_at: momentOrNull('When it was cancelled.'),
  pause_reason: z
    .enum(['requested', 'late'])
    .nullable()
    .meta({ description: 'Why it is paused: a user paused it, or it missed its start by too long.' }),
  totals: totalsOut,
}

export const campaignOut = z
  .object(campaignFields)
  .meta({ id: 'Campaign', description: 'A campaign with its recipients counted by status.' })

const timelineEntry = z
  .object({
    type: z.enum(['message', 'read', 'reply', 'block']).meta({ description: 'Type of the event.' }),
    at: moment('When it happened.'),
    step: stepOut,
    variant: numberOrNull('Index of the variant that was used.'),
    message_id: textOrNull('Id of the message on the platform.'),
    operation_id: z.uuid().nullable().meta({ description: 'Id of the operation that sent the message.' }),
  })
  .meta({ id: 'CampaignTimelineEntry', description: 'An event in the history of a recipient.' })

export const creatorOut = z
  .object({ user_id: uuid('Id of the user.'), name: said('Name of the user.') })
  .meta({ id: 'CampaignCreator', description: 'The user who created it.' })

export const recipientOut = z
  .object({
    id: uuid('Id of the recipient.'),
    account_id: textOrNull('The sending account; null until an account has claimed the contact.'),
    chat_id: textOrNull('The chat; null until the contact was resolved.'),
    identifier: textOrNull('The identifier as it was given; null for a chat.'),
    name: textOrNull('Value of the placeholder `name`.'),
    status: z.enum(recipientStatuses).meta({ description: 'Current status.' }),
    reason: textOrNull('Reason for the final status.'),
    step: count('Number of messages sent to the recipient.'),
    next_action_at: momentOrNull('Earliest time of the next action; null if a person has to act first.'),
    blocked_by: z.enum(blocks).nullable().meta({ description: 'What blocks the next action.' }),
    timeline: z.array(timelineEntry).meta({ description: 'History, oldest first, without texts.' }),
  })
  .meta({ id: 'CampaignRecipient', description: 'A recipient of a campaign.' })

const operationOut = z
  .object({
    id: uuid('Id of the operation, for `GET /operations/{operation_id}`.'),
    recipient_id: uuid('Id of the recipient.'),
    step: stepOut,
    kind: said('`campaign_message` or `broadcast_message`.'),
    state: z
      .enum(['queued', 'submitting', 'completed', 'refused', 'released', 'ambiguous'])
      .meta({ description: 'State of the operation.' }),
    account_id: textOrNull('Id of the account.'),
    chat_id: textOrNull('Id of the chat.'),
    variant: numberOrNull('Index of the variant that was used.'),
    created_at: moment('When Parley was first about to submit it.'),
    crossed_at: momentOrNull('When Parley was last about to submit it.'),
    finished_at: momentOrNull('When it reached its current final state.'),
    reconciled: z
      .boolean()
      .meta({ description: 'Whether a message found on the platform later proved the outcome.' }),
    reason: textOrNull('Reason for the state, as one word.'),
    detail: textOrNull('Error from the platform.'),
    message_id: textOrNull('Id of the sent message.'),
  })
  .meta({ id: 'CampaignOperation', description: 'One message to one recipient, from the ledger.' })

const report = z
  .object({
    step: stepOut,
    branch: branchOrNull,
    variant: numberOrNull('Index of the variant that was used.'),
    sent: count('Messages that the platform accepted.'),
    failed: count('Messages that the platform refused permanently.'),
    ambiguous: count('Messages whose outcome is unknown.'),
    replies: count('Recipients who replied to this message.'),
    opted_out: count('Of these, recipients who asked to stop.'),
  })
  .meta({ id: 'CampaignReport', description: 'Results of one variant of one step.' })

const stepShape = z
  .object({
    branch: z.enum(branches).meta({ description: 'Track of the step.' }),
    wait_hours: z.number().meta({ description: 'Hours after the previous message.' }),
    variants: z.array(z.string()).meta({ description: 'Texts of the step.' }),
  })
  .meta({ id: 'CampaignStep', description: 'A follow-up.' })

const can = (what: string) => z.boolean().meta({ description: `Whether this key can ${what} now.` })

export const campaignDetail = z
  .object({
    ...campaignFields,
    recipients: z.array(recipientOut).meta({ description: 'A page of recipients, in the given order.' }),
    steps: z.array(stepShape).meta({ description: 'Follow-ups in order.' }),
    operations: z.array(operationOut).meta({ description: 'Operations of the recipients on this page.' }),
    reporting: z
      .array(report)
      .meta({ description: 'Results of every variant of every step, including unused ones.' }),
    can: z
      .object({
        create: can('create a campaign'),
        cancel: can('cancel this campaign'),
        pause: can('pause this campaign'),
        resume: can('resume this campaign'),
      })
      .meta({ id: 'CampaignActions', description: 'What this key can do now.' }),
  })
  .meta({ id: 'CampaignDetail', description: 'A campaign with its recipients, operations and results.' })

export const controlledOut = z
  .object({
    campaign: z
      .object({
        id: campaignFields.id,
        status: campaignFields.status,
        cancelled_at: campaignFields.cancelled_at,
      })
      .meta({ id: 'CampaignState', description: 'Status of the campaign now.' }),
    changed: z.boolean().meta({ description: 'False if it already had this status.' }),
  })
  .meta({ id: 'CampaignChange', description: 'The campaign and whether it changed.' })

export const verifiedOut = z
  .object({
    ok: z.boolean().meta({ description: 'Whether every check passed.' }),
    checks: z
      .array(
        z
          .object({
            name: said('Name of the check.'),
            ok: z.boolean().meta({ description: 'Whether the check passed.' }),
            detail: said('Result as a sentence.'),
          })
          .meta({ id: 'CampaignCheck', description: 'One check.' }),
      )
      .meta({ description: 'All checks.' }),
  })
  .meta({ id: 'CampaignVerification', description: 'Result of verifying a campaign.' })

const previewedRecipient = {
  account_id: textOrNull('The sending account; null until one has claimed the contact.'),
  chat_id: textOrNull('The chat; null while it is unknown.'),
  identifier: textOrNull('The identifier as it was given; null for a chat.'),
}

export const forecastOut = z
  .object({
    creatable: z
      .boolean()
      .meta({ description: 'False if creation would refuse; `excluded` names the recipients.' }),
    warnings: z.array(z.enum(warnings)).meta({ description: 'Warnings that creation would return.' }),
    excluded: z
      .array(
        z
          .object({ ...previewedRecipient, code: said('The error code that creation would return.') })
          .meta({ id: 'ExcludedRecipient', description: 'A recipient who cannot receive the campaign.' }),
      )
      .meta({ description: 'Recipients left out of the texts and the timetable.' }),
    texts: z
      .array(
        z
          .object({
            ...previewedRecipient,
            messages: z
              .array(
                z
                  .object({
                    step: stepOut,
                    branch: branchOrNull,
                    variants: z.array(z.string().nullable()).meta({
                      description: 'The texts with placeholders filled in; null while a name is unknown.',
                    }),
                  })
                  .meta({ id: 'StepTexts', description: 'The texts of one step.' }),
              )
              .meta({ description: 'Every message the recipient may get.' }),
          })
          .meta({ id: 'RecipientTexts', description: 'The texts for one recipient.' }),
      )
      .meta({ description: 'Texts for the first 20 recipients.' }),
    timetable: z
      .array(
        z
          .object({
            ...previewedRecipient,
            messages: z
              .array(
                z
                  .object({
                    step: stepOut,
                    branch: branchOrNull,
                    account_id: said('The sending account.'),
                    at: moment('When it happened.'),
                  })
                  .meta({ id: 'PlannedMessage', description: 'A planned message.' }),
              )
              .meta({
                description: 'Planned messages, earliest first; empty if nothing would be sent.',
              }),
          })
          .meta({ id: 'TimetableRow', description: 'The planned messages to one recipient.' }),
      )
      .meta({ description: 'A page of recipients, in the given order.' }),
    load: z
      .array(
        z
          .object({
            account_id: said('Id of the account.'),
            day: z.iso.date().meta({ description: 'Day in the time zone of the workspace.' }),
            messages: count('Messages of this campaign.'),
            total: count('Messages of all campaigns and broadcasts.'),
          })
          .meta({ id: 'AccountLoad', description: 'Messages that an account sends on one day.' }),
      )
      .meta({ description: 'Totals by day and account.' }),
    end: momentOrNull('When the last message is sent; null if none is, or if it is beyond the forecast.'),
    ...pageEnd,
  })
  .meta({
    id: 'CampaignForecast',
    description:
      'Timetable of a campaign beside all others on its accounts, assuming that no recipient reads or replies.',
  })
