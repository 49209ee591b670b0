/**
 * What holds a connection for long: costly reads, creations, previews, imports and exports. A workspace has one of each at a time,
 * what it wants beyond that costs no other one anything, and all of them together leave connections to short requests.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { importSuppressions } from '../../src/capabilities/suppressions/suppressions.ts'
import type { OpenApp } from '../../src/cli/open.ts'
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
  await service.open('extended')
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

/** Creations hold an open transaction, which waits for the campaigns, until `work` is over. */
async function whileCampaignsWait<T>(work: (app: OpenApp) => Promise<T>, { app } = service): Promise<T> {
  return app.background.db.transaction(async (tx) => {
    await tx.run(sql`lock table campaigns in share row exclusive mode`)
    return work(app)
  })
}

const contacts = [{ identifier: '@person' }]
const campaignOf = (account_id: string) => ({ message_text: 'Hello', account_id, contacts })

function create({ key, account_id }: Creator, at = service) {
  let ended = false
  const status = at.post('/campaigns', { key, body: campaignOf(account_id) }).then((answer) => {
    ended = true
    return answer.status
  })
  return { status, ended: () => ended }
}

/** How many transactions wait for the campaigns. */
async function countLocked({ background: { db } }: OpenApp): Promise<number> {
  const { count } = await db.one<{ count: number }>(sql`
    select count(*)::int as count from pg_locks
    where not granted and relation = 'campaigns'::regclass
      and database = (select oid from pg_database where datname = current_database())`)
  return count
}

/** An import that gets its file once `held` is over. */
function importOf({ workspace_id }: Tenant, held: Promise<unknown>, { app } = service) {
  const begun = Promise.withResolvers<void>()
  async function* bytes() {
    begun.resolve()
    await held
    yield Buffer.from('kind,value\nusername,ines_garcia_3\n')
  }
  const ended = importSuppressions(app, 'cli:ana', { workspace_id, file: 'list.csv', bytes })
  return { begun: begun.promise, ended }
}

describe('what holds a connection for long', () => {
  test('200 for a short request while three tenants read, two create and one imports', async () => {
    const { app } = service
    const [third, fourth] = [await service.tenant('Third'), await service.tenant('Fourth')]
    const makers = [await creator('Maker'), await creator('Other maker')]
    const { key } = await service.tenant('Fifth')
    const held = Promise.withResolvers<void>()
    const created = await whileCampaignsWait(() =>
      holding([greedy, other, third], async () => {
        const imported = importOf(fourth, held.promise)
        await imported.begun
        const made = makers.map((maker) => create(maker))
        await until('both are under way', hangMs, async () => {
          const waiting = app.long.countWaiting() + (await countLocked(app))
          return waiting === 2
        })
        expect((await service.get('/me', { key })).status).toBe(200)
        // It waited for none of them.
        expect(made.filter(({ ended }) => ended())).toEqual([])
        held.resolve()
        expect((await imported.ended).added).toBe(1)
        return made
      }).finally(() => held.resolve()),
    )
    expect(await Promise.all(created.map(({ status }) => status))).toEqual([201, 201])
  })

  test('with the smallest pool one workspace searches while it imports, and a short request gets 200', async () => {
    const small = await openService({ env: { PARLEY_POOL_SIZE: '5' } })
    const held = Promise.withResolvers<void>()
    try {
      await small.open('extended')
      const tenant = await creator('Small', small)
      const { key } = tenant
      const imported = importOf(tenant, held.promise, small)
      await imported.begun
      expect((await small.post('/search', { key, body })).status).toBe(200)
      const asked = await whileCampaignsWait(async (app) => {
        const made = create(tenant, small)
        await until(
          'the creation waits for the campaigns',
          hangMs,
          async () => (await countLocked(app)) === 1,
        )
        const read = small.post('/search', { key, body })
        const viewed = small.post('/campaigns/preview', { key, body: campaignOf(tenant.account_id) })
        await until('both wait for its place', hangMs, () => made.ended() || app.long.countWaiting() === 2)
        expect((await small.get('/me', { key })).status).toBe(200)
        expect(made.ended()).toBe(false)
        return [made.status, ...[read, viewed].map(async (one) => (await one).status)]
      }, small)
      expect(await Promise.all(asked)).toEqual([201, 200, 200])
      held.resolve()
      expect((await imported.ended).added).toBe(1)
    } finally {
      held.resolve()
      await small.close()
    }
  })

  /** Each begins one, and says how it ended. */
  const kinds = {
    'a costly read': async () => (await search(greedy)).status,
    'a creation': async () => create(await creator('Creator')).status,
    'a preview': async () => {
      const { key, account_id } = await creator('Viewer')
      return (await service.post('/campaigns/preview', { key, body: campaignOf(account_id) })).status
    },
    'an import': async () => (await importOf(greedy, Promise.resolve()).ended).skipped_count + 200,
    'an export': async () => {
      const cookie = await signIn(service, greedy.user_id)
      return (await askDashboard(service, 'GET', `/w/${greedy.workspace_id}/suppressions/export`, { cookie }))
        .status
    },
  }
  test.each(Object.keys(kinds) as (keyof typeof kinds)[])(
    '%s waits for a place while all are taken',
    async (kind) => {
      const { long } = service.app
      const held = Promise.withResolvers<void>()
      const holders = ['a', 'a', 'b', 'b'].map((workspace_id) =>
        long({ workspace_id, left: undefined }, () => held.promise),
      )
      try {
        let hasEnded = false
        const status = kinds[kind]().finally(() => {
          hasEnded = true
        })
        await until('it waits', hangMs, () => hasEnded || long.countWaiting() === 1)
        expect(long.countWaiting()).toBe(1)
        held.resolve()
        expect([200, 201]).toContain(await status)
      } finally {
        held.resolve()
        await Promise.all(holders)
      }
    },
  )

  test('a workspace has half of the places, so that another one finds one', async () => {
    const { long } = service.app
    const held = Promise.withResolvers<void>()
    const turn = { workspace_id: greedy.workspace_id, left: undefined }
    const holders = [1, 2, 3].map(() => long(turn, () => held.promise))
    expect(long.countWaiting()).toBe(1)
    expect((await search(other)).status).toBe(200)
    held.resolve()
    await Promise.all(holders)
  })
})

interface Creator extends Tenant {
  readonly account_id: string
}

/** A tenant who may create campaigns, and an account for them. */
async function creator(name: string, at = service): Promise<Creator> {
  const tenant = await at.tenant(name)
  await at.allow(tenant)
  return { ...tenant, account_id: await at.account(tenant.workspace_id) }
}

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
