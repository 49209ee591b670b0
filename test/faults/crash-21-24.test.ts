/**
 * The crash points that an adversary found, with real processes: a COMMIT that stalls, a key that is queued again
 * while its last attempt is being answered, a damaged journal, a clock that jumps back. Continues
 * crash-world.test.ts.
 */
import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { endProcesses, hangMs, until } from '../harness/process.ts'
import type { PlannedCall } from './clients.ts'
import { NextCut } from './lossy.ts'
import type { Patch } from './patch.ts'
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

describe("21: the boundary's COMMIT stalls longer than the wait for its connection, and commits after all", () => {
  /** Less than is shipped, and still much longer than any answer. */
  const briefSilence: Patch = {
    marker: 'limit: silence of the database',
    replace: 'const silentMsMax = 3_000',
  }
  const gate = 2_121
  let holder: pg.Client

  beforeAll(async () => {
    // The boundary's work is done, and its COMMIT waits as long as the test says.
    await plant.db.pool.query(`
      create function faults.stall() returns trigger language plpgsql as $$
      begin
        perform set_config('lock_timeout', '0', true);
        perform pg_advisory_xact_lock_shared(${gate});
        return null;
      end $$;
      create constraint trigger faults_stall after update on operations deferrable initially deferred
        for each row when (old.state = 'queued' and new.state = 'submitting') execute function faults.stall()`)
    holder = await plant.db.client()
  })
  afterAll(async () => {
    await holder.end()
    await plant.db.pool.query('drop trigger faults_stall on operations; drop function faults.stall()')
  })

  const waiting = (event: string) =>
    until(`a backend waits for ${event}`, hangMs, () =>
      plant.db.maybe(sql`
        select 1 from pg_stat_activity where wait_event = ${event} and application_name ~ '^work-'`),
    )

  test('its worker lives: the release waits for the row and finds it, and the repeat runs', async () => {
    const wanted = scene.send()
    await scene.arm(briefSilence)
    await holder.query('select pg_advisory_lock($1)', [gate])
    const first = scene.ask(wanted)
    await waiting('advisory')
    await until('the worker gives the answer up', hangMs, () =>
      plant.work(0).output().includes('the database did not respond at the boundary; nothing was sent'),
    )
    await waiting('transactionid')
    await holder.query('select pg_advisory_unlock($1)', [gate])
    expect(await scene.settled(wanted, 'released never_written lost_commit')).toBe(
      'released never_written lost_commit',
    )
    expect(summaryOf(await first)).toEqual([503, 'store_unavailable'])
    expect(await scene.look(wanted)).toMatchObject({ accepted: 0 })
    expect(summaryOf(await scene.ask(wanted))).toEqual([200])
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
  })

  test('its worker dies in the meantime: the outcome is unknown, and it never runs again', async () => {
    const wanted = scene.send()
    await scene.arm()
    await holder.query('select pg_advisory_lock($1)', [gate])
    const first = scene.ask(wanted)
    await waiting('advisory')
    await plant.work(0).kill()
    expect(await scene.look(wanted)).toEqual({ state: 'queued', reason: null, accepted: 0 })
    await holder.query('select pg_advisory_unlock($1)', [gate])
    await scene.until(wanted, 'submitting')
    await scene.recover()
    expect(summaryOf(await first)).toEqual([503, 'outcome_ambiguous'])
    expect(summaryOf(await scene.ask(wanted))).toEqual([409, 'outcome_ambiguous'])
    expect(await scene.look(wanted)).toEqual({ state: 'ambiguous', reason: 'lease', accepted: 0 })
  })
})

describe('22: a key is queued again while the caller of its last attempt is being answered', () => {
  /** The API has read the first attempt's outcome, and is slow to answer its caller. */
  const slowToTell: Patch = {
    marker: 'guard: waits for its attempt',
    replace: `
      process.stderr.write('about to tell\\n')
      await new Promise((go) => setTimeout(go, 3_000))
      if (row.queued_no >= waiter.queued_no) waiter.end(row)`,
  }
  const aboutToTell = () =>
    until('the API has read it', hangMs, () => plant.serve(0).output().includes('about to tell'))

  test("each caller gets its own attempt's outcome", async () => {
    const wanted = scene.send()
    await plant.serve(0).restart([slowToTell])
    await scene.arm()
    cut.set('boundary', 'after')
    const first = scene.ask(wanted)
    await aboutToTell()
    const second = scene.ask(wanted)
    expect(summaryOf(await first)).toEqual([503, 'store_unavailable'])
    expect(summaryOf(await second)).toEqual([200])
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
  })

  test('the API dies while both wait: the repeat returns the success', async () => {
    const wanted = scene.send()
    await plant.serve(0).restart([slowToTell])
    cut.set('boundary', 'after')
    const first = scene.ask(wanted)
    await aboutToTell()
    const second = scene.ask(wanted)
    await scene.until(wanted, 'completed')
    await plant.serve(0).restart()
    expect([await first, await second].map(summaryOf)).toEqual([[null], [null]])
    expect(summaryOf(await scene.ask(wanted))).toEqual([200, 'replayed'])
    expect(await scene.look(wanted)).toEqual({ state: 'completed', reason: null, accepted: 1 })
  })
})

