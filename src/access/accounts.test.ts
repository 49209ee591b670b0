/** Which accounts a request sees at each door, for every route that is about accounts. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../test/harness/person.ts'
import { type Answer, openService, type Service, type Tenant } from '../../test/harness/service.ts'
import { type Status, statuses } from '../capabilities/accounts/accounts.ts'
import { sql } from '../db/sql.ts'
import { routes } from '../lists/routes.ts'
import type { Route } from '../route.ts'

const aboutAccounts = routes.filter(({ account }) => account !== undefined)
const reads = aboutAccounts.filter(({ effect }) => effect === 'read')
const writes = aboutAccounts.filter(({ effect }) => effect !== 'read')
const others = statuses.filter((status) => status !== 'READY')
const named = (list: readonly Route[]) => list.map((route) => [route.name, route] as const)

let service: Service
let own: Tenant
let other: Tenant
let cookie: string
const accounts = {} as Record<Status, string>
let foreign: string

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  other = await service.tenant('Other')
  cookie = await signIn(service, own.user_id)
  foreign = await accountWithChat(other, 'READY', '90')
  // Each account has a chat that no other has, so that a chat alone says which account is meant.
  for (const [at, status] of statuses.entries())
    accounts[status] = await accountWithChat(own, status, `${at + 1}`)
})
afterAll(() => service.close())
beforeEach(() => service.shut('extended'))

async function accountWithChat({ workspace_id }: Tenant, status: Status, id: `${number}`): Promise<string> {
  const account_id = await service.account(workspace_id, status)
  const { app } = service
  await service.chat({ account_id, workspace_id, id, texts: ['blue lamp', 'red lamp'] })
  const file = { index: 0, kind: 'file', file_name: 'a.txt', media_type: 'text/plain', size: 1 }
  await app.db.run(sql`
    update messages set attachments = ${JSON.stringify([file])}::jsonb where account_id = ${account_id}`)
  await app.db.run(sql`
    update chats set placed_at = domain_now() where account_id = ${account_id}`)
  return account_id
}

const chatOf = (status: Status) => `platform:chat:${statuses.indexOf(status) + 1}`

interface Wanted {
  readonly account_id?: string | undefined
  readonly chat_id: string
}

let serial = 0

/** The route's example, about this account and chat. */
function requestOf(route: Route, { account_id, chat_id }: Wanted) {
  const about = (given: object) => ({ ...given, account_id, ...('chat_id' in given && { chat_id }) })
  const params: Record<string, string> = { ...route.example.params, chat_id, message_id: '1' }
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? 'x'),
  )
  const isGet = route.method === 'GET'
  const { account_id: _, ...filters } = route.example.query ?? {}
  const query = { ...filters, ...(account_id !== undefined && route.account !== 'all' && { account_id }) }
  const sent = isGet ? undefined : about((route.example.body ?? {}) as object)
  // `undefined` must not become a property.
  const body = sent && JSON.parse(JSON.stringify(sent))
  return {
    path: isGet ? `${path}?${new URLSearchParams(query)}` : path,
    body,
    headers: { 'idempotency-key': `accounts-${serial++}` },
  }
}

function askPage(route: Route, wanted: Wanted): Promise<Answer> {
  const { path, ...rest } = requestOf(route, wanted)
  return askDashboard(service, route.method, `/w/${own.workspace_id}${path}`, { cookie, ...rest })
}

function askApi(route: Route, wanted: Wanted): Promise<Answer> {
  const { path, ...rest } = requestOf(route, wanted)
  return service.call(route.method, path, { key: own.key, ...rest })
}

/** Past the check of the account. A file of an account without a session cannot be fetched. */
const isSeen = ({ status, body }: Answer) => status === 200 || body.code === 'session_unavailable'

test('there are reads and writes about accounts, and accounts of every status', () => {
  expect(reads.map(({ name }) => name)).toEqual(expect.arrayContaining(['list_chats', 'search_messages']))
  expect(writes.map(({ name }) => name)).toEqual(expect.arrayContaining(['send_message', 'move_chat']))
  expect(others.length).toBeGreaterThan(2)
})

