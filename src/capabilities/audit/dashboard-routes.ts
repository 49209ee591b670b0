/** The audit log at the dashboard, for operators. */
import { z } from 'zod'
import type { App } from '../../app.ts'
import { cursor, limit } from '../../lib/shapes.ts'
import { together } from '../../lib/together.ts'
import { count, moment, pageEnd, said, uuid } from '../../lib/wire.ts'
import { ok, ownRoute, type Route } from '../../route.ts'
import { findVerdict, type Verdict, verifyAudit } from './audit.ts'
import { listActions, listAuditPage, readAuditPaging } from './audit-pages.ts'

const operators = { scopes: [], operator: true } as const
const at = '2026-11-15T09:30:00.000Z'

const verdictOut = z.object({
  ok: z.boolean().meta({ description: 'Whether every row is as it was written.' }),
  rows: count('How many rows were verified.'),
  seq: said('The first row that was changed or is missing.').optional(),
  problem: said('What is wrong with it.').optional(),
  at: moment('When the log was verified.'),
})
const verdict = { ok: true, rows: 12, at }

const rowOut = z.object({
  seq: said('Number of the row, without gaps.'),
  at: moment('When it happened.'),
  actor: said('`user:<id>`, `key:<id>`, `cli:<login>` or `system`.'),
  actor_email: z
    .string()
    .nullable()
    .meta({ description: 'E-mail address of the user; null for other actors.' }),
  action: said('What was done, such as `gate.enabled`.'),
  target: said('What it was done to.'),
  workspace_id: uuid('The workspace; null for the instance.').nullable(),
  workspace_name: z.string().nullable().meta({ description: 'Name of the workspace.' }),
  detail: z.record(z.string(), z.unknown()).meta({ description: 'What changed.' }),
})

export const ownRoutes: readonly Route[] = [
  ownRoute({
    ...operators,
    name: 'list_audit',
    method: 'GET',
    path: '/audit',
    summary: 'List the audit log',
    effect: 'read',
    query: z.object({
      workspace_id: uuid('Only changes in this workspace.').optional(),
      action: z.string().min(1).max(100).optional().meta({ description: 'Only this action.' }),
      actor: z.string().min(1).max(200).optional().meta({ description: 'Only changes by this actor.' }),
      cursor,
      limit: limit(200, 50),
    }),
    check: (app, _, { query: { limit: _limit, ...query } }) => readAuditPaging(app, query),
    errors: ['invalid_cursor'],
    response: z.object({ rows: z.array(rowOut).meta({ description: 'Newest first.' }), ...pageEnd }),
    example: {
      response: {
        rows: [
          {
            seq: '12',
            at,
            actor: 'cli:ana',
            actor_email: null,
            action: 'gate.enabled',
            target: 'rest',
            workspace_id: null,
            workspace_name: null,
            detail: {},
          },
        ],
        next_cursor: null,
        has_more: false,
      },
    },
    handle: async (app, { caller, query: { limit, cursor: _, ...filters }, checked }) =>
      ok(await listAuditPage(app, caller, { filters, limit, paging: checked })),
  }),
  ownRoute({
    ...operators,
    name: 'get_audit',
    method: 'GET',
    path: '/audit/verdict',
    summary: 'Get the result of the last verification, and the actions in the log',
    effect: 'read',
    response: z.object({
      verdict: verdictOut.nullable().meta({ description: 'Null if the log was never verified.' }),
      actions: z.array(z.string()).meta({ description: 'Every action that the log has.' }),
    }),
    example: { response: { verdict, actions: ['gate.enabled'] } },
    handle: async ({ db }) => ok({ verdict: await findVerdict(db), actions: await listActions(db) }),
  }),
  ownRoute({
    ...operators,
    name: 'verify_audit',
    method: 'POST',
    path: '/audit/verify',
    summary: 'Verify the hash chain of the audit log',
    effect: 'admin',
    touches: ['instance'],
    response: z.object({ verdict: verdictOut }),
    example: { response: { verdict } },
    handle: async (app) => {
      await verifyOnce(app)
      return ok({ verdict: await findVerdict(app.db) })
    },
  }),
]

const verifying = new WeakMap<App, () => Promise<Verdict>>()

/** Reads the whole log, so requests at the same time share one walk. */
function verifyOnce(app: App): Promise<Verdict> {
  const verify = verifying.get(app) ?? together(() => verifyAudit(app))
  verifying.set(app, verify)
  return verify()
}
