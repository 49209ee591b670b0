import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { addColumn } from '../columns/columns.ts'
import { addStages } from '../pipeline/pipeline.ts'

let service: Service
let own: Tenant
let first: string
let second: string

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  first = await service.account(own.workspace_id)
  second = await service.account(own.workspace_id)
  for (let id = 1; id <= 12; id++) {
    const account_id = id % 3 === 0 ? second : first
    const texts = Array.from({ length: (id % 4) + 1 }, (_, at) => `chat ${id}, message ${at + 1}`)
    await service.chat({
      account_id,
      workspace_id: own.workspace_id,
      id: `${id}`,
      texts,
      name: `Person ${id}`,
    })
  }
})
afterAll(() => service.close())

const get = (path: string, key = own.key) => service.get(path, { key })

interface Page {
  readonly chats: readonly { id: string; account_id: string; last_message_at: string }[]
  readonly next_cursor: string | null
  readonly has_more: boolean
}

async function walk(path: string): Promise<Page['chats'][number][]> {
  const seen: Page['chats'][number][] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { status, body } = await get(`${path}${cursor && `&cursor=${cursor}`}`)
    expect(status).toBe(200)
    const page = body as unknown as Page
    expect(page.has_more).toBe(page.next_cursor !== null)
    seen.push(...page.chats)
    cursor = page.next_cursor
  }
  return seen
}

describe('GET /chats', () => {
  test('200 newest first, in the shape of both documents', async () => {
    const { status, body } = await get(`/chats?account_id=${first}&limit=1`)
    expect(status).toBe(200)
    expect(body.chats).toEqual([
      {
        account_id: first,
        id: 'platform:chat:11',
        name: 'Person 11',
        provider: 'sandbox',
        kind: 'private',
        last_message_text: 'chat 11, message 4',
        last_message_at: '2026-11-01T08:04:00.000Z',
        unread_count: 0,
      },
    ])
  })

  test.each([1, 2, 5, 100])('200 returns every chat of an account once, %i at a time', async (limit) => {
    const seen = await walk(`/chats?account_id=${first}&limit=${limit}`)
    expect(seen.map(({ id }) => id).sort()).toEqual(
      [1, 2, 4, 5, 7, 8, 10, 11].map((id) => `platform:chat:${id}`).sort(),
    )
    const times = seen.map(({ last_message_at }) => last_message_at)
    expect(times).toEqual([...times].sort().reverse())
  })

  test('200 without account_id merges the accounts, and only when extended', async () => {
    expect((await get('/chats')).body.code).toBe('account_scope_required')
    await service.open('extended')
    const seen = await walk('/chats?limit=5')
    expect(new Set(seen.map(({ id, account_id }) => `${account_id}/${id}`)).size).toBe(12)
    expect(seen).toHaveLength(12)
    await service.shut('extended')
  })

  test('200: a chat without messages is last and has no time', async () => {
    await service.chat({ account_id: second, workspace_id: own.workspace_id, id: '99', texts: [] })
    const seen = await walk(`/chats?account_id=${second}&limit=2`)
    expect(seen.at(-1)).toMatchObject({
      id: 'platform:chat:99',
      last_message_at: null,
      last_message_text: null,
    })
    await service.app.db.run(sql`delete from chats where chat_id = 99`)
  })

  test('200 by stage, and 503 while the pipeline is closed', async () => {
    await service.app.db.transaction((tx) => addStages(tx, own.workspace_id, [{ key: 'won', label: 'Won' }]))
    await service.app.db.run(sql`update chats set stage_key = 'won' where chat_id in (1, 5, 7)`)
    const won = await walk(`/chats?account_id=${first}&stage_key=won&limit=2`)
    expect(won.map(({ id }) => id).sort()).toEqual(['platform:chat:1', 'platform:chat:5', 'platform:chat:7'])
    expect(await walk(`/chats?account_id=${first}&stage_key=new&limit=2`)).toHaveLength(5)
    expect(await get(`/chats?account_id=${first}&stage_key=nope`)).toMatchObject({
      status: 400,
      body: { code: 'invalid_stage' },
    })
    await service.shut('pipeline')
    expect(await get(`/chats?account_id=${first}&stage_key=won`)).toMatchObject({
      status: 503,
      body: { code: 'feature_disabled' },
    })
    expect((await get(`/chats?account_id=${first}`)).status).toBe(200)
    await service.open('pipeline')
  })

  test('200 by column value, and 503 while the CRM is closed', async () => {
    const options = [{ value: 'a' }, { value: 'b' }]
    const column = { name: 'Tags', type: 'multi_select', options } as const
    const column_id = await service.app.db.transaction((tx) => addColumn(tx, own.workspace_id, column))
    for (const chat of [2, 4, 8]) {
      await service.app.db.run(sql`
        insert into column_values (account_id, chat_id, column_id, workspace_id, value)
        values (${first}, ${chat}, ${column_id}, ${own.workspace_id}, ${chat === 8 ? ['b'] : ['a', 'b']})`)
    }
    const filter = (value: string) =>
      `/chats?account_id=${first}&column_id=${column_id}&column_value=${value}&limit=1`
    expect(await walk(filter('a'))).toHaveLength(2)
    expect(await walk(filter('b'))).toHaveLength(3)
    expect(await walk(filter('c'))).toHaveLength(0)
    const { body } = await get(`/chats/platform:chat:4?account_id=${first}`)
    expect(body.chat).toMatchObject({ stage_key: 'new', columns: [{ column_id, value: ['a', 'b'] }] })
    await service.shut('crm', 'pipeline')
    expect(await get(filter('a'))).toMatchObject({ status: 503, body: { code: 'feature_disabled' } })
    const shut = await get(`/chats/platform:chat:4?account_id=${first}`)
    expect(shut.body.chat).toMatchObject({ stage_key: null, columns: [] })
    await service.open('crm', 'pipeline')
  })

  test('400 for every invalid parameter, named in the sentence', async () => {
    for (const limit of ['0', '101', '1.5', '1e2', ' 5', '-1', 'x', '', '05']) {
      const answer = await get(`/chats?account_id=${first}&limit=${encodeURIComponent(limit)}`)
      expect(answer, limit).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
      expect(answer.body.error).toContain('limit')
    }
    const twice = await get(`/chats?account_id=${first}&limit=5&limit=6`)
    expect(twice.body.error).toContain('limit')
    const half = await get(`/chats?account_id=${first}&column_id=x`)
    expect(half).toMatchObject({ status: 400 })
    expect(half.body.error).toContain('column_value')
    const unknown = await get(`/chats?account_id=${first}&column_id=x&column_value=y`)
    expect(unknown).toMatchObject({ status: 404, body: { code: 'column_not_found' } })
    expect(await get(`/chats?account_id=${first}&nonsense=1`)).toMatchObject({ status: 400 })
  })

  test('400 for a cursor of another query, account or workspace, and for a forged one', async () => {
    const page = (await get(`/chats?account_id=${first}&limit=2`)).body as unknown as Page
    const other = await service.tenant('Other')
    const theirs = await service.account(other.workspace_id)
    const wrong = { status: 400, body: { code: 'invalid_cursor' } }
    expect(await get(`/chats?account_id=${second}&cursor=${page.next_cursor}`)).toMatchObject(wrong)
    expect(await get(`/chats?account_id=${first}&stage_key=new&cursor=${page.next_cursor}`)).toMatchObject(
      wrong,
    )
    expect(await get(`/chats?account_id=${theirs}&cursor=${page.next_cursor}`, other.key)).toMatchObject(
      wrong,
    )
    expect(await get(`/contacts?account_id=${first}&cursor=${page.next_cursor}`)).toMatchObject(wrong)
    expect(await get(`/chats?account_id=${first}&cursor=x`, other.key)).toMatchObject(wrong)
    expect(await get(`/chats?account_id=${first}&column_id=x&column_value=y&cursor=x`)).toMatchObject(wrong)
    for (const cursor of ['x', '', 'A'.repeat(3000), `${page.next_cursor}A`]) {
      expect(await get(`/chats?account_id=${first}&cursor=${cursor}`), cursor).toMatchObject(wrong)
    }
  })
})

