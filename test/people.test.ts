/** What every route for people answers to every kind of caller. A new route is covered as soon as it has its line. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { addColumn } from '../src/capabilities/columns/columns.ts'
import { addStages } from '../src/capabilities/pipeline/pipeline.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { ownPrefix, type Role, workspacePrefix } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { newAccountId, newId } from '../src/lib/ids.ts'
import { ownRoutes, workspaceRoutes } from '../src/lists/dashboard-routes.ts'
import { routes } from '../src/lists/routes.ts'
import type { Route } from '../src/route.ts'
import { insertCampaign } from './harness/campaigns.ts'
import { askDashboard, signIn } from './harness/person.ts'
import { type Answer, openService, type Service, type Tenant } from './harness/service.ts'
import { addOperation } from './harness/team.ts'
import { type Line, lines, type Persona, personas, type Subject } from './people.expectations.ts'

const listed = [...workspaceRoutes, ...ownRoutes]
const isOwnRoute = (route: Route) => ownRoutes.includes(route)

let service: Service
const accounts = { own: '', other: '' }
let own: Tenant
let other: Tenant
/** The users whose sessions are used; the second and third owner and the colleague never call. */
const users: Partial<Record<Persona | 'owner2' | 'owner3' | 'colleague' | 'elsewhere', string>> = {}
const cookies: Partial<Record<Persona, string>> = {}

const userOf = (name: keyof typeof users) => users[name] as string

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  other = await service.tenant('Other')
  accounts.own = await service.account(own.workspace_id)
  accounts.other = await service.account(other.workspace_id)
  await service.chat({ account_id: accounts.own, workspace_id: own.workspace_id })
  await service.chat({ account_id: accounts.other, workspace_id: other.workspace_id })
  users.owner = own.user_id
  users.stranger = other.user_id
  for (const [name, role] of [
    ['member', 'member'],
    ['admin', 'admin'],
    ['former', 'owner'],
    ['owner2', 'owner'],
    ['owner3', 'owner'],
    ['colleague', 'member'],
    ['operator', 'owner'],
  ] as const) {
    users[name] = await addUser(name, role)
  }
  const { id } = await createUser(service.app, 'system', {
    email: 'elsewhere@other.example',
    workspace_id: other.workspace_id,
  })
  users.elsewhere = id
  await signIn(service, id)
  // An owner who cannot sign in would not count as another one.
  await signIn(service, userOf('owner3'))
  for (const name of ['member', 'admin', 'owner'] as const) {
    await service.allow({ workspace_id: own.workspace_id, user_id: userOf(name) })
  }
  await service.app.db.run(sql`update users set operator = true where id = ${userOf('operator')}`)
  for (const persona of ['member', 'admin', 'owner', 'operator', 'stranger', 'former'] as const) {
    cookies[persona] = await signIn(service, userOf(persona))
  }
})
afterAll(() => service.close())

async function addUser(name: string, role: Role): Promise<string> {
  const email = `${name}@own.example`
  const { id } = await createUser(service.app, 'system', { email, workspace_id: own.workspace_id, role })
  return id
}

/** Undoes what the last request changed: every user has the role of their name again, and free keys left. */
beforeEach(restore)
async function restore(): Promise<void> {
  const { db } = service.app
  const { workspace_id } = own
  await db.run(sql`
    update memberships m set ended_at = null, role = case
      when m.user_id = any(${[userOf('member'), userOf('colleague')]}) then 'member'
      when m.user_id = ${userOf('admin')} then 'admin' else 'owner' end
    where workspace_id = ${workspace_id}`)
  await db.run(sql`
    update memberships set ended_at = now()
    where workspace_id = ${workspace_id} and user_id = any(${[userOf('operator'), userOf('former')]})`)
  await db.run(sql`update sessions set revoked_at = null`)
  // Otherwise a workspace would reach its limits of stages and columns.
  await db.run(sql`delete from stages where key <> 'new'`)
  await db.run(sql`delete from columns`)
  await db.run(sql`update users set password_hash = null, disabled_at = null`)
  await db.run(sql`update workspaces set disabled_at = null where disabled_at is not null`)
  await db.run(sql`update keys set revoked_at = now() where revoked_at is null and id <> ${own.key_id}`)
  if (gatesTouched) await service.open('all')
  gatesTouched = false
}
let gatesTouched = false

