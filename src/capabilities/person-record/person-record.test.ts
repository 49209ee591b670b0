import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { insertCampaign } from '../../../test/harness/campaigns.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import type { AccountKey } from '../../contract.ts'
import { moveClock } from '../../db/domain-clock.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import type { Person } from '../../platform/port.ts'
import { createColumn } from '../columns/columns.ts'
import { storeContacts } from '../contacts/contacts.ts'
import { addSuppression } from '../suppressions/suppressions.ts'

let service: Service
let own: Tenant
let other: Tenant
let a: AccountKey
let b: AccountKey
let theirs: AccountKey

beforeAll(async () => {
  service = await openService({ env: { PARLEY_CLOCK: 'manual' } })
})
beforeEach(async () => {
  own = await service.tenant('Own')
  other = await service.tenant('Other')
  a = await account(own)
  b = await account(own)
  theirs = await account(other)
})
afterAll(() => service.close())

async function account({ workspace_id }: Tenant): Promise<AccountKey> {
  return { workspace_id, account_id: await service.account(workspace_id) }
}

const person = (id: string, more: Partial<Person> = {}): Person => ({
  ...{ id, name: 'Ines García', username: null, phone: null, kind: 'person' },
  ...more,
})
const stores = (by: AccountKey, ...people: readonly Person[]) =>
  service.app.db.transaction((tx) => storeContacts(tx, by, people))

async function later(seconds = 60): Promise<string> {
  const { db } = service.app
  const { now } = await db.one<{ now: Date }>(sql`select domain_now() as now`)
  const at = new Date(now.getTime() + seconds * 1_000)
  await moveClock(db, at)
  return at.toISOString()
}

interface Found {
  readonly id: string
  readonly platform_id: string
  readonly name: string | null
  readonly names: readonly string[]
  readonly suppressed: boolean
}

async function find(q: string, { key = own.key, limit = 50 } = {}): Promise<Found[]> {
  const found: Found[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const more: string = cursor && `&cursor=${cursor}`
    const { status, body } = await service.get(`/people?limit=${limit}&q=${encodeURIComponent(q)}${more}`, {
      key,
    })
    expect(status, JSON.stringify(body)).toBe(200)
    found.push(...(body.people as Found[]))
    cursor = body.next_cursor as string | null
  }
  return found
}
const numbers = (found: readonly Found[]) => found.map(({ platform_id }) => platform_id)

interface PersonRecord {
  readonly names: readonly Record<string, unknown>[]
  readonly suppressions: readonly Record<string, unknown>[]
  readonly campaigns: readonly Record<string, unknown>[]
  readonly [part: string]: unknown
}

async function read(id: string, key = own.key): Promise<PersonRecord> {
  const { status, body } = await service.get(`/people/${id}`, { key })
  expect(status, JSON.stringify(body)).toBe(200)
  return body.person as unknown as PersonRecord
}

const idOf = async (q: string) => (await find(q))[0]?.id ?? ''

