/** Columns and options at the dashboard. `test/people.test.ts` tests who may call which route, and about whose columns. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'

let service: Service
let own: Tenant
let other: Tenant
const accounts = new Map<Tenant, string>()
const cookies = new Map<Tenant, string>()

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  other = await service.tenant('Other')
  for (const tenant of [own, other]) {
    const { workspace_id } = tenant
    const account_id = await service.account(workspace_id)
    await service.chat({ account_id, workspace_id, id: '1' })
    accounts.set(tenant, account_id)
    cookies.set(tenant, await signIn(service, tenant.user_id))
  }
})
afterAll(() => service.close())
beforeEach(() => service.app.db.run(sql`delete from columns`))

const ask = (method: string, path = '', body?: unknown, tenant = own) =>
  askDashboard(service, method, `/w/${tenant.workspace_id}/columns${path}`, {
    cookie: cookies.get(tenant),
    body,
  })

interface Column {
  readonly id: string
  readonly name: string
  readonly options: readonly { value: string; color: string | null }[]
}

const plan = { name: 'Plan', type: 'select', options: [{ value: 'Team', color: 'blue' }, { value: 'Solo' }] }

async function create(body: object = plan, tenant = own): Promise<Column> {
  const answer = await ask('POST', '', body, tenant)
  expect(answer.status).toBe(201)
  return answer.body.column as Column
}

async function list(tenant = own): Promise<readonly Column[]> {
  return (await ask('GET', '', undefined, tenant)).body.columns as Column[]
}

async function valuesOf(tenant = own): Promise<unknown> {
  const { body } = await service.get('/columns', { key: tenant.key })
  return (body.values as { value: unknown }[]).map(({ value }) => value)
}

/** Sets the value of the chat as the contract does. */
const set = (column_id: string, value: readonly string[], tenant = own) =>
  service.post('/columns/set', {
    key: tenant.key,
    body: { account_id: accounts.get(tenant), chat_id: 'platform:chat:1', column_id, value },
  })

const counts = () =>
  service.app.db.one(sql`
    select (select count(*) from columns)::int as columns, (select count(*) from column_options)::int as options,
      (select count(*) from column_values)::int as values, (select count(*) from audit)::int as audit`)

const refused = { status: 400, body: { code: 'invalid_request' } }
const conflict = { status: 409, body: { code: 'conflict' } }
const missing = { status: 404, body: { code: 'column_not_found' } }

describe('POST /columns', () => {
  test('201 at the end, with its options in order, as the contract lists it', async () => {
    const first = await create()
    expect(first).toEqual({
      id: expect.any(String),
      name: 'Plan',
      type: 'select',
      options: [
        { value: 'Team', color: 'blue' },
        { value: 'Solo', color: null },
      ],
    })
    const second = await create({ name: 'Since', type: 'date' })
    expect(await list()).toEqual([first, second])
    expect((await service.get('/columns', { key: own.key })).body.columns).toEqual([first, second])
    const [audited] = await service.app.db.rows<{ actor: string }>(sql`
      select actor from audit where action = 'column.created' and target = ${second.id}`)
    expect(audited?.actor).toBe(`user:${own.user_id}`)
  })

  test.each([
    {},
    { name: 'Plan' },
    { name: '', type: 'text' },
    { name: 'x'.repeat(201), type: 'text' },
    { name: 'Plan', type: 'money' },
    { name: 'Plan', type: 'text', options: [{ value: 'a' }] },
    { name: 'Plan', type: 'select', options: ['a'] },
    { name: 'Plan', type: 'select', options: [{ value: 'a' }, { value: 'a' }] },
    { name: 'Plan', type: 'select', options: [{ value: ' ' }] },
    { name: 'Plan', type: 'select', options: [{ value: 'a', color: '' }] },
    { name: 'Plan', type: 'select', options: [{ value: 'a', color: 'url(x)' }] },
    { name: 'Plan', type: 'select', options: Array.from({ length: 201 }, (_, n) => ({ value: `${n}` })) },
    { name: 'Plan', type: 'text', id: 'x' },
    [],
  ])('400, and nothing is written: %j', async (body) => {
    const before = await counts()
    expect(await ask('POST', '', body)).toMatchObject(refused)
    expect(await counts()).toEqual(before)
  })

  test('409 for the 101st column', async () => {
    await service.app.db.run(sql`
      insert into columns (id, workspace_id, name, type, position)
      select gen_random_uuid(), ${own.workspace_id}, 'C', 'text', n from generate_series(1, 100) n`)
    expect(await ask('POST', '', plan)).toMatchObject(conflict)
    expect(await list()).toHaveLength(100)
    await create(plan, other)
  })
})

