/** What every operation must do, tested on all of them. A new route is covered as soon as it is listed. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createColumn } from '../src/capabilities/columns/columns.ts'
import { createWebhook } from '../src/capabilities/webhooks/webhooks.ts'
import { apiPrefix, type Gate, scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { emit } from '../src/events/emit.ts'
import { sequence } from '../src/events/sequencer.ts'
import { newId } from '../src/lib/ids.ts'
import { routes } from '../src/lists/routes.ts'
import { errorsOf } from '../src/openapi/route-errors.ts'
import { writeMessage } from '../src/platform/sandbox/person-acts.ts'
import type { Route } from '../src/route.ts'
import { type Expectation, expectations } from './contract.expectations.ts'
import { probes } from './harness/probes.ts'
import { type Answer, type Ask, openService, type Service, type Tenant } from './harness/service.ts'
import { openWorkplace, type Workplace } from './harness/worker.ts'

const listed = [...routes, ...probes]
const expected = (route: Route): Expectation => expectations[route.name] as Expectation
/** If the body decides what is required, each such body is a case. */
const cases = listed.flatMap((route) => {
  const { variants, ...rest } = expected(route) ?? {}
  const title = `${route.method} ${route.path}`
  if (!variants) return [[title, route, rest as Expectation] as const]
  return Object.entries(variants).map(([name, { body, ...differing }]) => {
    const asked = { ...route, example: { ...route.example, body } } as Route
    return [`${title} ${name}`, asked, { ...rest, ...differing } as Expectation] as const
  })
})

/** What only our own workspace may ever see. */
const canary = 'canaryofown'
const showsCanary = [
  'list_chats',
  'get_chat',
  'list_messages',
  'list_contacts',
  'list_events',
  'get_columns',
  'list_campaigns',
  'get_campaign',
  'list_webhooks',
]

/** The limits of single operations have their own tests. */
const limitsAway = {
  PARLEY_START_CHAT_PER_MINUTE: '10000',
  PARLEY_CAMPAIGN_CREATE_PER_MINUTE: '10000',
  PARLEY_CAMPAIGN_CANCEL_PER_MINUTE: '10000',
}

let workplace: Workplace
let service: Service
let own: Tenant
let other: Tenant
let account_id: string
let chat_id: string
let column_id: string
let operation_id: string
let campaign_id: string
let broadcast_id: string
let webhook_id: string
let delivery_id: string

beforeAll(async () => {
  workplace = await openWorkplace({ routes: probes, env: limitsAway })
  service = workplace.service
  await service.open('extended')
  own = await service.tenant('Own')
  other = await service.tenant('Other')
  await workplace.work()
  const person = workplace.sandbox.world.addPerson({ name: canary, username: 'ines_garcia' })
  chat_id = `platform:chat:${person.person_id}`
  account_id = await workplace.connected(own)
  const id = `${person.person_id}` as const
  await service.chat({ account_id, workspace_id: own.workspace_id, id, name: canary, texts: [canary] })
  const photo = {
    index: 0,
    kind: 'photo',
    file_name: canary,
    media_type: 'image/png',
    size: 9,
    seed: 1,
  } as const
  for (let n = 1; n <= 7; n++) {
    writeMessage(workplace.sandbox.world, {
      account_id,
      person_id: person.person_id,
      text: canary,
      file: photo,
    })
  }
  await workplace.untilStored(account_id, 7)
  const column = await createColumn(service.app, 'system', {
    workspace_id: own.workspace_id,
    name: canary,
    type: 'select',
    options: [{ value: 'Team' }],
  })
  column_id = column.id
  const actor = { type: 'system', id: 'system' }
  const moved = { account_id, chat_id, from_stage_key: canary, to_stage_key: 'new', actor }
  await service.app.db.transaction((tx) =>
    emit(tx, own.workspace_id, [{ type: 'pipeline.moved', occurred_at: null, data: moved }]),
  )
  await sequence(service.app.db)
  operation_id = newId()
  await service.app.db.run(sql`
    insert into operations (id, workspace_id, kind, effect, fingerprint, state, reply_status)
    values (${operation_id}, ${own.workspace_id}, 'probe', 'local', ${Buffer.alloc(32)}, 'completed', 200)`)
  await service.allow(own)
  await service.allow(other)
  campaign_id = await campaign()
  const broadcast = await service.post('/broadcast', {
    key: own.key,
    body: { account_id, audience_type: 'stage', audience_ref: 'new', message_text: canary },
  })
  broadcast_id = String(broadcast.body.broadcast_id)
  await makeWebhook()
})
afterAll(() => workplace.close())

