import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import {
  addOption,
  type ColumnType,
  columnTypes,
  createColumn,
  deleteColumn,
  deleteOption,
  listColumns,
  updateColumn,
  updateOption,
} from './columns.ts'

let service: Service
let own: Tenant
let other: Tenant
let first: string
let second: string
let foreign: string
let theirs: string
const ids = {} as Record<ColumnType, string>

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  other = await service.tenant('Other')
  first = await service.account(own.workspace_id)
  second = await service.account(own.workspace_id)
  foreign = await service.account(other.workspace_id)
  for (const account_id of [first, second]) await makeChats(own, account_id, 6)
  await makeChats(other, foreign, 1)
  for (const type of columnTypes) ids[type] = await column(own, type)
  theirs = await column(other, 'text')
})
afterAll(() => service.close())

async function makeChats({ workspace_id }: Tenant, account_id: string, count: number): Promise<void> {
  for (let id = 1; id <= count; id++) await service.chat({ account_id, workspace_id, id: `${id}` })
}

async function column({ workspace_id }: Tenant, type: ColumnType): Promise<string> {
  const options = type.includes('select') ? ['a', 'b', 'c'].map((value) => ({ value, color: 'blue' })) : []
  const made = await createColumn(service.app, 'cli:ana', { workspace_id, name: `A ${type}`, type, options })
  return made.id
}

interface Target {
  readonly account_id?: string | undefined
  readonly chat?: number
  readonly key?: string
}

const set = (column_id: string, value: unknown, { account_id, chat = 1, key }: Target = {}) =>
  service.post('/columns/set', {
    key: key ?? own.key,
    body: { account_id: account_id ?? first, chat_id: `platform:chat:${chat}`, column_id, value },
  })

interface Columns {
  readonly columns: readonly { id: string; type: string; options: { value: string }[] }[]
  readonly values: readonly { account_id: string; chat_id: string; column_id: string; value: string[] }[]
  readonly next_cursor: string | null
}

async function read(query = '', key = own.key): Promise<Columns> {
  const { status, body } = await service.get(`/columns${query}`, { key })
  expect(status).toBe(200)
  return body as unknown as Columns
}

async function valueIn(column_id: string, { account_id = first, chat = 1, key }: Target = {}) {
  const { values } = await read('', key)
  const chat_id = `platform:chat:${chat}`
  return values.find(
    (each) => each.account_id === account_id && each.chat_id === chat_id && each.column_id === column_id,
  )?.value
}

/** What each type accepts and what it refuses. */
const cases: Record<ColumnType, { good: string[][]; bad: string[][] }> = {
  select: { good: [['a'], ['c']], bad: [['z'], ['A'], ['a', 'b'], [''], ['a ']] },
  multi_select: { good: [['a'], ['c', 'a'], ['a', 'b', 'c']], bad: [['a', 'a'], ['a', 'z'], ['']] },
  text: {
    good: [['x'], ['“é” 💬'], ['💬'.repeat(2000)]],
    bad: [[''], [' \n'], ['x'.repeat(2001)], ['a', 'b']],
  },
  number: {
    good: [['0'], ['-3'], ['12.5'], ['-0.001'], ['999999999999999999']],
    bad: [
      ['1.50'],
      ['01'],
      ['+1'],
      ['-0'],
      ['1e3'],
      ['.5'],
      ['1.'],
      ['NaN'],
      ['Infinity'],
      ['1,5'],
      [' 1'],
      [''],
    ],
  },
  date: {
    good: [['2027-01-31'], ['2028-02-29']],
    bad: [
      ['2027-02-29'],
      ['2027-13-01'],
      ['2027-1-1'],
      ['2027-01-01T00:00:00Z'],
      ['0000-01-01'],
      ['today'],
      [''],
    ],
  },
  checkbox: { good: [['true'], ['false']], bad: [['yes'], ['TRUE'], ['1'], ['']] },
  url: {
    good: [
      ['https://example.org'],
      ['http://example.org:8080/a?b=c#d'],
      ['https://exämple.org/ü'],
      [`https://example.org/@${'😀'.repeat(2_027)}`],
    ],
    bad: [
      ['ftp://example.org'],
      ['javascript:alert(1)'],
      ['//example.org'],
      ['example.org'],
      ['https://'],
      ['https://a b.example'],
      ['https://user:secret@example.org'],
      ['https://@example.org'],
      ['https:///example.org'],
      ['https://example.org/\u202Egpj.exe'],
      [`https://example.org/${'x'.repeat(2048)}`],
      [''],
    ],
  },
}

