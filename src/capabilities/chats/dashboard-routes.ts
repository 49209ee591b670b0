/** The inbox on the dashboard: chats of all accounts of the workspace, whatever their status. */
import { z } from 'zod'
import { accountId, chatId, cursor, limit } from '../../lib/shapes.ts'
import { count, pageEnd, uuid } from '../../lib/wire.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { assignChat, listAssignees } from './assignees.ts'
import { inboxRow, member } from './chat-shapes.ts'
import { columnWithValue, gatesOf } from './filter-shapes.ts'
import { countInbox, listInbox, readInboxPaging, views } from './inbox.ts'
import { chatExample, filter } from './routes.ts'

const example = {
  ...chatExample,
  username: 'ines_garcia',
  last_is_sender: false,
  last_attempt: null,
  suppressed: false,
  asked_to_stop: false,
  stage_key: 'new',
  assignee: { user_id: '0199a1f0-0000-7000-8000-000000000002', name: 'Ana' },
  columns: [{ column_id: '0199a1f0-0000-7000-8000-00000000000a', value: ['Studio'] }],
}

const members = { scopes: [], role: 'member' } as const

const ofAccount = accountId.optional().meta({ description: 'Only chats of this account.' })

const counted = (what: string) => count(`${what}, counted up to 1,000.`)

export const workspaceRoutes: readonly Route[] = [
  route({
    ...members,
    name: 'list_inbox',
    method: 'GET',
    path: '/inbox',
    summary: 'List the chats of the inbox',
    account: 'optional',
    effect: 'read',
    query: z
      .object({
        view: z
          .enum(views)
          .default('all')
          .meta({ description: '`unanswered`: the last message is theirs. `mine`: assigned to the caller.' }),
        account_id: ofAccount,
        stage_key: filter('Only chats in this stage.'),
        column_id: filter('Only chats with `column_value` in this column.'),
        column_value: filter('Value in the column `column_id`.'),
        cursor,
        limit: limit(100, 50),
      })
      .refine(...columnWithValue),
    variant: ({ query }) => ({ ...members, gates: gatesOf(query) }),
    check: (app, caller, { query }) => readInboxPaging(app, caller, query),
    errors: ['not_found', 'invalid_cursor', 'invalid_stage', 'column_not_found', 'feature_disabled'],
    response: z.object({ chats: z.array(inboxRow), ...pageEnd }),
    example: { response: { chats: [example], next_cursor: null, has_more: false } },
    handle: async (app, { caller, accounts, query, checked }) =>
      ok(new Json(await listInbox(app, caller, accounts, { query, paging: checked }))),
  }),
  route({
    ...members,
    name: 'count_inbox',
    method: 'GET',
    path: '/inbox/counts',
    summary: 'Count the chats of each view of the inbox',
    account: 'optional',
    effect: 'read',
    query: z.object({ account_id: ofAccount }),
    errors: ['not_found'],
    response: z.object({
      all: counted('Chats'),
      unread: counted('Chats with unread messages'),
      unanswered: counted('Chats in which they wrote last'),
      mine: counted('Chats assigned to the caller'),
    }),
    example: { response: { all: 1_000, unread: 3, unanswered: 7, mine: 2 } },
    handle: async (app, { caller, accounts }) => ok(await countInbox(app, caller, accounts)),
  }),
  route({
    ...members,
    name: 'list_assignees',
    method: 'GET',
    path: '/assignees',
    summary: 'List the members to whom chats can be assigned',
    effect: 'read',
    response: z.object({ assignees: z.array(member) }),
    example: { response: { assignees: [example.assignee] } },
    handle: async ({ db }, { caller }) => ok({ assignees: await listAssignees(db, caller) }),
  }),
  route({
    ...members,
    name: 'assign_chat',
    method: 'PUT',
    path: '/chats/{chat_id}/assignee',
    summary: 'Assign a chat to a member, or to none',
    account: 'required', // guard: assignments of own accounts
    effect: 'local',
    touches: ['assignees'],
    params: z.strictObject({ chat_id: chatId }),
    body: z.strictObject({
      account_id: accountId,
      user_id: uuid('A member of the workspace; null: none.').nullable(),
    }),
    errors: ['not_found', 'chat_not_found'],
    response: z.object({ assignee: member.nullable() }),
    example: {
      params: { chat_id: 'platform:chat:42' },
      body: { account_id: chatExample.account_id, user_id: example.assignee.user_id },
      response: { assignee: example.assignee },
    },
    handle: async (_, tx, { caller, params, body }) =>
      ok({ assignee: await assignChat(tx, caller, { ...params, ...body }) }),
  }),
]
