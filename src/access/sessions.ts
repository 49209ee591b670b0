/** Dashboard sessions: signing in starts one, every request looks it up, a timeout or a person ends it. */
import { randomBytes } from 'node:crypto'
import type { App } from '../app.ts'
import type { Caller, Identity, Role, UserCaller, Visitor } from '../contract.ts'
import { scopesOfRole } from '../contract.ts'
import { given } from '../db/given.ts'
import { type Db, sql, type Tx } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import { isUuid, newId } from '../lib/ids.ts'
import { sha256 } from '../lib/secrets.ts'

/** How long a session lasts, however busy it is. */
export const sessionHours = 12
const idleHours = 2
const userAgentLengthMax = 300
/** Far more than the browsers of one person. Each session may open streams and has a rate of its own. */
const sessionsMax = 20

/** Whether a session is still valid, in domain time. */
const alive = sql`s.revoked_at is null and s.expires_at > domain_now()
  and s.last_seen_at > domain_now() - make_interval(hours => ${idleHours})`

interface SessionRow extends Identity {
  readonly id: string
  readonly user_id: string
  readonly operator: boolean
  /** As the database spells it: a path may have capital letters, and limits count by this spelling. */
  readonly workspace_id: string | null
  readonly role: Role | null
  readonly disabled: boolean
  /** Whether `last_seen_at` is over a minute old. It is stored to the minute, so that most requests write nothing. */
  readonly last_seen_stale: boolean
}

export interface SignedInUser {
  readonly user: UserCaller
  /** The same user in the requested workspace, if they are a member. */
  readonly member: Caller | undefined
  /** The requested workspace is disabled; false unless they are a member. */
  readonly disabled: boolean
}

interface SessionRequest {
  readonly token: string | undefined
  readonly workspace_id: string | undefined
  /** Whether the request counts as use of the session, which keeps it from ending. */
  readonly used: boolean
  readonly device_token?: string | undefined
}

/** The user behind the cookie, and their role in the workspace. Nothing is cached between two requests. */
export async function requireSession(
  app: App,
  { token, workspace_id, used, device_token }: SessionRequest,
): Promise<SignedInUser> {
  const row = token && tokenForm.test(token) && (await findSession(app.db, token, workspace_id))
  if (!row) throw new ApiError('not_signed_in')
  const { id, user_id, operator, role, issuer, subject, idp_user_uuid } = row
  if (row.last_seen_stale && used)
    await app.db.run(sql`update sessions set last_seen_at = domain_now() where id = ${id}`)
  const identity = { issuer, subject, idp_user_uuid }
  const via = { kind: 'session', id, operator, identity, device_token } as const
  const user: UserCaller = { user_id, via: { ...via, role: null } }
  if (!row.workspace_id || !role) return { user, member: undefined, disabled: false }
  const scopes = scopesOfRole[role] // guard: scopes of a role
  const member = { workspace_id: row.workspace_id, user_id, scopes, via: { ...via, role } }
  return { user, member, disabled: row.disabled }
}

function findSession(
  db: Db,
  token: string,
  workspace_id: string | undefined,
): Promise<SessionRow | undefined> {
  const wanted = workspace_id !== undefined && isUuid(workspace_id) ? workspace_id : null
  return db.maybe<SessionRow>(sql`
    select s.id, s.user_id, u.operator, i.issuer, i.subject, i.idp_user_uuid, m.workspace_id, m.role,
      w.disabled_at is not null as disabled,
      s.last_seen_at <= domain_now() - interval '1 minute' as last_seen_stale
    from sessions s join users u on u.id = s.user_id
      join identities i on i.issuer = s.issuer and i.subject = s.subject and i.user_id = s.user_id
      left join memberships m on m.user_id = s.user_id and m.workspace_id = ${wanted}::uuid and m.ended_at is null
      left join workspaces w on w.id = m.workspace_id
    where s.token_hash = ${sha256(token)} and ${alive} and u.disabled_at is null`)
}

/** Who a session belongs to, and whose marks it may receive. */
export interface Audience {
  readonly session_id: string
  readonly user_id: string
  readonly operator: boolean
  readonly workspaces: readonly string[]
}

