/**
 * One journey with every kind of secret, right and wrong, on a service and a PostgreSQL that both log as much as they
 * can. Afterwards the test searches everything that can be read.
 */
import { readdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAccount, logIn, logOut, setAccountEnabled } from '../src/capabilities/accounts/accounts.ts'
import { findSession } from '../src/capabilities/accounts/platform-store.ts'
import { makeSetupLink } from '../src/capabilities/users/users.ts'
import { type Embedded, openEmbedded } from '../src/db/embedded.ts'
import { layOut, role, runAlone } from '../src/db/embedded-cluster.ts'
import { sql } from '../src/db/sql.ts'
import { newId } from '../src/lib/ids.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { Browser, type BrowserAnswer } from './harness/browser.ts'
import { clientSecret, IdentityProvider } from './harness/identity-provider.ts'
import { askMcp, callTool, sendMessage } from './harness/mcp.ts'
import { hangMs, until } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { openWorkplace, type Workplace } from './harness/worker.ts'
import { openStage, telegramAt } from './platform/data-centre-fixture.ts'
import { openProxy } from './platform/proxies.ts'

/** As an operator might set it to find slow statements. */
const statements = ["log_statement = 'all'", 'log_min_duration_statement = 0']
/** And to find errors: also logs values and errors, which the embedded server as shipped omits. */
const values = [
  "log_error_verbosity = 'verbose'",
  "log_min_messages = 'error'",
  "log_min_error_statement = 'error'",
  'log_parameter_max_length = -1',
  'log_parameter_max_length_on_error = -1',
]

let data_dir: string
let embedded: Embedded
let provider: IdentityProvider

beforeAll(async () => {
  data_dir = await makeScratch('parley-secrets-')
  const place = await layOut(data_dir)
  await runAlone(place, place.cluster, [
    `create database loud owner ${role}`,
    ...statements.map((setting) => `alter role ${role} set ${setting}`),
    ...values.map((setting) => `alter role ${role} in database loud set ${setting}`),
  ])
  embedded = await openEmbedded({ data_dir, claim: 'service' })
  provider = await new IdentityProvider().open()
})
afterAll(async () => {
  await provider.close()
  await embedded.close()
  await rm(data_dir, { recursive: true, force: true })
})

async function openAt(database: string): Promise<Workplace> {
  const port = await freePort()
  const { host = '', user, password } = embedded.connection
  const workplace = await openWorkplace({
    port,
    env: {
      DATABASE_URL: `postgres://${user}:${password}@localhost/${database}?host=${encodeURIComponent(host)}`,
      PARLEY_LOG_LEVEL: 'debug',
      PARLEY_PROXY_ALLOW: '127.0.0.1',
      PARLEY_BASE_URL: `http://127.0.0.1:${port}`,
      PARLEY_OIDC_ISSUER: provider.issuer,
      PARLEY_OIDC_CLIENT_ID: 'parley',
      PARLEY_OIDC_CLIENT_SECRET: clientSecret,
    },
  })
  await workplace.work()
  return workplace
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const bound = server.address()
      server.close(() => resolve(typeof bound === 'object' && bound ? bound.port : 0))
    })
  })
}

/** What must not be found: credentials, and what people write to each other. */
interface Canaries {
  readonly credentials: string[]
  readonly texts: string[]
  /** Every refusal. */
  readonly refusals: string[]
}

class Journey {
  readonly workplace: Workplace
  readonly found: Canaries = { credentials: [], texts: [], refusals: [] }
  readonly browser: Browser
  workspace_id = ''
  email = ''

  constructor(workplace: Workplace) {
    this.workplace = workplace
    this.browser = new Browser(workplace.service)
  }

  secret<T extends string>(value: T): T {
    expect(value.length).toBeGreaterThan(8)
    this.found.credentials.push(value)
    return value
  }

  async ask(method: string, path: string, body?: unknown, browser = this.browser): Promise<BrowserAnswer> {
    const answer = await browser.ask(method, path, body === undefined ? {} : { body })
    if (answer.status >= 400) this.found.refusals.push(JSON.stringify([answer.headers, answer.body]))
    if (browser.cookie) this.secret(browser.cookie.split('=')[1] ?? '')
    return answer
  }

  /** Removes a table for a moment, so that statements fail with secrets in their parameters. */
  async without(table: string, work: () => Promise<unknown>): Promise<void> {
    const { pool } = this.workplace.db
    await pool.query(`alter table ${table} rename to ${table}_away`)
    await work()
    await pool.query(`alter table ${table}_away rename to ${table}`)
  }

