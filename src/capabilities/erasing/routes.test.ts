/** Erasing a person over HTTP: what the preview counts, the act once for each key, and who may. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { createUser } from '../users/users.ts'
import { eraseNext } from './erasing.ts'

let service: Service
let own: Tenant
let account_id: string
let person_id: string
let number = 5100

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  account_id = await service.account(own.workspace_id)
})
afterAll(() => service.close())

beforeEach(async () => {
  const id = `${++number}`
  const { workspace_id } = own
  await service.chat({ account_id, workspace_id, id: id as '1', name: 'Ines', texts: ['one', 'two'] })
  const { body } = await service.get(`/people?q=platform:chat:${id}`, { key: own.key })
  person_id = (body.people as { id: string }[])[0]?.id ?? ''
})

const preview = (key = own.key) => service.get(`/people/${person_id}/erase`, { key })
const read = () => service.get(`/people/${person_id}/erasure`, { key: own.key })
async function erase(more: object = {}, { key = own.key, once = randomUUID() as string } = {}) {
  const { body } = await preview()
  return service.post(`/people/${person_id}/erase`, {
    key,
    body: { preview: body.preview, ...more },
    headers: { 'idempotency-key': once },
  })
}

describe('GET /people/{person_id}/erase', () => {
  test('200 with what goes and what stays, and it changes nothing', async () => {
    const first = await preview()
    expect(first.body).toMatchObject({
      person_id,
      removes: { messages: 2, chats: 1, files: 0, campaigns: 0, notes: 0, column_values: 0 },
      stays: { operations: 0 },
      erasure: null,
    })
    expect((await preview()).body).toEqual(first.body)
    expect((await read()).body).toEqual({ erasure: null })
  })
})

describe('POST /people/{person_id}/erase', () => {
  test('200 once for each key: a repeat returns the first answer and begins nothing', async () => {
    const once = randomUUID()
    const { body } = await preview()
    const ask = () =>
      service.post(`/people/${person_id}/erase`, {
        key: own.key,
        body: { preview: body.preview },
        headers: { 'idempotency-key': once },
      })
    const first = await ask()
    expect(first).toMatchObject({
      status: 200,
      body: { erasure: { state: 'waiting', cleared: 0, total: 2 } },
    })
    const again = await ask()
    expect([again.status, again.body]).toEqual([200, first.body])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect((await read()).body).toEqual(first.body)
    expect((await preview()).body.erasure).toEqual(first.body.erasure)
    const recorded = await service.app.db.rows(sql`
      select actor, detail::json ->> 'messages' as messages from audit
      where action = 'person.erasure_requested' and target = ${person_id}`)
    expect(recorded).toEqual([{ actor: `user:${own.user_id}`, messages: '2' }])
  })

  test('409 erasure_in_progress until it is done, then it can be asked for again', async () => {
    const first = await erase()
    expect(await erase()).toMatchObject({ status: 409, body: { code: 'erasure_in_progress' } })
    const { id } = first.body.erasure as { id: string }
    while (await eraseNext(service.app, new Set([id]))) {}
    // No search runs here, which would drop the words.
    await service.app.db.run(sql`delete from search_forgetting`)
    while (await eraseNext(service.app, new Set([id]))) {}
    expect((await read()).body.erasure).toMatchObject({ id, state: 'done', cleared: 2 })
    expect((await preview()).body.removes).toMatchObject({ messages: 0, chats: 0, names: 0 })
    expect((await erase()).status).toBe(200)
  })

  test('409 preview_outdated once more is stored than was shown', async () => {
    const { body } = await preview()
    const { workspace_id } = own
    await service.chat({
      account_id,
      workspace_id,
      id: `${number}` as '1',
      name: 'Ines',
      texts: ['one', 'two', 'three'],
    })
    const answer = await service.post(`/people/${person_id}/erase`, {
      key: own.key,
      body: { preview: body.preview },
      headers: { 'idempotency-key': randomUUID() },
    })
    expect(answer).toMatchObject({ status: 409, body: { code: 'preview_outdated' } })
  })

  test('from the answer on their chat is not in the account: 404, also before a worker has begun', async () => {
    await erase()
    // As a transaction that was storing it meanwhile leaves it.
    const { workspace_id } = own
    await service.chat({ account_id, workspace_id, id: `${number}` as '1', name: 'Ines', texts: [] })
    const chat = `/chats/platform:chat:${number}`
    expect(await service.get(`${chat}?account_id=${account_id}`, { key: own.key })).toMatchObject({
      status: 404,
      body: { code: 'chat_not_found' },
    })
  })

  test('from the answer on no list has them: chats, contacts, search; also before a worker has begun', async () => {
    const { key } = own
    const lists = [
      () => service.get(`/chats?account_id=${account_id}`, { key }),
      () => service.get(`/contacts?account_id=${account_id}`, { key }),
      ...[{ query: 'two' }, { time_after: '2000-01-01T00:00:00Z' }].map(
        (body) => () => service.post('/search', { key, body: { account_id, ...body } }),
      ),
    ]
    const shown = async () => {
      const answers = await Promise.all(lists.map((list) => list()))
      expect(answers.map(({ status }) => status)).toEqual(lists.map(() => 200))
      return answers.map(({ body }) => JSON.stringify(body).includes(`${number}`))
    }
    expect(await shown()).toEqual(lists.map(() => true))
    expect((await erase()).body).toMatchObject({ erasure: { state: 'waiting' } })
    expect(await shown()).toEqual(lists.map(() => false))
  })

  test('403 for the key of a member, whatever its scopes', async () => {
    const { workspace_id } = own
    const email = `${randomUUID()}@acme.example`
    const { id: user_id } = await createUser(service.app, 'system', { email, workspace_id, role: 'member' })
    const { key, id } = await service.key({ workspace_id, user_id })
    // What an operator issues has what the operator gave it.
    await service.app.db.run(sql`update keys set issued_by = 'user' where id = ${id}`)
    await service.settle()
    expect(await preview(key)).toMatchObject({ status: 403, body: { code: 'missing_role' } })
    expect(await erase({}, { key })).toMatchObject({ status: 403, body: { code: 'missing_role' } })
    expect((await read()).body).toEqual({ erasure: null })
  })

  test('403 for a key without the scope', async () => {
    const { workspace_id, user_id } = own
    const { key } = await service.key({ workspace_id, user_id, scopes: ['people', 'people_export', 'write'] })
    expect(await erase({}, { key })).toMatchObject({ status: 403, body: { code: 'missing_scope' } })
  })
})
