/** Types of openapi-typescript, with the client of its authors. */
import createClient from 'openapi-fetch'
import type { paths } from '../api.ts'
import type { Calls, Given } from './given.ts'

const clientOf = ({ base_url, key }: Given) =>
  createClient<paths>({ baseUrl: base_url, headers: { authorization: `Bearer ${key}` } })
const keyed = ({ newKey }: Given) => ({ header: { 'Idempotency-Key': newKey() } })
const statusOf = async (answer: Promise<{ response: Response }>) => (await answer).response.status

export const calls: Calls = {
  start_chat: (given) =>
    statusOf(
      clientOf(given).POST('/chats/start', {
        params: keyed(given),
        body: { account_id: given.account_id, identifier: given.username },
      }),
    ),
  set_read_state: (given) =>
    statusOf(
      clientOf(given).POST('/chats/{chat_id}/read-state', {
        params: { path: { chat_id: given.chat_id }, ...keyed(given) },
        body: { account_id: given.account_id, unread: true },
      }),
    ),
  send_message: (given) =>
    statusOf(
      clientOf(given).POST('/messages', {
        params: keyed(given),
        body: { account_id: given.account_id, chat_id: given.chat_id, text: 'Hello' },
      }),
    ),
  search_messages: (given) => statusOf(clientOf(given).POST('/search', { body: { query: 'hello' } })),
  move_chat: (given) =>
    statusOf(
      clientOf(given).POST('/pipeline/move', {
        body: { account_id: given.account_id, chat_id: given.chat_id, stage_key: given.stage_key },
      }),
    ),
  set_column: (given) =>
    statusOf(
      clientOf(given).POST('/columns/set', {
        body: {
          account_id: given.account_id,
          chat_id: given.chat_id,
          column_id: given.column_id,
          value: [given.column_value],
        },
      }),
    ),
  create_campaign: (given) =>
    statusOf(
      clientOf(given).POST('/campaigns', {
        params: keyed(given),
        body: {
          message_text: 'Hello',
          recipients: [{ account_id: given.account_id, chat_id: given.recipient }],
        },
      }),
    ),
  preview_campaign: (given) =>
    statusOf(
      clientOf(given).POST('/campaigns/preview', {
        body: {
          message_text: 'Hello',
          recipients: [{ account_id: given.account_id, chat_id: given.recipient }],
        },
      }),
    ),
  'create_campaign of contacts': (given) =>
    statusOf(
      clientOf(given).POST('/campaigns', {
        params: keyed(given),
        body: {
          message_text: 'Hello',
          account_id: given.account_id,
          contacts: [{ identifier: given.stranger }],
        },
      }),
    ),
  'preview_campaign of contacts': (given) =>
    statusOf(
      clientOf(given).POST('/campaigns/preview', {
        body: {
          message_text: 'Hello',
          account_id: given.account_id,
          contacts: [{ identifier: given.stranger }],
        },
      }),
    ),
  create_broadcast: (given) =>
    statusOf(
      clientOf(given).POST('/broadcast', {
        body: {
          account_id: given.account_id,
          audience_type: 'stage',
          audience_ref: given.stage_key,
          message_text: 'Hello',
        },
      }),
    ),
  erase_person: async (given) => {
    const { person_id, preview } = await given.findErasable()
    return statusOf(
      clientOf(given).POST('/people/{person_id}/erase', {
        params: { path: { person_id }, ...keyed(given) },
        body: { preview },
      }),
    )
  },
  create_webhook: (given) =>
    statusOf(clientOf(given).POST('/webhooks', { body: { url: 'https://example.com/hook' } })),
  update_webhook: (given) =>
    statusOf(
      clientOf(given).PATCH('/webhooks/{webhook_id}', {
        params: { path: { webhook_id: given.webhook_id } },
        body: { active: false },
      }),
    ),
  resend_failed_deliveries: (given) =>
    statusOf(
      clientOf(given).POST('/webhooks/{webhook_id}/resend-failed', {
        params: { path: { webhook_id: given.webhook_id } },
        body: { since: '2026-11-16T09:00:00Z' },
      }),
    ),
}
