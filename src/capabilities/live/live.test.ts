import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { hangMs, until } from '../../../test/harness/process.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { askStream, type OpenStream, openStream } from '../../../test/harness/stream.ts'
import { openNeighbour } from '../../../test/harness/worker.ts'
import type { OpenApp } from '../../cli/open.ts'
import { sql } from '../../db/sql.ts'
import { buildServer } from '../../http/server.ts'
import { newId } from '../../lib/ids.ts'
import { ownRoutes, workspaceRoutes } from '../../lists/dashboard-routes.ts'
import { routes } from '../../lists/routes.ts'
import type { Mark } from '../../mark.ts'
import { createUser, updateUser } from '../users/users.ts'
import { streamsOf } from './live.ts'

let service: Service
let one: Tenant
let other: Tenant
beforeAll(async () => {
  service = await openService()
  one = await service.tenant('One')
  other = await service.tenant('Other')
})
afterAll(() => service.close())

const opened: OpenStream[] = []
afterAll(() => {
  for (const stream of opened) stream.close()
})

async function streamOf({ user_id }: Pick<Tenant, 'user_id'>, at: { url: string } = service) {
  const cookie = await signIn(service, user_id)
  const stream = await openStream(at, cookie)
  opened.push(stream)
  return { cookie, stream }
}

/** A mark that only this test makes: once it has arrived, so have all marks before it. */
async function settled(stream: OpenStream, workspace_id: string, app = service.app): Promise<void> {
  const chat_id = `platform:chat:${randomBytes(4).readUInt32BE()}`
  app.wake.mark({ workspace_id, kind: 'chats', chat_id })
  await stream.received({ chat_id })
}

/** Another process on the same database, with its own server. */
async function openOtherProcess(): Promise<{ app: OpenApp; url: string; close: () => Promise<void> }> {
  const app = await openNeighbour(service.database.url, { PARLEY_RATE_LIMIT: '1000000' })
  const readiness = { worker: () => 'elsewhere', journal: () => 'elsewhere', stopping: () => false }
  const server = await buildServer(app, routes, { readiness, dashboard: { workspaceRoutes, ownRoutes } })
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  return {
    app,
    url,
    close: async () => {
      await server.close()
      await app.close()
    },
  }
}

