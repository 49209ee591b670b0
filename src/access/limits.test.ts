import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { copyDatabase, type TestDatabase } from '../../test/harness/database.ts'
import { hangMs, until } from '../../test/harness/process.ts'
import { hasRedis, openRedis, type RealRedis } from '../../test/harness/redis.ts'
import type { Limits } from '../app.ts'
import { openDatabase } from '../db/pool.ts'
import { type Database, sql } from '../db/sql.ts'
import { forgetQuietCallers, memoryLimits, postgresLimits, redisLimits } from './limits.ts'

const minute = { limit: 120, seconds: 60 }

describe('in memory', () => {
  test('never allows more than the limit in any window, and never refuses a call that fits', async () => {
    const steps = fc.array(fc.nat(30_000), { minLength: 1, maxLength: 200 })
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 8 }), async (waits, limit) => {
        let at = 1_000_000
        const limits = memoryLimits(() => at)
        const allowed: number[] = []
        for (const wait of waits) {
          at += wait
          const recent = allowed.filter((hit) => hit > at - 60_000).length
          const window = await limits.take('a', { limit, seconds: 60 })
          expect(window.allowed).toBe(recent < limit)
          if (window.allowed) allowed.push(at)
          const used = allowed.filter((hit) => hit > at - 60_000)
          expect(used.length).toBeLessThanOrEqual(limit)
          expect(window.remaining).toBe(limit - used.length)
          expect(window.reset).toBe(Math.ceil(((used[0] ?? at) + 60_000) / 1000))
          if (!window.allowed) {
            // Waiting as long as it says is enough.
            expect((used[0] ?? 0) + 60_000 - at).toBeLessThanOrEqual(window.retry_after * 1000)
            expect(window.retry_after).toBeGreaterThanOrEqual(1)
          }
        }
      }),
    )
  })

  test('counts each caller separately', async () => {
    const limits = memoryLimits()
    const rule = { limit: 1, seconds: 60 }
    expect((await limits.take('a', rule)).allowed).toBe(true)
    expect((await limits.take('b', rule)).allowed).toBe(true)
    expect((await limits.take('a', rule)).allowed).toBe(false)
  })

  test('counts a named place once while it is in the window', async () => {
    let at = 1_000_000
    const limits = memoryLimits(() => at)
    const rule = { limit: 2, seconds: 60 }
    const take = async (place?: string) => (await limits.take('a', rule, place)).allowed
    expect([await take('k'), await take('k'), await take('k')]).toEqual([true, true, true])
    expect([await take('l'), await take('m'), await take()]).toEqual([true, false, false])
    // A refused one has no place.
    expect([await take('m'), await take('k'), await take('l')]).toEqual([false, true, true])
    at += 61_000
    expect([await take('k'), await take('m'), await take('l')]).toEqual([true, true, false])
  })

  test('does not grow without bound, however many callers there are', async () => {
    const limits = memoryLimits()
    for (let at = 0; at < 150_000; at++) await limits.take(`address-${at}`, minute)
    expect((await limits.take('address-149999', minute)).remaining).toBe(118)
  })

  /** Enough new callers that others are dropped for them. */
  async function flood(limits: Limits): Promise<void> {
    for (let at = 0; at < 100_000; at++) await limits.take(`new-${at}`, minute)
  }

  test('drops idle callers first: a caller with a request in its window keeps its count', async () => {
    let at = 1_000_000
    const limits = memoryLimits(() => at)
    const day = { limit: 2, seconds: 86_400 }
    await limits.take('patient', day)
    for (let idle = 0; idle < 99_000; idle++) await limits.take(`idle-${idle}`, minute)
    at += 61_000
    for (let more = 0; more < 50_000; more++) await limits.take(`new-${more}`, minute)
    expect((await limits.take('patient', day)).remaining).toBe(0)
  })

  test('drops refused callers last, and before them those whose last request is longest ago', async () => {
    let at = 1_000_000
    const limits = memoryLimits(() => at)
    const rule = { limit: 2, seconds: 900 }
    for (const caller of ['refused', 'busy', 'quiet']) await limits.take(caller, rule)
    for (let more = 0; more < 2; more++) await limits.take('refused', rule)
    at += 1_000
    for (let more = 0; more < 60_000; more++) await limits.take(`early-${more}`, minute)
    at += 1_000
    await limits.take('busy', rule)
    for (let more = 0; more < 50_000; more++) await limits.take(`late-${more}`, minute)
    expect((await limits.take('refused', rule)).allowed).toBe(false)
    expect((await limits.take('busy', rule)).allowed).toBe(false)
    expect((await limits.take('quiet', rule)).remaining).toBe(1)
    await flood(limits)
    expect((await limits.take('refused', rule)).allowed).toBe(false)
  })
})

