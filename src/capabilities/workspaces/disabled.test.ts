/** A workspace that an operator disables, beside one that goes on, with workers on the sandbox. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { hangMs, until } from '../../../test/harness/process.ts'
import type { Tenant } from '../../../test/harness/service.ts'
import { openNeighbour, openWorkplace, type Workplace } from '../../../test/harness/worker.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'

let place: Workplace
let own: Tenant
let other: Tenant
const accounts = { own: '', other: '' }
const cookies = { operator: '', member: '' }
const asOperator = (verb: 'disable' | 'enable', id = own.workspace_id) =>
  askDashboard(place.service, 'POST', `/workspaces/${id}/${verb}`, { cookie: cookies.operator })
const asMember = (path: string) => askDashboard(place.service, 'GET', path, { cookie: cookies.member })

beforeAll(async () => {
  place = await openWorkplace()
  await place.work()
  own = await place.service.tenant('Own')
  other = await place.service.tenant('Other')
  accounts.own = await place.connected(own)
  accounts.other = await place.connected(other)
  const { user_id } = await place.service.tenant('Operators')
  await place.db.run(sql`update users set operator = true where id = ${user_id}`)
  cookies.operator = await signIn(place.service, user_id)
  cookies.member = await signIn(place.service, own.user_id)
})
afterAll(() => place.close())

const ownerOf = async (account_id: string) =>
  (
    await place.db.one<{ lease_owner: string | null }>(
      sql`select lease_owner from account_hosts where account_id = ${account_id}`,
    )
  ).lease_owner

async function send({ key }: Tenant, account_id: string): Promise<number> {
  const person = place.person()
  place.write(account_id, person, 'Hello?')
  const chat_id = `platform:chat:${person}`
  await until('the chat is stored', hangMs, async () => {
    const path = `/api/v1/chats/${chat_id}?account_id=${account_id}`
    return (await place.service.get(path, { key })).status === 200 || undefined
  })
  const { status } = await place.service.call('POST', '/api/v1/messages', {
    key,
    body: { account_id, chat_id, text: 'Yes.' },
    headers: { 'idempotency-key': newId() },
  })
  return status
}

describe('POST /workspaces/{workspace_id}/disable', () => {
  test('200: keys and members are refused, and not those of the workspace next to it', async () => {
    const me = ({ key }: Tenant) => place.service.get('/api/v1/me', { key })
    expect((await me(own)).status).toBe(200)
    expect((await asOperator('disable')).body).toMatchObject({
      workspace: { id: own.workspace_id, disabled_at: expect.any(String) },
    })
    expect(await me(own)).toMatchObject({ status: 403, body: { code: 'workspace_disabled' } })
    expect((await me(other)).status).toBe(200)
    const { workspace_id } = own
    expect(await asMember(`/w/${workspace_id}/inbox`)).toMatchObject({
      status: 403,
      body: { code: 'workspace_disabled' },
    })
    expect((await asMember('/session')).body).toMatchObject({
      workspaces: [{ id: workspace_id, disabled_at: expect.any(String) }],
    })
    // A user who is no member learns nothing of it.
    const path = `/w/${workspace_id}/inbox`
    const stranger = await askDashboard(place.service, 'GET', path, { cookie: cookies.operator })
    expect(stranger.status).toBe(404)
  })

  test('200: once answered no worker has its accounts, and none takes them', async () => {
    await asOperator('disable')
    expect(await ownerOf(accounts.own)).toBeNull()
    // A worker that looks for accounts meanwhile, and one that starts.
    const neighbour = await openNeighbour(place.service.database.url)
    const second = await place.work(neighbour)
    const third = await place.connected(other, 'Support')
    expect([await ownerOf(accounts.own), await ownerOf(third)]).toEqual([null, expect.any(String)])
    expect(await send(other, accounts.other)).toBe(200)
    expect(await ownerOf(accounts.own)).toBeNull()
    await second.stop()
    await neighbour.close()
  })

  test('404 for a workspace that does not exist', async () => {
    expect((await asOperator('disable', newId())).status).toBe(404)
    expect((await asOperator('enable', 'x')).status).toBe(404)
  })
})

describe('POST /workspaces/{workspace_id}/enable', () => {
  test('200: everything continues, and each change is in the audit log once', async () => {
    await asOperator('disable')
    await asOperator('enable')
    expect((await asOperator('enable')).body).toMatchObject({ workspace: { disabled_at: null } })
    expect((await asMember(`/w/${own.workspace_id}/inbox`)).status).toBe(200)
    await until('a worker has the account', hangMs, async () => (await ownerOf(accounts.own)) ?? undefined)
    expect(await send(own, accounts.own)).toBe(200)
    const rows = await place.db.rows<{ action: string }>(sql`
      select action from audit where target = ${own.workspace_id} and action ~ 'abled$' order by seq`)
    expect(rows.map(({ action }) => action)).toEqual(['workspace.disabled', 'workspace.enabled'])
  })
})