/** A workspace has 50 keys at most, so each test revokes the ones it made. */
afterEach(async () => {
  await service.app.db.run(
    sql`update keys set revoked_at = now() where revoked_at is null and id <> all(${[own.key_id, other.key_id]})`,
  )
  await service.settle()
})

test('every listed operation has an expectation, and every expectation an operation', () => {
  expect(Object.keys(expectations).sort()).toEqual(listed.map(({ name }) => name).sort())
})

test('the expectations are independent of the routes and agree with them', () => {
  for (const route of listed) {
    const { method, path, scopes: wanted, gates, allowlists, idempotency } = expected(route)
    expect({
      method: route.method,
      path: route.path,
      scopes: route.scopes,
      gates: route.gates ?? [],
      allowlists: route.allowlists ?? [],
      idempotency: route.idempotency ?? 'none',
    }).toEqual({ method, path, scopes: wanted, gates, allowlists, idempotency })
  }
})

/** An endpoint with a delivery. Earlier ones are removed, because a workspace has at most 10. */
async function makeWebhook(): Promise<void> {
  const { db } = service.app
  const { workspace_id } = own
  await db.run(sql`update webhooks set deleted_at = now(), active = false where deleted_at is null`)
  const url = `https://${canary}.example.com/hook`
  const made = await db.transaction((tx) => createWebhook(service.app, tx, 'system', { workspace_id, url }))
  webhook_id = made.webhook.id
  // Not active, because no request of ours goes to the internet.
  await db.run(sql`update webhooks set active = false where id = ${webhook_id}`)
  delivery_id = newId()
  await db.run(sql`
    insert into webhook_deliveries (id, workspace_id, webhook_id, sequence, event_id, type, due_at, created_at)
    select ${delivery_id}, ${workspace_id}, ${webhook_id}, sequence, id, type, now(), created_at
    from events where workspace_id = ${workspace_id} limit 1`)
}

/** A sequence of ours, with `canary` like everything else. */
async function campaign(): Promise<string> {
  const answer = await service.post('/campaigns', {
    key: own.key,
    headers: { 'idempotency-key': `campaign-${serial++}` },
    body: {
      name: canary,
      message_text: canary,
      recipients: [{ account_id, chat_id }],
      steps: [{ branch: 'no_reply', wait_hours: 1, variants: [canary] }],
      scheduled_at: new Date(Date.now() + 86_400_000).toISOString(),
    },
  })
  return (answer.body.campaign as { id: string }).id
}

/** What must hold for a request to succeed once more. */
const before: Readonly<Record<string, () => Promise<unknown>>> = {
  resume_campaign: () =>
    service.app.db.run(sql`
      update campaigns set status = 'paused', pause_reason = 'requested' where id = ${campaign_id}`),
  cancel_campaign: async () => {
    const { status } = await service.app.db.one<{ status: string }>(
      sql`select status from campaigns where id = ${campaign_id}`,
    )
    if (status === 'cancelled') campaign_id = await campaign()
  },
}

/** A request that would succeed, made from the operation's own example. */
let serial = 0
async function ask(route: Route, overrides: Ask = {}): Promise<Answer> {
  await before[route.name]?.()
  if (route.path.startsWith('/webhooks')) await makeWebhook()
  const example = JSON.stringify(route.example)
    .replaceAll('platform:chat:42', chat_id)
    .replaceAll('0199a1f0-0000-7000-8000-00000000000a', column_id)
    .replaceAll('019a7e6e-7c1a-7b55-9f53-0d6a1f0c7a11', operation_id)
    .replaceAll('019a7e70-0000-7000-8000-0000000000c1', campaign_id)
    .replaceAll('019a7e70-0000-7000-8000-0000000000b1', broadcast_id)
    .replaceAll('acc_2Jk9vQ7wXb4LmN8pRt3Z', account_id)
    .replaceAll('019a7e6e-7c1a-7b55-9f53-0d6a1f0c7b01', webhook_id)
    .replaceAll('019a7e6e-7c1a-7b55-9f53-0d6a1f0c7b02', delivery_id)
  const { params = {}, query = {}, body }: Route['example'] = JSON.parse(example)
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name] ?? ''))
  const filled = new URLSearchParams({ ...query, ...('account_id' in query && { account_id }) })
  const withAccount =
    typeof body === 'object' && body !== null && 'account_id' in body ? { ...body, account_id } : body
  return service.call(route.method, `${path}?${filled}`, {
    key: own.key,
    body: withAccount,
    ...overrides,
    headers: { 'idempotency-key': `contract-${serial++}`, ...overrides.headers },
  })
}

