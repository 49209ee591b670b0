/** The people who sign in, and the workspaces they belong to. */
import type { App } from '../../app.ts'
import type { Role } from '../../contract.ts'
import { type Db, sql } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid, newId, randomText } from '../../lib/ids.ts'
import { notFound } from '../../lib/names.ts'
import { sha256 } from '../../lib/secrets.ts'
import { isWellFormed, quote } from '../../lib/text.ts'
import { type Actor, record } from '../audit/audit.ts'
import { requireWorkspace } from '../workspaces/workspaces.ts'

export { type Linked, linkIdentity } from './identities.ts'
export { endMembership, listMembers, setRole } from './members.ts'

interface User {
  readonly id: string
  readonly email: string
  readonly operator: boolean
  readonly created_at: Date
  readonly disabled_at: Date | null
  readonly memberships: readonly { readonly workspace_id: string; readonly role: Role }[]
}

interface NewUser {
  readonly email: string
  readonly workspace_id: string
  readonly role?: Role | undefined
  readonly operator?: boolean | undefined
}

/** Makes the user, or adds an existing one to a further workspace. */
export async function createUser(app: App, actor: Actor, fields: NewUser): Promise<User> {
  const { email, workspace_id, role = 'owner', operator = false } = fields
  if (!/^[^\s@]{1,64}@[^\s@]{1,255}$/.test(email) || !isWellFormed(email)) {
    throw new ApiError('invalid_request', { detail: `${quote(email)} is not an e-mail address.` })
  }
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
      throw new ApiError('conflict', { detail: `${email} is a member of this workspace already.` })
    }
    await record(app, tx, actor, {
      action: 'user.created',
      target: user.id,
      workspace_id,
      detail: { role, operator },
    })
    return user.id
  })
  return requireUser(app.db, id)
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
    select u.id, u.email, u.operator, u.created_at, u.disabled_at, coalesce(
      (select json_agg(json_build_object('workspace_id', m.workspace_id, 'role', m.role) order by m.created_at)
       from memberships m where m.user_id = u.id and m.ended_at is null), '[]') as memberships
    from users u where ${id}::uuid is null or u.id = ${id} order by u.created_at, u.id`)
}

const setupDays = 7

/** A link's token, shown once: behind it the user chooses how to sign in. */
export async function makeSetupToken(app: App, actor: Actor, user_id: string): Promise<string> {
  const user = await requireUser(app.db, user_id)
  const token = randomText(43)
  await app.db.transaction(async (tx) => {
    await tx.run(sql`
      insert into setup_links (token_hash, user_id, expires_at)
      values (${sha256(token)}, ${user.id}, domain_now() + make_interval(days => ${setupDays}))`)
    await record(app, tx, actor, { action: 'user.setup_link_made', target: user.id })
  })
  return token
}

export interface SetupLink {
  readonly setup_link: string
  readonly expires_at: Date
}

/** Without PARLEY_BASE_URL the dashboard is open on this machine only, and the page that shows the link knows the rest. */
export async function makeSetupLink(app: App, actor: Actor, user_id: string): Promise<SetupLink> {
  const token = await makeSetupToken(app, actor, user_id)
  const { now } = await app.settings.current()
  return {
    setup_link: `${app.config.base_url ?? ''}/dashboard/setup#${token}`,
    expires_at: new Date(now().getTime() + setupDays * 86_400_000),
  }
}
