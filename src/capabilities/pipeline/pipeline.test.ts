import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { countUnsequenced, sequence } from '../../events/sequencer.ts'
import { createStage, deleteStage, listStages, updateStage } from './pipeline.ts'

let service: Service
let own: Tenant
let other: Tenant
let first: string
let second: string
let foreign: string

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  other = await service.tenant('Other')
  first = await service.account(own.workspace_id)
  second = await service.account(own.workspace_id)
  foreign = await service.account(other.workspace_id)
  for (const account_id of [first, second]) await makeChats(own.workspace_id, account_id, 8)
  await makeChats(other.workspace_id, foreign, 2)
  for (const key of ['talks', 'won']) await stage(own.workspace_id, key)
  await stage(own.workspace_id, 'attic', { hidden: true })
  await stage(other.workspace_id, 'theirs')
})
afterAll(() => service.close())

async function makeChats(workspace_id: string, account_id: string, count: number): Promise<void> {
  for (let id = 1; id <= count; id++) await service.chat({ account_id, workspace_id, id: `${id}` })
}

const stage = (workspace_id: string, key: string, more: { hidden?: boolean } = {}) =>
  createStage(service.app, 'cli:ana', { workspace_id, key, label: key.toUpperCase(), ...more })

const move = (account_id: string | undefined, chat: number | string, stage_key: string, key = own.key) =>
  service.post('/pipeline/move', {
    key,
    body: {
      ...(account_id && { account_id }),
      chat_id: typeof chat === 'number' ? `platform:chat:${chat}` : chat,
      stage_key,
    },
  })

interface Pipeline {
  readonly stages: readonly { key: string }[]
  readonly placements: readonly { account_id: string; chat_id: string; stage_key: string }[]
  readonly next_cursor: string | null
}

async function read(query = '', key = own.key): Promise<Pipeline> {
  const { status, body } = await service.get(`/pipeline${query}`, { key })
  expect(status).toBe(200)
  return body as unknown as Pipeline
}

async function moves(workspace_id = own.workspace_id) {
  while ((await countUnsequenced(service.app.db)) > 0) await sequence(service.app.db)
  const rows = await service.app.db.rows<{ data: Record<string, unknown> }>(sql`
    select data from events where workspace_id = ${workspace_id} and type = 'pipeline.moved' order by sequence`)
  return rows.map(({ data }) => data)
}