test('every route for people has a line, and every line a route', () => {
  expect(Object.keys(lines).sort()).toEqual(listed.map(({ name }) => name).sort())
  for (const route of listed) {
    const { method, path } = lines[route.name] ?? {}
    expect([route.name, route.method, route.path]).toEqual([route.name, method, path])
    // No key is ever accepted, whatever its scopes.
    expect([route.name, route.scopes]).toEqual([route.name, []])
  }
})

/** The object in the address, new for every request. */
async function objectOf(route: Route, subject: Subject, persona: Persona): Promise<string> {
  const ofAccount = /\{(account|chat)_id\}/.test(route.path)
  if (subject === 'missing') return ofAccount ? newAccountId() : newId()
  if (subject === 'malformed') return "x' or 1=1"
  if (ofAccount) return subject === 'foreign' ? accounts.other : accounts.own
  const tenant = subject === 'foreign' ? other : own
  if (route.path.includes('{workspace_id}')) return tenant.workspace_id
  if (route.path.includes('{saved_reply_id}')) return savedReplyOf(tenant)
  if (route.path.includes('{stage_key}')) return stageOf(tenant)
  if (route.path.includes('{column_id}')) return columnOf(tenant)
  if (route.path.includes('{campaign_id}')) return insertCampaign(service.app.db, tenant, {})
  const user_id = {
    own: users[persona] ?? own.user_id,
    colleague: userOf('colleague'),
    owner: userOf('owner2'),
    foreign: other.user_id,
    any: own.user_id,
  }[subject]
  if (route.path.includes('{note_id}')) return noteOf(subject, user_id)
  if (route.path.includes('{operation_id}')) return operationOf(subject)
  if (route.path.includes('{session_id}')) return sessionOf(subject, persona)
  if (route.path.includes('{request_id}'))
    return requestFor(subject === 'foreign' ? userOf('elsewhere') : user_id)
  if (!route.path.includes('{key_id}')) return user_id
  // A caller who does not belong to the workspace has no key in it.
  const belongs = !['operator', 'stranger', 'former'].includes(persona) || subject !== 'own'
  const workspace_id = subject === 'foreign' ? other.workspace_id : own.workspace_id
  return (await service.key({ workspace_id, user_id: belongs ? user_id : own.user_id })).id
}

async function savedReplyOf({ workspace_id }: Tenant): Promise<string> {
  const id = newId()
  await service.app.db.run(sql`
    insert into saved_replies (id, workspace_id, title, text) values (${id}, ${workspace_id}, 'Hours', 'Monday')`)
  return id
}

/** A stage that only this workspace has. */
async function stageOf({ workspace_id }: Tenant): Promise<string> {
  const key = newId()
  await service.app.db.transaction((tx) => addStages(tx, workspace_id, [{ key, label: 'Stage' }]))
  return key
}

function columnOf({ workspace_id }: Tenant): Promise<string> {
  const column = { name: 'Plan', type: 'select', options: [{ value: 'Team' }] } as const
  return service.app.db.transaction((tx) => addColumn(tx, workspace_id, column))
}

