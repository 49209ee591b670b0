/** The people who sign in, and their workspaces. */
import { randomUUID } from 'node:crypto'
import { requireMaker } from '../../access/makers.ts'
import type { App } from '../../app.ts'
import type { Identity, Role } from '../../contract.ts'
import { isDuplicate } from '../../db/errors.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid, newId, randomText } from '../../lib/ids.ts'
import { notFound, requireName } from '../../lib/names.ts'
import { sha256 } from '../../lib/secrets.ts'
import { isWellFormed, quote } from '../../lib/text.ts'
import { loginsChanged } from '../accounts/accounts.ts'
import { type Actor, record, userOf } from '../audit/audit.ts'
import { listStoppedWith } from '../webhooks/webhooks.ts'
import { isTimezone, requireWorkspace } from '../workspaces/workspaces.ts'
import { endSetupLinks } from './identities.ts'

export { endEverySetupLink, linkIdentity } from './identities.ts'
export { endMembership, setRole } from './members.ts'

export interface User {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly operator: boolean
  /** Null: the browser's. */
  readonly time_zone: string | null
  readonly has_password: boolean
  readonly created_at: Date
  readonly disabled_at: Date | null
  readonly memberships: readonly { readonly workspace_id: string; readonly role: Role }[]
}

interface NewUser {
  readonly email: string
  readonly workspace_id: string
  readonly role?: Role | undefined
  readonly operator?: boolean | undefined
  /** Lets them sign in without a set-up link. */
  readonly password_hash?: string | undefined
}

/** Creates the user, or adds an existing one to another workspace. */
export async function createUser(app: App, actor: Actor, fields: NewUser): Promise<User> {
  const { email, workspace_id, role = 'owner', operator = false, password_hash } = fields
  requireEmail(email)
  await requireWorkspace(app.db, workspace_id)
  const id = await app.db.transaction(async (tx) => {
    const user = await tx.one<{ id: string }>(sql`
      insert into users (id, email, operator) values (${newId()}, ${email}, ${operator})
      on conflict (lower(email)) do update set operator = users.operator or excluded.operator
      returning id`)
    const joined = await tx.run(sql`
      insert into memberships (workspace_id, user_id, role) values (${workspace_id}, ${user.id}, ${role})
      on conflict (workspace_id, user_id) do update
        set role = excluded.role, ended_at = null, created_at = domain_now()
        where memberships.ended_at is not null`)
    if (joined === 0) {
      throw new ApiError('conflict', { detail: `${email} is already a member of this workspace.` })
    }
    // An earlier link would now give its holder access to this workspace too.
    await endSetupLinks(tx, user.id) // guard: links from before a further workspace
    await record(app, tx, actor, {
      action: 'user.created',
      target: user.id,
      workspace_id,
      detail: { role, operator },
    })
    if (password_hash !== undefined)
      await setFirstPassword(app, tx, actor, { user_id: user.id, password_hash })
    return user.id
  })
  return requireUser(app.db, id)
}

async function setFirstPassword(
  app: App,
  tx: Tx,
  actor: Actor,
  given: { user_id: string; password_hash: string },
): Promise<void> {
  const kept = await tx.maybe(
    sql`select 1 from users where id = ${given.user_id} and password_hash is not null`,
  )
  if (kept) {
    throw new ApiError('conflict', {
      detail:
        'This user already has a password, which only they can change. Create a set-up link to let them choose a new one.',
    })
  }
  await setPassword(app, tx, actor, given)
}

function requireEmail(email: string): void {
  if (!/^[^\s@]{1,64}@[^\s@]{1,255}$/.test(email) || !isWellFormed(email)) {
    throw new ApiError('invalid_request', { detail: `${quote(email)} is not an e-mail address.` })
  }
}

export function listUsers(db: Db): Promise<User[]> {
  return selectUsers(db, null)
}

export async function requireUser(db: Db, id: string): Promise<User> {
  const user = isUuid(id) && (await selectUsers(db, id))[0]
  if (!user) throw notFound('user', id)
  return user
}

