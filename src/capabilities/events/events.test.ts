import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { hangMs, until } from '../../../test/harness/process.ts'
import { type Answer, openService, type Tenant } from '../../../test/harness/service.ts'
import { openNeighbour, openWorkplace, type Workplace } from '../../../test/harness/worker.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { emit, emitted } from '../../events/emit.ts'
import { forgetOldEvents, sequence } from '../../events/sequencer.ts'
import { buildServer } from '../../http/server.ts'
import { loops } from '../../lists/loops.ts'
import { routes } from '../../lists/routes.ts'
import type { MakeLoops } from '../../loop.ts'

let place: Workplace
let tenant: Tenant
beforeAll(async () => {
  place = await openWorkplace({ env: { PARLEY_CLOCK: 'manual' } })
  tenant = await place.service.tenant()
})
afterAll(() => place.close())

async function emitMany(workspace_id: string, count: number): Promise<void> {
  const { db } = place.service.app
  await db.transaction((tx) =>
    emit(
      tx,
      workspace_id,
      Array.from({ length: count }, (_, n) => ({
        type: 'message.received',
        occurred_at: '2026-11-02T09:00:00.000Z',
        data: { n },
      })),
    ),
  )
}

function list(query: string, { key } = tenant): Promise<Answer> {
  return place.service.get(`/events${query}`, { key })
}

function sequences({ body }: Answer): number[] {
  return (body.events as { sequence: number }[]).map((event) => event.sequence)
}

describe('GET /events', () => {
  test('200 is empty at first', async () => {
    const { status, body } = await list('')
    expect({ status, body }).toEqual({
      status: 200,
      body: { events: [], next_cursor: null, has_more: false },
    })
  })

  test('200 returns every event once, in order', async () => {
    const { workspace_id, key } = await place.service.tenant()
    await emitMany(workspace_id, 25)
    await sequence(place.db)
    const seen: number[] = []
    let after = '0'
    for (let pages = 1; ; pages++) {
      const page = await list(`?after=${after}&limit=10`, { ...tenant, key })
      expect(page.status).toBe(200)
      seen.push(...sequences(page))
      const { next_cursor, has_more } = page.body
      expect(has_more).toBe(pages < 3)
      expect(next_cursor).toBe(has_more ? String(pages * 10) : null)
      if (typeof next_cursor !== 'string') break
      after = next_cursor
    }
    expect(seen).toEqual(Array.from({ length: 25 }, (_, n) => n + 1))
    expect((await list('?after=25', { ...tenant, key })).body).toMatchObject({ events: [], has_more: false })
    const exact = await list('?after=15&limit=10', { ...tenant, key })
    expect(exact.body).toMatchObject({ has_more: false, next_cursor: null })
  })

  test('200 shows an event as webhooks carry it', async () => {
    const { workspace_id, key } = await place.service.tenant()
    await emitMany(workspace_id, 1)
    await sequence(place.db)
    const { body } = await list('', { ...tenant, key })
    expect(body.events).toEqual([
      {
        id: expect.stringMatching(/^evt_[0-9a-f]{32}$/),
        type: 'message.received',
        api_version: '1.0.0',
        workspace_id,
        sequence: 1,
        occurred_at: '2026-11-02T09:00:00.000Z',
        created_at: expect.stringMatching(/Z$/),
        data: { n: 0 },
      },
    ])
  })

  test('200 shows nothing to another workspace, and numbers each workspace separately', async () => {
    const [one, other] = [await place.service.tenant(), await place.service.tenant()]
    await emitMany(one.workspace_id, 3)
    await emitMany(other.workspace_id, 1)
    await sequence(place.db)
    expect(sequences(await list('', one))).toEqual([1, 2, 3])
    expect(sequences(await list('', other))).toEqual([1])
  })

  test.each([
    'after=-1',
    'after=x',
    'after=1.5',
    'after=01',
    'after=',
    'after=9999999999999999',
    'after=1&after=2',
    'limit=0',
    'limit=1001',
    'limit=1e2',
    'limit=10&limit=10',
  ])('400 for %s', async (query) => {
    expect(await list(`?${query}`)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', error: expect.stringMatching(/\w+.*\.$/) },
    })
  })

  test('403 without the scope', async () => {
    const { key } = await place.service.key({ ...tenant, scopes: ['write', 'send', 'campaigns'] })
    expect(await list('', { ...tenant, key })).toMatchObject({ status: 403, body: { code: 'missing_scope' } })
  })

  test('200 deletes events after 30 days, and continues the numbers', async () => {
    const { workspace_id, key } = await place.service.tenant()
    const own = { ...tenant, key }
    await emitMany(workspace_id, 2)
    await sequence(place.db)
    const move = (days: string) => place.db.run(sql`update manual_clock set at = at + ${days}::interval`)
    await move('29 days 23 hours')
    expect(sequences(await list('', own))).toEqual([1, 2])
    await move('2 hours')
    expect(sequences(await list('', own))).toEqual([])
    await forgetOldEvents(place.db)
    const { left } = await place.db.one<{ left: number }>(
      sql`select count(*)::int as left from events where workspace_id = ${workspace_id}`,
    )
    expect(left).toBe(0)
    await emitMany(workspace_id, 1)
    await sequence(place.db)
    expect(sequences(await list('', own))).toEqual([3])
  })
})