/** What several processes share: all of them together stay within the limit. */
function sharesExactly(open: () => Promise<readonly Limits[]>, spoil: () => Promise<void>): void {
  let all: readonly Limits[]
  beforeAll(async () => {
    all = await open()
  })
  afterAll(async () => {
    for (const limits of all) await limits.close()
  })
  const takeFrom = (at: number, caller: string, rule = minute) =>
    (all[at % all.length] as Limits).take(caller, rule)

  test('allows exactly the limit when many call at the same time', async () => {
    const windows = await Promise.all(Array.from({ length: 200 }, (_, at) => takeFrom(at, 'busy')))
    const allowed = windows.filter((window) => window.allowed)
    expect(allowed).toHaveLength(120)
    expect(allowed.map(({ remaining }) => remaining).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 120 }, (_, at) => at),
    )
    for (const { retry_after, remaining } of windows.filter((window) => !window.allowed)) {
      expect(remaining).toBe(0)
      expect(retry_after).toBeGreaterThan(50)
      expect(retry_after).toBeLessThanOrEqual(60)
    }
  })

  test('counts a named place once, however many name it at the same time', async () => {
    const rule = { limit: 2, seconds: 60 }
    const take = async (at: number, place?: string) =>
      (await (all[at % all.length] as Limits).take('places', rule, place)).allowed
    const repeats = await Promise.all(Array.from({ length: 30 }, (_, at) => take(at, 'k')))
    expect(repeats).toEqual(Array.from({ length: 30 }, () => true))
    expect([await take(0, 'l'), await take(1, 'm'), await take(2)]).toEqual([true, false, false])
    // A refused one has no place.
    expect([await take(0, 'm'), await take(1, 'k'), await take(2, 'l')]).toEqual([false, true, true])
  })

  test('does not count refused calls, and frees a window that has passed', async () => {
    const rule = { limit: 3, seconds: 1 }
    for (let at = 0; at < 3; at++) expect((await takeFrom(at, 'brief', rule)).allowed).toBe(true)
    for (let at = 0; at < 20; at++) expect((await takeFrom(at, 'brief', rule)).allowed).toBe(false)
    const window = await until('the window has passed', hangMs, async () => {
      const asked = await takeFrom(0, 'brief', rule)
      return asked.allowed && asked
    })
    expect(window.remaining).toBeGreaterThanOrEqual(0)
  })

  test('checks several limits in turn, and a later refusal leaves the earlier counts unchanged', async () => {
    const [one, two] = [
      { limit: 5, seconds: 60 },
      { limit: 2, seconds: 60 },
    ]
    const ask = (at: number, caller: string) =>
      (all[at % all.length] as Limits).takeAll([
        { caller: `each:${caller}`, rule: one },
        { caller: 'together', rule: two },
      ])
    expect(await ask(0, 'a')).toMatchObject({ allowed: true, limit: 2, remaining: 1 })
    expect(await ask(1, 'b')).toMatchObject({ allowed: true, limit: 2, remaining: 0 })
    const refused = await ask(2, 'c')
    expect(refused).toMatchObject({ allowed: false, limit: 2, remaining: 0 })
    expect(refused.retry_after).toBeGreaterThan(50)
    const first = { caller: 'together', rule: two }
    const never = { caller: 'each:d', rule: one }
    expect((await all[0]?.takeAll([first, never]))?.allowed).toBe(false)
    expect(await takeFrom(0, 'each:d', one)).toMatchObject({ remaining: 4 })
  })

  test('returns when the oldest call leaves the window, in Unix seconds', async () => {
    const { reset, limit } = await takeFrom(0, 'fresh')
    expect(limit).toBe(120)
    expect(Math.abs(reset - (Date.now() / 1000 + 60))).toBeLessThan(5)
  })

  test('503 when the store does not answer', async () => {
    await spoil()
    await expect(takeFrom(0, 'late')).rejects.toMatchObject({ status: 503 })
  })
}

describe('in PostgreSQL', () => {
  let copy: TestDatabase
  let dbs: Database[]

  test('adds no row for a call that a later limit refuses', async () => {
    const limits = postgresLimits(dbs[0] as Database)
    const rule = { limit: 1, seconds: 60 }
    const ask = (caller: string) =>
      limits.takeAll([caller, 'one for all'].map((caller) => ({ caller, rule })))
    expect((await ask('first')).allowed).toBe(true)
    expect((await ask('second')).allowed).toBe(false)
    const rows = await dbs[0]?.rows(sql`select caller from request_log order by caller`)
    expect(rows).toEqual([{ caller: 'first' }, { caller: 'one for all' }])
  })

  sharesExactly(
    async () => {
      copy = await copyDatabase()
      dbs = Array.from({ length: 3 }, () => openDatabase({ connectionString: copy.url }, { pool_size: 4 }))
      return dbs.map(postgresLimits)
    },
    async () => {
      const [db] = dbs
      await db?.run(sql`delete from request_log where caller <> 'busy'`)
      const row = (caller: string, hit: string, idle_at: string | null) =>
        db?.run(
          sql`insert into request_log values (${caller}, array[${hit}::timestamptz], ${idle_at}::timestamptz)`,
        )
      await row('quiet', '2020-01-01', null)
      await row('before this release', new Date().toISOString(), null)
      await row('idle', new Date().toISOString(), new Date().toISOString())
      if (db) expect(await forgetQuietCallers(db)).toBe(2)
      await db?.run(sql`drop table request_log`)
    },
  )

  afterAll(async () => {
    for (const db of dbs) await db.close()
    await copy.drop()
  })
})

const isInstalled = hasRedis()

describe.runIf(isInstalled)('in Redis', () => {
  let redis: RealRedis

  sharesExactly(
    async () => {
      redis = await openRedis()
      const all = await Promise.all(Array.from({ length: 3 }, () => redisLimits(redis.url)))
      for (const limits of all) {
        await until('Redis answers', hangMs, () =>
          limits.take('hello', minute).then(
            () => true,
            () => false,
          ),
        )
      }
      return all
    },
    () => redis.close(),
  )

  afterAll(() => redis.close())
})

test.runIf(!isInstalled)('redis-server is not on the PATH, so counting in Redis was not tested', () => {
  expect(isInstalled).toBe(false)
})
