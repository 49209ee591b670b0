/** What every operation must do, tested on all of them. A new route is covered as soon as it is listed. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { apiPrefix, type Gate, scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { routes } from '../src/lists/routes.ts'
import { errorsOf } from '../src/openapi/route-errors.ts'
import type { Route } from '../src/route.ts'
import { type Expectation, expectations } from './contract.expectations.ts'
import { canary, type Examples, openExamples } from './harness/examples.ts'
import { probes } from './harness/probes.ts'
import { type Answer, type Ask, openService, type Service, type Tenant } from './harness/service.ts'

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

let examples: Examples
let service: Service
let own: Tenant
let other: Tenant

beforeAll(async () => {
  examples = await openExamples({ routes: probes })
  ;({ service, own, other } = examples)
})
afterAll(() => examples.close())

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

/** A request that would succeed, made from the operation's own example. */
const ask = (route: Route, overrides: Ask = {}) => examples.ask(route, overrides)

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