describe('a read', () => {
  test.each(named(reads))('%s at the dashboard sees an account of any status', async (_, route) => {
    for (const status of statuses) {
      const answer = await askPage(route, { account_id: accounts[status], chat_id: chatOf(status) })
      expect([status, answer.body, isSeen(answer)]).toEqual([status, answer.body, true])
    }
  })

  test.each(named(reads))(
    '%s at the dashboard needs no account_id, with `extended` closed or open',
    async (_, route) => {
      const ask = () => askPage(route, { chat_id: chatOf('NEEDS_LOGIN') })
      const closed = await ask()
      expect([closed.body, isSeen(closed)]).toEqual([closed.body, true])
      await service.open('extended')
      expect((await ask()).body).toEqual(closed.body)
    },
  )

  test.each(named(reads))("%s at the dashboard sees no other workspace's account", async (_, route) => {
    const answer = await askPage(route, { account_id: foreign, chat_id: 'platform:chat:90' })
    if (route.account === 'all') expect(JSON.stringify(answer.body)).not.toContain(foreign)
    else expect(answer).toMatchObject({ status: 403, body: { code: 'account_unavailable' } })
    const unnamed = await askPage(route, { chat_id: 'platform:chat:90' })
    expect(JSON.stringify(unnamed.body)).not.toContain(foreign)
  })

  test.each(named(reads.filter(({ account }) => account !== 'all')))(
    '%s at the API answers 403 for an account that is not READY, and 400 without one',
    async (_, route) => {
      for (const status of others) {
        const answer = await askApi(route, { account_id: accounts[status], chat_id: chatOf(status) })
        expect(answer).toMatchObject({ status: 403, body: { code: 'account_unavailable' } })
      }
      const unnamed = await askApi(route, { chat_id: chatOf('NEEDS_LOGIN') })
      if (route.account === 'extended') expect(unnamed.body.code).toBe('account_scope_required')
      else expect(JSON.stringify(unnamed.body)).not.toContain(accounts.NEEDS_LOGIN)
      await service.open('extended')
      const merged = await askApi(route, { chat_id: chatOf('NEEDS_LOGIN') })
      for (const status of others) expect(JSON.stringify(merged.body)).not.toContain(accounts[status])
    },
  )

  test('list_chats merges the chats of all accounts at the dashboard, page by page, and of READY ones at the API', async () => {
    const ids = (list: readonly Status[]) => list.map((status) => accounts[status]).sort()
    const seen: string[] = []
    for (let cursor: unknown = ''; cursor !== null; ) {
      const path = `/w/${own.workspace_id}/chats?limit=2${cursor && `&cursor=${cursor}`}`
      const { body } = await askDashboard(service, 'GET', path, { cookie })
      seen.push(...(body.chats as { account_id: string }[]).map(({ account_id }) => account_id))
      cursor = body.next_cursor
    }
    expect(seen.sort()).toEqual(ids(statuses))
    await service.open('extended')
    const { body } = await service.get('/chats', { key: own.key })
    expect((body.chats as { account_id: string }[]).map(({ account_id }) => account_id)).toEqual(
      ids(['READY']),
    )
  })

  test('get_me lists every account with its status at the dashboard, and READY ones at the API', async () => {
    const list = ({ body }: Answer) =>
      (body.accounts as { status: string }[]).map(({ status }) => status).sort()
    const path = `/w/${own.workspace_id}/me`
    expect(list(await askDashboard(service, 'GET', path, { cookie }))).toEqual([...statuses].sort())
    expect(list(await service.get('/me', { key: own.key }))).toEqual(['READY'])
  })

  test('an account shows its chats and messages while it is disabled, and after', async () => {
    const set = async (status: Status) => {
      await service.app.db.run(sql`update accounts set status = ${status} where id = ${accounts.READY}`)
      await service.settle()
    }
    const path = `/w/${own.workspace_id}/chats/${encodeURIComponent(chatOf('READY'))}/messages`
    const read = async () => (await askDashboard(service, 'GET', path, { cookie })).body.messages
    const before = await read()
    expect(before).toMatchObject([{ text: 'red lamp' }])
    await set('DISABLED')
    expect(await read()).toEqual(before)
    await set('READY')
    expect(await read()).toEqual(before)
  })
})

describe('a write', () => {
  const doors = [
    ['the dashboard', askPage],
    ['the API', askApi],
  ] as const

  test.each(named(writes))('%s needs a READY account at both doors', async (_, route) => {
    for (const [door, ask] of doors) {
      for (const status of others) {
        const { status: code, body } = await ask(route, {
          account_id: accounts[status],
          chat_id: chatOf(status),
        })
        expect([door, status, code, body.code]).toEqual([door, status, 403, 'account_unavailable'])
      }
    }
  })

  test.each(named(writes))('%s needs its account_id at both doors', async (_, route) => {
    for (const [door, ask] of doors) {
      const { status, body } = await ask(route, { chat_id: chatOf('READY') })
      const code = route.account === 'extended' ? 'account_scope_required' : 'invalid_request'
      expect([door, status, body.code]).toEqual([door, 400, code])
    }
  })
})
