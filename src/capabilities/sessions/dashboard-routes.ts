/** Signing in and out, and a user's own sessions, profile and password. */
import { z } from 'zod'
import { endSession } from '../../access/sessions.ts'
import { givenPassword, newPassword } from '../../lib/passwords.ts'
import { said, uuid } from '../../lib/wire.ts'
import { ok, ownRoute, type Route, visitorRoute } from '../../route.ts'
import { describeProvider } from '../oidc/oidc.ts'
import { requireSetupLink, updateUser } from '../users/users.ts'
import {
  changePassword,
  describeSession,
  describeUser,
  listOwnSessions,
  prepareChange,
  prepareSetup,
  revokeOtherSessions,
  revokeSession,
  setUp,
} from './sessions.ts'
import { done, examples, listedSession, ownUser, ownWorkspace, provider, session } from './shapes.ts'
import { requirePassword, signIn } from './sign-in.ts'

const token = z.string().min(1, 'is required').max(200, 'is not the token of a set-up link')
const email = z.string().min(1, 'is required').max(320, 'must have at most 320 characters')

const forVisitors: readonly Route[] = [
  visitorRoute({
    name: 'get_sign_in',
    method: 'GET',
    path: '/sign-in',
    summary: 'List the ways to sign in',
    scopes: [],
    effect: 'read',
    response: z.object({ local: z.literal(true), oidc: provider }),
    example: { response: { local: true, oidc: null } },
    handle: async (app) => ok({ local: true, oidc: describeProvider(app) }),
  }),
  visitorRoute({
    name: 'sign_in',
    method: 'POST',
    path: '/sign-in',
    summary: 'Sign in with an e-mail address and a password',
    scopes: [],
    effect: 'local',
    body: z.strictObject({ email, password: givenPassword }),
    errors: ['sign_in_refused'],
    response: z.object({ user: ownUser }),
    example: {
      body: { email: examples.user.email, password: 'correct horse battery' },
      response: { user: examples.user },
    },
    // Compared before the transaction begins, which would hold a connection meanwhile.
    check: (app, caller, { body }) => requirePassword(app, caller, body),
    handle: async (app, tx, { caller, checked }) => ({
      status: 200,
      ...(await signIn(app, tx, caller, checked)),
      body: { user: await describeUser(tx, checked.user_id) },
    }),
  }),
  visitorRoute({
    name: 'look_at_setup',
    method: 'POST',
    path: '/setup/look',
    summary: 'Get the user of a set-up link',
    scopes: [],
    effect: 'read',
    body: z.strictObject({ token }),
    errors: ['not_found'],
    response: z.object({
      email: said('User of the link.'),
      expires_at: session.shape.expires_at,
      oidc: provider,
    }),
    example: {
      body: { token: 'VVnGmYqJ0kT3u1s8wQe7rXb5cN2aLd9fHpKzRtMoEiW' },
      response: { email: examples.user.email, expires_at: examples.session.expires_at, oidc: null },
    },
    handle: async (app, { body }) => {
      const { email, expires_at } = await requireSetupLink(app.db, body.token)
      return ok({ email, expires_at, oidc: describeProvider(app) })
    },
  }),
  visitorRoute({
    name: 'set_up',
    method: 'POST',
    path: '/setup',
    summary: 'Set a password with a set-up link',
    scopes: [],
    effect: 'local',
    body: z.strictObject({ token, password: newPassword }),
    errors: ['not_found'],
    response: z.object({ user: ownUser }),
    example: {
      body: { token: 'VVnGmYqJ0kT3u1s8wQe7rXb5cN2aLd9fHpKzRtMoEiW', password: 'correct horse battery' },
      response: { user: examples.user },
    },
    check: (app, _, { body }) => prepareSetup(app, body),
    handle: async (app, tx, { caller, body, checked }) => {
      const { user_id, ...signedIn } = await setUp(app, tx, caller, {
        token: body.token,
        password_hash: checked,
      })
      return { status: 200, ...signedIn, body: { user: await describeUser(tx, user_id) } }
    },
  }),
]

const sessionId = z.strictObject({ session_id: uuid('One of your own sessions.') })

