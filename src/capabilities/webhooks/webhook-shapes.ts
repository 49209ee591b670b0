/** Webhooks and their deliveries as the API accepts and returns them. */
import { z } from 'zod'
import { eventTypes } from '../../events/emit.ts'
import { time } from '../../lib/shapes.ts'
import { count, moment, momentOrNull, said, uuid } from '../../lib/wire.ts'

/** The value of `events` that subscribes to all. `webhook.test` is sent on request only. */
export const allEvents = '*'
const subscribable = [...eventTypes, allEvents] as const

export const urlIn = z.string().meta({
  description: 'An HTTPS address on the public internet. Parley does not call it when you set it.',
  openapi: { type: 'string', format: 'uri', maxLength: 2048, examples: ['https://example.com/hook'] },
})

export const eventsIn = z
  .array(z.enum(subscribable))
  .min(1, 'must list at least one event type; leave it out for all')
  .refine((events) => events.length === 1 || !events.includes(allEvents), {
    message: 'must not list other types with *, which stands for all',
  })
  .transform((events) => [...new Set(events)])
  .meta({
    description: 'The event types to deliver. Default, or `["*"]`: all.',
    openapi: { type: 'array', minItems: 1, items: { type: 'string', enum: [...subscribable] } },
  })

const id = (description: string) =>
  z.string().meta({ description, openapi: { type: 'string', format: 'uuid' } })

/** The schema does not check the form, because a malformed id is answered like an unknown one. */
export const webhookParams = z.strictObject({ webhook_id: id('Id of the webhook.') })
export const deliveryParams = z.strictObject({
  webhook_id: id('Id of the webhook.'),
  delivery_id: id('Id of the delivery.'),
})

export const stopReasons = ['maker_removed', 'maker_disabled'] as const
export type StopReason = (typeof stopReasons)[number]

export const deliveryStates = ['pending', 'delivered', 'failed'] as const

export const sinceIn = time.meta({
  description: 'Resend deliveries of events since this time, at most 30 days ago.',
})

export const webhookOut = z
  .object({
    id: uuid('Id of the webhook.'),
    url: said('Address of the endpoint.'),
    events: z.array(z.string()).meta({ description: 'Event types to deliver; `["*"]` for all.' }),
    active: z.boolean().meta({ description: 'Whether Parley delivers events to it.' }),
    created_at: moment('When the webhook was created.'),
    consecutive_failures: count(
      'Failed attempts since the last success. After 20 the webhook becomes inactive.',
    ),
    disabled_at: momentOrNull(
      'When failures made it inactive; null if they did not, or if it was activated later.',
    ),
    created_by: z
      .object({ user_id: uuid('Id of the user.'), name: said('Name of the user.') })
      .nullable()
      .meta({
        id: 'WebhookCreator',
        description:
          'The member who created it, took it over or gave it its address, and with whom it stops; null if that is unknown because it is older than this field.',
      }),
    stop_reason: z.enum(stopReasons).nullable().meta({
      description:
        'Why it became inactive: its creator was removed from the workspace or lost the role that webhooks need (`maker_removed`), or was disabled (`maker_disabled`); otherwise null.',
    }),
  })
  .meta({ id: 'Webhook', description: 'An endpoint that receives events.' })

export const secretOut = z.string().meta({
  description: 'Secret that signs every delivery. Shown only now.',
  openapi: { type: 'string', pattern: '^whsec_[A-Za-z0-9+/]{43}=$' },
})

const statusOut = z
  .int()
  .nullable()
  .meta({ description: 'HTTP status of the response; null without a response.' })
const errorOut = z
  .string()
  .nullable()
  .meta({
    description:
      'Why there was no usable response: `timeout`, `refused`, `unreachable`, `reset`, `dns`, `tls`, `blocked_address`, ' +
      '`too_large`, `invalid_response` or `unsigned`; otherwise null.',
  })

const lastOut = z
  .object({
    at: moment('When the attempt began.'),
    status: statusOut,
    ms: count('Duration in milliseconds.'),
    error: errorOut,
  })
  .nullable()
  .meta({ id: 'LastAttempt', description: 'The last attempt; null before the first one.' })

const delivery = {
  id: uuid('Id of the delivery.'),
  event_id: said('Id of the event, `evt_…`. Receivers recognise repeats by it.'),
  type: said('Type of the event.'),
  sequence: z.int().min(1).nullable().meta({ description: '`sequence` of the event; null for a test.' }),
  state: z.enum(deliveryStates).meta({ description: 'State of the delivery.' }),
  attempts: count('Number of attempts made.'),
  next_attempt_at: momentOrNull(
    'When the next attempt is due; null if none is. A failing or inactive endpoint delays it.',
  ),
  created_at: moment('When the event got its sequence.'),
  delivered_at: momentOrNull('When the endpoint accepted it; null before.'),
  last: lastOut,
}

export const deliveryOut = z
  .object(delivery)
  .meta({ id: 'Delivery', description: 'The delivery of one event to one endpoint.' })

const tryOut = z
  .object({
    n: z.int().min(1).meta({ description: 'Number of the attempt.' }),
    at: moment('When the attempt began.'),
    status: statusOut,
    ms: count('Duration in milliseconds.'),
    error: errorOut,
    response: z
      .string()
      .nullable()
      .meta({ description: 'Beginning of the response body, for failed attempts only.' }),
  })
  .meta({ id: 'DeliveryAttempt', description: 'One attempt.' })

export const deliveryDetailOut = z
  .object({
    ...delivery,
    body: said('The exact body that is sent.'),
    tries: z.array(tryOut).meta({ description: 'The failed attempts, then the successful one.' }),
  })
  .meta({ id: 'DeliveryDetail', description: 'A delivery with its body and attempts.' })
