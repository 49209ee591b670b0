/** Stages at the dashboard. `test/people.test.ts` tests who may call which route, and about whose stages. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'

let service: Service
let own: Tenant
let other: Tenant
let account_id: string
const cookies = new Map<Tenant, string>()

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  other = await service.tenant('Other')
  for (const tenant of [own, other]) cookies.set(tenant, await signIn(service, tenant.user_id))
  account_id = await service.account(own.workspace_id)
  for (const id of ['1', '2', '3'] as const) {
    await service.chat({ account_id, workspace_id: own.workspace_id, id })
  }
})
afterAll(() => service.close())
beforeEach(async () => {
  await service.app.db.run(sql`update chats set stage_key = 'new'`)
  await service.app.db.run(sql`delete from stages where key <> 'new'`)
  await service.app.db.run(sql`update stages set label = 'New', color = null, position = 0`)
})

const ask = (method: string, path = '', body?: unknown, tenant = own) =>
  askDashboard(service, method, `/w/${tenant.workspace_id}/stages${path}`, {
    cookie: cookies.get(tenant),
    body,
  })

interface Stage {
  readonly key: string
  readonly label: string
}

async function create(body: object, tenant = own): Promise<Stage> {
  const answer = await ask('POST', '', body, tenant)
  expect(answer.status).toBe(201)
  return answer.body.stage as Stage
}

async function list(tenant = own): Promise<readonly Stage[]> {
  return (await ask('GET', '', undefined, tenant)).body.stages as Stage[]
}

const keys = async () => (await list()).map(({ key }) => key)

const move = (chat: number, stage_key: string) =>
  service.post('/pipeline/move', {
    key: own.key,
    body: { account_id, chat_id: `platform:chat:${chat}`, stage_key },
  })

const counts = () =>
  service.app.db.one(sql`
    select (select count(*) from stages)::int as stages, (select count(*) from audit)::int as audit`)

describe('POST /stages', () => {
  test('201 at the end, with its colour, and audited', async () => {
    const body = { label: 'Won', key: 'won', color: 'green', terminal: true }
    const stage = { ...body, hidden: false }
    expect(await create(body)).toEqual(stage)
    expect(await list()).toEqual([
      { key: 'new', label: 'New', color: null, terminal: false, hidden: false },
      stage,
    ])
    expect(
      await service.app.db.rows(sql`
        select actor, action, target, workspace_id from audit order by seq desc limit 1`),
    ).toEqual([
      {
        actor: `user:${own.user_id}`,
        action: 'stage.created',
        target: 'won',
        workspace_id: own.workspace_id,
      },
    ])
  })

  test.each([
    ['In talks', 'in-talks'],
    ['  Offer: 2nd (final)! ', 'offer-2nd-final'],
    ['Élan Größe', 'elan-gro-e'],
    ['商談中', 'stage'],
    ['\u202e…', 'stage'],
    ['New', 'new-2'],
    ['x'.repeat(200), 'x'.repeat(60)],
  ])('201 without a key makes one from the label: %s', async (label, key) => {
    expect(await create({ label })).toMatchObject({ key, label })
    expect(await create({ label })).toMatchObject({ key: key === 'new-2' ? 'new-3' : `${key}-2`, label })
  })

  test.each([
    {},
    { label: '' },
    { label: ' ' },
    { label: 'x'.repeat(201) },
    { label: 'x', key: '' },
    { label: 'x', key: 'In talks' },
    { label: 'x', key: '..' },
    { label: 'x', key: 'x'.repeat(65) },
    { label: 'x', color: '' },
    { label: 'x', color: 'url(x)' },
    { label: 'x', color: '#12345' },
    { label: 'x', color: 'x'.repeat(21) },
    { label: 'x', terminal: 'yes' },
    { label: 'x', position: 1 },
    { label: 'x', workspace_id: 'y' },
    { label: 'x\u0000' },
    [],
  ])('400 for %j, and nothing is written', async (body) => {
    const before = await counts()
    const answer = await ask('POST', '', body)
    expect(answer.status).toBe(400)
    expect(answer.body.code).toMatch(/^invalid_(request|text)$/)
    expect(await counts()).toEqual(before)
  })

  test('409 for a key that exists, and for the 101st stage', async () => {
    await create({ label: 'Won', key: 'won' })
    const conflict = { status: 409, body: { code: 'conflict' } }
    expect(await ask('POST', '', { label: 'Again', key: 'won' })).toMatchObject(conflict)
    await service.app.db.run(sql`
      insert into stages (workspace_id, key, label, position)
      select ${own.workspace_id}, 's' || n, 'S', n from generate_series(3, 100) n`)
    expect(await list()).toHaveLength(100)
    expect(await ask('POST', '', { label: 'One more' })).toMatchObject(conflict)
    expect(await list()).toHaveLength(100)
    await create({ label: 'Elsewhere' }, other)
  })
})

describe('PATCH /stages/{stage_key}', () => {
  test('200 changes what is named and nothing else; null removes the colour', async () => {
    const made = await create({ label: 'Won', color: 'green' })
    const change = async (body: object) => (await ask('PATCH', '/won', body)).body.stage
    expect(await change({ label: 'Closed' })).toEqual({ ...made, label: 'Closed' })
    expect(await change({ color: '#3366FF' })).toMatchObject({ label: 'Closed', color: '#3366FF' })
    expect(await change({ terminal: true })).toMatchObject({ color: '#3366FF', terminal: true })
    expect(await change({ color: null })).toMatchObject({ label: 'Closed', color: null, terminal: true })
    expect(await change({ hidden: true })).toMatchObject({ hidden: true })
    expect(await move(1, 'won')).toMatchObject({ status: 400, body: { code: 'invalid_stage' } })
  })

  test('200 moves it to a place; the others keep their order', async () => {
    for (const label of ['a', 'b', 'c']) await create({ label })
    const moveTo = async (key: string, place: number) => {
      expect((await ask('PATCH', `/${key}`, { place })).status).toBe(200)
      return keys()
    }
    expect(await moveTo('c', 1)).toEqual(['c', 'new', 'a', 'b'])
    expect(await moveTo('c', 3)).toEqual(['new', 'a', 'c', 'b'])
    expect(await moveTo('new', 1000)).toEqual(['a', 'c', 'b', 'new'])
    const [first, second] = await Promise.all([moveTo('b', 1), moveTo('a', 4)])
    expect([first.length, second.length, (await keys()).toSorted()]).toEqual([4, 4, ['a', 'b', 'c', 'new']])
  })

  test.each([
    {},
    { label: '' },
    { label: null },
    { color: '' },
    { color: 'not a colour' },
    { place: 0 },
    { place: 1.5 },
    { place: 1001 },
    { place: '1' },
    { hidden: null },
    { key: 'other' },
  ])('400 for %j, and changes nothing', async (body) => {
    await create({ label: 'Won', color: 'green' })
    const before = [await list(), await counts()]
    expect(await ask('PATCH', '/won', body)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request' },
    })
    expect([await list(), await counts()]).toEqual(before)
  })

  test('409 when hiding the first stage', async () => {
    expect(await ask('PATCH', '/new', { hidden: true })).toMatchObject({
      status: 409,
      body: { code: 'conflict', error: 'The stage "new" cannot be hidden.' },
    })
  })

  test("200 leaves another workspace's stage of the same key as it is", async () => {
    await create({ label: 'Won' })
    await create({ label: 'Won', color: 'red' }, other)
    const before = await list(other)
    expect((await ask('PATCH', '/won', { label: 'Ours', color: 'blue', place: 1 })).status).toBe(200)
    expect(await list(other)).toEqual(before)
  })
})

describe('DELETE /stages/{stage_key}', () => {
  test('200 says how many chats returned to new, and they have', async () => {
    await create({ label: 'Won' })
    for (const chat of [1, 2]) expect((await move(chat, 'won')).status).toBe(200)
    expect((await ask('DELETE', '/won')).body).toEqual({
      deleted: true,
      message: 'The stage was deleted. 2 chats returned to the stage new.',
      moved: 2,
    })
    expect(await keys()).toEqual(['new'])
    const { body } = await service.get('/pipeline', { key: own.key })
    expect(body.placements).toMatchObject([{ stage_key: 'new' }, { stage_key: 'new' }])
    expect(await ask('DELETE', '/won')).toMatchObject({ status: 404, body: { code: 'not_found' } })
    await create({ label: 'Won' })
    expect((await ask('DELETE', '/won')).body).toMatchObject({
      message: 'The stage was deleted. No chat was in it.',
      moved: 0,
    })
  })

  test('409 for the first stage, which stays', async () => {
    expect(await ask('DELETE', '/new')).toMatchObject({ status: 409, body: { code: 'conflict' } })
    expect(await keys()).toEqual(['new'])
  })

  test("200 leaves another workspace's stage of the same key as it is", async () => {
    await create({ label: 'Won' })
    await create({ label: 'Won' }, other)
    const before = await list(other)
    expect((await ask('DELETE', '/won')).status).toBe(200)
    expect(await list(other)).toEqual(before)
  })
})

test("the contract's pipeline has no colour, at either door", async () => {
  await create({ label: 'Won', color: 'green' })
  const { body } = await service.get('/pipeline', { key: own.key })
  expect(body.stages).toEqual([
    { key: 'new', label: 'New', terminal: false, hidden: false },
    { key: 'won', label: 'Won', terminal: false, hidden: false },
  ])
  const cookie = cookies.get(own)
  const seen = await askDashboard(service, 'GET', `/w/${own.workspace_id}/pipeline`, { cookie })
  expect(seen.body).toEqual(body)
  const board = await askDashboard(service, 'GET', `/w/${own.workspace_id}/board`, { cookie })
  expect(board.body.stages).toMatchObject([{ color: null }, { color: 'green' }])
})

test('503 while the gate of the pipeline is closed', async () => {
  await service.shut('pipeline')
  for (const [method, path, body] of [
    ['GET', '', undefined],
    ['POST', '', { label: 'Won' }],
    ['PATCH', '/new', { label: 'First' }],
    ['DELETE', '/won', undefined],
  ] as const) {
    expect(await ask(method, path, body)).toMatchObject({ status: 503, body: { code: 'feature_disabled' } })
  }
  await service.open('pipeline')
  expect(await keys()).toEqual(['new'])
})
