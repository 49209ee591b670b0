/** Keys on the dashboard: members make and revoke their own, admins see and revoke all of the workspace. */
import { z } from 'zod'
import { hasRole } from '../../access/needs.ts'
import { type Caller, keyIssuers, scopes } from '../../contract.ts'
import { ApiError } from '../../lib/errors.ts'
import { text, time } from '../../lib/shapes.ts'
import { moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { createKey, listKeysOf, requireKeyOf, revokeKey } from './keys.ts'

const params = { key_id: '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7d01' }
const key = {
  id: params.key_id,
  name: 'crm sync',
  prefix: 'svc_live_aB3dE5',
  scopes: ['read'],
  mcp_only: false,
  issued_by: 'user',
  user: { id: '0199a1f0-0000-7000-8000-000000000002', email: 'ana@acme.example' },
  created_at: '2026-11-15T09:30:00.000Z',
  expires_at: null,
  revoked_at: null,
  last_used_at: null,
}

const keyOut = z.object({
  id: uuid('Id of the key.'),
  name: said('Name of the key.'),
  prefix: said('First characters of the key.'),
  scopes: z.array(z.enum(scopes)),
  mcp_only: z.boolean().meta({ description: 'Whether the key works for MCP only.' }),
  issued_by: z.enum(keyIssuers).nullable().meta({
    description:
      'Who issued it: the owner, whose role then limits it, or an operator at the terminal. Null for keys from before Parley stored this; they count as issued by their owner.',
  }),
  user: z.object({ id: uuid('Owner of the key.'), email: said('E-mail address of the owner.') }),
  created_at: moment('When the key was created.'),
  expires_at: momentOrNull('When the key expires; null if never.'),
  revoked_at: momentOrNull('When the key was revoked; null if it was not.'),
  last_used_at: momentOrNull('Last use, to the minute; null if never used.'),
})

const needs = { scopes: [], role: 'member' } as const

export const workspaceRoutes: readonly Route[] = [
  route({
    ...needs,
    name: 'list_keys',
    method: 'GET',
    path: '/keys',
    summary: 'List keys',
    effect: 'read',
    response: z.object({ keys: z.array(keyOut) }),
    example: { response: { keys: [key] } },
    handle: async ({ db }, { caller }) => ok({ keys: await listKeysOf(db, visibleTo(caller)) }),
  }),
  route({
    ...needs,
    name: 'create_key',
    method: 'POST',
    path: '/keys',
    summary: 'Create a key',
    effect: 'admin',
    touches: ['keys'],
    statuses: [201],
    body: z.strictObject({
      name: text(200),
      scopes: z.array(z.enum(scopes)).min(1, 'must name at least one scope').max(scopes.length),
      expires_at: time.optional(),
      mcp_only: z.boolean().optional(),
    }),
    errors: ['conflict'],
    response: z.object({
      key: keyOut,
      secret: said('The key itself. Parley stores only its hash, so this is the only time it is shown.'),
    }),
    example: {
      body: { name: 'crm sync', scopes: ['read'] },
      response: { key, secret: 'svc_live_aB3dE5…' },
    },
    handle: async (app, { caller, body }) => {
      requireOwnScopes(caller, body.scopes) // guard: no key beyond its maker
      const { workspace_id, user_id } = caller
      const made = await createKey(app, actorOf(caller), { workspace_id, user_id, ...body })
      return {
        status: 201,
        body: { key: await requireKeyOf(app.db, visibleTo(caller), made.id), secret: made.key },
      }
    },
  }),
  route({
    ...needs,
    name: 'revoke_key',
    method: 'POST',
    path: '/keys/{key_id}/revoke',
    summary: 'Revoke a key',
    effect: 'admin',
    touches: ['keys'],
    params: z.strictObject({ key_id: z.string() }),
    errors: ['not_found'],
    response: z.object({ key: keyOut }),
    example: { params, response: { key: { ...key, revoked_at: '2026-11-15T10:00:00.000Z' } } },
    handle: async (app, { caller, params: { key_id } }) => {
      const visible = visibleTo(caller)
      await requireKeyOf(app.db, visible, key_id)
      await revokeKey(app, actorOf(caller), key_id)
      return ok({ key: await requireKeyOf(app.db, visible, key_id) })
    },
  }),
]

/** Admins see every key of the workspace, members only their own. */
function visibleTo(caller: Caller): { workspace_id: string; user_id: string | null } {
  return { workspace_id: caller.workspace_id, user_id: hasRole(caller, 'admin') ? null : caller.user_id }
}

/** A user cannot make a key with more rights than their own. */
function requireOwnScopes(caller: Caller, wanted: readonly string[]): void {
  const beyond = wanted.filter((scope) => !caller.scopes.some((own) => own === scope))
  if (beyond.length > 0) {
    throw new ApiError('missing_scope', {
      detail: `Your role does not include these scopes, so your keys cannot have them: ${beyond.join(', ')}.`,
    })
  }
}
