/** Tests of the fault tests' plant: it starts, can be damaged in every way it offers, and leaves nothing behind. */
import { randomUUID } from 'node:crypto'
import { access, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openDatabase } from '../../src/db/pool.ts'
import { sql } from '../../src/db/sql.ts'
import { listJournals, markReplayed, openJournal } from '../../src/ledger/journal.ts'
import { endProcesses, hangMs, serversOf, until } from '../harness/process.ts'
import { makeScratch } from '../harness/scratch.ts'
import { ask, sendOf } from './clients.ts'
import type { Fate } from './lossy.ts'
import { readJournals } from './member.ts'
import { judge } from './oracle.ts'
import { openPlant, type Plant } from './plant.ts'

let plant: Plant
let fate: Fate = 'pass'
beforeAll(async () => {
  plant = await openPlant({ serves: 1, works: 1, accounts: 2, people: 2, lossy: () => fate })
})
afterAll(async () => {
  await plant?.close()
  await endProcesses()
})

async function me(): Promise<number> {
  const response = await fetch(`${plant.urls[0]}/api/v1/me`, {
    headers: { authorization: `Bearer ${plant.tenant.key}` },
  })
  await response.body?.cancel()
  return response.status
}

test('starts with every account READY, every chat known, nothing accepted yet', async () => {
  expect(await me()).toBe(200)
  expect(plant.people).toHaveLength(2)
  expect(await plant.evidence([])).toMatchObject({ journal: [], operations: [], transitions: [] })
  await plant.settled(1_000)
})

test('evidence is read again if the platform accepts a message meanwhile', async () => {
  const account_id = plant.accounts[0] ?? ''
  const chat_id = `platform:chat:${plant.people[0]}`
  const { snapshot } = plant.db
  const reading = vi.spyOn(plant.db, 'snapshot').mockImplementationOnce(async (work) => {
    const read = await snapshot(work)
    const { status } = await ask(plant, sendOf({ key: 'meanwhile', account_id, chat_id, text: 'Hello' }))
    expect(status).toBe(200)
    return read
  })
  const evidence = await plant.evidence([])
  reading.mockRestore()
  expect(evidence.journal).toHaveLength(1)
  expect(judge(evidence)).toEqual([])
})

test("a killed process restarts under its name, and dead processes' leases can be expired", async () => {
  const worker = plant.work(0)
  expect(worker.name).toBe('work-0.1')
  await worker.kill()
  expect(worker.alive).toBe(false)
  await worker.start()
  expect(worker.name).toBe('work-0.2')
  await plant.expireLeases()
  await plant.untilReady(10_000)
  const names = await plant.db.rows(sql`
    select distinct name from account_hosts join faults.workers on id = lease_owner`)
  expect(names).toEqual([{ name: 'work-0.2' }])
})

test('a journal that is renamed between the list and the read is read under its new name', async () => {
  const directory = await makeScratch('parley-journals-')
  try {
    const journal = await openJournal(directory, randomUUID())
    await journal.conclude({
      id: 'an operation',
      token: 'an attempt',
      outcome: { kind: 'not_written', reason: 'late' },
    })
    await journal.close()
    const entries = await readJournals(directory, async () => {
      const files = await listJournals(directory)
      for (const file of files) await markReplayed(directory, file)
      return files
    })
    expect(entries).toMatchObject([{ token: 'an attempt' }])
  } finally {
    await rm(directory, { recursive: true })
  }
})

test('a patch reaches the process; one that does not apply stops its start', async () => {
  const hello = "process.stderr.write('hello\\n')"
  await plant.serve(0).restart([{ marker: 'limit: from boundary to call', insert: hello }])
  expect(plant.serve(0).output()).toContain('hello')
  await plant.serve(0).kill()
  const nowhere = { marker: 'guard of nothing', replace: '' }
  await expect(plant.serve(0).start([nowhere])).rejects.toThrow(/ended with 97/)
  await plant.serve(0).start()
  expect(await me()).toBe(200)
})

test('a paused process is silent until it is resumed', async () => {
  plant.serve(0).pause()
  const answer = me()
  expect(await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 500))])).toBeUndefined()
  plant.serve(0).resume()
  expect(await answer).toBe(200)
})

test.each(['SIGKILL', 'SIGQUIT'] as const)('PostgreSQL survives %s', async (signal) => {
  await plant.db.run(sql`create table if not exists kept (n int)`)
  await plant.db.run(sql`insert into kept values (1)`)
  await plant.postgres.crash(signal)
  await until('it answers again', hangMs, () => me().then((status) => status === 200))
  const { kept } = await plant.db.one<{ kept: number }>(sql`select count(*)::int as kept from kept`)
  expect(kept).toBeGreaterThan(0)
})

test('an older copy of the database can take its place', async () => {
  const copy = join(plant.directory, 'copy')
  await plant.postgres.stop()
  await plant.postgres.copy(copy)
  await plant.postgres.start()
  await plant.db.run(sql`create table newer (n int)`)
  await plant.postgres.stop()
  await plant.postgres.restore(copy)
  await plant.postgres.start()
  const row = await plant.db.one(sql`select to_regclass('newer') as newer`)
  expect(row).toEqual({ newer: null })
})

test('a COMMIT can be lost before it commits, and after, at a boundary or elsewhere', async () => {
  const { lossy } = plant
  if (!lossy) throw new Error('The plant was opened without it.')
  await Promise.all(plant.members.map((member) => member.kill()))
  const url = plant.postgres.url('plant', { name: 'test', port: lossy.port })
  const db = openDatabase({ connectionString: url }, { pool_size: 1 })
  await plant.db.run(sql`create table lost (n int)`)
  const before = { boundaries: { ...lossy.boundaries }, others: { ...lossy.others } }
  const boundary = sql`update operations set state = 'submitting' where state = 'queued'`
  const settling = sql`update operations set state = 'completed' where state = 'submitting'`
  const attempt = async (n: number, planned: Fate, statement = settling) => {
    fate = planned
    try {
      await db.transaction(async (tx) => {
        await tx.run(statement)
        await tx.run(sql`insert into lost values (${n})`)
      })
    } finally {
      fate = 'pass'
    }
  }
  await expect(attempt(1, 'before')).rejects.toThrow('COMMIT')
  await expect(attempt(2, 'after')).rejects.toThrow('COMMIT')
  await expect(attempt(3, 'before', boundary)).rejects.toThrow('COMMIT')
  await expect(attempt(4, 'after', boundary)).rejects.toThrow('COMMIT')
  fate = 'after'
  await expect(db.run(boundary)).rejects.toThrow()
  fate = 'pass'
  expect(await db.rows(sql`select n from lost order by n`)).toEqual([{ n: 2 }, { n: 4 }])
  await db.close()
  expect(lossy.others).toEqual({ before: before.others.before + 1, after: before.others.after + 1 })
  expect(lossy.boundaries).toEqual({
    before: before.boundaries.before + 1,
    after: before.boundaries.after + 2,
  })
})

test('close leaves no process and no file', async () => {
  const { directory } = plant
  await plant.close()
  expect(await serversOf(directory)).toEqual([])
  await expect(access(directory)).rejects.toThrow()
})
