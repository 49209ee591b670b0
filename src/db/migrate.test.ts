import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { copyDatabase, type TestDatabase } from '../../test/harness/database.ts'
import { makeScratch } from '../../test/harness/scratch.ts'
import { ensureClock, moveClock } from './domain-clock.ts'
import { dumpSchema } from './dump.ts'
import { isMigrated, listMigrations, migrate, migrationsDirectory } from './migrate.ts'
import { findHolder } from './migration-locks.ts'
import { openDatabase } from './pool.ts'
import { type Database, sql } from './sql.ts'

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

/** As if nothing had ever been installed. */
async function empty(): Promise<void> {
  await db.pool.query('drop schema public cascade; create schema public')
}

describe('migrations', () => {
  test('each have a number, and run in that order', async () => {
    const versions = (await listMigrations()).map(({ version }) => version)
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b))
    expect(versions[0]).toBe(1)
  })

  test('create the committed schema on an empty database', async () => {
    await empty()
    expect(await isMigrated(db).catch(() => false)).toBe(false)
    expect(await migrate(db)).toEqual((await listMigrations()).map(({ name }) => name))
    expect(await isMigrated(db)).toBe(true)
    expect(await migrate(db)).toEqual([])
    expect(await dumpSchema(db)).toBe(await readFile(join(import.meta.dirname, 'schema.sql'), 'utf8'))
  })

  test('open no gate', async () => {
    expect(await db.rows(sql`select from gates`)).toEqual([])
    expect(await db.rows(sql`select from allowlists`)).toEqual([])
  })

  test('run once when several processes start at the same time', async () => {
    await empty()
    const others = Array.from({ length: 4 }, () =>
      openDatabase({ connectionString: copy.url }, { pool_size: 2 }),
    )
    try {
      const applied = await Promise.all(others.map((other) => migrate(other)))
      expect(applied.filter((names) => names.length > 0)).toHaveLength(1)
      expect(await isMigrated(db)).toBe(true)
    } finally {
      await Promise.all(others.map((other) => other.close()))
    }
  })

  test('that differ from the applied ones are refused, and nothing is changed', async () => {
    await db.run(sql`update schema_migrations set checksum = 'other' where version = 1`)
    await expect(migrate(db)).rejects.toThrow(/^The migration 0001_foundation\.sql differs/)
  })

  test('that this code does not know are refused: the database is newer', async () => {
    await db.run(
      sql`insert into schema_migrations (version, name, checksum) values (9999, '9999_later.sql', '')`,
    )
    await expect(migrate(db)).rejects.toThrow(/newer than this Parley.*9999_later\.sql/)
  })

  test('killed in the middle leave all of a step or nothing of it', async () => {
    await empty()
    const blocker = await db.client()
    const { pathname } = new URL(copy.url)
    try {
      // Holds the second step back: it needs a name that is taken and not yet committed.
      await blocker.query('begin; create table accounts (id int)')
      const stopped = migrate(db).catch((error: Error) => error)
      const admin = new pg.Client({ ...inject('cluster'), database: 'postgres' })
      await admin.connect()
      const killed = async () => {
        const { rowCount } = await admin.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = $1 and wait_event_type = 'Lock' and query like '%create table accounts%'`,
          [pathname.slice(1)],
        )
        return rowCount === 1
      }
      const deadline = performance.now() + 10_000
      while (!(await killed()) && performance.now() < deadline) await new Promise((go) => setTimeout(go, 20))
      await admin.end()
      expect(await stopped).toBeInstanceOf(Error)
      await blocker.query('rollback')
    } finally {
      await blocker.end()
    }
    expect(await db.rows(sql`select version from schema_migrations`)).toEqual([{ version: 1 }])
    expect(await migrate(db)).toHaveLength((await listMigrations()).length - 1)
    expect(await dumpSchema(db)).toBe(await readFile(join(import.meta.dirname, 'schema.sql'), 'utf8'))
  })
})

describe('a migration that others keep from a table', () => {
  let directory: string
  beforeEach(async () => {
    directory = await makeScratch('parley-migrations-')
    await writeFile(join(directory, '9990_later.sql'), 'alter table chats add column later int;')
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  test('waits a bounded time, leaves nothing behind, and is tried again', async () => {
    const blocker = await db.client()
    try {
      await blocker.query('begin; lock table chats in row exclusive mode')
      let free = () => {}
      const freed = new Promise<void>((resolve) => {
        free = resolve
      })
      const timer = setTimeout(free, 20_000)
      const seen: string[] = []
      const migrated = migrate(db, [migrationsDirectory, directory], {
        contended(name) {
          seen.push(name)
          free()
        },
      })
      migrated.catch(() => {})
      await freed
      clearTimeout(timer)
      expect(await isMigrated(db, await listMigrations([directory]))).toBe(false)
      await blocker.query('commit')
      expect(await migrated).toEqual(['9990_later.sql'])
      expect(seen.length).toBeGreaterThan(0)
    } finally {
      await blocker.end()
    }
  })

  test('is named, with the session that holds the table', async () => {
    const blocker = await db.client()
    try {
      await blocker.query('begin; lock table chats in row exclusive mode')
      const client = await db.client()
      const holder = await findHolder(client, { chats: 'access exclusive' })
      await client.end()
      expect(holder).toMatch(/^chats, held by the session \d+ of parley for \d+ s$/)
    } finally {
      await blocker.end()
    }
  })

  test('of another kind than a lock is not tried again', async () => {
    await writeFile(join(directory, '9990_later.sql'), 'alter table nowhere add column later int;')
    await expect(migrate(db, [migrationsDirectory, directory])).rejects.toMatchObject({ code: '42P01' })
  })
})

describe('the clock', () => {
  const now = async () => (await db.one<{ now: Date }>(sql`select domain_now() as now`)).now

  test('is real unless it is manual, and a manual one stands still until it is moved', async () => {
    await ensureClock(db, 'system')
    expect(Math.abs((await now()).getTime() - Date.now())).toBeLessThan(5_000)
    await ensureClock(db, 'manual')
    const stands = await now()
    await ensureClock(db, 'manual')
    expect(await now()).toEqual(stands)
    const later = new Date(stands.getTime() + 86_400_000)
    expect(await moveClock(db, later)).toEqual(later)
    expect(await now()).toEqual(later)
  })

  test('never goes back', async () => {
    await ensureClock(db, 'manual')
    const stands = await now()
    expect(await moveClock(db, new Date(0))).toEqual(stands)
  })

  test('is checked: a manual one is refused where the real one is expected, and the other way round', async () => {
    await expect(moveClock(db, new Date())).rejects.toThrow('PARLEY_CLOCK=manual')
    await ensureClock(db, 'manual')
    await expect(ensureClock(db, 'system')).rejects.toThrow('PARLEY_CLOCK=manual')
  })
})
