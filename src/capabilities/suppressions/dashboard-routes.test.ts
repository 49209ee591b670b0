import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../../test/harness/service.ts'
import { type Asking, openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'
import { suppressionPage } from './suppression-page.ts'

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
      const { text, values: given } = suppressionPage(workspace_id, { query: {}, after, limit: 51 })
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
    expect(removed.body).toEqual({ suppression: { kind: 'username', value: 'bo_bo' }, removed: true })
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
