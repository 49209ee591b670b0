/** Numbered plain SQL, forward only, one transaction each. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { Refusal } from '../lib/errors.ts'
import { findHolder, readMigrationLocks, type TableLocks, takeLocks } from './migration-locks.ts'
import { type Database, type Db, type Sql, sql } from './sql.ts'

export interface Migration {
  readonly version: number
  readonly name: string
  readonly text: string
  readonly checksum: string
}

export const migrationsDirectory = join(import.meta.dirname, 'migrations')
export const migrationLock = 7_346_003

export async function listMigrations(
  directories: readonly string[] = [migrationsDirectory],
): Promise<Migration[]> {
  const migrations = await Promise.all(directories.map(readMigrations))
  return migrations.flat().sort((one, other) => one.version - other.version)
}

async function readMigrations(directory: string): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((file) => /^\d{4}_[a-z_]+\.sql$/.test(file))
  return Promise.all(
    files.map(async (name) => {
      const text = await readFile(join(directory, name), 'utf8')
      const checksum = createHash('sha256').update(text).digest('hex')
      return { version: Number(name.slice(0, 4)), name, text, checksum }
    }),
  )
}

export const makeMigrationsTable = `create table if not exists schema_migrations (
  version integer primary key, name text not null, checksum text not null,
  applied_at timestamptz not null default now())`

/** Follows a migration of the database. */
export interface MigrationWatch {
  /** Another process migrates; this one waits for it. */
  elsewhere?(): void
  applied?(name: string, ms: number): void
  /** Nothing of the migration is applied, and it is tried again. `holder` names the table and the session that uses it. */
  contended?(name: string, attempt: number, holder: string | null): void
}

/**
 * Migrates the database to this code's version. Several processes may start at once: one works, the others wait. A database
 * that is migrated needs no right to create anything.
 */
export async function migrate(
  db: Database,
  directories?: readonly string[],
  watch: MigrationWatch = {},
): Promise<readonly string[]> {
  const [migrations, locks] = await Promise.all([listMigrations(directories), readMigrationLocks()])
  const client = await db.client()
  const read: Read = async ({ text }) => (await client.query(text)).rows
  try {
    await client.query('set lock_timeout = 0; set statement_timeout = 0')
    if (!(await tryLock(client))) {
      watch.elsewhere?.()
      await client.query('select pg_advisory_lock($1)', [migrationLock])
    }
    const pending = await readPending(read, migrations)
    // PostgreSQL asks for the right to create even if the table exists.
    if (pending.length > 0) await client.query(makeMigrationsTable) // guard: a migrated database is only read
    await client.query(`set lock_timeout = ${lockMsMax}`) // guard: a migration waits a bounded time
    for (const migration of pending)
      await applyAlone(client, { migration, locks: locks[migration.name] ?? {}, watch })
    return pending.map(({ name }) => name)
  } finally {
    await client.end()
  }
}

/** For a lock that `migration-locks.json` does not name, such as that of a row. */
const lockMsMax = 3_000

/** From the first attempt of a migration; then a person has to look at what holds its tables. */
const contendedMsMax = 600_000

/**
 * One migration is one transaction. On a busy instance it gives way: it takes all its locks at once or none of them, and tries
 * again after a rest in which the requests that queued behind it are answered.
 */
async function applyAlone(
  client: pg.Client,
  { migration, locks, watch }: { migration: Migration; locks: TableLocks; watch: MigrationWatch },
): Promise<void> {
  const begunAt = performance.now()
  const deadlockMs = await readDeadlockMs(client)
  for (let attempt = 1; ; attempt++) {
    const startedAt = performance.now()
    try {
      await client.query('begin')
      await takeLocks(client, locks, lockWaitMs(attempt, deadlockMs)) // guard: locks before work
      await applyMigration(client, migration)
      await client.query('commit')
      watch.applied?.(migration.name, performance.now() - startedAt)
      return
    } catch (error) {
      await client.query('rollback').catch(() => {})
      if (!isContended(error)) throw error // guard: a contended migration is tried again
      const holder = await findHolder(client, locks)
      if (performance.now() - begunAt > contendedMsMax) throw neverFree(migration, holder)
      watch.contended?.(migration.name, attempt, holder)
      await sleep(restMs * (0.5 + Math.random()))
    }
  }
}