describe('GET /chats/{chat_id}', () => {
  test('200 with participants', async () => {
    const { status, body } = await get(`/chats/platform:chat:3?account_id=${second}`)
    expect(status).toBe(200)
    expect(body.chat).toMatchObject({
      account_id: second,
      id: 'platform:chat:3',
      username: 'person_3',
      participants: [{ id: '3', name: 'Person 3', username: 'person_3', kind: 'person' }],
      stage_key: 'new',
      columns: [],
    })
  })

  test('404 in another account, 403 for a foreign account, 400 for a malformed id', async () => {
    expect(await get(`/chats/platform:chat:3?account_id=${first}`)).toMatchObject({
      status: 404,
      body: { code: 'chat_not_found' },
    })
    const other = await service.tenant('Third')
    expect(await get(`/chats/platform:chat:3?account_id=${second}`, other.key)).toMatchObject({
      status: 403,
      body: { code: 'account_unavailable' },
    })
    expect(await get(`/chats/3?account_id=${second}`)).toMatchObject({ status: 400 })
  })

  test('400 without account_id when several accounts have the chat, naming them', async () => {
    await service.open('extended')
    await service.chat({ account_id: second, workspace_id: own.workspace_id, id: '1' })
    const answer = await get('/chats/platform:chat:1')
    expect(answer).toMatchObject({ status: 400, body: { code: 'account_scope_required' } })
    expect(answer.body.error).toContain(first)
    expect(answer.body.error).toContain(second)
    expect(await get('/chats/platform:chat:5')).toMatchObject({
      status: 200,
      body: { chat: { account_id: first } },
    })
    expect(await get('/chats/platform:chat:777')).toMatchObject({ status: 404 })
    await service.shut('extended')
  })
})