describe('GET /events?wait=', () => {
  test('200 immediately when there are events, and at the end of the wait when there are none', async () => {
    const own = await place.service.tenant()
    const begun = performance.now()
    expect(sequences(await list('?wait=1', own))).toEqual([])
    expect(performance.now() - begun).toBeGreaterThan(900)
    await emitMany(own.workspace_id, 1)
    await sequence(place.db)
    expect(sequences(await list('?wait=25', own))).toEqual([1])
  })

  test('200 as soon as its own workspace has an event; many callers wait without a connection each', async () => {
    const neighbour = await openNeighbour(place.service.database.url, { PARLEY_CLOCK: 'manual' })
    const worker = await place.work(neighbour)
    const [own, other] = [await place.service.tenant(), await place.service.tenant()]
    const keys = await Promise.all(Array.from({ length: 6 }, () => place.service.key(own)))
    // As many as one workspace may have.
    const waiting = Array.from({ length: 18 }, (_, at) => list('?wait=25', { ...own, ...keys[at % 6] }))
    const elsewhere = list('?wait=3', other)
    let answered = 0
    for (const each of waiting) void each.then(() => answered++)
    // With a connection each the pool of 10 would be exhausted, and this would not be answered.
    for (let n = 0; n < 5; n++) expect((await list('')).status).toBe(200)
    expect(answered).toBe(0)
    await emitMany(own.workspace_id, 2)
    place.service.app.wake.signal(emitted)
    for (const answer of await Promise.all(waiting)) expect(sequences(answer)[0]).toBe(1)
    expect(sequences(await elsewhere)).toEqual([])
    await worker.stop()
    await neighbour.close()
  })

  /** The workspace's requests that wait at this moment. */
  const waitsOf = async (workspace_id: string) =>
    (await place.db.rows(sql`select 1 from event_waits where workspace_id = ${workspace_id}`)).length
  const tooMany = (whose: string) => ({
    status: 429,
    body: { code: 'rate_limited', error: expect.stringContaining(whose) },
  })

  test('429 for a fourth waiting request of one key, on any process; requests without wait are answered', async () => {
    const app = await openNeighbour(place.service.database.url, { PARLEY_CLOCK: 'manual' })
    const readiness = { worker: () => '', journal: () => '', stopping: () => false }
    const neighbour = await buildServer(app, routes, { readiness })
    const url = await neighbour.listen({ host: '127.0.0.1', port: 0 })
    const own = await place.service.tenant()
    const askNeighbour = async (query: string) => {
      const headers = { authorization: `Bearer ${own.key}` }
      const response = await fetch(`${url}/api/v1/events${query}`, { headers })
      return {
        status: response.status,
        headers: response.headers,
        body: (await response.json()) as Answer['body'],
      }
    }
    const waiting = [list('?wait=25', own), list('?wait=25', own), askNeighbour('?wait=25')]
    await until('three wait', hangMs, async () => (await waitsOf(own.workspace_id)) === 3)
    for (const ask of [askNeighbour, (query: string) => list(query, own)]) {
      const refused = await ask('?wait=1')
      expect(refused).toMatchObject(tooMany('this key'))
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      expect((await ask('')).status).toBe(200)
    }
    const { key } = await place.service.key(own)
    expect((await list('?wait=1', { ...own, key })).status).toBe(200)
    await emitMany(own.workspace_id, 1)
    await sequence(place.db)
    // With an event at hand no request waits.
    expect(sequences(await list('?wait=25', own))).toEqual([1])
    for (const answer of await Promise.all(waiting)) expect(sequences(answer)).toEqual([1])
    expect(await waitsOf(own.workspace_id)).toBe(0)
    await neighbour.close()
    await app.close()
  })

  test('429 for a fourth waiting request in one dashboard session', async () => {
    const { workspace_id, user_id } = await place.service.tenant()
    const cookie = await signIn(place.service, user_id)
    const ask = () => askDashboard(place.service, 'GET', `/w/${workspace_id}/events?wait=25`, { cookie })
    const waiting = [ask(), ask(), ask()]
    await until('three wait', hangMs, async () => (await waitsOf(workspace_id)) === 3)
    expect(await ask()).toMatchObject(tooMany('this session'))
    await emitMany(workspace_id, 1)
    await sequence(place.db)
    for (const answer of await Promise.all(waiting)) expect(sequences(answer)).toEqual([1])
  })

  test("429 for a workspace's 21st waiting request, whatever the keys; another workspace may still wait", async () => {
    const own = await place.service.tenant()
    const keys = await Promise.all(Array.from({ length: 8 }, () => place.service.key(own)))
    const waiting = Array.from({ length: 24 }, (_, at) => list('?wait=25', { ...own, ...keys[at % 8] }))
    await until('twenty wait', hangMs, async () => (await waitsOf(own.workspace_id)) === 20)
    expect((await list('?wait=1', await place.service.tenant())).status).toBe(200)
    expect(await list('?wait=1', own)).toMatchObject(tooMany('this workspace'))
    await emitMany(own.workspace_id, 1)
    await sequence(place.db)
    const statuses = (await Promise.all(waiting)).map(({ status }) => status)
    expect(statuses.sort()).toEqual([...Array(20).fill(200), ...Array(4).fill(429)])
  })

  test("200 after a waiting caller has left, and after a dead process's waiting requests have expired", async () => {
    const own = await place.service.tenant()
    const leaving = new AbortController()
    const left = Array.from({ length: 3 }, () =>
      fetch(`${place.service.url}/api/v1/events?wait=25`, {
        headers: { authorization: `Bearer ${own.key}` },
        signal: leaving.signal,
      }).catch(() => 'left'),
    )
    await until('three wait', hangMs, async () => (await waitsOf(own.workspace_id)) === 3)
    const begun = performance.now()
    leaving.abort()
    expect(await Promise.all(left)).toEqual(['left', 'left', 'left'])
    await until('they have given their places back', hangMs, async () => !(await waitsOf(own.workspace_id)))
    // At the end of their wait they would be released in any case.
    expect(performance.now() - begun).toBeLessThan(20_000)
    await place.db.run(sql`
      insert into event_waits (id, workspace_id, caller, expires_at)
      select gen_random_uuid(), ${own.workspace_id}, ${`key:${own.key_id}`}, clock_timestamp() + interval '1 hour'
      from generate_series(1, 3)`)
    expect((await list('?wait=1', own)).status).toBe(429)
    await place.db.run(sql`update event_waits set expires_at = clock_timestamp()`)
    expect((await list('?wait=1', own)).status).toBe(200)
  })

  test.each([
    [
      '401 when its key is revoked',
      401,
      'invalid_key',
      (own) => sql`
      update keys set revoked_at = domain_now() where id = ${own.key_id}`,
    ],
    [
      '401 when its key expires',
      401,
      'invalid_key',
      (own) => sql`
      update keys set expires_at = domain_now() where id = ${own.key_id}`,
    ],
    [
      "401 when its key's user leaves the workspace",
      401,
      'invalid_key',
      (own) => sql`
      update memberships set ended_at = domain_now() where user_id = ${own.user_id}`,
    ],
    [
      "401 when its key's user is disabled",
      401,
      'invalid_key',
      (own) => sql`
      update users set disabled_at = domain_now() where id = ${own.user_id}`,
    ],
    [
      '403 when its workspace is disabled',
      403,
      'workspace_disabled',
      (own) => sql`
      update workspaces set disabled_at = domain_now() where id = ${own.workspace_id}`,
    ],
  ] as readonly [string, number, string, (own: Tenant) => Sql][])(
    '%s, and not only at the end of the wait',
    async (_, status, code, end) => {
      const [own, other] = [await place.service.tenant(), await place.service.tenant()]
      const [waiting, elsewhere] = [list('?wait=25', own), list('?wait=25', other)]
      await until('both wait', hangMs, async () => {
        return (await waitsOf(own.workspace_id)) + (await waitsOf(other.workspace_id)) === 2
      })
      const begun = performance.now()
      await place.db.run(end(own))
      expect(await waiting).toMatchObject({ status, body: { code } })
      expect(performance.now() - begun).toBeLessThan(20_000)
      expect(await waitsOf(own.workspace_id)).toBe(0)
      // The wait of the other workspace goes on, until an event ends it.
      await emitMany(other.workspace_id, 1)
      await sequence(place.db)
      expect(sequences(await elsewhere)).toEqual([1])
    },
  )

  test.each([
    [
      'the session ends',
      (own) => sql`
      update sessions set revoked_at = domain_now() where user_id = ${own.user_id}`,
    ],
    [
      'the member leaves',
      (own) => sql`
      update memberships set ended_at = domain_now() where user_id = ${own.user_id}`,
    ],
  ] as readonly [string, (own: Tenant) => Sql][])(
    '401 at the dashboard when %s, and not only at the end of the wait',
    async (_, end) => {
      const own = await place.service.tenant()
      const cookie = await signIn(place.service, own.user_id)
      const path = `/w/${own.workspace_id}/events?wait=25`
      const waiting = askDashboard(place.service, 'GET', path, { cookie })
      await until('it waits', hangMs, async () => (await waitsOf(own.workspace_id)) === 1)
      const begun = performance.now()
      await place.db.run(end(own))
      expect(await waiting).toMatchObject({ status: 401, body: { code: 'not_signed_in' } })
      expect(performance.now() - begun).toBeLessThan(20_000)
    },
  )

  test('200 without a wake-up: the poll finds the event', async () => {
    const own = await place.service.tenant()
    const waiting = list('?wait=25', own)
    await until('it waits', hangMs, async () => (await waitsOf(own.workspace_id)) === 1)
    const begun = performance.now()
    await emitMany(own.workspace_id, 1)
    await sequence(place.db)
    expect(sequences(await waiting)).toEqual([1])
    // At the end of the wait it would be found in any case.
    expect(performance.now() - begun).toBeLessThan(20_000)
  })

  test.each(['wait=-1', 'wait=26', 'wait=1.5', 'wait=x', 'wait=', 'wait=01', 'wait=1&wait=1'])(
    '400 for %s',
    async (query) => {
      expect(await list(`?${query}`)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    },
  )

  test('200 ends the wait when the service stops', async () => {
    const stopping = await openService()
    const { key } = await stopping.tenant()
    const waiting = stopping.get('/events?wait=25', { key })
    await until(
      'the request is there',
      hangMs,
      async () => (await stopping.get('/me', { key })).status === 200,
    )
    const begun = performance.now()
    stopping.app.beginStop()
    expect(await waiting).toMatchObject({ status: 200, body: { events: [] } })
    expect(performance.now() - begun).toBeLessThan(20_000)
    await stopping.close()
  })
})

describe('an event from another process', () => {
  test('200: the poll finds it without a wake-up, and a wake-up without the poll', async () => {
    const { workspace_id, key } = await place.service.tenant()
    const worker = await place.work()
    const other = await openNeighbour(place.service.database.url, { PARLEY_CLOCK: 'manual' })
    await other.db.transaction((tx) =>
      emit(tx, workspace_id, [{ type: 'message.received', occurred_at: null, data: {} }]),
    )
    // No wake-up was sent: the poll finds it.
    await until('it is there', hangMs, async () => sequences(await list('', { ...tenant, key })).length === 1)
    await worker.stop()
    const onlyWoken = loops.map((make): MakeLoops => {
      return (app) => make(app).map((loop) => ({ ...loop, restMs: 3_600_000 }))
    })
    const woken = await place.work(undefined, undefined, onlyWoken)
    for (let n = 2; n < 5; n++) {
      await other.db.transaction((tx) =>
        emit(tx, workspace_id, [{ type: 'message.received', occurred_at: null, data: {} }]),
      )
      other.wake.signal(emitted)
      await until(
        'it is there',
        hangMs,
        async () => sequences(await list('', { ...tenant, key })).length === n,
      )
    }
    await woken.stop()
    await other.close()
  })
})
