/** Webhooks and their deliveries as the API accepts and returns them. */
import { z } from 'zod'
import { eventTypes } from '../../events/emit.ts'
import { time } from '../../lib/shapes.ts'
import { count, moment, momentOrNull, said, uuid } from '../../lib/wire.ts'

/** The value of `events` that subscribes to all. `webhook.test` is sent on request only. */
export const allEvents = '*'
const subscribable = [...eventTypes, allEvents] as const

export const urlIn = z.string().meta({
  description: 'An HTTPS address on the public internet. It is not called when it is set.',
  openapi: { type: 'string', format: 'uri', maxLength: 2048, examples: ['https://example.com/hook'] },
})

export const eventsIn = z
  .array(z.enum(subscribable))
  .min(1, 'must name at least one event, or be left out for all')
  .refine((events) => events.length === 1 || !events.includes(allEvents), {
    message: 'must have * alone: it stands for all events',
  })
  .transform((events) => [...new Set(events)])
  .meta({
    description: 'The types of events to deliver. Left out, or `["*"]`: all.',
    openapi: { type: 'array', minItems: 1, items: { type: 'string', enum: [...subscribable] } },
  })

const id = (description: string) =>
  z.string().meta({ description, openapi: { type: 'string', format: 'uuid' } })

/** The schema does not check the form, because a malformed id is answered like an unknown one. */
export const webhookParams = z.strictObject({ webhook_id: id('The webhook.') })
export const deliveryParams = z.strictObject({
  webhook_id: id('The webhook.'),
  delivery_id: id('The delivery.'),
})

export const deliveryStates = ['pending', 'delivered', 'failed'] as const

export const sinceIn = time.meta({ description: 'Events from then on. At most 30 days back.' })

export const webhookOut = z
  .object({
    id: uuid('Names the webhook in every other operation.'),
    url: said('Where its events go.'),
    events: z.array(z.string()).meta({ description: 'The types it gets; `["*"]` for all.' }),
    active: z.boolean().meta({ description: 'False while nothing is delivered to it.' }),
    created_at: moment('When it was made.'),
    consecutive_failures: count('How many attempts have failed since the last success. 20 make it inactive.'),
    disabled_at: momentOrNull(
      'When its failures made it inactive; null where they did not, or it was activated since.',
    ),
  })
  .meta({ id: 'Webhook', description: 'An endpoint that events are delivered to.' })

export const secretOut = z.string().meta({
  description: 'Signs every delivery. It is shown this once.',
  openapi: { type: 'string', pattern: '^whsec_[A-Za-z0-9+/]{43}=$' },
})

const statusOut = z.int().nullable().meta({ description: 'The HTTP status it answered; null without one.' })
const errorOut = z
  .string()
  .nullable()
  .meta({
    description:
      'Why there was no answer to go by: `timeout`, `refused`, `unreachable`, `reset`, `dns`, `tls`, `blocked_address`, ' +
      '`too_large`, `invalid_response` or `unsigned`; otherwise null.',
  })

const lastOut = z
  .object({
    at: moment('When it began.'),
    status: statusOut,
    ms: count('How long it took.'),
    error: errorOut,
  })
  .nullable()
  .meta({ id: 'LastAttempt', description: 'The last attempt; null before the first.' })

const delivery = {
  id: uuid('Names the delivery.'),
  event_id: said('The event, `evt_…`. A receiver knows a repeat by it.'),
  type: said('The type of the event.'),
  sequence: z
    .int()
    .min(1)
    .nullable()
    .meta({ description: "The event's place in the workspace; null for a test." }),
  state: z.enum(deliveryStates).meta({ description: 'Whether it is on its way, done or given up.' }),
  attempts: count('How many attempts were made.'),
  next_attempt_at: momentOrNull(
    'When the next attempt is due; null where none is. An endpoint that fails or is inactive makes it later.',
  ),
  created_at: moment('When the event got its place.'),
  delivered_at: momentOrNull('When the endpoint took it; null before.'),
  last: lastOut,
}

export const deliveryOut = z
  .object(delivery)
  .meta({ id: 'Delivery', description: 'One event on its way to one endpoint.' })

const tryOut = z
  .object({
    n: z.int().min(1).meta({ description: 'Which attempt it was.' }),
    at: moment('When it began.'),
    status: statusOut,
    ms: count('How long it took.'),
    error: errorOut,
    response: z
      .string()
      .nullable()
      .meta({ description: 'The beginning of what it answered, for failed attempts only.' }),
  })
  .meta({ id: 'DeliveryAttempt', description: 'One attempt.' })

export const deliveryDetailOut = z
  .object({
    ...delivery,
    body: said('What is sent, to the byte.'),
    tries: z.array(tryOut).meta({ description: 'The failed attempts, and the success as the last.' }),
  })
  .meta({ id: 'DeliveryDetail', description: 'A delivery with its body and its attempts.' })
