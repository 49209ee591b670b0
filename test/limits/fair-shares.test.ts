/** Costly reads: a workspace has one at a time, and what it wants beyond that costs no other one anything. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { workspaceRoutes } from '../../src/lists/dashboard-routes.ts'
import { routes } from '../../src/lists/routes.ts'
import type { Route } from '../../src/route.ts'
import { callTool } from '../harness/mcp.ts'
import { askDashboard, signIn } from '../harness/person.ts'
import { hangMs, until } from '../harness/process.ts'
import { openService, type Service, type Tenant } from '../harness/service.ts'

let service: Service
let greedy: Tenant
let other: Tenant
beforeAll(async () => {
  service = await openService({ env: { PARLEY_POOL_SIZE: '10' } })
  greedy = await service.tenant('Greedy')
  other = await service.tenant('Other')
  for (const { workspace_id } of [greedy, other]) await service.account(workspace_id)
})
afterAll(() => service.close())

/** While `work` runs, this workspace has that many costly reads under way. Each holds a connection, as a search does. */
async function holding<T>(tenants: readonly Tenant[], work: () => Promise<T>): Promise<T> {
  const { app } = service
  const held = Promise.withResolvers<void>()
  const places = tenants.map(({ workspace_id }) => {
    const begun = Promise.withResolvers<void>()
    const ended = app.costly({ workspace_id, left: undefined }, () =>
      app.db.snapshot(async (db) => {
        await db.one(sql`select 1`)
        begun.resolve()
        await held.promise
      }),
    )
    return { begun: begun.promise, ended }
  })
  await Promise.all(places.map(({ begun }) => begun))
  try {
    return await work()
  } finally {
    held.resolve()
    await Promise.all(places.map(({ ended }) => ended))
  }
}

const body = { query: 'anything' }
const search = ({ key }: Tenant) => service.post('/search', { key, body })

async function searchAtDashboard({ workspace_id, user_id }: Tenant): Promise<number> {
  const cookie = await signIn(service, user_id)
  return (await askDashboard(service, 'POST', `/w/${workspace_id}/search`, { cookie, body })).status
}

async function searchByMcp({ key }: Tenant): Promise<unknown> {
  const { isError, structuredContent } = await callTool(
    { url: service.url, key },
    'service_search_messages',
    body,
  )
  return isError ? (structuredContent as { code: string }).code : 200
}

