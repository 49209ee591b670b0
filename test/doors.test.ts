/** The three doors: keys at the API, users at the dashboard, and neither at the other's. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createUser } from '../src/capabilities/users/users.ts'
import type { Role } from '../src/contract.ts'
import { newId } from '../src/lib/ids.ts'
import { ownRoutes, workspaceRoutes } from '../src/lists/dashboard-routes.ts'
import { routes } from '../src/lists/routes.ts'
import { ok, ownRoute, type Route, route } from '../src/route.ts'
import { Browser } from './harness/browser.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'

const performed: string[] = []
const probe = {
  method: 'POST',
  scopes: [],
  effect: 'read',
  response: z.object({ ok: z.literal(true) }),
  example: { response: { ok: true } },
} as const

/** One that every role except the lower ones may use, and one for operators. */
const probesInWorkspace = (['member', 'admin', 'owner'] as const).map((role) =>
  route({
    ...probe,
    name: `probe_${role}`,
    path: `/probe-${role}`,
    summary: `For every ${role}`,
    role,
    handle: async () => {
      performed.push(role)
      return ok({ ok: true })
    },
  }),
)
const probeForOperators = ownRoute({
  ...probe,
  name: 'probe_operator',
  path: '/probe-operator',
  summary: 'For operators',
  operator: true,
  handle: async () => {
    performed.push('operator')
    return ok({ ok: true })
  },
})

let service: Service
let own: Tenant
let other: Tenant
let browser: Browser

beforeAll(async () => {
  service = await openService({
    dashboard: {
      workspaceRoutes: [...workspaceRoutes, ...probesInWorkspace],
      ownRoutes: [...ownRoutes, probeForOperators],
    },
  })
  own = await service.tenant('Own')
  other = await service.tenant('Other')
  browser = await Browser.signedIn(service, own.user_id)
})
afterAll(() => service.close())

const inOwn = (path: string) => `/w/${own.workspace_id}${path}`
const unsafe = (listed: readonly Route[]) => listed.filter(({ method }) => method !== 'GET')
const filled = ({ path, example }: Route) =>
  path.replaceAll(/\{(\w+)\}/g, (_, name) => example.params?.[name] ?? 'x')

const everyUnsafe: [string, string, Route][] = [
  ...unsafe(ownRoutes).map(
    (each) => [`${each.method} ${each.path}`, filled(each), each] as [string, string, Route],
  ),
  ...unsafe([...routes, ...workspaceRoutes]).map(
    (each) => [`${each.method} /w/…${each.path}`, `w:${filled(each)}`, each] as [string, string, Route],
  ),
]

