/** The suppression list on the dashboard: members read it and add to it, admins and owners also import files and remove entries. */
import { z } from 'zod'
import type { Tx } from '../../db/sql.ts'
import { readChunksIn } from '../../ledger/files.ts'
import { decodeCsv } from '../../lib/csv.ts'
import { notFound } from '../../lib/names.ts'
import { cursor, limit, text } from '../../lib/shapes.ts'
import { moment, pageEnd, said } from '../../lib/wire.ts'
import { Json, ok, type Route, route, Stream, TextFile } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { kinds } from './entries.ts'
import { exportSuppressions, importSuppressions } from './list-file.ts'
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

const suppressionOut = z
  .object({
    ...entry,
    source: z
      .enum(['operator', 'import', 'opt_out'])
      .meta({ description: 'How it came to the list. `operator`: a user or operator added it.' }),
    evidence: z
      .record(z.string(), z.unknown())
      .meta({ description: 'For an opt-out, the message that asked; for an import, the file and line.' }),
    created_at: moment('When it was added.'),
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
          { ...example, source: 'operator', evidence: {}, created_at: '2026-11-15T09:30:00.000Z' },
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
    response: z.object({ suppression: z.object(entry), removed: z.literal(true) }),
    example: {
      body: { kind: 'username', value: 'ines_garcia_2', reason: 'She asked for the newsletter again.' },
      response: { suppression: { ...example, value: 'ines_garcia_2' }, removed: true },
    },
    handle: async (app, { caller, body: { kind, value, reason } }) => {
      const { workspace_id } = caller
      const wanted = { workspace_id, [kind]: value, reason }
      const { removed, ...suppression } = await removeSuppression(app, actorOf(caller), wanted)
      if (!removed) throw notFound('entry', value)
      return ok({ suppression, removed })
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
    handle: async (app, { caller, query, body: { file_id } }) => {
      const read = (tx: Tx) => decodeCsv(readChunksIn(tx, file_id))
      const wanted = { workspace_id: caller.workspace_id, file: query.file_name, text: read, namedMax }
      return ok(await importSuppressions(app, actorOf(caller), wanted))
    },
  }),
  route({
    ...members,
    name: 'export_suppressions',
    method: 'GET',
    path: '/suppressions/export',
    summary: 'The suppression list as a CSV file, which an import accepts',
    effect: 'read',
    saved: 'text/csv',
    response: z.string(),
    example: { response: 'kind,value,source,created_at,evidence\r\n' },
    handle: async (app, { caller: { workspace_id } }) => {
      const saved_as = { media_type: 'text/csv', file_name: 'suppressions.csv' } as const
      return ok(await Stream.begin(exportSuppressions(app.db, workspace_id), saved_as))
    },
  }),
]
