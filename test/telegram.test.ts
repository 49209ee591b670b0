/** Real accounts from the terminal to the API: `parley account login`, a worker, and Telegram's protocol on loopback. */
import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAccount, setAccountEnabled } from '../src/capabilities/accounts/accounts.ts'
import { findSession } from '../src/capabilities/accounts/platform-store.ts'
import { sql } from '../src/db/sql.ts'
import { type Patch, patchEnv, patchedLine } from './faults/patch.ts'
import {
  type Exit,
  endProcesses,
  hangMs,
  type Parley,
  runParley,
  spawnParley,
  until,
} from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'
import { testSecret } from './harness/worker.ts'
import { spawnDataCentre, telegramEnv } from './platform/data-centre-process.ts'
import { type Ask, askAddress } from './platform/sandbox-fixture.ts'

const password = 'canary correct horse'
/** In the processes that this test starts too, which then say so. */
const mutant: readonly Patch[] = JSON.parse(process.env.TEST_MUTANT ?? '[]')

let directory: string
let service: Service
let tenant: Tenant
let ask: Ask
let env: Readonly<Record<string, string>>
let worker: Parley
/** What verbs have printed. */
const printed: string[] = []
/** Parts of a session string and its key, as different programs write them. */
const secrets: string[] = []

beforeAll(async () => {
  directory = await makeScratch('parley-telegram-')
  service = await openService()
  tenant = await service.tenant()
  const centre = spawnDataCentre({ data_dir: join(directory, 'sandbox') })
  ask = askAddress(await centre.ready())
  env = {
    DATABASE_URL: service.database.url,
    PARLEY_SECRET: testSecret,
    ...telegramEnv(centre.stdout()),
    ...patchEnv(mutant),
  }
  const work = ['work', '--port', '0', '--admin-port', '0', '--data-dir', join(directory, 'worker')]
  worker = spawnParley(work, { ...env, PARLEY_LOG_LEVEL: 'debug' })
  await worker.ready()
})
afterAll(async () => {
  await endProcesses()
  await service.close()
  await rm(directory, { recursive: true, force: true })
})

/** A user of Telegram: the sandbox names it, an account of ours has another id. */
async function newUser(user: string, phone: string, secret?: string): Promise<void> {
  await ask('addAccount', {
    account_id: user,
    name: 'Sales desk',
    phone,
    ...(secret && { password: secret }),
  })
}

async function newAccount(workspace_id = tenant.workspace_id): Promise<string> {
  const wanted = { workspace_id, platform: 'telegram', name: 'Sales' }
  return (await createAccount(service.app, 'system', wanted)).id
}

async function noted(exit: Promise<Exit>): Promise<Exit> {
  const { stdout, stderr } = await exit
  printed.push(stdout, stderr)
  return exit
}

/** Logs in by phone and types these lines. */
function logIn(id: string, phone: string, ...lines: string[]): Promise<Exit> {
  const args = ['account', 'login', id, '--phone', phone, '--json']
  const input = lines.map((line) => `${line}\n`).join('')
  return noted(spawnParley(args, env, undefined, [], input).exit())
}

function rowOf(id: string) {
  return service.app.db.one<{ status: string; status_reason: string | null }>(
    sql`select status, status_reason from accounts where id = ${id}`,
  )
}

async function untilStatus(id: string, status: string): Promise<string | null> {
  await until(`${id} is ${status}`, hangMs, async () => (await rowOf(id)).status === status)
  await service.settle()
  return (await rowOf(id)).status_reason
}

function send(account_id: string, person: number, text: string) {
  return service.post('/messages', {
    key: tenant.key,
    body: { account_id, chat_id: `platform:chat:${person}`, text },
    headers: { 'idempotency-key': randomUUID() },
  })
}

async function texts(account_id: string): Promise<string[]> {
  const rows = await service.app.db.rows<{ text: string }>(
    sql`select text from messages where account_id = ${account_id} order by id`,
  )
  return rows.map(({ text }) => text)
}

