/** Workspaces on the dashboard: for operators all of them, for members what they can do in theirs. */
import { z } from 'zod'
import { roles } from '../../contract.ts'
import { count, moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, ownRoute, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { capabilityNames, describeWorkspace } from './capabilities.ts'
import { createWorkspace, listWorkspaces, setWorkspaceEnabled, updateWorkspace } from './workspaces.ts'

const workspace = {
  id: '0199a1f0-0000-7000-8000-000000000001',
  name: 'Acme',
  timezone: 'Europe/Berlin',
  timezone_before: null,
  timezone_from: null,
  sending_window: null,
}

const workspaceOut = {
  id: uuid('Id of the workspace.'),
  name: said('Name of the workspace.'),
  timezone: said('Time zone in which its day ends at midnight.'),
  timezone_before: z.string().nullable().meta({
    description:
      'After a change of the zone, the one that holds until `timezone_from`; null once that has passed.',
  }),
  timezone_from: momentOrNull('When a new zone begins to hold: at the end of the day that has begun.'),
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
      stopped_webhooks: count('Webhooks that stopped with their maker and wait for an admin; 0 for members.'),
      opt_out_words: z.array(z.string()).meta({
        description: 'A message that consists of one of these adds its sender to the suppression list.',
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
        stopped_webhooks: 0,
        opt_out_words: ['stop', 'unsubscribe'],
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
      const {
        created_at: _,
        disabled_at: __,
        ...changed
      } = await updateWorkspace(app, actorOf(caller), changes)
      return ok({ workspace: changed })
    },
  }),
]

const operators = { scopes: [], operator: true } as const
const listedOut = z.object({
  ...workspaceOut,
  created_at: moment('When the workspace was created.'),
  disabled_at: momentOrNull('When the workspace was disabled; null if not.'),
})
const listed = { ...workspace, created_at: '2026-11-15T09:30:00.000Z', disabled_at: null }
/** In lower case, as the audit log has it. */
const params = z.strictObject({ workspace_id: z.string().toLowerCase() })
const given = {
  name: z.string().meta({ description: 'Name of the workspace.' }),
  timezone: z.string().meta({ description: 'IANA time zone, such as Europe/Berlin.' }),
}

export const ownRoutes: readonly Route[] = [
  ownRoute({
    ...operators,
    name: 'list_workspaces',
    method: 'GET',
    path: '/workspaces',
    summary: 'List workspaces',
    effect: 'read',
    response: z.object({ workspaces: z.array(listedOut) }),
    example: { response: { workspaces: [listed] } },
    handle: async ({ db }) => ok({ workspaces: await listWorkspaces(db) }),
  }),
  ownRoute({
    ...operators,
    name: 'create_workspace',
    method: 'POST',
    path: '/workspaces',
    summary: 'Create a workspace',
    effect: 'admin',
    touches: ['instance'],
    statuses: [201],
    body: z.strictObject({ name: given.name, timezone: given.timezone.optional() }),
    response: z.object({ workspace: listedOut }),
    example: { body: { name: 'Acme', timezone: 'Europe/Berlin' }, response: { workspace: listed } },
    handle: async (app, { caller, body }) => ({
      status: 201,
      body: { workspace: await createWorkspace(app, actorOf(caller), body) },
    }),
  }),
  ownRoute({
    ...operators,
    name: 'rename_workspace',
    method: 'PATCH',
    path: '/workspaces/{workspace_id}',
    summary: 'Change the name or time zone of a workspace',
    effect: 'admin',
    touches: ['workspace', 'campaigns', 'instance'],
    params,
    body: z
      .strictObject({ name: given.name.optional(), timezone: given.timezone.optional() })
      .refine((body) => Object.values(body).some((value) => value !== undefined), {
        message: 'must name at least one of name and timezone',
      }),
    errors: ['not_found'],
    response: z.object({ workspace: listedOut }),
    example: {
      params: { workspace_id: workspace.id },
      body: { name: 'Acme' },
      response: { workspace: listed },
    },
    handle: async (app, { caller, params: { workspace_id: id }, body }) =>
      ok({ workspace: await updateWorkspace(app, actorOf(caller), { id, ...body }) }),
  }),
  ...[true, false].map((enabled) => {
    const verb = enabled ? 'enable' : 'disable'
    return ownRoute({
      ...operators,
      name: `${verb}_workspace`,
      method: 'POST',
      path: `/workspaces/{workspace_id}/${verb}`,
      summary: enabled
        ? 'Enable a workspace: everything continues where it stopped'
        : 'Disable a workspace: its keys and members are refused, its accounts send nothing',
      effect: 'admin',
      touches: ['workspace', 'accounts', 'instance'],
      params,
      errors: ['not_found'],
      response: z.object({ workspace: listedOut }),
      example: { params: { workspace_id: workspace.id }, response: { workspace: listed } },
      handle: async (app, { caller, params: { workspace_id: id } }) =>
        ok({ workspace: await setWorkspaceEnabled(app, actorOf(caller), { id, enabled }) }),
    })
  }),
]
