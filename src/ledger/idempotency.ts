/** Idempotency keys of operations that change only our database. */
import { canonicalize } from 'json-canonicalize'
import type { App } from '../app.ts'
import type { Caller } from '../contract.ts'
import { LostCommit } from '../db/errors.ts'
import { type Db, sql, type Tx } from '../db/sql.ts'
import { emitted } from '../events/emit.ts'
import { ApiError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { sha256Beside } from '../lib/secrets.ts'
import { Json, type Reply, type Route } from '../route.ts'

/** Exactly one header of 1 to 255 printable characters; `"k"` and `k` are the same key. Undefined without the header. */
export function readIdempotencyKey(values: readonly string[]): string | undefined {
  const [given] = values
  if (given === undefined) return undefined
  const bare = given.trim().replace(/^"(.*)"$/, '$1')
  const fault = values.length > 1 ? `was given ${values.length} times; give it once` : faultOf(bare)
  if (fault) throw new ApiError('invalid_request', { detail: `The header Idempotency-Key ${fault}.` })
  return bare
}

function faultOf(key: string): string | undefined {
  if (key.trim() === '') return 'is empty; it needs 1 to 255 printable ASCII characters'
  if (!/^[\x20-\x7e]*$/.test(key)) return 'contains a character that is not printable ASCII'
  return key.length > 255 ? `has ${key.length} characters; at most 255 are allowed` : undefined
}

/** What the key is bound to: the operation, its path parameters and its body as sent. */
export function fingerprintOf(
  route: Route,
  { params, body }: { params: unknown; body: unknown },
): Promise<Buffer> {
  return sha256Beside(canonicalize({ operation: route.name, params: params ?? {}, body: body ?? {} }))
}

interface KeyedRequest {
  readonly key: string
  readonly fingerprint: Buffer
}

type Consume = (tx: Tx) => Promise<void>

/**
 * Runs `work` once for the key. The key's row, the effect, the stored answer and what `consume` consumes commit together.
 * A caller that passes `consume` answers repeats itself, so a repeat that gets here consumes nothing.
 */
export async function once(
  app: App,
  route: Route,
  caller: Caller,
  { key, fingerprint, consume }: KeyedRequest & { readonly consume?: Consume | undefined },
  work: (tx: Tx) => Promise<Reply>,
): Promise<Reply> {
  const keyed = async (tx: Tx) => {
    const id = newId()
    await consume?.(tx)
    const first = await claimKey(tx, route, caller, { id, key, fingerprint })
    if (!first && consume) throw new ApiError('operation_in_progress') // guard: a taken local key consumes nothing
    if (!first) return replay(tx, route, caller, { key, fingerprint })
    const reply = await work(tx)
    const { stored = reply.body } = reply
    await tx.run(sql`
      update operations set state = 'completed', reply_status = ${reply.status},
        reply_body = ${stored instanceof Json ? stored.text : JSON.stringify(stored)}, finished_at = domain_now()
      where id = ${id}`)
    return { ...reply, headers: { ...reply.headers, 'X-Operation-Id': id } }
  }
  return commit(app, keyed, {
    detail:
      'The answer of the database was lost. Repeat the request with the same Idempotency-Key to get the outcome.',
  })
}

/** Whether a request with this key has run before, whatever its outcome. */
export async function isKnownKey(db: Db, route: Route, caller: Caller, key: string): Promise<boolean> {
  const row = await db.maybe(sql`
    select 1 from operations
    where workspace_id = ${caller.workspace_id} and kind = ${route.name} and idempotency_key = ${key}`)
  return row !== undefined
}

/** Runs `work` in a transaction. If the answer to COMMIT is lost, the caller gets `outcome_ambiguous`. */
export async function commit(
  app: App,
  work: (tx: Tx) => Promise<Reply>,
  lost: { detail?: string } = {},
): Promise<Reply> {
  try {
    const reply = await app.db.transaction(work)
    app.wake.signal(emitted)
    return reply
  } catch (error) {
    if (error instanceof LostCommit) throw new ApiError('outcome_ambiguous', { ...lost, cause: error })
    throw error
  }
}

/** Waits for the commit of a concurrent request with the same key. */
async function claimKey(
  tx: Tx,
  route: Route,
  caller: Caller,
  { id, key, fingerprint }: KeyedRequest & { id: string },
): Promise<boolean> {
  const key_id = caller.via.kind === 'key' ? caller.via.id : null
  try {
    const inserted = await tx.run(sql`
      insert into operations (id, workspace_id, kind, effect, idempotency_key, fingerprint, state, user_id, key_id)
      values (${id}, ${caller.workspace_id}, ${route.name}, 'local', ${key}, ${fingerprint}, 'submitting',
        ${caller.user_id}, ${key_id})
      on conflict (workspace_id, kind, idempotency_key) do nothing`)
    return inserted === 1
  } catch (cause) {
    throw isLockTimeout(cause) ? new ApiError('operation_in_progress', { cause }) : cause
  }
}

async function replay(
  tx: Tx,
  route: Route,
  caller: Caller,
  { key, fingerprint }: KeyedRequest,
): Promise<Reply> {
  const row = await tx.maybe<{ id: string; fingerprint: Buffer; reply_body: unknown }>(sql`
    select id, fingerprint, reply_body from operations
    where workspace_id = ${caller.workspace_id} and kind = ${route.name} and idempotency_key = ${key}`)
  // The other request rolled back between our insert and this query.
  if (!row) throw new ApiError('operation_in_progress')
  if (!row.fingerprint.equals(fingerprint)) {
    throw new ApiError('idempotency_collision', { status: route.collision ?? 400 })
  }
  return {
    status: 200,
    body: row.reply_body,
    headers: { 'Idempotent-Replayed': 'true', 'X-Operation-Id': row.id },
  }
}

function isLockTimeout(error: unknown): boolean {
  return error instanceof Error && (error as { code?: string }).code === '55P03'
}