describe('POST /columns/set', () => {
  test("200 returns the column's name as every read does, however the caller spelled its id", async () => {
    const answer = await set(ids.text.toUpperCase(), ['x'])
    expect(answer).toMatchObject({ status: 200, body: { column_id: ids.text } })
    await set(ids.text, [])
  })

  for (const type of columnTypes) {
    test(`200 and 400: what a column of the type ${type} accepts, and what it refuses`, async () => {
      for (const value of cases[type].good) {
        const answer = await set(ids[type], value)
        expect(answer.body, JSON.stringify(value)).toEqual({
          ok: true,
          message: 'The value was saved.',
          account_id: first,
          chat_id: 'platform:chat:1',
          column_id: ids[type],
          value,
        })
        expect(await valueIn(ids[type])).toEqual(value)
      }
      const kept = await valueIn(ids[type])
      for (const value of cases[type].bad) {
        const answer = await set(ids[type], value)
        expect(answer, JSON.stringify(value)).toMatchObject({
          status: 400,
          body: { code: 'invalid_column_value' },
        })
        expect(answer.body.error).toMatch(/^value .*[.]$/)
      }
      expect(await valueIn(ids[type])).toEqual(kept)
    })
  }

  test('200: an empty array clears, also a value that is already clear', async () => {
    await set(ids.text, ['x'])
    for (let time = 0; time < 2; time++) {
      expect(await set(ids.text, [])).toMatchObject({
        status: 200,
        body: { value: [], message: 'The value was cleared.' },
      })
      expect(await valueIn(ids.text)).toBeUndefined()
    }
  })

  test('a deleted option stays readable, cannot be set, and can be restored', async () => {
    const id = await column(own, 'multi_select')
    await set(id, ['a', 'b'])
    const { workspace_id } = own
    await deleteOption(service.app, 'cli:ana', { workspace_id, column_id: id, value: 'a' })
    expect(await valueIn(id)).toEqual(['a', 'b'])
    const { columns } = await read()
    expect(columns.find((each) => each.id === id)?.options.map(({ value }) => value)).toEqual(['b', 'c'])
    expect(await set(id, ['a', 'b'])).toMatchObject({ status: 400 })
    expect(await set(id, ['b'])).toMatchObject({ status: 200 })
    await addOption(service.app, 'cli:ana', { workspace_id, column_id: id, value: 'a', color: '#ff0000' })
    expect(await set(id, ['a'])).toMatchObject({ status: 200 })
  })

  test('400 for an invalid body', async () => {
    for (const value of [undefined, null, 'a', [1], [null], [['a']], {}, ['a\0'], Array(201).fill('a')]) {
      expect((await set(ids.text, value)).status, JSON.stringify(value)).toBe(400)
    }
    const body = { account_id: first, chat_id: 'platform:chat:x', column_id: ids.text, value: [] }
    expect(await service.post('/columns/set', { key: own.key, body })).toMatchObject({ status: 400 })
  })

  test("403 and 404 for other workspaces' accounts, chats and columns, revealing nothing of them", async () => {
    expect(await set(ids.text, ['x'], { account_id: foreign })).toMatchObject({
      status: 403,
      body: { code: 'account_unavailable' },
    })
    expect(await set(ids.text, ['x'], { key: other.key })).toMatchObject({ status: 403 })
    expect(await set(ids.text, ['x'], { account_id: foreign, key: other.key })).toMatchObject({
      status: 404,
      body: { code: 'column_not_found' },
    })
    for (const id of [theirs, 'nope', '0199a1f0-0000-7000-8000-000000000000']) {
      expect(await set(id, [])).toMatchObject({ status: 404, body: { code: 'column_not_found' } })
    }
    expect(await set(ids.text, ['x'], { chat: 99 })).toMatchObject({
      status: 404,
      body: { code: 'chat_not_found' },
    })
    expect((await read('', other.key)).values).toEqual([])
  })

  test('400 without account_id, unless extended finds the one account that has the chat', async () => {
    await service.chat({ account_id: second, workspace_id: own.workspace_id, id: '77' })
    const ask = (chat: number) =>
      service.post('/columns/set', {
        key: own.key,
        body: { chat_id: `platform:chat:${chat}`, column_id: ids.text, value: ['x'] },
      })
    expect(await ask(77)).toMatchObject({ status: 400, body: { code: 'account_scope_required' } })
    await service.open('extended')
    expect(await ask(77)).toMatchObject({ status: 200, body: { account_id: second } })
    expect(await ask(1)).toMatchObject({ status: 400, body: { code: 'account_scope_required' } })
    await service.shut('extended')
  })
})

