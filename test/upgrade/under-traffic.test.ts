/** The last two releases' databases are migrated while transactions use their tables, in every order and without a pause. */
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openBackup } from '../../src/db/backup-file.ts'
import { applyMigration, isMigrated, listMigrations, migrate } from '../../src/db/migrate.ts'
import { measureLocks, readMigrationLocks, type TableLocks } from '../../src/db/migration-locks.ts'
import { openDatabase } from '../../src/db/pool.ts'
import { requireSteps, restoreBackup } from '../../src/db/restore.ts'
import { type Database, sql } from '../../src/db/sql.ts'
import { copyDatabase, type TestDatabase } from '../harness/database.ts'
import { until } from '../harness/process.ts'

const files = globSync('*.backup', { cwd: import.meta.dirname })
  .sort()
  .slice(-2)
const waitMsMax = 60_000

let copy: TestDatabase
let db: Database

beforeEach(async () => {
  copy = await copyDatabase()
  db = openDatabase({ connectionString: copy.url }, { pool_size: 3 })
})
afterEach(async () => {
  await db.close()
  await copy.drop()
})

/** With the schema and the rows of that release. */
async function restore(file: string): Promise<void> {
  const backup = await openBackup(join(import.meta.dirname, file))
  try {
    const steps = await requireSteps(backup)
    await restoreBackup(db, backup, { steps: { ...steps, after: [] }, finish: async () => {} })
  } finally {
    await backup.close()
  }
}

async function withClients(
  count: number,
  work: (clients: readonly pg.Client[]) => Promise<void>,
): Promise<void> {
  const clients = await Promise.all(Array.from({ length: count }, () => db.client()))
  try {
    for (const client of clients) await client.query('set lock_timeout = 0; set statement_timeout = 0')
    await work(clients)
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
}

const held = (locks: TableLocks) => Object.keys(locks).sort()

describe.each(files)('%s', (file) => {
  test('with its rows no migration takes a lock that it did not take first', async () => {
    await restore(file)
    const known = await readMigrationLocks()
    const applied = new Set(
      (await db.rows<{ name: string }>(sql`select name from schema_migrations`)).map((row) => row.name),
    )
    const pending = (await listMigrations()).filter(({ name }) => !applied.has(name))
    expect(pending.length).toBeGreaterThan(0)
    await withClients(1, async ([client]) => {
      if (!client) return
      for (const migration of pending) {
        await client.query('begin')
        const locks = await measureLocks(client, () => applyMigration(client, migration))
        await client.query('commit')
        expect([migration.name, ...held(locks)]).toEqual([
          migration.name,
          ...held(known[migration.name] ?? {}),
        ])
      }
    })
  })

  test('is migrated while its tables are read and written in every order, and no transaction fails', async () => {
    await restore(file)
    const known = await readMigrationLocks()
    const tables = [
      ...new Set((await listMigrations()).flatMap(({ name }) => Object.keys(known[name] ?? {}))),
    ]
    const { rows: there } = await db.pool.query<{ name: string }>(
      `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relname = any($1)`,
      [tables],
    )
    const names = there.map(({ name }) => name)
    let over = false
    const failures: unknown[] = []
    let transactions = 0
    let attempts = 0
    await withClients(8, async (clients) => {
      const traffic = clients.map(async (client, n) => {
        for (let at = n; !over; at++) {
          // Every pair of tables comes up in both orders.
          const [one, other] = [names[at % names.length], names[(at * 7 + n) % names.length]]
          try {
            await client.query('begin')
            await client.query(`lock table ${one} in row exclusive mode`)
            await client.query('select pg_sleep(0.005)')
            await client.query(`lock table ${other} in row exclusive mode`)
            await client.query('commit')
          } catch (error) {
            failures.push(error)
            await client.query('rollback')
          }
          transactions++
        }
      })
      try {
        await until('traffic', waitMsMax, async () => transactions > 50)
        await migrate(db, undefined, {
          contended(_, attempt) {
            attempts = Math.max(attempts, attempt)
          },
        })
      } finally {
        over = true
        await Promise.all(traffic)
      }
    })
    // From the fifth attempt on, which a busy machine may need, another transaction may fail.
    if (attempts < 4) expect(failures).toEqual([])
    expect(await isMigrated(db)).toBe(true)
  })
})

test('a transaction that holds what a migration needs next is not aborted: the migration gives way', async () => {
  await restore(files[0] ?? '')
  const waiting = (query: string) => async () => {
    const { rows } = await db.pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like $1`,
      [`%${query}%`],
    )
    return rows.length > 0
  }
  await withClients(2, async ([first, other]) => {
    if (!first || !other) return
    let gaveWay = 0
    // Of the tables of 0032_platform_waits.sql, the first and the last.
    await first.query('begin; lock table account_hosts in row exclusive mode')
    await other.query('begin; lock table instance in row exclusive mode')
    const migrated = migrate(db, undefined, { contended: () => gaveWay++ })
    migrated.catch(() => {})
    await until('the migration waits', waitMsMax, waiting('account_hosts'))
    const follows = other.query('lock table account_hosts in row share mode')
    follows.catch(() => {})
    // It queues behind the migration; or the migration has given way before, and it has the lock.
    await Promise.race([follows, until('it queues', waitMsMax, waiting('account_hosts in row share mode'))])
    // Now the migration gets the table, and waits for what the other transaction holds.
    await first.query('commit')
    await follows
    await sleep(10)
    await other.query('commit')
    await migrated
    expect(gaveWay).toBeGreaterThan(0)
  })
  expect(await isMigrated(db)).toBe(true)
})
