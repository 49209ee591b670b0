/** The live stream of a user's pages, and who else is in a chat. */
import { z } from 'zod'
import { accountId, chatId } from '../../lib/shapes.ts'
import { said, uuid } from '../../lib/wire.ts'
import { markKinds, presenceStates } from '../../mark.ts'
import { ok, ownRoute, type Route, route } from '../../route.ts'
import { requireChat } from '../chats/chats.ts'
import { openStream, presenceOf } from './live.ts'

const mark = z.object({
  workspace_id: uuid('The workspace that it concerns; null for the whole instance.').nullable(),
  kind: z.enum(markKinds).meta({ description: 'What changed.' }),
  account_id: z.string().optional().meta({ description: 'Only this account.' }),
  chat_id: z.string().optional().meta({ description: 'Only this chat.' }),
  user_id: uuid('Whose it is; with the kind `presence`, who is there.').optional(),
  state: z.enum(presenceStates).optional().meta({ description: 'With the kind `presence`.' }),
})

const workspace_id = '0199a1f0-0000-7000-8000-000000000001'

const user_id = '0199a1f0-0000-7000-8000-000000000002'

export const workspaceRoutes: readonly Route[] = [
  route({
    name: 'visit_chat',
    method: 'POST',
    path: '/chats/{chat_id}/presence',
    summary: 'Say that you have a chat open, type in it or have left it',
    description: 'Kept for 30 seconds. Returns who else is there.',
    scopes: [],
    role: 'member',
    account: 'required',
    effect: 'read',
    params: z.strictObject({ chat_id: chatId }),
    body: z.strictObject({ account_id: accountId, state: z.enum(presenceStates) }),
    errors: ['not_found', 'chat_not_found'],
    response: z.object({
      others: z.array(
        z.object({
          user_id: uuid('Id of the user.'),
          name: said('Name of the user.'),
          state: z.enum(['open', 'typing']).meta({ description: 'What they are doing there.' }),
        }),
      ),
    }),
    example: {
      params: { chat_id: 'platform:chat:42' },
      body: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', state: 'open' },
      response: { others: [{ user_id, name: 'Ana', state: 'typing' }] },
    },
    handle: async (app, { caller, accounts, params: { chat_id }, body: { state } }) => {
      const { id: account_id } = await requireChat(app, accounts, { chat_id, missing: 'chat_not_found' })
      const place = { workspace_id: caller.workspace_id, account_id, chat_id }
      return ok({ others: await presenceOf(app).visit(caller, place, state) })
    },
  }),
]

export const ownRoutes: readonly Route[] = [
  ownRoute({
    name: 'open_stream',
    method: 'GET',
    path: '/stream',
    summary: 'Open the stream of changes',
    description:
      'Server-sent events named `marks`, each a list that says where something changed, never what.',
    scopes: [],
    effect: 'read',
    live: true,
    errors: ['stream_unavailable'],
    response: z.array(mark),
    example: { response: [{ workspace_id, kind: 'messages', chat_id: 'platform:chat:42' }] },
    handle: async (app, { caller }) => ok(await openStream(app, caller)),
  }),
]