describe('GET /columns', () => {
  test('200 with columns in order and their options, and values by account, chat and column', async () => {
    const { columns } = await read()
    expect(columns.slice(0, 3)).toEqual([
      {
        id: ids.select,
        name: 'A select',
        type: 'select',
        options: ['a', 'b', 'c'].map((value) => ({ value, color: 'blue' })),
      },
      expect.objectContaining({ type: 'multi_select' }),
      { id: ids.text, name: 'A text', type: 'text', options: [] },
    ])
  })

  test('200 page by page, each value once; of one account if it is named', async () => {
    for (const account_id of [first, second]) {
      for (let chat = 1; chat <= 6; chat++) {
        await set(ids.text, [`${chat}`], { account_id, chat })
        await set(ids.checkbox, ['true'], { account_id, chat })
      }
    }
    const whole = (await read()).values
    expect(whole.length).toBeGreaterThan(24)
    const seen: unknown[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Columns = await read(`?limit=4${cursor && `&cursor=${cursor}`}`)
      seen.push(...page.values)
      cursor = page.next_cursor
    }
    const sorted = (values: readonly unknown[]) => values.map((each) => JSON.stringify(each)).sort()
    expect(sorted(seen)).toEqual(sorted(whole))
    const one = (await read(`?account_id=${second}`)).values
    expect(sorted(one)).toEqual(sorted(whole.filter(({ account_id }) => account_id === second)))
  })

  test('200 in one answer over several batches', async () => {
    const tenant = await service.tenant('Long')
    const account_id = await service.account(tenant.workspace_id)
    const id = await column(tenant, 'text')
    const more = await column(tenant, 'text')
    await service.app.db.run(sql`
      insert into chats (account_id, chat_id, workspace_id, kind)
      select ${account_id}, n, ${tenant.workspace_id}, 'private' from generate_series(-1500, 1500) n`)
    await service.app.db.run(sql`
      insert into column_values (account_id, chat_id, column_id, workspace_id, value)
      select ${account_id}, n, c::uuid, ${tenant.workspace_id}, array['“' || n || '"\\']
      from generate_series(-1500, 1500) n, unnest(array[${id}, ${more}]) c`)
    const { values } = await read('', tenant.key)
    expect(values).toHaveLength(6_002)
    expect(new Set(values.map((each) => JSON.stringify(each))).size).toBe(6_002)
    expect(await deleteColumn(service.app, 'system', { workspace_id: tenant.workspace_id, id })).toEqual({
      id,
      values: 3_001,
    })
    expect((await read('', tenant.key)).values).toHaveLength(3_001)
  })

  test('400 for a bad limit and a cursor of another filter or workspace, 403 for a foreign account', async () => {
    const { next_cursor } = await read('?limit=1')
    for (const [path, key] of [
      ['?limit=0', own.key],
      ['?limit=1001', own.key],
      [`?limit=1&cursor=${next_cursor}&account_id=${first}`, own.key],
      [`?limit=1&cursor=${next_cursor}`, other.key],
    ]) {
      expect((await service.get(`/columns${path}`, { key: key ?? '' })).status, path).toBe(400)
    }
    expect(await service.get(`/columns?account_id=${foreign}`, { key: own.key })).toMatchObject({
      status: 403,
      body: { code: 'account_unavailable' },
    })
  })
})

