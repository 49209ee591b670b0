/** What the inbox shows of campaigns: every member sees in which ones the person of a chat is. */
import { z } from 'zod'
import { accountId, chatId } from '../../lib/shapes.ts'
import { ok, type Route, route } from '../../route.ts'
import { campaignOut, recipientOut } from './campaign-shapes.ts'
import { listChatCampaigns } from './chat-campaigns.ts'

const chatCampaign = z
  .object({
    ...campaignOut.pick({ id: true, name: true, status: true }).shape,
    recipient: z
      .object(recipientOut.pick({ status: true, step: true, next_action_at: true }).shape)
      .meta({ description: 'How far the campaign is with this person.' }),
  })
  .meta({ id: 'ChatCampaign' })

export const workspaceRoutes: readonly Route[] = [
  route({
    scopes: [],
    role: 'member',
    name: 'list_chat_campaigns',
    method: 'GET',
    path: '/chats/{chat_id}/campaigns',
    summary: 'List the campaigns that write to the person of a chat',
    account: 'required',
    effect: 'read',
    params: z.strictObject({ chat_id: chatId }),
    query: z.object({ account_id: accountId }),
    errors: ['not_found', 'chat_not_found'],
    response: z.object({
      campaigns: z
        .array(chatCampaign)
        .meta({ description: 'Those under way first, then the newest; at most 20.' }),
    }),
    example: {
      params: { chat_id: 'platform:chat:42' },
      query: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z' },
      response: {
        campaigns: [
          {
            id: '0199a1f0-0000-7000-8000-000000000009',
            name: 'Autumn lamps',
            status: 'sending',
            recipient: { status: 'waiting', step: 1, next_action_at: '2026-11-17T09:00:00.000Z' },
          },
        ],
      },
    },
    handle: async (app, { caller, params: { chat_id }, query: { account_id } }) =>
      ok({ campaigns: await listChatCampaigns(app, caller, { account_id, chat_id }) }),
  }),
]
