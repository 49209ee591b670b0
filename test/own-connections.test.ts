/** The worker of a process has connections that no request can take, however long requests hold theirs. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeLogger } from '../src/cli/log.ts'
import { Service } from '../src/cli/service.ts'
import { readConfig } from '../src/config.ts'
import { sql } from '../src/db/sql.ts'
import { parts } from '../src/parts.ts'
import { copyDatabase, type TestDatabase } from './harness/database.ts'
import { hangMs, until } from './harness/process.ts'

let database: TestDatabase
let directory: string
beforeAll(async () => {
  database = await copyDatabase()
  directory = await mkdtemp(join(tmpdir(), 'parley-connections-'))
})
afterAll(async () => {
  await rm(directory, { recursive: true, force: true })
  await database.drop()
})

test('heartbeats and settings go on while requests hold every connection that they may have', async () => {
  const config = readConfig({
    DATABASE_URL: database.url,
    PARLEY_POOL_SIZE: '5',
    PARLEY_LOG_LEVEL: 'silent',
    PARLEY_SECRET: 'a secret of at least thirty-two characters',
  })
  const log = makeLogger('silent')
  const places = { port: 0, admin_port: undefined, demo: false }
  const service = await Service.open(parts, {
    role: 'start',
    config,
    log,
    data_dir: directory,
    ...places,
  })
  const held = Promise.withResolvers<void>()
  try {
    await service.begin()
    const { db, background, settings } = service.app
    // As many as the whole pool has: those beyond the share of requests wait, and are refused.
    const holding = Array.from({ length: 5 }, () => db.transaction(() => held.promise).catch(() => {}))
    const beats = async () => {
      const { beats } = await background.db.one<{ beats: string | null }>(
        sql`select max(beat_at)::text as beats from workers`,
      )
      return beats
    }
    for (let round = 0; round < 2; round++) {
      const before = await beats()
      await until('the worker beats', hangMs, async () => (await beats()) !== before)
    }
    await settings.refresh()
    expect(await fetch(`${service.app.base_url()}/healthz`)).toMatchObject({ status: 200 })
    held.resolve()
    await Promise.all(holding)
  } finally {
    held.resolve()
    await service.stop()
  }
})
