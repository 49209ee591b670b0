/** Erasing a person: what would go, the act, and how far it has come. For admins and owners, and for keys with a scope of its own. */
import { z } from 'zod'
import { count, moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { previewErasure, readErasure, requestErasure } from './erasing.ts'

const erasureOut = z
  .object({
    id: uuid('Id of the erasure.'),
    state: z.enum(['waiting', 'running', 'done']).meta({
      description: '`waiting`: no worker has begun. `done`: nothing of the person is left but what stays.',
    }),
    cleared: count('Messages and operations that were cleared so far.'),
    total: count('How many the preview counted. Messages in groups come on top of them.'),
    at: moment('When it was asked for.'),
    done_at: momentOrNull('When it was done; null until then.'),
  })
  .meta({ id: 'Erasure', description: 'An erasure of a person, and how far it has come.' })
const erasureOrNull = erasureOut
  .nullable()
  .meta({ description: 'The last erasure of the person; null: none.' })

const preview = said('Hash of the preview: it changes with what is stored.')
const previewOut = z
  .object({
    person_id: uuid('Id of the person.'),
    removes: z
      .object({
        messages: count(
          'Messages of their private chats. Their messages in groups go too, and are not counted.',
        ),
        chats: count('Private chats.'),
        files: count('Files of these messages.'),
        campaigns: count('Campaigns that they are in.'),
        notes: count('Notes on their chats.'),
        column_values: count('Values in columns.'),
        names: count('Usernames and phone numbers that they have or had.'),
      })
      .meta({ id: 'ErasurePreviewRemoves', description: 'What goes.' }),
    stays: z
      .object({
        operations: count('Operations of which stays that they happened, when and with what result.'),
      })
      .meta({ id: 'ErasurePreviewStays', description: 'What stays, besides their number on the platform.' }),
    preview,
    erasure: erasureOrNull,
  })
  .meta({ id: 'ErasurePreview', description: 'What an erasure would remove, and what stays.' })

const params = z.strictObject({
  person_id: z.string().meta({ description: 'Id of the person, from `GET /people`.' }),
})
const person_id = '019a7e70-0000-7000-8000-0000000000d2'
const erasure = {
  id: '019a7e70-0000-7000-8000-0000000000e1',
  state: 'waiting',
  cleared: 0,
  total: 55,
  at: '2026-11-15T09:30:00.000Z',
  done_at: null,
}
const hash = '7c1f'.repeat(16)

export const routes: readonly Route[] = [
  route({
    name: 'preview_erasure',
    method: 'GET',
    path: '/people/{person_id}/erase',
    summary: 'Preview the erasure of a person',
    description: 'Counts what an erasure would remove of a person, and what stays. Changes nothing.',
    scopes: ['people_erase'],
    effect: 'read',
    costly: true,
    params,
    errors: ['not_found'],
    response: previewOut,
    example: {
      params: { person_id },
      response: {
        person_id,
        removes: { messages: 41, chats: 2, files: 3, campaigns: 2, notes: 1, column_values: 6, names: 4 },
        stays: { operations: 14 },
        preview: hash,
        erasure: null,
      },
    },
    handle: async ({ db }, { caller, params: { person_id } }) =>
      ok(await previewErasure(db, caller.workspace_id, person_id)),
  }),
  route({
    name: 'erase_person',
    method: 'POST',
    path: '/people/{person_id}/erase',
    summary: 'Erase a person',
    description:
      'Begins the erasure that the preview has shown; it cannot be undone. From the answer on nothing is sent to the person and nothing ' +
      'that arrives of them is stored until they write again. A worker removes names, texts, files, notes, column values, search entries and ' +
      'the data of events; `GET /people/{person_id}/erasure` says how far it has come. Their number on the platform and the keys ' +
      'of your own requests stay, and that operations happened. They are put on the suppression list unless `contact_allowed` is true.',
    done: 'The erasure of the person began.',
    scopes: ['people_erase'],
    idempotency: 'required',
    effect: 'local',
    touches: ['people', 'suppressions'],
    params,
    body: z
      .strictObject({
        preview: z
          .string()
          .regex(/^[0-9a-f]{64}$/)
          .meta({ description: 'From the preview. If what is stored has changed since: 409.' }),
        contact_allowed: z.boolean().default(false).meta({
          description:
            'The person may be contacted again: neither the suppression list nor a hash of a name refuses them.',
        }),
      })
      .meta({ id: 'ErasureRequest', description: 'What to erase, as it was shown.' }),
    errors: ['not_found', 'preview_outdated', 'erasure_in_progress'],
    response: z.object({ erasure: erasureOut }).meta({ id: 'ErasureBegun', description: 'The erasure.' }),
    example: {
      params: { person_id },
      body: { preview: hash, contact_allowed: false },
      response: { erasure },
    },
    handle: async (app, tx, { caller, params: { person_id }, body }) => {
      const { workspace_id } = caller
      return ok({
        erasure: await requestErasure(app, tx, actorOf(caller), { workspace_id, person_id, ...body }),
      })
    },
  }),
  route({
    name: 'get_erasure',
    method: 'GET',
    path: '/people/{person_id}/erasure',
    summary: 'Get how far the erasure of a person has come',
    description: 'Returns the last erasure of a person. It goes on if Parley restarts.',
    scopes: ['people_erase'],
    effect: 'read',
    params,
    errors: ['not_found'],
    response: z.object({ erasure: erasureOrNull }).meta({ id: 'ErasureAnswer', description: 'An erasure.' }),
    example: { params: { person_id }, response: { erasure: { ...erasure, state: 'running', cleared: 12 } } },
    handle: async ({ db }, { caller, params: { person_id } }) =>
      ok({ erasure: await readErasure(db, caller.workspace_id, person_id) }),
  }),
]
