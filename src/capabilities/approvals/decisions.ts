/** A person's decision: a token for exactly the payload they saw, or a denial. */
import type { App } from '../../app.ts'
import type { UserCaller } from '../../contract.ts'
import { type Db, sql } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid, randomText } from '../../lib/ids.ts'
import { sha256 } from '../../lib/secrets.ts'
import { record } from '../audit/audit.ts'
import { fieldNow, isOwn } from './approval-pages.ts'

const tokenSeconds = 120

interface DecisionRow {
  readonly workspace_id: string
  readonly operation: string
  readonly account_id: string
  readonly chat_id: string
  readonly payload_sha256: string
}

const decided = sql`a.workspace_id, a.operation, a.account_id, a.chat_id::text, encode(a.fingerprint, 'hex') as payload_sha256`

/** Returns the token this one time; only its hash is stored. */
export async function approve(
  app: App,
  { user_id, via: { identity } }: UserCaller,
  id: string,
): Promise<{ token: string; expires_at: Date }> {
  if (!isUuid(id)) throw unknownRequest()
  const token = `apr_${randomText(40)}`
  const { issuer, subject, idp_user_uuid } = identity
  return app.db.transaction(async (tx) => {
    const row = await tx.maybe<DecisionRow & { expires_at: Date }>(sql`
      update approvals a set state = 'approved', decided_at = domain_now(), field_before = ${fieldNow},
        issuer = i.issuer, subject = i.subject, idp_user_uuid = i.idp_user_uuid, token_hash = ${sha256(token)},
        token_expires_at = domain_now() + make_interval(secs => ${tokenSeconds}),
        generation = (select generation from instance)
      from identities i, keys k, users u
      where a.id = ${id} and ${isOwn(user_id)}
        and a.state = 'waiting' and a.expires_at > domain_now() -- guard: a request is decided once
        and i.issuer = ${issuer} and i.subject = ${subject} and i.idp_user_uuid = ${idp_user_uuid}
        and i.user_id = a.user_id and u.id = a.user_id and u.disabled_at is null
        and k.id = a.key_id and k.revoked_at is null and (k.expires_at is null or k.expires_at > domain_now())
      returning ${decided}, a.token_expires_at as expires_at`)
    if (!row) throw await refusal(tx, user_id, id)
    const { workspace_id, expires_at, ...detail } = row
    const action = 'approval.approved'
    await record(app, tx, `user:${user_id}`, { action, target: id, workspace_id, detail })
    return { token, expires_at }
  })
}

/** Denying again changes nothing. */
export async function deny(app: App, { user_id }: UserCaller, id: string): Promise<void> {
  if (!isUuid(id)) throw unknownRequest()
  await app.db.transaction(async (tx) => {
    const row = await tx.maybe<DecisionRow>(sql`
      update approvals a set state = 'denied', decided_at = domain_now(), field_before = ${fieldNow}
      where a.id = ${id} and ${isOwn(user_id)} and a.state = 'waiting' and a.expires_at > domain_now()
      returning ${decided}`)
    if (row) {
      const { workspace_id, ...detail } = row
      const action = 'approval.denied'
      await record(app, tx, `user:${user_id}`, { action, target: id, workspace_id, detail })
      return
    }
    const error = await refusal(tx, user_id, id)
    if (error.code !== 'approval_denied') throw error
  })
}

function unknownRequest(): ApiError {
  return new ApiError('not_found', { detail: 'You have no such request.' })
}

/** Why nothing was decided. Another user's request is reported like one that does not exist. */
async function refusal(db: Db, user_id: string, id: string): Promise<ApiError> {
  const row = await db.maybe<{ state: string; over: boolean }>(sql`
    select a.state, a.expires_at <= domain_now() as over from approvals a where a.id = ${id} and ${isOwn(user_id)}`)
  if (!row) return unknownRequest()
  if (row.state === 'denied')
    return new ApiError('approval_denied', { detail: 'You have already denied this request.' })
  if (row.state !== 'waiting') {
    return new ApiError('conflict', {
      detail:
        'You have already approved this request. Its token was shown once; after two minutes the agent can ask again.',
    })
  }
  if (row.over) {
    return new ApiError('approval_expired', {
      detail: 'This request has expired. The agent can ask again.',
    })
  }
  return new ApiError('conflict', {
    detail:
      'The key that made this request no longer works, or your session has changed. Sign in again; the agent can ask again.',
  })
}
