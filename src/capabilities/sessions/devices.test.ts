/** A browser that has signed in before, while attackers try to lock its user out. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Browser } from '../../../test/harness/browser.ts'
import { crowdQueue } from '../../../test/harness/crowd.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { hashPassword } from '../../lib/passwords.ts'
import { sha256 } from '../../lib/secrets.ts'
import { createUser, makeSetupLink } from '../users/users.ts'

const password = 'correct horse battery'
const wrong = 'wrong horse battery'
let service: Service
let tenant: Tenant
let password_hash: string
let serial = 0

beforeAll(async () => {
  service = await openService({ env: { PARLEY_CLOCK: 'manual', PARLEY_TRUSTED_PROXIES: '127.0.0.1' } })
  tenant = await service.tenant()
  password_hash = await hashPassword(password, { lane: 'setup', source: 'test' })
})
afterAll(() => service.close())

interface Person {
  readonly id: string
  readonly email: string
}

async function person(): Promise<Person> {
  const email = `person${serial++}@acme.example`
  const { id } = await createUser(service.app, 'system', {
    email,
    workspace_id: tenant.workspace_id,
    password_hash,
  })
  return { id, email }
}

/** From a new source each time, unless one is given. */
async function signIn(
  browser: Browser,
  { email }: Person,
  { from = `198.18.1.${serial++}`, given = password } = {},
): Promise<number> {
  const headers = { 'x-forwarded-for': from }
  const answer = await browser.post('/sign-in', { body: { email, password: given }, headers })
  return answer.status
}

/** A browser that has signed in and out again. */
async function knownBrowser(user: Person): Promise<Browser> {
  const browser = new Browser(service)
  expect(await signIn(browser, user)).toBe(200)
  expect((await browser.post('/sign-out')).status).toBe(200)
  expect(browser.cookie).toBeUndefined()
  expect(browser.device).toMatch(/^device=/)
  return browser
}

/** For an hour no unknown browser can sign in as this user. */
async function exhaust({ email }: Person): Promise<void> {
  const caller = `sign-in:${sha256(email).toString('base64url')}`
  const rule = { limit: 100, seconds: 3600 }
  while ((await service.app.limits.take(caller, rule)).allowed);
}

describe('a known browser', () => {
  test("200 while strangers have used up its user's attempts, and 429 for a stranger", async () => {
    const user = await person()
    const browser = await knownBrowser(user)
    await exhaust(user)
    expect(await signIn(new Browser(service), user)).toBe(429)
    expect(await signIn(browser, user)).toBe(200)
  })

  test('200 from a source that has used up its attempts', async () => {
    const user = await person()
    const browser = await knownBrowser(user)
    const rule = { limit: 100, seconds: 900 }
    while ((await service.app.limits.take('sign-in:from:203.0.113.1', rule)).allowed);
    expect(await signIn(new Browser(service), user, { from: '203.0.113.1' })).toBe(429)
    expect(await signIn(browser, user, { from: '203.0.113.1' })).toBe(200)
  })

  test('429 after 10 attempts of its own from any source; another browser of the same user has its own', async () => {
    const user = await person()
    const [one, other] = [await knownBrowser(user), await knownBrowser(user)]
    for (let attempt = 0; attempt < 10; attempt++) expect(await signIn(one, user, { given: wrong })).toBe(401)
    expect(await signIn(one, user)).toBe(429)
    expect(await signIn(other, user)).toBe(200)
  })

  test('keeps its id when it signs in again and when it changes the password: 10 sign-ins, then 429', async () => {
    const user = await person()
    const browser = await knownBrowser(user)
    const idOf = (each: Browser) => /^device=([^.]+)\./.exec(each.device ?? '')?.[1]
    const id = idOf(browser)
    for (let attempt = 0; attempt < 10; attempt++) expect(await signIn(browser, user)).toBe(200)
    expect(idOf(browser)).toBe(id)
    const body = { current_password: password, password }
    expect((await browser.post('/password', { body })).status).toBe(200)
    expect(idOf(browser)).toBe(id)
    expect(await signIn(browser, user)).toBe(429)
  })

  test('is unknown to every other user', async () => {
    const [user, other] = [await person(), await person()]
    const browser = await knownBrowser(user)
    await exhaust(other)
    expect(await signIn(browser, other)).toBe(429)
  })

  test('is unknown after its user changes the password; the browser that changed it stays known', async () => {
    const user = await person()
    const [here, there] = [await knownBrowser(user), await knownBrowser(user)]
    expect(await signIn(here, user)).toBe(200)
    const body = { current_password: password, password }
    expect((await here.post('/password', { body })).status).toBe(200)
    await here.post('/sign-out')
    await exhaust(user)
    expect(await signIn(there, user)).toBe(429)
    expect(await signIn(here, user)).toBe(200)
  })

  test('is also one that has followed a set-up link', async () => {
    const user = await person()
    const { setup_link } = await makeSetupLink(service.app, 'system', user.id)
    const browser = new Browser(service)
    const body = { token: setup_link.split('#')[1], password }
    expect((await browser.post('/setup', { body })).status).toBe(200)
    await exhaust(user)
    expect(await signIn(browser, user)).toBe(200)
  })

  test('is known for 180 days', async () => {
    const user = await person()
    const browser = await knownBrowser(user)
    const device = browser.device
    const pass = async (time: string) => {
      await service.app.db.run(sql`update manual_clock set at = at + ${time}::text::interval`)
      await service.settle()
      browser.device = device
    }
    await exhaust(user)
    await pass('180 days -10 seconds')
    expect(await signIn(browser, user)).toBe(200)
    await pass('10 seconds')
    expect(await signIn(browser, user)).toBe(429)
  })

  test('is not signed in by its token, and a forged or changed token does not count', async () => {
    const user = await person()
    const browser = await knownBrowser(user)
    expect((await browser.get('/session')).status).toBe(401)
    const [, id = '', expires = '', signature = ''] =
      /^device=([^.]+)\.([^.]+)\.([^.]+)$/.exec(browser.device ?? '') ?? []
    await exhaust(user)
    const forged = [
      '',
      'x',
      `${id}.${Number(expires) + 1}.${signature}`,
      `${'A'.repeat(22)}.${expires}.${signature}`,
      `${id}.${expires}.${'A'.repeat(43)}`,
      `${id}.${expires}.${signature}.`,
      `${id}.${expires}`,
    ]
    for (const token of forged) {
      browser.device = `device=${token}`
      expect(await signIn(browser, user), token).toBe(429)
    }
  })
})

test('200 for a set-up link, and for a new password, while strangers fill their queue', async () => {
  const user = await person()
  const browser = new Browser(service)
  const { setup_link } = await makeSetupLink(service.app, 'system', user.id)
  const crowd = crowdQueue()
  expect(await signIn(new Browser(service), user)).toBe(429)
  const token = setup_link.split('#')[1]
  expect((await browser.post('/setup', { body: { token, password } })).status).toBe(200)
  const body = { current_password: password, password }
  expect((await browser.post('/password', { body })).status).toBe(200)
  await crowd.end()
})