describe('columns and their options', () => {
  const shape = async (workspace_id: string) =>
    (await listColumns(service.app.db, workspace_id)).map(({ name, options }) => [
      name,
      options.map(({ value }) => value).join(''),
    ])

  test('are renamed, recoloured and reordered; values follow a new name', async () => {
    const tenant = await service.tenant('Options')
    const { workspace_id, key } = tenant
    const account_id = await service.account(workspace_id)
    await makeChats(tenant, account_id, 3)
    const id = await column(tenant, 'multi_select')
    const option = (value: string, more: object) =>
      updateOption(service.app, 'cli:ana', { workspace_id, column_id: id, value, ...more })
    const at = (chat: number) => ({ account_id, key, chat })
    await set(id, ['a', 'b'], at(1))
    await set(id, ['b'], at(2))
    await set(id, ['c'], at(3))
    expect(await option('b', { name: 'B', color: 'red' })).toEqual({ value: 'B', color: 'red' })
    expect(await shape(workspace_id)).toEqual([['A multi_select', 'aBc']])
    expect(await valueIn(id, at(1))).toEqual(['a', 'B'])
    expect(await valueIn(id, at(2))).toEqual(['B'])
    expect(await valueIn(id, at(3))).toEqual(['c'])
    expect(await set(id, ['b'], at(1))).toMatchObject({ status: 400 })
    await option('c', { place: 1 })
    expect(await shape(workspace_id)).toEqual([['A multi_select', 'caB']])
    await expect(option('a', { name: 'B' })).rejects.toThrow('already')
    await expect(option('zzz', { color: 'red' })).rejects.toThrow('no option "zzz"')
    await expect(option('a', { color: 'url(x)' })).rejects.toThrow('not a colour')
    await expect(option('a', { name: '' })).rejects.toThrow('1 to 200')
    // A deleted option can give its values to another, which may have existed next to it.
    await deleteOption(service.app, 'system', { workspace_id, column_id: id, value: 'a' })
    await option('a', { name: 'B' })
    expect(await valueIn(id, at(1))).toEqual(['B'])
  })

  test('are named and reordered; those of another workspace do not exist', async () => {
    const { workspace_id } = await service.tenant('Columns')
    const made: string[] = []
    for (const name of ['x', 'y', 'z']) {
      made.push((await createColumn(service.app, 'system', { workspace_id, name, type: 'text' })).id)
    }
    const change = (id: string, more: object) =>
      updateColumn(service.app, 'system', { workspace_id, id, ...more })
    await change(made[2] ?? '', { place: 1, name: 'Z' })
    expect((await shape(workspace_id)).map(([name]) => name)).toEqual(['Z', 'x', 'y'])
    await expect(change(ids.text, { name: 'mine' })).rejects.toThrow('There is no column')
    await expect(deleteColumn(service.app, 'system', { workspace_id, id: ids.text })).rejects.toThrow(
      'There is no column',
    )
    const add = (column_id: string) =>
      addOption(service.app, 'system', { workspace_id, column_id, value: 'a' })
    await expect(add(ids.select)).rejects.toThrow('There is no column')
    await expect(add('nope')).rejects.toThrow('There is no column')
    await expect(add(made[0] ?? '')).rejects.toThrow('Only columns of the types')
    const create = (more: object) =>
      createColumn(service.app, 'system', { workspace_id, name: 'n', type: 'text', ...more })
    await expect(create({ name: ' ' })).rejects.toThrow('1 to 200')
    await expect(create({ type: 'blob' })).rejects.toThrow('one of select')
    await expect(create({ options: [{ value: 'a' }] })).rejects.toThrow('Only columns')
    await expect(create({ type: 'select', options: [{ value: 'a' }, { value: 'a' }] })).rejects.toThrow(
      'twice',
    )
  })
})
