/** Logins and logouts over HTTP: a worker runs them against a data centre on loopback. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { endProcesses, hangMs, spawnParley, until } from '../../../test/harness/process.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { testSecret } from '../../../test/harness/worker.ts'
import { openStage, type Stage, telegramAt } from '../../../test/platform/data-centre-fixture.ts'
import type { CodeWay } from '../../../test/platform/mtproto/codes.ts'
import { sql } from '../../db/sql.ts'
import type { Running } from '../../worker/run-loops.ts'
import { assembleWorker, runWorker } from '../../worker/worker.ts'
import { createUser } from '../users/users.ts'
import { seal } from './login-requests.ts'
import { findSession } from './platform-store.ts'

/** For a hang. */

let service: Service
let tenant: Tenant
let owner: string
let member: string
let stage: Stage
let directory: string
let worker: Running | undefined

beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
  owner = await signIn(service, tenant.user_id)
  const { workspace_id } = tenant
  const wanted = { email: 'bo@acme.example', workspace_id, role: 'member' } as const
  member = await signIn(service, (await createUser(service.app, 'system', wanted)).id)
  stage = await openStage()
  directory = await mkdtemp(join(tmpdir(), 'parley-logins-'))
})
afterAll(async () => {
  await endProcesses()
  await stage.close()
  await service.close()
  await rm(directory, { recursive: true, force: true })
})

async function work(): Promise<void> {
  const { app } = service
  const platforms = new Map([['telegram', telegramAt(stage.centre.port)]])
  worker = runWorker(app, await assembleWorker(app, { platforms, directory, loops: [] }))
  await until('it is heard of', hangMs, () =>
    app.db.maybe(sql`select 1 from workers where stopped_at is null and drives`),
  )
}
async function rest(): Promise<void> {
  await worker?.stop()
  worker = undefined
}
beforeEach(work)
afterEach(rest)

interface Login extends Record<string, unknown> {
  readonly state: string
  readonly pending: boolean
}

const ask = (method: string, id: string, path: string, body?: unknown, cookie = owner) =>
  askDashboard(service, method, `/w/${tenant.workspace_id}/accounts/${id}${path}`, { cookie, body })

let phones = 9_996_620_500

/** A user of the platform. */
function newUser(password?: string) {
  const phone = `+${phones++}`
  const user = `user_${phones}`
  stage.centre.addAccount({ account_id: user, name: 'Sales desk', phone, ...(password && { password }) })
  return { phone, user }
}

async function newAccount(): Promise<string> {
  const path = `/w/${tenant.workspace_id}/accounts`
  const made = await askDashboard(service, 'POST', path, { cookie: owner, body: { name: 'Sales' } })
  return (made.body.account as { id: string }).id
}

async function read(id: string, cookie = owner): Promise<Login> {
  return (await ask('GET', id, '/login', undefined, cookie)).body.login as Login
}

/** The next thing to do, or the end. */
function next(id: string, state: string, holds: (login: Login) => boolean = () => true): Promise<Login> {
  return until(`the login is at ${state}`, hangMs, async () => {
    const login = await read(id)
    if (login.state === state && !login.pending && holds(login)) return login
    // A session that asks more often is refused.
    await sleep(300)
    return undefined
  })
}

function untilStatus(id: string, status: string) {
  return until(`it is ${status}`, hangMs, async () => (await statusOf(id)) === status)
}

async function statusOf(id: string): Promise<string> {
  const { status } = await service.app.db.one<{ status: string }>(
    sql`select status from accounts where id = ${id}`,
  )
  return status
}

const begin = (id: string, body: object = {}) => ask('POST', id, '/login', body)
const answer = (id: string, kind: string, text: string) => ask('POST', id, '/login/answer', { kind, text })

function keysOf(user: string): number {
  return [...stage.centre.store.state.auth_keys.values()].filter(({ account_id }) => account_id === user)
    .length
}

