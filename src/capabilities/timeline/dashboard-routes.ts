/** The timeline of a chat on the dashboard. */
import { z } from 'zod'
import { accountId, chatId, limit, messageId } from '../../lib/shapes.ts'
import { messageOut, moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { noteExample, noteOut } from '../notes/notes.ts'
import { originBy, originCampaign } from './origin.ts'
import { readTimeline } from './timeline.ts'

const saidOrNull = (description: string) => z.string().nullable().meta({ description })

const { text, is_sender, edited_at, attachments } = messageOut.shape

const messageItem = z
  .object({
    type: z.literal('message'),
    id: messageOut.shape.id,
    at: moment('When it was written.'),
    is_sender,
    text,
    edited_at,
    attachments,
    state: z
      .enum(['accepted', 'ambiguous'])
      .nullable()
      .meta({ description: 'Null if the other side sent it.' }),
    read_at: momentOrNull('When the other side is known to have read it; null if not known.'),
    by: originBy,
    campaign: originCampaign,
    operation_id: uuid('Its operation in the ledger.').nullable(),
  })
  .meta({ id: 'TimelineMessage' })

const operationItem = z
  .object({
    type: z.literal('operation'),
    id: uuid('Id of the operation.'),
    at: moment('When it was requested.'),
    text: said('The text to send.'),
    file_name: saidOrNull('Name of the file to send; null if there is none.'),
    state: z.enum(['sending', 'refused', 'ambiguous']),
    closed_as: z
      .enum(['sent', 'not_sent'])
      .nullable()
      .meta({ description: 'What a user recorded about an ambiguous one; null: nothing.' }),
    sentence: said('What is known, as a sentence.'),
    by: originBy,
    campaign: originCampaign,
  })
  .meta({ id: 'TimelineOperation' })

const noteItem = z.object({ type: z.literal('note'), ...noteOut.shape }).meta({ id: 'TimelineNote' })

const item = z.discriminatedUnion('type', [messageItem, operationItem, noteItem])

const query = z
  .object({
    account_id: accountId,
    before: z.string().optional().meta({ description: 'A cursor: only older items.' }),
    after: z.string().optional().meta({ description: 'A cursor: only newer items.' }),
    around: messageId.optional().meta({ description: 'Id of a message to centre the page on.' }),
    limit: limit(100, 50),
  })
  .refine(
    ({ before, after, around }) => [before, after, around].filter((one) => one !== undefined).length <= 1,
    {
      path: ['before'],
      message: 'after and around exclude each other',
    },
  )

export const workspaceRoutes: readonly Route[] = [
  route({
    scopes: [],
    role: 'member',
    name: 'get_timeline',
    method: 'GET',
    path: '/chats/{chat_id}/timeline',
    summary: 'Messages, notes and unfinished operations of a chat',
    description: 'Without a cursor, the newest items. Reading marks nothing as read.',
    account: 'required', // guard: timelines of own accounts
    effect: 'read',
    params: z.strictObject({ chat_id: chatId }),
    query,
    errors: ['not_found', 'chat_not_found', 'invalid_cursor'],
    response: z.object({
      items: z.array(item).meta({ description: 'Oldest first.' }),
      before: saidOrNull('Cursor to what is older, stored or on the platform; null at the beginning.'),
      after: saidOrNull('Cursor to what is newer; null at the end.'),
      older_on_platform: z.boolean().meta({
        description: 'Whether the platform has older messages. `before` fetches them if the account is live.',
      }),
    }),
    example: {
      params: { chat_id: 'platform:chat:42' },
      query: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z' },
      response: {
        items: [
          {
            type: 'message',
            id: '7',
            at: '2026-11-15T09:30:00.000Z',
            is_sender: false,
            text: 'Is the blue one still available?',
            edited_at: null,
            attachments: [],
            state: null,
            read_at: null,
            by: null,
            campaign: null,
            operation_id: null,
          },
          { type: 'note', ...noteExample },
        ],
        before: null,
        after: null,
        older_on_platform: false,
      },
    },
    handle: async (app, { caller, params: { chat_id }, query }) =>
      ok(await readTimeline(app, caller, { chat_id, ...query })),
  }),
]
