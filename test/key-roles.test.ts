/**
 * No key is stronger than its maker. Every route of the API is called with keys of makers in every role, with every scope,
 * and what the key may do is compared with what the dashboard lets a user of that role do.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { createUser, endMembership, setRole, setUserEnabled } from '../src/capabilities/users/users.ts'
import { type Role, roles, type Scope, scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { routes } from '../src/lists/routes.ts'
import type { Route } from '../src/route.ts'
import { expectations } from './contract.expectations.ts'
import { askDashboard, signIn } from './harness/person.ts'
import { hangMs, until } from './harness/process.ts'
import { type Answer, openService, type Service, type Tenant } from './harness/service.ts'
import { timed } from './harness/timed.ts'
import { inWorkspace } from './roles.expectations.ts'

/** `issued`: an operator gave a member this key at the terminal. `removed` and `disabled` were owners. */
const makers = [...roles, 'issued', 'removed', 'disabled'] as const
type Maker = (typeof makers)[number]
const scopeSets: readonly (readonly Scope[])[] = [...scopes.map((scope) => [scope]), scopes]

interface MadeKey {
  readonly maker: Maker
  readonly scopes: readonly Scope[]
  readonly key: string
}

let service: Service
let own: Tenant
const keys: MadeKey[] = []
const cookies = new Map<Role, string>()
let serial = 0

async function addUser(role: Role): Promise<string> {
  const { workspace_id } = own
  const email = `maker${serial++}@acme.example`
  const { id } = await createUser(service.app, 'system', { email, workspace_id, role })
  await service.allow({ workspace_id, user_id: id })
  return id
}

/** As the user's own request at the dashboard would, but with any scope: the role may have been higher when it was made. */
function makeKey(user_id: string, granted: readonly Scope[]): Promise<{ key: string }> {
  const { workspace_id } = own
  return createKey(service.app, `user:${user_id}`, { workspace_id, user_id, name: 'k', scopes: granted })
}

beforeAll(async () => {
  service = await openService()
  own = await service.tenant()
  // One owner who can sign in remains.
  await signIn(service, own.user_id)
  await service.open('extended')
  for (const maker of makers) {
    const role = maker === 'issued' ? 'member' : maker === 'removed' || maker === 'disabled' ? 'owner' : maker
    const user_id = await addUser(role)
    const { workspace_id } = own
    for (const granted of scopeSets) {
      const made =
        maker === 'issued'
          ? await service.key({ workspace_id, user_id, scopes: granted })
          : await makeKey(user_id, granted)
      keys.push({ maker, scopes: granted, key: made.key })
    }
    if (maker === 'member' || maker === 'admin' || maker === 'owner') {
      cookies.set(maker, await signIn(service, user_id))
    }
    if (maker === 'removed') await endMembership(service.app, 'system', { workspace_id, user_id })
    if (maker === 'disabled') await setUserEnabled(service.app, 'system', { id: user_id, enabled: false })
  }
})
afterAll(() => service.close())

type Verdict = 'let through' | 'missing_scope' | 'missing_role' | 'invalid_key'

/** What the checks before the input refused. */
function verdictOf({ status, body }: Answer): Verdict {
  expect(status).not.toBe(500)
  expect(body.code).not.toBe('not_signed_in')
  const code = body.code as Verdict
  return ['missing_scope', 'missing_role', 'invalid_key'].includes(code) ? code : 'let through'
}

/** Every kind of body that decides what the route needs, with the scopes that it needs then. */
function bodiesOf({ name, example }: Route): readonly { body: unknown; scopes: readonly Scope[] }[] {
  const { scopes: stated = [], variants = {} } = expectations[name] ?? {}
  const kinds = Object.values(variants).map((one) => ({ body: one.body, scopes: one.scopes ?? stated }))
  return kinds.length > 0 ? kinds : [{ body: example.body, scopes: stated }]
}

function pathOf({ path, example }: Route): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(example.params?.[name] ?? 'x'))
}

const headersOf = () => ({ 'idempotency-key': `key-roles-${serial++}` })

async function askWithKey({ key }: MadeKey, route: Route, body: unknown): Promise<Verdict> {
  return verdictOf(await service.call(route.method, pathOf(route), { key, body, headers: headersOf() }))
}

async function askAtDashboard(role: Role, route: Route, body: unknown): Promise<Verdict> {
  const path = `/w/${own.workspace_id}${pathOf(route)}`
  const ask = { cookie: cookies.get(role), body, headers: headersOf() }
  return verdictOf(await askDashboard(service, route.method, path, ask))
}

/** The role whose rights bound a key; an operator's key has those that the operator gave it. */
const boundOf: Readonly<Record<Maker, Role | 'none' | 'ended'>> = {
  member: 'member',
  admin: 'admin',
  owner: 'owner',
  issued: 'none',
  removed: 'ended',
  disabled: 'ended',
}