describe('GET /stream', () => {
  test('401 without a session, and with a key', async () => {
    expect((await askStream(service, {})).statusCode).toBe(401)
    const headers = { authorization: `Bearer ${one.key}` }
    expect((await askStream(service, { headers })).statusCode).toBe(401)
  })

  test('403 for pages of other sites', async () => {
    const cookie = await signIn(service, one.user_id)
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
    ]) {
      expect((await askStream(service, { cookie, headers })).statusCode).toBe(403)
    }
    const own = await openStream(service, cookie, { 'sec-fetch-site': 'same-origin', origin: service.url })
    own.close()
  })

  test('200 with the headers of a stream that no proxy buffers', async () => {
    const { stream } = await streamOf(one)
    expect(stream.response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
  })

  test('200 says where a request changed something, and not what', async () => {
    const account_id = await service.account(one.workspace_id)
    const chat_id = await service.chat({
      account_id,
      workspace_id: one.workspace_id,
      texts: ['a secret text'],
    })
    const { stream } = await streamOf(one)
    const body = { account_id, chat_id, stage_key: 'nothing' }
    expect((await service.post('/pipeline/move', { key: one.key, body })).status).toBe(400)
    const moved = { ...body, stage_key: 'new' }
    expect((await service.post('/pipeline/move', { key: one.key, body: moved })).status).toBe(200)
    await settled(stream, one.workspace_id)
    const marks = stream.marks.filter(({ kind }) => kind === 'pipeline')
    expect(marks).toEqual([{ kind: 'pipeline', workspace_id: one.workspace_id, account_id, chat_id }])
  })

  test('200 delivers each of 10,000 marks of two workspaces to its members and to no other user', async () => {
    const { stream: ours } = await streamOf(one)
    const { stream: theirs } = await streamOf(other)
    const chatsOf = ({ marks }: OpenStream) =>
      new Set(marks.filter(({ kind }) => kind === 'messages').map(({ chat_id }) => chat_id))
    for (let round = 0; round < 50; round++) {
      const marks = Array.from({ length: 200 }, (_, n): Mark => {
        const workspace_id = n % 2 === 0 ? one.workspace_id : other.workspace_id
        return { workspace_id, kind: 'messages', chat_id: `platform:chat:${round * 200 + n}` }
      })
      service.app.wake.mark(...marks)
      await until('both have theirs', hangMs, () => chatsOf(ours).size === 100 * (round + 1))
      await until('both have theirs', hangMs, () => chatsOf(theirs).size === 100 * (round + 1))
    }
    expect(ours.marks.filter(({ workspace_id }) => workspace_id === other.workspace_id)).toEqual([])
    expect(theirs.marks.filter(({ workspace_id }) => workspace_id === one.workspace_id)).toEqual([])
    expect(ours.marks.length + theirs.marks.length).toBe(10_000)
  })

  test('200 delivers private marks to their user, and those of the instance to operators', async () => {
    const { stream: owner } = await streamOf(one)
    const { stream: stranger } = await streamOf(other)
    const operator = await service.tenant('Operator')
    await service.app.db.run(sql`update users set operator = true where id = ${operator.user_id}`)
    const { stream: instance } = await streamOf(operator)
    service.app.wake.mark(
      { workspace_id: null, kind: 'approvals', user_id: one.user_id },
      { workspace_id: null, kind: 'workspace' },
      { workspace_id: null, kind: 'gates' },
    )
    await Promise.all([owner, stranger, instance].map((stream) => stream.received({ kind: 'gates' })))
    const kinds = [owner, stranger, instance].map(({ marks }) => marks.map(({ kind }) => kind))
    expect(kinds).toEqual([['approvals', 'gates'], ['gates'], ['workspace', 'gates']])
  })

  test('200 delivers marks of another process, once', async () => {
    const neighbour = await openOtherProcess()
    try {
      const { stream: here } = await streamOf(one)
      const { stream: there } = await streamOf(one, neighbour)
      await until('the processes listen', hangMs, async () => {
        service.app.wake.mark({ workspace_id: one.workspace_id, kind: 'keys' })
        await settled(here, one.workspace_id)
        return there.marks.some(({ kind }) => kind === 'keys')
      })
      const mark = { workspace_id: one.workspace_id, kind: 'notes', chat_id: 'platform:chat:7' } as const
      service.app.wake.mark(mark)
      await Promise.all([here.received(mark), there.received(mark)])
      await settled(there, one.workspace_id)
      await settled(here, one.workspace_id, neighbour.app)
      for (const { marks } of [here, there])
        expect(marks.filter(({ kind }) => kind === 'notes')).toEqual([mark])
    } finally {
      await neighbour.close()
    }
  })

  test('200 ends at sign-out, in every process, and another session continues', async () => {
    const neighbour = await openOtherProcess()
    try {
      const { stream: here, cookie } = await streamOf(one)
      const there = await openStream(neighbour, cookie)
      const { stream: another } = await streamOf(one)
      await until('the processes listen', hangMs, async () => {
        service.app.wake.mark({ workspace_id: one.workspace_id, kind: 'keys' })
        await settled(here, one.workspace_id)
        return there.marks.some(({ kind }) => kind === 'keys')
      })
      expect((await askDashboard(service, 'POST', '/sign-out', { cookie })).status).toBe(200)
      await Promise.all([here.hasEnded(), there.hasEnded()])
      await settled(another, one.workspace_id)
      expect(another.ended).toBe(false)
    } finally {
      await neighbour.close()
    }
  })

  test('200 carries a comment, and ends when its session has ended meanwhile', async () => {
    const { stream } = await streamOf(one)
    await streamsOf(service.app).look()
    await until('the comment arrives', hangMs, () => stream.others.includes(':'))
    expect(stream.ended).toBe(false)
    await service.app.db.run(sql`update sessions set revoked_at = now() where user_id = ${one.user_id}`)
    await streamsOf(service.app).look()
    await stream.hasEnded()
  })

  test('200 delivers no more marks of a workspace that the user has left', async () => {
    const { stream: owner } = await streamOf(one)
    const { id: user_id } = await service.app.db.one<{ id: string }>(sql`
      with made as (insert into users (id, email, name) values (${newId()}, ${`${newId()}@x.example`}, '') returning id)
      select id from made`)
    await service.app.db.run(sql`
      insert into memberships (workspace_id, user_id, role)
      select id, ${user_id}, 'member' from workspaces where id = any(${[one.workspace_id, other.workspace_id]}::uuid[])`)
    const { stream } = await streamOf({ user_id })
    await settled(stream, one.workspace_id)
    await service.app.db.run(sql`
      update memberships set ended_at = now() where user_id = ${user_id} and workspace_id = ${one.workspace_id}`)
    await streamsOf(service.app).look()
    service.app.wake.mark({ workspace_id: one.workspace_id, kind: 'notes' })
    await owner.received({ kind: 'notes' })
    await settled(stream, other.workspace_id)
    expect(stream.marks.filter(({ kind }) => kind === 'notes')).toEqual([])
  })

  test('200 does not count as use of the session', async () => {
    const cookie = await signIn(service, one.user_id)
    const ofSession = sql`token_hash = sha256(convert_to(${cookie.slice('sid='.length)}, 'utf8'))`
    await service.app.db.run(
      sql`update sessions set last_seen_at = domain_now() - interval '90 minutes' where ${ofSession}`,
    )
    const read = () =>
      service.app.db.one<{ last_seen_at: Date }>(sql`select last_seen_at from sessions where ${ofSession}`)
    const before = await read()
    const stream = await openStream(service, cookie)
    await streamsOf(service.app).look()
    stream.close()
    expect(await read()).toEqual(before)
    expect((await askDashboard(service, 'GET', '/session', { cookie })).status).toBe(200)
    expect(await read()).not.toEqual(before)
  })

  test("200 replaces the session's oldest stream beyond five", async () => {
    const { stream: oldest, cookie } = await streamOf(one)
    const newer: OpenStream[] = []
    for (let n = 0; n < 5; n++) newer.push(await openStream(service, cookie))
    await oldest.hasEnded()
    expect(oldest.others.at(-1)).toBe('event: replaced\ndata: {}')
    expect(newer.map(({ ended }) => ended)).toEqual([false, false, false, false, false])
    for (const stream of newer) stream.close()
  })

  test("200 replaces the user's oldest stream beyond fifty, of whatever session", async () => {
    const busy = await service.tenant('Many streams')
    const streams: OpenStream[] = []
    for (let session = 0; session < 10; session++) {
      const cookie = await signIn(service, busy.user_id)
      for (let n = 0; n < 5; n++) streams.push(await openStream(service, cookie))
    }
    const [oldest] = streams
    expect(oldest?.ended).toBe(false)
    const { stream: newest } = await streamOf(busy)
    await oldest?.hasEnded()
    expect(oldest?.others.at(-1)).toBe('event: replaced\ndata: {}')
    expect(streamsOf(service.app).countOf(busy.user_id)).toBe(50)
    expect(newest.ended).toBe(false)
    for (const stream of streams) stream.close()
  })

  test('200 says that everything changed when a batch of several workspaces is long', async () => {
    const { tenant, ids } = await tenantOfMany(6)
    const { stream } = await streamOf(tenant)
    service.app.wake.mark(...ids.flatMap(manyMarks))
    expect(await stream.received({ kind: 'everything' })).toEqual({ workspace_id: null, kind: 'everything' })
    expect(stream.marks.length).toBe(1)
  })

  test('200 is cut off when the client does not read', { timeout: 240_000 }, async () => {
    const { tenant, ids } = await tenantOfMany(2)
    const { stream: reads } = await streamOf(tenant)
    const { stream: stuck } = await streamOf(tenant)
    stuck.response.pause()
    await until('it is cut off', hangMs, async () => {
      service.app.wake.mark(...ids.flatMap(manyMarks))
      await settled(reads, tenant.workspace_id)
      return streamsOf(service.app).countOf(tenant.user_id) === 1
    })
    expect(reads.ended).toBe(false)
  })
})