describe('while a workspace has a costly read under way', () => {
  test('its next search is 429 with Retry-After, at the API, at the dashboard and for agents; others get 200', async () => {
    await holding([greedy], async () => {
      const [second, page, agent] = await Promise.all([
        search(greedy),
        searchAtDashboard(greedy),
        searchByMcp(greedy),
      ])
      expect(second).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
      expect(second.headers.get('retry-after')).toBe('5')
      expect([page, agent]).toEqual([429, 'rate_limited'])
      expect((await search(other)).status).toBe(200)
      expect([await searchAtDashboard(other), await searchByMcp(other)]).toEqual([200, 200])
    })
    expect((await search(greedy)).status).toBe(200)
  })

  test('its long lists wait as well, and short requests do not', async () => {
    await holding([greedy], async () => {
      for (const path of ['/columns', '/columns?limit=10', '/pipeline']) {
        expect((await service.get(path, { key: greedy.key })).status, path).toBe(429)
        expect((await service.get(path, { key: other.key })).status, path).toBe(200)
      }
      expect((await service.get('/me', { key: greedy.key })).status).toBe(200)
    })
  })

  test('the next one begins when it ends', async () => {
    // On a busy machine its short wait may be over before the first one has ended. Then it is refused, and asks again.
    await until('one that waited gets its turn', hangMs, async () => {
      let answer: ReturnType<typeof search> | undefined
      await holding([greedy], async () => {
        let isRefused = false
        answer = search(greedy)
        void answer.then(() => {
          isRefused = true
        })
        await until('it waits', hangMs, () => isRefused || service.app.costly.countWaiting() === 1)
      })
      return (await answer)?.status === 200
    })
  })

  const leaving = {
    'at the API': ({ key }: Tenant) => ({ path: '/api/v1/search', headers: byKey(key), body }),
    'of a long list': ({ key }: Tenant) => ({ path: '/api/v1/columns?limit=10', headers: byKey(key) }),
    'at the dashboard': async ({ workspace_id, user_id }: Tenant) => ({
      path: `/dashboard/api/w/${workspace_id}/search`,
      headers: { cookie: await signIn(service, user_id), origin: service.url },
      body,
    }),
    'at the endpoint of agents': ({ key }: Tenant) => ({
      path: '/api/mcp',
      headers: { ...byKey(key), accept: 'application/json, text/event-stream' },
      body: {
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: { name: 'service_search_messages', arguments: body },
      },
    }),
  }
  test.each(Object.keys(leaving) as (keyof typeof leaving)[])(
    'a caller %s that leaves waits no longer',
    async (which) => {
      const asked: { path: string; headers: Record<string, string>; body?: object } =
        await leaving[which](greedy)
      await holding([greedy], async () => {
        const closed = await countClosed()
        const left = new AbortController()
        await withoutTime(async () => {
          const answer = fetch(`${service.url}${asked.path}`, {
            method: asked.body ? 'POST' : 'GET',
            headers: { ...asked.headers, 'content-type': 'application/json' },
            ...(asked.body && { body: JSON.stringify(asked.body) }),
            signal: left.signal,
          }).catch(() => 'left')
          await untilWaiting(1)
          left.abort()
          expect(await answer).toBe('left')
          await untilWaiting(0)
        })
        // The answer to an agent may have begun.
        if (which === 'at the endpoint of agents') return
        await until('it is counted', hangMs, async () => (await countClosed()) > closed || undefined)
      })
    },
  )
})

const byKey = (key: string) => ({ authorization: `Bearer ${key}` })

function untilWaiting(count: number): Promise<unknown> {
  return until(
    `${count} wait for their turn`,
    hangMs,
    async () => service.app.costly.countWaiting() === count || undefined,
  )
}

/** No wait in this process is over before `work` is. */
async function withoutTime<T>(work: () => Promise<T>): Promise<T> {
  const held = new Set<() => void>()
  const timer = vi.spyOn(service.app.sources, 'timer').mockImplementation((_ms, done) => {
    held.add(done)
    return () => held.delete(done)
  })
  try {
    return await work()
  } finally {
    timer.mockRestore()
    for (const done of held) done()
  }
}

async function countClosed(): Promise<number> {
  const { values } = (await service.app.metrics.getSingleMetric('parley_http_dropped_total')?.get()) ?? {
    values: [],
  }
  return values.find(({ labels }) => labels.reason === 'closed')?.value ?? 0
}

test('half of the connections of requests stay for short ones, whoever reads what takes long', async () => {
  const third = await service.tenant('Third')
  const fourth = await service.tenant('Fourth')
  await holding([greedy, other, third], async () => {
    // Three of six: another workspace waits for a place, and what is short does not.
    expect((await search(fourth)).status).toBe(429)
    expect((await service.get('/me', { key: fourth.key })).status).toBe(200)
    expect(service.app.db.countWaiting()).toBe(0)
  })
  expect((await search(fourth)).status).toBe(200)
})

test('these routes are costly', () => {
  const costly = (list: readonly Route[]) =>
    list.flatMap((route) => (route.effect === 'read' && route.costly ? [route.name] : [])).toSorted()
  expect(costly(routes)).toEqual([
    'find_people',
    'get_analytics',
    'get_campaign',
    'get_person',
    'preview_erasure',
    'search_messages',
    'verify_campaign',
  ])
  expect(costly(workspaceRoutes)).toEqual([
    'get_board',
    'list_campaign_progress',
    'list_days',
    'list_recipients',
    'preview_retention',
  ])
})
