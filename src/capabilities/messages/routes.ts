import { z } from 'zod'
import { accountId, chatId, limit } from '../../lib/shapes.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { listMessages, readBefore } from './read.ts'

const attachment = z.object({ file_name: z.string(), media_type: z.string(), size: z.number() })

export const routes: readonly Route[] = [
  route({
    name: 'list_messages',
    method: 'GET',
    path: '/chats/{chat_id}/messages',
    summary: 'Messages of one chat',
    description:
      'Oldest first within the page; `next_before` leads to the next older page. Reading marks nothing read. What ' +
      'the store does not hold yet is fetched from the platform (`source: "platform"`) and kept.',
    scopes: ['read'],
    account: 'extended',
    effect: 'read',
    params: z.strictObject({ chat_id: chatId }),
    query: z.object({
      account_id: accountId.optional(),
      before: z
        .string()
        .refine((value) => readBefore(value) !== undefined, {
          message: 'must be next_before of a page, or an RFC 3339 time',
        })
        .optional()
        .meta({ openapi: { type: 'string', format: 'date-time', description: 'next_before, or any time.' } }),
      limit: limit(100, 30),
    }),
    errors: ['chat_not_found', 'session_unavailable', ['flood_wait', 503]],
    response: z.object({
      messages: z.array(
        z.object({
          id: z.string(),
          text: z.string(),
          is_sender: z.boolean(),
          timestamp: z.string(),
          edited_at: z.string().nullable(),
          attachments: z.array(attachment),
        }),
      ),
      source: z.enum(['store', 'platform']),
      next_before: z.string().nullable(),
      has_more: z.boolean(),
    }),
    example: {
      params: { chat_id: 'platform:chat:42' },
      query: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', limit: '30' },
      response: {
        messages: [
          {
            id: '7',
            text: 'Is the blue one still available?',
            is_sender: false,
            timestamp: '2026-11-15T09:30:00.000Z',
            edited_at: null,
            attachments: [],
          },
        ],
        source: 'store',
        next_before: '2026-11-15T09:30:00.0000000000000000000007Z',
        has_more: true,
      },
    },
    handle: async (app, { accounts, params: { chat_id }, query }) =>
      ok(new Json(await listMessages(app, accounts, { chat_id, query }))),
  }),
]
