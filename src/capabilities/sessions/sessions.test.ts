import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Browser } from '../../../test/harness/browser.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { requireSession } from '../../access/sessions.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import { sha256 } from '../../lib/secrets.ts'
import { consumeSetupLink, createUser, makeSetupLink, setUserEnabled } from '../users/users.ts'
import { changePassword, prepareChange, prepareSetup } from './sessions.ts'
import { requirePassword, signIn } from './sign-in.ts'

let service: Service
let tenant: Tenant
let email: string
const password = 'correct horse battery'

beforeAll(async () => {
  service = await openService({ env: { PARLEY_CLOCK: 'manual' } })
  tenant = await service.tenant()
  email = `${tenant.workspace_id}@acme.example`
})
afterAll(() => service.close())

const db = () => service.app.db

async function linkFor(user_id: string): Promise<string> {
  const { setup_link } = await makeSetupLink(service.app, 'system', user_id)
  return setup_link.split('#')[1] ?? ''
}

/** Moves the manual clock. */
async function pass(time: string): Promise<void> {
  await db().run(sql`update manual_clock set at = at + ${time}::text::interval`)
  await service.settle()
}

async function signedIn(user_id = tenant.user_id): Promise<Browser> {
  return Browser.signedIn(service, user_id)
}

describe('POST /dashboard/api/setup', () => {
  test("200 once: the user has a password and is signed in; this link and the user's others are invalid", async () => {
    const [token, other] = [await linkFor(tenant.user_id), await linkFor(tenant.user_id)]
    const before = await signedIn()
    const browser = new Browser(service)
    const look = await browser.post('/setup/look', { body: { token } })
    expect(look).toMatchObject({ status: 200, body: { email, oidc: null } })
    const done = await browser.post('/setup', { body: { token, password } })
    expect(done).toMatchObject({ status: 200, body: { user: { email, has_password: true } } })
    expect((await browser.get('/session')).status).toBe(200)
    expect((await before.get('/session')).status).toBe(401)
    for (const used of [token, other]) {
      const again = { body: { token: used, password } }
      expect(await browser.post('/setup', again)).toMatchObject({ status: 404, body: { code: 'not_found' } })
      expect((await browser.post('/setup/look', { body: { token: used } })).status).toBe(404)
    }
    const stored = await db().rows(sql`select * from setup_links`)
    expect(JSON.stringify(stored)).not.toContain(token)
  })

  test('404 after 7 days, for an unknown token, and for a disabled user', async () => {
    const browser = new Browser(service)
    const user = await service.tenant('Late')
    const token = await linkFor(user.user_id)
    await pass('7 days -1 second')
    expect((await browser.post('/setup/look', { body: { token } })).status).toBe(200)
    await setUserEnabled(service.app, 'system', { id: user.user_id, enabled: false })
    expect((await browser.post('/setup/look', { body: { token } })).status).toBe(404)
    expect((await browser.post('/setup', { body: { token, password } })).status).toBe(404)
    // Also when they were disabled after the first check.
    const consumed = db().transaction((tx) => consumeSetupLink(tx, token))
    await expect(consumed).rejects.toMatchObject({ code: 'not_found' })
    await setUserEnabled(service.app, 'system', { id: user.user_id, enabled: true })
    await pass('1 second')
    for (const given of [token, 'x'.repeat(43)]) {
      expect((await browser.post('/setup/look', { body: { token: given } })).status).toBe(404)
      expect((await browser.post('/setup', { body: { token: given, password } })).status).toBe(404)
    }
  })

  test('an invalid link computes no hash', async () => {
    await expect(prepareSetup(service.app, { token: 'x', password })).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  test('200 for one of ten who follow it at the same time', async () => {
    const user = await service.tenant('Race')
    const token = await linkFor(user.user_id)
    const all = await Promise.all(
      Array.from({ length: 10 }, () => new Browser(service).post('/setup', { body: { token, password } })),
    )
    expect(all.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(404)])
  })

  test.each([
    ['eleven characters', 'x'.repeat(11), 'at least 12'],
    ['257 characters', 'x'.repeat(257), 'at most 256'],
    ['eleven of two units each', '𝕏'.repeat(11), 'at least 12'],
  ])('400 with %s, and the link stays valid', async (_, short, words) => {
    const token = await linkFor(tenant.user_id)
    const answer = await new Browser(service).post('/setup', { body: { token, password: short } })
    expect(answer).toMatchObject({ status: 400, body: { error: expect.stringContaining(words) } })
    expect((await new Browser(service).post('/setup/look', { body: { token } })).status).toBe(200)
  })
})

describe('POST /dashboard/api/sign-in', () => {
  test('200 with a new cookie, and ends the session before', async () => {
    const browser = await signedIn()
    const before = browser.cookie
    const answer = await browser.post('/sign-in', { body: { email: email.toUpperCase(), password } })
    expect(answer).toMatchObject({ status: 200, body: { user: { id: tenant.user_id, email } } })
    expect(answer.headers['set-cookie']).toEqual([
      expect.stringMatching(/^sid=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Lax$/),
      expect.stringMatching(/^device=[\w.-]+; Path=\/; Max-Age=15552000; HttpOnly; SameSite=Lax$/),
    ])
    expect(browser.cookie).not.toBe(before)
    expect((await browser.get('/session')).status).toBe(200)
    const planted = new Browser(service)
    planted.cookie = before
    expect((await planted.get('/session')).body.code).toBe('not_signed_in')
  })

  test('200 invalidates a cookie that an attacker has planted', async () => {
    const browser = new Browser(service)
    browser.cookie = `sid=${'a'.repeat(43)}`
    expect((await browser.post('/sign-in', { body: { email, password } })).status).toBe(200)
    expect(browser.cookie).not.toContain('aaaa')
    const planted = new Browser(service)
    planted.cookie = `sid=${'a'.repeat(43)}`
    expect((await planted.get('/session')).status).toBe(401)
  })

  test('401 in the same words for a wrong password, an unknown address, and a user who is disabled or has no password', async () => {
    const disabled = await service.tenant('Disabled')
    await new Browser(service).post('/setup', { body: { token: await linkFor(disabled.user_id), password } })
    await setUserEnabled(service.app, 'system', { id: disabled.user_id, enabled: false })
    const without = await service.tenant('Without')
    const tries = [
      { email, password: 'wrong horse battery' },
      { email: 'nobody@acme.example', password },
      { email: `${disabled.workspace_id}@acme.example`, password },
      { email: `${without.workspace_id}@acme.example`, password },
    ]
    for (const body of tries) {
      const answer = await new Browser(service).post('/sign-in', { body })
      expect(answer).toMatchObject({
        status: 401,
        body: { code: 'sign_in_refused', error: 'The e-mail address or the password is wrong.' },
      })
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
  })

  test.each(['an unknown user', 'a user'])('429 after 10 attempts from one address, for %s', async (who) => {
    const other = await service.tenant(who)
    const address =
      who === 'an unknown user' ? 'nobody.at.all@acme.example' : `${other.workspace_id}@acme.example`
    const browser = new Browser(service)
    const body = { email: address, password: 'wrong horse battery' }
    for (let attempt = 0; attempt < 10; attempt++) {
      expect((await browser.post('/sign-in', { body })).status).toBe(401)
    }
    const answer = await browser.post('/sign-in', { body: { ...body, email: address.toUpperCase() } })
    expect(answer).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(800)
  })

  test('401 when the password changed, or the user was disabled, after it was compared', async () => {
    const { user_id, workspace_id } = await service.tenant('Compared')
    await new Browser(service).post('/setup', { body: { token: await linkFor(user_id), password } })
    const via = {
      kind: 'visitor',
      address: '127.0.0.1',
      user_agent: '',
      session_token: undefined,
      device_token: undefined,
    } as const
    const given = { email: `${workspace_id}@acme.example`, password }
    const proven = await requirePassword(service.app, { via }, given)
    const finish = () => service.app.db.transaction((tx) => signIn(service.app, tx, { via }, proven))
    await db().run(sql`update users set password_hash = 'another' where id = ${user_id}`)
    await expect(finish()).rejects.toMatchObject({ code: 'sign_in_refused' })
    await db().run(sql`
      update users set password_hash = ${proven.password_hash}, disabled_at = now() where id = ${user_id}`)
    await expect(finish()).rejects.toMatchObject({ code: 'sign_in_refused' })
    await db().run(sql`update users set disabled_at = null where id = ${user_id}`)
    expect((await finish()).session_token).toMatch(/^[\w-]{43}$/)
  })

  test('429 also for an address with letters that the database folds differently', async () => {
    const { workspace_id } = await service.tenant('Spelled')
    const address = 'spelled.with.i@acme.example'
    await createUser(service.app, 'system', { email: address, workspace_id, role: 'member' })
    const browser = new Browser(service)
    const body = { email: address, password: 'wrong horse battery' }
    for (let attempt = 0; attempt < 10; attempt++) {
      expect((await browser.post('/sign-in', { body })).status).toBe(401)
    }
    // In small letters it is i for the database, and i with a dot above for JavaScript.
    const [same] = await db().rows(sql`select lower('\u0130') = 'i' as same`)
    expect(same).toEqual({ same: true })
    const spelled = { ...body, email: address.replace('i', '\u0130') }
    expect((await browser.post('/sign-in', { body: spelled })).status).toBe(429)
  })

  test('429 after 100 attempts in an hour for one e-mail address, from any source', async () => {
    const hash = sha256('many@acme.example').toString('base64url')
    const rule = { limit: 100, seconds: 3600 }
    for (let attempt = 0; attempt < 99; attempt++) await service.app.limits.take(`sign-in:${hash}`, rule)
    const body = { email: 'many@acme.example', password }
    expect((await new Browser(service).post('/sign-in', { body })).status).toBe(401)
    const answer = await new Browser(service).post('/sign-in', { body })
    expect(answer).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(3_500)
  })
})

describe('a session', () => {
  test('lasts 12 hours, however busy it is', async () => {
    const browser = await signedIn()
    for (let hour = 1; hour < 12; hour++) {
      await pass('1 hour')
      expect((await browser.get('/session')).status).toBe(200)
    }
    await pass('59 minutes 59 seconds')
    expect((await browser.get('/session')).status).toBe(200)
    await pass('1 second')
    expect((await browser.get('/session')).body.code).toBe('not_signed_in')
  })

  test('ends after 2 hours without a request', async () => {
    const [used, quiet] = [await signedIn(), await signedIn()]
    await pass('1 hour 59 minutes 59 seconds')
    expect((await used.get('/session')).status).toBe(200)
    await pass('1 second')
    expect((await used.get('/session')).status).toBe(200)
    expect((await quiet.get('/session')).body.code).toBe('not_signed_in')
  })

  test('is one of 20: a newer one ends the oldest, also if ten begin at once, and no other user loses any', async () => {
    const other = await signedIn((await service.tenant('Elsewhere')).user_id)
    const { user_id } = await service.tenant('Everywhere')
    const browsers: Browser[] = []
    for (let at = 0; at < 20; at++) {
      browsers.push(await signedIn(user_id))
      await pass('1 second')
    }
    const statuses = () => Promise.all(browsers.map(async (each) => (await each.get('/session')).status))
    expect(new Set(await statuses())).toEqual(new Set([200]))
    await Promise.all(Array.from({ length: 10 }, () => signedIn(user_id)))
    expect(await statuses()).toEqual(browsers.map((_, at) => (at < 10 ? 401 : 200)))
    expect((await other.get('/session')).status).toBe(200)
  })

  test('stores the time of its last request once a minute', async () => {
    const browser = await signedIn()
    const seenAt = async () => {
      const { body } = await browser.get('/sessions')
      return (body.sessions as { current: boolean; last_seen_at: string }[]).find(({ current }) => current)
        ?.last_seen_at
    }
    const first = await seenAt()
    await pass('59 seconds')
    expect(await seenAt()).toBe(first)
    await pass('1 second')
    expect(Date.parse((await seenAt()) ?? '')).toBe(Date.parse(first ?? '') + 60_000)
  })

  test('ends when its user signs out, also for requests at the same time', async () => {
    const browser = await signedIn()
    const stolen = new Browser(service)
    stolen.cookie = browser.cookie
    const [out] = await Promise.all([browser.post('/sign-out'), stolen.get('/session')])
    expect(out).toMatchObject({ status: 200, body: { ok: true } })
    expect(out.headers['set-cookie']).toEqual([expect.stringMatching(/^sid=; Path=\/; Max-Age=0;/)])
    expect((await stolen.get('/session')).status).toBe(401)
    expect((await stolen.post('/sign-out')).status).toBe(401)
  })

  test('ends when its user is disabled, and stays ended when they are enabled again', async () => {
    const user = await service.tenant('Gone')
    const browser = await signedIn(user.user_id)
    await setUserEnabled(service.app, 'system', { id: user.user_id, enabled: false })
    expect((await browser.get('/session')).status).toBe(401)
    const revoke = (at: Date | null) =>
      db().run(sql`update sessions set revoked_at = ${at} where user_id = ${user.user_id}`)
    // Also one that started at that very moment, which no request has ended.
    await revoke(null)
    expect((await browser.get('/session')).status).toBe(401)
    await revoke(new Date())
    await setUserEnabled(service.app, 'system', { id: user.user_id, enabled: true })
    expect((await browser.get('/session')).status).toBe(401)
  })

  test('ends when its identity is unlinked', async () => {
    const user = await service.tenant('Unlinked')
    const browser = await signedIn(user.user_id)
    await db().run(sql`delete from identities where user_id = ${user.user_id}`)
    expect((await browser.get('/session')).status).toBe(401)
  })

  test('ends when its identity is linked to another user', async () => {
    const [user, heir] = [await service.tenant('Before'), await service.tenant('After')]
    const browser = await signedIn(user.user_id)
    await db().run(sql`update identities set user_id = ${heir.user_id} where user_id = ${user.user_id}`)
    expect((await browser.get('/session')).status).toBe(401)
  })

  test("stores the first 300 characters of the browser's user agent", async () => {
    const user = await service.tenant('Talkative')
    const browser = new Browser(service)
    const headers = { 'user-agent': `${'x'.repeat(299)}yz` }
    const body = { token: await linkFor(user.user_id), password }
    expect((await browser.post('/setup', { body, headers })).status).toBe(200)
    expect((await browser.get('/sessions')).body.sessions).toMatchObject([
      { current: true, user_agent: `${'x'.repeat(299)}y` },
    ])
  })

  test('does not open a workspace that its user has left, and neither does any of their keys', async () => {
    const user = await service.tenant('Left')
    // Without another workspace, leaving ends the session itself.
    const other = await service.tenant('Stayed in')
    await db().run(sql`
      insert into memberships (workspace_id, user_id, role) values (${other.workspace_id}, ${user.user_id}, 'member')`)
    const browser = await signedIn(user.user_id)
    const me = `/w/${user.workspace_id}/me`
    expect((await browser.get(me)).status).toBe(200)
    const end = (at: string) =>
      db().run(sql`
        update memberships set ended_at = ${at === 'now' ? sql`domain_now()` : sql`null`}
        where user_id = ${user.user_id} and workspace_id = ${user.workspace_id}`)
    await end('now')
    await service.settle()
    expect((await browser.get(me)).body.code).toBe('not_found')
    expect((await browser.get('/session')).body.workspaces).toMatchObject([{ id: other.workspace_id }])
    expect((await service.get('/me', { key: user.key })).status).toBe(401)
    // Also one that no one has revoked.
    const revoke = (at: Date | null) =>
      db().run(sql`update keys set revoked_at = ${at} where user_id = ${user.user_id}`)
    await revoke(null)
    await service.settle()
    expect((await service.get('/me', { key: user.key })).status).toBe(401)
    await revoke(new Date())
    await end('never')
    await service.settle()
    expect((await browser.get(me)).status).toBe(200)
    expect((await service.get('/me', { key: user.key })).status).toBe(401)
  })

  test('429 after 600 requests in a minute', async () => {
    const browser = await signedIn()
    const { body } = await browser.get('/session')
    const { id } = body.session as { id: string }
    const rule = { limit: 600, seconds: 60 }
    for (let asked = 0; asked < 598; asked++) await service.app.limits.take(`session:${id}`, rule)
    const last = await browser.get('/session')
    expect(last).toMatchObject({
      status: 200,
      headers: { 'x-ratelimit-limit': '600', 'x-ratelimit-remaining': '0' },
    })
    expect(await browser.get('/session')).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
    expect((await (await signedIn()).get('/session')).status).toBe(200)
  })
})

describe('POST /dashboard/api/sessions/{session_id}/revoke', () => {
  test("200 ends one of the user's own, 404 for another user's and for an unknown one", async () => {
    const [browser, other] = [await signedIn(), await signedIn()]
    const stranger = await service.tenant('Stranger')
    const foreign = await signedIn(stranger.user_id)
    const idOf = async (one: Browser) => ((await one.get('/session')).body.session as { id: string }).id
    for (const id of [await idOf(foreign), newId(), 'x']) {
      expect(await browser.post(`/sessions/${id}/revoke`)).toMatchObject({
        status: 404,
        body: { code: 'not_found' },
      })
    }
    expect((await foreign.get('/session')).status).toBe(200)
    const id = await idOf(other)
    expect((await browser.post(`/sessions/${id}/revoke`)).status).toBe(200)
    expect((await other.get('/session')).status).toBe(401)
    expect((await browser.post(`/sessions/${id}/revoke`)).status).toBe(404)
    const own = await browser.post(`/sessions/${await idOf(browser)}/revoke`)
    expect(own.headers['set-cookie']?.[0]).toMatch(/^sid=;/)
  })

  test('200 ends all others at once', async () => {
    const user = await service.tenant('Others')
    const browser = await signedIn(user.user_id)
    const others = [await signedIn(user.user_id), await signedIn(user.user_id)]
    const stranger = await signedIn()
    // Sessions that had already ended are not among them.
    await signedIn(user.user_id)
    await db().run(sql`
      update sessions set expires_at = domain_now() where id = (
        select id from sessions where user_id = ${user.user_id} order by created_at desc, id desc limit 1)`)
    const answer = await browser.post('/sessions/revoke-others')
    expect(answer).toMatchObject({ status: 200, body: { ok: true, revoked: 2 } })
    for (const other of others) expect((await other.get('/session')).status).toBe(401)
    expect((await stranger.get('/session')).status).toBe(200)
    const { body } = await browser.get('/sessions')
    expect(body.sessions).toMatchObject([
      { current: true, user_agent: 'test', identity: { issuer: 'local' } },
    ])
  })
})

describe('POST /dashboard/api/password', () => {
  test('200 with the current one: all other sessions end, and only the new password signs in', async () => {
    const user = await service.tenant('Change')
    const address = `${user.workspace_id}@acme.example`
    const browser = new Browser(service)
    await browser.post('/setup', { body: { token: await linkFor(user.user_id), password } })
    const other = new Browser(service)
    await other.post('/sign-in', { body: { email: address, password } })
    const link = await linkFor(user.user_id)
    const wrong = { current_password: 'wrong horse battery', password: 'another horse battery' }
    for (const body of [wrong, { password: wrong.password }]) {
      const answer = await browser.post('/password', { body })
      expect(answer).toMatchObject({ status: 401, body: { code: 'sign_in_refused' } })
    }
    const change = { current_password: password, password: wrong.password }
    expect((await browser.post('/password', { body: change })).status).toBe(200)
    expect((await browser.get('/session')).status).toBe(200)
    expect((await other.get('/session')).status).toBe(401)
    const signIn = (given: string) =>
      new Browser(service).post('/sign-in', { body: { email: address, password: given } })
    expect((await signIn(password)).status).toBe(401)
    expect((await signIn(change.password)).status).toBe(200)
    expect((await new Browser(service).post('/setup/look', { body: { token: link } })).status).toBe(404)
  })

  test('401 when the session ended, or the password changed, after the check', async () => {
    const { user_id } = await service.tenant('Overtaken')
    const browser = new Browser(service)
    await browser.post('/setup', { body: { token: await linkFor(user_id), password } })
    const { user } = await requireSession(service.app, {
      token: browser.cookie?.split('=')[1],
      workspace_id: undefined,
      used: true,
    })
    const change = { current_password: password, password: 'horse of a thief' }
    const prepared = await prepareChange(service.app, user, change)
    const finish = () => service.app.db.transaction((tx) => changePassword(service.app, tx, user, prepared))
    const stored = () => db().one(sql`select password_hash from users where id = ${user_id}`)
    const before = await stored()
    await db().run(sql`update sessions set revoked_at = now() where id = ${user.via.id}`)
    await expect(finish()).rejects.toMatchObject({ code: 'not_signed_in' })
    await db().run(sql`update sessions set revoked_at = null where id = ${user.via.id}`)
    await db().run(sql`update users set password_hash = 'another' where id = ${user_id}`)
    await expect(finish()).rejects.toMatchObject({ code: 'not_signed_in' })
    expect(await stored()).toEqual({ password_hash: 'another' })
    await db().run(sql`update users set password_hash = ${prepared.before} where id = ${user_id}`)
    await finish()
    expect(await stored()).not.toEqual(before)
  })

  test('200 without one when there is none', async () => {
    const user = await service.tenant('First')
    const browser = await signedIn(user.user_id)
    expect((await browser.post('/password', { body: { password } })).status).toBe(200)
    expect((await browser.get('/session')).body.user).toMatchObject({ has_password: true })
  })

  test('429 after ten guesses', async () => {
    const user = await service.tenant('Guess')
    const browser = new Browser(service)
    await browser.post('/setup', { body: { token: await linkFor(user.user_id), password } })
    const body = { current_password: 'wrong horse battery', password }
    for (let guess = 0; guess < 10; guess++) {
      expect((await browser.post('/password', { body })).status).toBe(401)
    }
    expect((await browser.post('/password', { body })).status).toBe(429)
  })
})

describe('PATCH /dashboard/api/profile', () => {
  test('200 changes the given fields and nothing else; 400 for an unknown zone', async () => {
    const browser = await signedIn()
    const change = (body: object) => browser.ask('PATCH', '/profile', { body })
    expect((await change({ name: 'Ana', time_zone: 'Europe/Berlin' })).body.user).toMatchObject({
      name: 'Ana',
    })
    expect((await change({ time_zone: null })).body.user).toMatchObject({ name: 'Ana', time_zone: null })
    expect(await change({ time_zone: 'Mars/Base' })).toMatchObject({ status: 400 })
    expect(await change({ operator: true })).toMatchObject({ status: 400 })
    expect(await change({ name: 'x'.repeat(201) })).toMatchObject({ status: 400 })
    expect((await browser.get('/session')).body.user).toMatchObject({ name: 'Ana', operator: false })
  })
})
