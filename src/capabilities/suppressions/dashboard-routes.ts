/** The suppression list on the dashboard: members read it and add to it, admins and owners also remove entries, import and export. */
import { z } from 'zod'
import type { Tx } from '../../db/sql.ts'
import { readChunksIn } from '../../ledger/files.ts'
import { notFound } from '../../lib/names.ts'
import { accountId, chatId, cursor, limit, text } from '../../lib/shapes.ts'
import { moment, momentOrNull, pageEnd, said } from '../../lib/wire.ts'
import { Json, ok, type Route, route, Stream, TextFile } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { listChatEntries } from './chat-suppression.ts'
import { kinds } from './entries.ts'
import { exportInTurn, importSuppressions } from './list-file.ts'
import { listSuppressionPage, readSuppressionPaging } from './suppression-page.ts'
import { addSuppression, removeSuppression } from './suppressions.ts'

const members = { scopes: [], role: 'member' } as const
const touches = ['suppressions', 'campaigns'] as const

const entry = {
  kind: z.enum(kinds).meta({ description: 'What kind of identity `value` is.' }),
  value: said('The identity in its normal form: digits, or a username in lower case.'),
}

/** Of a request: in any spelling. */
const given = {
  kind: entry.kind,
  value: z.string().min(1).max(200).meta({ description: 'A platform id, username or phone number.' }),
}

const tiedOut = z
  .object({
    platform_id: said('Their number on the platform.'),
    names: z
      .array(said('Such as `username:ines_garcia`, in the normal form.'))
      .meta({ description: 'What they are called now, besides the entry.' }),
    since: momentOrNull('When they were first seen under the name; null for a platform id.'),
    until: momentOrNull('When the name passed on; null while they have it.'),
    released: z
      .boolean()
      .meta({ description: 'Whether removing the entry releases them: no other one stops them.' }),
  })
  .meta({ id: 'SuppressedPerson', description: 'A person whom an entry of the suppression list stops.' })

const listed = {
  ...entry,
  source: z
    .enum(['operator', 'import', 'opt_out'])
    .meta({ description: 'How it came to the list. `operator`: a user or operator added it.' }),
  evidence: z
    .record(z.string(), z.unknown())
    .meta({ description: 'For an opt-out, the message that asked; for an import, the file and line.' }),
  created_at: moment('When it was added.'),
}

const suppressionOut = z
  .object({
    ...listed,
    name: z.string().nullable().meta({
      description:
        'What the person is called in a chat or a contact of the workspace; null if neither has a name.',
    }),
    people: z.array(tiedOut).meta({
      description:
        'The people whom it stops, as far as is known: those who have had the name since it was added.',
    }),
  })
  .meta({ id: 'Suppression', description: 'An identity that the workspace never writes to first.' })

/** How many skipped rows a report names. */
const namedMax = 10_000

const example = { kind: 'username', value: 'ines_garcia' }

