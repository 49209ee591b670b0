/** Broadcasts on the dashboard: all of them, and whom the next one would reach. */
import { z } from 'zod'
import { readPaging } from '../../lib/cursor.ts'
import { accountId, cursor, limit } from '../../lib/shapes.ts'
import { accountIdOut, chatIdOut, count, pageEnd, said } from '../../lib/wire.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { creatorOut, listBroadcasts } from '../campaigns/campaigns.ts'
import { columnWithValue, gatesOf } from '../chats/chats.ts'
import { describeAudience, leftOutReasons, readAudiencePaging } from './audience.ts'
import { broadcastFacts, example, totals } from './routes.ts'

const members = { scopes: [], role: 'member' } as const
const filter = (description: string) => z.string().min(1).max(4_096).optional().meta({ description })

const broadcastOut = z
  .object({
    ...broadcastFacts,
    created_by: creatorOut,
  })
  .meta({ id: 'BroadcastRow', description: 'A broadcast, its recipients counted by status.' })

const personOut = z
  .object({
    account_id: accountIdOut,
    chat_id: chatIdOut,
    name: said('Name of the chat; may be empty.'),
    username: z.string().nullable().meta({ description: 'Username; null if there is none.' }),
    reason: z
      .enum(leftOutReasons)
      .nullable()
      .meta({ description: 'Why they get no message; null if they do.' }),
    sentence: z.string().nullable().meta({ description: 'The reason as a sentence.' }),
  })
  .meta({ id: 'AudiencePerson', description: 'A chat of an audience, and why it would be left out.' })

const audience = z.object({
  counts: z.object({
    chats: count('Chats in the audience, counted up to 1,000.'),
    can_receive: count('Of these, those that can receive a message.'),
    left_out: z
      .object(
        Object.fromEntries(leftOutReasons.map((reason) => [reason, count(`Left out: ${reason}.`)])) as Record<
          (typeof leftOutReasons)[number],
          ReturnType<typeof count>
        >,
      )
      .meta({ description: 'The others by reason.' }),
  }),
  broadcast: z
    .object({
      max: count('Maximum number of recipients of one broadcast.'),
      recipients: count('How many a broadcast to this audience would have now.'),
      capped: z.boolean().meta({ description: 'Whether the audience is larger than that.' }),
    })
    .nullable()
    .meta({
      description: 'Null unless one account and either a stage that is not hidden or a column is named.',
    }),
  people: z.array(personOut).meta({ description: 'Most recent chat first, those left out too.' }),
  ...pageEnd,
})

export const workspaceRoutes: readonly Route[] = [
  route({
    scopes: [],
    role: 'admin',
    gates: ['broadcast'],
    name: 'list_broadcasts',
    method: 'GET',
    path: '/broadcasts',
    summary: 'List broadcasts',
    effect: 'read',
    query: z.object({ cursor, limit: limit(100, 50) }),
    check: (app, { workspace_id }, { query }) =>
      readPaging(app.secrets, { workspace_id, operation: 'list_broadcasts', filters: {} }, query.cursor),
    errors: ['invalid_cursor'],
    response: z.object({
      broadcasts: z.array(broadcastOut).meta({ description: 'Newest first.' }),
      ...pageEnd,
    }),
    example: {
      response: {
        broadcasts: [
          {
            ...example,
            status: 'completed',
            message_text: 'Hello {{name|there}}, we are closed on Friday.',
            created_at: '2026-11-15T09:30:00.000Z',
            started_at: '2026-11-15T09:30:00.100Z',
            completed_at: '2026-11-15T09:30:15.200Z',
            totals,
            created_by: { user_id: '0199a1f0-0000-7000-8000-000000000002', name: 'Ana' },
          },
        ],
        next_cursor: null,
        has_more: false,
      },
    },
    handle: async (app, { caller, query, checked }) =>
      ok(new Json(await listBroadcasts(app, caller, { limit: query.limit, paging: checked }))),
  }),
  route({
    ...members,
    name: 'get_audience',
    method: 'GET',
    path: '/audience',
    summary: 'Count and list the chats in a stage or with a column value, and who would be left out',
    account: 'optional',
    effect: 'read',
    query: z
      .object({
        account_id: accountId.optional().meta({ description: 'Only chats of this account.' }),
        stage_key: filter('Only chats in this stage.'),
        column_id: filter('Only chats with `column_value` in this column.'),
        column_value: filter('Value in the column `column_id`.'),
        needs_name: z
          .enum(['true', 'false'])
          .default('false')
          .meta({ description: 'Whether the message needs a name, so that chats without one are left out.' }),
        cursor,
        limit: limit(100, 50),
      })
      .refine(...columnWithValue),
    variant: ({ query }) => ({ ...members, gates: gatesOf(query) }),
    check: (app, caller, { query }) => readAudiencePaging(app, caller, query),
    errors: ['not_found', 'invalid_cursor', 'invalid_stage', 'column_not_found', 'feature_disabled'],
    response: audience,
    example: {
      query: { stage_key: 'new' },
      response: {
        counts: {
          chats: 2,
          can_receive: 1,
          left_out: { not_ready: 0, no_person: 0, suppressed: 1, nameless: 0 },
        },
        broadcast: null,
        people: [
          {
            account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
            chat_id: 'platform:chat:42',
            name: 'Ines García',
            username: 'ines_garcia',
            reason: null,
            sentence: null,
          },
        ],
        next_cursor: null,
        has_more: false,
      },
    },
    handle: async (app, { caller, accounts, query, checked }) =>
      ok(await describeAudience(app, caller, accounts, { query, paging: checked })),
  }),
]