const restMs = 1_000

/**
 * The server looks for deadlocks once a transaction has waited for `deadlock_timeout` (1 s). A migration that has all its locks
 * or has given up before then never makes another transaction fail. Only a longer wait makes the server cancel an autovacuum
 * that is in the way, so every fifth attempt is one. Shorter than `lock_timeout` of a request, in both cases.
 */
function lockWaitMs(attempt: number, deadlockMs: number): number {
  return Math.round(deadlockMs * (attempt % 5 === 0 ? 1.5 : 0.8)) // guard: a migration gives way
}

async function readDeadlockMs(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ ms: number }>(
    `select (extract(epoch from current_setting('deadlock_timeout')::interval) * 1000)::int as ms`,
  )
  return rows[0]?.ms ?? 1_000
}

/** A lock or a row that was not free in time, or a deadlock: nothing is wrong with the migration. */
function isContended(error: unknown): boolean {
  return ['55P03', '57014', '40P01', '40001'].includes((error as { code?: string }).code ?? '')
}

function neverFree({ name }: Migration, holder: string | null): Refusal {
  return new Refusal(
    `The migration ${name} did not get its tables within ten minutes${holder ? ` (${holder})` : ''}. Nothing of it is applied, ` +
      'and the database works as before. End the transaction that holds them, then run `parley migrate` again.',
  )
}

async function tryLock(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>('select pg_try_advisory_lock($1) as locked', [
    migrationLock,
  ])
  return rows[0]?.locked === true
}

type AppliedMigration = Pick<Migration, 'version' | 'name' | 'checksum'>

function requireKnown(migrations: readonly Migration[], applied: readonly AppliedMigration[]): void {
  for (const { version, name, checksum } of applied) {
    const known = migrations.find((migration) => migration.version === version)
    if (!known) {
      throw new Refusal(
        `The database is newer than this Parley: it has the migration ${name}. Run the newer version.`,
      )
    }
    if (known.checksum !== checksum) {
      throw new Refusal(`The migration ${name} differs from the one that created this database.`)
    }
  }
}

/** Runs in the caller's transaction. */
export async function applyMigration(client: pg.Client, migration: Migration): Promise<void> {
  const { version, name, text, checksum } = migration
  await client.query(text)
  await client.query('insert into schema_migrations (version, name, checksum) values ($1, $2, $3)', [
    version,
    name,
    checksum,
  ])
}

/** The migrations of this code that the database lacks. Refuses a database that a newer or a different Parley migrated. */
export async function listPending(db: Db, directories?: readonly string[]): Promise<readonly string[]> {
  const pending = await readPending((statement) => db.rows(statement), await listMigrations(directories))
  return pending.map(({ name }) => name)
}

type Read = <T>(statement: Sql) => Promise<T[]>

async function readPending(read: Read, migrations: readonly Migration[]): Promise<readonly Migration[]> {
  const [table] = await read<{ exists: boolean }>(
    sql`select to_regclass('public.schema_migrations') is not null as exists`,
  )
  const applied = table?.exists
    ? await read<AppliedMigration>(sql`select version, name, checksum from schema_migrations`)
    : []
  requireKnown(migrations, applied)
  const versions = new Set(applied.map(({ version }) => version))
  return migrations.filter(({ version }) => !versions.has(version))
}

/** Whether the database has every migration of this code, or more: a process stays ready while a newer version migrates. */
export async function isMigrated(db: Db, wanted?: readonly Migration[]): Promise<boolean> {
  const applied = await db.rows<{ version: number }>(sql`select version from schema_migrations`)
  const versions = new Set(applied.map(({ version }) => version))
  return (wanted ?? (await listMigrations())).every(({ version }) => versions.has(version))
}
