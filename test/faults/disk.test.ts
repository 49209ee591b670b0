/** What a disk can do to a journal: it is slow to flush, or it is full. */
import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { endProcesses, hangMs, until } from '../harness/process.ts'
import type { Member } from './member.ts'
import type { Patch } from './patch.ts'
import { openPlant, type Plant } from './plant.ts'
import { Scene, summaryOf } from './scene.ts'

const run = promisify(execFile)

let plant: Plant
let scene: Scene
beforeAll(async () => {
  plant = await openPlant({ works: 2, accounts: 2, people: 1 })
  scene = new Scene(plant)
})
afterEach(async () => {
  expect(await scene.judge()).toEqual([])
})
afterAll(async () => {
  await plant?.close()
  await endProcesses()
})

/** The worker that drives the account. */
async function driverOf(account_id: string): Promise<Member | undefined> {
  const row = await plant.db.maybe<{ name: string }>(sql`
    select w.name from account_hosts h join faults.workers w on w.id = h.lease_owner
    where h.account_id = ${account_id} and h.lease_until > clock_timestamp() and h.observed_at is not null`)
  return plant.works.find(({ name }) => name === row?.name)
}

async function drives({ name }: Member): Promise<boolean> {
  const row = await plant.db.one<{ drives: boolean }>(sql`
    select drives from workers where id = (select id from faults.workers where name = ${name})`)
  return row.drives
}

/**
 * Files of the process may not grow beyond this: a write fails, as on a full disk, and the process lives. This needs
 * no mount and no right to make one.
 */
async function limitFiles({ pid }: Member, bytes: number | 'unlimited'): Promise<void> {
  await run('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`])
}

const canLimit = await run('prlimit', ['--version']).then(
  () => true,
  () => false,
)
if (!canLimit) process.stderr.write('There is no prlimit here: a full disk under a journal is not tested.\n')

test.skipIf(!canLimit)(
  'a full disk: nothing is sent, another process takes the accounts, and they return with the space',
  async () => {
    // Accounts may still change hands right after the start: wait until sharing is over and a session answers.
    await until('the accounts are shared at first', hangMs, async () => {
      const drivers = await Promise.all(plant.accounts.map(driverOf))
      return new Set(drivers).size === 2 && !drivers.includes(undefined)
    })
    await until('a session is live', hangMs, async () => (await scene.ask(scene.send())).status === 200)
    const wanted = scene.send()
    const full = await until('a worker drives the account', hangMs, () => driverOf(wanted.account_id))
    await limitFiles(full, 1)
    expect(summaryOf(await scene.ask(wanted))).toEqual([503, 'provider_unavailable'])
    expect(await scene.settled(wanted, 'released never_written journal')).toBe(
      'released never_written journal',
    )
    expect(await scene.look(wanted)).toMatchObject({ accepted: 0 })
    await until('it goes out elsewhere', hangMs, async () => (await scene.ask(wanted)).status === 200)
    expect(await driverOf(wanted.account_id)).not.toBe(full)
    expect([await drives(full), full.alive]).toEqual([false, true])
    await limitFiles(full, 'unlimited')
    await until('it may drive again', hangMs, () => drives(full))
    await until('the accounts are shared', hangMs, async () => {
      const drivers = await Promise.all(plant.accounts.map(driverOf))
      return new Set(drivers).size === 2 && !drivers.includes(undefined)
    })
    const again = [scene.send(), scene.send({ account: 1 })]
    for (const one of again) expect(summaryOf(await scene.ask(one))).toEqual([200])
  },
)

test('a flush that stalls for longer than the deadline: nothing is sent, and the repeat runs', async () => {
  const stalled = join(plant.directory, 'stalled')
  /** While the file exists, the disk does not answer. */
  const stall: Patch = {
    marker: 'guard: journal is flushed',
    replace: `
      const { existsSync } = await import('node:fs')
      while (existsSync(${JSON.stringify(stalled)})) await new Promise((go) => setTimeout(go, 20))
      if (lines.some(({ flush }) => flush)) await this.#file.datasync()`,
  }
  // Long enough for a repeat on a busy machine.
  const deadlineMs = 6_000
  const briefDeadline: Patch = {
    marker: 'limit: from boundary to call',
    replace: `const submitMsMax = ${deadlineMs}`,
  }
  await plant.work(1).kill()
  await scene.arm(stall, briefDeadline)
  const all = [scene.send(), scene.send({ account: 1 })]
  await writeFile(stalled, '')
  const first = all.map((wanted) => scene.ask(wanted))
  for (const wanted of all) await scene.until(wanted, 'submitting')
  await sleep(deadlineMs + 200)
  for (const wanted of all)
    expect(await scene.look(wanted)).toMatchObject({ state: 'submitting', accepted: 0 })
  // The sweep gave one of them up in the meantime: its worker lives, and knows better.
  await scene.expireAttempt(all[0] as (typeof all)[number])
  await scene.until(all[0] as (typeof all)[number], 'ambiguous')
  // Before its worker proves it.
  expect(summaryOf(await (first[0] as (typeof first)[number]))).toEqual([503, 'outcome_ambiguous'])
  await rm(stalled)
  for (const wanted of all) {
    expect(await scene.settled(wanted, 'released never_written deadline')).toBe(
      'released never_written deadline',
    )
    expect(await scene.look(wanted)).toMatchObject({ accepted: 0 })
  }
  expect(summaryOf(await (first[1] as (typeof first)[number]))).toEqual([503, 'provider_unavailable'])
  for (const wanted of all) {
    expect(summaryOf(await scene.ask(wanted))).toEqual([200])
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
  }
})
