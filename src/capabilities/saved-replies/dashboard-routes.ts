/** Saved replies on the dashboard: every member reads and changes them. */
import { z } from 'zod'
import { text } from '../../lib/shapes.ts'
import { moment, said, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { savedReplyTitleMax, textMax } from '../../rules/limits.ts'
import { createSavedReply, deleteSavedReply, listSavedReplies, updateSavedReply } from './saved-replies.ts'

const savedReplyOut = z
  .object({
    id: uuid('Id of the saved reply.'),
    title: said('The title that people search for.'),
    text: said('The text to insert.'),
    updated_at: moment('When it was last changed.'),
  })
  .meta({ id: 'SavedReply', description: 'A text that the team uses in its answers.' })

const example = {
  id: '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7d02',
  title: 'Opening hours',
  text: 'We answer Monday to Friday, 9:00 to 18:00.',
  updated_at: '2026-11-15T09:30:00.000Z',
}

const needs = { scopes: [], role: 'member' } as const
const params = z.strictObject({ saved_reply_id: z.string() })
const named = { saved_reply_id: example.id }
const one = z.object({ saved_reply: savedReplyOut })

export const workspaceRoutes: readonly Route[] = [
  route({
    ...needs,
    name: 'list_saved_replies',
    method: 'GET',
    path: '/saved_replies',
    summary: 'List saved replies',
    effect: 'read',
    response: z.object({ saved_replies: z.array(savedReplyOut) }),
    example: { response: { saved_replies: [example] } },
    handle: async ({ db }, { caller }) =>
      ok({ saved_replies: await listSavedReplies(db, caller.workspace_id) }),
  }),
  route({
    ...needs,
    name: 'create_saved_reply',
    method: 'POST',
    path: '/saved_replies',
    summary: 'Create a saved reply',
    effect: 'local',
    touches: ['saved_replies'],
    statuses: [201],
    body: z.strictObject({ title: text(savedReplyTitleMax), text: text(textMax) }),
    errors: ['conflict'],
    response: one,
    example: {
      body: { title: example.title, text: example.text },
      response: { saved_reply: example },
    },
    handle: async (_, tx, { caller: { workspace_id }, body }) => ({
      status: 201,
      body: { saved_reply: await createSavedReply(tx, { workspace_id, ...body }) },
    }),
  }),
  route({
    ...needs,
    name: 'update_saved_reply',
    method: 'PATCH',
    path: '/saved_replies/{saved_reply_id}',
    summary: 'Change a saved reply',
    effect: 'local',
    touches: ['saved_replies'],
    params,
    body: z
      .strictObject({ title: text(savedReplyTitleMax).optional(), text: text(textMax).optional() })
      .refine((body) => body.title !== undefined || body.text !== undefined, {
        message: 'must name at least one of title and text',
      }),
    errors: ['not_found'],
    response: one,
    example: { params: named, body: { title: example.title }, response: { saved_reply: example } },
    handle: async (_, tx, { caller: { workspace_id }, params: { saved_reply_id: id }, body }) =>
      ok({ saved_reply: await updateSavedReply(tx, { workspace_id, id }, body) }),
  }),
  route({
    ...needs,
    name: 'delete_saved_reply',
    method: 'DELETE',
    path: '/saved_replies/{saved_reply_id}',
    summary: 'Delete a saved reply',
    effect: 'local',
    touches: ['saved_replies'],
    params,
    errors: ['not_found'],
    response: z.object({ deleted: z.literal(true) }),
    example: { params: named, response: { deleted: true } },
    handle: async (_, tx, { caller: { workspace_id }, params: { saved_reply_id: id } }) => {
      await deleteSavedReply(tx, { workspace_id, id })
      return ok({ deleted: true })
    },
  }),
]
