/** The client that hey-api generates. */
import {
  createBroadcast,
  createCampaign,
  createWebhook,
  erasePerson,
  moveChat,
  previewCampaign,
  resendFailedDeliveries,
  searchMessages,
  sendMessage,
  setColumn,
  setReadState,
  startChat,
  updateWebhook,
} from '../generated/hey-api'
import { client } from '../generated/hey-api/client.gen'
import type { Calls, Given } from './given.ts'

export function prepare({ base_url, key }: Pick<Given, 'base_url' | 'key'>): void {
  client.setConfig({ baseUrl: base_url, auth: key })
}

const keyed = ({ newKey }: Given) => ({ 'Idempotency-Key': newKey() })
const statusOf = async (answer: Promise<{ response?: Response }>) => (await answer).response?.status ?? 0

export const calls: Calls = {
  start_chat: (given) =>
    statusOf(
      startChat({
        headers: keyed(given),
        body: { account_id: given.account_id, identifier: given.username },
      }),
    ),
  set_read_state: (given) =>
    statusOf(
      setReadState({
        path: { chat_id: given.chat_id },
        headers: keyed(given),
        body: { account_id: given.account_id, unread: true },
      }),
    ),
  send_message: (given) =>
    statusOf(
      sendMessage({
        headers: keyed(given),
        body: { account_id: given.account_id, chat_id: given.chat_id, text: 'Hello' },
      }),
    ),
  search_messages: () => statusOf(searchMessages({ body: { query: 'hello' } })),
  move_chat: ({ account_id, chat_id, stage_key }) =>
    statusOf(moveChat({ body: { account_id, chat_id, stage_key } })),
  set_column: ({ account_id, chat_id, column_id, column_value }) =>
    statusOf(setColumn({ body: { account_id, chat_id, column_id, value: [column_value] } })),
  create_campaign: (given) =>
    statusOf(
      createCampaign({
        headers: keyed(given),
        body: {
          message_text: 'Hello',
          recipients: [{ account_id: given.account_id, chat_id: given.recipient }],
        },
      }),
    ),
  preview_campaign: ({ account_id, recipient: chat_id }) =>
    statusOf(previewCampaign({ body: { message_text: 'Hello', recipients: [{ account_id, chat_id }] } })),
  'create_campaign of contacts': (given) =>
    statusOf(
      createCampaign({
        headers: keyed(given),
        body: {
          message_text: 'Hello',
          account_id: given.account_id,
          contacts: [{ identifier: given.stranger }],
        },
      }),
    ),
  'preview_campaign of contacts': ({ account_id, stranger: identifier }) =>
    statusOf(previewCampaign({ body: { message_text: 'Hello', account_id, contacts: [{ identifier }] } })),
  create_broadcast: ({ account_id, stage_key }) =>
    statusOf(
      createBroadcast({
        body: { account_id, audience_type: 'stage', audience_ref: stage_key, message_text: 'Hello' },
      }),
    ),
  erase_person: async (given) => {
    const { person_id, preview } = await given.findErasable()
    return statusOf(erasePerson({ path: { person_id }, headers: keyed(given), body: { preview } }))
  },
  create_webhook: () => statusOf(createWebhook({ body: { url: 'https://example.com/hook' } })),
  update_webhook: ({ webhook_id }) =>
    statusOf(updateWebhook({ path: { webhook_id }, body: { active: false } })),
  resend_failed_deliveries: ({ webhook_id }) =>
    statusOf(resendFailedDeliveries({ path: { webhook_id }, body: { since: '2026-11-16T09:00:00Z' } })),
}