describe('route × role × scope', () => {
  let compared = 0
  const stronger: string[] = []

  test.each(routes.map((route) => [route.name, route] as const))('%s', async (name, route) => {
    const lowest = roles.indexOf(inWorkspace[name] as Role)
    const stated = expectations[name]?.scopes ?? []
    for (const { body, scopes: needed } of bodiesOf(route)) {
      const atDashboard = new Map<Role, Verdict>()
      for (const role of roles) atDashboard.set(role, await askAtDashboard(role, route, body))
      const verdicts = await Promise.all(keys.map((key) => askWithKey(key, route, body)))
      for (const [at, made] of keys.entries()) {
        const bound = boundOf[made.maker]
        const may = bound === 'none' || (bound !== 'ended' && atDashboard.get(bound) === 'let through')
        compared += 1
        if (verdicts[at] === 'let through' && !may) stronger.push(`${name}: ${made.maker} ${made.scopes}`)
        const has = (wanted: readonly Scope[]) => wanted.some((scope) => made.scopes.includes(scope))
        const ranked = bound === 'none' || (bound !== 'ended' && roles.indexOf(bound) >= lowest)
        const expected: Verdict =
          (bound === 'ended' && 'invalid_key') ||
          (!has(stated) && 'missing_scope') ||
          (!ranked && 'missing_role') ||
          (!has(needed) && 'missing_scope') ||
          'let through'
        expect([made.maker, made.scopes, verdicts[at]]).toEqual([made.maker, made.scopes, expected])
      }
    }
  })

  test('0 keys are stronger than their maker', () => {
    expect(stronger).toEqual([])
    expect(compared).toBeGreaterThanOrEqual(routes.length * keys.length)
  })
})

describe('GET /me', () => {
  test("capabilities say what the maker's role leaves of the scopes", async () => {
    for (const made of keys.filter((each) => each.scopes === scopes && boundOf[each.maker] !== 'ended')) {
      const { body } = await service.get('/me', { key: made.key })
      const capabilities = body.capabilities as Record<string, boolean>
      const refused = routes.filter(({ name }) => made.maker === 'member' && inWorkspace[name] !== 'member')
      for (const { name } of refused)
        expect([made.maker, name, capabilities[name]]).toEqual([made.maker, name, false])
      expect(capabilities.create_webhook).toBe(made.maker !== 'member')
      expect(capabilities.create_campaign).toBe(made.maker !== 'member')
      expect(capabilities.create_broadcast).toBe(made.maker !== 'member')
      expect(capabilities.move_chat).toBe(true)
    }
  })
})

describe('403 missing_role', () => {
  test('names who may, and says that a key can do no more than its maker', async () => {
    const { key } = await makeKey(await addUser('member'), ['write'])
    const { status, body } = await service.get('/webhooks', { key })
    expect([status, body.code]).toEqual([403, 'missing_role'])
    expect(body.error).toBe(
      'Only an admin or an owner of this workspace may do this, and a key can do no more than the user who made it.',
    )
  })

  test('a lower role counts with the next request, a higher one too', async () => {
    const user_id = await addUser('admin')
    const { workspace_id } = own
    const { key } = await makeKey(user_id, scopes)
    expect((await service.get('/webhooks', { key })).status).toBe(200)
    await setRole(service.app, 'system', { workspace_id, user_id, role: 'member' })
    expect((await service.get('/webhooks', { key })).body.code).toBe('missing_role')
    expect((await service.get('/campaigns', { key })).body.code).toBe('missing_role')
    await setRole(service.app, 'system', { workspace_id, user_id, role: 'admin' })
    expect((await service.get('/webhooks', { key })).status).toBe(200)
  })

  test('a role that another process lowered counts within a second', timed, async () => {
    const user_id = await addUser('admin')
    const { workspace_id } = own
    const { key } = await makeKey(user_id, ['write'])
    expect((await service.get('/webhooks', { key })).status).toBe(200)
    // As another process would: this one is not notified.
    await service.app.db.run(sql`
      update memberships set role = 'member' where workspace_id = ${workspace_id} and user_id = ${user_id}`)
    const changedAt = performance.now()
    await until('the role counts', hangMs, async () => {
      const { body } = await service.get('/webhooks', { key })
      return body.code === 'missing_role'
    })
    expect(performance.now() - changedAt).toBeLessThan(1_500)
  })

  test('a repeat of an earlier request is refused too: the role comes before the stored answer', async () => {
    const user_id = await addUser('admin')
    const { workspace_id } = own
    const { key } = await makeKey(user_id, scopes)
    const account_id = await service.account(workspace_id)
    const ask = {
      key,
      body: { account_id, audience_type: 'stage', audience_ref: 'new', message_text: 'Hello' },
      headers: headersOf(),
    }
    expect((await service.post('/broadcast', ask)).status).toBe(200)
    await setRole(service.app, 'system', { workspace_id, user_id, role: 'member' })
    const repeat = await service.post('/broadcast', ask)
    expect([repeat.status, repeat.body.code]).toEqual([403, 'missing_role'])
    expect(repeat.headers.get('idempotent-replayed')).toBeNull()
  })

  test('after the scope and before the allowlists', async () => {
    const { workspace_id } = own
    const user_id = await addUser('member')
    await service.allow({ workspace_id, user_id }, false)
    await service.allow({ workspace_id, user_id: own.user_id })
    const reader = await makeKey(user_id, ['read'])
    expect((await service.get('/campaigns', reader)).body.code).toBe('missing_scope')
    const campaigner = await makeKey(user_id, ['campaigns'])
    expect((await service.get('/campaigns', campaigner)).body.code).toBe('missing_role')
    await service.shut('campaigns')
    expect((await service.get('/campaigns', campaigner)).body.code).toBe('feature_disabled')
    await service.open('campaigns')
  })

  test("a key from before Parley stored who issued it counts as its user's own", async () => {
    const { workspace_id } = own
    const { id, key } = await service.key({
      workspace_id,
      user_id: await addUser('member'),
      scopes: ['write'],
    })
    expect((await service.get('/webhooks', { key })).status).toBe(200)
    await service.app.db.run(sql`update keys set issued_by = null where id = ${id}`)
    // Nothing else changes this column, so no trigger watches it.
    await service.shut('analytics')
    await service.open('analytics')
    expect((await service.get('/webhooks', { key })).body.code).toBe('missing_role')
  })
})