describe('GET /people', () => {
  test('200 by every name, in any spelling, with one person for all accounts', async () => {
    await stores(a, person('4711', { username: 'Ines_Garcia', phone: '+49 (0)170 5550101' }))
    await stores(b, person('4711', { name: 'Ines from the fair', username: 'Ines_Garcia' }))
    const spellings = [
      ...['Ines', 'garcia in', 'GARC', 'from the fair', 'ines_garcia', '@INES_garcia', 't.me/Ines_Garcia'],
      ...[
        'https://t.me/ines_garcia',
        '+49 170 5550101',
        '0049 170 555 01 01',
        '+4901705550101',
        '491705550101',
      ],
      ...['4711', 'platform:chat:4711'],
    ]
    const [{ id } = { id: '' }] = await find('4711')
    for (const q of spellings) {
      expect([q, await find(q)]).toEqual([
        q,
        [
          {
            id,
            platform: 'sandbox',
            platform_id: '4711',
            name: expect.stringMatching(/^Ines/),
            names: ['phone:491705550101', 'username:ines_garcia'],
            suppressed: false,
          },
        ],
      ])
    }
    for (const q of [
      'nobody',
      'nes',
      '4712',
      '+49170555010',
      "%' or 1=1 --",
      'platform:chat:-4711',
      '-4711',
    ]) {
      expect([q, await find(q)]).toEqual([q, []])
    }
  })

  test('200 by a former name, after whom it leads to now', async () => {
    await stores(a, person('1', { username: 'design' }))
    await later()
    await stores(a, person('2', { username: 'design' }))
    expect(numbers(await find('@design'))).toEqual(['1', '2'])
    expect((await find('@design')).map(({ names }) => names)).toEqual([[], ['username:design']])
  })

  test.each([1, 2, 200])('200 returns everybody once, %i at a time, exact matches first', async (limit) => {
    const crowd = Array.from({ length: 5 }, (_, at) => person(String(900 - at), { name: `Ana ${at}` }))
    await stores(a, ...crowd)
    await stores(b, ...crowd, person('3', { name: 'Ana Exact' }), person('1000', { username: 'ana' }))
    expect(numbers(await find('ana', { limit }))).toEqual(['1000', '3', '896', '897', '898', '899', '900'])
  })

  test('200 without the people of another workspace, by any name', async () => {
    const same = { name: 'Canary Bird', username: 'canary_bird', phone: '+491705550199' }
    await stores(theirs, person('815', same))
    for (const q of ['canary', '@canary_bird', '+491705550199', '815', 'platform:chat:815']) {
      expect([q, await find(q)]).toEqual([q, []])
      expect([q, numbers(await find(q, { key: other.key }))]).toEqual([q, ['815']])
    }
  })

  test("200 with what own accounts call a person, and not another workspace's", async () => {
    await stores(theirs, person('77', { name: 'Secret name' }))
    await stores(a, person('77', { name: '', username: 'known_here' }))
    expect((await find('77')).map(({ name }) => name)).toEqual([null])
  })

  test('200 with a person whom only a chat knows: they get an id that stays', async () => {
    await service.app.db.run(sql`
      insert into chats (account_id, workspace_id, chat_id, kind, name)
      values (${a.account_id}, ${own.workspace_id}, 5050, 'private', 'Only a chat'),
        (${a.account_id}, ${own.workspace_id}, -5050, 'group', 'A group')`)
    const [first] = await find('platform:chat:5050')
    expect(first).toMatchObject({ platform_id: '5050', name: 'Only a chat', names: [] })
    expect((await find('5050'))[0]?.id).toBe(first?.id)
    expect(await find('platform:chat:-5050')).toEqual([])
  })

  test('200 says whom the suppression list stops', async () => {
    const { workspace_id } = own
    await stores(a, person('1', { username: 'first' }), person('2', { username: 'second' }), person('3'))
    await later()
    await stores(a, person('1', { username: 'first_new' }))
    await later()
    await addSuppression(service.app, 'cli:ana', { workspace_id, username: 'first' })
    await addSuppression(service.app, 'cli:ana', { workspace_id, username: 'second' })
    await addSuppression(service.app, 'cli:ana', { workspace_id, platform_id: '3' })
    const stopped = (await find('ines')).map(({ platform_id, suppressed }) => [platform_id, suppressed])
    expect(stopped).toEqual([
      ['1', false],
      ['2', true],
      ['3', true],
    ])
  })

  test('400 for parameters that are invalid, and a cursor of another question', async () => {
    for (const query of [
      '',
      'q=',
      'q=%20',
      `q=${'x'.repeat(201)}`,
      'q=a&limit=0',
      'q=a&limit=201',
      'q=%00',
      'q=a&q=b',
    ]) {
      expect([query, (await service.get(`/people?${query}`, { key: own.key })).status]).toEqual([query, 400])
    }
    await stores(a, person('1'), person('2'))
    const { body } = await service.get('/people?q=ines&limit=1', { key: own.key })
    const again = await service.get(`/people?q=ine&cursor=${body.next_cursor}`, { key: own.key })
    expect([again.status, again.body.code]).toEqual([400, 'invalid_cursor'])
  })
})

