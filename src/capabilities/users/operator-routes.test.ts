import { afterAll, beforeAll, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { hangMs, until } from '../../../test/harness/process.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'

let service: Service
let operator: Tenant
let ask: (method: string, path: string, body?: unknown) => ReturnType<typeof askDashboard>
beforeAll(async () => {
  service = await openService()
  operator = await service.tenant('Operators')
  await service.app.db.run(sql`update users set operator = true where id = ${operator.user_id}`)
  const cookie = await signIn(service, operator.user_id)
  ask = (method, path, body) => askDashboard(service, method, path, { cookie, body })
})
afterAll(() => service.close())

test('an operator creates a workspace and its first user, renames both and disables the user, each audited', async () => {
  const { seq } = await service.app.db.one<{ seq: string }>(sql`select max(seq) as seq from audit`)
  const made = await ask('POST', '/workspaces', { name: 'Acme', timezone: 'Europe/Berlin' })
  const { id: workspace_id } = made.body.workspace as { id: string }
  await ask('PATCH', `/workspaces/${workspace_id}`, { name: 'Acme Lamps' })
  const created = await ask('POST', '/users', { email: 'ana@acme.example', workspace_id, role: 'owner' })
  expect(created).toMatchObject({
    status: 201,
    body: { user: { memberships: [{ workspace_id, role: 'owner' }] }, setup_link: expect.any(String) },
  })
  const { id } = created.body.user as { id: string }
  await ask('PATCH', `/users/${id}`, { name: 'Ana' })
  const cookie = await signIn(service, id)
  const session = () => askDashboard(service, 'GET', '/session', { cookie })
  expect((await session()).status).toBe(200)
  await ask('POST', `/users/${id}/disable`)
  expect((await session()).status).toBe(401)
  await ask('POST', `/users/${id}/enable`)
  expect((await ask('GET', '/users')).body.users).toContainEqual(
    expect.objectContaining({ id, name: 'Ana', disabled_at: null }),
  )
  const rows = await service.app.db.rows<{ action: string; actor: string; target: string }>(
    sql`select action, actor, target from audit where seq > ${seq} order by seq`,
  )
  expect(rows).toEqual(
    [
      ['workspace.created', workspace_id],
      ['workspace.updated', workspace_id],
      ['user.created', id],
      ['user.setup_link_made', id],
      ['user.updated', id],
      ['user.disabled', id],
      ['user.enabled', id],
    ].map(([action, target]) => ({ action, target, actor: `user:${operator.user_id}` })),
  )
})

test('409 for an operator who disables themselves or gives up the role, and for an address that another user has', async () => {
  const path = `/users/${operator.user_id}`
  for (const answer of [
    await ask('POST', `${path}/disable`),
    await ask('PATCH', path, { operator: false }),
    await ask('PATCH', path, { email: 'ana@acme.example' }),
  ]) {
    expect(answer).toMatchObject({ status: 409, body: { code: 'conflict' } })
  }
  expect((await ask('GET', '/instance')).status).toBe(200)
})

test('409 for an operator who disables themselves under their id in capitals', async () => {
  const path = `/users/${operator.user_id.toUpperCase()}`
  expect(await ask('PATCH', path, { operator: false })).toMatchObject({ status: 409 })
  expect(await ask('POST', `${path}/disable`)).toMatchObject({ status: 409, body: { code: 'conflict' } })
})

test('of two operators who disable each other, or take the role from each other, at the same time, one stays', async () => {
  const { app } = service
  for (const [method, suffix, body] of [
    ['POST', '/disable', undefined],
    ['PATCH', '', { operator: false }],
  ] as const) {
    const both = [await service.tenant(), await service.tenant()]
    const ids = both.map(({ user_id }) => user_id)
    await app.db.run(sql`update users set operator = true where id = any(${ids}::uuid[])`)
    const cookies = await Promise.all(ids.map((id) => signIn(service, id)))
    // Both requests have passed the check of their session before either changes anything.
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const lock = app.db.transaction(async (tx) => {
      await tx.run(sql`select 1 from users where id = any(${ids}::uuid[]) order by id for update`)
      await held
    })
    const answers = ids.map((id, at) =>
      askDashboard(service, method, `/users/${ids[1 - at] ?? id}${suffix}`, { cookie: cookies[at], body }),
    )
    try {
      await until('both wait', hangMs, async () => {
        const { count } = await app.db.one<{ count: number }>(sql`
          select count(*)::int from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query ~ 'users'`)
        return count === 2 || undefined
      })
    } finally {
      release()
      await lock
    }
    expect((await Promise.all(answers)).map(({ status }) => status).toSorted()).toEqual([200, 403])
    const left = await app.db.rows(sql`
      select from users where id = any(${ids}::uuid[]) and operator and disabled_at is null`)
    expect(left).toHaveLength(1)
  }
})

test('a user who is created as an operator gets a set-up link, and one who can sign in already gets none', async () => {
  const { workspace_id } = await service.tenant()
  const create = (email: string) =>
    ask('POST', '/users', { email, workspace_id, role: 'admin', operator: true })
  expect(await create('second-operator@acme.example')).toMatchObject({
    status: 201,
    body: { user: { operator: true }, setup_link: expect.stringContaining('/dashboard/setup#') },
  })
  const known = await service.tenant()
  await signIn(service, known.user_id)
  const { email } = await service.app.db.one<{ email: string }>(
    sql`select email from users where id = ${known.user_id}`,
  )
  expect(await create(email)).toMatchObject({ status: 201, body: { setup_link: null } })
})
