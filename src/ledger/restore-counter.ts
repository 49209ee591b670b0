/** Which database this is, and whether it went back in time: its restore counter only rises. */
import { type Db, type Sql, sql } from '../db/sql.ts'

export interface InstanceState {
  readonly id: string
  readonly restore_counter: string
  readonly generation: string
  /** The database server's present run: it changes with every start of the server. */
  readonly server_run: string
}

const stateColumns: Sql = sql`id, restore_counter::text, generation, server_run() as server_run`

export function raiseRestoreCounter(db: Db): Promise<InstanceState> {
  return db.one<InstanceState>(sql`
    update instance set restore_counter = restore_counter + 1, restore_counter_at = real_now()
    returning ${stateColumns}`)
}

/** Starts a new generation, so that processes that remember the old one notice. */
export function renewGeneration(db: Db): Promise<InstanceState> {
  return db.one<InstanceState>(sql`
    update instance set generation = gen_random_uuid() returning ${stateColumns}`)
}

/** The database may be a copy of one that is in use: accounts that two addresses must not use at once stay unconnected. */
export async function doubtInstance(db: Db): Promise<void> {
  await db.run(sql`update instance set unconfirmed_since = coalesce(unconfirmed_since, real_now())`)
}

/** An operator says that this database is the one in use. */
export async function confirmInstance(db: Db): Promise<void> {
  await db.run(sql`update instance set unconfirmed_since = null where unconfirmed_since is not null`)
}

export interface Instance extends InstanceState {
  /** A worker is using it at the moment, or none ever has. */
  readonly fresh: boolean
}

export function readInstance(db: Db): Promise<Instance> {
  return db.one<Instance>(sql`
    select ${stateColumns},
      restore_counter = 0 or restore_counter_at > real_now() - interval '1 minute'
        and restore_counter_at < real_now() + interval '1 minute' -- guard: raised in the future
      as fresh
    from instance`)
}

/** Settings that every promise needs: an acknowledged commit survives a crash of the machine. */
export async function listUnsafeSettings(db: Db): Promise<string[]> {
  const rows = await db.rows<{ name: string }>(sql`
    select name from pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off'
    order by name`)
  return rows.map(({ name }) => name)
}
