import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../../test/harness/service.ts'
import { type Asking, openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'
import { storeContacts } from '../contacts/contacts.ts'
import { learnPeople } from '../people/people.ts'
import { entriesPage } from './suppression-page.ts'
import { noteOptOuts } from './suppressions.ts'

let service: Service
let team: Team
let other: Team
let member: Asking

beforeAll(async () => {
  service = await openService()
  team = await openTeam(service)
  other = await openTeam(service, 'Other')
  member = (await team.join('member')).ask
})
afterAll(() => service.close())

interface Entry {
  readonly kind: string
  readonly value: string
  readonly source: string
}

async function list(query = '', ask: Asking = team.ask) {
  const { status, body } = await ask('GET', `/suppressions${query}`)
  expect([status, body.error]).toEqual([200, undefined])
  return body as unknown as { suppressions: Entry[]; next_cursor: string | null }
}

const values = ({ suppressions }: { suppressions: Entry[] }) => suppressions.map(({ value }) => value)
const add = (kind: string, value: string, ask: Asking = team.ask) =>
  ask('POST', '/suppressions', { kind, value })
const remove = (body: object, ask: Asking = team.ask) => ask('POST', '/suppressions/remove', body)

describe('POST /suppressions', () => {
  test('200 for a member, in any spelling and once; another workspace has its own list', async () => {
    const added = await add('username', '@Ada_L', member)
    expect(added.body).toEqual({ suppression: { kind: 'username', value: 'ada_l' }, added: true })
    expect((await add('username', 'ada_l')).body).toMatchObject({ added: false })
    expect(await list()).toMatchObject({
      suppressions: [{ kind: 'username', value: 'ada_l', source: 'operator', evidence: {} }],
    })
    expect((await list('', other.ask)).suppressions).toEqual([])
    const refused = await add('phone', 'no number')
    expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining('not a phone number')])
  })
})

describe('the people of an entry', () => {
  const person = (id: string, username: string | null, phone: string | null = null) =>
    ({ id, name: '', username, phone, kind: 'person' }) as const
  const learn = (of: Team, ...people: readonly ReturnType<typeof person>[]) =>
    learnPeople(service.app.db, of, people)
  const peopleOf = async (team_: Team, search: string) =>
    (await team_.ask('GET', `/suppressions?search=${search}`)).body.suppressions

  test('200 with their other names, and since when the name is of somebody else', async () => {
    const own = await openTeam(service, 'Names')
    await learn(own, person('501', 'old_name', '491700000001'))
    await learn(other, person('900', 'old_name'))
    await add('username', 'old_name', own.ask)
    await learn(own, person('501', 'new_name', '491700000001'))
    await learn(own, person('502', 'old_name'))
    const time = expect.any(String)
    const renamed = { platform_id: '501', names: ['phone:491700000001', 'username:new_name'] }
    expect(await peopleOf(own, 'old_name')).toMatchObject([
      {
        value: 'old_name',
        people: [
          { platform_id: '502', names: [], since: time, until: null, released: true },
          { ...renamed, since: time, until: time, released: true },
        ],
      },
    ])
    // Another entry stops one of them as well.
    await add('phone', '+49 170 0000001', own.ask)
    const removal = { kind: 'username', value: '@Old_Name', reason: 'A mistake.' }
    const removed = await own.ask('POST', '/suppressions/remove', removal)
    expect(removed.body).toMatchObject({
      removed: true,
      people: [
        { platform_id: '502', released: true },
        { platform_id: '501', released: false },
      ],
    })
    await add('platform_id', '501', own.ask)
    expect(await peopleOf(own, '501')).toMatchObject([
      { people: [{ platform_id: '501', names: renamed.names, since: null, until: null, released: false }] },
    ])
  })

  test('200 without those who gave the name up before it was listed', async () => {
    const own = await openTeam(service, 'Names')
    await learn(own, person('503', 'early'))
    await learn(own, person('503', 'late'))
    await add('username', 'early', own.ask)
    expect(await peopleOf(own, 'early')).toMatchObject([{ value: 'early', people: [] }])
  })
})