/** What an agent with a key of this user wants to write. */
async function requestFor(user_id: string): Promise<string> {
  const there = [other.user_id, userOf('elsewhere')].includes(user_id)
  const { workspace_id } = there ? other : own
  const id = newId()
  await service.app.db.run(sql`
    with key as (
      insert into keys (id, workspace_id, user_id, name, prefix, hash, scopes)
      values (${newId()}, ${workspace_id}, ${user_id}, 'agent', 'svc_live_agent', ${randomBytes(32)}, '{send}')
      returning id
    )
    insert into approvals (id, workspace_id, user_id, key_id, operation, account_id, chat_id, payload, fingerprint, expires_at)
    select ${id}, ${workspace_id}, ${user_id}, id, 'send_message', ${there ? accounts.other : accounts.own}, 42,
      '{"text": "hello"}', ${randomBytes(32)}, now() + interval '10 minutes'
    from key`)
  return id
}

async function noteOf(subject: Subject, author_id: string): Promise<string> {
  const [tenant, account_id] = subject === 'foreign' ? [other, accounts.other] : [own, accounts.own]
  const id = newId()
  await service.app.db.run(sql`
    insert into notes (id, workspace_id, account_id, chat_id, author_id, text)
    select ${id}, ${tenant.workspace_id}, ${account_id}, 42, user_id, 'A note.' from memberships
    where workspace_id = ${tenant.workspace_id} order by (user_id = ${author_id}) desc limit 1`)
  return id
}

/** Of a message whose outcome is unknown. */
function operationOf(subject: Subject): Promise<string> {
  const [{ workspace_id }, account_id] = subject === 'foreign' ? [other, accounts.other] : [own, accounts.own]
  return addOperation(service, { workspace_id, account_id }, { state: 'ambiguous', reason: 'timeout' })
}

/** The colleague cannot sign in yet, so another user stands in here. */
async function sessionOf(subject: Subject, persona: Persona): Promise<string> {
  const colleague = persona === 'admin' ? 'member' : 'admin'
  const whose = subject === 'own' ? persona : subject === 'colleague' ? colleague : 'elsewhere'
  const found = await service.app.db.maybe<{ id: string }>(
    sql`select id from sessions where user_id = ${users[whose] ?? own.user_id} limit 1`,
  )
  return found?.id ?? newId()
}

let serial = 0

async function ask(route: Route, persona: Persona, subject: Subject): Promise<Answer> {
  const id = await objectOf(route, subject, persona)
  gatesTouched ||= route.name === 'set_gate'
  const { params = {}, query = {}, body } = route.example
  const { chat_id } = params
  const objects = Object.fromEntries(Object.keys(params).map((name) => [name, id]))
  const named = subject === 'any' ? params : { ...objects, ...(chat_id !== undefined && { chat_id }) }
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (subject === 'missing' && (name === 'name' || name === 'list')) return 'nothing'
    return encodeURIComponent((named as Record<string, string>)[name] ?? '')
  })
  const readsChat = route.path.includes('{chat_id}') && route.method === 'GET'
  const whole = route.text ? query : {}
  const asked = subject === 'any' ? whole : readsChat ? { account_id: id } : query
  const door = isOwnRoute(route) ? '' : `/w/${own.workspace_id}`
  return askDashboard(service, route.method, `${door}${path}?${new URLSearchParams(asked)}`, {
    cookie: cookies[persona],
    body: bodies[route.name]?.(id) ?? body,
    headers: persona === 'key' ? { authorization: `Bearer ${own.key}` } : {},
  })
}

/** For bodies that would not work twice, or that name the object. */
const bodies: Readonly<Record<string, (id: string) => unknown>> = {
  assign_chat: (account_id) => ({ account_id, user_id: userOf('colleague') }),
  create_note: (account_id) => ({ account_id, text: 'A note.' }),
  visit_chat: (account_id) => ({ account_id, state: 'open' }),
  sign_in: () => ({ email: `nobody${serial++}@own.example`, password: 'correct horse battery' }),
  change_password: () => ({ password: 'another horse battery' }),
  add_member: () => ({ email: `new${serial++}@own.example`, role: 'member' }),
  create_user: () => ({
    email: `new${serial++}@own.example`,
    workspace_id: own.workspace_id,
    role: 'member',
  }),
  set_allowlist: () => ({ id: own.user_id, listed: true }),
}

