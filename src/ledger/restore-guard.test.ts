/** A restored database, and what the journals of this disk still know. */
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { restartServer } from '../../test/harness/picture.ts'
import type { App } from '../app.ts'
import { noteTrouble } from '../capabilities/accounts/accounts.ts'
import { setDispatch } from '../capabilities/gates/gates.ts'
import { type Sql, sql } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import type { Outcome } from '../platform/port.ts'
import { listDebts } from './debts.ts'
import { listJournals, openJournal } from './journal.ts'
import { claimAccounts } from './leases.ts'
import { Recorder } from './recording.ts'
import { replayAll, replayLoop } from './recovery.ts'
import { raiseRestoreCounter, readInstance, renewGeneration } from './restore-counter.ts'
import { RestoreGuard } from './restore-guard.ts'
import { listOwing, noteHeartbeat, noteOwing } from './workers.ts'

let rows: LedgerRows
let directory: string
beforeAll(async () => {
  rows = await openLedgerRows()
})
afterAll(() => rows.close())
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-guard-'))
  repeated = []
})
afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
  await rows.db.run(sql`update workers set owes = false`)
  await setDispatch(rows.app, 'system', true)
})

const stopSending = async (app: App) => void (await setDispatch(app, 'system', false))

/** What was repeated, in order. */
let repeated: string[] = []
const erase = async () => void repeated.push('erasures')

const open = (
  replay: () => Promise<void> = async () => {},
  worker_id = newId(),
  app: Pick<LedgerRows['app'], 'db'> = rows.app,
  compare: () => Promise<boolean> = async () => false,
) =>
  RestoreGuard.open(
    { ...rows.app, ...app },
    { worker_id, directory, replay, erase, compare, stopSending, exclusive: false },
  )

/** As if a process of this disk had seen a later state of the database, or another history. */
async function remember(change: { ahead?: number; generation?: string } = {}): Promise<void> {
  const { id, restore_counter, generation, server_run } = await readInstance(rows.db)
  const counter = String(BigInt(restore_counter) + BigInt(change.ahead ?? 0))
  const seen = { id, restore_counter: counter, generation: change.generation ?? generation, server_run }
  await writeFile(join(directory, 'instance.json'), JSON.stringify(seen))
}

async function dispatch(): Promise<boolean> {
  return (await rows.app.settings.refresh()).dispatch
}

/** A journal of an earlier process: an intent, and its outcome. */
async function intended(outcome?: Outcome<unknown>): Promise<string> {
  const { account_id, workspace_id } = await rows.account()
  const [id, token] = [newId(), newId()]
  const journal = await openJournal(directory, newId())
  const random_id = String(Math.floor(Math.random() * 1e15))
  const what = {
    kind: 'send_message',
    account_id,
    workspace_id,
    chat_id: '42',
    random_id,
    key: newId(),
  } as const
  await journal.intend({ id, token, ...what, fingerprint: '00'.repeat(32) })
  if (outcome) await journal.conclude({ id, token, outcome })
  await journal.close()
  return id
}

type Run = () => Promise<unknown>

