/** Who belongs to a workspace, and in which role. An ended membership is kept, because keys refer to it. */
import type { App } from '../../app.ts'
import type { Role } from '../../contract.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { notFound } from '../../lib/names.ts'
import { type Actor, record } from '../audit/audit.ts'
import { endSetupLinks } from './identities.ts'

interface Member {
  readonly user_id: string
  readonly email: string
  readonly name: string
  readonly role: Role
  readonly joined_at: Date
  readonly last_seen_at: Date | null
}

/** Identifies one membership of one user. */
interface MemberKey {
  readonly workspace_id: string
  readonly user_id: string
}

function selectMembers(db: Db, workspace_id: string, user_id: string | null): Promise<Member[]> {
  return db.rows<Member>(sql`
    select m.user_id, u.email, u.name, m.role, m.created_at as joined_at,
      (select max(s.last_seen_at) from sessions s where s.user_id = m.user_id) as last_seen_at
    from memberships m join users u on u.id = m.user_id
    where m.workspace_id = ${workspace_id} and m.ended_at is null
      and (${user_id}::uuid is null or m.user_id = ${user_id})
    order by m.created_at, m.user_id`)
}

export function listMembers(db: Db, workspace_id: string): Promise<Member[]> {
  return selectMembers(db, workspace_id, null)
}

/** A user of another workspace, or a former member, is reported as not found. */
export async function requireMember(db: Db, { workspace_id, user_id }: MemberKey): Promise<Member> {
  const [member] = isUuid(user_id) ? await selectMembers(db, workspace_id, user_id) : []
  if (!member) throw notFound('member', user_id)
  return member
}

export async function setRole(
  app: App,
  actor: Actor,
  { role, ...key }: MemberKey & { role: Role },
): Promise<Member> {
  await requireMember(app.db, key)
  await app.db.transaction(async (tx) => {
    await lockMembers(tx, key.workspace_id)
    const before = await tx.maybe<{ role: Role }>(sql`
      select role from memberships
      where workspace_id = ${key.workspace_id} and user_id = ${key.user_id} and ended_at is null`)
    if (!before) throw notFound('member', key.user_id)
    if (before.role === role) return
    if (before.role === 'owner') await requireOtherOwner(app, tx, key)
    await tx.run(sql`
      update memberships set role = ${role}
      where workspace_id = ${key.workspace_id} and user_id = ${key.user_id}`)
    // An admin may have made a link, and must not become an owner by it.
    if (role === 'owner') await endSetupLinks(tx, key.user_id) // guard: links from before an owner
    await record(app, tx, actor, {
      action: 'member.role_changed',
      target: key.user_id,
      workspace_id: key.workspace_id,
      detail: { from: before.role, to: role },
    })
  })
  return requireMember(app.db, key)
}

/** Removes the user's access, on every process within a second. A trigger revokes their keys too. */
export async function endMembership(app: App, actor: Actor, key: MemberKey): Promise<void> {
  await requireMember(app.db, key)
  await app.db.transaction(async (tx) => {
    await lockMembers(tx, key.workspace_id)
    await requireOtherOwner(app, tx, key)
    const ended = await tx.maybe<{ role: Role }>(sql`
      update memberships set ended_at = domain_now()
      where workspace_id = ${key.workspace_id} and user_id = ${key.user_id} and ended_at is null
      returning role`)
    if (!ended) throw notFound('member', key.user_id)
    await record(app, tx, actor, {
      action: 'member.removed',
      target: key.user_id,
      workspace_id: key.workspace_id,
      detail: { role: ended.role },
    })
  })
  await app.settings.refresh()
}

/** The lock makes role changes of a workspace sequential: two owners leaving at once would leave none. */
async function lockMembers(tx: Tx, workspace_id: string): Promise<void> {
  await tx.one(sql`select id from workspaces where id = ${workspace_id} for no key update`) // guard: one owner remains
}

/** Another owner counts only if they can sign in: with a password, or at the configured identity provider. */
async function requireOtherOwner(app: App, tx: Tx, { workspace_id, user_id }: MemberKey): Promise<void> {
  const provider = app.config.oidc?.issuer ?? null
  const { last } = await tx.one<{ last: boolean }>(sql`
    select bool_or(m.user_id = ${user_id}) and not bool_or(m.user_id <> ${user_id} and u.disabled_at is null
      and exists (select from identities i where i.user_id = u.id and i.issuer in ('local', ${provider})) -- guard: another owner can sign in
      ) as last
    from memberships m join users u on u.id = m.user_id
    where m.workspace_id = ${workspace_id} and m.role = 'owner' and m.ended_at is null`)
  if (last) {
    throw new ApiError('conflict', {
      detail: 'A workspace needs at least one owner who can sign in. Make another member an owner first.',
    })
  }
}

/**
 * Whether an admin may have a set-up link for this member. The link's holder can become the user, so it must not give access
 * to anything beyond this workspace, nor replace a way of signing in that the user has chosen.
 */
export async function mayLink(db: Db, { workspace_id, user_id }: MemberKey): Promise<boolean> {
  const { may } = await db.one<{ may: boolean }>(sql`
    select not u.operator -- guard: no link for an operator
      and not exists (select from identities i where i.user_id = u.id) -- guard: no link beside another way in
      and not exists (select from memberships m where m.user_id = u.id and m.ended_at is null
        and m.workspace_id <> ${workspace_id} -- guard: no link into another workspace
      ) as may
    from users u where u.id = ${user_id}`)
  return may
}
