/**
 * The sliding log: the times of the requests that were let through, at most `limit` of them in any window.
 * One process counts in memory; several share PostgreSQL or Redis. Real time, never the domain's.
 */
import { Redis } from 'ioredis'
import type { Limits, Rule, Window } from '../app.ts'
import { type Database, type Db, sql } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'

/** At this size callers without a recent request are dropped, and then the oldest ones. */
const callersMax = 100_000

export function memoryLimits(now: () => number = Date.now): Limits {
  const log = makeLog(now)
  return { take: async (caller, rule) => log.take(caller, rule), async close() {} }
}

/** The times of one caller's requests in this window; those before `first` have left it. */
interface Hits {
  times: number[]
  first: number
}

interface Log {
  take(caller: string, rule: Rule): Window
}

/** The log in memory, for a single process. */
export function makeLog(now: () => number = Date.now): Log {
  const callers = new Map<string, Hits>()
  return {
    take(caller, rule) {
      const at = now()
      let hits = callers.get(caller)
      if (!hits) {
        if (callers.size >= callersMax) makeRoom(callers, at)
        hits = { times: [], first: 0 }
        callers.set(caller, hits)
      }
      forget(hits, at - rule.seconds * 1000)
      const { times, first } = hits
      const allowed = times.length - first < rule.limit
      if (allowed) times.push(at)
      return windowOf(rule, allowed, times.length - first, times[first] ?? at, at)
    },
  }
}

/** Skips the times that have left the window, and shortens the list once they are half of it. */
function forget(hits: Hits, until: number): void {
  const { times } = hits
  while (hits.first < times.length && (times[hits.first] as number) <= until) hits.first++
  if (hits.first <= times.length / 2) return
  hits.times = times.slice(hits.first)
  hits.first = 0
}

/** Makes room for many callers at once: done one by one, each new caller of a flood would cost a look at all. */
function makeRoom(callers: Map<string, Hits>, at: number): void {
  // A day is the longest window any rule has.
  for (const [caller, { times }] of callers) {
    if ((times.at(-1) ?? 0) < at - 86_400_000) callers.delete(caller)
  }
  for (const caller of callers.keys()) {
    if (callers.size <= callersMax * 0.9) return
    callers.delete(caller)
  }
}

interface Counted {
  readonly allowed: boolean
  readonly used: number
  readonly oldest: number
  readonly at: number
}

/** One statement: the row lock of the upsert makes it exact over all processes. */
export function postgresLimits(db: Database): Limits {
  return {
    async take(caller, { limit, seconds }) {
      const { allowed, used, oldest, at } = await db.one<Counted>(sql`
        insert into request_log as log (caller, hits) values (${caller}, array[clock_timestamp()])
        on conflict (caller) do update set hits = (
          select case when cardinality(recent) < ${limit}::int then recent || now else recent || 'infinity'::timestamptz end
          from (select clock_timestamp() as now) c, lateral (
            select coalesce(array_agg(hit order by hit), '{}') as recent from unnest(log.hits) hit
            where hit > now - make_interval(secs => ${seconds}) and hit < 'infinity') r)
        returning hits[cardinality(hits)] < 'infinity' as allowed,
          cardinality(array_remove(hits, 'infinity')) as used,
          (extract(epoch from hits[1]) * 1000)::float8 as oldest,
          (extract(epoch from clock_timestamp()) * 1000)::float8 as at`)
      return windowOf({ limit, seconds }, allowed, used, oldest, at)
    },
    async close() {},
  }
}

/** Rows whose every hit has left the longest window. */
export function forgetQuietCallers(db: Db): Promise<number> {
  return db.run(sql`
    delete from request_log where not exists (
      select from unnest(hits) hit where hit > clock_timestamp() - interval '1 day' and hit < 'infinity')`)
}

/** Times in microseconds of the Redis server; a counter keeps two requests of one microsecond apart. */
const script = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit, span = tonumber(ARGV[1]), tonumber(ARGV[2]) * 1000000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - span)
local used = redis.call('ZCARD', KEYS[1])
local allowed = 0
if used < limit then
  allowed = 1
  used = used + 1
  redis.call('ZADD', KEYS[1], now, now .. ':' .. redis.call('INCR', KEYS[2]))
  redis.call('PEXPIRE', KEYS[1], ARGV[2] * 1000)
  redis.call('PEXPIRE', KEYS[2], ARGV[2] * 1000)
end
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or now
return { allowed, used, tostring(oldest), tostring(now) }`

export function redisLimits(url: string): Limits {
  const redis = new Redis(url, { maxRetriesPerRequest: 1, commandTimeout: 2_000, enableOfflineQueue: true })
  // The request that needs it reports the failure.
  redis.on('error', () => {})
  redis.defineCommand('parleyTake', { numberOfKeys: 2, lua: script })
  const take = Reflect.get(redis, 'parleyTake') as (
    ...args: readonly (string | number)[]
  ) => Promise<[number, number, string, string]>
  return {
    async take(caller, rule) {
      const key = `parley:{${caller}}`
      try {
        const [allowed, used, oldest, at] = await take.call(redis, key, `${key}:n`, rule.limit, rule.seconds)
        return windowOf(rule, allowed === 1, used, Number(oldest) / 1000, Number(at) / 1000)
      } catch (cause) {
        throw new ApiError('store_unavailable', {
          detail: 'The rate limiter does not answer. Ask again.',
          cause,
        })
      }
    },
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
