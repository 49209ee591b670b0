/** What signed-in users see and change about themselves: profile, sessions, password. */
import { issueDeviceToken } from '../../access/devices.ts'
import { beginSession, endOtherSessions, endSession, listSessions } from '../../access/sessions.ts'
import type { App } from '../../app.ts'
import { type Role, type Scope, scopesOfRole, type UserCaller, type Visitor } from '../../contract.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { notFound } from '../../lib/names.ts'
import { hashPassword, isPassword, type PasswordTurn } from '../../lib/passwords.ts'
import { version } from '../../lib/version.ts'
import { record } from '../audit/audit.ts'
import { consumeSetupLink, requireSetupLink, requireUser, setPassword, type User } from '../users/users.ts'
import { countAttempts, type SignedIn } from './sign-in.ts'

type OwnUser = Pick<User, 'id' | 'email' | 'name' | 'operator' | 'time_zone' | 'has_password'>

/** A user as shown to themselves. */
export async function describeUser(db: Db, user_id: string): Promise<OwnUser> {
  const { id, email, name, operator, time_zone, has_password } = await requireUser(db, user_id)
  return { id, email, name, operator, time_zone, has_password }
}

interface OwnWorkspace {
  readonly id: string
  readonly name: string
  readonly role: Role
  /** Null: it is enabled. */
  readonly disabled_at: Date | null
}

interface SessionDescription {
  readonly user: OwnUser
  readonly session: { readonly id: string; readonly created_at: Date; readonly expires_at: Date }
  readonly workspaces: readonly (OwnWorkspace & { readonly scopes: readonly Scope[] })[]
  readonly base_url: string
  readonly version: string
}

export async function describeSession(app: App, { user_id, via }: UserCaller): Promise<SessionDescription> {
  const [user, session, workspaces] = await Promise.all([
    describeUser(app.db, user_id),
    app.db.one<SessionDescription['session']>(
      sql`select id, created_at, expires_at from sessions where id = ${via.id}`,
    ),
    app.db.rows<OwnWorkspace>(sql`
      select w.id, w.name, m.role, w.disabled_at from memberships m join workspaces w on w.id = m.workspace_id
      where m.user_id = ${user_id} and m.ended_at is null order by w.name, w.id`),
  ])
  return {
    user,
    session,
    workspaces: workspaces.map((each) => ({ ...each, scopes: scopesOfRole[each.role] })),
    base_url: app.base_url(),
    version,
  }
}

export async function listOwnSessions(app: App, { user_id, via }: UserCaller) {
  const sessions = await listSessions(app.db, user_id)
  return sessions.map((session) => ({ ...session, current: session.id === via.id }))
}

/** Revokes one of the user's own sessions. Another user's session is reported as not found. */
export async function revokeSession(app: App, tx: Tx, caller: UserCaller, id: string): Promise<void> {
  const { user_id } = caller
  if (!(await endSession(tx, { user_id, id }))) throw notFound('session', id)
  await record(app, tx, `user:${user_id}`, { action: 'session.revoked', target: id })
}

export async function revokeOtherSessions(app: App, tx: Tx, { user_id, via }: UserCaller): Promise<number> {
  const revoked = await endOtherSessions(tx, { user_id, except: via.id })
  if (revoked > 0) {
    await record(app, tx, `user:${user_id}`, {
      action: 'session.others_revoked',
      target: user_id,
      detail: { revoked },
    })
  }
  return revoked
}

/** How often a password may be guessed in a session that was left open. */
const guesses = { limit: 10, seconds: 900 }

interface Change {
  readonly current_password?: string | undefined
  readonly password: string
}

interface PreparedChange {
  /** The stored hash; null if there was no password before. */
  readonly before: string | null
  readonly password_hash: string
}

/** Returns the new hash once the current password, if there is one, was given correctly. */
export async function prepareChange(
  app: App,
  { user_id }: UserCaller,
  change: Change,
): Promise<PreparedChange> {
  const { password_hash } = await app.db.one<{ password_hash: string | null }>(
    sql`select password_hash from users where id = ${user_id}`,
  )
  const turn: PasswordTurn = { lane: 'known', source: user_id }
  if (password_hash !== null) {
    await countAttempts(app, [{ caller: `password:${user_id}`, rule: guesses }])
    if (!(await isPassword(change.current_password ?? '', password_hash, turn))) {
      throw new ApiError('sign_in_refused', { detail: 'The current password is wrong.' })
    }
  }
  return { before: password_hash, password_hash: await hashPassword(change.password, turn) }
}

/**
 * Signs out every other session, because another person may have known the old password. If this session was ended that
 * way while passwords were compared, it must not undo that.
 */
export async function changePassword(
  app: App,
  tx: Tx,
  { user_id, via }: UserCaller,
  { before, password_hash }: PreparedChange,
): Promise<Pick<SignedIn, 'device_token'>> {
  const still = await tx.maybe(sql`
    select 1 from users where id = ${user_id} and password_hash is not distinct from ${before}
      and exists (select from sessions where id = ${via.id} and revoked_at is null) -- guard: a session that has ended
    for update`)
  if (!still) throw new ApiError('not_signed_in')
  await setPassword(app, tx, `user:${user_id}`, { user_id, password_hash })
  await endOtherSessions(tx, { user_id, except: via.id })
  // The previous device token was bound to the old password.
  const known = { token: via.device_token, password_hash: before }
  return { device_token: await issueDeviceToken(app, { user_id, password_hash }, known) }
}

/** Returns the hash to store. An invalid link costs no hash. */
export async function prepareSetup(
  app: App,
  { token, password }: { token: string; password: string },
): Promise<string> {
  const { user_id } = await requireSetupLink(app.db, token) // guard: no hash for a link that is not good
  return hashPassword(password, { lane: 'setup', source: user_id }) // guard: links have their own queue
}

/** Sets the password that the user chose behind a set-up link and signs them in; earlier sessions end. */
export async function setUp(
  app: App,
  tx: Tx,
  visitor: Visitor,
  { token, password_hash }: { token: string; password_hash: string },
): Promise<SignedIn & { user_id: string }> {
  const user_id = await consumeSetupLink(tx, token)
  const { issuer, subject } = await setPassword(app, tx, `user:${user_id}`, { user_id, password_hash })
  await endOtherSessions(tx, { user_id, except: null })
  const session_token = await beginSession(tx, visitor, { user_id, issuer, subject })
  return { user_id, session_token, device_token: await issueDeviceToken(app, { user_id, password_hash }) }
}
