/** A restore while messages are sent, with two workers, one of which is killed in the meantime. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { endProcesses, hangMs, runParley, until } from '../harness/process.ts'
import { startClients } from './clients.ts'
import { judge } from './oracle.ts'
import { openPlant, type Plant } from './plant.ts'
import { makeRandom } from './random.ts'
import { summaryText } from './scene.ts'

let plant: Plant
beforeAll(async () => {
  plant = await openPlant({ works: 2, accounts: 8, people: 2 })
})
afterAll(async () => {
  await plant?.close()
  await endProcesses()
})

function operator(...args: string[]) {
  const url = plant.postgres.url('plant', { name: 'operator' })
  return runParley(args, {
    DATABASE_URL: url,
    PARLEY_SECRET: 'a secret of the plant that is long enough',
  })
}

const accepted = async () => (await plant.journal()).length

test('a restore under load: everything that was sent is known again, and nothing is sent twice', async () => {
  const copy = join(plant.directory, 'copy')
  await plant.postgres.stop()
  await plant.postgres.copy(copy)
  await plant.postgres.start()
  await plant.untilReady()
  const before = await accepted()
  const clients = startClients(plant, { random: makeRandom(31), count: 16, hangUpShare: 0.1 })
  await until('messages go out', hangMs, async () => (await accepted()) > before + 60)
  await plant.postgres.stop()
  await plant.postgres.restore(copy)
  await plant.postgres.start()
  await plant.work(1).kill()
  expect(await operator('restore', '--mark', '--without-erasures')).toMatchObject({ code: 0 })
  await plant.work(1).start()
  await plant.expireLeases()
  await until('all journals are put back, and sending is off', hangMs, () =>
    plant.db.maybe(sql`
      select 1 from settings where name = 'dispatch' and value = 'false' and not exists (select from workers where owes)`),
  )
  const known = await accepted()
  await sleep(1_000)
  // Nothing has been sent since.
  expect(await accepted()).toBe(known)
  expect(await operator('dispatch', 'on')).toMatchObject({ code: 0 })
  await plant.untilReady()
  await until('messages go out again', hangMs, async () => (await accepted()) > known + 10)
  await clients.stop()
  await plant.settled()
  const during = clients.history.length
  await clients.repeat()
  const answers = new Set(clients.history.slice(during).map(summaryText))
  for (const answer of answers) expect(['200 replayed', '200', '409 outcome_ambiguous']).toContain(answer)
  expect(answers).toContain('200 replayed')
  await plant.settled()
  expect(judge({ ...(await plant.evidence(clients.history)), restored: true })).toEqual([])
}, 90_000)
