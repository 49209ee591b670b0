/**
 * The ledger's crash points without a killed process: a process sleeps too long, PostgreSQL crashes, the database is
 * restored to an older copy. Continues crash-points.test.ts.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { endProcesses, runParley, until } from '../harness/process.ts'
import type { Patch } from './patch.ts'
import { openPlant, type Plant } from './plant.ts'
import { dieAt, Scene, stopAt, summaryOf, untilStopped } from './scene.ts'

/** Shorter than shipped: the time from the boundary to the call. */
const briefDeadline: Patch = {
  marker: 'limit: from boundary to call',
  replace: 'const submitMsMax = 3_000',
}
const deadlineMs = 3_200

let plant: Plant
let scene: Scene
let restored = false

beforeAll(async () => {
  plant = await openPlant({ works: 2, accounts: 4, people: 1 })
  scene = new Scene(plant)
  await plant.work(1).kill()
})
afterEach(async () => {
  expect(await scene.judge({ restored })).toEqual([])
})
afterAll(async () => {
  await plant?.close()
  await endProcesses()
})

describe('12: paused longer than the lease, before the deadline check', () => {
  test('another process gives it up; its worker proves that it wrote nothing, and the repeat runs', async () => {
    const wanted = scene.send()
    await scene.arm(stopAt('crash point 12'), briefDeadline)
    const first = scene.ask(wanted)
    await untilStopped(plant.work(0))
    const stoppedAt = performance.now()
    await plant.work(1).start()
    await scene.expireAttempt(wanted)
    expect(await scene.until(wanted, 'ambiguous')).toMatchObject({ reason: 'lease', accepted: 0 })
    expect(summaryOf(await first)).toEqual([503, 'outcome_ambiguous'])
    expect(summaryOf(await scene.ask(wanted))).toEqual([409, 'outcome_ambiguous'])
    await sleep(Math.max(0, deadlineMs - (performance.now() - stoppedAt)))
    plant.work(0).resume()
    expect(await scene.until(wanted, 'released')).toMatchObject({ reason: 'never_written', accepted: 0 })
    await plant.work(1).kill()
    await scene.arm()
    expect(summaryOf(await scene.ask(wanted))).toEqual([200])
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
  })
})

describe('13: paused between the check and the write', () => {
  test.each(['send', 'start'] as const)('%s: sent late, once; the late answer completes it', async (kind) => {
    const wanted = kind === 'send' ? scene.send() : await scene.start()
    await scene.arm(stopAt('crash point 5a'))
    const first = scene.ask(wanted)
    await untilStopped(plant.work(0))
    await plant.work(1).start()
    await scene.expireAttempt(wanted)
    expect(await scene.until(wanted, 'ambiguous')).toMatchObject({ reason: 'lease', accepted: 0 })
    expect(summaryOf(await first)).toEqual([503, 'outcome_ambiguous'])
    expect(summaryOf(await scene.ask(wanted))).toEqual([409, 'outcome_ambiguous'])
    await plant.work(1).kill()
    plant.work(0).resume()
    expect(await scene.until(wanted, 'completed')).toMatchObject({ accepted: 1 })
    expect(summaryOf(await scene.ask(wanted))).toEqual([200, 'replayed'])
  })
})

describe('an account goes to another process', () => {
  test('what is in flight there is answered first', async () => {
    await scene.arm()
    const wanted = await Promise.all(plant.accounts.map((_, account) => scene.start({ account })))
    await plant.fault({ on: 'start', fault: 'slow', seconds: 5, times: wanted.length })
    const asked = wanted.map((one) => scene.ask(one))
    await plant.work(1).start()
    expect((await Promise.all(asked)).map(summaryOf)).toEqual(wanted.map(() => [200]))
    await until('the accounts are shared', 120_000, async () => {
      const owners = await plant.db.rows(sql`
        select lease_owner from account_hosts where lease_until > clock_timestamp() group by lease_owner`)
      return owners.length === 2
    })
    await plant.work(1).kill()
  })
})

describe('14: PostgreSQL is killed', () => {
  test.each([
    ['before the boundary', 'crash point 3a'],
    ['after the boundary', 'crash point 5'],
    ['after the answer', 'crash point 8'],
  ])('%s: the row has the last committed state, and it ends as if nothing had happened', async (_, point) => {
    const [wanted, other] = [scene.send(), scene.send({ account: 1 })]
    await scene.arm(stopAt(point))
    const first = scene.ask(wanted)
    await untilStopped(plant.work(0))
    const before = await scene.look(wanted)
    // A queued operation is flushed to disk with the next commit of any transaction.
    await plant.db.run(sql`update instance set restore_counter_at = clock_timestamp()`)
    await plant.postgres.crash()
    expect(summaryOf(await scene.ask(other))).toEqual([503, 'store_unavailable'])
    await plant.postgres.untilUp('plant')
    expect(await scene.look(wanted)).toEqual(before)
    plant.work(0).resume()
    expect(await scene.until(wanted, 'completed')).toMatchObject({ accepted: 1 })
    expect(summaryOf(await first)).toEqual([200])
    expect(summaryOf(await scene.ask(wanted))).toEqual([200, 'replayed'])
  })
})

