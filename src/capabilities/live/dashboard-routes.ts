/** The live stream of a user's pages. */
import { z } from 'zod'
import { uuid } from '../../lib/wire.ts'
import { markKinds, presenceStates } from '../../mark.ts'
import { ok, ownRoute, type Route } from '../../route.ts'
import { openStream } from './live.ts'

const mark = z.object({
  workspace_id: uuid('The workspace that it concerns; null for the whole instance.').nullable(),
  kind: z.enum(markKinds).meta({ description: 'What changed.' }),
  account_id: z.string().optional().meta({ description: 'Only this account.' }),
  chat_id: z.string().optional().meta({ description: 'Only this chat.' }),
  user_id: uuid('Whose it is; with the kind `presence`, who is there.').optional(),
  state: z.enum(presenceStates).optional().meta({ description: 'With the kind `presence`.' }),
})

const workspace_id = '0199a1f0-0000-7000-8000-000000000001'

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