/** A user with this many more workspaces. */
async function tenantOfMany(count: number): Promise<{ tenant: Tenant; ids: string[] }> {
  const tenant = await service.tenant('Busy')
  const more = await Promise.all(Array.from({ length: count }, (_, n) => service.tenant(`Busy ${n}`)))
  const ids = more.map(({ workspace_id }) => workspace_id)
  await service.app.db.run(sql`
    insert into memberships (workspace_id, user_id, role)
    select id, ${tenant.user_id}, 'member' from workspaces where id = any(${ids}::uuid[])`)
  return { tenant, ids }
}

/** As many as a workspace may have in a batch. */
function manyMarks(workspace_id: string): Mark[] {
  return Array.from({ length: 100 }, (_, n) => {
    return { workspace_id, kind: 'chats', chat_id: `platform:chat:1000000000${n}` }
  })
}

describe('POST /chats/{chat_id}/presence', () => {
  async function chatOf(tenant: Tenant): Promise<{ account_id: string; chat_id: string }> {
    const account_id = await service.account(tenant.workspace_id)
    const chat_id = await service.chat({ account_id, workspace_id: tenant.workspace_id })
    return { account_id, chat_id }
  }

  async function colleagueOf({ workspace_id }: Tenant, name: string): Promise<string> {
    const email = `${newId()}@own.example`
    const { id } = await createUser(service.app, 'system', { email, workspace_id, role: 'member' })
    await updateUser(service.app, 'system', { id, name })
    return signIn(service, id)
  }

  const visit = (
    cookie: string,
    tenant: Tenant,
    { account_id, chat_id, state }: { account_id: string; chat_id: string; state: string },
    at: { url: string } = service,
  ) =>
    askDashboard(at, 'POST', `/w/${tenant.workspace_id}/chats/${chat_id}/presence`, {
      cookie,
      body: { account_id, state },
    })

  test('200 names who else is there, and marks it, in this process and in another', async () => {
    const chat = await chatOf(one)
    const ana = await colleagueOf(one, 'Ana')
    const bo = await colleagueOf(one, 'Bo')
    const neighbour = await openOtherProcess()
    try {
      const { stream } = await streamOf(one, neighbour)
      expect((await visit(ana, one, { ...chat, state: 'typing' })).body).toEqual({ others: [] })
      expect((await visit(bo, one, { ...chat, state: 'open' })).body).toMatchObject({
        others: [{ name: 'Ana', state: 'typing' }],
      })
      await until('the other process knows', hangMs, async () => {
        await visit(ana, one, { ...chat, state: 'typing' })
        const { body } = await visit(bo, one, { ...chat, state: 'open' }, neighbour)
        return (body.others as unknown[]).length === 1
      })
      const mark = await stream.received({ kind: 'presence', state: 'typing' })
      expect(mark).toMatchObject({ workspace_id: one.workspace_id, ...chat, state: 'typing' })
      expect(JSON.stringify(stream.marks)).not.toContain('Ana')
      await visit(ana, one, { ...chat, state: 'gone' })
      expect((await visit(bo, one, { ...chat, state: 'open' })).body).toEqual({ others: [] })
    } finally {
      await neighbour.close()
    }
  })

  test('200 forgets a user after 30 s without a request', async () => {
    const chat = await chatOf(one)
    const ana = await colleagueOf(one, 'Ana')
    const bo = await colleagueOf(one, 'Bo')
    const { stream } = await streamOf(one)
    await visit(ana, one, { ...chat, state: 'open' })
    await stream.received({ kind: 'presence', ...chat })
    const now = service.app.sources.now
    try {
      Object.assign(service.app.sources, { now: () => now() + 31_000 })
      expect((await visit(bo, one, { ...chat, state: 'open' })).body).toEqual({ others: [] })
    } finally {
      Object.assign(service.app.sources, { now })
    }
  })

  test("404 for another workspace's account, and for a chat that is not there", async () => {
    const chat = await chatOf(other)
    const ana = await colleagueOf(one, 'Ana')
    expect(await visit(ana, one, { ...chat, state: 'open' })).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
    })
    const own = { ...(await chatOf(one)), chat_id: 'platform:chat:999' }
    expect(await visit(ana, one, { ...own, state: 'open' })).toMatchObject({
      status: 404,
      body: { code: 'chat_not_found' },
    })
    expect((await visit(ana, other, { ...chat, state: 'open' })).status).toBe(404)
  })

  test('400 for another state', async () => {
    const ana = await colleagueOf(one, 'Ana')
    expect((await visit(ana, one, { ...(await chatOf(one)), state: 'asleep' })).status).toBe(400)
  })
})