describe('an account of Telegram', () => {
  const [user, phone] = ['user_one', '+9996640001']
  let id: string
  let person: number

  test('without a login says which command helps', async () => {
    id = await newAccount()
    expect(await untilStatus(id, 'NEEDS_LOGIN')).toContain(`Run parley account login ${id}.`)
  })

  test('logs in by code and password at its own data centre, with a sentence for each wrong input', async () => {
    await newUser(user, phone, password)
    const { code, stdout, stderr } = await logIn(id, phone, '00000', '12345', 'canary wrong horse', password)
    expect([code, JSON.parse(stdout).id]).toEqual([0, id])
    const told = stderr.split('\n')
    expect(told).toEqual([
      'The platform has sent a code to the app on your other devices.',
      'Code: This code is wrong.',
      expect.stringMatching(/^Code: Two-step password \(hint: .+\): $/),
      'This password is wrong.',
      expect.stringMatching(/^Two-step password/),
      '',
    ])
    await untilStatus(id, 'READY')
  })

  test('must log out before it logs in again', async () => {
    expect(await logIn(id, phone)).toMatchObject({
      code: 1,
      stderr: 'The account is logged in. Log it out first.\n',
    })
  })

  test('hears and sends over the API', async () => {
    const made = (await ask('addPerson', { name: 'Mara Lind', username: 'mara_lind' })) as {
      person_id: number
    }
    person = made.person_id
    await ask('writeMessage', { account_id: user, person_id: person, text: 'canary Hello' })
    await until('it is stored', hangMs, async () => (await texts(id)).length > 0)
    await until('it is live', hangMs, async () => (await send(id, person, 'canary Welcome')).status === 200)
    expect(await texts(id)).toEqual(['canary Hello', 'canary Welcome'])
    const { entries } = (await ask('readJournal', { after: 0 })) as { entries: object[] }
    expect(entries).toMatchObject([{ kind: 'send', account_id: user, text: 'canary Welcome' }])
  })

  test('whose login was revoked asks for another, and continues with it', async () => {
    const error = '401 SESSION_REVOKED'
    await ask('addFault', { on: 'send', fault: 'refuse', account_id: user, error })
    expect((await send(id, person, 'canary never sent')).status).not.toBe(200)
    await untilStatus(id, 'NEEDS_LOGIN')
    // The refused call may be recorded before the session has ended.
    const reason = await until('the session has said why', hangMs, async () => {
      const { status_reason } = await rowOf(id)
      return status_reason?.includes('SESSION_REVOKED') && status_reason
    })
    expect(reason).toContain(`Run parley account login ${id}.`)
    expect(await logIn(id, phone, '12345', password)).toMatchObject({ code: 0 })
    await untilStatus(id, 'READY')
  })

  test.each([
    ['403 USER_DEACTIVATED_BAN', 'Telegram has banned the account.'],
    ['420 FROZEN_METHOD_INVALID', 'Telegram has frozen the account: it can read, and nothing else.'],
  ])('that meets %s is RESTRICTED until it is enabled', async (error, sentence) => {
    await ask('addFault', { on: 'connect', fault: 'refuse', account_id: user, error })
    await setAccountEnabled(service.app, 'system', { id, enabled: false })
    await setAccountEnabled(service.app, 'system', { id, enabled: true })
    const reason = await untilStatus(id, 'RESTRICTED')
    expect(reason).toContain(sentence)
    expect(reason).toContain(`run parley account enable ${id}.`)
    await setAccountEnabled(service.app, 'system', { id, enabled: true })
    await untilStatus(id, 'READY')
  })

  test('logs out: its worker releases it, the key is gone, the history stays', async () => {
    expect(await noted(runParley(['account', 'logout', id, '--json'], env))).toMatchObject({ code: 0 })
    expect(await rowOf(id)).toMatchObject({ status: 'NEEDS_LOGIN' })
    expect(await findSession(service.app, id)).toBeNull()
    expect(await texts(id)).toEqual(['canary Hello', 'canary Welcome'])
    expect(await noted(runParley(['account', 'logout', id], env))).toMatchObject({
      code: 1,
      stderr: 'The account is not logged in.\n',
    })
  })
})