describe('POST /pipeline/move', () => {
  test('200 moves the chat, emits one event, and reports what a repeat changes', async () => {
    const answer = await move(first, 1, 'won')
    expect(answer).toMatchObject({ status: 200 })
    const placement = { account_id: first, chat_id: 'platform:chat:1', stage_key: 'won' }
    expect(answer.body).toEqual({ ok: true, message: 'The chat was moved.', ...placement, changed: true })
    expect((await move(first, 1, 'won')).body).toMatchObject({ ok: true, ...placement, changed: false })
    expect((await move(first, 1, 'talks')).body).toMatchObject({ changed: true })
    const actor = { type: 'key', id: own.key_id }
    const chat = { account_id: first, chat_id: 'platform:chat:1' }
    expect(await moves()).toEqual([
      { ...chat, from_stage_key: 'new', to_stage_key: 'won', actor },
      { ...chat, from_stage_key: 'won', to_stage_key: 'talks', actor },
    ])
    const { body } = await service.get(`/chats/platform:chat:1?account_id=${first}`, { key: own.key })
    expect(body.chat).toMatchObject({ stage_key: 'talks' })
  })

  test('200 back to new, which is then a placement', async () => {
    await move(first, 2, 'won')
    expect((await move(first, 2, 'new')).body).toMatchObject({ changed: true, stage_key: 'new' })
    expect((await move(first, 3, 'new')).body).toMatchObject({ changed: false, stage_key: 'new' })
    const { placements } = await read()
    for (const id of [2, 3]) {
      expect(placements).toContainEqual({
        account_id: first,
        chat_id: `platform:chat:${id}`,
        stage_key: 'new',
      })
    }
    expect(placements.some(({ chat_id }) => chat_id === 'platform:chat:8')).toBe(false)
  })

  test('400 for an unknown or hidden stage, and for one of another workspace, which is named', async () => {
    const before = (await moves()).length
    for (const key of ['nope', 'attic', 'theirs', 'WON']) {
      const answer = await move(first, 4, key)
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_stage' } })
      expect(answer.body.error).toContain(`"${key}"`)
    }
    expect(await moves()).toHaveLength(before)
  })

  test('400 for an invalid body', async () => {
    const good = { account_id: first, chat_id: 'platform:chat:1', stage_key: 'won' }
    for (const body of [
      {},
      [],
      null,
      'x',
      { ...good, chat_id: 1 },
      { ...good, chat_id: 'platform:chat:01' },
      { ...good, chat_id: 'platform:chat:9223372036854775808' },
      { ...good, stage_key: '' },
      { ...good, stage_key: 'x'.repeat(65) },
      { ...good, stage_key: ['won'] },
      { ...good, stage_key: 'a\0b' },
      { ...good, account_id: '' },
      { ...good, more: 1 },
    ]) {
      const answer = await service.post('/pipeline/move', { key: own.key, body: JSON.stringify(body) })
      expect(answer.status, JSON.stringify(body)).toBe(400)
    }
  })

  test('400 without account_id, unless extended finds the one account that has the chat', async () => {
    expect(await move(undefined, 1, 'won')).toMatchObject({
      status: 400,
      body: { code: 'account_scope_required' },
    })
    await service.chat({ account_id: second, workspace_id: own.workspace_id, id: '77' })
    await service.open('extended')
    try {
      expect(await move(undefined, 77, 'won')).toMatchObject({ status: 200, body: { account_id: second } })
      const several = await move(undefined, 1, 'won')
      expect(several).toMatchObject({ status: 400, body: { code: 'account_scope_required' } })
      expect(several.body.error).toContain(first)
      expect(await move(undefined, 999, 'won')).toMatchObject({ status: 404 })
    } finally {
      await service.shut('extended')
    }
  })

  test("403 and 404 for other workspaces' accounts and other accounts' chats, revealing nothing of either", async () => {
    expect(await move(foreign, 1, 'won')).toMatchObject({
      status: 403,
      body: { code: 'account_unavailable' },
    })
    expect(await move(first, 1, 'theirs', other.key)).toMatchObject({ status: 403 })
    expect(await move(first, 77, 'won')).toMatchObject({ status: 404, body: { code: 'chat_not_found' } })
    expect(await move(first, -5, 'won')).toMatchObject({ status: 404, body: { code: 'chat_not_found' } })
    expect(await moves(other.workspace_id)).toEqual([])
    expect((await read('', other.key)).placements).toEqual([])
  })

  test('403 for an account that is not READY', async () => {
    const away = await service.account(own.workspace_id, 'NEEDS_LOGIN')
    await makeChats(own.workspace_id, away, 1)
    expect(await move(away, 1, 'won')).toMatchObject({ status: 403, body: { code: 'account_unavailable' } })
  })

  test('emits one event per change when many callers move the same chat at once', async () => {
    const before = (await moves()).length
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, at) => move(second, 5, ['won', 'talks', 'new'][at % 3] ?? 'new')),
    )
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    const emitted = (await moves()).slice(before)
    expect(emitted).toHaveLength(answers.filter(({ body }) => body.changed).length)
    // Each starts from the stage where the one before it ended.
    let at = 'new'
    for (const { from_stage_key, to_stage_key } of emitted) {
      expect(from_stage_key).toBe(at)
      at = String(to_stage_key)
    }
    const placed = (await read()).placements.find(
      ({ account_id, chat_id }) => account_id === second && chat_id === 'platform:chat:5',
    )
    expect(placed?.stage_key).toBe(at)
  })
})

