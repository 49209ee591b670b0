/**
 * Wishes: what a caller wants done on the platform, as a committed row before anything happens (T1), and what a repeat
 * under the same key is told. Nothing here talks to the platform; the account's host does (boundary.ts).
 */
import type { App, Settled, Topic } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { isDuplicate } from '../../db/errors.ts'
import { type Db, sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import type { NewOperation, OperationKind } from '../../operation.ts'

/** An operation is waiting for the worker that drives its account. */
export const enqueued: Topic = { topic: 'operations' }
/** An operation that somebody may be waiting for has ended. */
export const settled: Topic = { topic: 'settled' }

const fields = sql`id, account_id, state, reason, detail, fingerprint, reply_status, reply_body`

export interface Asked {
  readonly operation: OperationKind
  readonly key: string | undefined
  readonly fingerprint: Buffer
}

export async function findOperation(
  db: Db,
  workspace_id: string,
  { operation: { kind }, key }: Asked,
): Promise<Settled | undefined> {
  if (key === undefined) return undefined
  return db.maybe<Settled>(sql`
    select ${fields} from operations
    where idempotency_key = ${key} -- guard: key is looked up
      and workspace_id = ${workspace_id} and kind = ${kind}`)
}

/** How long a wish may wait for its host, and its caller for the answer. Files take their time. */
export const patience = {
  text: { expires_seconds: 30, wait_ms: 25_000 }, // limit: patience of a caller
  file: { expires_seconds: 120, wait_ms: 115_000 },
} as const

/**
 * T1. Returns the operation's id, or undefined when the key's row is there and may not run again. Need not be flushed:
 * the commit of the boundary flushes it, and nobody is told of success before.
 */
export async function enqueue(
  app: App,
  caller: Caller,
  { operation: { kind, forgettable }, key, fingerprint, wanted }: Asked & { wanted: NewOperation },
): Promise<string | undefined> {
  const id = newId()
  const { expires_seconds } = wanted.file_id === undefined ? patience.text : patience.file
  const made = app.db.maybe<{ id: string }>(sql`
    with unflushed as materialized (select set_config('synchronous_commit', 'off', true))
    insert into operations as o (id, workspace_id, kind, effect, idempotency_key, fingerprint, state, user_id, key_id,
      account_id, chat_id, payload, file_id, random_id, expires_at, forgettable)
    select ${id}::uuid, ${caller.workspace_id}::uuid, ${kind}, 'platform',
      ${key ?? null}, -- guard: key is stored
      ${fingerprint}::bytea, 'queued',
      ${caller.user_id}::uuid, ${caller.via.kind === 'key' ? caller.via.id : null}::uuid, ${wanted.account_id},
      ${wanted.chat_id}::bigint, ${JSON.stringify(wanted.payload)}::jsonb, ${wanted.file_id ?? null}::uuid,
      ${randomIdOf(app, caller.workspace_id, kind, key ?? id)}::bigint, -- guard: random id of the key
      clock_timestamp() + make_interval(secs => ${expires_seconds}::int), ${forgettable}
    from unflushed
    on conflict (workspace_id, kind, idempotency_key) do update
      set state = 'queued', reason = null, detail = null, attempt_token = null, owner = null, lease_until = null,
        user_id = excluded.user_id, key_id = excluded.key_id, account_id = excluded.account_id,
        chat_id = excluded.chat_id, payload = excluded.payload, file_id = excluded.file_id,
        expires_at = excluded.expires_at, finished_at = null, reply_status = null, reply_body = null
      where o.state = 'released' and o.fingerprint = excluded.fingerprint
    returning id`)
  const row = await made.catch((error) => {
    // Of two that come at once the later may meet the random id of the first before it meets its key.
    if (isDuplicate(error, 'operations')) return undefined
    throw error
  })
  return row?.id
}

/** The same for the same key for ever: a platform that knows it takes the same message only once. */
function randomIdOf(app: App, workspace_id: string, kind: string, key: string): string {
  return app.secrets.sign('random_id', workspace_id, kind, key).readBigInt64BE().toString()
}

/** The caller gives up. False: it is past that, and nobody here knows how it will end. */
export async function withdraw(db: Db, id: string): Promise<boolean> {
  const withdrawn = await db.run(sql`
    update operations set state = 'released', reason = 'withdrawn', finished_at = domain_now()
    where id = ${id} and state = 'queued'`)
  return withdrawn === 1
}

export async function readSettled(db: Db, ids: readonly string[]): Promise<Settled[]> {
  return db.rows<Settled>(sql`
    select ${fields} from operations where id = any(${ids}) and state not in ('queued', 'submitting')`)
}

export async function findById(db: Db, id: string): Promise<Settled | undefined> {
  return db.maybe<Settled>(sql`select ${fields} from operations where id = ${id}`)
}
