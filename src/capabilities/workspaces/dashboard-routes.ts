/** Workspaces on the dashboard: for operators all of them, for members what they can do in theirs. */
import { z } from 'zod'
import { roles } from '../../contract.ts'
import { moment, said, uuid } from '../../lib/wire.ts'
import { ok, ownRoute, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { capabilityNames, describeWorkspace } from './capabilities.ts'
import { listWorkspaces, updateWorkspace } from './workspaces.ts'

const workspace = {
  id: '0199a1f0-0000-7000-8000-000000000001',
  name: 'Acme',
  timezone: 'Europe/Berlin',
  sending_window: null,
}

const workspaceOut = {
  id: uuid('Id of the workspace.'),
  name: said('Name of the workspace.'),
  timezone: said('Time zone in which its day ends at midnight.'),
  sending_window: z.string().nullable().meta({ description: 'When campaigns can send; null for always.' }),
}

const capability = z
  .object({
    open: z.boolean().meta({ description: 'Whether this user can use it now.' }),
    closed_by: z
      .object({
        kind: z.enum(['gate', 'role', 'allowlist']).meta({ description: 'What closes it.' }),
        name: said('The closed gate, the lowest role that may, or the allowlist that lacks an entry.'),
      })
      .nullable()
      .meta({ description: 'The first obstacle; null if it is open.' }),
  })
  .meta({ id: 'Capability', description: 'Whether a user can use a part of Parley, or what closes it.' })

export const workspaceRoutes: readonly Route[] = [
  route({
    scopes: [],
    role: 'member',
    name: 'get_workspace',
    method: 'GET',
    path: '/workspace',
    summary: 'Get the workspace and what the user can do in it',
    effect: 'read',
    response: z.object({
      workspace: z.object({
        ...workspaceOut,
        role: z.enum(roles).meta({ description: "The user's role in it." }),
      }),
      dispatch: z.object({
        on: z.boolean().meta({ description: 'Whether this instance sends messages now.' }),
        reason: z
          .string()
          .nullable()
          .meta({ description: 'Why it does not, as a sentence; null if it does.' }),
      }),
      capabilities: z.object(
        Object.fromEntries(capabilityNames.map((name) => [name, capability])) as Record<
          (typeof capabilityNames)[number],
          typeof capability
        >,
      ),
    }),
    example: {
      response: {
        workspace: { ...workspace, role: 'member' },
        dispatch: { on: true, reason: null },
        capabilities: Object.fromEntries(
          capabilityNames.map((name) => [
            name,
            name === 'campaigns'
              ? { open: false, closed_by: { kind: 'role', name: 'admin' } }
              : { open: true, closed_by: null },
          ]),
        ),
      },
    },
    handle: async (app, { caller }) => ok(await describeWorkspace(app, caller)),
  }),
  route({
    scopes: [],
    role: 'admin',
    name: 'update_workspace',
    method: 'PATCH',
    path: '/workspace',
    summary: 'Change the name, time zone and sending window of the workspace',
    effect: 'admin',
    touches: ['workspace', 'campaigns'],
    body: z
      .strictObject({
        name: z.string().optional().meta({ description: 'Name of the workspace.' }),
        timezone: z.string().optional().meta({ description: 'IANA time zone, such as Europe/Berlin.' }),
        sending_window: z
          .string()
          .nullable()
          .optional()
          .meta({ description: 'When campaigns can send, such as mon-fri 09:00-18:00; null for always.' }),
      })
      .refine((body) => Object.values(body).some((value) => value !== undefined), {
        message: 'must name at least one of name, timezone and sending_window',
      }),
    response: z.object({ workspace: z.object(workspaceOut) }),
    example: {
      body: { sending_window: 'mon-fri 09:00-18:00' },
      response: { workspace: { ...workspace, sending_window: 'mon-fri 09:00-18:00' } },
    },
    handle: async (app, { caller, body: { name, timezone, sending_window } }) => {
      const window = sending_window === null ? 'none' : sending_window
      const changes = { id: caller.workspace_id, name, timezone, window }
      const { created_at: _, ...changed } = await updateWorkspace(app, actorOf(caller), changes)
      return ok({ workspace: changed })
    },
  }),
]

export const ownRoutes: readonly Route[] = [
  ownRoute({
    scopes: [],
    operator: true,
    name: 'list_workspaces',
    method: 'GET',
    path: '/workspaces',
    summary: 'List workspaces',
    effect: 'read',
    response: z.object({
      workspaces: z.array(
        z.object({ ...workspaceOut, created_at: moment('When the workspace was created.') }),
      ),
    }),
    example: { response: { workspaces: [{ ...workspace, created_at: '2026-11-15T09:30:00.000Z' }] } },
    handle: async ({ db }) => ok({ workspaces: await listWorkspaces(db) }),
  }),
]