describe('GET /pipeline', () => {
  test('200 with stages in order, and placements by account and chat', async () => {
    const { stages } = await read()
    expect(stages).toEqual([
      { key: 'new', label: 'New', terminal: false, hidden: false },
      { key: 'talks', label: 'TALKS', terminal: false, hidden: false },
      { key: 'won', label: 'WON', terminal: false, hidden: false },
      { key: 'attic', label: 'ATTIC', terminal: false, hidden: true },
    ])
    expect((await read('', other.key)).stages.map(({ key }) => key)).toEqual(['new', 'theirs'])
  })

  test('200 page by page: every placement once, as in one answer', async () => {
    for (const account_id of [first, second]) {
      for (let id = 1; id <= 8; id++) await move(account_id, id, id % 2 ? 'won' : 'talks')
    }
    const whole = (await read()).placements
    for (const limit of [1, 3, 1000]) {
      const seen: unknown[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page: Pipeline = await read(`?limit=${limit}${cursor && `&cursor=${cursor}`}`)
        expect(page.stages).toHaveLength(4)
        expect(page.placements.length).toBeLessThanOrEqual(limit)
        seen.push(...page.placements)
        cursor = page.next_cursor
      }
      expect(new Set(seen.map((each) => JSON.stringify(each)))).toEqual(
        new Set(whole.map((each) => JSON.stringify(each))),
      )
      expect(seen).toHaveLength(whole.length)
    }
  })

  test('200 in one answer over several batches, without accounts that are not eligible', async () => {
    const tenant = await service.tenant('Long')
    const account_id = await service.account(tenant.workspace_id)
    const away = await service.account(tenant.workspace_id, 'DISABLED')
    for (const id of [account_id, away]) {
      await service.app.db.run(sql`
        insert into chats (account_id, chat_id, workspace_id, kind, placed_at)
        select ${id}, n - 6000, ${tenant.workspace_id}, 'private', now() from generate_series(1, 12000) n`)
    }
    const { placements } = await read('', tenant.key)
    expect(placements).toHaveLength(12_000)
    expect(new Set(placements.map(({ chat_id }) => chat_id)).size).toBe(12_000)
    expect(placements.every((placement) => placement.account_id === account_id)).toBe(true)
  })

  test('400 for a limit out of range and a cursor of another workspace', async () => {
    for (const limit of ['0', '1001', '-1', '1.5', 'all', '']) {
      expect(await service.get(`/pipeline?limit=${limit}`, { key: own.key })).toMatchObject({ status: 400 })
    }
    const { next_cursor } = await read('?limit=1')
    for (const [cursor, key] of [
      [next_cursor, other.key],
      ['nonsense', own.key],
    ]) {
      const path = `/pipeline?limit=1&cursor=${cursor}`
      expect(await service.get(path, { key: key ?? '' })).toMatchObject({
        status: 400,
        body: { code: 'invalid_cursor' },
      })
    }
    // A request for the next page without a size still gets a page.
    expect((await read(`?cursor=${next_cursor}`)).placements.length).toBeGreaterThan(1)
  })

  test('503 while its tables are missing', async () => {
    await service.app.db.run(sql`alter table stages rename to stages_away`)
    try {
      for (const answer of [await service.get('/pipeline', { key: own.key }), await move(first, 1, 'won')]) {
        expect(answer).toMatchObject({ status: 503, body: { code: 'schema_unavailable' } })
      }
    } finally {
      await service.app.db.run(sql`alter table stages_away rename to stages`)
    }
  })
})

