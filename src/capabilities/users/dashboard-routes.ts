/** Members of a workspace on the dashboard, for admins and owners. */
import { z } from 'zod'
import { hasRole, isCapable, requireNeeds } from '../../access/needs.ts'
import type { App } from '../../app.ts'
import { type Caller, roles } from '../../contract.ts'
import { ApiError } from '../../lib/errors.ts'
import { count, done, moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { takeOverNeeds } from '../campaigns/campaigns.ts'
import { describeMade, endMembership, listMembers, mayLink, requireMember, setRole } from './members.ts'
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
  setup_link: null,
}
const made = {
  webhooks: [{ id: '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7b01', url: 'https://example.com/hook', active: true }],
  campaigns: [
    {
      id: '019a7e6f-0000-7000-8000-00000000c001',
      name: 'Welcome back',
      kind: 'contacts',
      status: 'sending',
      stop: 'pause',
    },
  ],
  keys: 1,
  links: 0,
  logins: 0,
  can_take_over: { webhooks: true, campaigns: true },
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
  setup_link: z
    .object({
      created_at: moment('When the link was created.'),
      expires_at: moment('When the link expires.'),
      created_by: z
        .object({ user_id: uuid('Id of the user.'), name: said('Name of the user.') })
        .nullable()
        .meta({ description: 'Who created it; null for an operator at the terminal, or if unknown.' }),
    })
    .nullable()
    .meta({ description: 'The newest set-up link of the user that still works; null if there is none.' }),
})
const madeOut = z.object({
  webhooks: z
    .array(
      z.object({
        id: uuid('Id of the webhook.'),
        url: said('Address of the endpoint.'),
        active: z.boolean().meta({ description: 'Whether Parley delivers events to it.' }),
      }),
    )
    .meta({ description: 'Webhooks that the member made.' }),
  campaigns: z
    .array(
      z.object({
        id: uuid('Id of the campaign or broadcast.'),
        name: z.string().nullable().meta({ description: 'Name of the campaign.' }),
        kind: z.enum(['scoped', 'contacts', 'broadcast']).meta({ description: 'What it is.' }),
        status: z
          .enum(['scheduled', 'queued', 'sending', 'paused'])
          .meta({ description: 'Status of the campaign.' }),
        stop: z.enum(['pause', 'cancel']).meta({
          description: 'What stopping does: only campaigns with steps can be paused, others are cancelled.',
        }),
      }),
    )
    .meta({ description: 'Campaigns and broadcasts of the member that would still send.' }),
  keys: count('Live keys, which are revoked.'),
  links: count('Open set-up links that the member made, which expire.'),
  logins: count('Logins of accounts that the member has in progress, which are cancelled.'),
  can_take_over: z
    .object({
      webhooks: z.boolean().meta({ description: 'Whether the caller may take webhooks over.' }),
      campaigns: z.boolean().meta({ description: 'Whether the caller may take campaigns over.' }),
    })
    .meta({ description: 'What the caller may take over. A member cannot take over what is their own.' }),
})
const idsIn = z.array(z.uuid()).max(1_000)
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
      const link = (await mayLink(app.db, key))
        ? await makeSetupLink(app, actorOf(caller), user_id, workspace_id)
        : null
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
    touches: ['members', 'webhooks'],
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
    touches: ['members', 'assignees', 'webhooks', 'campaigns', 'accounts', 'keys'],
    params: memberParams,
    body: z.strictObject({
      take_over: z.strictObject({ webhooks: idsIn.optional(), campaigns: idsIn.optional() }).optional().meta({
        description:
          'What the caller takes over. All other webhooks of the member become inactive, their other campaigns are paused or, without steps, cancelled.',
      }),
    }),
    errors: ['not_found', 'conflict', 'missing_role', 'not_allowlisted', 'feature_disabled'],
    response: z.object(done),
    example: {
      params,
      body: {},
      response: { ok: true, message: 'The membership has ended, and its keys are revoked.' },
    },
    handle: async (app, { caller, params, body: { take_over = {} } }) => {
      const { webhooks = [], campaigns = [] } = take_over
      const isOwn = params.user_id.toLowerCase() === caller.user_id
      if (isOwn) requireNothingTaken([...webhooks, ...campaigns])
      else await requireManageable(app, caller, params)
      if (campaigns.length > 0) requireNeeds(await app.settings.current(), caller, takeOverNeeds) // guard: only those who may run campaigns take them over
      const taken = { taker_id: caller.user_id, webhooks, campaigns }
      await endMembership(app, actorOf(caller), { ...keyOf(caller, params), take_over: taken })
      return ok({ ok: true, message: 'The membership has ended, and its keys are revoked.' })
    },
  }),
  route({
    scopes: [],
    role: 'member',
    name: 'list_made',
    method: 'GET',
    path: '/members/{user_id}/made',
    summary: 'List what a member made and what ends with their membership',
    effect: 'read',
    params: memberParams,
    errors: ['not_found', 'missing_role'],
    response: madeOut,
    example: { params, response: made },
    handle: async (app, { caller, params }) => {
      const key = keyOf(caller, params)
      const isOwn = params.user_id.toLowerCase() === caller.user_id
      if (!isOwn) await requireManageable(app, caller, params)
      const settings = await app.settings.current()
      const can_take_over = {
        webhooks: !isOwn,
        campaigns: !isOwn && isCapable(settings, caller, takeOverNeeds),
      }
      return ok({ ...(await describeMade(app, key)), can_take_over })
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
      return ok(await makeSetupLink(app, actorOf(caller), params.user_id, caller.workspace_id))
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

function requireNothingTaken(ids: readonly string[]): void {
  if (ids.length === 0) return
  throw new ApiError('invalid_request', {
    detail: 'You cannot take over what is yours. Ask an admin to remove you, and to take it over.',
  })
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
