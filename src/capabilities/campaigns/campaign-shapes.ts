/** What campaigns look like on the wire. */
import { z } from 'zod'
import { count, moment, momentOrNull, pageEnd, said, uuid } from '../../lib/wire.ts'
import { blocks, branches } from './planning/plan.ts'

export const warnings = ['steps_truncated', 'scheduled_at_adjusted', 'already_in_campaign'] as const
const statuses = ['scheduled', 'queued', 'sending', 'paused', 'cancelled', 'completed'] as const
const recipientStatuses = [
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
  .meta({ description: 'The track; null for the first message.' })
const stepOut = count('0 is the first message, 1 the first follow-up.')

export const totalsOut = z
  .object(
    Object.fromEntries(
      recipientStatuses.map((status) => [status, count(`Recipients that are ${status}.`)]),
    ) as Record<(typeof recipientStatuses)[number], ReturnType<typeof count>>,
  )
  .meta({ id: 'CampaignTotals', description: 'Recipients by status.' })

const campaignFields = {
  id: uuid('Names the campaign.'),
  name: textOrNull('What people call it.'),
  status: z.enum(statuses).meta({ description: 'Where it stands.' }),
  kind: z
    .enum(['scoped', 'contacts'])
    .meta({ description: 'Whether it was made for chats or for contacts.' }),
  message_text: said('The first message, with its placeholders.'),
  branching_enabled: z.boolean().meta({ description: 'Follow-ups depend on whether the message was read.' }),
  daily_quota_per_account: count(
    'It sends from an account only while that has sent fewer campaign messages that day.',
  ),
  max_followups: count('The most follow-ups that one recipient gets.'),
  scheduled_at: momentOrNull('When it was to start; null: at once.'),
  schedule_timezone: said('The time zone its start was given in.'),
  created_at: moment('When it was created.'),
  started_at: momentOrNull('When its first message was submitted.'),
  completed_at: momentOrNull('When its last recipient came to an end.'),
  cancelled_at: momentOrNull('When it was cancelled.'),
  pause_reason: z
    .enum(['requested', 'late'])
    .nullable()
    .meta({ description: 'While paused: somebody asked for it, or its start was missed by too much.' }),
  totals: totalsOut,
}

export const campaignOut = z
  .object(campaignFields)
  .meta({ id: 'Campaign', description: 'A campaign, with its recipients counted.' })

const timelineEntry = z
  .object({
    type: z.enum(['message', 'read', 'reply', 'block']).meta({ description: 'What happened.' }),
    at: moment('When.'),
    step: stepOut,
    variant: numberOrNull('Which of the texts of that step.'),
    message_id: textOrNull('The message, as the platform counts.'),
    operation_id: z.uuid().nullable().meta({ description: 'The row of the ledger that sent the message.' }),
  })
  .meta({ id: 'CampaignTimelineEntry', description: 'Something that happened to a recipient.' })

export const recipientOut = z
  .object({
    id: uuid('Names the recipient.'),
    account_id: textOrNull('The account that writes; null while no account has taken the contact.'),
    chat_id: textOrNull('The chat; null while the contact has not been found.'),
    identifier: textOrNull('How a contact was given.'),
    name: textOrNull('What `name` stands for.'),
    status: z.enum(recipientStatuses).meta({ description: 'Where it stands.' }),
    reason: textOrNull('Why it ended as it did.'),
    step: count('How many messages it has had.'),
    next_action_at: momentOrNull('The earliest moment as things stand; null where somebody has to act.'),
    blocked_by: z.enum(blocks).nullable().meta({ description: 'Why it has not moved.' }),
    timeline: z.array(timelineEntry).meta({ description: 'What has happened, oldest first. No texts.' }),
  })
  .meta({ id: 'CampaignRecipient', description: 'Somebody that a campaign writes to.' })

const operationOut = z
  .object({
    id: uuid('As `GET /operations/{operation_id}` takes it.'),
    recipient_id: uuid('The recipient.'),
    step: stepOut,
    kind: said('`campaign_message` or `broadcast_message`.'),
    state: z
      .enum(['queued', 'submitting', 'completed', 'refused', 'released', 'ambiguous'])
      .meta({ description: 'How far it has come.' }),
    account_id: textOrNull('The account.'),
    chat_id: textOrNull('The chat.'),
    variant: numberOrNull('Which of the texts of that step.'),
    created_at: moment('When it was first about to be submitted.'),
    crossed_at: momentOrNull('When it was last about to be submitted.'),
    finished_at: momentOrNull('When it came to its present end.'),
    reconciled: z.boolean().meta({ description: 'True where a message of the platform proved it later.' }),
    reason: textOrNull('Why it ended as it did, as one word.'),
    detail: textOrNull('What the platform said.'),
    message_id: textOrNull('The message it became.'),
  })
  .meta({ id: 'CampaignOperation', description: 'One message to one recipient, as the ledger has it.' })

const report = z
  .object({
    step: stepOut,
    branch: branchOrNull,
    variant: numberOrNull('Which of the texts of that step.'),
    sent: count('Messages that the platform accepted.'),
    failed: count('Messages that the platform refused for good.'),
    ambiguous: count('Messages of which nobody knows.'),
    replies: count('Recipients who answered this message.'),
    opted_out: count('Of these, those who asked us to stop.'),
  })
  .meta({ id: 'CampaignReport', description: 'What came of one text of one step.' })

const stepShape = z
  .object({
    branch: z.enum(branches).meta({ description: 'Its track.' }),
    wait_hours: z.number().meta({ description: 'How long after the message before.' }),
    variants: z.array(z.string()).meta({ description: 'Its texts.' }),
  })
  .meta({ id: 'CampaignStep', description: 'A follow-up.' })

const can = (what: string) => z.boolean().meta({ description: `Whether this key could ${what} now.` })

export const campaignDetail = z
  .object({
    ...campaignFields,
    recipients: z.array(recipientOut).meta({ description: 'A page of them, in the order given.' }),
    steps: z.array(stepShape).meta({ description: 'Follow-ups, in their order.' }),
    operations: z.array(operationOut).meta({ description: 'The messages to the recipients shown.' }),
    reporting: z
      .array(report)
      .meta({ description: 'What came of every text of every step, also of those that nobody has had.' }),
    can: z
      .object({
        create: can('create a campaign'),
        cancel: can('cancel this one'),
        pause: can('pause it'),
        resume: can('resume it'),
      })
      .meta({ id: 'CampaignAbilities', description: 'What this key may do now.' }),
  })
  .meta({ id: 'CampaignDetail', description: 'A campaign with everything that is known of it.' })

export const controlledOut = z
  .object({
    campaign: z
      .object({
        id: campaignFields.id,
        status: campaignFields.status,
        cancelled_at: campaignFields.cancelled_at,
      })
      .meta({ id: 'CampaignState', description: 'Where the campaign stands now.' }),
    changed: z.boolean().meta({ description: 'False where it stood there already.' }),
  })
  .meta({ id: 'CampaignControlled', description: 'The campaign, and whether it changed.' })

export const verifiedOut = z
  .object({
    ok: z.boolean().meta({ description: 'Whether every check passed.' }),
    checks: z
      .array(
        z
          .object({
            name: said('What was checked.'),
            ok: z.boolean().meta({ description: 'Whether it holds.' }),
            detail: said('What was found, as a sentence.'),
          })
          .meta({ id: 'CampaignCheck', description: 'One thing that must hold.' }),
      )
      .meta({ description: 'Every check.' }),
  })
  .meta({ id: 'CampaignVerification', description: 'Whether the books of a campaign agree.' })

const foretoldWho = {
  account_id: textOrNull('The account; null where a contact has not been taken by one.'),
  chat_id: textOrNull('The chat; null where it is not known yet.'),
  identifier: textOrNull('How a contact was given.'),
}

export const forecastOut = z
  .object({
    creatable: z.boolean().meta({ description: 'False where creation would refuse: `excluded` says whom.' }),
    warnings: z.array(z.enum(warnings)).meta({ description: 'What creation would warn of.' }),
    excluded: z
      .array(
        z
          .object({ ...foretoldWho, code: said('Why: the code that creation would answer.') })
          .meta({ id: 'ExcludedRecipient', description: 'Somebody who cannot be written to.' }),
      )
      .meta({ description: 'Everybody who is left out of what follows.' }),
    texts: z
      .array(
        z
          .object({
            ...foretoldWho,
            messages: z
              .array(
                z
                  .object({
                    step: stepOut,
                    branch: branchOrNull,
                    variants: z
                      .array(z.string().nullable())
                      .meta({ description: 'The texts, filled in; null where a name is not known yet.' }),
                  })
                  .meta({ id: 'ForetoldTexts', description: 'The texts of one step.' }),
              )
              .meta({ description: 'Every message they may get.' }),
          })
          .meta({ id: 'ForetoldReader', description: 'What one recipient would read.' }),
      )
      .meta({ description: 'For the first 20 recipients.' }),
    timetable: z
      .array(
        z
          .object({
            ...foretoldWho,
            messages: z
              .array(
                z
                  .object({
                    step: stepOut,
                    branch: branchOrNull,
                    account_id: said('The account that writes it.'),
                    at: moment('When.'),
                  })
                  .meta({ id: 'ForetoldMessage', description: 'A message to come.' }),
              )
              .meta({
                description: 'In the order of time. Empty where nothing would go out as things stand.',
              }),
          })
          .meta({ id: 'TimetableRow', description: 'What one recipient gets, and when.' }),
      )
      .meta({ description: 'A page of recipients, in the order given.' }),
    load: z
      .array(
        z
          .object({
            account_id: said('The account.'),
            day: z.iso.date().meta({ description: "A day of the workspace's." }),
            messages: count('Messages of this campaign.'),
            total: count('Messages of all campaigns and broadcasts.'),
          })
          .meta({ id: 'ForetoldLoad', description: 'What an account sends on one day.' }),
      )
      .meta({ description: 'By day and account.' }),
    end: momentOrNull('When its last message goes out; null where none does, or it is too far to tell.'),
    ...pageEnd,
  })
  .meta({
    id: 'CampaignForecast',
    description: 'What a campaign does while nobody reads or answers, beside all others on its accounts.',
  })