describe('stages', () => {
  const keys = async (workspace_id: string) =>
    (await listStages(service.app.db, workspace_id)).map(({ key }) => key)

  test('are named, hidden, shown and reordered', async () => {
    const { workspace_id } = await service.tenant('Stages')
    for (const key of ['a', 'b', 'c']) await stage(workspace_id, key)
    const change = (key: string, more: object) =>
      updateStage(service.app, 'system', { workspace_id, key, ...more })
    await change('c', { place: 1 })
    expect(await keys(workspace_id)).toEqual(['c', 'new', 'a', 'b'])
    await change('new', { place: 3 })
    expect(await keys(workspace_id)).toEqual(['c', 'a', 'new', 'b'])
    await change('c', { place: 99 })
    expect(await keys(workspace_id)).toEqual(['a', 'new', 'b', 'c'])
    expect(await change('a', { label: 'Alpha', terminal: true, hidden: true })).toEqual({
      key: 'a',
      label: 'Alpha',
      color: null,
      terminal: true,
      hidden: true,
    })
    await expect(change('new', { hidden: true })).rejects.toThrow('cannot be hidden')
    await expect(change('zzz', { label: 'Z' })).rejects.toThrow('There is no stage "zzz"')
    await expect(change('a', { label: ' ' })).rejects.toThrow('1 to 200')
    await expect(stage(workspace_id, 'a')).rejects.toThrow('already')
    for (const key of ['', 'A', '-a', 'a b', 'x'.repeat(65)]) {
      await expect(stage(workspace_id, key)).rejects.toThrow('lower-case')
    }
  })

  test('are at most 100, however many are created at once', async () => {
    const { workspace_id } = await service.tenant('Many')
    // On a busy machine some wait too long for their turn, hear that nothing was done, and retry.
    const insist = async (key: string): Promise<unknown> => {
      for (;;) {
        const made = await stage(workspace_id, key).catch((error) => {
          if (error.code !== 'store_unavailable') throw error
        })
        if (made) return made
      }
    }
    const made = await Promise.allSettled(Array.from({ length: 103 }, (_, at) => insist(`s${at}`)))
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(99)
    expect(await keys(workspace_id)).toHaveLength(100)
  })

  test('when deleted return their chats to new, with an event each, and move no other chat', async () => {
    const tenant = await service.tenant('Deleting')
    const { workspace_id } = tenant
    const account_id = await service.account(workspace_id)
    await stage(workspace_id, 'gone')
    await stage(workspace_id, 'kept')
    await service.app.db.run(sql`
      insert into chats (account_id, chat_id, workspace_id, kind, stage_key, placed_at)
      select ${account_id}, n, ${workspace_id}, 'private', case when n <= 2500 then 'gone' else 'kept' end, now()
      from generate_series(1, 2600) n`)
    expect(await deleteStage(service.app, 'cli:ana', { workspace_id, key: 'gone' })).toEqual({
      key: 'gone',
      moved: 2_500,
    })
    expect(await keys(workspace_id)).toEqual(['new', 'kept'])
    const emitted = await moves(workspace_id)
    expect(emitted).toHaveLength(2_500)
    expect(emitted[0]).toEqual({
      account_id,
      chat_id: expect.stringMatching(/^platform:chat:\d+$/),
      from_stage_key: 'gone',
      to_stage_key: 'new',
      actor: { type: 'cli', id: 'ana' },
    })
    const { placements } = await read('', tenant.key)
    expect(placements.filter(({ stage_key }) => stage_key === 'new')).toHaveLength(2_500)
    expect(await move(account_id, 1, 'gone', tenant.key)).toMatchObject({ status: 400 })
    const remove = (key: string) => deleteStage(service.app, 'system', { workspace_id, key })
    await expect(remove('new')).rejects.toThrow('cannot be deleted')
    await expect(remove('gone')).rejects.toThrow('There is no stage')
  })

  test('when deleted while chats are moved to them answer 200 or 400, and leave no chat behind', async () => {
    const tenant = await service.tenant('Racing')
    const { workspace_id } = tenant
    const account_id = await service.account(workspace_id)
    await makeChats(workspace_id, account_id, 12)
    await stage(workspace_id, 'brief')
    const [answers] = await Promise.all([
      Promise.all(Array.from({ length: 12 }, (_, at) => move(account_id, at + 1, 'brief', tenant.key))),
      deleteStage(service.app, 'system', { workspace_id, key: 'brief' }),
    ])
    expect(answers.filter(({ status }) => status !== 200 && status !== 400)).toEqual([])
    const { placements } = await read('', tenant.key)
    expect(placements.filter(({ stage_key }) => stage_key !== 'new')).toEqual([])
  })
})
