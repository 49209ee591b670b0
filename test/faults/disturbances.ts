/**
 * What else can happen to a ledger besides killed processes: a database that freezes, wholly or in one of its processes, accepts
 * no connections or ends them; and operators who switch accounts and sending off and on.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from '../../src/db/sql.ts'
import type { Plant } from './plant.ts'
import type { Random } from './random.ts'

export const disturbances = [
  'freeze_postgres',
  'freeze_backend',
  'exhaust_connections',
  'terminate_backends',
  'flip_account',
  'flip_dispatch',
] as const
export type Disturbance = (typeof disturbances)[number]

/** Some are shorter than every limit, some longer than a connection's time-out. */
const freezeSeconds = { least: 1, most: 12 }
const exhaustSeconds = { least: 1, most: 4 }
const flipSeconds = { least: 0.2, most: 3 }
const terminatedMax = 5

export function disturb(plant: Plant, random: Random, what: Disturbance): Promise<void> {
  const ms = ({ least, most }: typeof freezeSeconds) => random.between(least, most) * 1000
  switch (what) {
    case 'freeze_postgres':
      return plant.postgres.freeze(ms(freezeSeconds))
    case 'freeze_backend':
      return freezeBackend(plant, random, ms(freezeSeconds))
    case 'exhaust_connections':
      return plant.postgres.exhaust('plant', ms(exhaustSeconds))
    case 'terminate_backends':
      return terminateBackends(plant, random)
    case 'flip_account':
      return flipAccount(plant, random.pick(plant.accounts), ms(flipSeconds))
    case 'flip_dispatch':
      return flipDispatch(plant, ms(flipSeconds))
  }
}

/** The server's backends that work for our processes, the busiest first: hitting a busy one hurts most. */
async function listBackends(plant: Plant): Promise<number[]> {
  const rows = await plant.db.rows<{ pid: number }>(sql`
    select pid from pg_stat_activity where application_name ~ '^(work|serve)-' order by state = 'idle', random()`)
  return rows.map(({ pid }) => pid)
}

async function freezeBackend(plant: Plant, random: Random, ms: number): Promise<void> {
  const pids = (await listBackends(plant)).slice(0, 5)
  if (pids.length > 0) await plant.postgres.freezeProcesses([random.pick(pids)], ms)
}

async function terminateBackends(plant: Plant, random: Random): Promise<void> {
  const pids = (await listBackends(plant)).slice(0, 1 + random.whole(terminatedMax))
  await plant.db.run(sql`select pg_terminate_backend(pid) from unnest(${pids}::int[]) as t (pid)`)
}

/** Like `parley accounts disable` and `enable`. */
async function flipAccount(plant: Plant, id: string, ms: number): Promise<void> {
  await setAccount(plant, id, 'DISABLED')
  await sleep(ms)
  await untilDone(() => setAccount(plant, id, 'CONNECTING'))
}

async function setAccount(plant: Plant, id: string, status: 'CONNECTING' | 'DISABLED'): Promise<void> {
  await plant.db.transaction(async (tx) => {
    await tx.run(sql`update accounts set status = ${status} where id = ${id} and status <> ${status}`)
    await tx.run(sql`
      update account_hosts set lease_epoch = lease_epoch + 1, lease_until = null, lease_owner = null
      where account_id = ${id}`)
  })
}

/** Like `parley dispatch off` and `on`. */
async function flipDispatch(plant: Plant, ms: number): Promise<void> {
  await plant.db.run(sql`update settings set value = 'false' where name = 'dispatch'`)
  await sleep(ms)
  await untilDone(() => plant.db.run(sql`update settings set value = 'true' where name = 'dispatch'`))
}

/** Retries, because something else may hit the database meanwhile: what was switched off must be switched on again. */
async function untilDone(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work()
      return
    } catch {
      await sleep(200)
    }
  }
}
