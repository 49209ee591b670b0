/** API keys: made, listed, revoked. The key itself is shown once and never stored. */
import { makeKey } from '../../access/keys.ts'
import { requireMaker } from '../../access/makers.ts'
import { isEnough } from '../../access/needs.ts'
import type { App } from '../../app.ts'
import { type KeyIssuer, type Needs, type Role, type RouteInfo, type Scope, scopes } from '../../contract.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid, newId } from '../../lib/ids.ts'
import { notFound, requireName } from '../../lib/names.ts'
import { quote } from '../../lib/text.ts'
import { type Actor, record, userOf } from '../audit/audit.ts'
import { requireUser } from '../users/users.ts'
import { requireWorkspace } from '../workspaces/workspaces.ts'

export const liveKeysMax = 50

interface Key {
  readonly id: string
  readonly workspace_id: string
  readonly user_id: string
  readonly name: string
  readonly prefix: string
  readonly scopes: readonly Scope[]
  readonly mcp_only: boolean
  /** Null: from before this was stored. It counts as its user's own. */
  readonly issued_by: KeyIssuer | null
  readonly created_at: Date
  readonly expires_at: Date | null
  readonly revoked_at: Date | null
  readonly last_used_at: Date | null
}

export interface NewKey {
  readonly workspace_id: string
  readonly user_id: string
  readonly name: string
  readonly scopes: readonly string[]
  readonly expires_at?: Date | undefined
  readonly mcp_only?: boolean | undefined
}

const fields = sql`id, workspace_id, user_id, name, prefix, scopes, mcp_only, issued_by, created_at, expires_at, revoked_at,
  last_used_at`

export async function createKey(app: App, actor: Actor, wanted: NewKey): Promise<Key & { key: string }> {
  const { workspace_id, user_id, name, expires_at = null, mcp_only = false } = wanted
  // At the dashboard users make keys for themselves only.
  const issued_by: KeyIssuer = userOf(actor) === undefined ? 'operator' : 'user'
  const granted = requireScopes(wanted.scopes)
  requireName('A key needs a name', name)
  await requireWorkspace(app.db, workspace_id)
  const user = await requireUser(app.db, user_id)
  const { key, prefix, hash } = makeKey()
  const made = await app.db.transaction(async (tx) => {
    // The lock makes keys of one workspace one after the other, so the count below is exact and the member cannot leave.
    await tx.one(sql`select id from workspaces where id = ${workspace_id} for no key update`)
    await requireMembership(tx, { workspace_id, user }) // guard: a key needs a member
    const { live } = await tx.one<{ live: number }>(sql`
      select count(*)::int as live from keys
      where workspace_id = ${workspace_id} and revoked_at is null
        and (expires_at is null or expires_at > domain_now())`)
    if (live >= liveKeysMax) {
      throw new ApiError('conflict', {
        detail: `A workspace can have at most ${liveKeysMax} live keys. Revoke one first.`,
      })
    }
    const row = await tx.one<Key>(sql`
      insert into keys (id, workspace_id, user_id, name, prefix, hash, scopes, mcp_only, issued_by, expires_at)
      values (${newId()}, ${workspace_id}, ${user_id}, ${name}, ${prefix}, ${hash}, ${granted}, ${mcp_only},
        ${issued_by}, ${expires_at})
      returning ${fields}`)
    await record(app, tx, actor, {
      action: 'key.created',
      target: row.id,
      workspace_id,
      detail: {
        name,
        prefix,
        scopes: granted,
        mcp_only,
        issued_by,
        expires_at: expires_at?.toISOString() ?? null,
      },
    })
    if (issued_by === 'user') await requireMaker(tx, { workspace_id, user_id }) // guard: keys of a member who leaves
    return row
  })
  return { ...made, key }
}

async function requireMembership(
  tx: Tx,
  { workspace_id, user }: { workspace_id: string; user: { readonly id: string; readonly email: string } },
): Promise<void> {
  const member = await tx.maybe(sql`
    select 1 from memberships
    where workspace_id = ${workspace_id} and user_id = ${user.id} and ended_at is null`)
  if (!member) {
    throw new ApiError('conflict', { detail: `The user ${user.email} is not a member of this workspace.` })
  }
}