describe('a login', () => {
  test('by a QR code asks for the password as well', async () => {
    const id = await newAccount()
    const phone = '+9996620002'
    await newUser('user_two', phone, password)
    const login = spawnParley(['account', 'login', id], env, undefined, [], `${password}\n`)
    await until('the code is shown', hangMs, () => login.stderr().includes('▀▀▀'))
    await ask('acceptLogin', { phone })
    expect(await noted(login.exit())).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('A worker connects the account.'),
    })
    await untilStatus(id, 'READY')
    const second = await newAccount((await service.tenant('Elsewhere')).workspace_id)
    expect(await logIn(second, phone, '12345', password)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/\nThis user is connected to another account of this instance\./),
    })
  })

  test('runs once at a time, and one that was killed does not keep the next from it', async () => {
    const id = await newAccount()
    const phone = '+9996620004'
    await newUser('user_four', phone)
    const first = spawnParley(['account', 'login', id], env)
    await until('the code is shown', hangMs, () => first.stderr().includes('▀▀▀'))
    expect((await logIn(id, phone, '12345')).stderr).toBe(
      'Another login or logout of this account is in progress.\n',
    )
    first.signal('SIGKILL')
    await first.ended()
    expect(await logIn(id, phone, '12345')).toMatchObject({ code: 0 })
    await untilStatus(id, 'READY')
  })

  test.each([
    ['three wrong codes', '+9996620003', ['1', '2', '3'], 'Login ended after three wrong attempts.'],
    ['a number without an account', '+9996620099', ['12345'], 'This number has no account yet.'],
    ['no input', '+9996620003', [], 'The input ended before everything was typed.'],
  ])('with %s is refused with a sentence', async (what, phone, lines, sentence) => {
    if (what === 'three wrong codes') await newUser('user_three', phone)
    const { code, stderr } = await logIn(await newAccount(), phone, ...lines)
    expect([code, stderr.trim().split('\n').at(-1)]).toEqual([1, expect.stringContaining(sentence)])
  })

  test('that Telegram refuses names what Telegram says', async () => {
    const id = await newAccount()
    await ask('addFault', { on: 'login', fault: 'refuse', error: 'PHONE_NUMBER_BANNED' })
    expect((await logIn(id, '+9996620003')).stderr).toContain('has banned this number')
    await ask('addFault', { on: 'login', fault: 'flood_wait', seconds: 900 })
    expect((await logIn(id, '+9996620003')).stderr).toContain('Wait 900 s.')
  })

  test('says where a code is, and has it sent again by an empty line', async () => {
    const phone = '+9996620006'
    await newUser('user_six', phone)
    await ask('setCodes', { phone, ways: ['email', 'fragment', 'phrase'], timeout_seconds: 0 })
    const id = await newAccount()
    const { code, stderr } = await logIn(id, phone, '', '', 'seven pelicans sleep')
    const said = mutant.reduce((text, { marker }) => text.replace(patchedLine(marker), ''), stderr)
    expect([code, said.split('\n')]).toEqual([
      0,
      [
        "The platform has sent a code to the account's e-mail address.",
        'm***a@example.org',
        'An empty line has it sent at Fragment.',
        'Code: The code is at Fragment, where the number was bought.',
        'https://fragment.example/number/1',
        'An empty line has it sent by SMS.',
        'Code: The platform has sent a phrase by SMS. Type all of it.',
        'Code: ',
      ],
    ])
    await untilStatus(id, 'READY')
  })

  test('takes only numbers in international form', async () => {
    const { code, stderr } = await logIn('acc_x', '0151 123')
    expect([code, stderr]).toEqual([2, expect.stringContaining('international form')])
  })
})

