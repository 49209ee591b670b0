/** A start whose database does not answer for a moment: it asks again, instead of ending after its accounts have connected. */
import { rm } from 'node:fs/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { App } from '../src/app.ts'
import { makeLogger } from '../src/cli/log.ts'
import { Service } from '../src/cli/service.ts'
import { retryWhileAway } from '../src/cli/slow-database.ts'
import { readConfig } from '../src/config.ts'
import { notConnected } from '../src/db/errors.ts'
import type { Db, Sql } from '../src/db/sql.ts'
import { parts } from '../src/parts.ts'
import { makeScratch } from './harness/scratch.ts'
import { testSecret } from './harness/worker.ts'

let home: string
let log: string[]
beforeEach(async () => {
  home = await makeScratch('parley-slow-start-')
  log = []
})
afterEach(() => rm(home, { recursive: true, force: true }))

const open = (demo: boolean) =>
  Service.open(parts, {
    ...{ role: 'start', demo, data_dir: home, port: 0, admin_port: undefined },
    config: readConfig({ PARLEY_SECRET: testSecret }),
    log: makeLogger('warn', { write: (line: string) => void log.push(line) }),
  })

const slow = () => notConnected(new Error('Connection terminated due to connection timeout'))

/** Each statement finds no connection for the first two times that the start asks it. Returns those it has asked. */
function slowDown(db: Db): Map<string, number> {
  const asked = new Map<string, number>()
  const isSlow = ({ text }: Sql): boolean => {
    const times = (asked.get(text) ?? 0) + 1
    asked.set(text, times)
    return times <= 2
  }
  for (const name of ['one', 'maybe', 'rows', 'run'] as const) {
    const ask = db[name].bind(db) as (statement: Sql) => Promise<never>
    vi.spyOn(db, name).mockImplementation(async (statement: Sql) => {
      if (isSlow(statement)) throw slow()
      return ask(statement)
    })
  }
  return asked
}

/** The worker's own registration begins once the database has answered. */
function slowDownOnce(db: Db): void {
  const ask = db.one.bind(db)
  let times = 0
  vi.spyOn(db, 'one').mockImplementation(async (statement: Sql) => {
    if (times++ < 2) throw slow()
    return ask(statement) as never
  })
}

test('it begins although each question is answered only at the third time, with and without a demo', async () => {
  const first = await open(true)
  expect((await first.begin()).demo).toBeDefined()
  await first.stop()
  for (const demo of [true, false]) {
    const service = await open(demo)
    const asked = slowDown(service.app.db)
    slowDownOnce(service.app.background.db)
    const { demo: made, empty } = await service.begin()
    expect([made, empty]).toEqual([undefined, false])
    vi.restoreAllMocks()
    await service.stop()
    expect(asked.size).toBeGreaterThan(2)
    expect(log.filter((line) => line.includes('the database is slow')).length).toBeGreaterThan(4)
    log = []
  }
})

test('a start that is stopped asks no more', async () => {
  const service = await open(false)
  vi.spyOn(service.app.db, 'one').mockImplementation(async () => {
    // Between two questions.
    setImmediate(() => void service.stop())
    throw slow()
  })
  await expect(service.begin()).rejects.toThrow('Stopped before it was ready.')
})

/** The clock of a process whose sleeps are over at once. */
function makeSources() {
  let at = 0
  const sleep = async (ms: number) => {
    at += ms
  }
  return { log: makeLogger('silent'), sources: { now: () => at, sleep } } as unknown as Pick<
    App,
    'log' | 'sources'
  >
}

test('it asks for a minute, and ends then; another error ends it at once', async () => {
  let times = 0
  const away = async () => {
    times++
    throw slow()
  }
  await expect(retryWhileAway(makeSources(), () => {}, away)).rejects.toThrow('does not respond')
  expect(times).toBe(121)
  const wrong = vi.fn(async () => {
    throw new TypeError('a bug')
  })
  await expect(retryWhileAway(makeSources(), () => {}, wrong)).rejects.toThrow('a bug')
  expect(wrong).toHaveBeenCalledTimes(1)
})
