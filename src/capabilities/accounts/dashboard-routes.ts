/** Accounts on the dashboard: members read, admins and owners change. Operators see those that need a person. */
import { z } from 'zod'
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { accountId, text } from '../../lib/shapes.ts'
import { momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, ownRoute, type Reply, type Route, route } from '../../route.ts'
import { coldMax } from '../../rules/limits.ts'
import { actorOf } from '../audit/audit.ts'
import { changeAccount } from './account-changes.ts'
import { statuses } from './account-row.ts'
import { accountOut } from './account-shapes.ts'
import {
  describeDay,
  listAccountViews,
  listTroubled,
  requireAccountView,
  requireOwnAccount,
} from './account-views.ts'
import { createAccount, setAccountEnabled } from './accounts.ts'
import { requestLogout } from './login-requests.ts'
import { loginRoutes } from './login-routes.ts'

const accountExample = {
  id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
  platform: 'telegram',
  name: 'Sales',
  status: 'READY',
  status_reason: null,
  created_at: '2026-11-15T09:30:00.000Z',
  platform_user: { id: '1000', username: 'acme_sales', phone: '+43 … 118' },
  login_stored: true,
  live: true,
  not_live_since: null,
  sync: { phase: 'history', done: 37, total: 50 },
  gap_since: null,
  login_code_at: null,
  today: {
    campaign_messages: { used: 12, limit: 30 },
    first_messages: { used: 8, limit: 10 },
    lookups: { used: 6, limit: 200 },
  },
  sends_wait_until: null,
  lookups_wait_until: null,
  reading_waits_until: null,
  first_messages_stopped_at: null,
  campaigns_held_at: null,
  cold_per_day: 10,
  proxy: 'socks5://proxy.example.com:1080',
  sent_per_day: [0, 4, 12],
  strikes: [{ kind: 'flood_wait', at: '2026-11-14T10:47:00.000Z', seconds: 1_920 }],
  waiting: [{ campaign_id: '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7d01', name: 'Autumn lamps', recipients: 27 }],
}

const members = { scopes: [], role: 'member' } as const
const admins = { scopes: [], role: 'admin' } as const

const params = z.strictObject({ account_id: accountId })
const example = { account_id: accountExample.id }
const one = z.object({ account: accountOut })
const answer = { account: accountExample }

const settings = {
  cold_per_day: z
    .int()
    .min(0)
    .max(coldMax)
    .nullable()
    .optional()
    .meta({ description: 'Daily limit of first messages to people who never wrote; null: none.' }),
  proxy: z
    .string()
    .nullable()
    .optional()
    .meta({ description: 'URL of a SOCKS5 or HTTP proxy, with credentials if it needs them; null: none.' }),
}

const accountRoutes: readonly Route[] = [
  route({
    ...members,
    name: 'list_accounts',
    method: 'GET',
    path: '/accounts',
    summary: 'List accounts',
    effect: 'read',
    response: z.object({
      accounts: z.array(accountOut),
      timezone: said('Time zone of the workspace, in which its days end.'),
      today: said('The day of the workspace, such as 2026-11-15.'),
      platforms: z.array(z.string()).meta({ description: 'Platforms that the running workers can drive.' }),
    }),
    example: {
      response: {
        accounts: [accountExample],
        timezone: 'Europe/Vienna',
        today: '2026-11-15',
        platforms: ['telegram'],
      },
    },
    handle: async (app, { caller }) =>
      ok({
        accounts: await listAccountViews(app, caller),
        ...(await describeDay(app.db, caller.workspace_id)),
      }),
  }),
  route({
    ...members,
    name: 'get_account',
    method: 'GET',
    path: '/accounts/{account_id}',
    summary: 'Get an account',
    effect: 'read',
    params,
    errors: ['not_found'],
    response: one,
    example: { params: example, response: answer },
    handle: async (app, { caller, params: { account_id } }) => reply(app, caller, account_id),
  }),
  route({
    ...admins,
    name: 'create_account',
    method: 'POST',
    path: '/accounts',
    summary: 'Create an account',
    effect: 'admin',
    touches: ['accounts'],
    statuses: [201],
    errors: ['conflict'],
    body: z.strictObject({
      name: text(200),
      platform: z.enum(['telegram', 'sandbox']).default('telegram').meta({ description: 'Its platform.' }),
      ...settings,
    }),
    response: one,
    example: {
      body: { name: 'Sales', proxy: 'socks5://user:secret@proxy.example.com:1080' },
      response: answer,
    },
    handle: async (app, { caller, body }) => {
      const { workspace_id } = caller
      const { id } = await createAccount(app, actorOf(caller), { workspace_id, ...body })
      return { ...(await reply(app, caller, id)), status: 201 }
    },
  }),
  route({
    ...admins,
    name: 'update_account',
    method: 'PATCH',
    path: '/accounts/{account_id}',
    summary: 'Change the name, the limit or the proxy of an account',
    effect: 'admin',
    touches: ['accounts'],
    params,
    body: z
      .strictObject({ name: text(200).optional(), ...settings })
      .refine((body) => Object.values(body).some((value) => value !== undefined), {
        message: 'must name at least one of name, cold_per_day and proxy',
      }),
    errors: ['not_found'],
    response: one,
    example: { params: example, body: { cold_per_day: 10 }, response: answer },
    handle: async (app, { caller, params: { account_id: id }, body }) => {
      await requireOwnAccount(app.db, caller.workspace_id, id)
      await changeAccount(app, actorOf(caller), { id, ...body })
      return reply(app, caller, id)
    },
  }),
  enabling({ name: 'enable_account', summary: 'Enable an account', enabled: true }),
  enabling({ name: 'disable_account', summary: 'Disable an account', enabled: false }),
]

