/** Logins and logouts over a data centre on loopback, without a worker. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hangMs, until } from '../../../test/harness/process.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { openNeighbour } from '../../../test/harness/worker.ts'
import { openStage, type Stage, telegramAt } from '../../../test/platform/data-centre-fixture.ts'
import { sql } from '../../db/sql.ts'
import { claimAccounts, releaseLease } from '../../ledger/leases.ts'
import type { LoginFailure, LoginStep, Platform } from '../../platform/port.ts'
import type { World } from '../../platform/sandbox/world.ts'
import { createAccount, logIn, logOut, setAccountEnabled } from './accounts.ts'
import { findSession } from './platform-store.ts'

let service: Service
let tenant: Tenant
let stage: Stage
let world: World
let platform: Platform

beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
  stage = await openStage()
  world = stage.world
  platform = telegramAt(stage.centre.port)
})
afterAll(async () => {
  await stage.close()
  await service.close()
})

let phones = 9_996_620_100

/** A user of the platform. */
function newUser(): { phone: string; user: string } {
  const phone = `+${phones++}`
  const user = `user_${phones}`
  world.addAccount({ account_id: user, name: 'Sales desk', phone })
  return { phone, user }
}

async function newAccount(workspace_id = tenant.workspace_id): Promise<string> {
  const wanted = { workspace_id, platform: 'telegram', name: 'Sales' }
  return (await createAccount(service.app, 'system', wanted)).id
}

/** Types these texts in turn, then nothing more. */
function typing(...texts: string[]) {
  const shown: LoginStep[] = []
  return {
    shown,
    show: (step: LoginStep) => void shown.push(step),
    ask: (step: LoginStep) => {
      shown.push(step)
      const text = texts.shift()
      return text === undefined ? new Promise<string>(() => {}) : Promise.resolve(text)
    },
  }
}

function enter(id: string, phone: string, dialogue = typing('12345')) {
  return logIn(service.app, 'system', { id, phone, platform, dialogue })
}

/** How many keys of the data centre are logged in as this user. */
function keysOf(user: string): number {
  return [...stage.centre.store.state.auth_keys.values()].filter(({ account_id }) => account_id === user)
    .length
}

async function auditOf(id: string): Promise<string[]> {
  const rows = await service.app.db.rows<{ action: string; detail: string }>(
    sql`select action, detail from audit where target = ${id} order by seq`,
  )
  return rows.slice(1).map(({ action, detail }) => `${action} ${detail}`)
}

function rowOf(id: string) {
  return service.app.db.one<Record<string, unknown>>(
    sql`select status, status_reason, platform_user_id, phone from accounts where id = ${id}`,
  )
}

const set = (id: string, status: string) =>
  service.app.db.run(sql`update accounts set status = ${status} where id = ${id}`)

describe('a login', () => {
  test('stores the key, its user and CONNECTING, and names no secret in the audit log', async () => {
    const id = await newAccount()
    const { phone, user } = newUser()
    const account = await enter(id, phone)
    expect(account).toMatchObject({ id, status: 'CONNECTING' })
    const person_id = world.requireAccount(user).person_id
    expect(await rowOf(id)).toMatchObject({ platform_user_id: String(person_id) })
    expect(await findSession(service.app, id)).toBeInstanceOf(Uint8Array)
    expect(keysOf(user)).toBe(1)
    expect(await auditOf(id)).toEqual(['account.logged_in {}'])
  })

  test('asks again after a wrong code, and the third ends it', async () => {
    const id = await newAccount()
    const dialogue = typing('00000', '1', '')
    await expect(enter(id, newUser().phone, dialogue)).rejects.toThrow(
      'Login ended after three wrong attempts.',
    )
    expect(dialogue.shown).toMatchObject([{ wrong: false }, { wrong: true }, { wrong: true }])
    expect(await findSession(service.app, id)).toBeNull()
    expect(await auditOf(id)).toEqual(['account.login_failed {"reason":"too_many_attempts"}'])
  })

  test('of an account that is logged in is refused, also once it is READY', async () => {
    const id = await newAccount()
    const { phone } = newUser()
    await enter(id, phone)
    await expect(enter(id, phone)).rejects.toThrow('The account is logged in. Log it out first.')
    await set(id, 'READY')
    await expect(enter(id, phone)).rejects.toThrow('The account is logged in. Log it out first.')
  })

  test.each(['DISABLED', 'RESTRICTED'])('does not change that an account is %s', async (status) => {
    const id = await newAccount()
    await set(id, status)
    await expect(enter(id, newUser().phone)).rejects.toThrow(`The account is ${status}`)
    expect(await rowOf(id)).toMatchObject({ status })
  })

  test('of an account that was disabled meanwhile is refused, and its key is revoked', async () => {
    const id = await newAccount()
    const { phone, user } = newUser()
    const ask = async () => {
      await setAccountEnabled(service.app, 'system', { id, enabled: false })
      return '12345'
    }
    const login = enter(id, phone, { ...typing(), ask })
    await expect(login).rejects.toThrow('The account is DISABLED')
    expect([keysOf(user), await findSession(service.app, id)]).toEqual([0, null])
    expect(await auditOf(id)).toContain('account.login_failed {"reason":"account_changed"}')
  })

  test('replaces one that the platform has revoked', async () => {
    const id = await newAccount()
    const { phone } = newUser()
    await enter(id, phone)
    const before = await findSession(service.app, id)
    await set(id, 'NEEDS_LOGIN')
    await enter(id, phone)
    expect(await findSession(service.app, id)).not.toEqual(before)
  })

  test('runs once at a time per account; another account does not wait', async () => {
    const id = await newAccount()
    const first = typing()
    const ended = new AbortController()
    const ask = (step: LoginStep) => {
      first.shown.push(step)
      return new Promise<string>((_, fail) => {
        ended.signal.addEventListener('abort', () => fail(new Error('The terminal was closed.')))
      })
    }
    const login = enter(id, newUser().phone, { ...first, ask })
    await until('it asks', hangMs, () => first.shown.length > 0)
    const other = await openNeighbour(service.database.url)
    const wanted = { id, phone: newUser().phone, platform, dialogue: typing('12345') }
    await expect(logIn(other, 'system', wanted)).rejects.toThrow('Another login or logout')
    await enter(await newAccount(), newUser().phone)
    ended.abort()
    await expect(login).rejects.toThrow('The terminal was closed.')
    expect(await logIn(other, 'system', { ...wanted, dialogue: typing('12345') })).toMatchObject({ id })
    await other.close()
    expect(await auditOf(id)).toEqual(['account.login_failed {"reason":"abandoned"}', 'account.logged_in {}'])
  })
})

