/** Notes on the dashboard: every member writes them, authors and admins delete them. */

import { z } from 'zod'
import { accountId, chatId, text } from '../../lib/shapes.ts'
import { uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { textMax } from '../../rules/limits.ts'
import { createNote, deleteNote, noteExample, noteOut } from './notes.ts'

const members = { scopes: [], role: 'member' } as const

export const workspaceRoutes: readonly Route[] = [
  route({
    ...members,
    name: 'create_note',
    method: 'POST',
    path: '/chats/{chat_id}/notes',
    summary: 'Write a note on a chat',
    description:
      'A repeat with the same `Idempotency-Key` is answered without the text, which only the note itself has.',
    account: 'required', // guard: notes on chats of own accounts
    effect: 'local',
    touches: ['notes'],
    idempotency: 'optional',
    done: 'The note was written.',
    statuses: [201],
    params: z.strictObject({ chat_id: chatId }),
    body: z.strictObject({ account_id: accountId, text: text(textMax) }),
    errors: ['not_found', 'chat_not_found'],
    response: z.object({ note: noteOut }),
    example: {
      params: { chat_id: 'platform:chat:42' },
      body: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', text: noteExample.text },
      response: { note: noteExample },
    },
    handle: async (app, tx, { caller, params, body }) => {
      const note = await createNote(app, tx, caller, { ...params, ...body })
      // guard: an answer keeps no text of a note
      return { status: 201, body: { note }, stored: { note: { ...note, text: '' } } }
    },
  }),
  route({
    ...members,
    name: 'delete_note',
    method: 'DELETE',
    path: '/notes/{note_id}',
    summary: 'Delete a note',
    effect: 'local',
    touches: ['notes'],
    params: z.strictObject({ note_id: uuid('Id of the note.') }),
    malformed: 'not_found',
    errors: ['not_found'],
    response: z.object({ deleted: z.literal(true) }),
    example: { params: { note_id: noteExample.id }, response: { deleted: true } },
    handle: async (_, tx, { caller, params: { note_id } }) => {
      await deleteNote(tx, caller, note_id)
      return ok({ deleted: true })
    },
  }),
]
