/** An unknown stage or column: the error of every operation that takes one lists those that exist. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { addColumn } from '../columns/columns.ts'
import { addStages } from '../pipeline/pipeline.ts'

let service: Service
let few: Tenant
let many: Tenant
let empty: Tenant
const accounts = new Map<Tenant, string>()
let column_id: string

beforeAll(async () => {
  service = await openService()
  const { db } = service.app
  few = await service.tenant()
  many = await service.tenant()
  empty = await service.tenant()
  for (const tenant of [few, many, empty]) {
    const { workspace_id } = tenant
    const account_id = await service.account(workspace_id)
    await service.chat({ account_id, workspace_id })
    accounts.set(tenant, account_id)
  }
  await db.transaction(async (tx) => {
    await addStages(tx, few.workspace_id, [
      { key: 'won', label: 'Won' },
      { key: 'old', label: 'Old', hidden: true },
    ])
    column_id = await addColumn(tx, few.workspace_id, { name: 'The "plan"', type: 'text' })
    const numbers = Array.from({ length: 12 }, (_, at) => at)
    await addStages(
      tx,
      many.workspace_id,
      numbers.map((at) => ({ key: `s${at}`, label: 'S' })),
    )
    for (const at of numbers) await addColumn(tx, many.workspace_id, { name: `C${at}`, type: 'text' })
  })
})
afterAll(() => service.close())

const chat = (tenant: Tenant) => ({ account_id: accounts.get(tenant), chat_id: 'platform:chat:42' })
const absent = '0199a1f0-0000-7000-8000-00000000000a'

const moveTo = (stage_key: string, tenant = few) =>
  service.post('/pipeline/move', { key: tenant.key, body: { ...chat(tenant), stage_key } })
const setIn = (tenant: Tenant, id = absent) =>
  service.post('/columns/set', { key: tenant.key, body: { ...chat(tenant), column_id: id, value: [] } })
const sentence = ({ status, body }: Answer) => [status, body.code, body.error]

describe('POST /pipeline/move', () => {
  test('400 with the stages that are not hidden', async () => {
    expect(sentence(await moveTo('nowhere'))).toEqual([
      400,
      'invalid_stage',
      'There is no stage "nowhere". The stages are "new", "won".',
    ])
    expect(sentence(await moveTo('old'))).toEqual([
      400,
      'invalid_stage',
      'The stage "old" is hidden: no chat can be moved to it. The stages are "new", "won".',
    ])
  })

  test('400 with the first ten of many', async () => {
    const [, , error] = sentence(await moveTo('nowhere', many))
    const ten = ['new', ...Array.from({ length: 9 }, (_, at) => `s${at}`)].map((key) => `"${key}"`)
    expect(error).toBe(`There is no stage "nowhere". The first ten stages are ${ten.join(', ')}.`)
  })
})

describe('POST /columns/set', () => {
  test('404 with the columns, their names quoted', async () => {
    expect(sentence(await setIn(few))).toEqual([
      404,
      'column_not_found',
      `There is no column "${absent}" in this workspace. The columns are ${column_id} "The \\"plan\\"".`,
    ])
    expect(sentence(await setIn(few, 'Plan'))[2]).toContain(column_id)
  })

  test('404 with the first ten of many, and when there are none', async () => {
    const [, , error] = sentence(await setIn(many))
    expect(error).toMatch(/The first ten columns are [0-9a-f-]{36} "C0", .* "C9"\.$/)
    expect(sentence(await setIn(empty))[2]).toMatch(/in this workspace\. It has no columns\.$/)
  })
})

describe('GET /chats', () => {
  test('400 with the stages, 404 with the columns', async () => {
    const ask = (filter: string) => service.get(`/chats?account_id=${accounts.get(few)}&${filter}`, few)
    expect(sentence(await ask('stage_key=x'))[2]).toContain('The stages are "new", "won".')
    expect(sentence(await ask(`column_id=${absent}&column_value=x`))[2]).toContain(column_id)
  })
})

describe('POST /broadcast', () => {
  const ask = (key: string, audience: object) =>
    service.post('/broadcast', {
      key,
      body: { account_id: accounts.get(few), message_text: 'Hello', ...audience },
    })
  const inStage = { audience_type: 'stage', audience_ref: 'x' }
  const inColumn = { audience_type: 'column', audience_ref: absent, column_value: 'x' }

  test('400 with the stages, for a key that may read them', async () => {
    expect(sentence(await ask(few.key, inStage))[2]).toContain('The stages are "new", "won".')
  })

  test('400 without the stages and 404 without the columns, for a key with the scope send alone', async () => {
    const { key } = await service.key({ ...few, scopes: ['send'] })
    expect(sentence(await ask(key, inStage))).toEqual([
      400,
      'invalid_stage',
      'The stage "x" is unknown or hidden.',
    ])
    expect(sentence(await ask(key, inColumn))).toEqual([
      404,
      'column_not_found',
      `There is no column "${absent}" in this workspace.`,
    ])
  })
})