function refused(answer: Answer, status: number, code: string): void {
  expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code })
  expect(Object.keys(answer.body).sort()).toEqual(['code', 'error'])
  expect(answer.body.error).toMatch(/^[A-Z].*[.?]$/)
  hasHeaders(answer)
}

function hasHeaders({ headers }: Answer): void {
  for (const name of ['limit', 'remaining', 'reset'])
    expect(headers.get(`x-ratelimit-${name}`)).toMatch(/^\d+$/)
  expect(headers.get('x-request-id')).toBeTruthy()
}

test('account_unavailable is documented exactly where an account can be given', () => {
  for (const route of routes) {
    const shapes = [route.query, route.body].map(
      (schema) => (schema as { shape?: object } | undefined)?.shape,
    )
    const named = shapes.some((shape) => shape && 'account_id' in shape)
    const told = errorsOf(route).some(([code]) => code === 'account_unavailable')
    expect([route.name, told]).toEqual([route.name, named])
  }
})

describe.each(cases)('%s', (_, route, expectation) => {
  const { scopes: wanted, gates, allowlists } = expectation

  test('2xx for an allowed key', async () => {
    const answer = await ask(route)
    expect(answer.status, JSON.stringify(answer.body)).toBe(expectation.success ?? 200)
    hasHeaders(answer)
    const parsed = route.response.safeParse(answer.body)
    expect(parsed.error).toBeUndefined()
    // A value that the document does not name would be missing here.
    expect(parsed.data).toEqual(answer.body)
  })

  test('401 without a key, and with one that is malformed, unknown, repeated or elsewhere', async () => {
    const unknown = 'svc_live_00000000000000000000000000000000000000'
    refused(await ask(route, { key: undefined }), 401, 'invalid_key')
    for (const key of [
      '',
      'x',
      'svc_live_',
      unknown,
      own.key.toLowerCase(),
      `${own.key}x`,
      `${own.key} `.repeat(2),
    ]) {
      refused(await ask(route, { key }), 401, 'invalid_key')
    }
    const basic = `Basic ${Buffer.from(`${own.key}:`).toString('base64')}`
    refused(await ask(route, { key: undefined, headers: { authorization: basic } }), 401, 'invalid_key')
    refused(await ask(route, { key: undefined, headers: { cookie: `key=${own.key}` } }), 401, 'invalid_key')
    refused(await service.call(route.method, `${route.path}?key=${own.key}`), 401, 'invalid_key')
  })

  test('401 with a key that was revoked or has expired', async () => {
    const revoked = await service.key(own)
    const expired = await service.key({ ...own, expires_at: new Date(Date.now() - 1000) })
    expect((await ask(route, { key: revoked.key })).status).toBeLessThan(300)
    await service.app.db.run(sql`update keys set revoked_at = now() where id = ${revoked.id}`)
    await service.settle()
    refused(await ask(route, { key: revoked.key }), 401, 'invalid_key')
    refused(await ask(route, { key: expired.key }), 401, 'invalid_key')
  })

  test('403 with each scope that is not sufficient', async () => {
    for (const scope of scopes.filter((each) => !wanted.includes(each))) {
      const { key } = await service.key({ ...own, scopes: [scope] })
      refused(await ask(route, { key }), 403, 'missing_scope')
    }
    for (const scope of wanted) {
      const { key } = await service.key({ ...own, scopes: [scope] })
      expect((await ask(route, { key })).status).toBeLessThan(300)
    }
  })

  test('403 for an MCP-only key', async () => {
    const { key } = await service.key({ ...own, mcp_only: true })
    refused(await ask(route, { key }), 403, 'missing_scope')
  })

  test('shows a foreign workspace nothing of ours', async () => {
    const answer = await ask(route, { key: other.key })
    const { foreign } = expectation
    if (foreign === 'own') expect(answer.status).toBe(expectation.success ?? 200)
    else refused(answer, ...foreign)
    for (const ours of [own.workspace_id, canary]) expect(JSON.stringify(answer.body)).not.toContain(ours)
    // Our own data is visible to ourselves.
    if (showsCanary.includes(route.name)) expect(JSON.stringify((await ask(route)).body)).toContain(canary)
  })

  test('503 while each of its gates is closed', async () => {
    for (const gate of ['rest', ...gates] as Gate[]) {
      await service.shut(gate)
      refused(await ask(route), 503, gate === 'rest' ? 'rest_disabled' : 'feature_disabled')
      await service.open(gate)
    }
  })

  test('403 while each of its allowlists lacks the caller', async () => {
    for (const list of allowlists) {
      await service.app.db.run(sql`delete from allowlists where list = ${list}`)
      await service.settle()
      refused(await ask(route), 403, 'not_allowlisted')
      await service.allow(own)
      await service.allow(other)
    }
  })

  test('405 for a method it does not answer', async () => {
    const here = listed
      .filter(({ path }) => path === route.path)
      .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [String(method)]))
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      if (here.includes(method)) continue
      const answer = await ask({ ...route, method: method as Route['method'] }, { body: undefined })
      refused(answer, 405, 'method_not_allowed')
      expect(answer.headers.get('allow')).toBe(here.join(', '))
    }
  })

  test.runIf(route.body)('400 for an unknown property, which is named', async () => {
    const answer = await ask(route, { body: { ...(route.example.body as object), surprise: 1 } })
    refused(answer, 400, 'invalid_request')
    expect(answer.body.error).toContain('"surprise"')
  })

  test.runIf(expectation.idempotency === 'required')('400 without Idempotency-Key', async () => {
    const { params = {}, body } = route.example
    const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name] ?? ''))
    const answer = await service.call(route.method, path, { key: own.key, body })
    refused(answer, 400, 'idempotency_key_required')
  })
})

