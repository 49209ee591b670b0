/** Saved replies at the dashboard. `test/people.test.ts` tests who may call which route, and about whose replies. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { hangMs, until } from '../../../test/harness/process.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { createSavedReply } from './saved-replies.ts'

let service: Service
let own: Tenant
let other: Tenant
let cookie: string
let foreign: string

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  other = await service.tenant('Other')
  cookie = await signIn(service, own.user_id)
  foreign = await signIn(service, other.user_id)
})
afterAll(() => service.close())
beforeEach(() => service.app.db.run(sql`delete from saved_replies`))

const ask = (method: string, path = '', body?: unknown) =>
  askDashboard(service, method, `/w/${own.workspace_id}/saved_replies${path}`, { cookie, body })
const askOther = (method: string, path = '', body?: unknown) =>
  askDashboard(service, method, `/w/${other.workspace_id}/saved_replies${path}`, { cookie: foreign, body })

interface SavedReply {
  readonly id: string
  readonly title: string
  readonly text: string
}

async function create(body: object = { title: 'Hours', text: 'Monday to Friday' }): Promise<SavedReply> {
  const made = await ask('POST', '', body)
  expect(made.status).toBe(201)
  return made.body.saved_reply as SavedReply
}

async function list(): Promise<readonly SavedReply[]> {
  return (await ask('GET')).body.saved_replies as SavedReply[]
}

/** Fills a workspace up to this many. */
function fill({ workspace_id }: Tenant, count: number): Promise<number> {
  return service.app.db.run(sql`
    insert into saved_replies (id, workspace_id, title, text)
    select gen_random_uuid(), ${workspace_id}, 'Reply ' || n, 'text' from generate_series(1, ${count}::int) n`)
}

describe('POST /saved_replies', () => {
  test('201, and the list has it by title', async () => {
    const hours = await create()
    const address = await create({ title: 'Address', text: ' Main street 1\n' })
    expect(hours).toEqual({
      id: expect.any(String),
      title: 'Hours',
      text: 'Monday to Friday',
      updated_at: expect.any(String),
    })
    expect(await list()).toEqual([address, hours])
    expect(address.text).toBe(' Main street 1\n')
  })

  test('201 with the longest title and text, in code points', async () => {
    const long = { title: '😀'.repeat(100), text: '😀'.repeat(4_096) }
    expect(await create(long)).toMatchObject(long)
  })

  test.each([
    [{}, 'invalid_request'],
    [{ title: 'x' }, 'invalid_request'],
    [{ text: 'x' }, 'invalid_request'],
    [{ title: '', text: 'x' }, 'invalid_request'],
    [{ title: ' \n', text: 'x' }, 'invalid_request'],
    [{ title: 'x', text: '' }, 'invalid_request'],
    [{ title: 'x'.repeat(101), text: 'x' }, 'invalid_request'],
    [{ title: 'x', text: 'x'.repeat(4_097) }, 'invalid_request'],
    [{ title: 'x', text: null }, 'invalid_request'],
    [{ title: ['x'], text: 'x' }, 'invalid_request'],
    [{ title: 'x', text: 'x', id: '1' }, 'invalid_request'],
    [{ title: 'x', text: 'x', workspace_id: '1' }, 'invalid_request'],
    [{ title: 'x\u0000', text: 'x' }, 'invalid_text'],
    [{ title: 'x', text: 'x\ud800' }, 'invalid_text'],
    [[], 'invalid_request'],
    [1, 'invalid_request'],
  ])('400 for %j, and stores nothing', async (body, code) => {
    expect(await ask('POST', '', body)).toMatchObject({ status: 400, body: { code } })
    expect(await list()).toEqual([])
  })

  const last = { title: 'Last', text: 'text' }

  test('409 for the 501st; another workspace is not affected, and a deletion makes room', async () => {
    await fill(own, 499)
    const { id } = await create(last)
    expect(await ask('POST', '', last)).toMatchObject({
      status: 409,
      body: {
        code: 'conflict',
        error: 'A workspace can have at most 500 saved replies. Delete one first.',
      },
    })
    expect(await list()).toHaveLength(500)
    expect((await askOther('POST', '', last)).status).toBe(201)
    expect((await ask('DELETE', `/${id}`)).status).toBe(200)
    expect((await ask('POST', '', last)).status).toBe(201)
  })

  test('409 while another request that has not committed stores the 500th', async () => {
    const { db } = service.app
    await fill(own, 499)
    let answered = false
    const { asked } = await db.transaction(async (tx) => {
      await createSavedReply(tx, { workspace_id: own.workspace_id, ...last })
      const asked = ask('POST', '', last).finally(() => {
        answered = true
      })
      await until('the request is answered or waits for the lock', hangMs, async () => {
        const waiting = await db.maybe(sql`
          select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
        return answered || waiting !== undefined
      })
      return { asked }
    })
    expect((await asked).status).toBe(409)
    expect(await list()).toHaveLength(500)
  })
})

describe('PATCH /saved_replies/{saved_reply_id}', () => {
  test('200 changes what is named and nothing else', async () => {
    const { id } = await create()
    const answer = await ask('PATCH', `/${id}`, { title: 'Opening hours' })
    expect(answer).toMatchObject({
      status: 200,
      body: { saved_reply: { id, title: 'Opening hours', text: 'Monday to Friday' } },
    })
    await ask('PATCH', `/${id}`, { text: 'Every day' })
    expect(await list()).toMatchObject([{ id, title: 'Opening hours', text: 'Every day' }])
  })

  test.each([{}, { title: '' }, { title: null }, { text: 'x'.repeat(4_097) }, { id: 'x', title: 'x' }])(
    '400 for %j, and changes nothing',
    async (body) => {
      const { id } = await create()
      const before = await list()
      expect((await ask('PATCH', `/${id}`, body)).status).toBe(400)
      expect(await list()).toEqual(before)
    },
  )

  test("404 for another workspace's, which stays as it was", async () => {
    const { id } = await create()
    const before = await list()
    expect(await askOther('PATCH', `/${id}`, { title: 'theirs' })).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
    })
    expect(await list()).toEqual(before)
  })
})

describe('DELETE /saved_replies/{saved_reply_id}', () => {
  test('200 deletes this one; 404 for a repeat', async () => {
    const { id } = await create()
    const kept = await create({ title: 'Address', text: 'Main street 1' })
    expect(await ask('DELETE', `/${id}`)).toMatchObject({ status: 200, body: { deleted: true } })
    expect(await ask('DELETE', `/${id}`)).toMatchObject({ status: 404, body: { code: 'not_found' } })
    expect(await list()).toEqual([kept])
  })

  test("404 for another workspace's, which stays", async () => {
    const { id } = await create()
    expect((await askOther('DELETE', `/${id}`)).status).toBe(404)
    expect(await list()).toMatchObject([{ id }])
  })
})
