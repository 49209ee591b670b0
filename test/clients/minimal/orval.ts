/** The client that orval generates: functions on axios, whose address and headers its users set themselves. */
import axios from 'axios'
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
} from '../generated/orval'
import type { Calls, Given } from './given.ts'

export function prepare({ base_url, key }: Pick<Given, 'base_url' | 'key'>): void {
  axios.defaults.baseURL = base_url
  axios.defaults.headers.common.Authorization = `Bearer ${key}`
}

const keyed = ({ newKey }: Given) => ({ headers: { 'Idempotency-Key': newKey() } })
const statusOf = async (answer: Promise<{ status: number }>) => (await answer).status

export const calls: Calls = {
  start_chat: (given) =>
    statusOf(startChat({ account_id: given.account_id, identifier: given.username }, keyed(given))),
  set_read_state: (given) =>
    statusOf(setReadState(given.chat_id, { account_id: given.account_id, unread: true }, keyed(given))),
  send_message: (given) =>
    statusOf(
      sendMessage({ account_id: given.account_id, chat_id: given.chat_id, text: 'Hello' }, keyed(given)),
    ),
  search_messages: () => statusOf(searchMessages({ query: 'hello' })),
  move_chat: ({ account_id, chat_id, stage_key }) => statusOf(moveChat({ account_id, chat_id, stage_key })),
  set_column: ({ account_id, chat_id, column_id, column_value }) =>
    statusOf(setColumn({ account_id, chat_id, column_id, value: [column_value] })),
  create_campaign: (given) =>
    statusOf(
      createCampaign(
        {
          message_text: 'Hello',
          recipients: [{ account_id: given.account_id, chat_id: given.recipient }],
        },
        keyed(given),
      ),
    ),
  preview_campaign: ({ account_id, recipient: chat_id }) =>
    statusOf(previewCampaign({ message_text: 'Hello', recipients: [{ account_id, chat_id }] })),
  'create_campaign of contacts': (given) =>
    statusOf(
      createCampaign(
        {
          message_text: 'Hello',
          account_id: given.account_id,
          contacts: [{ identifier: given.stranger }],
        },
        keyed(given),
      ),
    ),
  'preview_campaign of contacts': ({ account_id, stranger: identifier }) =>
    statusOf(previewCampaign({ message_text: 'Hello', account_id, contacts: [{ identifier }] })),
  create_broadcast: ({ account_id, stage_key }) =>
    statusOf(
      createBroadcast({
        account_id,
        audience_type: 'stage',
        audience_ref: stage_key,
        message_text: 'Hello',
      }),
    ),
  erase_person: async (given) => {
    const { person_id, preview } = await given.findErasable()
    return statusOf(erasePerson(person_id, { preview }, keyed(given)))
  },
  create_webhook: () => statusOf(createWebhook({ url: 'https://example.com/hook' })),
  update_webhook: ({ webhook_id }) => statusOf(updateWebhook(webhook_id, { active: false })),
  resend_failed_deliveries: ({ webhook_id }) =>
    statusOf(resendFailedDeliveries(webhook_id, { since: '2026-11-16T09:00:00Z' })),
}
