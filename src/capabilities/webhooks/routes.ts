import { z } from 'zod'
import type { Caller } from '../../contract.ts'
import { done } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { deliveryRoutes } from './delivery-routes.ts'
import { eventsIn, secretOut, urlIn, webhookOut, webhookParams } from './webhook-shapes.ts'
import {
  createWebhook,
  deleteWebhook,
  listWebhooks,
  rotateSecret,
  updateWebhook,
  webhookRole,
} from './webhooks.ts'

/** No idempotency key: a replay would have to store the secret. */
const needs = { scopes: ['write'], role: webhookRole } as const
const params = { webhook_id: '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7b01' }
const webhook = {
  id: params.webhook_id,
  url: 'https://example.com/hook',
  events: ['*'],
  active: true,
  created_at: '2026-11-15T09:30:00.000Z',
  consecutive_failures: 0,
  disabled_at: null,
  created_by: { user_id: '0199a1f0-0000-7000-8000-000000000002', name: 'Ana' },
  stop_reason: null,
}
const secret = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='

const withSecret = z
  .object({ webhook: webhookOut, secret: secretOut })
  .meta({ id: 'WebhookWithSecret', description: 'A webhook and its secret, which is shown only now.' })
const oneWebhook = z
  .object({ webhook: webhookOut })
  .meta({ id: 'WebhookResult', description: 'The webhook.' })

export const routes: readonly Route[] = [
  route({
    ...needs,
    name: 'create_webhook',
    method: 'POST',
    path: '/webhooks',
    summary: 'Create a webhook',
    description:
      'Delivers every event from now on at least once, signed with the secret, which is shown only now. A workspace can have ' +
      'at most 10 webhooks.',
    effect: 'local',
    touches: ['webhooks'],
    statuses: [201],
    body: z
      .strictObject({ url: urlIn, events: eventsIn.optional() })
      .meta({ id: 'WebhookRequest', description: 'An address and the types of events to deliver.' }),
    errors: ['webhook_limit_reached'],
    response: withSecret,
    example: { body: { url: webhook.url }, response: { webhook, secret } },
    handle: async (app, tx, { caller, body }) => ({
      status: 201,
      body: await createWebhook(app, tx, actorOf(caller), { ...makerOf(caller), ...body }),
    }),
  }),
  route({
    ...needs,
    name: 'list_webhooks',
    method: 'GET',
    path: '/webhooks',
    summary: 'List webhooks',
    effect: 'read',
    response: z
      .object({ webhooks: z.array(webhookOut).meta({ description: 'Webhooks, oldest first.' }) })
      .meta({ id: 'WebhookList', description: 'All webhooks of the workspace.' }),
    example: { response: { webhooks: [webhook] } },
    handle: async (app, { caller }) => ok({ webhooks: await listWebhooks(app, caller.workspace_id) }),
  }),
  route({
    ...needs,
    name: 'update_webhook',
    method: 'PATCH',
    path: '/webhooks/{webhook_id}',
    summary: 'Update a webhook',
    description:
      'Undelivered events go to the new address. An inactive endpoint keeps its position: once it is active again, ' +
      'Parley delivers the events of the last 30 days. `active: true` and a new `url` reset the failure count to 0.',
    effect: 'local',
    touches: ['webhooks'],
    params: webhookParams,
    body: z
      .strictObject({
        url: urlIn.optional(),
        events: eventsIn.optional(),
        active: z.boolean().optional().meta({ description: 'Whether Parley delivers events to it.' }),
      })
      .meta({
        id: 'WebhookUpdate',
        description: 'The fields to change; at least one.',
        minProperties: 1,
      }),
    errors: ['webhook_not_found'],
    response: oneWebhook,
    example: { params, body: { active: true }, response: { webhook } },
    handle: async (app, tx, { caller, params, body }) =>
      ok({
        webhook: await updateWebhook(app, tx, actorOf(caller), {
          ...makerOf(caller),
          ...keyOf(caller, params),
          ...body,
        }),
      }),
  }),
  route({
    ...needs,
    name: 'delete_webhook',
    method: 'DELETE',
    path: '/webhooks/{webhook_id}',
    summary: 'Delete a webhook',
    description: 'Deletes the webhook and its undelivered events. `GET /events` still returns these events.',
    effect: 'local',
    touches: ['webhooks'],
    params: webhookParams,
    errors: ['webhook_not_found'],
    response: z.object(done).meta({ id: 'DeletedWebhook', description: 'The webhook was deleted.' }),
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
    summary: 'Rotate a webhook secret',
    description: 'Creates a new secret. For 24 hours Parley also signs deliveries with the previous one.',
    effect: 'local',
    touches: ['webhooks'],
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

/** Who uses a key that an operator issued may have webhooks in any role. */
function makerOf({ workspace_id, user_id, via }: Caller) {
  const isDecided = via.kind === 'key' && via.issued_by === 'operator'
  return { workspace_id, user_id, role: isDecided ? undefined : webhookRole }
}