describe('requests from another site', () => {
  const foreign: (readonly [string, Record<string, string | null>])[] = [
    ['no Origin and no Sec-Fetch-Site', { origin: null, 'sec-fetch-site': null }],
    ['a foreign Origin', { origin: 'https://evil.example', 'sec-fetch-site': null }],
    ['a foreign Origin that claims to be ours', { origin: 'https://evil.example' }],
    ['the Origin null', { origin: 'null', 'sec-fetch-site': null }],
    ['an empty Origin', { origin: '', 'sec-fetch-site': null }],
    ['another port of this machine', { origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' }],
    ['another scheme', { origin: 'https://HOST', 'sec-fetch-site': null }],
    ['a cross-site request', { 'sec-fetch-site': 'cross-site' }],
    ['a same-site request', { 'sec-fetch-site': 'same-site' }],
    ['a request that the user typed', { origin: null, 'sec-fetch-site': 'none' }],
    ['a plain form', { 'content-type': 'text/plain' }],
    ['an encoded form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['a type that only begins like JSON', { 'content-type': 'application/jsonp' }],
  ]

  test.each(everyUnsafe)('403 origin_refused on %s', async (_, path, { method, example, form, text }) => {
    const whole = path.startsWith('w:') ? inOwn(path.slice(2)) : path
    const body = JSON.stringify(example.body ?? {})
    const files: typeof foreign = [
      ...(form
        ? []
        : [['a form with a file', { 'content-type': 'multipart/form-data; boundary=x' }] as const]),
      ...(text ? [] : [['a table', { 'content-type': 'text/csv' }] as const]),
    ]
    for (const [how, headers] of [...foreign, ...files]) {
      const given = {
        ...headers,
        ...(headers.origin && { origin: headers.origin.replace('HOST', browser.host) }),
      }
      const answer = await browser.ask(method, whole, { body, headers: given })
      expect([how, answer.status, answer.body.code]).toEqual([how, 403, 'origin_refused'])
    }
  })

  test('change nothing, and the same from our own page does', async () => {
    const before = performed.length
    const path = inOwn('/probe-member')
    for (const [, headers] of foreign)
      expect((await browser.post(path, { headers, body: {} })).status).toBe(403)
    expect(performed).toHaveLength(before)
    for (const headers of [{ origin: null }, { 'sec-fetch-site': null }, {}]) {
      expect((await browser.post(path, { headers })).status).toBe(200)
    }
    expect(performed).toHaveLength(before + 3)
  })

  test('405 when GET is tried instead of POST', async () => {
    const answer = await browser.get('/sign-out')
    expect(answer).toMatchObject({
      status: 405,
      headers: { allow: 'POST' },
      body: { code: 'method_not_allowed' },
    })
    expect((await browser.get('/session')).status).toBe(200)
  })

  test('200 for the one form that our own page sends', async () => {
    const parts = [
      '--x\r\ncontent-disposition: form-data; name="account_id"\r\n\r\nacc_none\r\n',
      '--x\r\ncontent-disposition: form-data; name="chat_id"\r\n\r\nplatform:chat:1\r\n',
      '--x\r\ncontent-disposition: form-data; name="attachments"; filename="a.txt"\r\ncontent-type: text/plain\r\n\r\nhello\r\n--x--\r\n',
    ]
    const headers = { 'content-type': 'multipart/form-data; boundary=x', 'idempotency-key': newId() }
    const answer = await browser.post(inOwn('/messages'), { body: parts.join(''), headers })
    expect(answer).toMatchObject({ status: 403, body: { code: 'account_unavailable' } })
  })
})

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "media-src 'self'; font-src 'self'; " +
  "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
const carried = {
  'content-security-policy': policy,
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
}

describe('every answer below /dashboard', () => {
  test.each([
    ['200', '/session', {}, 200],
    ['401', '/session', { cookie: null }, 401],
    ['403 of a foreign Host', '/session', { host: 'evil.example' }, 403],
    ['404', '/nothing', {}, 404],
    ['400 of a malformed address', '/%zz', {}, 400],
    ['an address with escapes', '/dashboard/%61pi/session', {}, 200],
    ['an address with escapes before', '/%64ashboard/api/session', {}, 200],
  ])('carries the policy: %s', async (_, path, headers, status) => {
    const whole = path.startsWith('/%64')
      ? path
      : path.startsWith('/dashboard')
        ? path
        : `/dashboard/api${path}`
    const answer = await browser.ask('GET', whole, { headers })
    expect(answer.status).toBe(status)
    expect(answer.headers).toMatchObject(carried)
    expect(answer.headers['content-type']).toMatch(/^application\/json/)
  })

  test.each([
    'evil.example',
    `evil.example:80`,
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '2130706433',
  ])('403 origin_refused for the Host %j, on every address', async (host) => {
    const headers = { host, 'sec-fetch-site': 'same-origin', origin: `http://${host}` }
    for (const path of [
      '/session',
      '/nothing',
      '/sign-in',
      '/dashboard/',
      '/dashboard/assets/x.js',
      '/%zz',
    ]) {
      expect(await browser.get(path, { headers })).toMatchObject({
        status: 403,
        body: { code: 'origin_refused' },
      })
    }
    expect(await browser.post(inOwn('/probe-member'), { headers })).toMatchObject({ status: 403 })
  })

  test.each(['localhost:9', '127.0.0.1:1', '127.1.2.3', '[::1]:8080', 'LOCALHOST'])(
    '200 for the loopback name %s',
    async (host) => {
      const headers = { host, 'sec-fetch-site': null, origin: `http://${host.toLowerCase()}` }
      expect((await browser.post(inOwn('/probe-member'), { headers })).status).toBe(200)
    },
  )

  test('/docs, which shares the origin, allows no inline script either', async () => {
    const response = await fetch(`${service.url}/docs/`)
    const given = response.headers.get('content-security-policy') ?? ''
    expect(given).toContain("script-src 'self';")
    expect(given).toContain("frame-ancestors 'none'")
  })
})

describe('callers at the wrong door', () => {
  test('401 not_signed_in with a key at the dashboard', async () => {
    const headers = { cookie: null, authorization: `Bearer ${own.key}` }
    for (const path of [inOwn('/me'), '/session', inOwn('/nothing'), '/nothing', '/w', '/']) {
      expect(await browser.get(path, { headers })).toMatchObject({
        status: 401,
        body: { code: 'not_signed_in' },
      })
    }
    expect(await browser.get(`${inOwn('/me')}?key=${own.key}`, { headers: { cookie: null } })).toMatchObject({
      status: 401,
    })
  })

  test('401 invalid_key with a session at the API', async () => {
    for (const path of ['/api/v1/me', '/api/v1/nothing']) {
      expect(await browser.get(path)).toMatchObject({ status: 401, body: { code: 'invalid_key' } })
    }
  })

  test('401 with a cookie that is unknown, malformed, empty, repeated or of another name', async () => {
    const token = browser.cookie?.slice('sid='.length) ?? ''
    const wrong = [
      `sid=${'a'.repeat(43)}`,
      `sid=${token}x`,
      'sid=',
      `sid=${token}; sid=${token}`,
      `sid=${token}; sid=x`,
      `__Host-sid=${token}`,
      `SID=${token}`,
      `xsid=${token}`,
      `sid="${token}"`,
    ]
    for (const cookie of wrong) {
      expect([cookie, (await browser.get('/session', { headers: { cookie } })).status]).toEqual([cookie, 401])
    }
    const among = { cookie: `a=1; sid=${token};b=2` }
    expect((await browser.get('/session', { headers: among })).status).toBe(200)
  })
})

describe('a workspace in the path', () => {
  test('200 with the same answer as with a key', async () => {
    const account_id = await service.account(own.workspace_id)
    await service.chat({ account_id, workspace_id: own.workspace_id, name: 'Canary of own' })
    const path = `/chats?account_id=${account_id}`
    const byKey = await service.get(path, { key: own.key })
    const bySession = await browser.get(inOwn(path))
    expect(bySession).toMatchObject({ status: 200, body: byKey.body })
    expect(JSON.stringify(bySession.body)).toContain('Canary of own')
  })

  test("one session in two workspaces sees each one's data", async () => {
    const email = `${own.workspace_id}@acme.example`
    const third = await service.tenant('Third')
    await createUser(service.app, 'system', { email, workspace_id: third.workspace_id, role: 'member' })
    const paths = [own, third].map(({ workspace_id }) => `/w/${workspace_id}/me`)
    const answers = await Promise.all([...paths, ...paths, ...paths].map((path) => browser.get(path)))
    expect(answers.map(({ body }) => body.workspace_id)).toEqual(
      [own, third, own, third, own, third].map(({ workspace_id }) => workspace_id),
    )
    expect(await browser.post(`/w/${third.workspace_id}/probe-admin`)).toMatchObject({ status: 403 })
    expect(await browser.post(inOwn('/probe-admin'))).toMatchObject({ status: 200 })
  })

  test('404, identical, for a foreign, an unknown and a malformed id', async () => {
    for (const { method, path } of [...routes, ...workspaceRoutes, ...probesInWorkspace]) {
      const answers = await Promise.all(
        [other.workspace_id, newId(), 'x', '%27'].map((id) =>
          browser.ask(method, `/w/${id}${path.replaceAll(/\{\w+\}/g, 'x')}`),
        ),
      )
      for (const { status, body } of answers) {
        expect([path, status, body]).toEqual([
          path,
          404,
          { code: 'not_found', error: 'There is nothing at this address.' },
        ])
      }
    }
  })

  test('404 and 405 in JSON for unknown addresses', async () => {
    for (const path of [inOwn('/nothing'), '/nothing', '/w', '/w/', inOwn(''), inOwn('/')]) {
      expect(await browser.get(path)).toMatchObject({ status: 404, body: { code: 'not_found' } })
    }
    expect(await browser.ask('DELETE', inOwn('/me'))).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD' },
      body: { code: 'method_not_allowed' },
    })
    expect(await browser.get(inOwn('/chats/start'))).toMatchObject({
      status: 405,
      headers: { allow: 'POST' },
    })
  })

  test('200 while the gate rest, which is for keys, is closed; other gates apply', async () => {
    await service.shut('rest', 'pipeline')
    expect((await service.get('/me', { key: own.key })).status).toBe(503)
    expect((await browser.get(inOwn('/me'))).status).toBe(200)
    expect(await browser.get(inOwn('/pipeline'))).toMatchObject({
      status: 503,
      body: { code: 'feature_disabled' },
    })
    await service.open('rest', 'pipeline')
  })
})

describe('roles', () => {
  const allowed: Record<Role, readonly Role[]> = {
    member: ['member'],
    admin: ['member', 'admin'],
    owner: ['member', 'admin', 'owner'],
  }

  test.each(Object.entries(allowed))('a %s may do what %j may', async (role, may) => {
    const { workspace_id } = own
    const email = `${role}@roles.example`
    const user = await createUser(service.app, 'system', { email, workspace_id, role: role as Role })
    const theirs = await Browser.signedIn(service, user.id)
    for (const needed of ['member', 'admin', 'owner'] as const) {
      const answer = await theirs.post(inOwn(`/probe-${needed}`))
      if (may.includes(needed)) expect(answer.status).toBe(200)
      else expect(answer).toMatchObject({ status: 403, body: { code: 'missing_role' } })
    }
    expect(await theirs.post('/probe-operator')).toMatchObject({
      status: 403,
      body: { code: 'missing_role' },
    })
  })

  test('an operator may do what operators do, and in a workspace only what their role allows', async () => {
    const { workspace_id } = own
    const email = 'operator@roles.example'
    const user = await createUser(service.app, 'system', {
      email,
      workspace_id,
      role: 'member',
      operator: true,
    })
    const theirs = await Browser.signedIn(service, user.id)
    expect((await theirs.post('/probe-operator')).status).toBe(200)
    expect((await theirs.post(inOwn('/probe-admin'))).status).toBe(403)
    expect((await theirs.post(`/w/${other.workspace_id}/probe-member`)).status).toBe(404)
  })
})

describe('over a network', () => {
  test('the cookie is __Host-sid and Secure at an https address, and no other counts', async () => {
    const tls = await openService({ env: { PARLEY_BASE_URL: 'https://parley.example' } })
    try {
      const { user_id } = await tls.tenant()
      const inside = await Browser.signedIn(tls, user_id)
      const token = inside.cookie?.slice('sid='.length)
      const outside = new Browser(tls, 'https://parley.example')
      outside.cookie = `sid=${token}`
      expect((await outside.get('/session')).status).toBe(401)
      outside.cookie = `__Host-sid=${token}`
      expect((await outside.get('/session')).status).toBe(200)
      expect((await outside.get('/session', { headers: { host: 'parley.example:443' } })).status).toBe(200)
      expect((await outside.get('/session', { headers: { host: 'parley.example:8443' } })).status).toBe(403)
      const plain = { origin: 'http://parley.example', 'sec-fetch-site': null }
      expect(await outside.post('/sign-out', { headers: plain })).toMatchObject({
        status: 403,
        body: {
          error: expect.stringMatching(
            /PARLEY_BASE_URL says https\. Open the dashboard at https:\/\/parley\.example,/,
          ),
        },
      })
      // A proxy that does not forward the Host header.
      const rewritten = await outside.post('/sign-out', { headers: { host: 'localhost:8080' } })
      expect(rewritten).toMatchObject({
        status: 403,
        body: { error: expect.stringContaining('pass the Host header on') },
      })
      const out = await outside.post('/sign-out')
      expect(out.headers['set-cookie']).toEqual([
        '__Host-sid=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure',
      ])
    } finally {
      await tls.close()
    }
  })

  test('403 for signing in at a plain-text address, where no cookie counts either', async () => {
    const plain = await openService({ env: { PARLEY_BASE_URL: 'http://parley.example:8080' } })
    try {
      const { user_id } = await plain.tenant()
      const browser = await Browser.signedIn(plain, user_id)
      const outside = new Browser(plain, 'http://parley.example:8080')
      const body = { email: 'a@b.example', password: 'correct horse battery' }
      const refused = await outside.post('/sign-in', { body })
      expect(refused).toMatchObject({ status: 403, body: { code: 'origin_refused' } })
      expect(refused.body.error).toContain('HTTPS')
      const looked = await outside.post('/setup/look', { body: { token: 'x' } })
      expect(looked).toMatchObject({ status: 403, body: { code: 'origin_refused' } })
      outside.cookie = browser.cookie
      expect((await outside.get('/session')).status).toBe(401)
      expect((await outside.get('/sign-in')).status).toBe(200)
      expect((await browser.post('/sign-in', { body })).status).toBe(401)
    } finally {
      await plain.close()
    }
  })
})