describe('PATCH /columns/{column_id}', () => {
  test('200 renames and moves it', async () => {
    const [a, b, c] = [await create(), await create({ name: 'B', type: 'text' }), await create(plan)]
    expect((await ask('PATCH', `/${b.id}`, { name: 'Note' })).body.column).toEqual({ ...b, name: 'Note' })
    expect((await ask('PATCH', `/${c.id.toUpperCase()}`, { place: 1 })).status).toBe(200)
    expect((await list()).map(({ id }) => id)).toEqual([c.id, a.id, b.id])
  })

  test.each([{}, { name: '' }, { name: null }, { place: 0 }, { place: 2.5 }, { type: 'text' }])(
    '400 for %j, and changes nothing',
    async (body) => {
      const { id } = await create()
      const before = [await list(), await counts()]
      expect(await ask('PATCH', `/${id}`, body)).toMatchObject(refused)
      expect([await list(), await counts()]).toEqual(before)
    },
  )
})

describe('DELETE /columns/{column_id}', () => {
  test('200 says how many values were deleted with it', async () => {
    const { id } = await create()
    expect((await set(id, ['Team'])).status).toBe(200)
    expect((await ask('DELETE', `/${id}`)).body).toEqual({
      deleted: true,
      message: 'The column was deleted with 1 value of chats.',
      values: 1,
    })
    expect([await list(), await valuesOf()]).toEqual([[], []])
    expect(await ask('DELETE', `/${id}`)).toMatchObject(missing)
  })

  test("404 for another workspace's column, whose values stay", async () => {
    const { id } = await create(plan, other)
    await set(id, ['Team'], other)
    expect(await ask('DELETE', `/${id}`)).toMatchObject(missing)
    expect(await valuesOf(other)).toEqual([['Team']])
  })
})

describe('POST /columns/{column_id}/options', () => {
  test('201 adds it at the end, and it can be set', async () => {
    const { id } = await create()
    const { status, body } = await ask('POST', `/${id}/options`, { value: 'Guild', color: 'red' })
    expect([status, (body.column as Column).options.at(-1)]).toEqual([201, { value: 'Guild', color: 'red' }])
    expect((await set(id, ['Guild'])).status).toBe(200)
  })

  test('409 for one that exists, for the 201st, and for a column without options', async () => {
    const { id } = await create()
    expect(await ask('POST', `/${id}/options`, { value: 'Team' })).toMatchObject(conflict)
    await service.app.db.run(sql`
      insert into column_options (workspace_id, column_id, value, position)
      select ${own.workspace_id}, ${id}, 'o' || n, n from generate_series(3, 200) n`)
    expect(await ask('POST', `/${id}/options`, { value: 'one more' })).toMatchObject(conflict)
    const words = await create({ name: 'Words', type: 'text' })
    expect(await ask('POST', `/${words.id}/options`, { value: 'a' })).toMatchObject(conflict)
  })

  test("404 for another workspace's column, which gets no option", async () => {
    const { id, options } = await create(plan, other)
    expect(await ask('POST', `/${id}/options`, { value: 'Ours' })).toMatchObject(missing)
    expect(await ask('POST', `/${newId()}/options`, { value: 'Ours' })).toMatchObject(missing)
    expect((await list(other))[0]?.options).toEqual(options)
  })

  test.each([{}, { value: '' }, { value: 'x'.repeat(201) }, { value: 'a', color: 'a b' }, { value: ['a'] }])(
    '400 for %j, and nothing is written',
    async (body) => {
      const { id } = await create()
      const before = await counts()
      expect(await ask('POST', `/${id}/options`, body)).toMatchObject(refused)
      expect(await counts()).toEqual(before)
    },
  )
})