/** Effective on every process within a second. Revoking twice changes nothing. */
export async function revokeKey(app: App, actor: Actor, id: string): Promise<Key> {
  const key = await app.db.transaction(async (tx) => {
    const revoked =
      isUuid(id) &&
      (await tx.maybe<Key>(sql`
        update keys set revoked_at = domain_now() where id = ${id} and revoked_at is null returning ${fields}`))
    if (revoked) {
      const { workspace_id, name, prefix } = revoked
      await record(app, tx, actor, {
        action: 'key.revoked',
        target: id,
        workspace_id,
        detail: { name, prefix },
      })
      return revoked
    }
    const known = isUuid(id) && (await tx.maybe<Key>(sql`select ${fields} from keys where id = ${id}`))
    if (!known) throw notFound('key', id)
    return known
  })
  await app.settings.refresh()
  return key
}

export async function listKeys(db: Db, workspace_id: string): Promise<Key[]> {
  await requireWorkspace(db, workspace_id)
  return db.rows<Key>(sql`
    select ${fields} from keys where workspace_id = ${workspace_id} order by created_at, id`)
}

/** A key as people see it: its owner by e-mail address, and no field that only the service needs. */
interface SeenKey extends Omit<Key, 'workspace_id' | 'user_id'> {
  readonly user: { readonly id: string; readonly email: string }
}

/** Whose keys: of the whole workspace, or of one of its users. */
interface KeyOwner {
  readonly workspace_id: string
  readonly user_id: string | null
}

/** Revoked keys add up over the years; the page shows the live ones and the newest others. */
const seenMax = 500

/** Live keys first, then the newest. */
export function listKeysOf(db: Db, owner: KeyOwner): Promise<SeenKey[]> {
  return selectSeen(db, owner, null)
}

/** A key of another user or workspace is reported as not found. */
export async function requireKeyOf(db: Db, owner: KeyOwner, id: string): Promise<SeenKey> {
  const [key] = isUuid(id) ? await selectSeen(db, owner, id) : []
  if (!key) throw notFound('key', id)
  return key
}

function selectSeen(db: Db, { workspace_id, user_id }: KeyOwner, id: string | null): Promise<SeenKey[]> {
  return db.rows<SeenKey>(sql`
    select k.id, k.name, k.prefix, k.scopes, k.mcp_only, k.issued_by, k.created_at, k.expires_at, k.revoked_at, k.last_used_at,
      json_build_object('id', u.id, 'email', u.email) as user
    from keys k join users u on u.id = k.user_id
    where k.workspace_id = ${workspace_id} and (${user_id}::uuid is null or k.user_id = ${user_id})
      and (${id}::uuid is null or k.id = ${id})
    order by k.revoked_at is not null, k.created_at desc, k.id desc limit ${seenMax}`)
}

/** A key that lost something when Parley began to ask for its user's role. */
interface NarrowedKey extends Pick<Key, 'id' | 'prefix' | 'last_used_at'> {
  /** The names of the routes that its scopes allow and the role of its user does not. */
  readonly lost: readonly string[]
}

/** Live keys from before Parley stored who issued a key, whose scopes allow more than the role of their user. */
export async function listNarrowedKeys(
  db: Db,
  routes: readonly Pick<RouteInfo, 'name' | keyof Needs>[],
): Promise<NarrowedKey[]> {
  const older = await db.rows<Key & { role: Role }>(sql`
    select k.id, k.prefix, k.scopes, k.last_used_at, m.role from keys k
    join memberships m on m.workspace_id = k.workspace_id and m.user_id = k.user_id and m.ended_at is null
    where k.issued_by is null -- guard: only older keys have lost something
      and k.revoked_at is null and (k.expires_at is null or k.expires_at > domain_now())
    order by k.last_used_at desc nulls last, k.id`)
  return older.flatMap(({ id, prefix, last_used_at, scopes: granted, role }) => {
    const lost = routes.filter(
      (route) => route.scopes.some((scope) => granted.includes(scope)) && !isEnough(role, route),
    )
    return lost.length > 0 ? [{ id, prefix, last_used_at, lost: lost.map(({ name }) => name) }] : []
  })
}

/** Stores when these keys were last used, to the minute. */
export async function noteKeyUse(app: App, ids: readonly string[]): Promise<void> {
  await app.db.run(sql`
    update keys set last_used_at = date_trunc('minute', domain_now())
    where id = any(${ids}::uuid[]) and last_used_at is distinct from date_trunc('minute', domain_now())`)
}

function requireScopes(wanted: readonly string[]): readonly Scope[] {
  const unknown = wanted.filter((scope) => !scopes.some((known) => known === scope))
  if (unknown.length > 0 || wanted.length === 0) {
    throw new ApiError('invalid_request', {
      detail: `The scopes are ${scopes.join(', ')}${unknown[0] ? `; ${quote(unknown[0])} is not one` : ''}.`,
    })
  }
  return scopes.filter((scope) => wanted.includes(scope))
}