describe('GET /chats/{chat_id}/suppression', () => {
  const chat = (of: Team, id: `${number}`, name = 'Ines García') =>
    service.chat({ account_id: of.account_id, workspace_id: of.workspace_id, id, name })
  const entriesOf = async (of: Team, id: string) => {
    const path = `/chats/platform:chat:${id}/suppression?account_id=${of.account_id}`
    const { status, body } = await of.ask('GET', path)
    expect([status, body.error]).toEqual([200, undefined])
    return body.entries as { kind: string; value: string; source: string; evidence: object }[]
  }
  /** What the list of chats says of it. */
  const isMarked = async (of: Team, id: string) => {
    const { body } = await of.ask('GET', '/inbox')
    const chats = body.chats as { id: string; suppressed: boolean }[]
    return chats.find((one) => one.id === `platform:chat:${id}`)?.suppressed
  }
  const hasAsked = async (of: Team, id: string) => {
    const { body } = await of.ask('GET', '/inbox')
    const chats = body.chats as { id: string; asked_to_stop: boolean }[]
    return chats.find((one) => one.id === `platform:chat:${id}`)?.asked_to_stop
  }
  const seen = (id: string, username: string | null) =>
    ({ id, name: '', username, phone: null, kind: 'person' }) as const

  test('200 with every entry that stops the person, requests to stop first, and none while the list has nobody', async () => {
    const own = await openTeam(service, 'Chat')
    await chat(own, '42')
    await chat(own, '43')
    expect([await entriesOf(own, '42'), await isMarked(own, '42')]).toEqual([[], false])
    // Put on the list by a person, even if they ask to stop later: the first entry stays.
    await add('platform_id', '43', own.ask)
    expect([await isMarked(own, '43'), await hasAsked(own, '43')]).toEqual([true, false])
    await service.app.db.transaction(async (tx) =>
      noteOptOuts(service.app, tx, own, [
        {
          chat_id: '42',
          announce: true,
          message: {
            ...{
              id: '9',
              text: 'STOP',
              is_sender: false,
              sender_id: '42',
              timestamp: '2026-11-09T14:02:00.000Z',
            },
            ...{ edited_at: null, attachments: [], random_id: null },
          },
        },
      ]),
    )
    await add('username', '@PERSON_42', own.ask)
    expect(await entriesOf(own, '42')).toEqual([
      {
        ...{ kind: 'platform_id', value: '42', source: 'opt_out', created_at: expect.any(String) },
        evidence: {
          ...{ account_id: own.account_id, chat_id: 'platform:chat:42', message_id: '9', text: 'STOP' },
          timestamp: '2026-11-09T14:02:00.000Z',
        },
      },
      {
        ...{ kind: 'username', value: 'person_42', source: 'operator', created_at: expect.any(String) },
        evidence: {},
      },
    ])
    expect([await isMarked(own, '42'), await hasAsked(own, '42')]).toEqual([true, true])
  })

  test('200 as the list of chats says: by a name that they gave up while it was listed, not by one of before', async () => {
    const own = await openTeam(service, 'Chat')
    for (const id of ['51', '52'] as const) await chat(own, id)
    await learnPeople(service.app.db, own, [seen('51', 'was_listed'), seen('52', 'was_theirs')])
    await learnPeople(service.app.db, own, [seen('52', 'is_theirs')])
    for (const value of ['was_listed', 'was_theirs']) await add('username', value, own.ask)
    await learnPeople(service.app.db, own, [seen('51', 'is_another')])
    expect(await entriesOf(own, '51')).toMatchObject([{ value: 'was_listed' }])
    expect([await entriesOf(own, '52'), await isMarked(own, '51'), await isMarked(own, '52')]).toEqual([
      [],
      true,
      false,
    ])
  })

  test('200 by a name that they have in one account, though another saw it end before the entry', async () => {
    const own = await openTeam(service, 'Chat')
    await chat(own, '53')
    const { db } = service.app
    const beside = { ...own, account_id: await service.account(own.workspace_id) }
    await learnPeople(db, own, [seen('53', 'theirs_again')])
    await learnPeople(db, own, [seen('53', 'between')])
    await learnPeople(db, beside, [seen('53', 'theirs_again')])
    await add('username', 'theirs_again', own.ask)
    expect(await entriesOf(own, '53')).toMatchObject([{ value: 'theirs_again' }])
    expect(await isMarked(own, '53')).toBe(true)
  })

  test('200 by a name of a contact of another account that is not read yet, as the list of chats says', async () => {
    const [own, elsewhere] = [await openTeam(service, 'Chat'), await openTeam(service, 'Elsewhere')]
    const { db } = service.app
    for (const of of [own, elsewhere]) await chat(of, '55')
    const account_id = await service.account(own.workspace_id)
    const contact = { ...seen('55', null), phone: '491700000055' }
    await db.transaction((tx) => storeContacts(tx, { ...own, account_id }, [contact]))
    for (const of of [own, elsewhere]) await add('phone', contact.phone, of.ask)
    // As an older release left it.
    await db.run(sql`delete from person_names where workspace_id = ${own.workspace_id}`)
    await db.run(sql`delete from people where workspace_id = ${own.workspace_id}`)
    await db.run(sql`update people_backfill set done_at = null`)
    try {
      expect(await entriesOf(own, '55')).toMatchObject([{ kind: 'phone', value: contact.phone }])
      expect([await isMarked(own, '55'), await isMarked(elsewhere, '55')]).toEqual([true, false])
      expect(await entriesOf(elsewhere, '55')).toEqual([])
    } finally {
      await db.run(sql`update people_backfill set done_at = domain_now()`)
    }
    expect([await entriesOf(own, '55'), await isMarked(own, '55')]).toEqual([[], false])
  })

  test("200 with none for a group; 404 for an unknown chat and another workspace's account", async () => {
    const own = await openTeam(service, 'Chat')
    await chat(own, '61')
    await add('platform_id', '61', own.ask)
    await service.app.db.run(sql`update chats set kind = 'group' where account_id = ${own.account_id}`)
    expect(await entriesOf(own, '61')).toEqual([])
    const foreign = await other.ask('GET', `/chats/platform:chat:61/suppression?account_id=${own.account_id}`)
    expect([foreign.status, foreign.body.code]).toEqual([404, 'not_found'])
    const unknown = await own.ask('GET', `/chats/platform:chat:62/suppression?account_id=${own.account_id}`)
    expect([unknown.status, unknown.body.code]).toEqual([404, 'chat_not_found'])
  })

  test('an entry has the name that a chat of the workspace shows, and of no other', async () => {
    const [own, elsewhere] = [await openTeam(service, 'Called'), await openTeam(service, 'Elsewhere')]
    await chat(own, '71', 'Ines García')
    await chat(elsewhere, '72', 'Bo')
    for (const value of ['71', '72']) await add('platform_id', value, own.ask)
    await add('username', 'person_71', own.ask)
    const { body } = await own.ask('GET', '/suppressions')
    expect(
      (body.suppressions as { value: string; name: string | null }[]).map((one) => [one.value, one.name]),
    ).toEqual([
      ['71', 'Ines García'],
      ['72', null],
      ['person_71', 'Ines García'],
    ])
  })
})