function selectUsers(db: Db, id: string | null): Promise<User[]> {
  return db.rows<User>(sql`
    select u.id, u.email, u.name, u.operator, u.time_zone, u.password_hash is not null as has_password, u.created_at,
      u.disabled_at, coalesce(
      (select json_agg(json_build_object('workspace_id', m.workspace_id, 'role', m.role) order by m.created_at)
       from memberships m where m.user_id = u.id and m.ended_at is null), '[]') as memberships
    from users u where ${id}::uuid is null or u.id = ${id} order by u.created_at, u.id`)
}

const setupDays = 7

interface SetupLink {
  /** The token stands behind the #, which browsers do not send: it reaches no log. */
  readonly setup_link: string
  readonly expires_at: Date
}

/**
 * Shown once: behind it the user chooses how to sign in, the first time or again. It expires if its maker leaves: they have seen
 * it. `workspace_id` is where an admin makes it.
 */
export async function makeSetupLink(
  app: App,
  actor: Actor,
  user_id: string,
  workspace_id?: string,
): Promise<SetupLink> {
  const user = await requireUser(app.db, user_id)
  const token = randomText(43)
  const maker_id = userOf(actor)
  return app.db.transaction(async (tx) => {
    const { expires_at } = await tx.one<{ expires_at: Date }>(sql`
      insert into setup_links (token_hash, user_id, made_by, expires_at)
      values (${sha256(token)}, ${user.id}, ${maker_id ?? null}, domain_now() + make_interval(days => ${setupDays}))
      returning expires_at`)
    await record(app, tx, actor, { action: 'user.setup_link_made', target: user.id })
    if (maker_id !== undefined && workspace_id !== undefined) {
      await requireMaker(tx, { workspace_id, user_id: maker_id }) // guard: links of an admin who leaves
    }
    return { setup_link: `${app.base_url()}/dashboard/setup#${token}`, expires_at }
  })
}

interface OpenLink {
  readonly user_id: string
  readonly email: string
  readonly expires_at: Date
}

/** The link's user. A link that is unknown, used or expired, or of a disabled user, is reported as not found. */
export async function requireSetupLink(db: Db, token: string): Promise<OpenLink> {
  const link = await db.maybe<OpenLink>(sql`
    select l.user_id, u.email, l.expires_at from setup_links l join users u on u.id = l.user_id
    where l.token_hash = ${sha256(token)} and l.used_at is null and l.expires_at > domain_now()
      and u.disabled_at is null`)
  if (!link) throw linkNotFound()
  return link
}

/** Of two concurrent uses, only one succeeds. */
export async function consumeSetupLink(tx: Tx, token: string): Promise<string> {
  const link = await tx.maybe<{ user_id: string }>(sql`
    update setup_links l set used_at = domain_now() from users u
    where l.token_hash = ${sha256(token)} and l.used_at is null and l.expires_at > domain_now()
      and u.id = l.user_id and u.disabled_at is null
    returning l.user_id`)
  if (!link) throw linkNotFound()
  return link.user_id
}

function linkNotFound(): ApiError {
  return new ApiError('not_found', {
    detail: 'This set-up link is unknown, used or expired. Ask for a new one.',
  })
}

export const localIssuer = 'local'

/** Sets the password and returns the identity it proves. Invalidates links that could set another one. */
export async function setPassword(
  app: App,
  tx: Tx,
  actor: Actor,
  { user_id, password_hash }: { user_id: string; password_hash: string },
): Promise<Identity> {
  await tx.run(sql`update users set password_hash = ${password_hash} where id = ${user_id}`)
  await endSetupLinks(tx, user_id)
  await record(app, tx, actor, { action: 'user.password_set', target: user_id })
  const subject = randomUUID()
  await tx.run(sql`
    insert into identities (issuer, subject, user_id, idp_user_uuid)
    select ${localIssuer}, ${subject}, ${user_id}, ${subject}
    where not exists (select from identities where issuer = ${localIssuer} and user_id = ${user_id})`)
  return tx.one<Identity>(sql`
    select issuer, subject, idp_user_uuid from identities
    where issuer = ${localIssuer} and user_id = ${user_id}`)
}