export const workspaceRoutes: readonly Route[] = [
  route({
    ...members,
    name: 'list_suppressions',
    method: 'GET',
    path: '/suppressions',
    summary: 'List the suppression list, or find a person on it',
    effect: 'read',
    query: z.object({
      kind: z.enum(kinds).optional().meta({ description: 'Only identities of this kind.' }),
      search: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .meta({ description: 'Only this platform id, username or phone number, in any spelling.' }),
      cursor,
      limit: limit(200, 50),
    }),
    check: (app, caller, { query }) => readSuppressionPaging(app, caller, query),
    errors: ['invalid_cursor'],
    response: z.object({
      suppressions: z.array(suppressionOut).meta({ description: 'In the order of kind and value.' }),
      ...pageEnd,
    }),
    example: {
      response: {
        suppressions: [
          {
            ...{ ...example, source: 'operator', evidence: {}, created_at: '2026-11-15T09:30:00.000Z' },
            name: 'Ines Garcia',
            people: [
              {
                ...{ platform_id: '1001', names: ['phone:491705550101', 'username:ines_g'] },
                ...{ since: '2026-11-01T08:00:00.000Z', until: '2026-11-16T12:00:00.000Z', released: true },
              },
            ],
          },
        ],
        next_cursor: null,
        has_more: false,
      },
    },
    handle: async (app, { caller, query, checked }) =>
      ok(new Json(await listSuppressionPage(app, caller, { query, paging: checked }))),
  }),
  route({
    ...members,
    name: 'get_chat_suppression',
    method: 'GET',
    path: '/chats/{chat_id}/suppression',
    summary: 'Whether the person of a chat is on the suppression list, and why',
    account: 'required', // guard: the suppression of a chat of own accounts
    effect: 'read',
    params: z.strictObject({ chat_id: chatId }),
    query: z.object({ account_id: accountId }),
    errors: ['not_found', 'chat_not_found'],
    response: z.object({
      entries: z
        .array(
          z.object(listed).meta({ id: 'ChatSuppression', description: 'An entry that stops the person.' }),
        )
        .meta({
          description:
            'The entries that stop the person, under any of their names: requests to stop first, then the newest. Empty: not on the list, or a group.',
        }),
    }),
    example: {
      params: { chat_id: 'platform:chat:42' },
      query: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z' },
      response: {
        entries: [
          {
            ...{
              kind: 'platform_id',
              value: '42',
              source: 'opt_out',
              created_at: '2026-11-09T14:02:00.000Z',
            },
            evidence: { message_id: '9', text: 'stop', timestamp: '2026-11-09T14:02:00.000Z' },
          },
        ],
      },
    },
    handle: async ({ db }, { caller, params: { chat_id }, query: { account_id } }) =>
      ok({ entries: await listChatEntries(db, caller, { account_id, chat_id }) }),
  }),
  route({
    ...members,
    name: 'add_suppression',
    method: 'POST',
    path: '/suppressions',
    summary: 'Add an identity to the suppression list',
    effect: 'admin',
    touches,
    body: z.strictObject(given),
    response: z.object({
      suppression: z.object(entry),
      added: z.boolean().meta({ description: 'False if it was on the list already.' }),
    }),
    example: { body: example, response: { suppression: example, added: true } },
    handle: async (app, { caller, body: { kind, value } }) => {
      const { workspace_id } = caller
      const added = await addSuppression(app, actorOf(caller), { workspace_id, [kind]: value })
      return ok({ suppression: { kind: added.kind, value: added.value }, added: added.added })
    },
  }),
  route({
    scopes: [],
    role: 'admin',
    name: 'remove_suppression',
    method: 'POST',
    path: '/suppressions/remove',
    summary: 'Remove an identity from the suppression list',
    effect: 'admin',
    touches,
    body: z.strictObject({
      ...given,
      reason: text(500).meta({ description: 'Why it may be written to again. The audit log keeps it.' }),
    }),
    errors: ['not_found'],
    response: z.object({
      suppression: z.object(entry),
      removed: z.literal(true),
      people: z.array(tiedOut).meta({ description: 'The people whom it stopped.' }),
    }),
    example: {
      body: { kind: 'username', value: 'ines_garcia_2', reason: 'She asked for the newsletter again.' },
      response: { suppression: { ...example, value: 'ines_garcia_2' }, removed: true, people: [] },
    },
    handle: async (app, { caller, body: { kind, value, reason } }) => {
      const { workspace_id } = caller
      const wanted = { workspace_id, [kind]: value, reason }
      const { removed, people, ...suppression } = await removeSuppression(app, actorOf(caller), wanted)
      if (!removed) throw notFound('entry', value)
      return ok({ suppression, removed, people })
    },
  }),
  route({
    scopes: [],
    role: 'admin',
    name: 'import_suppressions',
    method: 'POST',
    path: '/suppressions/import',
    summary: 'Add the rows of a CSV file to the suppression list, all or nothing',
    effect: 'admin',
    touches,
    text: 'text/csv',
    query: z.object({
      file_name: text(255).meta({ description: 'The name of the file. Each entry keeps it as evidence.' }),
    }),
    body: z.instanceof(TextFile),
    response: z.object({
      added: z.int().meta({ description: 'How many identities were added.' }),
      skipped_count: z.int().meta({ description: 'How many rows added nothing.' }),
      skipped: z
        .array(
          z.object({
            line: z.int().meta({ description: 'The line of the file, counted from 1.' }),
            reason: said('Why it added nothing, as a sentence.'),
          }),
        )
        .meta({
          description: `The first ${namedMax.toLocaleString('en')} of them, in the order of the file.`,
        }),
    }),
    example: {
      query: { file_name: 'list.csv' },
      body: 'kind,value\r\nusername,ines_garcia_3\r\nphone,12\r\n',
      response: {
        added: 1,
        skipped_count: 1,
        skipped: [{ line: 3, reason: '"12" is not a phone number.' }],
      },
    },
    handle: async (app, { caller, query, body: { file_id }, left }) => {
      const bytes = (tx: Tx) => readChunksIn(tx, file_id)
      const wanted = {
        workspace_id: caller.workspace_id,
        file: query.file_name,
        bytes,
        namedMax,
        left: left?.(),
      }
      return ok(await importSuppressions(app, actorOf(caller), wanted))
    },
  }),
  route({
    scopes: [],
    role: 'admin',
    name: 'export_suppressions',
    method: 'GET',
    path: '/suppressions/export',
    summary: 'The suppression list as a CSV file, which an import accepts',
    effect: 'read',
    saved: 'text/csv',
    response: z.string(),
    example: { response: 'kind,value,source,created_at,evidence\r\n' },
    handle: async (app, { caller: { workspace_id }, left }) => {
      const saved_as = { media_type: 'text/csv', file_name: 'suppressions.csv' } as const
      return ok(await Stream.begin(exportInTurn(app, workspace_id, left?.()), saved_as))
    },
  }),
]
