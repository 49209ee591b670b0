import { z } from 'zod'
import { chatId, scopedAccountId } from '../../lib/shapes.ts'
import { type Route, route } from '../../route.ts'
import { contentTypes } from './content-type.ts'
import { serveFile } from './served-file.ts'

const message_id = z
  .string()
  .regex(/^[1-9]\d{0,17}$/, 'must be the id of a message')
  .meta({ description: 'Id of the message in its chat.' })
const index = z
  .string()
  .regex(/^(0|[1-9]\d{0,2})$/, 'must be a whole number, 0 or greater')
  .transform(Number)
  .meta({
    description: 'The `index` of the attachment.',
    openapi: { type: 'integer', minimum: 0, maximum: 999 },
  })

export const routes: readonly Route[] = [
  route({
    name: 'download_attachment',
    method: 'GET',
    path: '/chats/{chat_id}/messages/{message_id}/attachments/{index}',
    summary: 'Download a file',
    description:
      'Returns a file of a message, at most 26,214,400 bytes. The first request fetches it from the platform and is answered ' +
      'when all of it is there; a 503 after 60 seconds does not stop that, so ask again. Files are kept for some days. The ' +
      '`Content-Type` follows from the content: pictures, voice messages, MP3 and MP4 can be shown, and every other file ' +
      'comes as `application/octet-stream`, to be saved.',
    scopes: ['read'],
    account: 'extended',
    effect: 'read',
    params: z.strictObject({ chat_id: chatId, message_id, index }),
    query: z.object({ account_id: scopedAccountId }),
    errors: [
      'chat_not_found',
      'not_found',
      'attachment_too_large',
      'range_not_satisfiable',
      'session_unavailable',
      ['flood_wait', 503],
    ],
    statuses: [200, 206],
    bytes: contentTypes,
    response: z.unknown().meta({ description: 'The bytes of the file, or of the range.' }),
    example: {
      params: { chat_id: 'platform:chat:42', message_id: '7', index: '0' },
      query: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z' },
      response: null,
    },
    handle: (app, { caller, accounts, params, range, left }) =>
      serveFile(app, accounts, {
        ...params,
        ...{ range, left: left?.() },
        share: { workspace: caller.workspace_id, user: caller.user_id },
      }),
  }),
]
