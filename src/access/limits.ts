/**
 * A sliding log: the times of the requests that were allowed, at most `limit` of them in any window. One process counts in
 * memory; several share PostgreSQL or Redis. Uses real time, never domain time.
 */
import assert from 'node:assert'
import type { Limits, Rule, Taking, Window } from '../app.ts'
import { type Database, type Db, sql, type Tx } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import { sha256 } from '../lib/secrets.ts'

/** At this size a tenth of the callers is dropped at once (`makeRoom`). */
const callersMax = 100_000

export function memoryLimits(now: () => number = Date.now): Limits {
  const log = makeLog(now)
  return {
    take: async (caller, rule, place) => log.take(caller, rule, place),
    takeAll: async (asked) => log.takeAll(asked),
    async check() {},
    async close() {},
  }
}

/** The times of one caller's requests in this window; those before `first` have left it. */
interface Hits {
  times: number[]
  first: number
  /** When its last request will have left the window. */
  idleAt: number
  /** Its last request was refused. */
  refused: boolean
}

interface Log {
  take(caller: string, rule: Rule, place?: string): Window
  takeAll(asked: readonly Taking[]): Window
}

/** The log in memory, for a single process. */
export function makeLog(now: () => number = Date.now): Log {
  const callers = new Map<string, Hits>()
  function takeAll(asked: readonly Taking[]): Window {
    const at = now()
    let window: Window | undefined
    const found: [Taking, Hits][] = []
    for (const taking of asked) {
      const { caller, rule } = taking
      const hits = callers.get(caller) ?? { times: [], first: 0, idleAt: 0, refused: false }
      forget(hits, at - rule.seconds * 1000)
      const used = hits.times.length - hits.first
      hits.refused = used >= rule.limit
      window = windowOf(rule, !hits.refused, used + (hits.refused ? 0 : 1), hits.times[hits.first] ?? at, at)
      if (hits.refused) return window
      found.push([taking, hits])
    }
    for (const [{ caller, rule }, hits] of found) {
      if (!callers.has(caller) && callers.size >= callersMax) makeRoom(callers, at)
      callers.set(caller, hits)
      hits.times.push(at)
      hits.idleAt = at + rule.seconds * 1000
    }
    assert(window)
    return window
  }
  function take(caller: string, rule: Rule, place?: string): Window {
    if (place === undefined) return takeAll([{ caller, rule }])
    const own = ownPlace(caller, rule, place)
    const { idleAt = 0 } = callers.get(own.caller) ?? {}
    const at = now()
    if (idleAt > at) return windowOf(rule, true, rule.limit, at, at) // guard: one place for all repeats in memory
    return takeAll([own, { caller, rule }])
  }
  return { take, takeAll }
}

/** A place is counted like a caller who may ask once: while that is in its window, the place is taken. */
function ownPlace(caller: string, { seconds }: Rule, place: string): Taking {
  return { caller: `${caller} ${sha256(place).toString('base64url')}`, rule: { limit: 1, seconds } }
}

/** Skips the times that have left the window, and shortens the list once they are half of it. */
function forget(hits: Hits, until: number): void {
  const { times } = hits
  while (hits.first < times.length && (times[hits.first] as number) <= until) hits.first++
  if (hits.first <= times.length / 2) return
  hits.times = times.slice(hits.first)
  hits.first = 0
}

/**
 * Drops many callers at once: one by one, each new caller of a flood would cost a scan of all. Idle callers go first and
 * lose nothing. Next go those whose last request is longest ago. Refused callers go last: a flood of new callers must not
 * give them another budget.
 */
function makeRoom(callers: Map<string, Hits>, at: number): void {
  for (const [caller, { idleAt }] of callers) if (idleAt <= at) callers.delete(caller) // guard: idle callers go first
  const count = callers.size - callersMax * 0.9
  if (count <= 0) return
  const ranks = Float64Array.from(callers.values(), rankOf).sort()
  const limit = ranks[count] ?? 0
  let left = count
  for (const [caller, hits] of callers) {
    if (rankOf(hits) > limit || left-- <= 0) continue
    callers.delete(caller)
  }
}

/** The lowest rank is dropped first. */
function rankOf({ times, refused }: Hits): number {
  return (times.at(-1) ?? 0) + (refused ? Number.MAX_SAFE_INTEGER / 2 : 0) // guard: refused callers go last
}

interface CountedHits {
  readonly allowed: boolean
  readonly used: number
  readonly oldest: number
  readonly at: number
}

export function postgresLimits(db: Database): Limits {
  return {
    take: (caller, rule, place) => takePlace(db, { caller, rule }, place), // limit: counted for all processes
    takeAll: (asked) => takeAllIn(db, asked),
    async check() {},
    async close() {},
  }
}

/** One statement: the upsert's row lock makes it exact across all processes. */
async function takeIn(db: Db, { caller, rule }: Taking): Promise<Window> {
  const { limit, seconds } = rule
  const { allowed, used, oldest, at } = await db.one<CountedHits>(sql`
    insert into request_log as log (caller, hits, idle_at)
    values (${caller}, array[clock_timestamp()], clock_timestamp() + make_interval(secs => ${seconds}))
    on conflict (caller) do update set idle_at = excluded.idle_at, hits = (
      select case when cardinality(recent) < ${limit}::int then recent || now else recent || 'infinity'::timestamptz end
      from (select clock_timestamp() as now) c, lateral (
        select coalesce(array_agg(hit order by hit), '{}') as recent from unnest(log.hits) hit
        where hit > now - make_interval(secs => ${seconds}) and hit < 'infinity') r)
    returning hits[cardinality(hits)] < 'infinity' as allowed,
      cardinality(array_remove(hits, 'infinity')) as used,
      (extract(epoch from hits[1]) * 1000)::float8 as oldest,
      (extract(epoch from clock_timestamp()) * 1000)::float8 as at`)
  return windowOf(rule, allowed, used, oldest, at)
}

