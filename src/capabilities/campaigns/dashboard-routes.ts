/** Campaigns on the dashboard, besides the contract's routes: what only people read. */
import { z } from 'zod'
import { accountId, chatId, cursor, limit } from '../../lib/shapes.ts'
import { count, momentOrNull, pageEnd, said } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { campaignOut, creatorOut, recipientOut, recipientStatuses } from './campaign-shapes.ts'
import { listChatCampaigns } from './chat-campaigns.ts'
import { params } from './control-routes.ts'
import { example } from './examples.ts'
import { listProgress } from './progress.ts'
import { listCampaignRecipients } from './recipient-page.ts'

const optedOut = z
  .boolean()
  .meta({ description: 'Whether the reply asks to stop: then `replied` is no success.' })

const explainedOut = z
  .object({
    ...recipientOut.shape,
    opted_out: optedOut,
    sentence: said('Why it gets no message now, or how it ended, with the account and the time.'),
  })
  .meta({ id: 'ExplainedRecipient', description: 'A recipient of a campaign, and why it is where it is.' })

const progressOut = z
  .object({
    ...campaignOut.pick({
      id: true,
      name: true,
      status: true,
      kind: true,
      pause_reason: true,
      created_at: true,
      scheduled_at: true,
      started_at: true,
      completed_at: true,
      cancelled_at: true,
      totals: true,
    }).shape,
    opt_outs: count('Of the recipients who replied, those who asked to stop.'),
    created_by: creatorOut,
    next: z
      .object({
        at: momentOrNull('Earliest time of the next message; null if a person has to act first.'),
        sentence: said('Why it is not sent now, with the account and the time.'),
      })
      .nullable()
      .meta({ id: 'NextMessage', description: 'The next message; null if none waits.' }),
  })
  .meta({ id: 'CampaignProgress', description: 'A campaign, how far it is, and its next message.' })

const chatCampaign = z
  .object({
    ...campaignOut.pick({ id: true, name: true, status: true }).shape,
    recipient: z
      .object({
        ...recipientOut.pick({ status: true, step: true, next_action_at: true }).shape,
        opted_out: optedOut,
      })
      .meta({ description: 'How far the campaign is with this person.' }),
  })
  .meta({ id: 'ChatCampaign' })

const reading = {
  scopes: [],
  role: 'admin',
  gates: ['campaigns'],
  allowlists: ['campaign_user'],
} as const

const creator = { user_id: '0199a1f0-0000-7000-8000-000000000002', name: 'Ana' }

export const workspaceRoutes: readonly Route[] = [
  route({
    ...reading,
    name: 'list_campaign_progress',
    method: 'GET',
    path: '/campaign_progress',
    summary: 'List the campaigns with their progress and their next message',
    effect: 'read',
    costly: true,
    query: z.object({ cursor, limit: limit(50, 20) }),
    errors: ['invalid_cursor'],
    response: z.object({
      campaigns: z.array(progressOut).meta({ description: 'Campaigns, newest first.' }),
      ...pageEnd,
    }),
    example: {
      response: {
        campaigns: [
          {
            ...example.progress,
            opt_outs: 0,
            created_by: creator,
            next: {
              at: '2026-11-15T09:31:00.000Z',
              sentence: 'Sales pauses between two messages. Sun 09:31 Berlin time',
            },
          },
        ],
        next_cursor: null,
        has_more: false,
      },
    },
    handle: async (app, { caller, query }) => ok(await listProgress(app, caller, query)),
  }),
  route({
    ...reading,
    name: 'list_recipients',
    method: 'GET',
    path: '/campaigns/{campaign_id}/recipients',
    summary: 'List the recipients of a campaign, each with why it gets no message now',
    effect: 'read',
    costly: true,
    params,
    malformed: 'campaign_not_found',
    query: z.object({
      status: z.enum(recipientStatuses).optional().meta({ description: 'Only recipients with this status.' }),
      name: z
        .string()
        .min(1)
        .max(100)
        .optional()
        .meta({ description: 'Only recipients whose name, username or identifier contains this.' }),
      cursor,
      limit: limit(200, 50),
    }),
    errors: ['campaign_not_found', 'invalid_cursor'],
    response: z.object({
      created_by: creatorOut,
      recipients: z.array(explainedOut).meta({ description: 'In the order of the campaign.' }),
      ...pageEnd,
    }),
    example: {
      params: { campaign_id: example.campaign.id },
      response: {
        created_by: creator,
        recipients: [
          {
            ...example.detail.campaign.recipients[0],
            opted_out: false,
            sentence: 'Sales pauses between two messages. Sun 09:30 Berlin time',
          },
        ],
        next_cursor: null,
        has_more: false,
      },
    },
    handle: async (app, { caller, params: { campaign_id: id }, query }) =>
      ok(await listCampaignRecipients(app, caller, { id, query })),
  }),
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
            recipient: {
              status: 'waiting',
              step: 1,
              opted_out: false,
              next_action_at: '2026-11-17T09:00:00.000Z',
            },
          },
        ],
      },
    },
    handle: async (app, { caller, params: { chat_id }, query: { account_id } }) =>
      ok({ campaigns: await listChatCampaigns(app, caller, { account_id, chat_id }) }),
  }),
]
