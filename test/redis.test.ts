/** A service whose limiter is in Redis, while Redis goes away, falls silent and comes back. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { FakeRedis } from './harness/fake-redis.ts'
import { hangMs, until } from './harness/process.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'
import { timed } from './harness/timed.ts'

let redis: FakeRedis
let service: Service
let tenant: Tenant
beforeAll(async () => {
  redis = await FakeRedis.open()
  service = await openService({ env: { REDIS_URL: redis.url } })
  tenant = await service.tenant()
  await untilReady()
})
afterAll(async () => {
  await service.close()
  await redis.leave()
})

async function ready(): Promise<{ status: number; limits: unknown }> {
  const response = await fetch(`${service.url}/readyz`)
  const { checks } = (await response.json()) as { checks: Record<string, unknown> }
  return { status: response.status, limits: checks.limits }
}

async function untilReady(): Promise<void> {
  await until('the limiter is back', hangMs, async () => (await ready()).status === 200)
}

const refused = { status: 503, body: { code: 'store_unavailable' } }

/** Each of these requests is refused, and takes this many milliseconds at most. */
/** The quickest of twenty: a busy machine delays some of them, and a wait for Redis would delay every one. */
async function quickestRefusal(): Promise<number> {
  let quickest = Number.POSITIVE_INFINITY
  for (let n = 0; n < 20; n++) {
    const begun = performance.now()
    expect(await service.get('/me', { key: tenant.key })).toMatchObject(refused)
    quickest = Math.min(quickest, performance.now() - begun)
  }
  return quickest
}

test('200 while Redis answers, and /readyz says so', async () => {
  expect(await ready()).toEqual({ status: 200, limits: 'ok' })
  expect(await service.get('/me', { key: tenant.key })).toMatchObject({ status: 200 })
})

test('503 within 100 ms while Redis is away, and 200 once it is back', timed, async () => {
  await redis.leave()
  await until('the connection is closed', hangMs, async () => (await ready()).limits === 'store_unavailable')
  expect((await ready()).status).toBe(503)
  expect(await quickestRefusal()).toBeLessThan(100)
  await redis.come()
  await untilReady()
  expect(await service.get('/me', { key: tenant.key })).toMatchObject({ status: 200 })
})

test('503 for requests in flight when the connection is lost, also if the next one answers', async () => {
  redis.silence()
  const before = redis.unanswered
  const asked = service.get('/me', { key: tenant.key })
  await until('Redis has the command', hangMs, async () => redis.unanswered > before)
  await redis.leave()
  await redis.come()
  expect(await asked).toMatchObject(refused)
  await untilReady()
})

test(
  '503 within 100 ms, after the first request, while Redis accepts connections and answers nothing',
  timed,
  async () => {
    redis.silence()
    expect(await service.get('/me', { key: tenant.key })).toMatchObject(refused)
    expect(await quickestRefusal()).toBeLessThan(100)
    expect(await ready()).toEqual({ status: 503, limits: 'store_unavailable' })
    await redis.come()
    await untilReady()
  },
)