describe('GET /suppressions', () => {
  test('200 page by page, by kind, and one person by any name in any spelling', async () => {
    for (const value of ['9', '491705550202', '7']) await add('platform_id', value)
    await add('phone', '+49 170 555-02 02')
    const all = values(await list())
    expect(all).toEqual(
      ['491705550202', '491705550202', '7', '9', 'ada_l'].toSorted((a, b) => order(a) - order(b)),
    )
    const pages: string[] = []
    let cursor: string | null = null
    do {
      const page: Awaited<ReturnType<typeof list>> = await list(
        `?limit=2${cursor ? `&cursor=${cursor}` : ''}`,
      )
      pages.push(...values(page))
      cursor = page.next_cursor
    } while (cursor !== null)
    expect(pages).toEqual(all)
    const kindsOf = async (search: string) =>
      (await list(`?search=${encodeURIComponent(search)}`)).suppressions.map(({ kind }) => kind)
    expect(await kindsOf('+49 (0)170 5550202')).toEqual(['phone'])
    expect(await kindsOf('491705550202')).toEqual(['phone', 'platform_id'])
    expect(await kindsOf('@ADA_l')).toEqual(['username'])
    expect(await kindsOf("x' or 1=1")).toEqual([])
    expect(values(await list('?kind=platform_id&search=491705550202'))).toEqual(['491705550202'])
    const first = await list('?limit=1')
    const foreign = await team.ask('GET', `/suppressions?limit=1&kind=phone&cursor=${first.next_cursor}`)
    expect([foreign.status, foreign.body.code]).toEqual([400, 'invalid_cursor'])
  })

  /** Phone numbers come first, then platform ids, then usernames; numbers are texts. */
  const order = (value: string) => ['491705550202', '7', '9', 'ada_l'].indexOf(value)

  test('reads a page of the key, wherever it begins', async () => {
    const { db } = service.app
    const { workspace_id } = other
    await db.run(sql`
      insert into suppressions (workspace_id, kind, value, source)
      select ${workspace_id}, 'phone', (10000000 + n)::text, 'import' from generate_series(1, 20000) n`)
    await db.run(sql`analyze suppressions`)
    for (const after of [undefined, ['phone', '10019000']]) {
      const { text, values: given } = entriesPage(workspace_id, { query: {}, after, limit: 51 })
      const { rows } = await db.pool.query(`explain (analyze, format json) ${text}`, given as unknown[])
      const [scan] = JSON.stringify(rows).match(/"Index Name":"suppressions_pkey"/) ?? []
      expect(scan).toBeDefined()
      expect(JSON.stringify(rows)).not.toMatch(/"Node Type":"(Seq Scan|Sort)"/)
    }
  })
})

describe('POST /suppressions/remove', () => {
  test('200 for an admin, with the reason in the audit log; 404 for what is not on the list', async () => {
    await add('username', 'bo_bo')
    const body = { kind: 'username', value: 'BO_BO', reason: 'Bo asked for the offer again.' }
    expect((await remove(body, member)).body.code).toBe('missing_role')
    expect((await remove({ ...body, reason: ' ' })).body.code).toBe('invalid_request')
    expect((await remove(body, other.ask)).status).toBe(404)
    const admin = await team.join('admin')
    const removed = await remove(body, admin.ask)
    expect(removed.body).toEqual({
      suppression: { kind: 'username', value: 'bo_bo' },
      removed: true,
      people: [],
    })
    const row = await service.app.db.one(sql`
      select actor, action, target, detail::jsonb as detail from audit where workspace_id = ${team.workspace_id} order by seq desc limit 1`)
    expect(row).toEqual({
      actor: `user:${admin.user_id}`,
      action: 'suppression.removed',
      target: 'username',
      detail: { kind: 'username', source: 'operator', reason: body.reason },
    })
    expect((await remove(body)).body.code).toBe('not_found')
  })
})