  /** Set-up link, passwords, sessions. */
  async signIn(): Promise<void> {
    const { service } = this.workplace
    const tenant = await service.tenant()
    this.workspace_id = tenant.workspace_id
    this.email = `${tenant.workspace_id}@acme.example`
    this.secret(tenant.key)
    const { setup_link } = await makeSetupLink(service.app, 'system', tenant.user_id)
    const token = this.secret(setup_link.split('#')[1] ?? '')
    const password = this.secret(`canary right ${newId()}`)
    const wrong = this.secret(`canary wrong ${newId()}`)
    const { email } = this
    await this.without('setup_links', () => this.ask('POST', '/setup/look', { token }))
    await this.ask('GET', `/setup/${token}`)
    await this.ask('POST', '/setup', { token, password, [token]: password })
    await this.ask('POST', '/setup', { token, password: `${wrong}${'x'.repeat(256)}` })
    expect((await this.ask('POST', '/setup', { token, password })).status).toBe(200)
    await this.ask('POST', '/setup/look', { token })
    await this.ask('POST', '/sign-in', { email, password: wrong })
    await this.ask('POST', '/sign-in', { email: 'nobody@acme.example', password: token })
    await this.ask('POST', '/sign-in', `{"email": "${email}", "password": "${password}`)
    await this.ask('POST', `/sign-in?password=${encodeURIComponent(password)}`, { email, password })
    await this.without('users', () => this.ask('POST', '/sign-in', { email, password }))
    expect((await this.ask('POST', '/sign-in', { email, password })).status).toBe(200)
    const cookie = this.browser.cookie?.split('=')[1] ?? ''
    await this.without('sessions', () => this.ask('GET', '/session'))
    await this.ask('GET', `/sessions/${cookie}?sid=${cookie}`)
    await this.ask('POST', `/sessions/${cookie}/revoke`, {})
    await this.ask('POST', '/password', { current_password: wrong, password })
  }

  /** A key, an agent that uses it, a person who approves, and the same with wrong values. */
  async approve(): Promise<void> {
    const { workplace, workspace_id } = this
    const tenant = { workspace_id } as Parameters<Workplace['connected']>[0]
    const account_id = await workplace.connected(tenant)
    const person = workplace.person('Mara')
    const [heard, sent] = [`canary heard ${newId()}`, `canary sent ${newId()}`]
    this.found.texts.push(heard, sent)
    workplace.write(account_id, person, heard)
    await workplace.untilStored(account_id, 1)
    const made = await this.ask('POST', `/w/${workspace_id}/keys`, {
      name: 'agent',
      scopes: ['read', 'send'],
    })
    const key = this.secret(String(made.body.secret))
    const at = { url: workplace.service.url, key }
    const given = { account_id, chat_id: `platform:chat:${person}`, text: sent }
    const send = async (more: object) =>
      (await callTool(at, 'service_send_message', { ...given, ...more })).structuredContent ?? {}
    const { request_id } = await send({})
    const approved = await this.ask('POST', `/approvals/${request_id}/approve`, {})
    const approval_token = this.secret(String(approved.body.token))
    const wrong = this.secret(`apr_${newId().replaceAll('-', '')}canary`)
    const refusals = [
      await send({ approval_token: wrong }),
      await send({ approval_token, text: `${sent} and more` }),
      await send({ approval_token, chat_id: approval_token }),
      await send({ approval_token, [approval_token]: key }),
    ]
    await this.without('approvals', async () => refusals.push(await send({ approval_token })))
    expect(await send({ approval_token })).toMatchObject({ ok: true })
    refusals.push(await send({ approval_token, account_id: key }))
    expect(await send({ approval_token })).toMatchObject({ code: 'approval_used' })
    this.found.refusals.push(...refusals.map((each) => String(each.error)))
    await sendMessage({ url: at.url, query: `?key=${key}&token=${approval_token}` }, 'tools/list')
    await askMcp({ ...at, body: `{"approval_token": "${approval_token}", ${key}` })
    await askMcp({ ...at, key: undefined, headers: { authorization: `Basic ${key}` }, body: {} })
    await this.ask('GET', `/approvals/${approval_token}?key=${key}`)
    await workplace.service.get(`/chats/${key}`, { key })
    await this.without('keys', () => workplace.service.get('/me', { key: this.secret(flipped(key)) }))
  }