describe('a user of the platform', () => {
  test('is one account of the instance until logged out; the refusal names no workspace', async () => {
    const { phone, user } = newUser()
    const first = await newAccount()
    await enter(first, phone)
    const other = await service.tenant('Elsewhere')
    const second = await newAccount(other.workspace_id)
    const refusal = await enter(second, phone).catch((error: Error) => error.message)
    expect(refusal).toBe(
      'This user is connected to another account of this instance. Log that one out first.',
    )
    expect(keysOf(user)).toBe(1)
    expect(await findSession(service.app, second)).toBeNull()
    expect(await rowOf(second)).toMatchObject({ status: 'CONNECTING', platform_user_id: null })
    expect(await auditOf(second)).toEqual(['account.login_failed {"reason":"connected_elsewhere"}'])
    await logOut(service.app, 'system', { id: first, platform })
    expect(await enter(second, phone)).toMatchObject({ status: 'CONNECTING' })
  })

  test('is the only one that an account accepts after its first login', async () => {
    const id = await newAccount()
    const { phone } = newUser()
    await enter(id, phone)
    await logOut(service.app, 'system', { id, platform })
    const another = newUser()
    await expect(enter(id, another.phone)).rejects.toThrow('belongs to another user')
    expect(keysOf(another.user)).toBe(0)
    expect(await enter(id, phone)).toMatchObject({ status: 'CONNECTING' })
  })
})

