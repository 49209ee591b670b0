/**
 * The locks that a migration needs on tables that running processes use. It takes all of them before it begins to work: one that
 * holds a table while it waits for another deadlocks with transactions that use the two in the other order.
 * `npm run generated` measures them and writes `migration-locks.json`.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'

/** By table, the mode as `lock table` names it. */
export type TableLocks = Readonly<Record<string, string>>

export const migrationLocksFile = join(import.meta.dirname, 'migration-locks.json')

/** By the name of the migration. One of another slice is not listed: it waits for its locks as it comes to them. */
export async function readMigrationLocks(): Promise<Readonly<Record<string, TableLocks>>> {
  return JSON.parse(await readFile(migrationLocksFile, 'utf8'))
}

/**
 * The weakest mode that covers what was seen, strongest first. A migration that writes rows of a table locks out other
 * writers: otherwise it would wait for a row while it holds tables.
 */
const modes: readonly (readonly [seen: RegExp, mode: string])[] = [
  [/^AccessExclusiveLock$/, 'access exclusive'],
  [/^(ExclusiveLock|RowExclusiveLock|RowShareLock)$/, 'exclusive'],
  [/^ShareRowExclusiveLock$/, 'share row exclusive'],
  [/^ShareLock$/, 'share'],
  [/^ShareUpdateExclusiveLock$/, 'share update exclusive'],
]

/** The locks that `work` takes on tables that were there before, within the caller's transaction. */
export async function measureLocks(client: pg.Client, work: () => Promise<void>): Promise<TableLocks> {
  const { rows: tables } = await client.query<{ oid: number; name: string }>(`
    select oid::int, relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname <> 'schema_migrations'
    order by relname`)
  // The check of a function's text locks every table that it names as a write does, which waits for no other transaction's rows.
  await client.query('set local check_function_bodies = off')
  await work()
  const { rows: seen } = await client.query<{ oid: number; mode: string }>(`
    select relation::int as oid, mode from pg_locks where pid = pg_backend_pid() and locktype = 'relation'`)
  const locks: Record<string, string> = {}
  for (const { oid, name } of tables) {
    const held = seen.filter((lock) => lock.oid === oid)
    const needed = modes.find(([pattern]) => held.some(({ mode }) => pattern.test(mode)))
    if (needed) locks[name] = needed[1]
  }
  return locks
}

/** Takes the locks in the caller's transaction, all of them within `ms`, or fails with a code of `isContended`. */
export async function takeLocks(client: pg.Client, locks: TableLocks, ms: number): Promise<void> {
  const statements = Object.entries(locks).map(([table, mode]) => `lock table "${table}" in ${mode} mode;`)
  if (statements.length === 0) return
  await client.query(`set local statement_timeout = ${ms}`)
  // One block, because the time limit is for each statement of a client.
  await client.query(`do $$ begin ${statements.join(' ')} end $$`)
  await client.query('set local statement_timeout = 0')
}

/** In words, who uses one of the tables for longest; null if no session does any more. */
export async function findHolder(client: pg.Client, locks: TableLocks): Promise<string | null> {
  const { rows } = await client.query<{ holder: string }>(
    `select format('%s, held by the session %s of %s for %s s', c.relname, a.pid, coalesce(nullif(a.application_name, ''),
        a.backend_type), coalesce(extract(epoch from clock_timestamp() - a.xact_start)::int, 0)) as holder
     from pg_locks l join pg_class c on c.oid = l.relation join pg_stat_activity a on a.pid = l.pid
     where l.granted and a.pid <> pg_backend_pid() and c.relnamespace = 'public'::regnamespace and c.relname = any($1)
       and l.database = (select oid from pg_database where datname = current_database())
     order by a.xact_start limit 1`,
    [Object.keys(locks)],
  )
  return rows[0]?.holder ?? null
}