describe('PATCH /columns/{column_id}/options', () => {
  test('200 renames it with the values that use it, recolours and moves it', async () => {
    const { id } = await create()
    await set(id, ['Team'])
    const change = async (body: object) =>
      ((await ask('PATCH', `/${id}/options`, body)).body.column as Column).options
    const solo = { value: 'Solo', color: null }
    expect(await change({ value: 'Team', name: 'Crew' })).toEqual([{ value: 'Crew', color: 'blue' }, solo])
    expect(await valuesOf()).toEqual([['Crew']])
    expect(await change({ value: 'Crew', color: '#3366ff' })).toMatchObject([{ color: '#3366ff' }, solo])
    expect(await change({ value: 'Crew', color: null })).toEqual([{ value: 'Crew', color: null }, solo])
    expect(await change({ value: 'Crew', place: 2 })).toEqual([solo, { value: 'Crew', color: null }])
  })

  test('404 for an option that is not there; 409 for a name that is taken', async () => {
    const { id } = await create()
    const path = `/${id}/options`
    expect(await ask('PATCH', path, { value: 'zzz', color: 'red' })).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
    })
    expect(await ask('PATCH', path, { value: 'Team', name: 'Solo' })).toMatchObject(conflict)
    for (const body of [
      { value: 'Team' },
      { color: 'red' },
      { value: 'Team', name: '' },
      { value: 'Team', place: 0 },
    ]) {
      expect(await ask('PATCH', path, body)).toMatchObject(refused)
    }
    expect((await list())[0]?.options).toEqual([
      { value: 'Team', color: 'blue' },
      { value: 'Solo', color: null },
    ])
  })
})

describe('DELETE /columns/{column_id}/options', () => {
  const remove = (id: string, value: string) =>
    ask('DELETE', `/${id}/options?${new URLSearchParams({ value })}`)

  test('200 says that chats keep it; it can no longer be set', async () => {
    const { id } = await create()
    await set(id, ['Team'])
    const { body } = await remove(id, 'Team')
    expect(body).toEqual({
      deleted: true,
      message: 'The option was deleted. Chats that have it keep it, and it can no longer be set.',
      column: expect.objectContaining({ id, options: [{ value: 'Solo', color: null }] }),
    })
    expect(await valuesOf()).toEqual([['Team']])
    expect(await set(id, ['Team'])).toMatchObject({ status: 400, body: { code: 'invalid_column_value' } })
    expect(await remove(id, 'Team')).toMatchObject({ status: 404, body: { code: 'not_found' } })
  })

  test.each(['..', '.', 'a/b?c#d&value=Solo', '%2e%2e', '+ ', '😀'.repeat(200)])(
    '200 deletes the option called %s, and nothing else',
    async (value) => {
      const { id } = await create()
      expect((await ask('POST', `/${id}/options`, { value })).status).toBe(201)
      expect((await remove(id, value)).status).toBe(200)
      expect((await list()).map(({ options }) => options.map((each) => each.value))).toEqual([
        ['Team', 'Solo'],
      ])
    },
  )

  test('400 without an option, with an empty one and with two', async () => {
    const { id } = await create()
    for (const query of ['', '?value=', '?value=Team&value=Solo', '?name=Team']) {
      expect(await ask('DELETE', `/${id}/options${query}`)).toMatchObject(refused)
    }
    expect((await list())[0]?.options).toHaveLength(2)
  })
})

test('503 while the gate of the columns is closed', async () => {
  const { id } = await create()
  await service.shut('crm')
  for (const [method, path, body] of [
    ['POST', '', plan],
    ['PATCH', `/${id}`, { name: 'x' }],
    ['DELETE', `/${id}`, undefined],
    ['POST', `/${id}/options`, { value: 'x' }],
    ['PATCH', `/${id}/options`, { value: 'Team', color: 'red' }],
    ['DELETE', `/${id}/options?value=Team`, undefined],
  ] as const) {
    expect(await ask(method, path, body)).toMatchObject({ status: 503, body: { code: 'feature_disabled' } })
  }
  await service.open('crm')
  expect(await list()).toMatchObject([{ id, name: 'Plan' }])
})
