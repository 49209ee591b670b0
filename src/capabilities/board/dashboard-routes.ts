/** The board on the dashboard. */
import { z } from 'zod'
import { accountId } from '../../lib/shapes.ts'
import { count, said, stageKeyOut } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { columnWithValue, gatesOf, inboxRow } from '../chats/chats.ts'
import { readBoard } from './board.ts'

const members = { scopes: [], role: 'member' } as const
const filter = (description: string) => z.string().min(1).max(4_096).optional().meta({ description })

const stage = z
  .object({
    key: stageKeyOut,
    label: said('Label of the stage.'),
    color: z.string().nullable().meta({ description: 'Its colour; null if none was chosen.' }),
    terminal: z.boolean().meta({ description: 'Whether a chat in it is finished.' }),
    hidden: z.boolean().meta({ description: 'Whether chats can no longer be moved to it.' }),
    count: count('Chats in it, counted up to 1,000.'),
    chats: z.array(inboxRow).meta({ description: 'Its newest 20 chats; more through `GET /inbox`.' }),
  })
  .meta({ id: 'BoardStage', description: 'A stage of the pipeline with its newest chats.' })

export const workspaceRoutes: readonly Route[] = [
  route({
    ...members,
    gates: ['pipeline'],
    name: 'get_board',
    method: 'GET',
    path: '/board',
    summary: 'The stages of the pipeline, each with its newest chats',
    account: 'optional',
    effect: 'read',
    costly: true,
    query: z
      .object({
        account_id: accountId.optional().meta({ description: 'Only chats of this account.' }),
        column_id: filter('Only chats with `column_value` in this column.'),
        column_value: filter('Value in the column `column_id`.'),
      })
      .refine(...columnWithValue),
    variant: ({ query }) => ({ ...members, gates: ['pipeline', ...gatesOf(query)] }),
    errors: ['not_found', 'column_not_found', 'feature_disabled'],
    response: z.object({ stages: z.array(stage).meta({ description: 'In the order of the pipeline.' }) }),
    example: {
      response: {
        stages: [
          { key: 'new', label: 'New', color: null, terminal: false, hidden: false, count: 0, chats: [] },
          { key: 'won', label: 'Won', color: 'green', terminal: true, hidden: false, count: 0, chats: [] },
        ],
      },
    },
    handle: async (app, { caller, accounts, query }) =>
      ok({ stages: await readBoard(app, caller, accounts, query) }),
  }),
]