async function auditOf(id: string): Promise<string[]> {
  const rows = await service.app.db.rows<{ action: string; detail: string; actor: string }>(
    sql`select action, detail, actor from audit where target = ${id} order by seq`,
  )
  expect(new Set(rows.map(({ actor }) => actor))).toEqual(new Set([`user:${tenant.user_id}`]))
  return rows.slice(1).map(({ action, detail }) => `${action} ${detail}`)
}

function rowOf(id: string) {
  return service.app.db.one<Record<string, unknown>>(
    sql`select * from account_logins where account_id = ${id}`,
  )
}

/** Scans the code that the one open login shows. */
const scan = (user: string) => stage.centre.acceptLogin(stage.world.requireAccount(user))

describe('POST /accounts/{account_id}/login', () => {
  test('200 by a QR code, which a second tab shows too and a member does not see; once scanned, the account is READY', async () => {
    const id = await newAccount()
    const { user } = newUser()
    expect(await read(id)).toBeNull()
    expect(await begin(id)).toMatchObject({
      status: 200,
      body: { login: { way: 'qr', state: 'qr', pending: true } },
    })
    const login = await next(id, 'qr')
    expect(login).toMatchObject({ qr_url: expect.stringMatching(/^tg:\/\/login\?token=/), failure: null })
    expect(await read(id)).toEqual(login)
    expect(await read(id, member)).toMatchObject({ state: 'qr', qr_url: null })
    expect(scan(user)).toBe(true)
    expect(await next(id, 'done')).toMatchObject({ qr_url: null, failure: null })
    await untilStatus(id, 'READY')
    expect(await auditOf(id)).toEqual(['account.login_begun {"way":"qr"}', 'account.logged_in {}'])
  })

  test('200 by phone: a code wrong twice, then right, then the password; nothing shown or typed stays stored', async () => {
    const id = await newAccount()
    const password = 'canary correct horse'
    const { phone, user } = newUser(password)
    await begin(id, { phone })
    expect(await next(id, 'code')).toMatchObject({ sent_by: 'app', wrong: false, tries_left: 3 })
    expect(await answer(id, 'code', '00000')).toMatchObject({
      body: { login: { state: 'code', pending: true } },
    })
    expect(await next(id, 'code', ({ wrong }) => wrong === true)).toMatchObject({ tries_left: 2 })
    await answer(id, 'code', '00000')
    await next(id, 'code', ({ tries_left }) => tries_left === 1)
    await answer(id, 'code', '12345')
    expect(await next(id, 'password')).toMatchObject({ hint: expect.any(String), wrong: false })
    expect(await read(id, member)).toMatchObject({ state: 'password', hint: null })
    await answer(id, 'password', password)
    await next(id, 'done')
    expect(await rowOf(id)).toMatchObject({ shown: null, typed: null, failure: null })
    await untilStatus(id, 'READY')
    expect(keysOf(user)).toBe(1)
    const said = JSON.stringify([service.log, await service.app.db.rows(sql`select * from audit`)])
    for (const secret of [password, phone, phone.slice(1), '12345"']) expect(said).not.toContain(secret)
    expect(await begin(id)).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining('Log it out first') },
    })
  })

  test('ends after three wrong inputs, and the account still needs a login', async () => {
    const id = await newAccount()
    await begin(id, { phone: newUser().phone })
    for (const tries of [3, 2, 1]) {
      await next(id, 'code', ({ tries_left }) => tries_left === tries)
      await answer(id, 'code', '00000')
    }
    const error = 'Login ended after three wrong attempts. Start again.'
    expect(await next(id, 'failed')).toMatchObject({ failure: { code: 'conflict', error } })
    await untilStatus(id, 'NEEDS_LOGIN')
    expect(await auditOf(id)).toEqual([
      'account.login_begun {"way":"phone"}',
      'account.login_failed {"reason":"too_many_attempts"}',
    ])
  })

  test('429 for the fourth in an hour, with Retry-After; 200 for another account', async () => {
    const id = await newAccount()
    for (let n = 0; n < 3; n++) {
      expect((await begin(id)).status).toBe(200)
      expect((await begin(id)).status).toBe(409)
      await ask('DELETE', id, '/login')
    }
    const refused = await begin(id)
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
    const seconds = Number(refused.headers.get('retry-after'))
    expect(seconds > 3_000 && seconds <= 3_600).toBe(true)
    expect((await begin(await newAccount())).status).toBe(200)
    await service.app.db.run(sql`
      update account_logins set begins = array(select b - interval '1 hour' from unnest(begins) as b) where account_id = ${id}`)
    expect((await begin(id)).status).toBe(200)
    await service.app.db.run(
      sql`update account_logins set state = 'done', shown = null, typed = null where state <> 'failed'`,
    )
  })

  test('429 for the fourth of one phone number in an hour, whichever account it is for; six in the instance', async () => {
    const { phone } = newUser()
    const { db } = service.app
    const start = async (body: object) => {
      const id = await newAccount()
      const answered = await begin(id, body)
      await ask('DELETE', id, '/login')
      return answered
    }
    const beginsOf = (count: number) => Array.from({ length: count }, () => start({ phone }))
    // At once: they count one after the other.
    const statuses = (await Promise.all(beginsOf(4))).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([200, 200, 200, 429])
    const refused = await start({ phone })
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
    const seconds = Number(refused.headers.get('retry-after'))
    expect(seconds > 3_000 && seconds <= 3_600).toBe(true)
    expect((await start({ phone: newUser().phone })).status).toBe(200)
    expect((await start({})).status).toBe(200)
    const stored = await db.rows(sql`select * from login_numbers`)
    expect(JSON.stringify(stored)).not.toContain(phone.slice(1))
    // Three of other workspaces: the number has used up what the instance allows.
    const others = await service.tenant('Others')
    const moved = sql`update login_numbers set workspace_id = ${others.workspace_id}
      where workspace_id = ${tenant.workspace_id} and number_hash = (
        select number_hash from login_numbers group by number_hash order by count(*) desc limit 1)`
    await db.run(moved)
    expect((await Promise.all(beginsOf(3))).map(({ status }) => status)).toEqual([200, 200, 200])
    await db.run(moved)
    expect((await start({ phone })).status).toBe(429)
    await db.run(sql`update login_numbers set begun_at = begun_at - interval '1 hour'`)
    expect((await start({ phone })).status).toBe(200)
    expect(await db.one(sql`select count(*)::int as count from login_numbers`)).toEqual({ count: 1 })
  })

  test('409 for the sixth at a time in a workspace', async () => {
    await rest()
    const ids = await Promise.all(Array.from({ length: 6 }, newAccount))
    const answers = []
    for (const id of ids) answers.push((await begin(id)).status)
    for (const id of ids) await ask('DELETE', id, '/login')
    expect(answers).toEqual([200, 200, 200, 200, 200, 409])
  })

  test.each([{ phone: '123' }, { phone: 'x' }, { phone: '+0123456789' }, { way: 'qr' }, { phone: null }])(
    '400 for %j',
    async (body) => {
      expect((await begin(await newAccount(), body)).status).toBe(400)
    },
  )

  test('503 while no worker has the platform', async () => {
    const id = await newAccount()
    await rest()
    await service.app.db.run(sql`update workers set beat_at = beat_at - interval '1 hour'`)
    expect(await begin(id)).toMatchObject({ status: 503, body: { code: 'provider_unavailable' } })
  })
})

