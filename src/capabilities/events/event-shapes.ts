/** Events as the API and webhooks return them: one shape per type, discriminated by `type`. */
import { z } from 'zod'
import { eventTypes } from '../../events/emit.ts'
import {
  accountIdOut,
  chatIdOut,
  count,
  messageIdOut,
  messageOut,
  moment,
  said,
  stageKeyOut,
  uuid,
} from '../../lib/wire.ts'

type EventType = (typeof eventTypes)[number]

const where = { account_id: accountIdOut, chat_id: chatIdOut }

const aboutMessage = z
  .object({ ...where, message: messageOut })
  .meta({ id: 'MessageEventData', description: 'The message as it is now, its chat and its account.' })

const aboutDeletion = z
  .object({
    ...where,
    message_ids: z.array(messageIdOut).meta({ description: 'Ids of the deleted messages.' }),
  })
  .meta({
    id: 'DeletionEventData',
    description: 'The deleted messages, their chat and their account. Their texts are no longer stored.',
  })

const aboutMove = z
  .object({
    ...where,
    from_stage_key: stageKeyOut.meta({ description: 'The previous stage.' }),
    to_stage_key: stageKeyOut.meta({ description: 'The new stage.' }),
    actor: z
      .object({
        type: z.enum(['key', 'user', 'cli', 'system']).meta({ description: 'Kind of actor.' }),
        id: said('Id of the actor.'),
      })
      .meta({ id: 'EventActor', description: 'Who moved the chat.' }),
  })
  .meta({ id: 'MoveEventData', description: 'The chat, its previous and new stage, and who moved it.' })

const aboutReply = z
  .object({
    campaign_id: uuid('Id of the campaign.'),
    recipient_id: uuid('Id of the recipient.'),
    ...where,
    message_id: messageIdOut,
    step: count('The step that the reply answers; 0 is the first message.'),
    variant: count('Index of the variant of that step.'),
    opted_out: z.boolean().meta({ description: 'Whether the reply asks to stop.' }),
  })
  .meta({
    id: 'ReplyEventData',
    description: 'The recipient, the campaign and the step that the reply answers.',
  })

/** An upgrade erased it: it was about a chat that Parley no longer shows, such as the one that brings login codes. */
const erased = z
  .object({ erased: z.literal(true).meta({ description: 'Always true.' }) })
  .meta({ id: 'ErasedEventData', description: 'What the event was about was erased by an upgrade.' })

function event<T extends EventType, D extends z.ZodType>(
  id: string,
  type: T,
  { data, description }: { data: D; description: string },
) {
  return z
    .object({
      id: said('`evt_…`; the same in every delivery of the event.'),
      type: z.literal(type).meta({ description: 'Type of the event.' }),
      api_version: said('Version of the API.'),
      workspace_id: uuid('The workspace of the event.'),
      sequence: count('Position among the events of the workspace, without gaps.'),
      occurred_at: moment('When it happened.'),
      created_at: moment('When it got its sequence.'),
      data: z.union([data, erased]).meta({ description: 'What happened, unless it was erased.' }),
    })
    .meta({ id, description })
}

/** The complete list of event types. The rest of this file is derived from it. */
const events = {
  'message.received': event('MessageReceivedEvent', 'message.received', {
    data: aboutMessage,
    description: 'An account received a message.',
  }),
  'message.edited': event('MessageEditedEvent', 'message.edited', {
    data: aboutMessage,
    description: 'A message was edited.',
  }),
  'message.deleted': event('MessageDeletedEvent', 'message.deleted', {
    data: aboutDeletion,
    description: 'Messages were deleted.',
  }),
  'pipeline.moved': event('PipelineMovedEvent', 'pipeline.moved', {
    data: aboutMove,
    description: 'A chat moved to another stage.',
  }),
  'campaign.replied': event('CampaignRepliedEvent', 'campaign.replied', {
    data: aboutReply,
    description: 'A recipient of a campaign replied.',
  }),
} satisfies Record<EventType, z.ZodType>

type EventShape = (typeof events)[EventType]

export const eventOut = z
  .discriminatedUnion('type', eventTypes.map((type) => events[type]) as [EventShape, ...EventShape[]])
  .meta({
    id: 'Event',
    description: 'An event of the workspace. `type` decides the shape of `data`.',
    discriminator: {
      propertyName: 'type',
      mapping: Object.fromEntries(
        eventTypes.map((type) => [type, `#/components/schemas/${events[type].meta()?.id}`]),
      ),
    },
  })
