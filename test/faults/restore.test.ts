/** A restored database: the journals restore everything it lost, and every key answers as before. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { endProcesses, hangMs, until } from '../harness/process.ts'
import { ask, type PlannedCall, readStateOf, sendOf, startOf } from './clients.ts'
import { type CallRecord, judge } from './oracle.ts'
import { openPlant, type Plant } from './plant.ts'

let plant: Plant
const history: CallRecord[] = []
beforeAll(async () => {
  plant = await openPlant({ accounts: 2, people: 2 })
}, 120_000)
afterAll(async () => {
  await plant?.close()
  await endProcesses()
})

function place(key: string, person = 0) {
  return { key, account_id: plant.accounts[0] ?? '', chat_id: `platform:chat:${plant.people[person]}` }
}

async function asks(wanted: PlannedCall): Promise<CallRecord> {
  const asked = await ask(plant, wanted)
  history.push(asked)
  return asked
}

/** Until the platform's flood wait for the account ends. */
async function retryUntilStored(wanted: PlannedCall): Promise<CallRecord> {
  for (let tries = 1; ; tries++) {
    const asked = await asks(wanted)
    if (asked.status === 200 || tries === 40) return asked
    await sleep(250)
  }
}

async function copyDatabase(name: string): Promise<string> {
  const copy = join(plant.directory, name)
  await plant.work(0).kill()
  await plant.postgres.stop()
  await plant.postgres.copy(copy)
  await plant.postgres.start()
  await plant.work(0).start()
  await plant.expireLeases()
  await plant.untilReady()
  return copy
}

async function goBackTo(copy: string): Promise<void> {
  await plant.work(0).kill()
  await plant.postgres.stop()
  await plant.postgres.restore(copy)
  await plant.postgres.start()
  await plant.work(0).start()
  expect(plant.work(0).output()).toContain('an older copy of itself')
  await plant.db.run(sql`update settings set value = 'true' where name = 'dispatch'`)
  await plant.expireLeases()
  await plant.untilReady()
  await until('every outcome is recorded', hangMs, async () => {
    const rows = await plant.operations()
    return rows.every(({ state }) => state !== 'submitting' && state !== 'queued')
  })
}

test('completed operations are completed again, of every kind', async () => {
  const copy = await copyDatabase('all')
  const { person_id, username } = await plant.addPerson()
  const requests = [
    sendOf({ ...place('sent'), text: 'Hello' }),
    readStateOf({ ...place('unread'), unread: true }),
    readStateOf({ ...place('read', 1), unread: false }),
    startOf({ ...place('started'), chat_id: `platform:chat:${person_id}`, identifier: username }),
  ]
  const before = []
  for (const wanted of requests) before.push(await retryUntilStored(wanted))
  expect(before.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  await goBackTo(copy)
  const after = []
  for (const wanted of requests) after.push(await asks(wanted))
  expect(after.map(({ status, replayed }) => [status, replayed])).toEqual(requests.map(() => [200, true]))
  expect(after.slice(0, 3).map(({ body }) => body)).toEqual(before.slice(0, 3).map(({ body }) => body))
  expect(judge({ ...(await plant.evidence(history)), restored: true })).toEqual([])
}, 90_000)

test.each([
  ['before the first attempt', 'early'],
  ['between the two attempts', 'between'],
] as const)(
  'what was refused for now and then accepted is not sent again: a copy from %s',
  async (_, when) => {
    const wanted = sendOf({ ...place(when), text: `accepted at the second attempt, ${when}` })
    const early = when === 'early' ? await copyDatabase(when) : undefined
    await plant.fault({ on: 'send', fault: 'flood_wait', seconds: 1, account_id: wanted.account_id })
    await until('it is refused for now', hangMs, async () => {
      await asks(wanted)
      return (await plant.operation(when))?.attempt_no === 1
    })
    const copy = early ?? (await copyDatabase(when))
    expect(await retryUntilStored(wanted)).toMatchObject({ status: 200 })
    await goBackTo(copy)
    expect(await asks(wanted)).toMatchObject({ status: 200, replayed: true })
    expect(judge({ ...(await plant.evidence(history)), restored: true })).toEqual([])
  },
  90_000,
)
