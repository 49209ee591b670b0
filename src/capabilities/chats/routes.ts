import { z } from 'zod'
import type { Gate } from '../../contract.ts'
import { accountId, chatId, chatNumber, cursor, limit, scopedAccountId, text } from '../../lib/shapes.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { startChatText, wantText } from '../messages/send.ts'
import { describeChat, listChats, readChatPaging } from './chat-pages.ts'
import { chatDetail, chatPage, readStateResult, started } from './chat-shapes.ts'
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

const filter = (description: string) =>
  z.string().min(1, 'must not be empty').optional().meta({ description })

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
        account_id: scopedAccountId,
        cursor,
        limit: limit(100, 50),
        stage_key: filter(
          'Only chats in this stage, a key of `GET /pipeline`. Chats that were never moved are in `new`.',
        ),
        column_id: filter(
          'Only chats with `column_value` in this column, an id of `GET /columns`; required with it.',
        ),
        column_value: filter(
          'What they have in the column `column_id`, which is required with it: one option, or the whole value.',
        ),
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
    response: chatPage,
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
    query: z.object({ account_id: scopedAccountId }),
    errors: ['chat_not_found'],
    response: chatDetail,
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
    body: z
      .strictObject({
        account_id: accountId,
        identifier: z
          .string()
          .min(1, 'must not be empty')
          .max(256, 'must have at most 256 characters')
          .meta({ description: 'Who is meant: a username, an @username, or a link to one.' }),
        provider: z
          .string()
          .min(1, 'must not be empty')
          .max(50, 'must have at most 50 characters')
          .optional()
          .meta({ description: "The account's platform; there is no other way to reach people from it." }),
        text: text(4096).optional().meta({ description: 'Sent as the first message.' }),
      })
      .meta({ id: 'StartChatRequest', description: 'Whom to open a chat with.' }),
    check: requireStartable,
    errors: [
      'invalid_username',
      'unsupported_identifier',
      'username_not_found',
      'identity_suppressed',
      'identity_ineligible',
      'suppression_unavailable',
      'chat_unavailable',
      'blocked_by_person',
      'privacy_restricted',
      'cold_stopped',
      'message_refused',
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
    body: z
      .strictObject({
        account_id: accountId,
        unread: z.boolean().meta({ description: 'True marks it unread, false read.' }),
      })
      .meta({ id: 'ReadStateRequest', description: 'How a chat is marked.' }),
    errors: ['chat_unavailable'],
    response: readStateResult,
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
