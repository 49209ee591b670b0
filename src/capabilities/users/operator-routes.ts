/** Every user of the instance, for operators. */
import { z } from 'zod'
import { roles, type UserCaller } from '../../contract.ts'
import { ApiError } from '../../lib/errors.ts'
import { moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, ownRoute, type Route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import {
  createUser,
  listUsers,
  makeSetupLink,
  needsSetupLink,
  requireUser,
  setUserEnabled,
  updateUser,
} from './users.ts'

const operators = { scopes: [], operator: true } as const
const userOut = z.object({
  id: uuid('Id of the user.'),
  email: said('E-mail address of the user.'),
  name: said('Name of the user; may be empty.'),
  time_zone: z.string().nullable().meta({ description: 'Time zone; null for that of the browser.' }),
  has_password: z.boolean().meta({ description: 'Whether the user can sign in with a password.' }),
  operator: z.boolean().meta({ description: 'Whether the user is an operator of the instance.' }),
  created_at: moment('When the user was created.'),
  disabled_at: momentOrNull('When the user was disabled; null if not.'),
  memberships: z.array(z.object({ workspace_id: uuid('A workspace of the user.'), role: z.enum(roles) })),
})
const workspace_id = '0199a1f0-0000-7000-8000-000000000001'
const user = {
  id: '0199a1f0-0000-7000-8000-000000000002',
  email: 'ana@acme.example',
  name: 'Ana',
  time_zone: null,
  has_password: false,
  operator: false,
  created_at: '2026-11-15T09:30:00.000Z',
  disabled_at: null,
  memberships: [{ workspace_id, role: 'member' }],
}
const setup = {
  setup_link: 'https://parley.example.com/dashboard/setup#…',
  expires_at: '2026-11-22T09:30:00.000Z',
}
const link = said('The link, shown only now. Anyone who has it can choose how this user signs in.')
/** In lower case, as sessions and the audit log have it. */
const userParams = z.strictObject({ user_id: z.string().toLowerCase() }) // guard: one spelling of a user id
const params = { user_id: user.id }

export const ownRoutes: readonly Route[] = [
  ownRoute({
    ...operators,
    name: 'list_users',
    method: 'GET',
    path: '/users',
    summary: 'List users',
    effect: 'read',
    response: z.object({ users: z.array(userOut) }),
    example: { response: { users: [user] } },
    handle: async ({ db }) => ok({ users: await listUsers(db) }),
  }),
  ownRoute({
    ...operators,
    name: 'create_user',
    method: 'POST',
    path: '/users',
    summary: 'Create a user, or add one to another workspace',
    effect: 'admin',
    touches: ['members', 'instance'],
    statuses: [201],
    body: z.strictObject({
      email: z.string(),
      workspace_id: z.string(),
      role: z.enum(roles),
      operator: z.boolean().optional(),
    }),
    errors: ['not_found', 'conflict'],
    response: z.object({ user: userOut, setup_link: link.nullable() }),
    example: {
      body: { email: user.email, workspace_id, role: 'member' },
      response: { user, setup_link: setup.setup_link },
    },
    handle: async (app, { caller, body }) => {
      const made = await createUser(app, actorOf(caller), body)
      // Operators can make a link for any user, so the limits of an admin's link do not hold here.
      const needed = await needsSetupLink(app.db, made.id)
      const link = needed ? await makeSetupLink(app, actorOf(caller), made.id) : null
      return { status: 201, body: { user: made, setup_link: link?.setup_link ?? null } }
    },
  }),
  ownRoute({
    ...operators,
    name: 'update_user',
    method: 'PATCH',
    path: '/users/{user_id}',
    summary: 'Change the name or address of a user, or whether they are an operator',
    effect: 'admin',
    touches: ['members', 'instance'],
    params: userParams,
    body: z
      .strictObject({
        name: z.string().optional(),
        email: z.string().optional(),
        operator: z.boolean().optional(),
      })
      .refine((body) => Object.values(body).some((value) => value !== undefined), {
        message: 'must name at least one of name, email and operator',
      }),
    errors: ['not_found', 'conflict'],
    response: z.object({ user: userOut }),
    example: { params, body: { name: 'Ana' }, response: { user } },
    handle: async (app, { caller, params: { user_id: id }, body }) => {
      if (body.operator === false) requireOther(caller, id)
      return ok({ user: await updateUser(app, actorOf(caller), { id, ...body }) })
    },
  }),
  ...[true, false].map((enabled) => {
    const verb = enabled ? 'enable' : 'disable'
    return ownRoute({
      ...operators,
      name: `${verb}_user`,
      method: 'POST',
      path: `/users/{user_id}/${verb}`,
      summary: enabled
        ? 'Enable a user: they can sign in again; their keys stay revoked'
        : 'Disable a user: ends their keys, sessions, links and logins, and stops their webhooks',
      effect: 'admin',
      touches: ['members', 'instance'],
      params: userParams,
      errors: ['not_found', 'conflict'],
      response: z.object({ user: userOut }),
      example: { params, response: { user } },
      handle: async (app, { caller, params: { user_id: id } }) => {
        if (!enabled) requireOther(caller, id)
        return ok({ user: await setUserEnabled(app, actorOf(caller), { id, enabled }) })
      },
    })
  }),
  ownRoute({
    ...operators,
    name: 'make_user_setup_link',
    method: 'POST',
    path: '/users/{user_id}/setup-link',
    summary: 'Create a set-up link for a user',
    effect: 'admin',
    touches: ['members'],
    params: userParams,
    errors: ['not_found'],
    response: z.object({ setup_link: link, expires_at: moment('When the link expires.') }),
    example: { params, response: setup },
    handle: async (app, { caller, params }) => {
      await requireUser(app.db, params.user_id)
      return ok(await makeSetupLink(app, actorOf(caller), params.user_id))
    },
  }),
]

/** The last operator would otherwise lock the dashboard's operator pages for everyone. */
function requireOther({ user_id }: UserCaller, id: string): void {
  if (user_id !== id) return // guard: operators do not disable themselves
  throw new ApiError('conflict', { detail: 'You cannot do this to yourself. Ask another operator.' })
}