function enabling({ name, summary, enabled }: { name: string; summary: string; enabled: boolean }): Route {
  return route({
    ...admins,
    name,
    method: 'POST',
    path: `/accounts/{account_id}/${enabled ? 'enable' : 'disable'}`,
    summary,
    effect: 'admin',
    touches: ['accounts'],
    params,
    errors: enabled ? ['not_found', 'conflict'] : ['not_found'],
    response: one,
    example: { params: example, response: answer },
    handle: async (app, { caller, params: { account_id: id } }) => {
      await requireOwnAccount(app.db, caller.workspace_id, id)
      await setAccountEnabled(app, actorOf(caller), { id, enabled })
      return reply(app, caller, id)
    },
  })
}

async function reply(app: App, caller: Caller, id: string): Promise<Reply> {
  return ok({ account: await requireAccountView(app, caller, id) })
}

const logout = route({
  ...admins,
  name: 'log_out_account',
  method: 'POST',
  path: '/accounts/{account_id}/logout',
  summary: 'Log an account out',
  description:
    'Ends its login on the platform and deletes the key. Returns once a worker has done so; the history stays.',
  effect: 'admin',
  touches: ['accounts'],
  params,
  errors: ['not_found', 'conflict', 'provider_unavailable', 'flood_wait'],
  response: one,
  example: {
    params: example,
    response: { account: { ...accountExample, status: 'NEEDS_LOGIN', live: false } },
  },
  handle: async (app, { caller, params: { account_id } }) => {
    const { workspace_id } = caller
    await requireOwnAccount(app.db, workspace_id, account_id)
    await requestLogout(app, actorOf(caller), { workspace_id, account_id })
    return reply(app, caller, account_id)
  },
})

export const workspaceRoutes: readonly Route[] = [...accountRoutes, ...loginRoutes, logout]

const troubled = {
  id: accountExample.id,
  workspace_id: '0199a1f0-0000-7000-8000-000000000001',
  workspace_name: 'Acme',
  platform: 'telegram',
  name: 'Sales',
  status: 'NEEDS_LOGIN',
  status_reason: 'The session was ended on another device. Log it in.',
  first_messages_stopped_at: null,
  campaigns_held_at: null,
  campaigns_held_by: null,
}

export const ownRoutes: readonly Route[] = [
  ownRoute({
    scopes: [],
    operator: true,
    name: 'list_troubled_accounts',
    method: 'GET',
    path: '/accounts',
    summary: 'List the accounts of all workspaces that need a person',
    effect: 'read',
    response: z.object({
      accounts: z
        .array(
          z.object({
            id: said('Id of the account.'),
            workspace_id: uuid('Its workspace.'),
            workspace_name: said('Name of its workspace.'),
            platform: said('Its platform.'),
            name: said('Its name.'),
            status: z.enum(statuses),
            status_reason: z
              .string()
              .nullable()
              .meta({ description: 'Why, as a sentence; null if unknown.' }),
            first_messages_stopped_at: momentOrNull(
              'When the platform stopped its first messages; null if it did not.',
            ),
            campaigns_held_at: momentOrNull('When its campaign messages began to hold; null: they do not.'),
            campaigns_held_by: z
              .string()
              .nullable()
              .meta({ description: 'The unknown error because of which they hold; null: they do not.' }),
          }),
        )
        .meta({ description: 'At most 1,000.' }),
    }),
    example: { response: { accounts: [troubled] } },
    handle: async ({ db }) => ok({ accounts: await listTroubled(db, 1_000) }),
  }),
]