/** The answers that wait for the row of a login. */
async function countWaiting(): Promise<number> {
  const { waiting } = await service.app.db.one<{ waiting: number }>(sql`
    select count(*)::int as waiting from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
      and query ~ '^\\s*update account_logins set typed = '`)
  return waiting
}

describe('POST /accounts/{account_id}/login/answer', () => {
  test('200 for again: the code comes by the next way, the same question stands until then, and nothing counts as wrong', async () => {
    const id = await newAccount()
    const { phone } = newUser()
    const again = () => ask('POST', id, '/login/answer', { kind: 'again' })
    const plan = (ways: readonly CodeWay[], timeout_seconds: number) =>
      stage.centre.store.commit({ entry: 'codes', phone: phone.slice(1), plan: { ways, timeout_seconds } })
    expect((await again()).status).toBe(409)
    plan(['app', 'sms', 'call'], 0)
    await begin(id, { phone })
    expect(await next(id, 'code')).toMatchObject({
      sent_by: 'app',
      again: { by: 'sms', at: expect.any(String) },
    })
    expect((await ask('POST', id, '/login/answer', { kind: 'code' })).status).toBe(400)
    expect((await ask('POST', id, '/login/answer', { kind: 'again' }, member)).status).toBe(403)
    expect(await again()).toMatchObject({ status: 200, body: { login: { state: 'code', pending: true } } })
    const second = await next(id, 'code', ({ sent_by }) => sent_by === 'sms')
    expect(second).toMatchObject({ wrong: false, tries_left: 3, again: { by: 'call' } })
    await answer(id, 'code', '12345')
    await next(id, 'done')
    await ask('POST', id, '/logout')

    plan(['app', 'sms'], 120)
    await begin(id, { phone })
    const first = await next(id, 'code')
    expect(Date.parse((first.again as { at: string }).at)).toBeGreaterThan(Date.now())
    await again()
    expect(await next(id, 'code')).toMatchObject({ sent_by: 'app', wrong: false, tries_left: 3 })
    await ask('DELETE', id, '/login')
  })

  test('409 for what is not asked for, and for a second answer to one question', async () => {
    const id = await newAccount()
    expect((await answer(id, 'code', '12345')).status).toBe(409)
    const { user } = newUser()
    await begin(id)
    await next(id, 'qr')
    expect((await answer(id, 'code', '12345')).status).toBe(409)
    await ask('DELETE', id, '/login')
    await begin(id, { phone: newUser().phone })
    await next(id, 'code')
    expect((await answer(id, 'password', '12345')).status).toBe(409)
    const client = await service.app.db.client()
    await client.query('begin')
    await client.query('select 1 from account_logins where account_id = $1 for update', [id])
    const asked = [answer(id, 'code', '00000'), answer(id, 'code', '00000')]
    // Both wait for the row: no worker has read the first answer before the second arrives.
    await until('both wait', hangMs, async () => (await countWaiting()) === 2)
    await client.query('commit')
    await client.end()
    const both = await Promise.all(asked)
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
    await next(id, 'code', ({ tries_left }) => tries_left === 2)
    expect(keysOf(user)).toBe(0)
    await ask('DELETE', id, '/login')
  })

  test('409 for an answer that waited until the next question', async () => {
    const id = await newAccount()
    await begin(id, { phone: newUser().phone })
    await next(id, 'code')
    const client = await service.app.db.client()
    await client.query('begin')
    const { rows } = await client.query(
      'select attempt from account_logins where account_id = $1 for update',
      [id],
    )
    const late = answer(id, 'code', '00000')
    await until('it waits', hangMs, async () => (await countWaiting()) === 1)
    // As after another answer: the worker has taken it and asks again.
    const again = seal(service.app, rows[0].attempt, { sent_by: 'app', wrong: true, tries_left: 2 })
    await client.query('update account_logins set shown = $2 where account_id = $1', [id, again])
    await client.query('commit')
    await client.end()
    expect((await late).status).toBe(409)
    expect(await next(id, 'code')).toMatchObject({ pending: false, tries_left: 2 })
    await ask('DELETE', id, '/login')
  })
})