describe('the session of another program', () => {
  const phone = '+9996620005'
  const keyOf = async (id: string): Promise<Buffer> => {
    const blob = Buffer.from((await findSession(service.app, id)) as Uint8Array).toString()
    return Buffer.from((JSON.parse(blob) as { key: string }).key, 'base64')
  }
  let string = ''
  let imported = ''

  test('is imported from standard input, and connects', async () => {
    await newUser('user_five', phone)
    const other = await newAccount()
    expect(await logIn(other, phone, '12345')).toMatchObject({ code: 0 })
    const key = await keyOf(other)
    string = `1${Buffer.concat([Buffer.from([2, 127, 0, 0, 1, 1, 187]), key]).toString('base64url')}`
    for (const form of [
      string,
      ...(['base64', 'base64url', 'hex'] as const).map((each) => key.toString(each)),
    ])
      secrets.push(form.slice(20, 80))
    expect(await noted(runParley(['account', 'logout', other, '--local'], env))).toMatchObject({ code: 0 })

    const id = await newAccount()
    const args = ['account', 'import', id, '--json']
    const { code, stdout, stderr } = await noted(spawnParley(args, env, undefined, [], `${string}\n`).exit())
    expect([code, JSON.parse(stdout).id]).toEqual([0, id])
    expect(stderr).toContain('must never run with it again')
    expect(await keyOf(id)).toEqual(key)
    await untilStatus(id, 'READY')
    imported = id
  })

  test('is refused as an argument, which other processes see, and not repeated', async () => {
    const id = await newAccount()
    for (const args of [[id, string], [id, '--session', string], [string]]) {
      const { code, stdout, stderr } = await noted(runParley(['account', 'import', ...args], env))
      expect(code).not.toBe(0)
      for (const part of [string.slice(0, 20), string.slice(20, 80), string.slice(-20)])
        expect(stdout + stderr).not.toContain(part)
    }
    expect(await findSession(service.app, id)).toBeNull()
  })

  test('that Telegram refuses is refused with a sentence, and a cut string too', async () => {
    const error = '406 AUTH_KEY_DUPLICATED'
    const run = async (id: string, input: string) =>
      (await noted(spawnParley(['account', 'import', id], env, undefined, [], input).exit())) as Exit
    const id = await newAccount()
    // Its worker must not get the answer that is meant for the import.
    await setAccountEnabled(service.app, 'system', { id: imported, enabled: false })
    await until('it is let go', hangMs, async () => {
      const { owner } = await service.app.db.one<{ owner: string | null }>(
        sql`select lease_owner as owner from account_hosts where account_id = ${imported}`,
      )
      return owner === null
    })
    await ask('addRefusal', { on: 'users.getUsers', account_id: 'user_five', error })
    expect(await run(id, `${string}\n`)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Two programs have used this session at once'),
    })
    expect(await run(id, `${string.slice(0, 100)}\n`)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('This is no session string'),
    })
    expect(await run(id, '')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('The input ended before everything was typed.'),
    })
    expect(await findSession(service.app, id)).toBeNull()
  })
})

test('a clock that is wrong is at /metrics while an account connects with it, and not once the account has left', async () => {
  const metrics = async () => (await fetch(`${await worker.admin()}/metrics`)).text()
  const offset = async () => {
    const sample = /^parley_platform_clock_offset_seconds\{platform="telegram"\} (\S+)$/m
    return Number(sample.exec(await metrics())?.[1])
  }
  const { db } = service.app
  const leave = async () => {
    const here = await db.rows<{ id: string }>(sql`select id from accounts where status <> 'DISABLED'`)
    for (const { id } of here) await setAccountEnabled(service.app, 'system', { id, enabled: false })
    const isAway = async () => !(await metrics()).includes('\nparley_accounts{')
    await until('their worker has ended every session', hangMs, isAway)
  }
  // Others that are connected would learn the time as well.
  await leave()
  expect(await offset()).toBe(0)
  const phone = '+9996620007'
  await newUser('user_seven', phone)
  const id = await newAccount()
  await ask('setServerClock', { ahead_seconds: 600 })
  expect(await logIn(id, phone, '12345')).toMatchObject({ code: 0 })
  await untilStatus(id, 'READY')
  expect(Math.abs((await offset()) - 600)).toBeLessThan(10)
  await leave()
  await until('the clock is forgotten', hangMs, async () => (await offset()) === 0)
  await ask('setServerClock', { ahead_seconds: 0 })
})

test('no phone number, password, text or session string is in a log, a figure or what a verb has printed', async () => {
  const metrics = await (await fetch(`${await worker.admin()}/metrics`)).text()
  expect(metrics).toContain('parley_accounts')
  const audit = JSON.stringify(await service.app.db.rows(sql`select * from audit`))
  const everything = [...printed, worker.stdout(), worker.stderr(), ...service.log, metrics, audit].join('\n')
  expect(everything).toContain('account.logged_in')
  expect(everything.match(/canary|99966[24]0/g)).toBeNull()
  expect(secrets).toHaveLength(4)
  // Without the text itself: a failure would print it.
  expect(secrets.filter((secret) => everything.includes(secret))).toEqual([])
})
