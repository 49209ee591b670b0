/** What must never be logged: keys, texts, phone numbers. And one line per log event, whatever it contains. */
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { z } from 'zod'
import { makeKey } from '../src/access/keys.ts'
import { makeSetupLink } from '../src/capabilities/users/users.ts'
import { makeLogger } from '../src/cli/log.ts'
import { sql } from '../src/db/sql.ts'
import { newId } from '../src/lib/ids.ts'
import { type Route, route } from '../src/route.ts'
import { Browser } from './harness/browser.ts'
import { probes } from './harness/probes.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'

/** Fails in the ways that tempt a program to quote its input. */
const own: readonly Route[] = [
  route({
    name: 'probe_clumsy',
    method: 'POST',
    path: '/probe/clumsy',
    summary: 'Fails with the text in its hands',
    scopes: ['write'],
    effect: 'local',
    body: z.strictObject({ how: z.enum(['unique', 'type', 'check', 'away', 'bug']), text: z.string() }),
    response: z.object({}),
    example: { body: { how: 'bug', text: 'x' }, response: {} },
    handle: async (_app, tx, { caller, body: { how, text } }) => {
      const workspace_id = caller.workspace_id
      const suppress = () =>
        tx.run(sql`
          insert into suppressions (workspace_id, kind, value, source)
          values (${workspace_id}, 'phone', ${text}, 'operator')`)
      if (how === 'unique') await suppress()
      if (how === 'unique') await suppress()
      if (how === 'type') await tx.run(sql`select ${text}::text::uuid`)
      if (how === 'check')
        await tx.run(sql`insert into workspaces (id, name) values (${newId()}, repeat(${text}, 100))`)
      if (how === 'away') await tx.run(sql`select ${text}::text from nowhere`)
      throw new Error('a bug', { cause: new Error('a deeper one') })
    },
  }),
]

let service: Service
let tenant: Tenant
const text = 'canary-text-5f1c'
const phone = '+4915112345678'
const absent = makeKey().key

beforeAll(async () => {
  service = await openService({ routes: [...probes, ...own] })
  await service.open('extended')
  tenant = await service.tenant()
  await service.allow(tenant)
})
afterAll(() => service.close())

/** Everything that can be read afterwards. */
async function written(): Promise<string> {
  const cluster = await readFile(join(dirname(inject('cluster').host), 'postgres.log'), 'utf8')
  const metrics = await service.app.metrics.metrics()
  return [...service.log, cluster, metrics].join('\n')
}

function speak(lines: string): Promise<void> {
  const { hostname, port } = new URL(service.url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(lines))
    socket.on('data', () => socket.end())
    socket.on('error', () => {})
    socket.on('close', () => resolve())
  })
}

describe('secrets of users', () => {
  test('cookies, passwords and set-up tokens are in no log and no row, whatever their result', async () => {
    const email = `${tenant.workspace_id}@acme.example`
    const { setup_link } = await makeSetupLink(service.app, 'system', tenant.user_id)
    const token = setup_link.split('#')[1] ?? ''
    const passwords = ['canary horse battery', 'canary wrong battery', 'canary new battery']
    const [password, wrong, changed] = passwords as [string, string, string]
    const browser = new Browser(service)
    await browser.post('/setup', { body: { token, password: 'canary' } })
    expect((await browser.post('/setup', { body: { token, password } })).status).toBe(200)
    const cookies = [browser.cookie]
    await browser.post('/sign-in', { body: { email, password: wrong } })
    await browser.post('/sign-in', { body: { email, password, more: password } })
    await browser.post('/sign-in', { body: `{"email": "${email}", "password": "${password}` })
    await browser.post(`/sign-in?password=${encodeURIComponent(password)}`, { body: { email, password } })
    expect((await browser.post('/sign-in', { body: { email, password } })).status).toBe(200)
    cookies.push(browser.cookie)
    await browser.post('/password', { body: { current_password: password, password: changed } })
    await browser.post('/setup/look', { body: { token } })
    await browser.get('/dashboard/api/%zz')
    await browser.get(`/session?sid=${cookies[1]}`)
    await browser.post('/sign-out', { headers: { origin: 'https://evil.example' } })
    await browser.post('/sign-out')
    const tokens = cookies.map((cookie) => cookie?.split('=')[1] ?? 'none')
    expect(tokens.filter((each) => /^[\w-]{43}$/.test(each))).toHaveLength(2)
    const rows = await service.app.db.rows(sql`
      select to_jsonb(s) as row from sessions s union all select to_jsonb(l) from setup_links l
      union all select to_jsonb(u) from users u union all select to_jsonb(a) from audit a
      union all select to_jsonb(r) from request_log r`)
    const found = (await written()) + JSON.stringify(rows)
    for (const secret of [token, ...passwords, ...passwords.map(encodeURIComponent), ...tokens]) {
      expect(found.includes(secret), secret).toBe(false)
    }
    // The limiter's rows name no one.
    expect(JSON.stringify(await service.app.db.rows(sql`select * from request_log`))).not.toContain(email)
  })
})