  /** A webhook's secret, and what the identity provider and the service exchange. */
  async others(): Promise<void> {
    const { service } = this.workplace
    const key = this.found.credentials[0]
    const body = { url: 'https://hooks.example.com/parley' }
    const made = await service.post('/webhooks', { key, body })
    this.secret(String(made.body.secret))
    const { id } = made.body.webhook as { id: string }
    const rotated = await service.post(`/webhooks/${id}/rotate-secret`, { key })
    this.secret(String(rotated.body.secret))
    const visitor = new Browser(service)
    const begun = await visitor.get('/dashboard/oidc/start')
    const location = String(begun.headers.location)
    const { searchParams } = new URL(location)
    const [state, nonce] = [searchParams.get('state') ?? '', searchParams.get('nonce') ?? '']
    const code = provider.authorize(location, 'nobody')
    const query = new URLSearchParams({ code, state, iss: provider.issuer })
    await this.ask('GET', `/dashboard/oidc/callback?${query}`, undefined, visitor)
    await this.ask('GET', `/dashboard/oidc/callback?${query}`, undefined, visitor)
    for (const each of [state, nonce, ...provider.secrets]) this.secret(each)
  }

  /** A Telegram account that logs in, right and wrong, acts, is revoked and logs out. Its key controls the account. */
  async telegram(): Promise<void> {
    const { workplace, workspace_id } = this
    const { app } = workplace.service
    const stage = await openStage()
    const platform = telegramAt(stage.centre.port)
    const parts = { platforms: new Map([['telegram', platform]]), directory: workplace.directory, loops: [] }
    const worker = runWorker(app, await assembleWorker(app, parts))
    const phone = '+9996620471'
    const password = this.secret(`canary two steps ${newId()}`)
    const wrong = [this.secret(`canary code ${newId()}`), this.secret(`canary no step ${newId()}`)]
    this.found.texts.push(phone.slice(1))
    stage.centre.addAccount({ account_id: 'user', name: 'Sales', phone, password })
    const { id } = await createAccount(app, 'system', { workspace_id, platform: 'telegram', name: 'Sales' })
    await workplace.untilStatus(id, 'NEEDS_LOGIN')
    const enter = (...typed: string[]) => {
      const dialogue = { show() {}, ask: () => Promise.resolve(typed.shift() ?? '') }
      return logIn(app, 'system', { id, phone, platform, dialogue })
    }
    for (const typed of [
      [wrong[0] ?? '', '12345', wrong[1] ?? '', wrong[1] ?? ''],
      [phone, password, password],
    ]) {
      await enter(...typed).catch((error: Error) => this.found.refusals.push(error.message))
    }
    await this.without('platform_sessions', () => enter('12345', password).catch(() => {}))
    await enter('12345', password)
    await workplace.untilStatus(id, 'READY')
    const session = await findSession(app, id)
    if (!session || session === 'unreadable') throw new Error('The login was not stored.')
    const { key } = JSON.parse(Buffer.from(session).toString())
    this.secret(key)
    this.secret(Buffer.from(key, 'base64').toString('hex'))
    stage.world.addFault({ on: 'connect', fault: 'refuse', error: '401 SESSION_REVOKED' })
    for (const enabled of [false, true]) await setAccountEnabled(app, 'system', { id, enabled })
    await workplace.untilStatus(id, 'NEEDS_LOGIN')
    await logOut(app, 'system', { id, platform })
    await this.throughProxy({ phone, password, wrong: wrong[0] ?? '' })
    await worker.stop()
    await stage.close()
  }

