import { createServer } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Browser } from '../../../test/harness/browser.ts'
import { clientSecret, IdentityProvider, type Lies } from '../../../test/harness/identity-provider.ts'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import { createUser, makeSetupLink } from '../users/users.ts'
import { sealFlow } from './flow.ts'
import { identityOf } from './provider.ts'

let provider: IdentityProvider
let service: Service
let tenant: Tenant
let serial = 0

beforeAll(async () => {
  provider = await new IdentityProvider().open()
  service = await openWith()
  tenant = await service.tenant()
})
afterAll(async () => {
  await service.close()
  await provider.close()
})
afterEach(() => {
  provider.lies = {}
})

/** At an address that is known before it listens, because the provider redirects people to it. */
async function openWith(env: Readonly<Record<string, string>> = {}): Promise<Service> {
  const port = await freePort()
  return openService({
    port,
    env: {
      PARLEY_BASE_URL: `http://127.0.0.1:${port}`,
      PARLEY_OIDC_ISSUER: provider.issuer,
      PARLEY_OIDC_CLIENT_ID: 'parley',
      PARLEY_OIDC_CLIENT_SECRET: clientSecret,
      PARLEY_OIDC_LABEL: 'Acme ID',
      ...env,
    },
  })
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const bound = server.address()
      server.close(() => resolve(typeof bound === 'object' && bound ? bound.port : 0))
    })
  })
}

async function newUser(email = `user${serial++}@acme.example`): Promise<{ id: string; email: string }> {
  return createUser(service.app, 'system', { email, workspace_id: tenant.workspace_id, role: 'member' })
}

/** The token of a new set-up link. */
async function tokenFor(user_id: string): Promise<string> {
  const { setup_link } = await makeSetupLink(service.app, 'system', user_id)
  return setup_link.split('#')[1] ?? ''
}

/** A user whose identity at the provider is already linked. */
async function linkedUser(sub: string = newId(), at = service): Promise<{ id: string; sub: string }> {
  const { id } = await newUser()
  await at.app.db.run(sql`
    insert into identities (issuer, subject, user_id, idp_user_uuid)
    values (${provider.issuer}, ${sub}, ${id}, ${newId()})`)
  return { id, sub }
}

interface Visit {
  readonly cookies?: Readonly<Record<string, string>>
  readonly accept?: string
}

/** One request of a browser that follows no redirect by itself. */
async function visit(path: string, { cookies = {}, accept = '*/*' }: Visit = {}, at = service) {
  const cookie = Object.entries(cookies).map(([name, value]) => `${name}=${value}`)
  const response = await fetch(path.startsWith('http') ? path : `${at.url}${path}`, {
    redirect: 'manual',
    headers: { accept, ...(cookie.length > 0 && { cookie: cookie.join('; ') }) },
  })
  const set = response.headers.getSetCookie().map((line) => line.split(';')[0]?.split('=') ?? [])
  const text = await response.text()
  return {
    status: response.status,
    location: response.headers.get('location'),
    cookies: Object.fromEntries(set) as Record<string, string>,
    lines: response.headers.getSetCookie(),
    body: text.startsWith('{') ? JSON.parse(text) : text,
  }
}

async function start(return_to?: string, at = service) {
  const query = return_to === undefined ? '' : `?${new URLSearchParams({ return_to })}`
  const { location, cookies } = await visit(`/dashboard/oidc/start${query}`, {}, at)
  return { location: location ?? '', cookies: { oidc: cookies.oidc ?? '' } }
}

type Query = Readonly<Record<string, string>>

/** The whole sign-in, in which an attacker may change what comes back. */
async function signInAt(
  sub: string,
  {
    change = (query) => query,
    lies,
    at = service,
    ...how
  }: Visit & { change?: (query: Query) => Query; lies?: Lies; at?: Service } = {},
) {
  const begun = await start(undefined, at)
  const code = provider.authorize(begun.location, sub)
  const state = new URL(begun.location).searchParams.get('state') ?? ''
  if (lies) provider.lies = lies
  const query = new URLSearchParams(change({ code, state, iss: provider.issuer }))
  return visit(`/dashboard/oidc/callback?${query}`, { cookies: begun.cookies, ...how }, at)
}

