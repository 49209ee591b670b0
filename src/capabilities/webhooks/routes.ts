import { z } from 'zod'
import type { Caller } from '../../contract.ts'
import { done } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { deliveryRoutes } from './delivery-routes.ts'
import { eventsIn, secretOut, urlIn, webhookOut, webhookParams } from './webhook-shapes.ts'
import { createWebhook, deleteWebhook, listWebhooks, rotateSecret, updateWebhook } from './webhooks.ts'

/** No idempotency key: a replay would have to store the secret. */
const needs = { scopes: ['write'], dashboard_role: 'admin' } as const
const params = { webhook_id: '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7b01' }
const webhook = {
  id: params.webhook_id,
  url: 'https://example.com/hook',
  events: ['*'],
  active: true,
  created_at: '2026-11-15T09:30:00.000Z',
  consecutive_failures: 0,
  disabled_at: null,
}
const secret = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='

const withSecret = z
  .object({ webhook: webhookOut, secret: secretOut })
  .meta({ id: 'WebhookWithSecret', description: 'A webhook, and the secret that is not shown again.' })
const oneWebhook = z
  .object({ webhook: webhookOut })
  .meta({ id: 'WebhookResult', description: 'The webhook as it is now.' })

export const routes: readonly Route[] = [
  route({
    ...needs,
    name: 'create_webhook',
    method: 'POST',
    path: '/webhooks',
    summary: 'Adds an endpoint that events are delivered to',
    description:
      'It gets what happens from now on, at least once, signed with the secret that is shown this once. A workspace has ' +
      'at most 10.',
    effect: 'local',
    statuses: [201],
    body: z
      .strictObject({ url: urlIn, events: eventsIn.optional() })
      .meta({ id: 'WebhookRequest', description: 'Where events go, and which.' }),
    errors: ['webhook_limit_reached'],
    response: withSecret,
    example: { body: { url: webhook.url }, response: { webhook, secret } },
    handle: async (app, tx, { caller, body }) => ({
      status: 201,
      body: await createWebhook(app, tx, actorOf(caller), { workspace_id: caller.workspace_id, ...body }),
    }),
  }),
  route({
    ...needs,
    name: 'list_webhooks',
    method: 'GET',
    path: '/webhooks',
    summary: 'The endpoints of the workspace',
    effect: 'read',
    response: z
      .object({ webhooks: z.array(webhookOut).meta({ description: 'Oldest first.' }) })
      .meta({ id: 'WebhookList', description: 'Every webhook of the workspace.' }),
    example: { response: { webhooks: [webhook] } },
    handle: async ({ db }, { caller }) => ok({ webhooks: await listWebhooks(db, caller.workspace_id) }),
  }),
  route({
    ...needs,
    name: 'update_webhook',
    method: 'PATCH',
    path: '/webhooks/{webhook_id}',
    summary: 'Changes an endpoint',
    description:
      'What is undelivered goes to the new address. An inactive endpoint keeps its place: once it is active again, ' +
      'everything of the last 30 days is delivered. `active: true` and another `url` set the count of failures to 0.',
    effect: 'local',
    params: webhookParams,
    body: z
      .strictObject({
        url: urlIn.optional(),
        events: eventsIn.optional(),
        active: z.boolean().optional().meta({ description: 'Whether events are delivered to it.' }),
      })
      .meta({
        id: 'WebhookUpdate',
        description: 'What is to change; at least one of them.',
        minProperties: 1,
      }),
    errors: ['webhook_not_found'],
    response: oneWebhook,
    example: { params, body: { active: true }, response: { webhook } },
    handle: async (app, tx, { caller, params, body }) =>
      ok({ webhook: await updateWebhook(app, tx, actorOf(caller), { ...keyOf(caller, params), ...body }) }),
  }),
  route({
    ...needs,
    name: 'delete_webhook',
    method: 'DELETE',
    path: '/webhooks/{webhook_id}',
    summary: 'Removes an endpoint',
    description: 'What was not delivered to it goes with it. `GET /events` has it still.',
    effect: 'local',
    params: webhookParams,
    errors: ['webhook_not_found'],
    response: z.object(done).meta({ id: 'WebhookDeleted', description: 'It is gone.' }),
    example: { params, response: { ok: true, message: 'The webhook was deleted.' } },
    handle: async (app, tx, { caller, params }) => {
      await deleteWebhook(app, tx, actorOf(caller), keyOf(caller, params))
      return ok({ ok: true, message: 'The webhook was deleted.' })
    },
  }),
  route({
    ...needs,
    name: 'rotate_webhook_secret',
    method: 'POST',
    path: '/webhooks/{webhook_id}/rotate-secret',
    summary: 'Gives an endpoint another secret',
    description: 'For 24 hours deliveries are signed with the secret before, too.',
    effect: 'local',
    params: webhookParams,
    errors: ['webhook_not_found'],
    response: withSecret,
    example: { params, response: { webhook, secret } },
    handle: async (app, tx, { caller, params }) =>
      ok(await rotateSecret(app, tx, actorOf(caller), keyOf(caller, params))),
  }),
  ...deliveryRoutes,
]

function keyOf({ workspace_id }: Caller, { webhook_id }: { webhook_id: string }) {
  return { workspace_id, webhook_id }
}