describe('DELETE /accounts/{account_id}/login', () => {
  test('200 ends it, and it accepts no more answers; the next login starts like the first', async () => {
    const id = await newAccount()
    const { phone, user } = newUser()
    await begin(id, { phone })
    await next(id, 'code')
    const failure = { code: 'conflict', error: 'The login was cancelled.', retry_after: null }
    for (let n = 0; n < 2; n++) {
      expect(await ask('DELETE', id, '/login')).toMatchObject({
        status: 200,
        body: { login: { state: 'failed', failure } },
      })
    }
    expect((await answer(id, 'code', '12345')).status).toBe(409)
    await untilStatus(id, 'NEEDS_LOGIN')
    expect([keysOf(user), await findSession(service.app, id)]).toEqual([0, null])
    expect(await auditOf(id)).toEqual([
      'account.login_begun {"way":"phone"}',
      'account.login_failed {"reason":"given_up"}',
    ])
    // A worker may take the account's lease again.
    await begin(id, { phone })
    await next(id, 'code')
    await answer(id, 'code', '12345')
    await next(id, 'done')
  })

  /** Answers with the right code. The login exists on the platform and is stored only after `work` is done. */
  async function beforeStored(work: (id: string) => Promise<unknown>) {
    const id = await newAccount()
    const { phone, user } = newUser()
    await begin(id, { phone })
    await next(id, 'code')
    const { db } = service.app
    const client = await db.client()
    await client.query('begin')
    await client.query('select 1 from accounts where id = $1 for update', [id])
    await answer(id, 'code', '12345')
    await until('the key is logged in', hangMs, () => keysOf(user) === 1)
    await work(id)
    await client.query('commit')
    await client.end()
    await until('the key is revoked', hangMs, () => keysOf(user) === 0)
    expect(await findSession(service.app, id)).toBeNull()
    await next(id, 'failed')
  }

  test('a login that was cancelled while its answer was checked is not stored, and its key is revoked', async () => {
    await beforeStored((id) => ask('DELETE', id, '/login'))
  })

  test('a login whose lease was taken is not stored, and its key is revoked', async () => {
    await beforeStored((id) =>
      service.app.db.run(
        sql`update account_hosts set lease_epoch = lease_epoch + 1 where account_id = ${id}`,
      ),
    )
  })
})

