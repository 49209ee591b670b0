/**
 * What the database can do wrong: a connection breaks at a COMMIT, it is restarted, it is restored to an older copy.
 * For each, the row's state, the callers' answers, and how often the platform accepted it.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { endProcesses, hangMs, runParley, until } from '../harness/process.ts'
import { startClients } from './clients.ts'
import { type Commit, type Fate, NextCut } from './lossy.ts'
import { openPlant, type Plant } from './plant.ts'
import { makeRandom } from './random.ts'
import { Scene, summaryText } from './scene.ts'

const accounts = 16

let plant: Plant
let scene: Scene
const cut = new NextCut()

beforeAll(async () => {
  plant = await openPlant({ accounts, people: 1, lossy: cut.decide })
  scene = new Scene(plant)
})
afterAll(async () => {
  await plant?.close()
  await endProcesses()
})

const done = { row: 'completed', first: '200', repeat: '200 replayed', accepted: 1 }

describe('a connection is cut at a COMMIT', () => {
  const rows: readonly (readonly [keyof Commit, Fate, typeof done])[] = [
    ['boundary', 'before', done],
    [
      'boundary',
      'after',
      {
        row: 'released never_written lost_commit',
        first: '503 store_unavailable',
        repeat: '200',
        accepted: 1,
      },
    ],
    ['completion', 'before', done],
    ['completion', 'after', done],
  ]

  test.each(
    rows.flatMap(([at, fate, expected]) =>
      (['send', 'start', 'read_state'] as const).map((operation) => [at, fate, operation, expected] as const),
    ),
  )('of the %s, %s it is done: %s', async (at, fate, operation, expected) => {
    const wanted = await scene.want(operation, 0)
    const before = await scene.accepted(wanted)
    cut.set(at, fate)
    const first = await scene.ask(wanted)
    expect(cut.done).toBe(true)
    const row = await scene.settled(wanted, expected.row)
    const repeat = await scene.ask(wanted)
    const accepted = (await scene.accepted(wanted)) - before
    expect({ row, first: summaryText(first), repeat: summaryText(repeat), accepted }).toEqual(expected)
    expect(await scene.judge()).toEqual([])
  })
})

describe('what else the database does', () => {
  test('no look-up is repeated when another worker has the lease', async () => {
    const wanted = await scene.start({ account: 0 })
    const lookups = async () => {
      const { count } = await plant.db.one<{ count: number }>(sql`
        select coalesce(sum(lookups), 0)::int as count from account_days where account_id = ${wanted.account_id}`)
      return count
    }
    const before = await lookups()
    await plant.db.run(sql`
      update account_hosts set lease_owner = gen_random_uuid(), lease_until = clock_timestamp() + interval '2 s'
      where account_id = ${wanted.account_id}`)
    expect(summaryText(await scene.ask(wanted))).toBe('200')
    expect((await lookups()) - before).toBeLessThanOrEqual(4)
  })

  test('runs one of many requests with one key, and answers the others with its state', async () => {
    const wanted = Array.from({ length: accounts }, (_, account) => scene.send({ account }))
    const crowds = await Promise.all(
      wanted.map((one) => Promise.all(Array.from({ length: 12 }, () => scene.ask(one)))),
    )
    // On a busy machine some wait too long for a connection, and hear that nothing was done.
    const allowed = ['200', '200 replayed', '409 operation_in_progress', '503 store_unavailable']
    for (const [at, answers] of crowds.entries()) {
      for (const asked of answers) expect(allowed).toContain(summaryText(asked))
      const repeat = await scene.ask(wanted[at] as (typeof wanted)[number])
      expect([...answers, repeat].filter((asked) => summaryText(asked) === '200')).toHaveLength(1)
    }
    expect(await scene.judge()).toEqual([])
  })

  test('a restart under load: every operation ends, and ran once', async () => {
    const clients = startClients(plant, { random: makeRandom(11), count: 40, kinds: [['send', 1]] })
    for (let restarts = 0; restarts < 4; restarts++) {
      await sleep(1_000)
      await plant.postgres.stop()
      await plant.postgres.start()
    }
    await sleep(1_000)
    await clients.stop()
    await plant.settled()
    await plant.untilReady()
    const during = clients.history.length
    expect(clients.history.filter(({ status }) => status === 500)).toEqual([])
    expect(clients.history.some(({ status }) => status === 503)).toBe(true)
    await clients.repeat()
    for (const asked of clients.history.slice(during))
      expect(['200 replayed', '200']).toContain(summaryText(asked))
    scene.history.push(...clients.history)
    expect(await scene.judge()).toEqual([])
  }, 180_000)

  test('an older copy takes its place while messages are sent: none is sent twice', async () => {
    const copy = join(plant.directory, 'copy')
    await plant.postgres.stop()
    await plant.postgres.copy(copy)
    await plant.postgres.start()
    await plant.untilReady()
    const clients = startClients(plant, { random: makeRandom(12), count: 12, prefix: 'older' })
    await sleep(6_000)
    await plant.postgres.stop()
    await plant.postgres.restore(copy)
    await plant.postgres.start()
    await until('sending is switched off', hangMs, async () => {
      return plant.db.maybe(sql`select 1 from settings where name = 'dispatch' and value = 'false'`)
    })
    const { length: accepted } = await plant.journal()
    await sleep(2_000)
    await clients.stop()
    expect(await plant.journal()).toHaveLength(accepted)
    await plant.settled()
    const url = plant.postgres.url('plant', { name: 'operator' })
    const env = { DATABASE_URL: url, PARLEY_SECRET: 'a secret of the plant that is long enough' }
    expect(await runParley(['dispatch', 'on'], env)).toMatchObject({ code: 0 })
    await plant.untilReady()
    const answers = await until('every session is live again', hangMs, async () => {
      const during = clients.history.length
      await clients.repeat()
      const heard = new Set(clients.history.slice(during).map(summaryText))
      return [...heard].some((answer) => answer.startsWith('503')) ? undefined : heard
    })
    expect(answers).toContain('200 replayed')
    for (const answer of answers) {
      expect(['200 replayed', '200', '409 outcome_ambiguous', '429 rate_limited']).toContain(answer)
    }
    await plant.settled()
    scene.history.push(...clients.history)
    expect(await scene.judge({ restored: true })).toEqual([])
  }, 180_000)
})