const changes = () => service.app.db.one<{ rows: number }>(sql`select count(*)::int as rows from audit`)

describe.each(listed.map((route) => [`${route.method} ${route.path}`, route] as const))('%s', (_, route) => {
  const { objects, answers } = lines[route.name] as Line
  test.each(personas)('answers as its line says to: %s', async (persona) => {
    const expected = answers[persona].split(', ')
    expect([1, objects.length]).toContain(expected.length)
    for (const [at, subject] of objects.entries()) {
      await restore()
      const [status, code] = (expected[at] ?? expected[0] ?? '').split(' ')
      const before = await changes()
      const answer = await ask(route, persona, subject)
      expect({ subject, status: answer.status, body: answer.body }).toMatchObject({
        subject,
        status: Number(status),
        body: code ? { code } : {},
      })
      if (answer.status >= 400) {
        expect(Object.keys(answer.body).sort()).toEqual(['code', 'error'])
        expect(answer.body.error).toMatch(/^[A-Z].*[.?]$/)
        // A refusal changes nothing. A key that was made for the request is one row.
        const made = route.path.includes('{key_id}') && !['missing', 'malformed'].includes(subject) ? 1 : 0
        expect(await changes()).toEqual({ rows: before.rows + made })
      } else if (!route.live && !route.saved) {
        expect(route.response.safeParse(answer.body).error).toBeUndefined()
      }
    }
  })
})

/** Operators may ask about any user. */
const elsewhere = listed.filter(({ name, operator }) => !operator && lines[name]?.objects.includes('foreign'))

test.each(elsewhere.map((route) => [`${route.method} ${route.path}`, route] as const))(
  "%s answers the same for another workspace's object and for an unknown one",
  async (_, route) => {
    for (const persona of ['member', 'admin', 'owner'] as const) {
      const foreign = await ask(route, persona, 'foreign')
      const missing = await ask(route, persona, 'missing')
      expect(withoutId(foreign)).toEqual(withoutId(missing))
    }
  },
)

/** An answer without what identifies the one request. */
function withoutId({ status, headers, body }: Answer) {
  const ignored = ['x-request-id', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'date']
  const kept = [...headers].filter(([name]) => !ignored.includes(name))
  const text = JSON.stringify(body).replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|acc_\w+/g, 'ID')
  return { status, headers: kept, text }
}

describe('the contract’s routes at the dashboard', () => {
  const path = ({ path, example }: Route) =>
    path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(example.params?.[name] ?? 'x'))
  const askAs = (route: Route, persona: Persona) =>
    askDashboard(service, route.method, `/w/${own.workspace_id}${path(route)}`, {
      cookie: cookies[persona],
      body: route.example.body,
      headers: {
        'idempotency-key': `people-${serial++}`,
        ...(persona === 'key' && { authorization: `Bearer ${own.key}` }),
      },
    })

  test.each(routes.map((route) => [route.name, route] as const))('%s', async (_, route) => {
    for (const persona of ['operator', 'stranger', 'former'] as const) {
      expect(await askAs(route, persona)).toMatchObject({ status: 404, body: { code: 'not_found' } })
    }
    for (const persona of ['signed_out', 'key'] as const) {
      expect(await askAs(route, persona)).toMatchObject({ status: 401, body: { code: 'not_signed_in' } })
    }
    // `test/roles.test.ts` tests what each role may do.
    const { status, body } = await askAs(route, 'owner')
    expect([401, 405, 500]).not.toContain(status)
    expect(['missing_scope', 'missing_role', 'origin_refused']).not.toContain(body.code)
  })
})

test('the tested prefixes are the served ones', () => {
  expect([ownPrefix, workspacePrefix]).toEqual(['/dashboard/api', '/dashboard/api/w/{workspace_id}'])
})
