import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hangMs, until } from '../../../test/harness/process.ts'
import { openService, type Service } from '../../../test/harness/service.ts'
import { openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import { createUser } from '../users/users.ts'

let service: Service
let team: Team
let other: Team
beforeAll(async () => {
  service = await openService()
  team = await openTeam(service)
  other = await openTeam(service, 'Other')
  for (const { account_id, workspace_id } of [team, other]) await service.chat({ account_id, workspace_id })
})
afterAll(() => service.close())

const assign = (user_id: unknown, more: object = {}, chat = 'platform:chat:42') =>
  team.ask('PUT', `/chats/${chat}/assignee`, { account_id: team.account_id, user_id, ...more })

async function assigned(): Promise<unknown> {
  const { body } = await team.ask('GET', '/inbox')
  return (body.chats as { assignee: unknown }[])[0]?.assignee
}

describe('PUT /chats/{chat_id}/assignee', () => {
  test('200 for a member, and for none', async () => {
    const ben = await team.join('member', 'Ben')
    const assignee = { user_id: ben.user_id, name: 'Ben' }
    expect(await assign(ben.user_id)).toMatchObject({ status: 200, body: { assignee } })
    expect(await assigned()).toEqual(assignee)
    expect((await ben.ask('GET', '/inbox/counts')).body).toMatchObject({ mine: 1 })
    expect(await assign(null)).toMatchObject({ status: 200, body: { assignee: null } })
    expect(await assigned()).toBeNull()
  })

  test('404 for users of other workspaces, former members and unknown users, and nothing changes', async () => {
    const ben = await team.join('member', 'Ben')
    await assign(ben.user_id)
    const former = await team.join('member')
    await team.ask('DELETE', `/members/${former.user_id}`, {})
    for (const user_id of [other.user_id, former.user_id, newId()]) {
      expect(await assign(user_id)).toMatchObject({ status: 404, body: { code: 'not_found' } })
    }
    expect(await assign(ben.user_id, { account_id: other.account_id })).toMatchObject({ status: 404 })
    expect(await assign(ben.user_id, {}, 'platform:chat:43')).toMatchObject({ status: 404 })
    for (const user_id of ['x', '', 1, undefined, 'a\0b'])
      expect(await assign(user_id)).toMatchObject({ status: 400 })
    expect(await assigned()).toMatchObject({ user_id: ben.user_id })
    expect(await other.ask('GET', '/inbox')).toMatchObject({ body: { chats: [{ assignee: null }] } })
  })

  test('ends with the membership, and does not return with it', async () => {
    const { user_id } = await team.join('member', 'Cara')
    await assign(user_id)
    expect(await team.ask('DELETE', `/members/${user_id}`, {})).toMatchObject({ status: 200 })
    expect(await assigned()).toBeNull()
    const { email } = await service.app.db.one<{ email: string }>(
      sql`select email from users where id = ${user_id}`,
    )
    await createUser(service.app, 'system', { email, workspace_id: team.workspace_id, role: 'member' })
    expect(await assigned()).toBeNull()
  })

  test('of another workspace stays when a user leaves only one', async () => {
    const { user_id } = await team.join('member')
    const { email } = await service.app.db.one<{ email: string }>(
      sql`select email from users where id = ${user_id}`,
    )
    await createUser(service.app, 'system', { email, workspace_id: other.workspace_id, role: 'member' })
    const body = { account_id: other.account_id, user_id }
    expect(await other.ask('PUT', '/chats/platform:chat:42/assignee', body)).toMatchObject({ status: 200 })
    await team.ask('DELETE', `/members/${user_id}`, {})
    expect((await other.ask('GET', '/inbox')).body).toMatchObject({ chats: [{ assignee: { user_id } }] })
  })

  test('never outlives a membership that ends while the chat is being assigned', async () => {
    const { user_id } = await team.join('member')
    await assign(null)
    const client = await service.app.db.client()
    // On another connection: a transaction keeps its first look at the activity until it ends.
    const waits = async (statement: string) =>
      (await service.app.db.maybe(sql`
        select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query ~ ${statement}`)) !==
      undefined
    try {
      await client.query('begin')
      await client.query('select from chats where account_id = $1 for update', [team.account_id])
      const assigning = assign(user_id)
      await until('it waits for the chat', hangMs, () => waits('update chats set assignee_id'))
      // It waits for the assignment, or it is over before the assignment.
      let over = false
      const leaving = team.ask('DELETE', `/members/${user_id}`, {}).finally(() => {
        over = true
      })
      await until('the membership ends or waits', hangMs, async () => over || waits('from memberships'))
      await client.query('commit')
      expect([(await assigning).status, (await leaving).status]).toEqual([200, 200])
    } finally {
      await client.end()
    }
    expect(await assigned()).toBeNull()
  })
})

describe('GET /assignees', () => {
  test('200 with the members by name, without e-mail addresses', async () => {
    const own = await openTeam(service, 'Members')
    const former = await own.join('member')
    await own.join('member', 'Ann')
    const { ask } = await own.join('admin', 'Zoe')
    await own.ask('DELETE', `/members/${former.user_id}`, {})
    const { body } = await ask('GET', '/assignees')
    const names = (body.assignees as { name: string }[]).map(({ name }) => name)
    expect(names).toEqual([own.workspace_id, 'Ann', 'Zoe'].sort((a, b) => a.localeCompare(b)))
    expect(JSON.stringify(body)).not.toContain('@')
  })
})
