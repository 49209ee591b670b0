import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import type { Role } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import { endMembership, setRole } from './members.ts'
import { createUser, requireSetupLink, updateUser } from './users.ts'

let service: Service
let tenant: Tenant
let owner: string
let serial = 0

beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
  owner = await signIn(service, tenant.user_id)
})
afterAll(() => service.close())

async function add(role: Role, workspace_id = tenant.workspace_id): Promise<string> {
  const email = `person${serial++}@acme.example`
  return (await createUser(service.app, 'system', { email, workspace_id, role })).id
}

/** Gives the user a way to sign in. */
async function link(user_id: string, issuer = 'local'): Promise<void> {
  await service.app.db.run(sql`
    insert into identities (issuer, subject, user_id, idp_user_uuid)
    values (${issuer}, ${newId()}, ${user_id}, ${newId()})`)
}

const at = (path: string, { workspace_id } = tenant) => `/w/${workspace_id}${path}`
const auditOf = (target: string) =>
  service.app.db.rows<{ action: string }>(
    sql`select actor, action, detail from audit where target = ${target} order by seq`,
  )

describe('GET /members', () => {
  test('200 with everyone who belongs to the workspace, and no one who has left', async () => {
    const { workspace_id, user_id } = await service.tenant('Small')
    const cookie = await signIn(service, user_id)
    const gone = await add('admin', workspace_id)
    const stays = await add('member', workspace_id)
    await endMembership(service.app, 'system', { workspace_id, user_id: gone })
    const { body } = await askDashboard(service, 'GET', `/w/${workspace_id}/members`, { cookie })
    expect(body.members).toMatchObject([
      { user_id, role: 'owner', last_seen_at: expect.any(String) },
      { user_id: stays, role: 'member', last_seen_at: null, name: '' },
    ])
  })
})

describe('POST /members', () => {
  test("201 with a set-up link, audited in the caller's name", async () => {
    const body = { email: 'new@acme.example', role: 'admin' }
    const answer = await askDashboard(service, 'POST', at('/members'), { cookie: owner, body })
    expect(answer).toMatchObject({
      status: 201,
      body: {
        member: { email: 'new@acme.example', role: 'admin', last_seen_at: null },
        setup_link: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/dashboard\/setup#\w{43}$/),
      },
    })
    const { user_id } = answer.body.member as { user_id: string }
    const actor = `user:${tenant.user_id}`
    expect(await auditOf(user_id)).toMatchObject([
      { actor, action: 'user.created' },
      { actor, action: 'user.setup_link_made' },
    ])
    expect(JSON.stringify(await auditOf(user_id))).not.toContain('new@')
    expect(await askDashboard(service, 'POST', at('/members'), { cookie: owner, body })).toMatchObject({
      status: 409,
      body: { code: 'conflict', error: 'new@acme.example is already a member of this workspace.' },
    })
  })

  test('403 when an admin gives a role above member', async () => {
    const cookie = await signIn(service, await add('admin'))
    for (const role of ['admin', 'owner']) {
      const body = { email: `${role}@acme.example`, role }
      expect(await askDashboard(service, 'POST', at('/members'), { cookie, body })).toMatchObject({
        status: 403,
        body: { code: 'missing_role' },
      })
    }
    const body = { email: 'simple@acme.example', role: 'member' }
    expect((await askDashboard(service, 'POST', at('/members'), { cookie, body })).status).toBe(201)
  })

  test('201 without a link for a user of another workspace: it would open that one too', async () => {
    const other = await service.tenant('Elsewhere')
    const invited = await createUser(service.app, 'system', {
      email: 'invited@elsewhere.example',
      workspace_id: other.workspace_id,
    })
    const body = { email: 'Invited@elsewhere.example', role: 'member' }
    expect(await askDashboard(service, 'POST', at('/members'), { cookie: owner, body })).toMatchObject({
      status: 201,
      body: { member: { user_id: invited.id }, setup_link: null },
    })
    const path = at(`/members/${invited.id}/setup-link`)
    expect(await askDashboard(service, 'POST', path, { cookie: owner })).toMatchObject({
      status: 409,
      body: { code: 'conflict' },
    })
    // After they left there, a link opens only this workspace.
    await service.app.db.run(sql`
      update memberships set ended_at = now() where user_id = ${invited.id} and workspace_id = ${other.workspace_id}`)
    expect((await askDashboard(service, 'POST', path, { cookie: owner })).status).toBe(200)
  })

  test.each(['', 'x', 'a b@x', 'a\u0000@x', 'a@b@c'])('400 for the address %j', async (email) => {
    const body = { email, role: 'member' }
    expect((await askDashboard(service, 'POST', at('/members'), { cookie: owner, body })).status).toBe(400)
  })

  test('429 for a caller who probes thousands of addresses', async () => {
    const busy = await service.tenant('Busy')
    const cookie = await signIn(service, busy.user_id)
    const rule = { limit: 100, seconds: 3600 }
    for (let taken = 0; taken < 100; taken++) {
      await service.app.limits.take(`add_member:${busy.workspace_id}`, rule)
    }
    const body = { email: 'one-too-many@acme.example', role: 'member' }
    const answer = await askDashboard(service, 'POST', at('/members', busy), { cookie, body })
    expect(answer).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    // It is the same workspace, in any spelling of its id.
    const capitals = at('/members', { ...busy, workspace_id: busy.workspace_id.toUpperCase() })
    expect((await askDashboard(service, 'POST', capitals, { cookie, body })).status).toBe(429)
  })
})

