/**
 * The ledger's crash points where a process dies, each by a patch of the shipped source that kills it exactly there:
 * the row's state afterwards, what the platform has, and the answer to the caller's repeat. Those where a process
 * sleeps or the database fails are in crash-world.test.ts.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { endProcesses, hangMs, until } from '../harness/process.ts'
import { NextCut } from './lossy.ts'
import { openPlant, type Plant } from './plant.ts'
import { dieAt, Scene, summaryOf } from './scene.ts'

let plant: Plant
let scene: Scene
const cut = new NextCut()

beforeAll(async () => {
  plant = await openPlant({ accounts: 2, people: 1, lossy: cut.decide })
  scene = new Scene(plant)
})
afterEach(async () => {
  expect(await scene.judge()).toEqual([])
})
afterAll(async () => {
  await plant?.close()
  await endProcesses()
})

describe('1: the API dies before the operation is committed', () => {
  test('there is no row, nothing was sent, the repeat runs', async () => {
    const wanted = scene.send()
    await plant.serve(0).restart([dieAt('crash point 1')])
    expect(summaryOf(await scene.ask(wanted))).toEqual([null])
    expect(await scene.look(wanted)).toEqual({ state: 'none', reason: null, accepted: 0 })
    await plant.serve(0).restart()
    expect(summaryOf(await scene.ask(wanted))).toEqual([200])
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
  })
})

describe('2: the API dies after the operation is committed', () => {
  const afterEnqueue = dieAt('crash point 2')

  test('it waits for a worker: the repeat says so, and later returns the success', async () => {
    const wanted = scene.send()
    await plant.work(0).kill()
    await plant.serve(0).restart([afterEnqueue])
    expect(summaryOf(await scene.ask(wanted))).toEqual([null])
    // A busy machine may take longer to start these processes than an operation waits.
    await plant.db.run(sql`
      update operations set expires_at = clock_timestamp() + interval '1 hour' where idempotency_key = ${wanted.key}`)
    await plant.serve(0).restart()
    expect(await scene.look(wanted)).toEqual({ state: 'queued', reason: null, accepted: 0 })
    expect(summaryOf(await scene.ask(wanted))).toEqual([409, 'operation_in_progress'])
    await scene.recover()
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
    expect(summaryOf(await scene.ask(wanted))).toEqual([200, 'replayed'])
  })

  test('or no worker takes it in time: it is over, and the repeat runs', async () => {
    const wanted = scene.send()
    await plant.work(0).kill()
    await plant.serve(0).restart([afterEnqueue])
    expect(summaryOf(await scene.ask(wanted))).toEqual([null])
    await plant.serve(0).restart()
    await plant.db.run(sql`
      update operations set expires_at = clock_timestamp() - interval '1 second' where idempotency_key = ${wanted.key}`)
    await scene.recover()
    expect(await scene.look(wanted)).toEqual({ state: 'released', reason: 'expired', accepted: 0 })
    expect(summaryOf(await scene.ask(wanted))).toEqual([200])
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
  })
})

describe('3: the worker dies before the boundary is committed', () => {
  test('in preparation: the next one executes it, also for the first caller', async () => {
    const wanted = await scene.start()
    await scene.arm(dieAt('crash point 3'))
    const first = scene.ask(wanted)
    await plant.work(0).ended()
    expect(await scene.look(wanted)).toEqual({ state: 'queued', reason: null, accepted: 0 })
    expect(summaryOf(await scene.ask(wanted))).toEqual([409, 'operation_in_progress'])
    await scene.recover()
    expect(summaryOf(await first)).toEqual([200])
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
    expect(summaryOf(await scene.ask(wanted))).toEqual([200, 'replayed'])
  })

  test('inside its transaction: it is rolled back, and the next one executes it', async () => {
    const wanted = scene.send()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const { promise: locked, resolve: lock } = Promise.withResolvers<void>()
    const holding = plant.db.transaction(async (tx) => {
      await tx.run(sql`select 1 from settings where name = 'dispatch' for update`)
      lock()
      await released
    })
    await locked
    const first = scene.ask(wanted)
    await until('the boundary waits for the switch', hangMs, () => waitingBoundaries().then((n) => n > 0))
    await plant.work(0).kill()
    // Its server process notices when it gives up on the lock.
    await until('no boundary waits any more', hangMs, () => waitingBoundaries().then((n) => n === 0))
    release()
    await holding
    expect(await scene.look(wanted)).toEqual({ state: 'queued', reason: null, accepted: 0 })
    expect(summaryOf(await scene.ask(wanted))).toEqual([409, 'operation_in_progress'])
    await scene.recover()
    expect(summaryOf(await first)).toEqual([200])
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
    expect(summaryOf(await scene.ask(wanted))).toEqual([200, 'replayed'])
  })

  async function waitingBoundaries(): Promise<number> {
    const { count } = await plant.db.one<{ count: number }>(sql`
      select count(*)::int as count from pg_stat_activity
      where wait_event_type = 'Lock' and query like '%seen_token%' and pid <> pg_backend_pid()`)
    return count
  }
})

describe("4: the answer to the boundary's COMMIT is lost, the process lives", () => {
  test('it was committed: nothing is sent, its worker reports that, the repeat runs', async () => {
    const wanted = scene.send()
    cut.set('boundary', 'after')
    expect(summaryOf(await scene.ask(wanted))).toEqual([503, 'store_unavailable'])
    expect(await scene.look(wanted)).toEqual({ state: 'released', reason: 'never_written', accepted: 0 })
    expect(plant.lossy?.boundaries).toEqual({ before: 0, after: 1 })
    expect(summaryOf(await scene.ask(wanted))).toEqual([200])
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
  })

  test('it was not committed: the operation is still queued and runs', async () => {
    const wanted = scene.send()
    cut.set('boundary', 'before')
    expect(summaryOf(await scene.ask(wanted))).toEqual([200])
    expect(plant.lossy?.boundaries).toEqual({ before: 1, after: 1 })
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
    expect(summaryOf(await scene.ask(wanted))).toEqual([200, 'replayed'])
  })
})

describe('5: the boundary is committed, nothing is written yet', () => {
  test.each([
    ['before the journal', 'crash point 5'],
    ['with the journal written', 'crash point 5a'],
  ])('%s: the outcome is unknown, and it never runs again', async (_, point) => {
    const wanted = scene.send()
    await scene.arm(dieAt(point))
    const first = scene.ask(wanted)
    await plant.work(0).ended()
    expect(await scene.look(wanted)).toEqual({ state: 'submitting', reason: null, accepted: 0 })
    expect(summaryOf(await scene.ask(wanted))).toEqual([409, 'operation_in_progress'])
    await scene.recover()
    expect(summaryOf(await first)).toEqual([503, 'outcome_ambiguous'])
    expect(summaryOf(await scene.ask(wanted))).toEqual([409, 'outcome_ambiguous'])
    expect(await scene.look(wanted)).toEqual({ state: 'ambiguous', reason: 'lease', accepted: 0 })
  })
})

describe('6: while bytes are written', () => {
  const isSend = `(frame as { call?: string }).call === 'send'`

  test('half of them: the outcome is unknown', async () => {
    const wanted = scene.send()
    const half = `if (${isSend}) { socket.write(JSON.stringify(frame).slice(0, 40)); process.kill(process.pid, 'SIGKILL') }`
    await scene.arm({ marker: 'crash point 6', insert: half })
    const first = scene.ask(wanted)
    await plant.work(0).ended()
    await scene.recover()
    expect(summaryOf(await first)).toEqual([503, 'outcome_ambiguous'])
    expect(summaryOf(await scene.ask(wanted))).toEqual([409, 'outcome_ambiguous'])
    expect(await scene.look(wanted)).toEqual({ state: 'ambiguous', reason: 'lease', accepted: 0 })
  })

  test('the last of them: the echo proves it', async () => {
    const wanted = scene.send()
    const whole = `if (${isSend}) process.kill(process.pid, 'SIGKILL')`
    await scene.arm({ marker: 'crash point 6a', insert: whole })
    const first = scene.ask(wanted)
    await plant.work(0).ended()
    expect((await scene.look(wanted)).state).toBe('submitting')
    await scene.recover()
    expect(await scene.until(wanted, 'completed')).toMatchObject({ accepted: 1 })
    expect([200, 503]).toContain((await first).status)
    expect(summaryOf(await scene.ask(wanted))).toEqual([200, 'replayed'])
  })
})

describe('7: accepted, and the answer is lost with the process', () => {
  test('on its way: the echo proves it', async () => {
    const wanted = scene.send()
    await plant.fault({ on: 'send', fault: 'timeout_after', account_id: wanted.account_id })
    const first = scene.ask(wanted)
    await until('the platform has it', hangMs, async () => (await scene.accepted(wanted)) > 0)
    await plant.work(0).kill()
    await scene.recover()
    expect(await scene.until(wanted, 'completed')).toMatchObject({ accepted: 1 })
    expect([200, 503]).toContain((await first).status)
    expect(summaryOf(await scene.ask(wanted))).toEqual([200, 'replayed'])
  })

  test('read, and not recorded: the echo proves it', async () => {
    const wanted = scene.send()
    await scene.arm(dieAt('crash point 7'))
    const first = scene.ask(wanted)
    await plant.work(0).ended()
    expect(await scene.look(wanted)).toEqual({ state: 'submitting', reason: null, accepted: 1 })
    await scene.recover()
    expect(await scene.until(wanted, 'completed')).toMatchObject({ accepted: 1 })
    expect([200, 503]).toContain((await first).status)
    expect(summaryOf(await scene.ask(wanted))).toEqual([200, 'replayed'])
  })

  test('stays unknown if the platform does not show our id', async () => {
    const wanted = await scene.start()
    await scene.arm(dieAt('crash point 7'))
    const first = scene.ask(wanted)
    await plant.work(0).ended()
    await scene.recover()
    expect(summaryOf(await first)).toEqual([503, 'outcome_ambiguous'])
    expect(summaryOf(await scene.ask(wanted))).toEqual([409, 'outcome_ambiguous'])
    expect(await scene.look(wanted)).toEqual({ state: 'ambiguous', reason: 'lease', accepted: 1 })
  })
})

describe('8: the outcome is in the journal, and not in the row', () => {
  const recorded = dieAt('crash point 8')

  test.each([
    ['send', false],
    ['start', false],
    ['read_state', false],
    ['start', true],
  ] as const)('%s, given up in the meantime: %s: the replay completes it', async (kind, given_up) => {
    const wanted =
      kind === 'send'
        ? scene.send()
        : kind === 'start'
          ? await scene.start()
          : scene.readState({ account: 1 })
    await scene.arm(recorded)
    const first = scene.ask(wanted)
    await plant.work(0).ended()
    expect(await scene.look(wanted)).toEqual({ state: 'submitting', reason: null, accepted: 1 })
    await scene.recover({ attempts: given_up })
    expect(await scene.until(wanted, 'completed')).toMatchObject({ accepted: 1 })
    if (!given_up) expect(summaryOf(await first)).toEqual([200])
    await first
    expect(summaryOf(await scene.ask(wanted))).toEqual([200, 'replayed'])
  })
})

describe('9: the API dies with the outcome stored, before its answer', () => {
  test('the repeat returns the success', async () => {
    const wanted = scene.send()
    await plant.serve(0).restart([dieAt('crash point 9')])
    expect(summaryOf(await scene.ask(wanted))).toEqual([null])
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
    await plant.serve(0).restart()
    expect(summaryOf(await scene.ask(wanted))).toEqual([200, 'replayed'])
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
  })
})

describe('10: the refusal is read, and not in the row', () => {
  test('permanent, in the journal: the repeat returns the same refusal', async () => {
    const wanted = scene.send()
    await scene.arm(dieAt('crash point 8'))
    await plant.fault({ on: 'send', fault: 'refuse', account_id: wanted.account_id })
    const first = scene.ask(wanted)
    await plant.work(0).ended()
    await scene.recover({ attempts: false })
    expect(await scene.look(wanted)).toEqual({ state: 'refused', reason: 'platform_refused', accepted: 0 })
    expect(summaryOf(await first)).toEqual([403, 'chat_unavailable'])
    expect(summaryOf(await scene.ask(wanted))).toEqual([403, 'chat_unavailable', 'replayed'])
  })

  test('temporary, in the journal: the repeat waits, then runs', async () => {
    const wanted = scene.send()
    await scene.arm(dieAt('crash point 8'))
    await plant.fault({ on: 'send', fault: 'flood_wait', seconds: 25, account_id: wanted.account_id })
    const first = scene.ask(wanted)
    await plant.work(0).ended()
    await scene.recover({ attempts: false })
    expect(await scene.look(wanted)).toEqual({ state: 'released', reason: 'platform_refused', accepted: 0 })
    expect((await first).code).toBe('flood_wait')
    expect((await scene.ask(wanted)).code).toBe('flood_wait')
    await until('it runs', hangMs, async () => (await scene.ask(wanted)).status === 200)
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
  })

  test('not in the journal: the outcome is unknown', async () => {
    const wanted = scene.send()
    await scene.arm(dieAt('crash point 10'))
    await plant.fault({ on: 'send', fault: 'refuse', account_id: wanted.account_id })
    const first = scene.ask(wanted)
    await plant.work(0).ended()
    await scene.recover()
    expect(summaryOf(await first)).toEqual([503, 'outcome_ambiguous'])
    expect(summaryOf(await scene.ask(wanted))).toEqual([409, 'outcome_ambiguous'])
    expect(await scene.look(wanted)).toEqual({ state: 'ambiguous', reason: 'lease', accepted: 0 })
  })
})
