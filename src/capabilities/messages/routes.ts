import { z } from 'zod'
import { chatId, limit, scopedAccountId, text, timeOrDateSchema } from '../../lib/shapes.ts'
import { isBlank, lengthOf } from '../../lib/text.ts'
import { accountIdOut, chatIdOut, done, messageOut, moment, said, uuid } from '../../lib/wire.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { textMax } from '../../rules/limits.ts'
import { listMessages, readBefore } from './message-pages.ts'
import { sendMessage, wantMessage } from './send.ts'

const messagePage = z
  .object({
    messages: z.array(messageOut).meta({ description: 'Messages, oldest first within the page.' }),
    source: z
      .enum(['store', 'platform'])
      .meta({ description: '`platform` if some messages were fetched from the platform for this request.' }),
    next_before: z
      .string()
      .nullable()
      .meta({
        description:
          'Pass it as `before` to get the next older page; null at the end. A plain time, unless one millisecond has more ' +
          'messages than a page: then its digits below the millisecond mark the position.',
        openapi: { type: ['string', 'null'], format: 'date-time' },
      }),
    has_more: z.boolean().meta({ description: 'Whether there are older messages.' }),
  })
  .meta({ id: 'MessagePage', description: 'A page of messages of one chat.' })

const sent = z
  .object({
    ...done,
    operation_id: uuid('Id of the operation in the ledger.'),
    account_id: accountIdOut,
    chat_id: chatIdOut,
    message_id: said('Id of the message on the platform.'),
    timestamp: moment('When the platform accepted it.'),
  })
  .meta({ id: 'SentMessage', description: 'A message that the platform accepted.' })

const formFile = z.object({
  file_id: z.string(),
  file_name: z.string(),
  media_type: z.string(),
  size: z.number(),
  sha256: z.string(),
})

export const routes: readonly Route[] = [
  route({
    name: 'list_messages',
    method: 'GET',
    path: '/chats/{chat_id}/messages',
    summary: 'List messages',
    description:
      'Returns the messages of a chat, oldest first within the page; `next_before` leads to the next older page. Reading marks nothing as read. Messages that ' +
      'are not stored yet are fetched from the platform (`source: "platform"`) and stored.',
    scopes: ['read'],
    account: 'extended',
    effect: 'read',
    params: z.strictObject({ chat_id: chatId }),
    query: z.object({
      account_id: scopedAccountId,
      before: z
        .string()
        .refine((value) => readBefore(value) !== undefined, {
          message: 'must be next_before of a page, or an RFC 3339 time',
        })
        .optional()
        .meta({
          description: 'Only messages older than this: `next_before` of a page, or any date or time.',
          openapi: timeOrDateSchema,
        }),
      limit: limit(100, 30),
    }),
    errors: ['chat_not_found', 'session_unavailable', ['flood_wait', 503]],
    response: messagePage,
    example: {
      params: { chat_id: 'platform:chat:42' },
      query: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', limit: '30' },
      response: {
        messages: [
          {
            id: '7',
            text: 'Is the blue one still available?',
            is_sender: false,
            timestamp: '2026-11-15T09:30:00.000Z',
            edited_at: null,
            attachments: [],
          },
        ],
        source: 'store',
        next_before: '2026-11-15T09:30:00.000Z',
        has_more: true,
      },
    },
    handle: async (app, { accounts, params: { chat_id }, query }) =>
      ok(new Json(await listMessages(app, accounts, { chat_id, query }))),
  }),
  route({
    name: 'send_message',
    method: 'POST',
    path: '/messages',
    summary: 'Send a message',
    description:
      'Sends a text as JSON, or a form with exactly one file in `attachments` (at most 26,214,400 bytes) and `text` as its ' +
      'caption. 200 means that the platform accepted it. An unknown outcome is 503 `outcome_ambiguous`; the message is ' +
      'never sent again under this key, and once the platform shows it, a repeat returns 200.',
    scopes: ['send'],
    idempotency: 'required',
    account: 'extended',
    effect: 'platform',
    touches: ['messages', 'operations'],
    flood: 503,
    variant: ({ body }) => ({
      scopes: ['send'],
      idempotency: body.account_id === undefined ? 'optional' : 'required',
    }),
    body: z
      .strictObject({
        account_id: scopedAccountId,
        chat_id: chatId,
        text: text(textMax).meta({ description: 'The text to send.' }),
      })
      .meta({ id: 'SendMessageRequest', description: 'A text message.' }),
    form: z
      .strictObject({
        account_id: scopedAccountId,
        chat_id: chatId,
        text: z
          .string()
          .refine((value) => lengthOf(value) <= textMax, {
            message: `must have at most ${textMax} characters`,
          })
          .transform((value) => (isBlank(value) ? '' : value))
          .default('')
          .meta({
            description: 'The caption; blank for none.',
            openapi: { type: 'string', maxLength: textMax, default: '' },
          }),
        attachment: formFile,
      })
      .meta({ description: 'A file with an optional caption.' }),
    errors: [
      'chat_unavailable',
      'blocked_by_person',
      'privacy_restricted',
      'cold_stopped',
      'message_refused',
      'unsupported_attachment',
      'attachment_too_large',
    ],
    response: sent,
    example: {
      body: {
        account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
        chat_id: 'platform:chat:42',
        text: 'Yes, it is. Shall I put it aside for you?',
      },
      response: {
        ok: true,
        message: 'The platform accepted the message.',
        operation_id: '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7a11',
        account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
        chat_id: 'platform:chat:42',
        message_id: '8',
        timestamp: '2026-11-15T09:31:00.000Z',
      },
    },
    operation: sendMessage,
    handle: (app, { accounts, body }) => wantMessage(app, accounts, body),
  }),
]