describe('23: a line of a journal is torn or flipped', () => {
  const directory = () => join(plant.directory, 'work-0', 'ledger')

  /** The file that names the operation. */
  async function journalOf(key: string): Promise<string> {
    const id = (await plant.operation(key))?.id ?? 'nothing'
    for (const name of await readdir(directory())) {
      const path = join(directory(), name)
      if (name.endsWith('.jsonl') && (await readFile(path, 'utf8')).includes(id)) return path
    }
    throw new Error(`No journal names ${key}.`)
  }

  test('that line is skipped and logged, the others are replayed', async () => {
    // Starts, because no echo shows them: only a journal does.
    const [flipped, torn] = [await scene.start(), await scene.start({ account: 1 })]
    const answers: Promise<unknown>[] = []
    let written = ''
    const dieWith = async (wanted: PlannedCall) => {
      await scene.arm(dieAt('crash point 8'))
      answers.push(scene.ask(wanted))
      written += (await plant.work(0).ended()).stdout
      expect(await scene.look(wanted)).toMatchObject({ state: 'submitting', accepted: 1 })
    }
    await dieWith(flipped)
    // Before any other process reads it.
    const path = await journalOf(flipped.key)
    const text = await readFile(path, 'utf8')
    await writeFile(path, text.replace('"outcome":{"kind":"accepted"', '"outcome":{"kind":"accepteD"'))
    expect(await readFile(path, 'utf8')).not.toBe(text)
    await dieWith(torn)
    await appendFile(await journalOf(torn.key), '\n{"entry":"outcome","id":"torn')
    await plant.work(0).start()
    await plant.expireLeases({ attempts: false })
    expect(await scene.until(torn, 'completed')).toMatchObject({ accepted: 1 })
    // By whichever of the two later processes was the first to read it.
    await until('the damage is logged', hangMs, () =>
      `${written}${plant.work(0).output()}`.includes('the worker skipped damaged lines of a journal'),
    )
    await plant.expireLeases()
    expect(await scene.until(flipped, 'ambiguous')).toEqual({
      state: 'ambiguous',
      reason: 'lease',
      accepted: 1,
    })
    await Promise.all(answers)
    expect(summaryOf(await scene.ask(torn))).toEqual([200, 'replayed'])
    expect(summaryOf(await scene.ask(flipped))).toEqual([409, 'outcome_ambiguous'])
  })
})

describe('24: the clock jumps back by an hour, and the owner dies', () => {
  test('a lease further ahead than its length has expired: the outcome is unknown, and other workers continue', async () => {
    const [wanted, other] = [scene.send(), scene.send({ account: 1 })]
    await scene.arm(dieAt('crash point 5a'))
    const first = scene.ask(wanted)
    await plant.work(0).ended()
    expect(await scene.look(wanted)).toEqual({ state: 'submitting', reason: null, accepted: 0 })
    await plant.db.run(sql`insert into simulated_time (at) values (clock_timestamp() - interval '1 hour')`)
    // Set back, it continues: a clock that stands still would keep every lease forever.
    const ticking = setInterval(() => {
      plant.db
        .run(sql`update simulated_time set at = clock_timestamp() - interval '1 hour'`)
        .catch(() => undefined)
    }, 250)
    try {
      await plant.work(0).start()
      expect(await scene.until(wanted, 'ambiguous')).toMatchObject({ reason: 'lease', accepted: 0 })
      expect(summaryOf(await first)).toEqual([503, 'outcome_ambiguous'])
      expect(summaryOf(await scene.ask(wanted))).toEqual([409, 'outcome_ambiguous'])
      await until('others go on', hangMs, async () => (await scene.ask(other)).status === 200)
    } finally {
      clearInterval(ticking)
      await plant.db.run(sql`delete from simulated_time`)
    }
    await plant.untilReady()
    expect(await scene.look(other)).toEqual({ state: 'completed', reason: null, accepted: 1 })
  })
})
