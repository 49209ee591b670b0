import { z } from 'zod'
import { accountId, chatId, chatNumber, cursor, limit, scopedAccountId } from '../../lib/shapes.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { describeChat, listChats, readChatPaging } from './chat-pages.ts'
import { chatDetail, chatPage, readStateResult } from './chat-shapes.ts'
import { requireChat } from './chats.ts'
import { columnWithValue, gatesOf } from './filter-shapes.ts'
import { setReadState, wantReadState } from './read-state.ts'

export const chatExample = {
  account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
  id: 'platform:chat:42',
  name: 'Ines García',
  provider: 'sandbox',
  kind: 'private',
  last_message_text: 'Is the blue one still available?',
  last_message_at: '2026-11-15T09:30:00.000Z',
  unread_count: 1,
}

export const filter = (description: string) =>
  z.string().min(1, 'must not be empty').optional().meta({ description })

export const routes: readonly Route[] = [
  route({
    name: 'list_chats',
    method: 'GET',
    path: '/chats',
    summary: 'List chats',
    description:
      'Returns stored chats, newest first, without a request to the platform. Filters by stage need the gate `pipeline`, filters by column ' +
      'the gate `crm`. Without `account_id` (gate `extended`) the list merges the chats of all accounts of the workspace.',
    scopes: ['read'],
    account: 'extended',
    effect: 'read',
    query: z
      .object({
        account_id: scopedAccountId,
        cursor,
        limit: limit(100, 50),
        stage_key: filter(
          'Only chats in this stage: a key from `GET /pipeline`. Chats that were never moved are in `new`.',
        ),
        column_id: filter(
          'Only chats with `column_value` in this column: an id from `GET /columns`. Requires `column_value`.',
        ),
        column_value: filter(
          'Value in the column `column_id`: one option, or the whole value. Requires `column_id`.',
        ),
      })
      .refine(...columnWithValue),
    variant: ({ query }) => ({ scopes: ['read'], gates: gatesOf(query) }),
    check: (app, caller, { query }) => readChatPaging(app, caller, query),
    errors: ['invalid_cursor', 'invalid_stage', 'column_not_found', 'feature_disabled'],
    response: chatPage,
    example: {
      query: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', limit: '50' },
      response: { chats: [chatExample], next_cursor: null, has_more: false },
    },
    handle: async (app, { caller, accounts, query, checked }) =>
      ok(new Json(await listChats(app, caller, accounts, { query, paging: checked }))),
  }),
  route({
    name: 'get_chat',
    method: 'GET',
    path: '/chats/{chat_id}',
    summary: 'Get a chat',
    description:
      'Returns a chat with its participants, stage and column values. `stage_key` is null while the gate `pipeline` is closed, ' +
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
          ...chatExample,
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
    name: 'set_read_state',
    method: 'POST',
    path: '/chats/{chat_id}/read-state',
    summary: 'Mark a chat read or unread',
    description:
      'Changes the read state on the platform, where the other side may see it. No other operation changes it.',
    scopes: ['write'],
    idempotency: 'required',
    account: 'required',
    effect: 'platform',
    touches: ['chats', 'operations'],
    collision: 409,
    flood: 429,
    account_limits: ({ config }) => [{ limit: config.read_state_minute, seconds: 60 }],
    params: z.strictObject({ chat_id: chatId }),
    body: z
      .strictObject({
        account_id: accountId,
        unread: z.boolean().meta({ description: 'True marks the chat unread, false read.' }),
      })
      .meta({ id: 'ReadStateRequest', description: 'The new read state of a chat.' }),
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
