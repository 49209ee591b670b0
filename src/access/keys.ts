/** API keys: their format, and the caller behind one. */
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { App, KnownKey, Snapshot } from '../app.ts'
import type { Caller, KeyIssuer, Role, Scope } from '../contract.ts'
import { type Db, sql } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import { base62, randomText } from '../lib/ids.ts'
import { sha256 } from '../lib/secrets.ts'

const keyPrefix = 'svc_live_'
const randomLength = 32
const checksumLength = 6
const form = /^svc_live_([0-9A-Za-z]{32})([0-9A-Za-z]{6})$/

/** `svc_live_`, 32 random characters, and a checksum, so that a mistyped key is refused without a query. */
export function makeKey(): { key: string; prefix: string; hash: Buffer } {
  const random = randomText(randomLength)
  const key = `${keyPrefix}${random}${checksumOf(random)}`
  return { key, prefix: key.slice(0, keyPrefix.length + 6), hash: sha256(key) }
}

function checksumOf(random: string): string {
  return base62(crc32(random), checksumLength)
}

export function looksLikeKey(text: string): boolean {
  const match = form.exec(text)
  return match !== null && checksumOf(match[1] as string) === match[2]
}

/** The caller behind `Authorization: Bearer …`. Requires exactly one header. */
export async function requireKey(
  app: App,
  settings: Snapshot,
  authorization: readonly string[],
): Promise<Caller> {
  const [header] = authorization
  const token = header && authorization.length === 1 ? /^Bearer ([\w]+)$/i.exec(header)?.[1] : undefined
  const known = token && (settings.callers.get(hashOf(token)) ?? (await findKey(app, settings, token)))
  if (!known || (known.expires_at && known.expires_at <= settings.now())) throw new ApiError('invalid_key')
  if (known.disabled) throw new ApiError('workspace_disabled') // guard: keys of a disabled workspace
  return known.caller
}

interface KeyRow {
  readonly id: string
  readonly workspace_id: string
  readonly user_id: string
  readonly name: string
  readonly prefix: string
  readonly scopes: readonly Scope[]
  readonly mcp_only: boolean
  readonly expires_at: Date | null
  readonly disabled: boolean
  readonly issued_by: KeyIssuer
  readonly role: Role
}

/** Keys that no person has ended, directly or with their user. */
const issued = sql`keys k join users u on u.id = k.user_id join workspaces w on w.id = k.workspace_id
  join memberships m on m.workspace_id = k.workspace_id and m.user_id = k.user_id
  where k.revoked_at is null and m.ended_at is null and u.disabled_at is null`

/** Those of the keys that are still valid, and whether their workspace is disabled. */
export function listValidKeys(db: Db, ids: readonly string[]): Promise<{ id: string; disabled: boolean }[]> {
  return db.rows(sql`
    select k.id, w.disabled_at is not null as disabled
    from ${issued} and k.id = any(${ids}::uuid[]) and (k.expires_at is null or k.expires_at > domain_now())`)
}

function hashOf(token: string): string {
  return hash('sha256', token, 'base64')
}

async function findKey(app: App, settings: Snapshot, token: string): Promise<KnownKey | undefined> {
  if (!looksLikeKey(token)) return undefined
  const row = await app.db.maybe<KeyRow>(sql`
    select k.id, k.workspace_id, k.user_id, k.name, k.prefix, k.scopes, k.mcp_only, k.expires_at,
      w.disabled_at is not null as disabled, m.role,
      coalesce(k.issued_by, 'user') as issued_by -- guard: older keys count as made by their user
    from ${issued} and k.hash = ${sha256(token)}`)
  if (!row) return undefined
  const { workspace_id, user_id, scopes, expires_at, disabled, id, name, prefix, mcp_only, issued_by, role } =
    row
  const known: KnownKey = {
    caller: {
      workspace_id,
      user_id,
      scopes,
      via: { kind: 'key', id, name, prefix, mcp_only, issued_by, role },
    },
    expires_at,
    disabled,
  }
  settings.callers.set(hashOf(token), known)
  return known
}