describe('secrets', () => {
  test('are in no log, wherever they were sent', async () => {
    const { key } = tenant
    const keys = [key, absent]
    const note = '/probe/platform:chat:42/notes'
    const body = { text: `${text} ${phone}` }
    const headers = () => ({ 'idempotency-key': newId() })
    for (const each of keys) {
      await service.get(`/me?key=${each}`, { key: each })
      await service.get(`/me?key=${each}`)
      await service.get(`/api/mcp?key=${each}`)
      await service.get(`/${each}`, { key: each })
      await service.get(`/me/${each}/x`)
      await service.get('/me', { headers: { cookie: `key=${each}`, 'x-request-id': each, referer: each } })
      await service.get('/me', { headers: { authorization: `Basic ${each}` } })
      await service.post(note, { key: each, body, headers: headers() })
      await service.post(note, { key: each, body: { ...body, [each]: each }, headers: headers() })
      await service.post(note, { key: each, body: `${JSON.stringify(body)}${each}`, headers: headers() })
      await service.post(note, { key: each, body: { ...body, account_id: each }, headers: headers() })
      await service.post(note, {
        key: each,
        body: { text: 'refuse', tags: [text, phone] },
        headers: headers(),
      })
      await speak(
        `GET /api/v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${each}\r\nbroken ${each}\r\n\r\n`,
      )
      await speak(`GET /%zz?key=${each} HTTP/1.1\r\nHost: x\r\n\r\n`)
      await speak(`${each} ${text}\r\n\r\n`)
    }
    for (const how of ['unique', 'type', 'check', 'away', 'bug']) {
      const { status } = await service.post('/probe/clumsy', { key, body: { how, text: `${text}${phone}` } })
      expect([500, 503]).toContain(status)
    }
    const everything = await written()
    expect(everything).toContain('probe_clumsy')
    for (const secret of [key, absent, key.slice(15), absent.slice(15), text, phone]) {
      expect(everything.split(secret).length - 1, secret).toBe(0)
    }
  })

  test('are in no answer to a failure', async () => {
    const { key } = tenant
    for (const how of ['unique', 'type', 'check', 'away', 'bug']) {
      const { body } = await service.post('/probe/clumsy', { key, body: { how, text } })
      expect(JSON.stringify(body)).not.toContain(text)
      expect(JSON.stringify(body)).not.toMatch(/a bug|deeper|suppressions|nowhere|\.ts/)
    }
  })

  test("are not in the log of operators' changes", async () => {
    const rows = await service.app.db.rows(sql`select * from audit`)
    expect(JSON.stringify(rows)).not.toContain(tenant.key)
    expect(service.log.join('')).toContain('"msg":"audit"')
  })
})

describe('the log', () => {
  test('has one line of JSON per event, whatever was sent', async () => {
    const before = service.log.length
    const odd = ['%0a%0dforged', '%1b[2Jforged', '%22,%22level%22:%22fatal', '%e2%80%a8forged', '%00forged']
    for (const path of odd) await service.get(`/me/${path}`, { key: tenant.key })
    const lines = service.log.slice(before)
    expect(lines).toHaveLength(odd.length)
    for (const line of lines) {
      expect(line.endsWith('\n')).toBe(true)
      expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\u2028]/u)
      expect(JSON.parse(line)).toMatchObject({ level: 'info', msg: 'request', status: 404 })
    }
  })

  test('keeps a message of many lines on one', () => {
    const lines: string[] = []
    const log = makeLogger('info', { write: (line) => void lines.push(line) })
    const name = 'a\n{"level":"fatal"}\r\x1b[31m\u2028'
    log.info({ name, err: new Error(name, { cause: new Error(name) }) }, name)
    expect(lines).toHaveLength(1)
    expect(lines[0]?.trimEnd()).not.toMatch(/\p{Cc}/u)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'info', name, msg: name })
  })
})
