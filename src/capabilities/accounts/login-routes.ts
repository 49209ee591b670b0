/** Logins and logouts at the dashboard: start, read, answer, cancel. */
import { z } from 'zod'
import { hasRole } from '../../access/needs.ts'
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { ApiError, errors } from '../../lib/errors.ts'
import { accountId, text } from '../../lib/shapes.ts'
import { moment, said } from '../../lib/wire.ts'
import { loginCodeWays } from '../../platform/port.ts'
import { ok, type Reply, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { requireOwnAccount } from './account-views.ts'
import { answerLogin, beginLogin, findLogin, giveUpLogin } from './login-requests.ts'

const params = z.strictObject({ account_id: accountId })
const example = { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z' }
const path = '/accounts/{account_id}/login'
const admins = { scopes: [], role: 'admin' } as const

const textOrNull = (description: string) => z.string().nullable().meta({ description })

const loginOut = z
  .object({
    way: z.enum(['qr', 'phone']),
    state: z.enum(['qr', 'code', 'password', 'done', 'failed']),
    begun_at: moment('When it began.'),
    expires_at: moment('When it times out.'),
    pending: z
      .boolean()
      .meta({ description: 'Whether Parley waits for the platform: there is nothing to scan or type yet.' }),
    qr_url: textOrNull('The text of the QR code; null: there is none now.'),
    qr_expires_at: textOrNull('When the next QR code replaces it.'),
    sent_by: z
      .enum(loginCodeWays)
      .nullable()
      .meta({ description: 'How the platform has sent the code; null: no code is asked for.' }),
    place: textOrNull(
      'Where the code is: an address to open, or part of an e-mail address; null: not known.',
    ),
    again: z
      .object({
        by: z.enum(loginCodeWays).meta({ description: 'How it is sent then.' }),
        at: moment('From when on.'),
      })
      .nullable()
      .meta({ description: 'How the code can be sent again; null: it cannot.' }),
    hint: textOrNull('The user’s own hint for the two-step password; null: none.'),
    wrong: z.boolean().meta({ description: 'Whether the previous input was wrong.' }),
    tries_left: z.int().nullable().meta({ description: 'Attempts left; null: nothing is asked for.' }),
    failure: z
      .object({
        code: z.enum(Object.keys(errors) as [string]),
        error: said('Why it failed, as a sentence.'),
        retry_after: z
          .int()
          .nullable()
          .meta({ description: 'Seconds to wait before the next login; null: none.' }),
      })
      .nullable(),
  })
  .meta({ id: 'AccountLogin', description: 'The current login of an account, or the last one.' })

const response = z.object({ login: loginOut.nullable().meta({ description: 'Null: there was none.' }) })
const login = {
  way: 'phone',
  state: 'code',
  begun_at: '2026-11-15T09:30:00.000Z',
  expires_at: '2026-11-15T09:40:00.000Z',
  pending: false,
  qr_url: null,
  qr_expires_at: null,
  sent_by: 'app',
  place: null,
  again: { by: 'sms', at: '2026-11-15T09:32:00.000Z' },
  hint: null,
  wrong: false,
  tries_left: 3,
  failure: null,
}

/** An empty answer to the question for a code has it sent again. */
function answerOf({ kind, text }: { kind: 'code' | 'password' | 'again'; text?: string | undefined }) {
  if (kind === 'again') return { kind: 'code', text: '' } as const // guard: an answer that asks for the code again
  if (text === undefined) throw new ApiError('invalid_request', { detail: 'text is required.' })
  return { kind, text }
}

export const loginRoutes: readonly Route[] = [
  route({
    ...admins,
    name: 'begin_login',
    method: 'POST',
    path,
    summary: 'Begin the login of an account',
    effect: 'admin',
    touches: ['accounts'],
    params,
    body: z.strictObject({
      phone: z
        .string()
        .regex(/^\+[1-9]\d{6,14}$/, 'must be in international form, such as +4915112345678')
        .optional()
        .meta({ description: 'Phone number of the account; without it, by a QR code.' }),
    }),
    errors: ['not_found', 'conflict', 'rate_limited', 'provider_unavailable'],
    response,
    example: { params: example, body: {}, response: { login } },
    handle: async (app, { caller, params: { account_id }, body }) => {
      await requireOwnAccount(app.db, caller.workspace_id, account_id)
      const { workspace_id } = caller
      await beginLogin(app, actorOf(caller), { workspace_id, account_id, phone: body.phone ?? null })
      return reply(app, caller, account_id)
    },
  }),
  route({
    scopes: [],
    role: 'member',
    name: 'get_login',
    method: 'GET',
    path,
    summary: 'Read the login of an account',
    effect: 'read',
    params,
    errors: ['not_found'],
    response,
    example: { params: example, response: { login } },
    handle: async (app, { caller, params: { account_id } }) => {
      await requireOwnAccount(app.db, caller.workspace_id, account_id)
      return reply(app, caller, account_id)
    },
  }),
  route({
    ...admins,
    name: 'answer_login',
    method: 'POST',
    path: `${path}/answer`,
    summary: 'Answer the login of an account',
    effect: 'admin',
    touches: ['accounts'],
    params,
    body: z.strictObject({
      kind: z
        .enum(['code', 'password', 'again'])
        .meta({ description: 'What the text is; `again`: none, the code is to be sent again.' }),
      text: text(256)
        .optional()
        .meta({ description: 'The code that the platform has sent, or the two-step password.' }),
    }),
    errors: ['not_found', 'conflict'],
    response,
    example: {
      params: example,
      body: { kind: 'code', text: '12345' },
      response: { login: { ...login, pending: true } },
    },
    handle: async (app, { caller, params: { account_id }, body }) => {
      await requireOwnAccount(app.db, caller.workspace_id, account_id)
      await answerLogin(app, { account_id, ...answerOf(body) })
      return reply(app, caller, account_id)
    },
  }),
  route({
    ...admins,
    name: 'give_up_login',
    method: 'DELETE',
    path,
    summary: 'Give up the login of an account',
    effect: 'admin',
    touches: ['accounts'],
    params,
    errors: ['not_found'],
    response,
    example: {
      params: example,
      response: {
        login: {
          ...login,
          state: 'failed',
          sent_by: null,
          again: null,
          tries_left: null,
          failure: { code: 'conflict', error: 'The login was cancelled.', retry_after: null },
        },
      },
    },
    handle: async (app, { caller, params: { account_id } }) => {
      await requireOwnAccount(app.db, caller.workspace_id, account_id)
      await giveUpLogin(app, actorOf(caller), { workspace_id: caller.workspace_id, account_id })
      return reply(app, caller, account_id)
    },
  }),
]

async function reply(app: App, caller: Caller, account_id: string): Promise<Reply> {
  return ok({ login: await findLogin(app, account_id, { mayAnswer: hasRole(caller, 'admin') }) })
}