/** Skips sessions that are no longer valid. Does not count as use of a session. */
export function listAudiences(db: Db, session_ids: readonly string[]): Promise<Audience[]> {
  return db.rows<Audience>(sql`
    select s.id as session_id, s.user_id, u.operator,
      array(select m.workspace_id from memberships m where m.user_id = s.user_id and m.ended_at is null) as workspaces
    from sessions s join users u on u.id = s.user_id
      join identities i on i.issuer = s.issuer and i.subject = s.subject and i.user_id = s.user_id
    where s.id = any(${session_ids}::uuid[]) and ${alive} and u.disabled_at is null`)
}

/** Those of the sessions whose user is still signed in and a member of the workspace, and whether that is disabled. */
export function listSignedIn(
  db: Db,
  asked: readonly { readonly id: string; readonly workspace_id: string }[],
): Promise<{ id: string; workspace_id: string; disabled: boolean }[]> {
  return db.rows(sql`
    select s.id, w.id as workspace_id, w.disabled_at is not null as disabled
    from ${given(asked, { id: 'uuid', workspace_id: 'uuid' })} as asked join sessions s on s.id = asked.id
      join users u on u.id = s.user_id
      join memberships m on m.user_id = s.user_id and m.workspace_id = asked.workspace_id and m.ended_at is null
      join workspaces w on w.id = m.workspace_id
    where ${alive} and u.disabled_at is null`)
}

/** 32 random bytes. */
const tokenForm = /^[\w-]{43}$/

/**
 * Starts a session with a new token and ends the one in the request's cookie, so that an attacker cannot plant a session.
 * Ends the user's oldest session if they have too many.
 */
export async function beginSession(
  tx: Tx,
  { via }: Visitor,
  { user_id, issuer, subject }: { user_id: string } & Pick<Identity, 'issuer' | 'subject'>,
): Promise<string> {
  // Two sign-ins of one user count one after the other.
  await tx.run(sql`select 1 from users where id = ${user_id} for no key update`)
  if (via.session_token !== undefined) {
    await tx.run(sql`
      update sessions set revoked_at = domain_now()
      where token_hash = ${sha256(via.session_token)} and revoked_at is null`)
  }
  const token = randomBytes(32).toString('base64url')
  const id = newId()
  await tx.run(sql`
    insert into sessions (id, token_hash, user_id, issuer, subject, user_agent, expires_at)
    values (${id}, ${sha256(token)}, ${user_id}, ${issuer}, ${subject},
      ${[...via.user_agent].slice(0, userAgentLengthMax).join('')}, domain_now() + make_interval(hours => ${sessionHours}))`)
  await tx.run(sql`
    update sessions set revoked_at = domain_now() where id in (
      select s.id from sessions s where s.user_id = ${user_id} and s.id <> ${id} and ${alive}
      order by s.created_at desc, s.id desc
      offset ${sessionsMax - 1} -- guard: sessions of a user
    )`)
  return token
}

interface ListedSession {
  readonly id: string
  readonly created_at: Date
  readonly last_seen_at: Date
  readonly expires_at: Date
  readonly user_agent: string
  readonly identity: Pick<Identity, 'issuer'>
}

/** Valid sessions, the most recently used first. */
export function listSessions(db: Db, user_id: string): Promise<ListedSession[]> {
  return db.rows<ListedSession>(sql`
    select s.id, s.created_at, s.last_seen_at, s.expires_at, s.user_agent,
      json_build_object('issuer', s.issuer) as identity
    from sessions s where s.user_id = ${user_id} and ${alive} order by s.last_seen_at desc, s.id desc`)
}

/** Returns whether it was a valid session of this user. */
export async function endSession(tx: Tx, { user_id, id }: { user_id: string; id: string }): Promise<boolean> {
  const ended = await tx.run(sql`
    update sessions s set revoked_at = domain_now() where s.user_id = ${user_id} and s.id = ${id} and ${alive}`)
  return ended > 0
}

/** Returns how many it ended. */
export function endOtherSessions(
  tx: Tx,
  { user_id, except }: { user_id: string; except: string | null },
): Promise<number> {
  return tx.run(sql`
    update sessions s set revoked_at = domain_now()
    where s.user_id = ${user_id} and s.id is distinct from ${except}::uuid and ${alive}`)
}

/** Ends the sessions of all users on the whole instance. */
export async function endEverySession(tx: Tx): Promise<void> {
  await tx.run(sql`update sessions set revoked_at = domain_now() where revoked_at is null`)
}

/** Keeps expired rows for 30 days, so that they can still be looked up. */
export function forgetSessions(db: Db): Promise<number> {
  return db.run(sql`delete from sessions where expires_at < domain_now() - interval '30 days'`)
}