describe('every operation', () => {
  test('503 while the gates cannot be read, and recovers once they can', async () => {
    await service.app.db.run(sql`alter table gates rename to gates_away`)
    try {
      await new Promise((resolve) => setTimeout(resolve, 1_100))
      for (const route of listed) refused(await ask(route), 503, 'schema_unavailable')
    } finally {
      await service.app.db.run(sql`alter table gates_away rename to gates`)
    }
    for (const route of listed) expect((await ask(route)).status).toBeLessThan(300)
  })

  test('429 above the limit, counting only allowed requests', async () => {
    const limited = await openService({ routes: probes, env: { PARLEY_RATE_LIMIT: '3' } })
    try {
      await limited.open('extended')
      for (const { method, path } of listed) {
        const { key } = await limited.tenant()
        const again = () => limited.call(method, path, { key, ...(method !== 'GET' && { body: {} }) })
        for (let left = 2; left >= 0; left--) {
          expect((await again()).headers.get('x-ratelimit-remaining')).toBe(String(left))
        }
        const answer = await again()
        refused(answer, 429, 'rate_limited')
        const seconds = Number(answer.headers.get('retry-after'))
        expect([seconds > 0, seconds <= 60]).toEqual([true, true])
        refused(await limited.call(method, path, { key: 'wrong' }), 401, 'invalid_key')
      }
    } finally {
      await limited.close()
    }
  })
})

describe('an unknown address', () => {
  let paths: readonly string[]
  beforeEach(() => {
    paths = ['/nothing', '/me/nothing', '/ME', '//me', '/me;a', '/%6de%00']
  })

  test('401 before 404: callers without a key learn nothing about what exists', async () => {
    for (const path of paths) refused(await service.get(`${apiPrefix}${path}`), 401, 'invalid_key')
  })

  test('404 with a key', async () => {
    for (const path of paths)
      refused(await service.get(`${apiPrefix}${path}`, { key: own.key }), 404, 'not_found')
  })

  test('404 outside the API too, as JSON', async () => {
    for (const path of [
      '/nothing',
      '/register',
      '/.well-known/oauth-authorization-server',
      '/api/nothing',
      '/api/v2/me',
    ]) {
      const response = await fetch(service.url + path)
      expect([response.status, await response.json()]).toMatchObject([404, { code: 'not_found' }])
      expect(response.headers.get('x-ratelimit-limit')).toBeTruthy()
    }
  })
})