describe('POST /accounts/{account_id}/logout', () => {
  test('200 once the key is revoked and deleted; 409 if there is none', async () => {
    const id = await newAccount()
    const { phone, user } = newUser()
    await begin(id, { phone })
    await next(id, 'code')
    await answer(id, 'code', '12345')
    await untilStatus(id, 'READY')
    expect(keysOf(user)).toBe(1)
    expect(await ask('POST', id, '/logout')).toMatchObject({
      status: 200,
      body: { account: { status: 'NEEDS_LOGIN', status_reason: 'Logged out. To use it again, log it in.' } },
    })
    expect([keysOf(user), await findSession(service.app, id)]).toEqual([0, null])
    expect(await ask('POST', id, '/logout')).toMatchObject({
      status: 409,
      body: { error: 'The account is not logged in.' },
    })
    expect((await auditOf(id)).at(-1)).toBe('account.logged_out {"local":false}')
  })
})

describe('a worker that is killed in the middle', () => {
  test('ends its login as failed; the account still needs one, and another worker runs it', async () => {
    await rest()
    const key_file = join(directory, 'dc.pem')
    await writeFile(key_file, stage.centre.public_pem)
    const args = ['work', '--port', '0', '--admin-port', '0', '--data-dir', directory]
    const killed = spawnParley(args, {
      DATABASE_URL: service.database.url,
      PARLEY_SECRET: testSecret,
      PARLEY_TELEGRAM_API_ID: '1',
      PARLEY_TELEGRAM_API_HASH: '0'.repeat(32),
      PARLEY_TELEGRAM_DC: `127.0.0.1:${stage.centre.port},${key_file}`,
    })
    await killed.ready()
    const id = await newAccount()
    const { phone, user } = newUser()
    await untilStatus(id, 'NEEDS_LOGIN')
    await begin(id, { phone })
    await next(id, 'code')
    killed.signal('SIGKILL')
    await killed.ended()
    expect(await next(id, 'failed')).toMatchObject({
      failure: { code: 'provider_unavailable', error: expect.stringContaining('has stopped') },
    })
    expect([await statusOf(id), keysOf(user)]).toEqual(['NEEDS_LOGIN', 0])
    await work()
    expect((await begin(id, { phone })).status).toBe(200)
    expect((await auditOf(id)).slice(1, 2)).toEqual(['account.login_failed {"reason":"worker_lost"}'])
    await next(id, 'code')
    await answer(id, 'code', '12345')
    await untilStatus(id, 'READY')
  })
})
