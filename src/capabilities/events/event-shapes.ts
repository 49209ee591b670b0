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
  .meta({ id: 'MessageEventData', description: 'The message as it is now, and where.' })

const aboutDeletion = z
  .object({
    ...where,
    message_ids: z.array(messageIdOut).meta({ description: 'Which messages are gone.' }),
  })
  .meta({
    id: 'DeletionEventData',
    description: 'Which messages were deleted, and where. Their texts are gone.',
  })

const aboutMove = z
  .object({
    ...where,
    from_stage_key: stageKeyOut.meta({ description: 'The stage it was in.' }),
    to_stage_key: stageKeyOut.meta({ description: 'The stage it is in.' }),
    actor: z
      .object({
        type: z.enum(['key', 'user', 'cli', 'system']).meta({ description: 'What kind of actor it was.' }),
        id: said('Which one.'),
      })
      .meta({ id: 'EventActor', description: 'Who did it.' }),
  })
  .meta({ id: 'MoveEventData', description: 'Which chat moved, from where to where, and who moved it.' })

const aboutReply = z
  .object({
    campaign_id: uuid('The campaign.'),
    recipient_id: uuid('Its recipient.'),
    ...where,
    message_id: messageIdOut,
    step: count('The step that was answered; 0 is the first message.'),
    variant: count('The variant of that step.'),
    opted_out: z.boolean().meta({ description: 'Whether the reply asks to stop.' }),
  })
  .meta({ id: 'ReplyEventData', description: 'Who replied to which message of which campaign.' })

function event<T extends EventType, D extends z.ZodType>(
  id: string,
  type: T,
  { data, description }: { data: D; description: string },
) {
  return z
    .object({
      id: said('`evt_…`; the same however often it is delivered.'),
      type: z.literal(type).meta({ description: 'What happened.' }),
      api_version: said('The version of this document.'),
      workspace_id: uuid('The workspace it happened in.'),
      sequence: count('Its place among the events of the workspace. There are no gaps.'),
      occurred_at: moment('When it happened.'),
      created_at: moment('When it got its place.'),
      data,
    })
    .meta({ id, description })
}

/** The complete list of event types. The rest of this file is derived from it. */
const events = {
  'message.received': event('MessageReceivedEvent', 'message.received', {
    data: aboutMessage,
    description: 'Somebody wrote to an account.',
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
    description: 'A chat changed its stage.',
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
    description: 'Something that happened in the workspace. `type` says what, and so what `data` is.',
    discriminator: {
      propertyName: 'type',
      mapping: Object.fromEntries(
        eventTypes.map((type) => [type, `#/components/schemas/${events[type].meta()?.id}`]),
      ),
    },
  })
