import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { createUser, listUsers, requireUser } from './users.ts'

let service: Service
let tenant: Tenant

beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
})
afterAll(() => service.close())

const make = (email: string, fields: object = {}) =>
  createUser(service.app, 'system', { email, workspace_id: tenant.workspace_id, ...fields })

describe('a user', () => {
  test('belongs to a workspace with a role, and is audited without the address', async () => {
    const user = await make('ana@acme.example', { role: 'member' })
    expect(user).toMatchObject({
      email: 'ana@acme.example',
      operator: false,
      memberships: [{ workspace_id: tenant.workspace_id, role: 'member' }],
    })
    const rows = await service.app.db.rows(sql`select action, detail from audit where target = ${user.id}`)
    expect(rows).toMatchObject([{ action: 'user.created' }])
    expect(JSON.stringify(rows)).not.toContain('ana@')
  })

  test('is one person, however the address is spelled, and may join a further workspace', async () => {
    const bo = await make('Bo@acme.example')
    const other = await service.tenant('Other')
    const again = await make('bo@ACME.example', { workspace_id: other.workspace_id, role: 'admin' })
    expect(again.id).toBe(bo.id)
    expect(again.memberships).toHaveLength(2)
    await expect(make('BO@acme.example')).rejects.toThrow('is already a member of this workspace')
  })

  test('is created once, however many calls come at the same time', async () => {
    const made = await Promise.allSettled(Array.from({ length: 10 }, () => make('cy@acme.example')))
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect((await listUsers(service.app.db)).filter(({ email }) => email === 'cy@acme.example')).toHaveLength(
      1,
    )
  })

  test.each([
    '',
    'ana',
    'ana@',
    '@acme.example',
    'a b@acme.example',
    'a@b@c',
    'a\0@acme.example',
    'a\ud800@x',
    `${'a'.repeat(65)}@x`,
    'a@b\n',
  ])('is refused as %j', async (email) => {
    await expect(make(email)).rejects.toThrow('is not an e-mail address')
  })

  test('is refused for an unknown workspace, and when the user is unknown', async () => {
    await expect(make('dee@acme.example', { workspace_id: 'x' })).rejects.toThrow('There is no workspace "x"')
    await expect(requireUser(service.app.db, 'x')).rejects.toThrow('There is no user "x"')
    expect((await listUsers(service.app.db)).some(({ email }) => email === 'dee@acme.example')).toBe(false)
  })

  test('who has a password keeps it when another workspace adds them', async () => {
    await make('fay@acme.example', { password_hash: 'first' })
    const { workspace_id } = await service.tenant('Further')
    await expect(make('fay@acme.example', { workspace_id, password_hash: 'second' })).rejects.toMatchObject({
      code: 'conflict',
    })
    const row = await service.app.db.one(sql`
      select password_hash, (select count(*)::int from memberships where user_id = users.id) as memberships
      from users where email = 'fay@acme.example'`)
    expect(row).toEqual({ password_hash: 'first', memberships: 1 })
  })

  test('401 with the key of a disabled user', async () => {
    const user = await make('eve@acme.example')
    const { key } = await service.key({ ...tenant, user_id: user.id })
    expect((await service.get('/me', { key })).status).toBe(200)
    await service.app.db.run(sql`update users set disabled_at = now() where id = ${user.id}`)
    await service.settle()
    expect((await service.get('/me', { key })).status).toBe(401)
  })
})
