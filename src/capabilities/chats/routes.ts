import { z } from 'zod'
import type { Gate } from '../../contract.ts'
import { accountId, chatId, chatNumber, cursor, limit } from '../../lib/shapes.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { requireChat } from './chats.ts'
import { describeChat, listChats, readChatCursor } from './read.ts'

const example = {
  account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
  id: 'platform:chat:42',
  name: 'Ines García',
  provider: 'sandbox',
  kind: 'private',
  last_message_text: 'Is the blue one still available?',
  last_message_at: '2026-11-15T09:30:00.000Z',
  unread_count: 1,
}

const chat = z.object({
  account_id: z.string(),
  id: z.string(),
  name: z.string(),
  provider: z.string(),
  kind: z.enum(['private', 'group', 'channel']),
  last_message_text: z.string().nullable(),
  last_message_at: z.string().nullable(),
  unread_count: z.number(),
})

const participant = z.object({
  id: z.string(),
  name: z.string(),
  username: z.string().nullable(),
  kind: z.string(),
})

export const routes: readonly Route[] = [
  route({
    name: 'list_chats',
    method: 'GET',
    path: '/chats',
    summary: 'Chats, newest first',
    description:
      'From the store, without touching the platform. Filters by stage need the gate `pipeline`, filters by column ' +
      'the gate `crm`. Without `account_id` (gate `extended`) the accounts of the workspace are merged.',
    scopes: ['read'],
    account: 'extended',
    effect: 'read',
    query: z
      .object({
        account_id: accountId.optional(),
        cursor,
        limit: limit(100, 50),
        stage_key: z.string().min(1, 'must not be empty').optional(),
        column_id: z.string().min(1, 'must not be empty').optional(),
        column_value: z.string().min(1, 'must not be empty').optional(),
      })
      .refine(({ column_id, column_value }) => (column_id === undefined) === (column_value === undefined), {
        path: ['column_id'],
        message: 'and column_value are given together',
      }),
    variant: ({ query: { stage_key, column_id } }) => ({
      scopes: ['read'],
      gates: [
        ...(stage_key === undefined ? [] : (['pipeline'] satisfies Gate[])),
        ...(column_id === undefined ? [] : (['crm'] satisfies Gate[])),
      ],
    }),
    check: (app, caller, { query }) => void readChatCursor(app, caller, query),
    errors: ['invalid_cursor', 'invalid_stage', 'column_not_found', 'feature_disabled'],
    response: z.object({
      chats: z.array(chat),
      next_cursor: z.string().nullable(),
      has_more: z.boolean(),
    }),
    example: {
      query: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', limit: '50' },
      response: { chats: [example], next_cursor: null, has_more: false },
    },
    handle: async (app, { caller, accounts, query }) =>
      ok(new Json(await listChats(app, caller, accounts, query))),
  }),
  route({
    name: 'get_chat',
    method: 'GET',
    path: '/chats/{chat_id}',
    summary: 'One chat',
    description:
      'With its participants, stage and column values. `stage_key` is null while the gate `pipeline` is closed, ' +
      '`columns` is empty while `crm` is.',
    scopes: ['read'],
    account: 'extended',
    effect: 'read',
    params: z.strictObject({ chat_id: chatId }),
    query: z.object({ account_id: accountId.optional() }),
    errors: ['chat_not_found'],
    response: z.object({
      chat: chat.extend({
        username: z.string().nullable(),
        participants: z.array(participant),
        stage_key: z.string().nullable(),
        columns: z.array(z.object({ column_id: z.string(), value: z.array(z.string()) })),
      }),
    }),
    example: {
      params: { chat_id: 'platform:chat:42' },
      query: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z' },
      response: {
        chat: {
          ...example,
          username: 'ines_garcia',
          participants: [{ id: '42', name: 'Ines García', username: 'ines_garcia', kind: 'person' }],
          stage_key: 'new',
          columns: [{ column_id: '0199a1f0-0000-7000-8000-00000000000a', value: ['Team'] }],
        },
      },
    },
    handle: async (app, { accounts, params }) => {
      const account = await requireChat(app, accounts, { chat_id: params.chat_id, missing: 'chat_not_found' })
      const { gates } = await app.settings.current()
      const extras = { stage: gates.has('pipeline'), columns: gates.has('crm') }
      return ok(new Json(await describeChat(app, account, { chat_id: chatNumber(params.chat_id), extras })))
    },
  }),
]