/** The database, with statements of one kind that a test delays, refuses or watches. */
function through(kind: 'one' | 'run', around: (statement: Sql, run: Run) => Promise<unknown>) {
  const db = new Proxy(rows.db, {
    get(target, name) {
      const value = target[name as keyof typeof target]
      if (name === kind) return (statement: Sql) => around(statement, () => target[kind](statement))
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return { db }
}

const away = () => Promise.reject(new ApiError('store_unavailable'))
/** Another history begins. */
const renews = ({ text }: Sql) => text.includes('gen_random_uuid')

const state = (id: string) =>
  rows.db.maybe<{ state: string }>(sql`select state from operations where id = ${id}`)

describe('at the start', () => {
  test('operations cross when the database is the one this disk knows', async () => {
    await remember()
    const guard = await open()
    expect(guard.instance()).toBeDefined()
    expect([await dispatch(), await listOwing(rows.db)]).toEqual([true, []])
  })

  test.each([
    ["- interval '1 hour'", 'was last worked on an hour ago', false],
    ["+ interval '1 hour'", 'was worked on in the future of a clock set back', false],
    ['', 'is worked on right now', true],
  ])('a disk that does not know the database, %s: %s, sending is on: %s', async (change, _, on) => {
    await rows.db.pool.query(`
      update instance set restore_counter = restore_counter + 1, restore_counter_at = real_now() ${change}`)
    await open()
    expect(await dispatch()).toBe(on)
  })

  test('a start on a disk that knows the database counts as a heartbeat: a new disk beside it joins', async () => {
    await rows.db.run(sql`
      update instance set restore_counter = restore_counter + 1, restore_counter_at = real_now() - interval '1 hour'`)
    await remember()
    await open()
    const known = directory
    directory = await mkdtemp(join(tmpdir(), 'parley-guard-'))
    await open()
    expect(await dispatch()).toBe(true)
    await rm(known, { recursive: true, force: true })
  })

  describe('with accounts that two addresses must not use at once', () => {
    const claims = async (takeover_seconds: number) => {
      const { account_id } = await rows.account()
      await rows.db.run(sql`
        update account_hosts set lease_owner = null, lease_until = null where account_id = ${account_id}`)
      const claim = { worker_id: newId(), platform: 'sandbox', limit: 1_000, neighbours: [] }
      const leases = await claimAccounts(rows.db, { ...claim, takeover_seconds })
      return leases.some((lease) => lease.account_id === account_id)
    }
    /** Opens a guard that waits for another heartbeat; `beats` runs in the meantime. */
    const openExclusive = (beats: () => Promise<unknown>, instance_id?: string) =>
      RestoreGuard.open(
        {
          ...rows.app,
          config: { ...rows.app.config, instance_id },
          sources: { ...rows.app.sources, sleep: async () => void (await beats()) },
        },
        {
          worker_id: newId(),
          directory,
          replay: async () => {},
          erase,
          compare: async () => false,
          stopSending,
          exclusive: true,
        },
      )
    const silence = async () => {}
    beforeEach(() => raiseRestoreCounter(rows.db))

    test('does not connect them in a fresh copy without another living worker, until sending is switched on', async () => {
      await openExclusive(silence)
      expect([await claims(75), await claims(0)]).toEqual([false, true])
      // After a restart the disk knows the database.
      await openExclusive(silence)
      expect(await claims(75)).toBe(false)
      await setDispatch(rows.app, 'system', true)
      expect(await claims(75)).toBe(true)
    })

    test('connects them when other workers are alive', async () => {
      await openExclusive(() => raiseRestoreCounter(rows.db))
      expect(await claims(75)).toBe(true)
    })

    test('connects them when an operator names the instance', async () => {
      await openExclusive(silence)
      expect(await claims(75)).toBe(false)
      const { id } = await readInstance(rows.db)
      await openExclusive(silence, id)
      expect(await claims(75)).toBe(true)
    })

    test('does not connect them in a copy that no worker has used for an hour', async () => {
      await rows.db.run(sql`update instance set restore_counter_at = real_now() - interval '1 hour'`)
      await open()
      expect(await claims(75)).toBe(false)
    })
  })

  test.each([
    ['it looks as before', {}, ['erasures']],
    ['it is an older copy: first of all, and in the end', { ahead: 5 }, ['erasures', 'journals', 'erasures']],
  ])('erasures are repeated in the database where %s', async (_, change, order) => {
    await remember(change)
    await open(async () => void repeated.push('journals'))
    expect(repeated).toEqual(order)
  })

  test('puts the journals back into an older copy, and an operator switches sending on', async () => {
    const id = await intended()
    await remember({ ahead: 5 })
    await open()
    expect(await state(id)).toEqual({ state: 'ambiguous' })
    expect(await dispatch()).toBe(false)
  })

  test('puts the journals back first when the generation is another', async () => {
    const id = await intended()
    await remember({ generation: newId() })
    await open()
    expect(await state(id)).toEqual({ state: 'ambiguous' })
  })

  test.each<Outcome<unknown>>([
    { kind: 'refused', reason: 'chat_unavailable' },
    { kind: 'flood_wait', retry_after_seconds: 5, stops: 'sends' },
    { kind: 'not_written', reason: 'deadline' },
  ])('does not restore what provably did nothing: $kind', async (outcome) => {
    const id = await intended(outcome)
    await remember({ ahead: 5 })
    await open()
    expect(await state(id)).toBeUndefined()
  })
})

describe('a put-back that fails', () => {
  const failing = async () => {
    throw new Error('not now')
  }

  test('blocks every crossing, here and in other processes, until it is complete', async () => {
    let replay: () => Promise<void> = failing
    await remember({ ahead: 5 })
    const worker_id = newId()
    const guard = await open(() => replay(), worker_id)
    expect(guard.instance()).toBeUndefined()
    expect((await listOwing(rows.db)).map(({ id }) => id)).toEqual([worker_id])
    replay = async () => {}
    await guard.raise()
    expect(guard.instance()).toBeDefined()
    expect(await listOwing(rows.db)).toEqual([])
  })

  test('is recorded on the disk: the next process on it continues', async () => {
    await remember({ ahead: 5 })
    const worker_id = newId()
    await open(failing, worker_id)
    expect((await listDebts(directory)).map((debt) => debt.worker_id)).toEqual([worker_id])
    const id = await intended()
    const next = await open()
    expect(await state(id)).toEqual({ state: 'ambiguous' })
    expect(next.instance()).toBeDefined()
    expect(await listOwing(rows.db)).toEqual([])
  })
})

describe('when commits are lost, and the database is unreachable at that moment', () => {
  test.each(['a crossing', 'a heartbeat'])(
    '%s notices, and it is remembered until the journals are put back',
    async (by) => {
      await remember()
      let gone = false
      const app = through('one', (statement, run) => (gone && renews(statement) ? away() : run()))
      const guard = await open(undefined, undefined, app)
      const id = await intended()
      const { generation } = await readInstance(rows.db)
      gone = true
      if (by === 'a heartbeat') {
        await rows.db.run(sql`update instance set restore_counter = restore_counter - 1`)
        await guard.raise().catch(() => {})
      } else {
        await guard.goneBack().catch(() => {})
      }
      expect(guard.instance()).toBeUndefined()
      gone = false
      // As many heartbeats as make up for the lost commits.
      for (let n = 0; n < 3; n++) await guard.raise()
      expect(await state(id)).toEqual({ state: 'ambiguous' })
      expect((await readInstance(rows.db)).generation).not.toBe(generation)
      expect(guard.instance()).toMatchObject({ generation: (await readInstance(rows.db)).generation })
    },
  )
})

/** The database, with one statement that the test answers. */
function answering(name: 'one' | 'run', text: string, answer: (asked: () => Promise<unknown>) => unknown) {
  const db = new Proxy(rows.db, {
    get(target, property) {
      const value = target[property as keyof typeof target]
      if (property !== name) return typeof value === 'function' ? value.bind(target) : value
      return (statement: Parameters<typeof target.one>[0]) =>
        statement.text.includes(text) ? answer(() => target[name](statement)) : target[name](statement)
    },
  })
  return { db }
}

test('an older copy that could not be reported stays one, also when another generation is noticed later', async () => {
  await remember()
  let away = false
  const debt = answering('run', 'insert into workers (id, owes)', (asked) =>
    away ? Promise.reject(new ApiError('store_unavailable')) : asked(),
  )
  const guard = await open(undefined, undefined, debt)
  away = true
  await rows.db.run(sql`update instance set restore_counter = restore_counter - 1`)
  await guard.raise()
  expect(await dispatch()).toBe(true)
  await renewGeneration(rows.db)
  await guard.raise()
  away = false
  await guard.raise()
  expect(guard.instance()).toBeDefined()
  expect(await dispatch()).toBe(false)
})

test('a heartbeat answered before lost commits were noticed does not bring the earlier generation back', async () => {
  await remember()
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let slow = false
  const counter = answering('one', 'restore_counter + 1', async (ask) => {
    const answer = await ask()
    if (!slow) return answer
    asked.resolve()
    await answered.promise
    return answer
  })
  const guard = await open(undefined, undefined, counter)
  slow = true
  const raising = guard.raise()
  await asked.promise
  await guard.goneBack()
  answered.resolve()
  await raising
  expect(guard.instance()).toMatchObject({ generation: (await readInstance(rows.db)).generation })
})

test('an operation that a failed attempt restored still switches sending off', async () => {
  const id = await intended()
  await remember({ generation: newId() })
  let fails = true
  const guard = await open(async () => {
    if (fails) throw new Error('not now')
  })
  expect(await state(id)).toEqual({ state: 'ambiguous' })
  fails = false
  await guard.raise()
  expect(guard.instance()).toBeDefined()
  expect(await dispatch()).toBe(false)
})

test('a damaged line keeps sending off, also when nothing was lost', async () => {
  const worker_id = newId()
  const journal = await openJournal(directory, worker_id)
  await journal.close()
  await appendFile(join(directory, `${worker_id}.0.jsonl`), '{"entry":"intent","id":"damaged\n')
  await remember({ generation: newId() })
  const guard = await open()
  expect(await dispatch()).toBe(false)
  // The journals are put back; an operator has to find out what the line said.
  expect(guard.instance()).toBeDefined()
  expect(await listOwing(rows.db)).toEqual([])
})

test('what is noticed while the journals are put back is kept: they are put back again', async () => {
  await remember()
  let during = async () => {}
  const guard = await open(() => during())
  await renewGeneration(rows.db)
  let late = ''
  during = async () => {
    during = async () => {}
    // By now the journals have been read.
    late = await intended()
    await guard.goneBack()
  }
  await guard.raise()
  expect(guard.instance()).toBeUndefined()
  expect(await listOwing(rows.db)).toHaveLength(1)
  const { generation } = await readInstance(rows.db)
  await guard.raise()
  expect(await state(late)).toEqual({ state: 'ambiguous' })
  expect((await readInstance(rows.db)).generation).not.toBe(generation)
  expect(guard.instance()).toBeDefined()
  expect(await listOwing(rows.db)).toEqual([])
})

test('puts the journals back when the generation changes under a running process', async () => {
  await remember()
  const guard = await open()
  const id = await intended()
  await renewGeneration(rows.db)
  await guard.raise()
  expect(await state(id)).toEqual({ state: 'ambiguous' })
})

test('an older copy at the start records that journals are missing before other workers notice, so that none finishes first', async () => {
  const worker_id = newId()
  await remember({ ahead: 5 })
  const before = await readFile(join(directory, 'instance.json'), 'utf8')
  const app = through('one', (statement, run) => (renews(statement) ? away() : run()))
  await expect(open(undefined, worker_id, app)).rejects.toThrow()
  expect((await listOwing(rows.db)).map(({ id }) => id)).toEqual([worker_id])
  // The next process after the one that failed here finds the same.
  const { restore_counter } = JSON.parse(before)
  expect(JSON.parse(await readFile(join(directory, 'instance.json'), 'utf8'))).toMatchObject({
    restore_counter,
  })
  expect((await listDebts(directory)).map((debt) => debt.worker_id)).toEqual([worker_id])
})

test('an older copy of another history that could not be reported at the start is one at the next start as well', async () => {
  const generation = newId()
  await remember({ ahead: 5, generation })
  const app = through('one', (statement, run) => (renews(statement) ? away() : run()))
  await expect(open(undefined, undefined, app)).rejects.toThrow()
  const seen = JSON.parse(await readFile(join(directory, 'instance.json'), 'utf8'))
  expect(seen.generation).toBe(generation)
  // As if the process had ended before sending was off.
  await setDispatch(rows.app, 'system', true)
  await open()
  expect(await dispatch()).toBe(false)
})

describe('a disk whose record of the database is gone', () => {
  test.each([
    ['lost', undefined],
    ['cut off', '{"id":"0199'],
    ['of another database', JSON.stringify({ id: newId(), restore_counter: '7', generation: newId() })],
  ])('%s: its journals are still put back', async (_, text) => {
    const id = await intended()
    if (text !== undefined) await writeFile(join(directory, 'instance.json'), text)
    const guard = await open()
    expect(await state(id)).toEqual({ state: 'ambiguous' })
    expect(guard.instance()).toBeDefined()
  })

  test('has nothing to put back without journals', async () => {
    const guard = await open()
    expect(guard.instance()).toBeDefined()
    expect([await dispatch(), await listOwing(rows.db)]).toEqual([true, []])
  })
})

describe('a worker that dies before it put its journals back, next to one on its disk that is done', () => {
  const failing = async () => {
    throw new Error('not now')
  }

  /** Both run; one finds commits lost, cannot put its journals back, and dies. The other has put back what it could. */
  async function leaveDebt() {
    await remember()
    const [dead, living] = [newId(), newId()]
    const beside = await open(undefined, living)
    const guard = await open(failing, dead)
    await guard.goneBack()
    await beside.raise()
    expect(beside.instance()).toBeDefined()
    expect((await listOwing(rows.db)).map(({ id }) => id)).toEqual([dead])
    return { dead, beside }
  }

  const die = (id: string) =>
    rows.db.run(sql`update workers set beat_at = real_now() - interval '1 hour' where id = ${id}`)

  test('the other one takes over its journals once it has ended', async () => {
    const { dead, beside } = await leaveDebt()
    await beside.raise()
    expect((await listOwing(rows.db)).map(({ id }) => id)).toEqual([dead])
    await die(dead)
    await beside.raise()
    expect([await listOwing(rows.db), beside.instance() !== undefined]).toEqual([[], true])
  })

  test('the next worker on the disk takes them over immediately', async () => {
    const { beside } = await leaveDebt()
    await beside.raise()
    const next = await open()
    expect([await listOwing(rows.db), next.instance() !== undefined]).toEqual([[], true])
  })

  test('also puts back what it noticed while the database was unreachable', async () => {
    await remember()
    const dead = newId()
    const beside = await open()
    let gone = false
    const app = through('run', (_, run) => (gone ? away() : run()))
    const guard = await open(undefined, dead, app)
    const id = await intended()
    gone = true
    await guard.goneBack()
    await die(dead)
    await beside.raise()
    expect(await state(id)).toEqual({ state: 'ambiguous' })
    expect(beside.instance()).toBeDefined()
  })
})

test('takes over the journals of a worker of an earlier version on the same disk', async () => {
  await remember()
  const dead = newId()
  const path = join(directory, 'instance.json')
  const { restore_counter: beat, ...seen } = JSON.parse(await readFile(path, 'utf8'))
  await writeFile(path, JSON.stringify({ ...seen, beat, owes: dead }))
  await noteOwing(rows.db, dead, true)
  const id = await intended()
  const guard = await open()
  expect(await state(id)).toEqual({ state: 'ambiguous' })
  expect([await listOwing(rows.db), guard.instance() !== undefined]).toEqual([[], true])
})

test('the counter on the disk does not go back when the slower of two processes writes last', async () => {
  await remember()
  const quick = await open()
  const [reached, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let started = false
  const app = through('one', async ({ text }, run) => {
    const row = await run()
    if (!started || !text.includes('restore_counter + 1')) return row
    reached.resolve()
    await answered.promise
    return row
  })
  const slow = await open(undefined, undefined, app)
  started = true
  const raised = slow.raise()
  await reached.promise
  for (let beat = 0; beat < 3; beat++) await quick.raise()
  const { restore_counter } = await readInstance(rows.db)
  answered.resolve()
  await raised
  const seen = JSON.parse(await readFile(join(directory, 'instance.json'), 'utf8'))
  expect(seen.restore_counter).toBe(restore_counter)
})

test('starts again when commits are found lost at the moment at which a put-back finishes', async () => {
  await remember()
  let lost = 0
  const app = through('run', async ({ text, values }, run) => {
    const done = await run()
    if (lost === 1 && text.includes('owes') && values.includes(false)) {
      lost = 2
      await guard.goneBack()
    }
    return done
  })
  const guard = await open(undefined, undefined, app)
  lost = 1
  await guard.goneBack()
  expect([lost, guard.instance()]).toEqual([2, undefined])
  const { generation } = await readInstance(rows.db)
  await guard.raise()
  expect((await readInstance(rows.db)).generation).not.toBe(generation)
  expect(guard.instance()).toBeDefined()
})

describe('after a restart of the database server', () => {
  test('a starting worker puts its journals back before anything crosses', async () => {
    const id = await intended()
    await remember()
    await restartServer(rows.db)
    const guard = await open()
    expect(await state(id)).toEqual({ state: 'ambiguous' })
    expect(guard.instance()).toMatchObject({ server_run: (await readInstance(rows.db)).server_run })
  })

  test('a running worker puts its journals back with the next heartbeat', async () => {
    await remember()
    const guard = await open()
    const id = await intended()
    await guard.raise()
    expect(await state(id)).toBeUndefined()
    await restartServer(rows.db)
    await guard.raise()
    expect(await state(id)).toEqual({ state: 'ambiguous' })
    expect([await dispatch(), await listOwing(rows.db)]).toEqual([false, []])
  })

  test('sending stays on when nothing is missing, also with a damaged line in a journal', async () => {
    const journal = await openJournal(directory, newId())
    await journal.close()
    const [file] = await listJournals(directory)
    await writeFile(join(directory, file?.name ?? ''), 'damaged\n')
    await remember()
    const { generation } = await readInstance(rows.db)
    const guard = await open()
    await restartServer(rows.db)
    await guard.raise()
    expect(guard.instance()).toMatchObject({ generation })
    expect(await dispatch()).toBe(true)
  })

  test('every worker learns that commits which this process saw are missing', async () => {
    await remember()
    let behind = false
    const guard = await open(undefined, undefined, undefined, async () => behind)
    const { generation } = await readInstance(rows.db)
    behind = true
    await restartServer(rows.db)
    await guard.raise()
    expect((await readInstance(rows.db)).generation).not.toBe(generation)
  })
})

test('two processes on one disk keep their records independently', async () => {
  await remember()
  const guards = [await open(), await open()]
  for (let beat = 0; beat < 50; beat++) await Promise.all(guards.map((guard) => guard.raise()))
  const seen = JSON.parse(await readFile(join(directory, 'instance.json'), 'utf8'))
  expect(seen.id).toBe((await readInstance(rows.db)).id)
})

describe('journals of others', () => {
  async function replayed(living: boolean): Promise<boolean> {
    const worker_id = newId()
    const journal = await openJournal(directory, worker_id)
    await journal.close()
    if (living) await noteHeartbeat(rows.db, { worker_id, platforms: ['sandbox'] })
    const recorder = new Recorder(rows.app, { count: () => {}, noteTrouble })
    const loop = replayLoop({ directory, worker_id: newId(), recorder })
    await loop.step(rows.app, new AbortController().signal)
    return (await listJournals(directory)).some((file) => file.worker_id === worker_id && file.done)
  }

  test('are not set aside while their process is alive', async () => {
    expect(await replayed(true)).toBe(false)
  })

  test('are set aside once their process has ended', async () => {
    expect(await replayed(false)).toBe(true)
  })

  test('that could not be replayed are not set aside, and the put-back is not complete', async () => {
    const held = await rows.account()
    const worker_id = newId()
    const token = newId()
    const id = await rows.operation(held, { state: 'submitting', token })
    const journal = await openJournal(directory, worker_id)
    await journal.conclude({ id, token, outcome: { kind: 'refused', reason: 'chat_unavailable' } })
    await journal.close()
    let failing = true
    const recorder = new Recorder(rows.app, { count: () => {}, noteTrouble })
    const record = recorder.record.bind(recorder)
    recorder.record = (learnt) => (failing ? Promise.reject(new Error('not now')) : record(learnt))
    const loop = replayLoop({ directory, worker_id: newId(), recorder })
    const isDone = async () => {
      await loop.step(rows.app, new AbortController().signal)
      return (await listJournals(directory)).every(({ done }) => done)
    }
    expect(await isDone()).toBe(false)
    await expect(replayAll(rows.app, { directory, recorder })).rejects.toThrow('could not be replayed')
    failing = false
    expect(await isDone()).toBe(true)
    expect(await state(id)).toEqual({ state: 'refused' })
  })
})
