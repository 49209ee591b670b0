/** The routes below one endpoint: its deliveries, and sending them again. */
import { z } from 'zod'
import { cursor, limit } from '../../lib/shapes.ts'
import { count, done, pageEnd } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import {
  listDeliveries,
  queueTest,
  readDelivery,
  readDeliveryPaging,
  requireSince,
  resendDelivery,
  resendFailed,
} from './deliveries.ts'
import {
  deliveryDetailOut,
  deliveryOut,
  deliveryParams,
  deliveryStates,
  sinceIn,
  webhookParams,
} from './webhook-shapes.ts'
import { webhookRole } from './webhooks.ts'

const needs = { scopes: ['write'], role: webhookRole } as const
const webhook_id = '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7b01'
const delivery_id = '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7b02'
const last = { at: '2026-11-15T09:30:00.050Z', status: 200, ms: 41, error: null }
const delivered = {
  id: delivery_id,
  event_id: 'evt_5f0c9a6e1f3b4d0c8a7e6b5d4c3f2a10',
  type: 'message.received',
  sequence: 1,
  state: 'delivered',
  attempts: 1,
  next_attempt_at: null,
  created_at: '2026-11-15T09:30:00.012Z',
  delivered_at: '2026-11-15T09:30:00.091Z',
  last,
}
const queued = {
  ...delivered,
  state: 'pending',
  next_attempt_at: '2026-11-15T10:00:00.000Z',
  delivered_at: null,
}

const queuedOut = z
  .object({ ...done, delivery: deliveryOut })
  .meta({ id: 'QueuedDelivery', description: 'The delivery, which is due now.' })

export const deliveryRoutes: readonly Route[] = [
  route({
    ...needs,
    name: 'list_webhook_deliveries',
    method: 'GET',
    path: '/webhooks/{webhook_id}/deliveries',
    summary: 'List deliveries',
    description:
      'Returns the deliveries of the last 30 days, newest first. Parley plans deliveries in batches, so the newest events may not be listed yet.',
    effect: 'read',
    params: webhookParams,
    query: z.object({
      state: z.enum(deliveryStates).optional().meta({ description: 'Only deliveries in this state.' }),
      cursor,
      limit: limit(100, 50),
    }),
    errors: ['webhook_not_found', 'invalid_cursor'],
    response: z
      .object({
        deliveries: z.array(deliveryOut).meta({ description: 'Deliveries, newest first.' }),
        ...pageEnd,
      })
      .meta({ id: 'DeliveryPage', description: 'A page of deliveries.' }),
    example: {
      params: { webhook_id },
      response: { deliveries: [delivered], next_cursor: null, has_more: false },
    },
    handle: async (app, { caller: { workspace_id }, params: { webhook_id }, query }) => {
      const paging = readDeliveryPaging(app, { workspace_id }, { webhook_id, ...query })
      return ok(await listDeliveries(app.db, { workspace_id, webhook_id }, { ...query, paging }))
    },
  }),
  route({
    ...needs,
    name: 'get_webhook_delivery',
    method: 'GET',
    path: '/webhooks/{webhook_id}/deliveries/{delivery_id}',
    summary: 'Get a delivery',
    effect: 'read',
    params: deliveryParams,
    errors: ['webhook_not_found', 'not_found'],
    response: z
      .object({ delivery: deliveryDetailOut })
      .meta({ id: 'DeliveryResult', description: 'One delivery.' }),
    example: {
      params: { webhook_id, delivery_id },
      response: {
        delivery: {
          ...delivered,
          body: '{"id":"evt_5f0c9a6e1f3b4d0c8a7e6b5d4c3f2a10","type":"message.received"}',
          tries: [{ n: 1, ...last, response: null }],
        },
      },
    },
    handle: async ({ db }, { caller: { workspace_id }, params }) =>
      ok({ delivery: await readDelivery(db, { workspace_id, ...params }) }),
  }),
  route({
    ...needs,
    name: 'resend_webhook_delivery',
    method: 'POST',
    path: '/webhooks/{webhook_id}/deliveries/{delivery_id}/resend',
    summary: 'Resend a delivery',
    description:
      'Makes the delivery due now, with a new series of attempts. A failing endpoint gets it at its next attempt, an inactive one once it is active.',
    effect: 'local',
    touches: ['webhooks'],
    params: deliveryParams,
    errors: ['webhook_not_found', 'not_found'],
    response: queuedOut,
    example: {
      params: { webhook_id, delivery_id },
      response: { ok: true, message: 'The delivery was queued.', delivery: queued },
    },
    handle: async (_app, tx, { caller: { workspace_id }, params }) => {
      const delivery = await resendDelivery(tx, { workspace_id, ...params })
      return ok({ ok: true, message: 'The delivery was queued.', delivery })
    },
  }),
  route({
    ...needs,
    name: 'resend_failed_deliveries',
    method: 'POST',
    path: '/webhooks/{webhook_id}/resend-failed',
    summary: 'Resend failed deliveries',
    description: 'Queues at most 10,000 failed deliveries, oldest first. Repeat until `queued` is 0.',
    effect: 'local',
    touches: ['webhooks'],
    params: webhookParams,
    body: z
      .strictObject({ since: sinceIn })
      .meta({ id: 'ResendRequest', description: 'Resend deliveries that failed since this time.' }),
    check: (app, _caller, { body: { since } }) => requireSince(app, since),
    errors: ['webhook_not_found'],
    response: z
      .object({ ...done, queued: count('Number of queued deliveries.') })
      .meta({ id: 'ResendResult', description: 'Number of deliveries that Parley will resend.' }),
    example: {
      params: { webhook_id },
      body: { since: '2026-11-14' },
      response: { ok: true, message: '3 failed deliveries were queued.', queued: 3 },
    },
    handle: async (_app, tx, { caller: { workspace_id }, params, body: { since } }) => {
      const queued = await resendFailed(tx, { workspace_id, ...params }, since)
      const message =
        queued === 1 ? '1 failed delivery was queued.' : `${queued} failed deliveries were queued.`
      return ok({ ok: true, message, queued })
    },
  }),
  route({
    ...needs,
    name: 'test_webhook',
    method: 'POST',
    path: '/webhooks/{webhook_id}/test',
    summary: 'Send a test event',
    description:
      'Makes one attempt to deliver `webhook.test`, even if the endpoint is inactive. A failure does not count; a success closes ' +
      'the circuit breaker. `GET …/deliveries/{delivery_id}` returns the result.',
    effect: 'local',
    touches: ['webhooks'],
    params: webhookParams,
    errors: ['webhook_not_found'],
    response: queuedOut,
    example: {
      params: { webhook_id },
      response: {
        ok: true,
        message: 'The test was queued.',
        delivery: { ...queued, type: 'webhook.test', sequence: null, attempts: 0, last: null },
      },
    },
    handle: async (_app, tx, { caller: { workspace_id, traceparent }, params }) => {
      const delivery = await queueTest(tx, { workspace_id, traceparent, ...params })
      return ok({ ok: true, message: 'The test was queued.', delivery })
    },
  }),
]
