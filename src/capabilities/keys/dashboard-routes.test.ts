import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { createUser } from '../users/users.ts'

let service: Service
let tenant: Tenant
let owner: string
let member: string
let member_id: string

beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
  owner = await signIn(service, tenant.user_id)
  const { workspace_id } = tenant
  const user = await createUser(service.app, 'system', {
    email: 'bo@acme.example',
    workspace_id,
    role: 'member',
  })
  member_id = user.id
  member = await signIn(service, member_id)
})
afterAll(() => service.close())

const ask = (cookie: string, method: string, path: string, body?: unknown) =>
  askDashboard(service, method, `/w/${tenant.workspace_id}${path}`, { cookie, body })

/** Without `last_used_at`, which is stored some seconds after a use. */
async function listIds(): Promise<string[]> {
  const { body } = await ask(owner, 'GET', '/keys')
  return (body.keys as { id: string }[]).map(({ id }) => id)
}

describe('POST /keys', () => {
  test('201 with a key that works, is shown once, and acts as its creator', async () => {
    const body = { name: 'agent', scopes: ['read', 'send'], expires_at: '2099-01-01', mcp_only: false }
    const made = await ask(member, 'POST', '/keys', body)
    const secret = String(made.body.secret)
    expect(made).toMatchObject({
      status: 201,
      body: {
        secret: expect.stringMatching(/^svc_live_\w{38}$/),
        key: {
          name: 'agent',
          prefix: secret.slice(0, 15),
          scopes: ['read', 'send'],
          mcp_only: false,
          expires_at: '2099-01-01T00:00:00.000Z',
          revoked_at: null,
          user: { id: member_id, email: 'bo@acme.example' },
        },
      },
    })
    expect(await service.get('/me', { key: secret })).toMatchObject({ status: 200 })
    expect(JSON.stringify((await ask(owner, 'GET', '/keys')).body)).not.toContain(secret)
    expect(service.log.join()).not.toContain(secret)
    const rows = await service.app.db.rows(sql`
      select actor, action from audit where target = ${(made.body.key as { id: string }).id}`)
    expect(rows).toEqual([{ actor: `user:${member_id}`, action: 'key.created' }])
  })

  test.each([
    {},
    { name: 'x' },
    { name: 'x', scopes: [] },
    { name: 'x', scopes: ['admin'] },
    { name: ' ', scopes: ['read'] },
    { name: 'x', scopes: ['read'], expires_at: 'soon' },
    { name: 'x', scopes: ['read'], user_id: '0199a1f0-0000-7000-8000-000000000001' },
    { name: 'x\u0000', scopes: ['read'] },
  ])('400 for %j', async (body) => {
    const before = await listIds()
    expect((await ask(owner, 'POST', '/keys', body)).status).toBe(400)
    expect(await listIds()).toEqual(before)
  })

  test("403 for a scope that the creator's session lacks, and creates no key", async () => {
    const before = await listIds()
    const refused = await ask(member, 'POST', '/keys', { name: 'x', scopes: ['read', 'campaigns'] })
    expect(refused).toMatchObject({ status: 403, body: { code: 'missing_scope' } })
    expect(await listIds()).toEqual(before)
    const made = await ask(owner, 'POST', '/keys', { name: 'x', scopes: ['read', 'campaigns'] })
    expect(made.status).toBe(201)
  })
})

describe('GET /keys', () => {
  test("200 with a member's own keys, with all for admins, the live ones first", async () => {
    const { id } = await service.key(tenant)
    await service.app.db.run(sql`update keys set revoked_at = now() where id = ${id}`)
    const listed = (await ask(owner, 'GET', '/keys')).body.keys as {
      id: string
      revoked_at: string | null
      user: { id: string }
    }[]
    expect(listed.at(-1)).toMatchObject({ id, user: { id: tenant.user_id } })
    expect(new Set(listed.map(({ user }) => user.id))).toEqual(new Set([tenant.user_id, member_id]))
    const own = (await ask(member, 'GET', '/keys')).body.keys as typeof listed
    expect(own.length).toBeGreaterThan(0)
    expect(own.every(({ user }) => user.id === member_id)).toBe(true)
  })
})

describe('POST /keys/{key_id}/revoke', () => {
  test('200, then 401 with the key; a repeat returns the same', async () => {
    const { key, id } = await service.key({ ...tenant, user_id: member_id })
    expect((await service.get('/me', { key })).status).toBe(200)
    const revoke = () => ask(owner, 'POST', `/keys/${id}/revoke`)
    const first = await revoke()
    expect(first).toMatchObject({ status: 200, body: { key: { id, revoked_at: expect.any(String) } } })
    expect((await service.get('/me', { key })).status).toBe(401)
    expect((await revoke()).body).toEqual(first.body)
  })
})