/** Rolls back what was counted before the limit that refuses. */
class Overdrawn extends Error {
  readonly window: Window

  constructor(window: Window) {
    super('A limit is reached.')
    this.window = window
  }
}

/** One transaction, so that a refused attempt adds no row. All take their kinds of callers in one order, so none deadlock. */
function takeAllIn(db: Database, asked: readonly Taking[]): Promise<Window> {
  return untilOverdrawn(db, async (tx) => {
    let window: Window | undefined
    for (const taking of asked) window = requireAllowed(await takeIn(tx, taking))
    assert(window)
    return window
  })
}

/** The place and its count commit together: repeats that arrive meanwhile wait for that, and hold nothing else. */
async function takePlace(db: Database, taking: Taking, place: string | undefined): Promise<Window> {
  if (place === undefined) return takeIn(db, taking)
  return untilOverdrawn(db, async (tx) => {
    const own = await takeIn(tx, ownPlace(taking.caller, taking.rule, place))
    if (!own.allowed) return { ...own, allowed: true } // guard: one place for all repeats in the database
    return requireAllowed(await takeIn(tx, taking))
  })
}

function requireAllowed(window: Window): Window {
  if (!window.allowed) throw new Overdrawn(window) // guard: a refused attempt adds no row
  return window
}

async function untilOverdrawn(db: Database, work: (tx: Tx) => Promise<Window>): Promise<Window> {
  try {
    return await db.transaction(work)
  } catch (error) {
    if (error instanceof Overdrawn) return error.window
    throw error
  }
}

/** Deletes rows whose every hit has left its window. Older releases did not store when: no window is longer than a day. */
export function forgetQuietCallers(db: Db): Promise<number> {
  return db.run(sql`
    delete from request_log where idle_at <= clock_timestamp() or (idle_at is null and not exists (
      select from unnest(hits) hit where hit > clock_timestamp() - interval '1 day' and hit < 'infinity'))`)
}

/** Uses the Redis server's time in microseconds; a counter separates two requests of one microsecond. A place has a name. */
const script = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit, span = tonumber(ARGV[1]), tonumber(ARGV[2]) * 1000000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - span)
local used = redis.call('ZCARD', KEYS[1])
local allowed = 0
if ARGV[3] ~= '' and redis.call('ZSCORE', KEYS[1], ARGV[3]) then
  allowed = 1
elseif used < limit then
  allowed = 1
  used = used + 1
  local place = ARGV[3]
  if place == '' then place = now .. ':' .. redis.call('INCR', KEYS[2]) end
  redis.call('ZADD', KEYS[1], now, place)
  redis.call('PEXPIRE', KEYS[1], ARGV[2] * 1000)
  redis.call('PEXPIRE', KEYS[2], ARGV[2] * 1000)
end
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or now
return { allowed, used, tostring(oldest), tostring(now) }`

/** A Redis that does not answer for this long is away. Only the first requests wait for it. */
const answerMsMax = 2_000

export async function redisLimits(url: string): Promise<Limits> {
  // Loaded here, because most instances do not use it.
  const { Redis } = await import('ioredis')
  const redis = new Redis(url, {
    commandTimeout: answerMsMax,
    // While there is no connection, every command fails at once, and the client keeps connecting.
    enableOfflineQueue: false, // guard: no queue while redis is away
    maxRetriesPerRequest: 0, // guard: a lost connection fails its requests
    retryStrategy: (times) => Math.min(times * 50, 1_000),
  })
  // The request that needs it reports the failure.
  redis.on('error', () => {})
  redis.defineCommand('parleyTake', { numberOfKeys: 2, lua: script })
  const take = Reflect.get(redis, 'parleyTake') as (
    ...args: readonly (string | number)[]
  ) => Promise<[number, number, string, string]>
  /** A server that stopped answering would make each request wait: its connection ends, and a new one has to answer first. */
  const ask = async <T>(command: () => Promise<T>): Promise<T> => {
    try {
      return await command()
    } catch (cause) {
      // guard: a silent redis is disconnected
      if (cause instanceof Error && cause.message === 'Command timed out') redis.disconnect(true)
      throw new ApiError('store_unavailable', {
        detail: 'The rate limiter does not respond. Retry the request.',
        cause,
      })
    }
  }
  const takeOne: Limits['take'] = async (caller, rule, place) => {
    const key = `parley:{${caller}}` // limit: counted in redis for all processes
    const named = place === undefined ? '' : sha256(place).toString('base64url')
    const taken = await ask(() => take.call(redis, key, `${key}:n`, rule.limit, rule.seconds, named))
    const [allowed, used, oldest, at] = taken
    return windowOf(rule, allowed === 1, used, Number(oldest) / 1000, Number(at) / 1000)
  }
  return {
    take: takeOne,
    // Keys of a refused attempt expire by themselves, so nothing needs undoing.
    async takeAll(asked) {
      let window: Window | undefined
      for (const { caller, rule } of asked) {
        window = await takeOne(caller, rule)
        if (!window.allowed) break
      }
      assert(window)
      return window
    },
    check: async () => void (await ask(() => redis.ping())),
    close: async () => redis.disconnect(),
  }
}

function windowOf(
  { limit, seconds }: Rule,
  allowed: boolean,
  used: number,
  oldest: number,
  at: number,
): Window {
  const resetMs = oldest + seconds * 1000
  return {
    allowed,
    limit,
    remaining: Math.max(0, limit - used),
    reset: Math.ceil(resetMs / 1000),
    retry_after: allowed ? 0 : Math.max(1, Math.ceil((resetMs - at) / 1000)),
  }
}
