/** Which database this is, and whether it went back in time: its restore counter only ever rises. */
import { type Db, sql, type Tx } from '../../db/sql.ts'
import type { ChatNumber } from '../../lib/shapes.ts'

export interface InstanceState {
  readonly id: string
  readonly restore_counter: string
  readonly generation: string
}

export function raiseRestoreCounter(db: Db): Promise<InstanceState> {
  return db.one<InstanceState>(sql`
    update instance set restore_counter = restore_counter + 1, restore_counter_at = clock_timestamp()
    returning id, restore_counter::text, generation`)
}

/** From now on it is another past that is remembered. */
export function renewGeneration(db: Db): Promise<InstanceState> {
  return db.one<InstanceState>(sql`
    update instance set generation = gen_random_uuid() returning id, restore_counter::text, generation`)
}

export interface Instance extends InstanceState {
  /** Somebody works on it at the moment, or nobody ever has. */
  readonly fresh: boolean
}

export function readInstance(db: Db): Promise<Instance> {
  return db.one<Instance>(sql`
    select id, restore_counter::text, generation,
      restore_counter = 0 or restore_counter_at > clock_timestamp() - interval '1 minute' as fresh
    from instance`)
}

/** What the promises stand on: a commit that was answered survives a crash of the machine. */
export async function listUnsafeSettings(db: Db): Promise<string[]> {
  const rows = await db.rows<{ name: string }>(sql`
    select name from pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off'
    order by name`)
  return rows.map(({ name }) => name)
}

/** What a journal remembers of an operation. */
export interface Remembered {
  readonly id: string
  readonly token: string
  readonly workspace_id: string
  readonly kind: string
  readonly account_id: string
  readonly chat_id: ChatNumber | null
  readonly random_id: string
  readonly key: string | null
  readonly fingerprint: string
}

/**
 * A row that the database has forgotten, or remembers as not yet submitted or as an earlier attempt, is one that nobody
 * can know about: it is put back as `ambiguous` with its key and its token, so that what the journal says next still
 * holds for it. A repeat may have made another row for the same key meanwhile. Returns the row's id, or undefined if
 * the database knew.
 */
export async function remember(
  tx: Tx,
  entry: Remembered,
  { forgettable }: { forgettable: boolean },
): Promise<string | undefined> {
  const known = await tx.maybe<{ id: string; state: string; attempt_token: string | null }>(sql`
    select id, state, attempt_token from operations where id = ${entry.id}
      or (workspace_id = ${entry.workspace_id} and kind = ${entry.kind} and idempotency_key = ${entry.key})
    for update`)
  if (!known) return (await insertForgotten(tx, entry, forgettable)) === 1 ? entry.id : undefined
  const { id, state, attempt_token } = known
  if (state === 'completed' || state === 'refused') return undefined
  if ((state === 'submitting' || state === 'ambiguous') && attempt_token === entry.token) return undefined
  // The guard knows no shorter way.
  await tx.run(sql`
    update operations set state = 'submitting' where id = ${id} and state in ('queued', 'released')`)
  await tx.run(sql`
    update operations set state = 'ambiguous', reason = 'restored', detail = null, finished_at = domain_now(),
      lease_until = null, attempt_no = attempt_no + 1, attempt_token = ${entry.token},
      public_id = case when id <> ${entry.id} then ${entry.id}::uuid end
    where id = ${id} and state in ('submitting', 'ambiguous')`)
  return id
}

function insertForgotten(tx: Tx, entry: Remembered, forgettable: boolean): Promise<number> {
  return tx.run(sql`
    insert into operations (id, workspace_id, kind, effect, idempotency_key, fingerprint, state, reason, account_id,
      chat_id, random_id, attempt_no, attempt_token, finished_at, forgettable)
    select ${entry.id}::uuid, ${entry.workspace_id}::uuid, ${entry.kind}, 'platform', ${entry.key},
      decode(${entry.fingerprint}, 'hex'), 'ambiguous', 'restored', ${entry.account_id}, ${entry.chat_id}::bigint,
      ${entry.random_id}::bigint, 1, ${entry.token}::uuid, domain_now(), ${forgettable}
    where exists (select from accounts where id = ${entry.account_id} and workspace_id = ${entry.workspace_id})
    on conflict do nothing`)
}
