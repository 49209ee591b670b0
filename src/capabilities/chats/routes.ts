import { z } from 'zod'
import type { Gate } from '../../contract.ts'
import { accountId, chatId, chatNumber, cursor, limit, pageEnd, text } from '../../lib/shapes.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { startChatText, wantText } from '../messages/send.ts'
import { describeChat, listChats, readChatPaging } from './chat-pages.ts'
import { requireChat } from './chats.ts'
import { setReadState, wantReadState } from './read-state.ts'
import { isExtended, requireStartable, startChat, wantChat } from './start.ts'

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

const started = z.object({
  chat: z.object({
    id: z.string(),
    account_id: z.string(),
    name: z.string(),
    username: z.string().nullable(),
  }),
  created: z.boolean(),
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
    check: (app, caller, { query }) => readChatPaging(app, caller, query),
    errors: ['invalid_cursor', 'invalid_stage', 'column_not_found', 'feature_disabled'],
    response: z.object({
      chats: z.array(chat),
      ...pageEnd,
    }),
    example: {
      query: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', limit: '50' },
      response: { chats: [example], next_cursor: null, has_more: false },
    },
    handle: async (app, { caller, accounts, query, checked }) =>
      ok(new Json(await listChats(app, caller, accounts, { query, paging: checked }))),
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
  route({
    name: 'start_chat',
    method: 'POST',
    path: '/chats/start',
    summary: 'Opens a private chat by username',
    description:
      'Looks the username up on the platform and opens the chat; nothing is sent. `identifier` is a username, an ' +
      '@username, or a link such as t.me/name or tg://resolve?domain=name. With the gate `extended` also a phone number ' +
      'or a provider id, and `text` is sent as the first message.',
    scopes: ['send'],
    gates: ['start_chat'],
    idempotency: 'required',
    account: 'required',
    effect: 'platform',
    flood: 429,
    account_limits: ({ config }) => [
      { limit: config.start_chat_minute, seconds: 60 },
      { limit: config.start_chat_day, seconds: 86_400 },
    ],
    variant: ({ body }) => ({
      scopes: ['send'],
      gates: ['start_chat'],
      idempotency: isExtended(body) ? 'optional' : 'required',
    }),
    body: z.strictObject({
      account_id: accountId,
      identifier: z.string().min(1, 'must not be empty').max(256, 'must have at most 256 characters'),
      provider: z.string().min(1, 'must not be empty').max(50, 'must have at most 50 characters').optional(),
      text: text(4096).optional(),
    }),
    check: requireStartable,
    errors: [
      'invalid_username',
      'unsupported_identifier',
      'username_not_found',
      'identity_suppressed',
      'identity_ineligible',
      'session_unavailable',
      'provider_unavailable',
      'suppression_unavailable',
      'flood_wait',
    ],
    response: started,
    example: {
      body: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', identifier: '@ines_garcia' },
      response: {
        chat: {
          id: 'platform:chat:42',
          account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
          name: 'Ines García',
          username: 'ines_garcia',
        },
        created: true,
      },
    },
    operation: startChat,
    handle: wantChat,
    followed_by: {
      operation: startChatText,
      wanted: (body) => body.text !== undefined,
      next: ({ body }, reply) => {
        const { chat: opened } = started.parse(reply)
        return wantText(body.account_id, chatId.parse(opened.id), body.text ?? '')
      },
    },
  }),
  route({
    name: 'set_read_state',
    method: 'POST',
    path: '/chats/{chat_id}/read-state',
    summary: 'Marks a chat read or unread',
    description:
      'The only operation that changes what is read: on the platform, where the other side may see it.',
    scopes: ['write'],
    idempotency: 'required',
    account: 'required',
    effect: 'platform',
    collision: 409,
    flood: 429,
    account_limits: ({ config }) => [{ limit: config.read_state_minute, seconds: 60 }],
    params: z.strictObject({ chat_id: chatId }),
    body: z.strictObject({ account_id: accountId, unread: z.boolean() }),
    errors: ['chat_unavailable', 'session_unavailable', 'provider_unavailable', 'flood_wait'],
    response: z.object({
      ok: z.literal(true),
      message: z.string(),
      account_id: z.string(),
      chat_id: z.string(),
      unread: z.boolean(),
    }),
    example: {
      params: { chat_id: 'platform:chat:42' },
      body: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', unread: false },
      response: {
        ok: true,
        message: 'The chat is marked read.',
        account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
        chat_id: 'platform:chat:42',
        unread: false,
      },
    },
    operation: setReadState,
    handle: (app, { accounts, params: { chat_id }, body: { unread } }) =>
      wantReadState(app, accounts, { chat_id, unread }),
  }),
]
