/** The role matrix: every route of both dashboard doors, called by a user of every role. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createUser } from '../src/capabilities/users/users.ts'
import { type Role, roles, type Scope, scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { ownRoutes, workspaceRoutes } from '../src/lists/dashboard-routes.ts'
import { routes } from '../src/lists/routes.ts'
import type { Route } from '../src/route.ts'
import { expectations } from './contract.expectations.ts'
import { askDashboard, signIn } from './harness/person.ts'
import { type Answer, openService, type Service, type Tenant } from './harness/service.ts'
import { inWorkspace, outside } from './roles.expectations.ts'

/** An operator calls once without a membership, and once as a member. */
const users = [...roles, 'operator', 'operator and member', 'signed out'] as const
type User = (typeof users)[number]
const roleOf: Readonly<Record<User, Role | null>> = {
  member: 'member',
  admin: 'admin',
  owner: 'owner',
  operator: null,
  'operator and member': 'member',
  'signed out': null,
}
const isOperator = (user: User) => user.startsWith('operator')

let service: Service
let own: Tenant
let elsewhere: Tenant
beforeAll(async () => {
  service = await openService()
  own = await service.tenant()
  elsewhere = await service.tenant()
  await service.open('extended')
})
afterAll(() => service.close())
afterEach(() => service.open('all', 'extended'))

let serial = 0

/** A separate user for each request, which may end sessions and memberships. */
async function makeUser(user: User): Promise<{ id: string; cookie: string | undefined }> {
  if (user === 'signed out') return { id: own.user_id, cookie: undefined }
  const role = roleOf[user]
  const { id } = await createUser(service.app, 'system', {
    email: `user${serial++}@acme.example`,
    workspace_id: role ? own.workspace_id : elsewhere.workspace_id,
    role: role ?? 'owner',
    operator: isOperator(user),
  })
  return { id, cookie: await signIn(service, id) }
}

async function askAs(user: User, route: Route, body: unknown): Promise<Answer> {
  const { id, cookie } = await makeUser(user)
  const params: Readonly<Record<string, string>> = { ...route.example.params, user_id: id }
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? 'x'),
  )
  const door = ownRoutes.includes(route) ? '' : `/w/${own.workspace_id}`
  return askDashboard(service, route.method, `${door}${path}`, {
    cookie,
    body,
    headers: { 'idempotency-key': `roles-${serial++}` },
  })
}

/** Every kind of body that decides what the route needs. */
function bodiesOf({ name, example }: Route): readonly unknown[] {
  const variants = Object.values(expectations[name]?.variants ?? {})
  return [example.body, ...variants.map(({ body }) => body)]
}

type Verdict = 'let through' | 'missing_role' | 'missing_scope' | 'not_found' | 'not_signed_in'

/** What the door refused. The route's own refusals come after it. */
function verdictOf(user: User, { status, body }: Answer): Verdict {
  expect(status).not.toBe(500)
  const code = body.code as Verdict
  if (['missing_role', 'missing_scope', 'not_signed_in'].includes(code)) return code
  // A foreign workspace does not exist for the user; in their own, the object of the example may be missing.
  return code === 'not_found' && roleOf[user] === null ? 'not_found' : 'let through'
}

const named = (list: readonly Route[]) => list.map((route) => [route.name, route] as const)

describe('/dashboard/api/w/{workspace_id}', () => {
  const listed = [...routes, ...workspaceRoutes]

  test('every route has a line, and every line a route', () => {
    expect(Object.keys(inWorkspace).sort()).toEqual(listed.map(({ name }) => name).sort())
  })

  test.each(named(listed))('%s', async (name, route) => {
    const lowest = roles.indexOf(inWorkspace[name] as Role)
    for (const body of bodiesOf(route)) {
      const verdicts: [User, Verdict][] = []
      for (const user of users) verdicts.push([user, verdictOf(user, await askAs(user, route, body))])
      const mayEnter = (role: Role) => (roles.indexOf(role) >= lowest ? 'let through' : 'missing_role')
      expect(Object.fromEntries(verdicts)).toEqual({
        member: mayEnter('member'),
        admin: mayEnter('admin'),
        owner: mayEnter('owner'),
        operator: 'not_found',
        'operator and member': mayEnter('member'),
        'signed out': 'not_signed_in',
      })
    }
  })
})

describe('/dashboard/api', () => {
  test('every route has a line, and every line a route', () => {
    expect(Object.keys(outside).sort()).toEqual(ownRoutes.map(({ name }) => name).sort())
  })

  test.each(named(ownRoutes))('%s', async (name, route) => {
    const verdicts: [User, string][] = []
    for (const user of users) {
      const { body } = await askAs(user, route, route.example.body)
      const refused = ['missing_role', 'missing_scope', 'not_signed_in'].includes(String(body.code))
      verdicts.push([user, refused ? String(body.code) : 'let through'])
    }
    const expected = users.map((user): [User, string] => {
      if (outside[name] === 'everybody') return [user, 'let through']
      if (user === 'signed out') return [user, 'not_signed_in']
      return [user, outside[name] === 'user' || isOperator(user) ? 'let through' : 'missing_role']
    })
    expect(verdicts).toEqual(expected)
  })
})

describe('scopes', () => {
  const granted: Readonly<Record<Role, readonly Scope[]>> = {
    member: ['read', 'write', 'send', 'people'],
    admin: ['read', 'write', 'send', 'campaigns', 'people', 'people_export', 'people_erase'],
    owner: ['read', 'write', 'send', 'campaigns', 'people', 'people_export', 'people_erase'],
  }

  test.each(roles)('GET /me returns a %s their own scopes, and what they can do now', async (role) => {
    const { id, cookie } = await makeUser(role)
    await service.allow({ workspace_id: own.workspace_id, user_id: id })
    const { body } = await askDashboard(service, 'GET', `/w/${own.workspace_id}/me`, { cookie })
    expect(body).toMatchObject({
      key: { scopes: granted[role] },
      capabilities: {
        move_chat: true,
        create_campaign: role !== 'member',
        list_webhooks: role !== 'member',
      },
    })
  })

  test.each(roles)('POST /keys: a %s can give a key each scope of their own, and no other', async (role) => {
    const { cookie } = await makeUser(role)
    const path = `/w/${own.workspace_id}/keys`
    for (const scope of scopes) {
      for (const wanted of [[scope], ['read', scope]].filter(([one, other]) => one !== other)) {
        const body = { name: 'k', scopes: wanted }
        const answer = await askDashboard(service, 'POST', path, { cookie, body })
        if (granted[role].includes(scope)) expect(answer.status).toBe(201)
        else expect(answer).toMatchObject({ status: 403, body: { code: 'missing_scope' } })
      }
    }
    await service.app.db.run(sql`update keys set revoked_at = now() where name = 'k'`)
  })
})
