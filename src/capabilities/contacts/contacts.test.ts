import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { storeContacts } from './contacts.ts'

let service: Service
let own: Tenant
let first: string
let second: string

const names = [
  'Ines García',
  'Олег Иванов',
  'Zoë Ångström',
  '田中 美咲',
  "Conor O'Brien",
  'ines garcia',
  '%_*:&|!',
]

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  first = await service.account(own.workspace_id)
  second = await service.account(own.workspace_id)
  for (const account_id of [first, second]) {
    const people = names.map((name, at) => ({
      id: String(at + 1),
      name,
      username: `person_${at + 1}`,
      phone: '+15550100000',
      kind: 'person' as const,
    }))
    const account = { account_id, workspace_id: own.workspace_id }
    await service.app.db.transaction((tx) => storeContacts(tx, account, people))
  }
})
afterAll(() => service.close())

interface Page {
  readonly contacts: readonly { account_id: string; provider_id: string; name: string }[]
  readonly next_cursor: string | null
}

async function walk(query: string): Promise<Page['contacts'][number][]> {
  const seen: Page['contacts'][number][] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { status, body } = await service.get(`/contacts?${query}${cursor && `&cursor=${cursor}`}`, {
      key: own.key,
    })
    expect(status, JSON.stringify(body)).toBe(200)
    const page = body as unknown as Page
    seen.push(...page.contacts)
    cursor = page.next_cursor
  }
  return seen
}

describe('GET /contacts', () => {
  test('200 by name, without phone numbers', async () => {
    const { body } = await service.get(`/contacts?account_id=${first}&q=conor`, { key: own.key })
    expect(body).toEqual({
      contacts: [{ account_id: first, provider_id: '5', name: "Conor O'Brien", username: 'person_5' }],
      next_cursor: null,
      has_more: false,
    })
  })

  test.each([1, 3, 200])('200 returns every contact of every account once, %i at a time', async (limit) => {
    const seen = await walk(`limit=${limit}`)
    expect(seen).toHaveLength(names.length * 2)
    expect(new Set(seen.map((each) => `${each.account_id}/${each.provider_id}`)).size).toBe(names.length * 2)
    expect(await walk(`limit=${limit}&account_id=${first}`)).toHaveLength(names.length)
  })

  test.each([
    ['garcia', ['Ines García', 'ines garcia']],
    ['INES GAR', ['Ines García', 'ines garcia']],
    ['иван', ['Олег Иванов']],
    ['angstrom', ['Zoë Ångström']],
    ['zoe', ['Zoë Ångström']],
    ['田中', ['田中 美咲']],
    ['brien', ["Conor O'Brien"]],
    ['nobody', []],
    ["%' or 1=1 --", []],
    ['&|!:*', []],
  ])('200 finds %s', async (q, expected) => {
    const found = await walk(`account_id=${first}&q=${encodeURIComponent(q)}`)
    expect(found.map(({ name }) => name).sort()).toEqual([...expected].sort())
  })

  test('400 for invalid parameters, 403 for a foreign account, 503 while the CRM is closed', async () => {
    const get = (query: string) => service.get(`/contacts?${query}`, { key: own.key })
    for (const query of ['limit=0', 'limit=201', 'q=', 'q=%20', `q=${'x'.repeat(201)}`, 'q=a&q=b', 'q=%00']) {
      expect(await get(query), query).toMatchObject({ status: 400 })
    }
    const other = await service.tenant('Other')
    const theirs = await service.account(other.workspace_id)
    expect(await get(`account_id=${theirs}`)).toMatchObject({
      status: 403,
      body: { code: 'account_unavailable' },
    })
    expect((await service.get('/contacts', { key: other.key })).body.contacts).toEqual([])
    await service.shut('crm')
    expect(await get('limit=5')).toMatchObject({ status: 503, body: { code: 'feature_disabled' } })
    await service.open('crm')
  })
})