interface UserFields {
  readonly email?: string | undefined
  readonly name?: string | undefined
  /** Null: the browser's. */
  readonly time_zone?: string | null | undefined
  readonly operator?: boolean | undefined
}

export async function updateUser(
  app: App,
  actor: Actor,
  { id, email, name, time_zone, operator }: UserFields & { id: string },
): Promise<User> {
  await requireUser(app.db, id)
  if (email !== undefined) requireEmail(email)
  if (name) requireName('A user needs a name', name)
  if (time_zone && !(await isTimezone(app.db, time_zone))) {
    throw new ApiError('invalid_request', {
      detail: `${quote(time_zone)} is not an IANA time zone, such as Europe/Berlin.`,
    })
  }
  await app.db.transaction(async (tx) => {
    if (operator !== undefined) await requireStillOperator(tx, actor, id)
    await tx
      .run(sql`
        update users set email = coalesce(${email ?? null}, email), name = coalesce(${name ?? null}, name),
          time_zone = case when ${time_zone !== undefined} then ${time_zone ?? null} else time_zone end,
          operator = coalesce(${operator ?? null}, operator)
        where id = ${id}`)
      .catch((error) => {
        throw isDuplicate(error, 'users') ? emailTaken(email ?? '') : error
      })
    if (operator) await endSetupLinks(tx, id) // guard: links from before an operator
    const changed = Object.entries({ email, name, time_zone, operator }).filter(
      ([, value]) => value !== undefined,
    )
    await record(app, tx, actor, {
      action: 'user.updated',
      target: id,
      // No names or addresses: the log says which fields were changed.
      detail: { changed: changed.map(([field]) => field), ...(operator !== undefined && { operator }) },
    })
  })
  return requireUser(app.db, id)
}

function emailTaken(email: string): ApiError {
  return new ApiError('conflict', { detail: `Another user already has the address ${quote(email)}.` })
}

/**
 * Of two operators who disable each other at the same time, one stays: the other is none any more when their turn comes. The
 * terminal needs no operator.
 */
async function requireStillOperator(tx: Tx, actor: Actor, id: string): Promise<void> {
  const own_id = userOf(actor)
  if (own_id === undefined) return
  const rows = await tx.rows<{ id: string; acts: boolean }>(sql`
    select id, operator and disabled_at is null as acts from users
    where id = any(${[own_id, id]}::uuid[]) order by id for no key update`)
  const acts = rows.find((row) => row.id === own_id)?.acts
  if (!acts) throw new ApiError('missing_role') // guard: only an operator disables an operator
}

/** Whether the user has no way to sign in yet. */
export async function needsSetupLink(db: Db, user_id: string): Promise<boolean> {
  const { needed } = await db.one<{ needed: boolean }>(sql`
    select not exists (select from identities where user_id = ${user_id}) as needed`)
  return needed
}

/**
 * Disabling ends the user's sessions and keys for good, on every process within a second. A trigger also stops the webhooks that
 * they made and cancels their links and logins; enabling brings nothing of it back. Their campaigns are held.
 */
export async function setUserEnabled(
  app: App,
  actor: Actor,
  { id, enabled }: { id: string; enabled: boolean },
): Promise<User> {
  await requireUser(app.db, id)
  const stopped = await app.db.transaction(async (tx) => {
    await requireStillOperator(tx, actor, id)
    const changed = await tx.run(sql`
      update users set disabled_at = ${enabled ? sql`null` : sql`domain_now()`}
      where id = ${id} and (disabled_at is null) <> ${enabled}`)
    if (changed === 0) return []
    const webhooks = enabled ? [] : await listStoppedWith(tx, id)
    await record(app, tx, actor, {
      action: enabled ? 'user.enabled' : 'user.disabled',
      target: id,
      ...(webhooks.length > 0 && { detail: { webhooks: { stopped: webhooks.map((each) => each.id) } } }),
    })
    return webhooks
  })
  for (const { workspace_id } of stopped) {
    app.wake.mark({ workspace_id, kind: 'webhooks' })
  }
  await app.settings.refresh()
  app.wake.signal(loginsChanged)
  return requireUser(app.db, id)
}