const forUsers: readonly Route[] = [
  ownRoute({
    name: 'sign_out',
    method: 'POST',
    path: '/sign-out',
    summary: 'Sign out',
    scopes: [],
    effect: 'local',
    touches: ['sessions'],
    response: done,
    example: { response: { ok: true, message: 'You are signed out.' } },
    handle: async (_, tx, { caller: { user_id, via } }) => {
      await endSession(tx, { user_id, id: via.id })
      return { status: 200, session_token: null, body: { ok: true, message: 'You are signed out.' } }
    },
  }),
  ownRoute({
    name: 'get_session',
    method: 'GET',
    path: '/session',
    summary: 'Get the signed-in user',
    scopes: [],
    effect: 'read',
    response: z.object({
      user: ownUser,
      session,
      workspaces: z.array(ownWorkspace),
      base_url: said('Address of this instance.'),
      version: said('Version of Parley.'),
    }),
    example: {
      response: {
        user: examples.user,
        session: examples.session,
        workspaces: [examples.workspace],
        base_url: 'https://parley.example.com',
        version: '1.0.0',
      },
    },
    handle: async (app, { caller }) => ok(await describeSession(app, caller)),
  }),
  ownRoute({
    name: 'update_profile',
    method: 'PATCH',
    path: '/profile',
    summary: 'Update your profile',
    scopes: [],
    effect: 'admin',
    touches: ['sessions'],
    body: z.strictObject({
      name: z.string().optional(),
      time_zone: z.string().min(1).max(64).nullable().optional(),
    }),
    response: z.object({ user: ownUser }),
    example: { body: { name: 'Ana', time_zone: 'Europe/Berlin' }, response: { user: examples.user } },
    handle: async (app, { caller: { user_id }, body }) => {
      await updateUser(app, `user:${user_id}`, { id: user_id, ...body })
      return ok({ user: await describeUser(app.db, user_id) })
    },
  }),
  ownRoute({
    name: 'change_password',
    method: 'POST',
    path: '/password',
    summary: 'Change your password and end all other sessions',
    scopes: [],
    effect: 'local',
    touches: ['sessions'],
    body: z.strictObject({ current_password: givenPassword.optional(), password: newPassword }),
    errors: ['sign_in_refused'],
    response: done,
    example: {
      body: { current_password: 'correct horse battery', password: 'another horse battery' },
      response: { ok: true, message: 'The password is changed. You are signed out everywhere else.' },
    },
    check: (app, caller, { body }) => prepareChange(app, caller, body),
    handle: async (app, tx, { caller, checked }) => {
      const body = { ok: true, message: 'The password is changed. You are signed out everywhere else.' }
      return { ...ok(body), ...(await changePassword(app, tx, caller, checked)) }
    },
  }),
  ownRoute({
    name: 'list_sessions',
    method: 'GET',
    path: '/sessions',
    summary: 'List your sessions',
    scopes: [],
    effect: 'read',
    response: z.object({ sessions: z.array(listedSession) }),
    example: {
      response: {
        sessions: [
          {
            ...examples.session,
            last_seen_at: '2026-11-15T09:31:00.000Z',
            user_agent: 'Mozilla/5.0',
            current: true,
            identity: { issuer: 'local' },
          },
        ],
      },
    },
    handle: async (app, { caller }) => ok({ sessions: await listOwnSessions(app, caller) }),
  }),
  ownRoute({
    name: 'revoke_session',
    method: 'POST',
    path: '/sessions/{session_id}/revoke',
    summary: 'End one of your sessions',
    scopes: [],
    effect: 'local',
    touches: ['sessions'],
    params: sessionId,
    malformed: 'not_found',
    errors: ['not_found'],
    response: done,
    example: {
      params: { session_id: examples.session.id },
      response: { ok: true, message: 'The session has ended.' },
    },
    handle: async (app, tx, { caller, params: { session_id } }) => {
      await revokeSession(app, tx, caller, session_id)
      const body = { ok: true, message: 'The session has ended.' }
      return session_id === caller.via.id ? { status: 200, session_token: null, body } : ok(body)
    },
  }),
  ownRoute({
    name: 'revoke_other_sessions',
    method: 'POST',
    path: '/sessions/revoke-others',
    summary: 'End all of your sessions but this one',
    scopes: [],
    effect: 'local',
    touches: ['sessions'],
    response: done.extend({ revoked: z.int() }),
    example: { response: { ok: true, message: '2 other sessions have ended.', revoked: 2 } },
    handle: async (app, tx, { caller }) => {
      const revoked = await revokeOtherSessions(app, tx, caller)
      const message = revoked === 1 ? '1 other session has ended.' : `${revoked} other sessions have ended.`
      return ok({ ok: true, message, revoked })
    },
  }),
]

export const ownRoutes: readonly Route[] = [...forVisitors, ...forUsers]