describe('GET /people/{person_id}', () => {
  test('200 with the names, since when, until when, and which account saw them', async () => {
    const since = await later()
    await stores(a, person('42', { username: 'design', phone: '+491705550101' }))
    const renamed = await later()
    await stores(b, person('42', { name: 'Ines B', username: 'ines' }))
    const { names } = await read(await idOf('42'))
    const current = { since: null, last_seen_at: null, until: null }
    const seen = { source: 'platform', account_id: a.account_id, since, last_seen_at: since }
    expect(names).toEqual([
      ...[
        { kind: 'name', value: 'Ines B', account_id: b.account_id, source: 'contact', ...current },
        { kind: 'name', value: 'Ines García', account_id: a.account_id, source: 'contact', ...current },
        { kind: 'phone', value: '491705550101', ...seen, until: null },
        {
          ...{ kind: 'username', value: 'ines', account_id: b.account_id, source: 'platform' },
          ...{ since: renamed, last_seen_at: renamed, until: null },
        },
      ],
      { kind: 'username', value: 'design', ...seen, until: renamed },
    ])
  })

  test('200 with the chats of both accounts, notes, column values, and what was sent by whom', async () => {
    const { workspace_id, user_id } = own
    for (const { account_id } of [a, b]) {
      await service.chat({ account_id, workspace_id, id: '42', name: 'Ines', texts: ['hello'] })
      await service.chat({ account_id, workspace_id, id: '43', name: 'Somebody', texts: ['other'] })
    }
    const chat_id = 'platform:chat:42'
    const column = await createColumn(service.app, 'system', { workspace_id, name: 'City', type: 'text' })
    const { db } = service.app
    await db.run(sql`
      insert into column_values (account_id, chat_id, column_id, workspace_id, value)
      values (${a.account_id}, 42, ${column.id}, ${workspace_id}, '{Dubai}'),
        (${a.account_id}, 43, ${column.id}, ${workspace_id}, '{Rome}')`)
    await db.run(sql`
      insert into notes (id, workspace_id, account_id, chat_id, author_id, text)
      select gen_random_uuid(), ${workspace_id}, ${b.account_id}, number, ${user_id}, 'note on ' || number
      from unnest('{42,43}'::bigint[]) number`)
    const operation = newId()
    await db.run(sql`
      insert into operations (id, workspace_id, kind, effect, fingerprint, state, reply_status, account_id, chat_id, user_id,
        random_id)
      values (${operation}, ${workspace_id}, 'send_message', 'platform', ${Buffer.alloc(32)}, 'completed', 200,
        ${a.account_id}, 42, ${user_id}, 99)`)
    await db.run(sql`
      insert into messages (account_id, workspace_id, chat_id, id, text, is_sender, sent_at, random_id)
      values (${a.account_id}, ${workspace_id}, 42, 90, 'ours', true, domain_now(), 99),
        (${a.account_id}, ${workspace_id}, 42, 91, 'from the phone', true, domain_now(), null)`)
    const record = await read(await idOf(chat_id))
    expect(record).toMatchObject({ platform: 'sandbox', platform_id: '42', name: 'Ines', suppressions: [] })
    expect((record.chats as { account_id: string }[]).map((chat) => chat.account_id).sort()).toEqual(
      [a.account_id, b.account_id].sort(),
    )
    expect(record.columns).toEqual([
      expect.objectContaining({
        account_id: a.account_id,
        chat_id,
        column_id: column.id,
        name: 'City',
        value: ['Dubai'],
      }),
    ])
    expect(record.notes).toEqual([
      expect.objectContaining({ account_id: b.account_id, chat_id, text: 'note on 42' }),
    ])
    expect(record.sent).toMatchObject([
      { message_id: '91', state: 'accepted', by: { kind: 'elsewhere' }, operation_id: null },
      { message_id: '90', state: 'accepted', by: { kind: 'user', user_id }, operation_id: operation },
    ])
    expect(JSON.stringify(record)).not.toMatch(/hello|ours|Rome|Somebody/)
  })

  test('200 with the entries that stop them, and none of another time of a name', async () => {
    const { workspace_id } = own
    await stores(a, person('1', { username: 'early' }))
    await addSuppression(service.app, 'cli:ana', { workspace_id, username: 'early' })
    await later()
    await stores(a, person('1', { username: 'late' }), person('2', { username: 'early' }))
    await later()
    await stores(a, person('1', { username: 'now' }))
    await later()
    await addSuppression(service.app, 'cli:ana', { workspace_id, username: 'late' })
    await addSuppression(service.app, 'cli:ana', { workspace_id: other.workspace_id, username: 'now' })
    const { suppressions } = await read(await idOf('@now'))
    expect(suppressions.map(({ kind, value, source }) => [kind, value, source])).toEqual([
      ['username', 'early', 'operator'],
    ])
  })

  test('200 with the campaigns by chat and by name, with their outcome, and none of somebody else', async () => {
    const { workspace_id } = own
    const { db } = service.app
    await stores(a, person('1', { username: 'ines' }), person('2', { username: 'mara' }))
    const chats = [{ account_id: a.account_id, person_id: 1 }]
    const byChat = await insertCampaign(db, own, { chats })
    const contacts = [{ contact: 'username:ines', name: 'Ines' }, { contact: 'username:mara' }]
    const byName = await insertCampaign(db, own, { kind: 'contacts', contacts })
    const tied = await insertCampaign(db, own, { kind: 'contacts', contacts })
    await db.run(sql`
      update campaign_recipients set person_id = (
        select id from people where workspace_id = ${workspace_id} and number = 2)
      where campaign_id = ${tied} and contact = 'username:ines'`)
    await db.run(sql`
      update campaign_recipients set status = 'cancelled', reason = 'requested', ended_at = domain_now()
      where campaign_id in (${byName}, ${byChat})`)
    const theirsToo = await insertCampaign(db, other, { kind: 'contacts', contacts })
    const ids = async (q: string) => (await read(await idOf(q))).campaigns.map(({ id }) => id)
    const { campaigns } = await read(await idOf('@ines'))
    expect(campaigns.map(({ id }) => id).sort()).toEqual([byChat, byName].sort())
    expect(campaigns.find(({ id }) => id === byName)).toMatchObject({
      ...{ contact: 'username:ines', given_name: 'Ines', recipient_status: 'cancelled', reason: 'requested' },
      ...{ step: 0, opted_out: false, account_id: null },
    })
    expect((await ids('@mara')).sort()).toEqual([byName, tied].sort())
    expect(await ids('@mara')).not.toContain(theirsToo)
  })

  test('200 without a campaign that was made after the name had passed on', async () => {
    const { db } = service.app
    await stores(a, person('1', { username: 'design' }))
    await later()
    await stores(a, person('2', { username: 'design' }))
    await later()
    const contacts = [{ contact: 'username:design' }]
    const made = await insertCampaign(db, own, { kind: 'contacts', contacts })
    expect((await read(await idOf('1'))).campaigns).toEqual([])
    expect((await read(await idOf('2'))).campaigns).toMatchObject([{ id: made }])
  })

  test('200 without what another workspace knows of the same number', async () => {
    await stores(a, person('42'))
    await stores(theirs, person('42', { name: 'Canary' }))
    await service.chat({ ...theirs, id: '42', name: 'Canary', texts: ['canary'] })
    const record = await read(await idOf('42'))
    expect(record.chats).toEqual([])
    expect(JSON.stringify(record)).not.toMatch(/canary/i)
  })

  test('404 for a person of another workspace, and an id that is none', async () => {
    await stores(theirs, person('42'))
    const [{ id } = { id: '' }] = await find('42', { key: other.key })
    await read(id, other.key)
    for (const asked of [id, newId(), 'x', '42']) {
      const { status, body } = await service.get(`/people/${asked}`, { key: own.key })
      expect([asked, status, body.code]).toEqual([asked, 404, 'not_found'])
    }
  })
})
