/**
 * Operations as callers request them: commits a row before anything happens (T1), and finds the row that answers a repeat
 * of the key. Nothing here calls the platform; the worker that drives the account does.
 */
import type { App, LedgerOperation, QueuedAttempt, Topic } from '../app.ts'
import type { Caller } from '../contract.ts'
import { isDuplicate } from '../db/errors.ts'
import { type Db, type Sql, sql, type Tx } from '../db/sql.ts'
import type { NewOperation, OperationKind } from '../operation.ts'
import { markOperations } from './operation-marks.ts'
import { settle } from './settle.ts'

/** An operation is waiting for the worker that drives its account. */
export const enqueued: Topic = { topic: 'operations' }
/** An operation has ended, and a caller may be waiting for it. */
export const settled: Topic = { topic: 'settled' }

const fields = sql`id, queued_no, kind, account_id, state, reason, detail, fingerprint, reply_status, reply_body`

export interface OperationRequest {
  readonly operation: OperationKind
  readonly key: string | undefined
  readonly fingerprint: Buffer
}

export async function findOperation(
  db: Db,
  workspace_id: string,
  { operation: { kind }, key }: OperationRequest,
): Promise<LedgerOperation | undefined> {
  if (key === undefined) return undefined
  return db.maybe<LedgerOperation>(sql`
    select ${fields} from operations
    where idempotency_key = ${key} -- guard: key is looked up
      and workspace_id = ${workspace_id} and kind = ${kind}`)
}

/** How long an operation may wait for its worker, and its caller for the answer. Files take longer. */
export const waits = {
  text: { expires_seconds: 30, wait_ms: 25_000 }, // limit: patience of a caller
  file: { expires_seconds: 120, wait_ms: 115_000 },
} as const

/**
 * T1. Undefined when the key's row exists and may not run again. On its own it need not be flushed: the boundary's commit
 * flushes it, and no caller gets a success before that. In the caller's transaction it is flushed with that commit.
 */
export async function enqueue(
  app: App,
  caller: Caller,
  asked: OperationRequest & { wanted: NewOperation; tx?: Tx },
): Promise<QueuedAttempt | undefined> {
  const { tx } = asked
  const made = tx
    ? tx.maybe<QueuedAttempt>(insertOf(app, caller, asked))
    : app.db.maybe<QueuedAttempt>(sql`
        with unflushed as materialized (select set_config('synchronous_commit', 'off', true))
        ${insertOf(app, caller, asked, sql`from unflushed`)}`)
  return made.catch((error) => {
    // Of two concurrent inserts, the second may hit the first one's random id before its key.
    if (!tx && isDuplicate(error, 'operations')) return undefined
    throw error
  })
}

function insertOf(
  app: App,
  caller: Caller,
  { operation: { kind, forgettable }, key, fingerprint, wanted }: OperationRequest & { wanted: NewOperation },
  from: Sql = sql``,
): Sql {
  const id = app.sources.newId()
  const { expires_seconds } = wanted.file_id === undefined ? waits.text : waits.file
  return sql`
    insert into operations as o (id, workspace_id, kind, effect, idempotency_key, fingerprint, state, user_id, key_id,
      account_id, chat_id, payload, file_id, random_id, expires_at, forgettable)
    select ${id}::uuid, ${caller.workspace_id}::uuid, ${kind}, 'platform',
      ${key ?? null}, -- guard: key is stored
      ${fingerprint}::bytea, 'queued',
      ${caller.user_id}::uuid, ${caller.via.kind === 'key' ? caller.via.id : null}::uuid, ${wanted.account_id},
      ${wanted.chat_id}::bigint, ${JSON.stringify(wanted.payload)}::jsonb, ${wanted.file_id ?? null}::uuid,
      ${randomIdOf(app, caller.workspace_id, kind, key ?? id)}::bigint, -- guard: random id of the key
      real_now() + make_interval(secs => ${expires_seconds}::int), ${forgettable}
    ${from}
    on conflict (workspace_id, kind, idempotency_key) do update
      set state = 'queued', queued_no = o.queued_no + 1, reason = null, detail = null, owner = null, lease_until = null,
        user_id = excluded.user_id, key_id = excluded.key_id, account_id = excluded.account_id,
        chat_id = excluded.chat_id, payload = excluded.payload, file_id = excluded.file_id,
        expires_at = excluded.expires_at, finished_at = null, reply_status = null, reply_body = null,
        crossed_at = null, closed_as = null, closed_at = null, hint_message_id = null, looked_for_at = null
      where o.state = 'released'
        and o.fingerprint = excluded.fingerprint -- guard: a key runs again for the same payload only
    returning id, queued_no`
}

/** Always the same for one key: a platform that knows random ids accepts the message only once. */
function randomIdOf(app: App, workspace_id: string, kind: string, key: string): string {
  return app.secrets.sign('random_id', workspace_id, kind, key).readBigInt64BE().toString()
}

/** Releases an operation whose caller gives up. Once it has left the queue, its outcome is unknown here. */
export async function withdraw(app: App, { id, queued_no }: QueuedAttempt): Promise<void> {
  const ending = { to: 'released', reason: 'withdrawn' } as const
  const settlement = { id, token: null, queued_no, ending }
  markOperations(app, await app.db.transaction((tx) => settle(tx, app.operations, [settlement])))
}

export async function readSettled(db: Db, ids: readonly string[]): Promise<LedgerOperation[]> {
  return db.rows<LedgerOperation>(sql`
    select ${fields} from operations where id = any(${ids}) and state not in ('queued', 'submitting')`)
}

export async function findById(db: Db, id: string): Promise<LedgerOperation | undefined> {
  return db.maybe<LedgerOperation>(sql`select ${fields} from operations where id = ${id}`)
}