describe('a logout', () => {
  async function loggedIn() {
    const id = await newAccount()
    const { phone, user } = newUser()
    await enter(id, phone)
    return { id, phone, user }
  }

  test('revokes the key, deletes it, and says how to log in again', async () => {
    const { id, user } = await loggedIn()
    await set(id, 'READY')
    const account = await logOut(service.app, 'system', { id, platform })
    expect(account).toMatchObject({
      status: 'NEEDS_LOGIN',
      status_reason: `Logged out. To use it again, run parley account login ${id}.`,
    })
    expect([keysOf(user), await findSession(service.app, id)]).toEqual([0, null])
    expect(await auditOf(id)).toEqual(['account.logged_in {}', 'account.logged_out {"local":false}'])
    await expect(logOut(service.app, 'system', { id, platform })).rejects.toThrow('is not logged in')
  })

  test('waits until the worker has released the account', async () => {
    const { id, user } = await loggedIn()
    const { db } = service.app
    const worker_id = randomUUID()
    const claim = { worker_id, platform: 'telegram', limit: 100, takeover_seconds: 0, neighbours: [] }
    const lease = (await claimAccounts(db, claim)).find(({ account_id }) => account_id === id)
    if (!lease) throw new Error('The account was not claimed.')
    let isOver = false
    const leaving = logOut(service.app, 'system', { id, platform }).finally(() => {
      isOver = true
    })
    await until('it is taken away', hangMs, async () => (await rowOf(id)).status === 'NEEDS_LOGIN')
    expect((await rowOf(id)).status_reason).toContain('A logout has begun.')
    // Statements queue, so by the end of these the logout has had the chance to go on.
    for (let n = 0; n < 20; n++) await rowOf(id)
    expect([isOver, keysOf(user)]).toEqual([false, 1])
    await releaseLease(db, worker_id, lease)
    expect(await leaving).toMatchObject({ status: 'NEEDS_LOGIN' })
  })

  test('is refused and changes nothing where the platform cannot be reached; a local one deletes the key', async () => {
    const { id, user } = await loggedIn()
    await set(id, 'READY')
    const before = await findSession(service.app, id)
    const { status_reason } = await rowOf(id)
    const away = telegramAt(1)
    await expect(logOut(service.app, 'system', { id, platform: away })).rejects.toMatchObject({
      code: 'provider_unavailable',
      message: expect.stringContaining('Nothing was changed.'),
    })
    // A worker makes it READY again.
    expect(await rowOf(id)).toMatchObject({ status: 'CONNECTING', status_reason })
    expect(await findSession(service.app, id)).toEqual(before)
    await logOut(service.app, 'system', { id, platform: null })
    expect([keysOf(user), await findSession(service.app, id)]).toEqual([1, null])
    expect(await auditOf(id)).toEqual(['account.logged_in {}', 'account.logged_out {"local":true}'])
  })

  test('of a login under another secret is only local', async () => {
    const { id } = await loggedIn()
    const other = await openNeighbour(service.database.url, {
      PARLEY_SECRET: 'another secret that is long enough',
    })
    await expect(logOut(other, 'system', { id, platform })).rejects.toThrow('another PARLEY_SECRET')
    await logOut(other, 'system', { id, platform: null })
    await other.close()
    expect(await findSession(service.app, id)).toBeNull()
  })

  test('in a database that may be a copy is only local', async () => {
    const { id, user } = await loggedIn()
    const { db } = service.app
    await db.run(sql`update instance set unconfirmed_since = real_now()`)
    await expect(logOut(service.app, 'system', { id, platform })).rejects.toThrow('may be a copy')
    expect([keysOf(user), (await rowOf(id)).status]).toEqual([1, 'CONNECTING'])
    await logOut(service.app, 'system', { id, platform: null })
    await db.run(sql`update instance set unconfirmed_since = null`)
    expect([keysOf(user), await findSession(service.app, id)]).toEqual([1, null])
  })

  test('leaves a disabled account disabled', async () => {
    const { id } = await loggedIn()
    await setAccountEnabled(service.app, 'system', { id, enabled: false })
    expect(await logOut(service.app, 'system', { id, platform })).toMatchObject({ status: 'DISABLED' })
  })
})

describe('every failure of a login has a sentence', () => {
  const reasons: [LoginFailure, string | null, number | null, string][] = [
    ['phone_invalid', 'PHONE_NUMBER_INVALID', null, 'international form'],
    ['phone_banned', 'PHONE_NUMBER_BANNED', null, 'has banned this number'],
    ['sign_up_required', null, null, 'has no account yet'],
    ['email_set_up_required', null, null, 'wants an e-mail address'],
    ['code_expired', 'PHONE_CODE_EXPIRED', null, 'The code has expired.'],
    ['too_many_attempts', null, null, 'Login ended after three wrong attempts.'],
    [
      'too_many_attempts',
      'PHONE_NUMBER_FLOOD',
      null,
      'accepts no more attempts for now (PHONE_NUMBER_FLOOD)',
    ],
    ['timed_out', null, null, 'within ten minutes'],
    ['flood_wait', null, 900, 'Wait 900 s.'],
    ['connection_lost', null, null, 'the connection was lost'],
    ['refused', 'API_ID_INVALID', null, 'It says API_ID_INVALID.'],
  ]

  test.each(reasons)('%s %s %s', async (reason, detail, retry_after_seconds, sentence) => {
    const id = await newAccount()
    const failing: Platform = {
      ...platform,
      login(_request, report) {
        setImmediate(() => report({ kind: 'failed', reason, detail, retry_after_seconds }))
        return { answer() {}, close: () => Promise.resolve() }
      },
    }
    const wanted = { id, phone: '+9996620099', platform: failing, dialogue: typing() }
    await expect(logIn(service.app, 'system', wanted)).rejects.toThrow(sentence)
    expect(await auditOf(id)).toEqual([`account.login_failed {"reason":"${reason}"}`])
  })

  test('a platform without logins', async () => {
    const id = await newAccount()
    const { login: _, ...without } = platform
    const wanted = { id, phone: null, platform: without, dialogue: typing() }
    await expect(logIn(service.app, 'system', wanted)).rejects.toThrow('need no login')
  })
})