  /** A login at the dashboard, right and wrong, through a proxy that asks for credentials. */
  async throughProxy({ phone, password, wrong }: Readonly<Record<'phone' | 'password' | 'wrong', string>>) {
    const { service, db } = this.workplace
    const credentials = {
      username: this.secret(`canaryname${newId()}`),
      password: this.secret(`canary proxy ${newId()}`),
    }
    this.secret(Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64'))
    const proxy = await openProxy('http', { credentials })
    const owner = await db.one<{ user_id: string }>(sql`
      select user_id from memberships where workspace_id = ${this.workspace_id} and role = 'owner' limit 1`)
    const browser = await Browser.signedIn(service, owner.user_id)
    const ask = (method: string, path: string, body?: unknown) =>
      this.ask(method, `/w/${this.workspace_id}/accounts${path}`, body, browser)
    const named = `${credentials.username}:${encodeURIComponent(credentials.password)}@`
    for (const url of [
      `ftp://${named}127.0.0.1:1`,
      `http://${named}10.0.0.1:1`,
      `http://${named}127.0.0.1:99999`,
    ]) {
      expect((await ask('POST', '', { name: 'Behind', proxy: url })).status).toBe(400)
    }
    const right = `http://${named}127.0.0.1:${proxy.port}`
    const made = await ask('POST', '', { name: 'Behind', proxy: right.replace('canaryname', 'wrong') })
    const { id } = made.body.account as { id: string }
    const at = (state: string) =>
      until(`the login is at ${state}`, hangMs, async () => {
        const { login } = (await ask('GET', `/${id}/login`)).body as { login: Record<string, unknown> | null }
        return login?.state === state && !login.pending
      })
    const answer = (kind: string, text: string) => ask('POST', `/${id}/login/answer`, { kind, text })
    await ask('POST', `/${id}/login`, { phone })
    await at('failed')
    await ask('PATCH', `/${id}`, { proxy: right })
    await ask('POST', `/${id}/login`, { phone })
    await at('code')
    await this.without('account_logins', () => answer('code', wrong))
    await answer('password', password)
    await answer('code', wrong)
    await until('it asks again', hangMs, async () => (await answer('code', '12345')).status === 200)
    await until(
      'it asks for the password',
      hangMs,
      async () => (await answer('password', password)).status === 200,
    )
    await at('done')
    await this.workplace.untilStatus(id, 'READY')
    expect((await ask('POST', `/${id}/logout`)).status).toBe(200)
    expect(proxy.asked.length).toBeGreaterThan(1)
  }

  /** Every row of every table, as text. */
  async rows(): Promise<string> {
    const { db } = this.workplace
    const tables = await db.rows<{ name: string }>(
      sql`select tablename as name from pg_tables where schemaname = 'public'`,
    )
    const all = tables.map(({ name }) => db.pool.query(`select to_jsonb(t)::text as row from ${name} t`))
    return (await Promise.all(all)).flatMap(({ rows }) => rows.map(({ row }) => row)).join('\n')
  }
}

/** A well-formed key that does not exist. */
function flipped(key: string): string {
  return `${key.slice(0, 20)}${key.slice(20).split('').reverse().join('')}`
}

async function readAll(directory: string): Promise<string> {
  const files = await readdir(directory, { recursive: true, withFileTypes: true })
  const texts = files
    .filter((file) => file.isFile())
    .map((file) => readFile(join(file.parentPath, file.name), 'latin1'))
  return (await Promise.all(texts)).join('\n')
}

/** As it might be written: unchanged, in an address, in JSON, in base64. */
function formsOf(secret: string): string[] {
  const base64 = Buffer.from(secret).toString('base64').replace(/=+$/, '')
  return [secret, encodeURIComponent(secret), secret.replaceAll(' ', '+'), base64]
}

function hits(places: Readonly<Record<string, string>>, secrets: readonly string[]): string[] {
  return Object.entries(places).flatMap(([place, text]) =>
    secrets
      .filter((secret) => formsOf(secret).some((form) => text.includes(form)))
      .map((secret) => `${place}: ${secret}`),
  )
}

describe.each([
  ['postgres', 'every statement'],
  ['loud', 'every statement and every value'],
])('on the database %s, where PostgreSQL logs %s', (database) => {
  test('no secret is in a log, a metric, a refusal or a row', async () => {
    const workplace = await openAt(database)
    const journey = new Journey(workplace)
    await journey.signIn()
    await journey.approve()
    await journey.others()
    await journey.telegram()
    const { credentials, texts, refusals } = journey.found
    const { service } = workplace
    const places = {
      log: service.log.join(''),
      metrics: await service.app.metrics.metrics(),
      refusals: refusals.join('\n'),
      audit: JSON.stringify(await workplace.db.rows(sql`select * from audit`)),
      postgres: await readFile(join(data_dir, 'postgres.log'), 'utf8'),
    }
    // Rows and journals hold texts, which is their purpose, and no credentials.
    const stored = { rows: await journey.rows(), disk: await readAll(workplace.directory) }
    await workplace.close()
    // The search would find a secret that is there.
    expect(places.log).toContain('"operation":"sign_in"')
    expect(places.log).toContain('schema_unavailable')
    expect(places.audit).toContain('account.logged_out')
    expect(places.postgres).toMatch(/insert into sessions \(id, token_hash/)
    expect(places.postgres.includes(`'${journey.email}'`)).toBe(database === 'loud')
    expect(stored.rows).toContain(journey.email)
    expect(refusals.length).toBeGreaterThan(15)
    expect(new Set(credentials).size).toBeGreaterThan(15)
    expect(hits({ ...places, ...stored }, [...new Set(credentials)])).toEqual([])
    const { postgres, ...ours } = places
    expect(hits(database === 'loud' ? ours : { ...ours, postgres }, texts)).toEqual([])
  })
})