const refused = { status: 401, body: { code: 'sign_in_refused' } }

async function countRows(at = service): Promise<object> {
  return at.app.db.one(sql`
    select (select count(*)::int from users) as users, (select count(*)::int from identities) as identities,
      (select count(*)::int from sessions) as sessions`)
}

describe('GET /dashboard/oidc/start', () => {
  test('302 to the provider, with PKCE, state and nonce, and a cookie for the way back', async () => {
    const { status, location, lines } = await visit('/dashboard/oidc/start')
    expect(status).toBe(302)
    const { origin, pathname, searchParams } = new URL(location ?? '')
    expect(`${origin}${pathname}`).toBe(`${provider.issuer}/authorize`)
    expect(Object.fromEntries(searchParams)).toEqual({
      client_id: 'parley',
      response_type: 'code',
      redirect_uri: `${service.url}/dashboard/oidc/callback`,
      scope: 'openid',
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    })
    expect(lines).toEqual([
      expect.stringMatching(/^oidc=[\w-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/),
    ])
    // Reading the cookie does not reveal what the answer will be compared with.
    expect(lines.join()).not.toContain(searchParams.get('state'))
    const again = await start()
    expect(new URL(again.location).searchParams.get('state')).not.toBe(searchParams.get('state'))
  })

  test('404 when no provider is configured', async () => {
    const without = await openService()
    for (const way of ['start', 'callback']) {
      expect(await visit(`/dashboard/oidc/${way}`, {}, without)).toMatchObject({
        status: 404,
        body: { code: 'not_found' },
      })
    }
    await without.close()
  })

  test('429 for an address that calls too often', async () => {
    const limited = await openWith({ PARLEY_RATE_LIMIT: '2' })
    const statuses = []
    for (let at = 0; at < 3; at++) statuses.push((await visit('/dashboard/oidc/start', {}, limited)).status)
    expect(statuses).toEqual([302, 302, 429])
    await limited.close()
  })

  test('403 under a host name that the provider does not know', async () => {
    const { port } = new URL(service.url)
    for (const accept of ['*/*', 'text/html']) {
      expect(await visit(`http://localhost:${port}/dashboard/oidc/start`, { accept })).toMatchObject({
        status: 403,
        body: { code: 'origin_refused', error: expect.stringContaining(service.url) },
      })
    }
  })

  test('403 at a plain-text address, on the way there and back', async () => {
    const address = 'http://parley.example:8080'
    const plain = await openWith({ PARLEY_BASE_URL: address })
    for (const way of ['start', 'callback?code=x&state=x']) {
      const answer = await new Browser(plain, address).get(`/dashboard/oidc/${way}`)
      expect(answer).toMatchObject({ status: 403, body: { error: expect.stringContaining('needs HTTPS') } })
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
    await plain.close()
  })
})

describe('GET /dashboard/oidc/callback', () => {
  test('302 to the requested page, as the linked user', async () => {
    const { id, sub } = await linkedUser()
    const { location, cookies } = await start('/dashboard/profile?tab=sessions')
    const code = provider.authorize(location, sub)
    const state = new URL(location).searchParams.get('state') ?? ''
    const query = new URLSearchParams({ code, state, iss: provider.issuer })
    const back = await visit(`/dashboard/oidc/callback?${query}`, { cookies })
    expect(back).toMatchObject({ status: 302, location: '/dashboard/profile?tab=sessions' })
    expect(back.lines).toEqual([
      expect.stringMatching(/^oidc=; Path=\/; Max-Age=0;/),
      expect.stringMatching(/^sid=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Lax$/),
    ])
    const session = await service.app.db.one(sql`
      select user_id, issuer, subject from sessions order by created_at desc, id desc limit 1`)
    expect(session).toEqual({ user_id: id, issuer: provider.issuer, subject: sub })
    const cookie = `sid=${back.cookies.sid}`
    const { status } = await askDashboard(service, 'GET', `/w/${tenant.workspace_id}/keys`, { cookie })
    expect(status).toBe(200)
  })

  test('ends a session that an attacker has planted in the browser', async () => {
    const { sub } = await linkedUser()
    const planted = (await signIn(service, (await newUser()).id)).slice('sid='.length)
    const begun = await start()
    const code = provider.authorize(begun.location, sub)
    const state = new URL(begun.location).searchParams.get('state') ?? ''
    const query = new URLSearchParams({ code, state, iss: provider.issuer })
    const back = await visit(`/dashboard/oidc/callback?${query}`, {
      cookies: { ...begun.cookies, sid: planted },
    })
    expect(back.cookies.sid).not.toBe(planted)
    const ask = (token?: string) => askDashboard(service, 'GET', '/gates', { cookie: `sid=${token}` })
    expect((await ask(planted)).status).toBe(401)
    expect((await ask(back.cookies.sid)).status).toBe(403)
  })

  test('401 for an unknown person: signing in creates no user', async () => {
    const before = await countRows()
    expect(await signInAt('nobody')).toMatchObject({
      ...refused,
      body: { error: expect.stringContaining('No user of this instance is linked to this Acme ID account') },
    })
    const email = (await newUser()).email
    const known = await signInAt('nobody', { lies: { claims: { email, email_verified: true } } })
    expect(known).toMatchObject(refused)
    expect(await countRows()).toEqual({ ...before, users: (before as { users: number }).users + 1 })
  })

  test('302 for a browser to the sign-in page, which says why', async () => {
    const back = await signInAt('nobody', { accept: 'text/html,application/xhtml+xml' })
    expect(back).toMatchObject({
      status: 302,
      location: '/dashboard/sign-in?refused=unknown&return_to=%2Fdashboard%2F',
    })
    expect(back.cookies.sid).toBeUndefined()
  })

  test('302 with a cookie that makes the browser known, when the user also has a password', async () => {
    const { id, sub } = await linkedUser()
    expect((await signInAt(sub)).cookies.device).toBeUndefined()
    await service.app.db.run(sql`update users set password_hash = 'some hash' where id = ${id}`)
    expect((await signInAt(sub)).cookies.device).toMatch(/^[\w-]{22}\.\d+\.[\w-]{43}$/)
  })

  test('401 for a disabled user', async () => {
    const { id, sub } = await linkedUser()
    await service.app.db.run(sql`update users set disabled_at = now() where id = ${id}`)
    expect(await signInAt(sub)).toMatchObject({
      ...refused,
      body: { error: expect.stringContaining('disabled') },
    })
  })

  const now = () => Math.floor(Date.now() / 1000)
  const attacks: Readonly<
    Record<string, { change?: (query: Query) => Query; lies?: () => Lies; how?: Visit; linked?: string }>
  > = {
    'another state': { change: (query) => ({ ...query, state: 'x'.repeat(43) }) },
    'no state': { change: ({ state: _, ...query }) => query },
    'no code': { change: ({ code: _, ...query }) => query },
    'a code that was never given': { change: (query) => ({ ...query, code: 'guessed' }) },
    'the answer of another provider (mix-up)': {
      change: (query) => ({ ...query, iss: 'https://evil.example' }),
    },
    'no issuer in the answer, which the provider promises': { change: ({ iss: _, ...query }) => query },
    'a refusal of the provider': {
      change: ({ state, iss }) => ({ state: state ?? '', iss: iss ?? '', error: 'access_denied' }),
    },
    'no cookie: another browser began it': { how: { cookies: {} } },
    'a forged cookie': { how: { cookies: { oidc: 'AAAA' } } },
    'another nonce': { lies: () => ({ claims: { nonce: 'of another sign-in' } }) },
    'no nonce': { lies: () => ({ claims: { nonce: undefined } }) },
    'another issuer in the token': { lies: () => ({ claims: { iss: 'https://evil.example' } }) },
    'a token for another client': { lies: () => ({ claims: { aud: 'another-client' } }) },
    'a token for several, without saying for whom': { lies: () => ({ claims: { aud: ['parley', 'x'] } }) },
    'a token for several, and rather for another': {
      lies: () => ({ claims: { aud: ['parley', 'x'], azp: 'x' } }),
    },
    'an expired token': { lies: () => ({ claims: { iat: now() - 600, exp: now() - 300 } }) },
    'a token of the future': { lies: () => ({ claims: { nbf: now() + 600 } }) },
    'a token without an end': { lies: () => ({ claims: { exp: undefined } }) },
    'an unsigned token (alg none)': { lies: () => ({ header: { alg: 'none' }, unsigned: true }) },
    'a token without its signature': { lies: () => ({ unsigned: true }) },
    'a token signed by a stranger': { lies: () => ({ foreign_key: true }) },
    'a token signed with the client secret': { lies: () => ({ header: { alg: 'HS256' }, symmetric: true }) },
    'a token signed by an unknown key': { lies: () => ({ header: { kid: 'two' } }) },
    'no token': { lies: () => ({ token: { id_token: undefined } }) },
    'a malformed token': { lies: () => ({ token: { id_token: 'x.y.z' } }) },
    'no subject': { lies: () => ({ claims: { sub: undefined } }) },
    'a subject with NUL': { lies: () => ({ claims: { sub: 'a\0b' } }) },
    'an empty subject': { lies: () => ({ claims: { sub: '' } }), linked: '' },
    'a blank subject': { lies: () => ({ claims: { sub: ' ' } }), linked: ' ' },
    'a subject without end': { lies: () => ({ claims: { sub: 'x'.repeat(256) } }) },
  }

  test.each(Object.entries(attacks))(
    '401, and nothing is written: %s',
    async (_, { change, lies, how, linked }) => {
      const { sub } = await linkedUser()
      if (linked !== undefined) await linkedUser(linked)
      const before = await countRows()
      const answer = await signInAt(sub, {
        ...how,
        ...(change && { change }),
        ...(lies && { lies: lies() }),
      })
      expect(answer).toMatchObject(refused)
      expect(answer.cookies.sid).toBeUndefined()
      expect(await countRows()).toEqual(before)
      // Without the attack the same sign-in succeeds, so it is the attack that was refused.
      provider.lies = {}
      expect(await signInAt(sub)).toMatchObject({ status: 302, location: '/dashboard/' })
    },
  )

  test('401 for a provider whose metadata says that nothing has to be signed', async () => {
    provider.lies = { metadata: { id_token_signing_alg_values_supported: ['none', 'HS256', 'RS256'] } }
    const credulous = await openWith()
    for (const lies of [
      { header: { alg: 'none' }, unsigned: true },
      { header: { alg: 'HS256' }, symmetric: true },
    ]) {
      expect(await signInAt('anybody', { lies, at: credulous })).toMatchObject(refused)
      expect(await countRows(credulous)).toMatchObject({ sessions: 0 })
    }
    await credulous.close()
  })

  test('401 for a repeated code, and for the same answer in another browser', async () => {
    const { sub } = await linkedUser()
    const { location, cookies } = await start()
    const code = provider.authorize(location, sub)
    const state = new URL(location).searchParams.get('state') ?? ''
    const query = `?${new URLSearchParams({ code, state, iss: provider.issuer })}`
    expect(await visit(`/dashboard/oidc/callback${query}`, { cookies })).toMatchObject({ status: 302 })
    expect(await visit(`/dashboard/oidc/callback${query}`, { cookies })).toMatchObject(refused)
    provider.lies = { careless: true }
    const other = await start()
    expect(await visit(`/dashboard/oidc/callback${query}`, { cookies: other.cookies })).toMatchObject(refused)
    const injected = `?${new URLSearchParams({ code, state: new URL(other.location).searchParams.get('state') ?? '', iss: provider.issuer })}`
    // A code stolen from another person's sign-in: its PKCE and nonce do not match.
    expect(await visit(`/dashboard/oidc/callback${injected}`, { cookies: other.cookies })).toMatchObject(
      refused,
    )
  })

  test('401 for repeated parameters', async () => {
    const { sub } = await linkedUser()
    for (const name of ['state', 'code', 'iss']) {
      const { location, cookies } = await start()
      const code = provider.authorize(location, sub)
      const state = new URL(location).searchParams.get('state') ?? ''
      const query = new URLSearchParams({ code, state, iss: provider.issuer })
      query.append(name, query.get(name) ?? '')
      expect(await visit(`/dashboard/oidc/callback?${query}`, { cookies })).toMatchObject(refused)
    }
  })

  test('401 after ten minutes, and for a cookie copied from elsewhere', async () => {
    const { sub } = await linkedUser()
    const { location } = await start()
    const code = provider.authorize(location, sub)
    const state = new URL(location).searchParams.get('state') ?? ''
    const query = new URLSearchParams({ code, state, iss: provider.issuer })
    const flow = { state, nonce: 'n', verifier: 'v'.repeat(43), return_to: '/dashboard/', setup_token: null }
    const late = sealFlow(service.app, { ...flow, expires_at: Date.now() - 10_000 })
    const elsewhere = service.app.secrets
      .seal('session', 'elsewhere', Buffer.from('{}'))
      .toString('base64url')
    const asked = provider.asked.length
    for (const oidc of [late, elsewhere]) {
      expect(await visit(`/dashboard/oidc/callback?${query}`, { cookies: { oidc } })).toMatchObject(refused)
    }
    // No request reached the provider.
    expect(provider.asked).toHaveLength(asked)
  })

  test('503 while the provider does not answer, 302 once it does again', async () => {
    const { sub } = await linkedUser()
    const unavailable = { status: 503, body: { code: 'provider_unavailable' } }
    expect(await signInAt(sub, { lies: { status: { '/token': 500 } } })).toMatchObject(unavailable)
    provider.lies = {}
    const begun = await start()
    const fresh = await openWith()
    await provider.close()
    try {
      const query = new URLSearchParams({
        code: 'x',
        state: new URL(begun.location).searchParams.get('state') ?? '',
        iss: provider.issuer,
      })
      const back = await visit(`/dashboard/oidc/callback?${query}`, { cookies: begun.cookies })
      expect(back).toMatchObject({
        ...unavailable,
        body: { error: 'Acme ID does not respond. Sign in with e-mail and password, or try again later.' },
      })
      expect(await visit('/dashboard/oidc/start', {}, fresh)).toMatchObject(unavailable)
      expect(
        await visit('/dashboard/oidc/start?return_to=/dashboard/profile', { accept: 'text/html' }, fresh),
      ).toMatchObject({
        status: 302,
        location: '/dashboard/sign-in?refused=unavailable&return_to=%2Fdashboard%2Fprofile',
      })
    } finally {
      await provider.open()
    }
    expect(await visit('/dashboard/oidc/start', {}, fresh)).toMatchObject({ status: 302 })
    expect(await signInAt(sub)).toMatchObject({ status: 302 })
    await fresh.close()
  })

  test('503 for a provider whose issuer is not the configured one', async () => {
    provider.lies = { metadata: { issuer: 'https://evil.example' } }
    const misled = await openWith()
    expect(await visit('/dashboard/oidc/start', {}, misled)).toMatchObject({
      status: 503,
      body: { code: 'provider_unavailable' },
    })
    await misled.close()
  })
})

describe('a set-up link', () => {
  const follow = async (token: string, sub: string, how: Partial<Visit> = {}) => {
    const response = await fetch(`${service.url}/dashboard/api/setup/oidc`, {
      method: 'POST',
      headers: { origin: service.url, 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    })
    const { location } = (await response.json()) as { location?: string }
    if (!location) return { status: response.status, location: null, cookies: {}, lines: [], body: {} }
    const oidc = /^oidc=([^;]+)/.exec(response.headers.getSetCookie()[0] ?? '')?.[1] ?? ''
    const code = provider.authorize(location, sub)
    const state = new URL(location).searchParams.get('state') ?? ''
    const query = new URLSearchParams({ code, state, iss: provider.issuer })
    return visit(`/dashboard/oidc/callback?${query}`, { cookies: { oidc }, ...how })
  }
  const identitiesOf = (user_id: string) =>
    service.app.db.rows(sql`
      select issuer, subject, idp_user_uuid from identities where user_id = ${user_id} order by created_at`)

  test('links the person who signs in at the provider to its user, once', async () => {
    const user = await newUser()
    const token = await tokenFor(user.id)
    const sub = newId()
    expect(await follow(token, sub)).toMatchObject({ status: 302, location: '/dashboard/' })
    expect(await identitiesOf(user.id)).toEqual([
      { issuer: provider.issuer, subject: sub, idp_user_uuid: sub },
    ])
    const rows = await service.app.db.rows(sql`
      select actor, action, detail from audit where target = ${user.id} order by seq desc limit 1`)
    expect(rows).toEqual([
      {
        actor: `user:${user.id}`,
        action: 'user.identity_linked',
        detail: `{"by":"setup_link","issuer":"${provider.issuer}"}`,
      },
    ])
    expect((await follow(token, 'somebody else')).status).toBeGreaterThanOrEqual(401)
    expect(await identitiesOf(user.id)).toHaveLength(1)
    // From now on without a link.
    expect(await signInAt(sub)).toMatchObject({ status: 302 })
  })

  test("ends its user's earlier sessions and other links", async () => {
    const user = await newUser()
    const before = await signIn(service, user.id)
    const [token, other] = [await tokenFor(user.id), await tokenFor(user.id)]
    const stranger = await signIn(service, (await newUser()).id)
    expect(await follow(token, newId())).toMatchObject({ status: 302 })
    expect((await askDashboard(service, 'GET', '/session', { cookie: before })).status).toBe(401)
    expect((await askDashboard(service, 'GET', '/session', { cookie: stranger })).status).toBe(200)
    const look = { body: { token: other } }
    expect((await askDashboard(service, 'POST', '/setup/look', look)).status).toBe(404)
  })

  test('404 for an invalid link, without a redirect to the provider', async () => {
    const used = await tokenFor((await newUser()).id)
    await follow(used, newId())
    for (const token of [used, 'x'.repeat(43)]) {
      const answer = await askDashboard(service, 'POST', '/setup/oidc', { body: { token } })
      expect(answer).toMatchObject({ status: 404, body: { code: 'not_found' } })
      expect(answer.headers.get('set-cookie')).toBeNull()
    }
  })

  test('401 when the account at the provider belongs to another user, and the link stays valid', async () => {
    const { sub } = await linkedUser()
    const user = await newUser()
    const token = await tokenFor(user.id)
    expect(await follow(token, sub)).toMatchObject({
      ...refused,
      body: { error: expect.stringContaining('linked to another user') },
    })
    expect(await identitiesOf(user.id)).toEqual([])
    expect(await follow(token, newId())).toMatchObject({ status: 302 })
  })

  test('401 when it expires during the sign-in', async () => {
    const user = await newUser()
    const token = await tokenFor(user.id)
    const begun = await fetch(`${service.url}/dashboard/api/setup/oidc`, {
      method: 'POST',
      headers: { origin: service.url, 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    })
    const { location } = (await begun.json()) as { location: string }
    const oidc = /^oidc=([^;]+)/.exec(begun.headers.getSetCookie()[0] ?? '')?.[1] ?? ''
    await service.app.db.run(sql`update setup_links set expires_at = now() where user_id = ${user.id}`)
    const code = provider.authorize(location, newId())
    const state = new URL(location).searchParams.get('state') ?? ''
    const query = new URLSearchParams({ code, state, iss: provider.issuer })
    expect(await visit(`/dashboard/oidc/callback?${query}`, { cookies: { oidc } })).toMatchObject({
      ...refused,
      body: { error: expect.stringContaining('set-up link') },
    })
    expect(await identitiesOf(user.id)).toEqual([])
  })

  test('lets one of many callers at once win', async () => {
    const user = await newUser()
    const token = await tokenFor(user.id)
    const answers = await Promise.all(Array.from({ length: 8 }, () => follow(token, newId())))
    expect(answers.filter(({ status }) => status === 302)).toHaveLength(1)
    expect(await identitiesOf(user.id)).toHaveLength(1)
  })
})

describe('an e-mail address', () => {
  let trusting: Service
  beforeAll(async () => {
    trusting = await openWith({ PARLEY_OIDC_LINK_BY_EMAIL: 'on' })
  })
  afterAll(() => trusting.close())

  const make = async (email: string) => {
    const { workspace_id } = await trusting.tenant()
    return createUser(trusting.app, 'system', { email, workspace_id, role: 'member' })
  }
  const arrive = (sub: string, claims: object) =>
    signInAt(sub, { at: trusting, lies: { claims: (claims as Lies['claims']) ?? {} } })

  test('links when that is switched on and the provider has verified it', async () => {
    const user = await make('Ana@acme.example')
    for (const verified of [undefined, false, 'true', 1]) {
      const claims = { email: 'ana@acme.example', email_verified: verified }
      expect(await arrive('ana', claims)).toMatchObject(refused)
    }
    expect(await arrive('ana', { email: 'ana@ACME.example', email_verified: true })).toMatchObject({
      status: 302,
    })
    const row = await trusting.app.db.one(sql`select user_id from identities where subject = 'ana'`)
    expect(row).toEqual({ user_id: user.id })
    // Found by the subject from now on, whatever the address becomes.
    expect(await arrive('ana', { email: 'other@acme.example', email_verified: true })).toMatchObject({
      status: 302,
    })
  })

  test('does not link a user who already has an account at the provider: addresses are reassigned', async () => {
    await make('bo@acme.example')
    const claims = { email: 'bo@acme.example', email_verified: true }
    expect(await arrive('bo', claims)).toMatchObject({ status: 302 })
    expect(await arrive('another bo', claims)).toMatchObject(refused)
  })

  test('may come from the userinfo endpoint, for the same subject only', async () => {
    await make('cy@acme.example')
    const userinfo = { sub: 'cy', email: 'cy@acme.example', email_verified: true }
    expect(
      await signInAt('cy', { at: trusting, lies: { userinfo: { ...userinfo, sub: 'dee' } } }),
    ).toMatchObject(refused)
    expect(await signInAt('cy', { at: trusting, lies: { userinfo } })).toMatchObject({ status: 302 })
  })

  test('counts when it is signed, whatever userinfo says', async () => {
    const env = { PARLEY_OIDC_LINK_BY_EMAIL: 'on', PARLEY_OIDC_UUID_CLAIM: 'employee' }
    const asking = await openWith(env)
    const { workspace_id } = await asking.tenant()
    const [ida, max] = await Promise.all(
      ['ida@acme.example', 'max@acme.example'].map((email) =>
        createUser(asking.app, 'system', { email, workspace_id, role: 'member' }),
      ),
    )
    const claims = { email: ida?.email, email_verified: true }
    const userinfo = { sub: 'ida', email: max?.email, email_verified: true, employee: newId() }
    expect(await signInAt('ida', { at: asking, lies: { claims, userinfo } })).toMatchObject({ status: 302 })
    const rows = await asking.app.db.rows(sql`select user_id, idp_user_uuid from identities`)
    expect(rows).toEqual([{ user_id: ida?.id, idp_user_uuid: userinfo.employee }])
    await asking.close()
  })
})

describe('the UUID of a person', () => {
  const claims = { iss: 'https://id.example', sub: 'ana' }
  const uuid = '5f1d1c9e-0d3a-4b6e-9c55-6a3f0b8f7e21'

  test('is the subject, else the configured claim, else derived from issuer and subject', () => {
    const of = (more: object, uuid_claim?: string) =>
      identityOf({ uuid_claim }, { ...claims, ...more }).idp_user_uuid
    expect(of({ sub: uuid, employee: newId() }, 'employee')).toBe(uuid)
    expect(of({ employee: uuid }, 'employee')).toBe(uuid)
    const derived = of({})
    expect(derived).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    for (const odd of [undefined, '', 'x', 5, [uuid], { uuid }])
      expect(of({ employee: odd }, 'employee')).toBe(derived)
    expect(of({ iss: 'https://other.example' })).not.toBe(derived)
    expect(of({ sub: 'bo' })).not.toBe(derived)
  })
})

test('no secret reaches the log', () => {
  const log = service.log.join('\n')
  expect(log).toContain('oidc_callback')
  expect(provider.secrets.length).toBeGreaterThan(20)
  for (const secret of provider.secrets) expect(log).not.toContain(secret)
})