describe('a set-up link that its receiver keeps', () => {
  const tokenOf = (link: unknown) => String(link).split('#')[1] ?? ''
  const invite = async (email: string): Promise<{ user_id: string; token: string }> => {
    const body = { email, role: 'member' }
    const answer = await askDashboard(service, 'POST', at('/members'), { cookie: owner, body })
    const { member, setup_link } = answer.body as { member: { user_id: string }; setup_link: string }
    return { user_id: member.user_id, token: tokenOf(setup_link) }
  }
  const follow = (token: string) => requireSetupLink(service.app.db, token)

  test('does not open a workspace that its user is added to later', async () => {
    const email = 'awaited@elsewhere.example'
    const { token } = await invite(email)
    await follow(token)
    const { workspace_id } = await service.tenant('Later')
    await createUser(service.app, 'system', { email, workspace_id })
    await expect(follow(token)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('does not make its holder an operator', async () => {
    const { user_id, token } = await invite('operator-to-be@acme.example')
    await updateUser(service.app, 'system', { id: user_id, name: 'Still the same' })
    await follow(token)
    await updateUser(service.app, 'system', { id: user_id, operator: true })
    await expect(follow(token)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('does not make its holder an owner', async () => {
    const { user_id, token } = await invite('owner-to-be@acme.example')
    const path = at(`/members/${user_id}`)
    const give = (role: string) =>
      askDashboard(service, 'PATCH', path, { cookie: owner, body: { role } }).then(({ status }) => status)
    expect(await give('admin')).toBe(200)
    await follow(token)
    expect(await give('owner')).toBe(200)
    await expect(follow(token)).rejects.toMatchObject({ code: 'not_found' })
  })
})

describe('POST /members/{user_id}/setup-link', () => {
  test('409 for an operator, and for a user who can already sign in', async () => {
    const operator = await add('member')
    await service.app.db.run(sql`update users set operator = true where id = ${operator}`)
    const known = await add('member')
    await signIn(service, known)
    for (const user_id of [operator, known]) {
      const path = at(`/members/${user_id}/setup-link`)
      expect(await askDashboard(service, 'POST', path, { cookie: owner })).toMatchObject({
        status: 409,
        body: { code: 'conflict', error: expect.stringContaining('operator of this instance') },
      })
    }
    expect(
      await service.app.db.rows(sql`select 1 from setup_links where user_id = any(${[operator, known]})`),
    ).toEqual([])
  })
})

describe('the last owner', () => {
  const last = {
    status: 409,
    body: { code: 'conflict', error: expect.stringContaining('at least one owner') },
  }

  test('409 when giving up the role or leaving; with another owner both succeed', async () => {
    const small = await service.tenant('One owner')
    const cookie = await signIn(service, small.user_id)
    const path = at(`/members/${small.user_id}`, small)
    const demote = () => askDashboard(service, 'PATCH', path, { cookie, body: { role: 'admin' } })
    expect(await demote()).toMatchObject(last)
    expect(await askDashboard(service, 'DELETE', path, { cookie, body: {} })).toMatchObject(last)
    // An owner who cannot sign in does not count.
    const second = await add('owner', small.workspace_id)
    expect(await demote()).toMatchObject(last)
    expect(await askDashboard(service, 'DELETE', path, { cookie, body: {} })).toMatchObject(last)
    // Nor does one whose only identity is at a provider that this instance does not have.
    await link(second, 'https://id.gone.example')
    expect(await demote()).toMatchObject(last)
    await link(second)
    await service.app.db.run(sql`update users set disabled_at = now() where id = ${second}`)
    expect(await demote()).toMatchObject(last)
    await service.app.db.run(sql`update users set disabled_at = null where id = ${second}`)
    expect((await demote()).status).toBe(200)
    expect((await askDashboard(service, 'DELETE', path, { cookie, body: {} })).status).toBe(200)
  })

  test('stays, however many leave or step down at the same moment', async () => {
    // A race that a single round may miss.
    for (let round = 0; round < 3; round++) {
      const { workspace_id, user_id } = await service.tenant(`Many owners ${round}`)
      const owners = [user_id]
      for (let more = 0; more < 7; more++) owners.push(await add('owner', workspace_id))
      for (const owner of owners) await link(owner)
      const outcomes = await Promise.allSettled(
        owners.map((user_id, index) =>
          index % 2 === 0
            ? endMembership(service.app, 'system', { workspace_id, user_id })
            : setRole(service.app, 'system', { workspace_id, user_id, role: 'member' }),
        ),
      )
      expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(1)
      const left = await service.app.db.rows(sql`
        select 1 from memberships where workspace_id = ${workspace_id} and role = 'owner' and ended_at is null`)
      expect(left).toHaveLength(1)
    }
  })
})

describe('PATCH /members/{user_id}', () => {
  test('200, effective immediately, audited with both roles; a repeat changes nothing', async () => {
    const user_id = await add('member')
    const cookie = await signIn(service, user_id)
    const list = () => askDashboard(service, 'GET', at('/members'), { cookie })
    expect((await list()).status).toBe(403)
    const patch = () =>
      askDashboard(service, 'PATCH', at(`/members/${user_id}`), { cookie: owner, body: { role: 'admin' } })
    expect(await patch()).toMatchObject({ status: 200, body: { member: { user_id, role: 'admin' } } })
    expect((await list()).status).toBe(200)
    expect((await patch()).status).toBe(200)
    const changes = (await auditOf(user_id)).filter(({ action }) => action === 'member.role_changed')
    expect(changes).toEqual([
      {
        actor: `user:${tenant.user_id}`,
        action: 'member.role_changed',
        detail: '{"from":"member","to":"admin"}',
      },
    ])
  })

  test.each([{}, { role: 'king' }, { role: 'admin', operator: true }])('400 for %j', async (body) => {
    const path = at(`/members/${tenant.user_id}`)
    expect((await askDashboard(service, 'PATCH', path, { cookie: owner, body })).status).toBe(400)
  })
})

describe('DELETE /members/{user_id}', () => {
  test('200: their session opens nothing here, their keys are revoked, and they can be added again', async () => {
    const user_id = await add('admin')
    const other = await service.tenant('Further')
    const email = (
      await service.app.db.one<{ email: string }>(sql`select email from users where id = ${user_id}`)
    ).email
    await createUser(service.app, 'system', { email, workspace_id: other.workspace_id, role: 'member' })
    const cookie = await signIn(service, user_id)
    const { key } = await service.key({ workspace_id: tenant.workspace_id, user_id })
    const elsewhere = await service.key({ workspace_id: other.workspace_id, user_id })
    expect((await service.get('/me', { key })).status).toBe(200)
    expect(
      await askDashboard(service, 'DELETE', at(`/members/${user_id}`), { cookie: owner, body: {} }),
    ).toMatchObject({
      status: 200,
      body: { ok: true },
    })
    const ask = (where: Tenant | { workspace_id: string }) =>
      askDashboard(service, 'GET', `/w/${where.workspace_id}/keys`, { cookie })
    expect((await service.get('/me', { key })).status).toBe(401)
    expect(await ask(tenant)).toMatchObject({ status: 404, body: { code: 'not_found' } })
    // Their role elsewhere stays.
    expect((await ask(other)).status).toBe(200)
    expect((await service.get('/me', { key: elsewhere.key })).status).toBe(200)
    const again = await askDashboard(service, 'POST', at('/members'), {
      cookie: owner,
      body: { email, role: 'member' },
    })
    expect(again).toMatchObject({ status: 201, body: { member: { user_id, role: 'member' } } })
    expect((await ask(tenant)).status).toBe(200)
    // The keys from before stay revoked.
    expect((await service.get('/me', { key })).status).toBe(401)
    const rows = await service.app.db.rows(sql`
      select ended_at from memberships where workspace_id = ${tenant.workspace_id} and user_id = ${user_id}`)
    expect(rows).toEqual([{ ended_at: null }])
  })

  test('401 for the key on a process that only reads the database', async () => {
    const user_id = await add('member')
    const { key } = await service.key({ workspace_id: tenant.workspace_id, user_id })
    expect((await service.get('/me', { key })).status).toBe(200)
    const { version } = await service.app.settings.refresh()
    await service.app.db.run(sql`
      update memberships set ended_at = now() where user_id = ${user_id} and workspace_id = ${tenant.workspace_id}`)
    await service.settle()
    expect((await service.app.settings.current()).version).not.toBe(version)
    expect((await service.get('/me', { key })).status).toBe(401)
  })

  test('409 for a key that is created while its user leaves', async () => {
    const user_id = await add('member')
    const { workspace_id } = tenant
    const outcomes = await Promise.allSettled([
      endMembership(service.app, 'system', { workspace_id, user_id }),
      ...Array.from({ length: 6 }, () => service.key({ workspace_id, user_id })),
    ])
    const live = await service.app.db.rows(sql`
      select id from keys where user_id = ${user_id} and revoked_at is null`)
    expect(live).toEqual([])
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason.message).toContain('is not a member')
    }
    await expect(service.key({ workspace_id, user_id })).rejects.toThrow('is not a member of this workspace')
  })

  test('404 for a user who has already left, and for an unknown one', async () => {
    const user_id = await add('member')
    const remove = (id: string) =>
      askDashboard(service, 'DELETE', at(`/members/${id}`), { cookie: owner, body: {} })
    expect((await remove(user_id)).status).toBe(200)
    expect((await remove(user_id)).status).toBe(404)
    expect((await remove(newId())).status).toBe(404)
    expect((await auditOf(user_id)).filter(({ action }) => action === 'member.removed')).toHaveLength(1)
  })
})
