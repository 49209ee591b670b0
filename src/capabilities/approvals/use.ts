/** Runs what was approved. One update consumes the token, in the transaction that creates the operation. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { sha256 } from '../../lib/secrets.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import type { State } from '../../operation.ts'
import type { Reply } from '../../route.ts'
import { record } from '../audit/audit.ts'
import { keyIdOf } from './requests.ts'

/** What a call with a token wants to run. All of it must match what was approved. */
export interface Binding {
  readonly id: string
  readonly token: string
  readonly operation: string
  readonly account_id: string
  readonly chat_id: ChatNumber
  readonly payload: unknown
  readonly fingerprint: Buffer
}

const keyPrefix = 'approval·'

/**
 * The operation's idempotency key. It comes from the approval and not from the token, so whatever happens to the token, one
 * approval is one operation. No caller can send this key: a header takes printable ASCII only, and the dot is not ASCII.
 */
export function operationKey(approval_id: string): string {
  return `${keyPrefix}${approval_id}` // guard: key of an approved operation
}

/** Whether an operation `o` was approved for an agent. */
export const isOfAgent: Sql = sql`coalesce(starts_with(o.idempotency_key, ${keyPrefix}), false)`

/** The operation of approval `a`, if it has one. */
export const joinOperation: Sql = sql`left join operations o
  on o.workspace_id = a.workspace_id and o.kind = a.operation and o.idempotency_key = ${keyPrefix} || a.id`

/** Also true where a restored database has lost the use, and a journal has restored the operation. */
// guard: operation of a used approval
export const isUsed: Sql = sql`(a.state = 'used' or (o.id is not null and o.state <> 'released'))`

export function findByToken(
  db: Db,
  token: string,
): Promise<{ readonly id: string; readonly account_id: string } | undefined> {
  return db.maybe(sql`select id, account_id from approvals where token_hash = ${sha256(token)}`)
}

/** Consumes the token if everything matches what was approved; otherwise throws and changes nothing. */
export function consume(app: App, caller: Caller, binding: Binding): (tx: Tx) => Promise<void> {
  const key_id = keyIdOf(caller)
  const { token, operation, account_id, chat_id, fingerprint } = binding
  return async (tx) => {
    const used = await tx.maybe<{ id: string; workspace_id: string }>(sql`
      update approvals a set state = 'used', used_at = domain_now()
      from keys k, users u, memberships m, identities i, accounts c
      where a.token_hash = ${sha256(token)}
        and a.state = 'approved' -- guard: approval is used once
        and a.token_expires_at > domain_now() -- guard: approval expires
        and a.key_id = ${key_id} -- guard: approval is of the key
        and a.user_id = ${caller.user_id} -- guard: approval is of the user
        and a.workspace_id = ${caller.workspace_id} -- guard: approval is of the workspace
        and a.operation = ${operation} -- guard: approval is for the operation
        and a.account_id = ${account_id} -- guard: approval is for the account
        and a.chat_id = ${chat_id} -- guard: approval is for the chat
        and a.fingerprint = ${fingerprint} -- guard: approval is for the payload
        and a.generation = (select generation from instance) -- guard: approval is of this database
        and k.id = a.key_id
        and k.revoked_at is null and (k.expires_at is null or k.expires_at > domain_now()) -- guard: key of an approval
        and u.id = a.user_id
        and u.disabled_at is null -- guard: user of an approval
        and m.workspace_id = a.workspace_id and m.user_id = a.user_id
        and m.ended_at is null -- guard: membership of an approval
        and i.issuer = a.issuer and i.subject = a.subject
        and i.user_id = a.user_id -- guard: identity of an approval
        and i.idp_user_uuid = a.idp_user_uuid -- guard: uuid of an approval
        and c.id = a.account_id
        and c.status = 'READY' -- guard: account of an approval
        and c.platform_user_id is not distinct from a.platform_user_id -- guard: platform identity of an approval
      returning a.id, a.workspace_id`)
    if (!used) throw new ApiError('approval_mismatch')
    const { id: target, workspace_id } = used
    const detail = { operation, account_id, chat_id, payload_sha256: fingerprint.toString('hex') }
    await record(app, tx, `key:${key_id}`, { action: 'approval.used', target, workspace_id, detail })
  }
}

/** The token was not consumed, or the approval already has its operation: `explain` says which. */
export function isNotConsumed(error: unknown): boolean {
  return (
    error instanceof ApiError &&
    (error.code === 'approval_mismatch' || error.code === 'operation_in_progress')
  )
}

interface UsedRow {
  readonly operation_id: string | null
  readonly state: State | null
  readonly answer: unknown
}

/** How a used approval ended, for the key that used it and only with the payload it was used for. */
export async function describeUsed(db: Db, caller: Caller, binding: Binding): Promise<Reply | undefined> {
  const row = await db.maybe<UsedRow>(sql`
    select coalesce(o.public_id, o.id) as operation_id, o.state, o.reply_body as answer
    from approvals a ${joinOperation}
    where a.token_hash = ${sha256(binding.token)} and a.key_id = ${keyIdOf(caller)}
      and a.operation = ${binding.operation} and a.fingerprint = ${binding.fingerprint} and ${isUsed}`)
  if (!row) return undefined
  const { operation_id, state, answer } = row
  return {
    status: 403,
    body: { error: usedSentence(state), code: 'approval_used', operation_id, state, answer },
    headers: operation_id === null ? {} : { 'X-Operation-Id': operation_id },
  }
}

function usedSentence(state: State | null): string {
  const used = 'This approval has already been used.'
  switch (state) {
    case 'completed':
      return `${used} The write ran once and returned the result below. Do not ask for it again.`
    case 'refused':
      return `${used} The write was refused permanently; the result below says why. Nothing was done.`
    case 'released':
      return `${used} Nothing was done. To retry, call without a token: a person must approve it again.`
    case 'ambiguous':
      return `${used} The outcome is unknown. A new approval may do it twice: ask the user to check first.`
    default:
      return `${used} The write is still in progress. Call again with the same token to get the outcome.`
  }
}

interface TokenFacts {
  readonly same: boolean
  readonly over: boolean
}

const inProgress =
  'Another call with this approval_token is in progress. Call again with the same token to get the outcome.'

/** Why a token was not consumed. A key that does not own the token learns nothing. */
export async function explain(db: Db, caller: Caller, binding: Binding, error: unknown): Promise<Reply> {
  const used = await describeUsed(db, caller, binding)
  if (used) return used
  const facts = await db.maybe<TokenFacts>(sql`
    select a.operation = ${binding.operation} and a.fingerprint = ${binding.fingerprint} as same,
      a.token_expires_at <= domain_now() or a.generation <> (select generation from instance) as over
    from approvals a
    where a.token_hash = ${sha256(binding.token)} and a.key_id = ${keyIdOf(caller)}`)
  if (!facts) throw new ApiError('approval_mismatch')
  if (!facts.same) {
    throw new ApiError('approval_mismatch', {
      detail:
        'This approval is for another input. Call with exactly the approved input, or without a token to request approval of this one.',
    })
  }
  if (facts.over) {
    throw new ApiError('approval_expired', {
      detail: 'This approval has expired; nothing was done. Call without a token to request a new one.',
    })
  }
  if (error instanceof ApiError && error.code === 'operation_in_progress') {
    throw new ApiError('operation_in_progress', { detail: inProgress, cause: error }) // guard: words for an agent
  }
  throw new ApiError('approval_mismatch', {
    detail:
      'The user, the key or the account has changed since the approval. Call without a token to request a new one.',
  })
}
