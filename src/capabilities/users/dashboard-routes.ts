/** Members of a workspace on the dashboard, for admins and owners. */
import { z } from 'zod'
import { hasRole } from '../../access/needs.ts'
import type { App } from '../../app.ts'
import { type Caller, roles } from '../../contract.ts'
import { ApiError } from '../../lib/errors.ts'
import { done, moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { endMembership, listMembers, mayLink, requireMember, setRole } from './members.ts'
import { createUser, makeSetupLink } from './users.ts'

const user_id = '0199a1f0-0000-7000-8000-000000000002'
const params = { user_id }
const member = {
  user_id,
  email: 'ana@acme.example',
  name: 'Ana',
  role: 'member',
  joined_at: '2026-11-15T09:30:00.000Z',
  last_seen_at: null,
}
const setup = {
  setup_link: 'https://parley.example.com/dashboard/setup#…',
  expires_at: '2026-11-22T09:30:00.000Z',
}

const memberOut = z.object({
  user_id: uuid('Id of the user.'),
  email: said('E-mail address of the user.'),
  name: said('Name of the user; may be empty.'),
  role: z.enum(roles),
  joined_at: moment('When the user joined.'),
  last_seen_at: momentOrNull('When the user last used the dashboard; null if never.'),
})
const setupOut = z.object({
  setup_link: said('The link, shown only now. Anyone who has it can choose how this user signs in.'),
  expires_at: moment('When the link expires.'),
})
const memberParams = z.strictObject({ user_id: z.string() })
const admins = { scopes: [], role: 'admin' } as const

export const workspaceRoutes: readonly Route[] = [
  route({
    ...admins,
    name: 'list_members',
    method: 'GET',
    path: '/members',
    summary: 'List members',
    effect: 'read',
    response: z.object({ members: z.array(memberOut) }),
    example: { response: { members: [member] } },
    handle: async ({ db }, { caller }) => ok({ members: await listMembers(db, caller.workspace_id) }),
  }),
  route({
    ...admins,
    name: 'add_member',
    method: 'POST',
    path: '/members',
    summary: 'Add a member',
    effect: 'admin',
    touches: ['members'],
    statuses: [201],
    body: z.strictObject({ email: z.string(), role: z.enum(roles) }),
    errors: ['conflict'],
    response: z.object({ member: memberOut, setup_link: setupOut.shape.setup_link.nullable() }),
    example: {
      body: { email: member.email, role: 'member' },
      response: { member, setup_link: setup.setup_link },
    },
    handle: async (app, { caller, body }) => {
      if (body.role !== 'member') requireOwner(caller, 'give a role above member') // guard: roles are for owners
      const { workspace_id } = caller
      await requireAddLimit(app, workspace_id)
      const { id: user_id } = await createUser(app, actorOf(caller), { workspace_id, ...body })
      const key = { workspace_id, user_id }
      const link = (await mayLink(app.db, key)) ? await makeSetupLink(app, actorOf(caller), user_id) : null
      return {
        status: 201,
        body: { member: await requireMember(app.db, key), setup_link: link?.setup_link ?? null },
      }
    },
  }),
  route({
    scopes: [],
    role: 'owner',
    name: 'set_member_role',
    method: 'PATCH',
    path: '/members/{user_id}',
    summary: 'Change the role of a member',
    effect: 'admin',
    touches: ['members'],
    params: memberParams,
    body: z.strictObject({ role: z.enum(roles) }),
    errors: ['not_found', 'conflict'],
    response: z.object({ member: memberOut }),
    example: { params, body: { role: 'admin' }, response: { member: { ...member, role: 'admin' } } },
    handle: async (app, { caller, params, body }) =>
      ok({ member: await setRole(app, actorOf(caller), { ...keyOf(caller, params), ...body }) }),
  }),
  route({
    scopes: [],
    role: 'member',
    name: 'remove_member',
    method: 'DELETE',
    path: '/members/{user_id}',
    summary: 'Remove a member',
    effect: 'admin',
    touches: ['members', 'assignees'],
    params: memberParams,
    errors: ['not_found', 'conflict', 'missing_role'],
    response: z.object(done),
    example: {
      params,
      response: { ok: true, message: 'The membership has ended, and its keys are revoked.' },
    },
    handle: async (app, { caller, params }) => {
      const key = keyOf(caller, params)
      if (params.user_id !== caller.user_id) await requireManageable(app, caller, params)
      await endMembership(app, actorOf(caller), key)
      return ok({ ok: true, message: 'The membership has ended, and its keys are revoked.' })
    },
  }),
  route({
    ...admins,
    name: 'make_member_setup_link',
    method: 'POST',
    path: '/members/{user_id}/setup-link',
    summary: 'Create a set-up link for a member',
    effect: 'admin',
    touches: ['members'],
    params: memberParams,
    errors: ['not_found', 'conflict', 'missing_role'],
    response: setupOut,
    example: { params, response: setup },
    handle: async (app, { caller, params }) => {
      const { email } = await requireManageable(app, caller, params)
      if (!(await mayLink(app.db, keyOf(caller, params)))) {
        throw new ApiError('conflict', {
          detail: `The user ${email} can already sign in, or belongs to another workspace too. Only an operator of this instance can create a link for them.`,
        })
      }
      return ok(await makeSetupLink(app, actorOf(caller), params.user_id))
    },
  }),
]

function keyOf({ workspace_id }: Caller, { user_id }: { user_id: string }) {
  return { workspace_id, user_id }
}

/** A member whom this caller may remove or invite again: owners manage all, admins all but owners, members none. */
async function requireManageable(app: App, caller: Caller, params: { user_id: string }) {
  // Only admins may learn who is a member.
  if (!hasRole(caller, 'admin')) throw missingRole('Only an admin of this workspace may do this.')
  const found = await requireMember(app.db, keyOf(caller, params))
  if (found.role === 'owner') requireOwner(caller, 'do this to an owner') // guard: owners are for owners
  return found
}

function requireOwner(caller: Caller, what: string): void {
  if (!hasRole(caller, 'owner')) throw missingRole(`Only an owner of this workspace may ${what}.`)
}

function missingRole(detail: string): ApiError {
  return new ApiError('missing_role', { detail })
}

/** Adding an address reveals whether it belongs to a user here, so the number is limited. */
const addRule = { limit: 100, seconds: 3_600 }

async function requireAddLimit(app: App, workspace_id: string): Promise<void> {
  const { allowed, retry_after } = await app.limits.take(`add_member:${workspace_id}`, addRule)
  if (!allowed) {
    throw new ApiError('rate_limited', {
      detail: `This workspace has added ${addRule.limit} members in the last hour. Retry after the seconds in Retry-After.`,
      retry_after,
    })
  }
}