describe('15: the database is restored to before the boundary', () => {
  test('the journals restore what they know, nothing is sent until an operator says so, nothing twice', async () => {
    const copy = join(plant.directory, 'copy')
    // Refused temporarily and later accepted, two attempts under one key: the copy has the first as ended, or as
    // running.
    const over = scene.send({ account: 3 })
    const later = scene.send({ account: 1 })
    for (const { account_id } of [over, later]) {
      await plant.fault({ on: 'send', fault: 'flood_wait', seconds: 1, account_id })
    }
    expect(summaryOf(await scene.ask(over))).toEqual([503, 'flood_wait'])
    await scene.arm(stopAt('crash point 8'))
    const floods = scene.ask(later)
    await untilStopped(plant.work(0))
    const waiting = scene.send({ account: 2 })
    const waits = scene.ask(waiting)
    await scene.until(waiting, 'queued')
    await plant.postgres.stop()
    await plant.postgres.copy(copy)
    await plant.postgres.start()
    plant.work(0).resume()
    expect(summaryOf(await floods)).toEqual([503, 'flood_wait'])
    expect(summaryOf(await waits)).toEqual([200])
    for (const wanted of [over, later]) {
      await until('it runs', 120_000, async () => (await scene.ask(wanted)).status === 200)
    }
    // The copy has none of these.
    const [sent, started, marked] = [scene.send(), await scene.start(), scene.readState()]
    const all = [over, later, waiting, sent, started, marked]
    for (const wanted of [sent, started, marked]) expect(summaryOf(await scene.ask(wanted))).toEqual([200])
    const refused = scene.send({ account: 2 })
    await plant.fault({ on: 'send', fault: 'refuse', account_id: refused.account_id })
    expect(summaryOf(await scene.ask(refused))).toEqual([403, 'chat_unavailable'])
    // An intent without an outcome, where the platform does not show our id.
    const open = await scene.start({ account: 3 })
    await scene.arm(dieAt('crash point 7'))
    const first = scene.ask(open)
    await plant.work(0).ended()
    await scene.recover()
    expect(summaryOf(await first)).toEqual([503, 'outcome_ambiguous'])

    await plant.postgres.stop()
    await plant.postgres.restore(copy)
    await plant.postgres.start()
    restored = true
    await until('sending is switched off', 120_000, async () => {
      const row = await plant.db.maybe(
        sql`select 1 from settings where name = 'dispatch' and value = 'false'`,
      )
      return row !== undefined
    })
    for (const wanted of all) {
      expect(await scene.until(wanted, 'completed')).toMatchObject({ accepted: 1 })
    }
    expect(await scene.look(open)).toEqual({ state: 'ambiguous', reason: 'restored', accepted: 1 })
    const fresh = scene.send()
    await until('every process knows', 120_000, async () => {
      return (await scene.ask(fresh)).code === 'provider_unavailable'
    })
    await plant.settled()
    for (const wanted of all) {
      expect(summaryOf(await scene.ask(wanted))).toEqual([200, 'replayed'])
    }
    expect(summaryOf(await scene.ask(open))).toEqual([409, 'outcome_ambiguous'])
    expect(await scene.look(fresh)).toMatchObject({ accepted: 0 })

    // A restart alone changes nothing.
    await scene.arm()
    expect(summaryOf(await scene.ask(fresh))).toEqual([503, 'provider_unavailable'])
    const url = plant.postgres.url('plant', { name: 'operator' })
    const env = { DATABASE_URL: url, PARLEY_SECRET: 'a secret of the plant that is long enough' }
    expect(await runParley(['dispatch', 'on'], env)).toMatchObject({ code: 0 })
    await until('it goes out', 120_000, async () => (await scene.ask(fresh)).status === 200)
    for (const wanted of [...all, open, fresh]) {
      expect(await scene.look(wanted)).toMatchObject({ accepted: 1 })
    }
    // What the platform had refused is submitted again, and this time accepted.
    expect(summaryOf(await scene.ask(refused))).toEqual([200])
    expect(await scene.look(refused)).toMatchObject({ accepted: 1 })
  }, 180_000)
})
