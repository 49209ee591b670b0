/** Accounts behind a proxy: login, messages and files pass through it, and nothing goes around it. */
import { createHash, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { changeAccount, createAccount, findProxy, logIn } from '../src/capabilities/accounts/accounts.ts'
import { sql } from '../src/db/sql.ts'
import { loops } from '../src/lists/loops.ts'
import type { Platform } from '../src/platform/port.ts'
import { makeFile } from '../src/platform/sandbox/control-files.ts'
import { writeMessage } from '../src/platform/sandbox/person-acts.ts'
import type { Running } from '../src/worker/run-loops.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { type Certificate, Certificates, hasOpenssl } from './harness/certificates.ts'
import { runVerb } from './harness/operator.ts'
import { hangMs, until } from './harness/process.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'
import { testSecret } from './harness/worker.ts'
import { hashOf } from './platform/conformance-downloads.ts'
import { openStage, type Stage, telegramAt } from './platform/data-centre-fixture.ts'
import type { ProxyKind } from './platform/loopback-proxy.ts'
import { openProxy } from './platform/proxies.ts'

const credentials = { username: 'canary name', password: 'canary:s3cret/@' }
const userinfo = `${encodeURIComponent(credentials.username)}:${encodeURIComponent(credentials.password)}@`

let service: Service
let tenant: Tenant
let stage: Stage
let platform: Platform
let directory: string
let worker: Running
let portsBefore = 0

/** From where the data centre was dialled in this test. */
const dialled = () => stage.centre.clientPorts().slice(portsBefore)

beforeAll(async () => {
  service = await openService({ env: { PARLEY_PROXY_ALLOW: '127.0.0.1', PARLEY_LOG_LEVEL: 'debug' } })
  tenant = await service.tenant()
  directory = await mkdtemp(join(tmpdir(), 'parley-proxies-'))
  stage = await openStage()
  platform = telegramAt(stage.centre.port)
})
afterAll(async () => {
  await stage.close()
  await service.close()
  await rm(directory, { recursive: true, force: true })
})
beforeEach(async () => {
  portsBefore = stage.centre.clientPorts().length
  const platforms = new Map([['telegram', platform]])
  worker = runWorker(service.app, await assembleWorker(service.app, { platforms, directory, loops }))
})
afterEach(async () => {
  await service.app.db.run(sql`update accounts set status = 'DISABLED'`)
  await worker.stop()
})

let phones = 9_996_620_800

async function newAccount(proxy: string | null) {
  const phone = `+${phones++}`
  const user = `user_${phones}`
  stage.world.addAccount({ account_id: user, name: 'Sales desk', phone })
  const { workspace_id } = tenant
  const wanted = { workspace_id, platform: 'telegram', name: 'Sales', proxy }
  const { id } = await createAccount(service.app, 'system', wanted)
  return { id, user, phone }
}

function enter(id: string, phone: string) {
  const dialogue = { show() {}, ask: () => Promise.resolve('12345') }
  return logIn(service.app, 'system', { id, phone, platform, dialogue })
}

function rowOf(id: string) {
  return service.app.db.one<{ status: string; status_reason: string | null; live: boolean }>(sql`
    select a.status, a.status_reason, coalesce(h.observed_at is not null, false) as live
    from accounts a left join account_hosts h on h.account_id = a.id where a.id = ${id}`)
}

function untilLive(id: string) {
  return until(`${id} is live`, hangMs, async () => {
    const { status, live } = await rowOf(id)
    return status === 'READY' && live
  })
}

function untilReason(id: string, words: string) {
  return until(`the status of ${id} says ${words}`, hangMs, async () => {
    const { status_reason } = await rowOf(id)
    return status_reason?.includes(words) && status_reason
  })
}

async function send(account_id: string, person: number, text: string) {
  await service.settle()
  const body = { account_id, chat_id: `platform:chat:${person}`, text }
  return service.post('/messages', { key: tenant.key, body, headers: { 'idempotency-key': randomUUID() } })
}

/** A person sends a file, and a caller gets it. */
async function expectFile(id: string, { user, person_id }: { user: string; person_id: number }) {
  const file = makeFile({ size: 300_000, seed: 7 })
  const message_id = writeMessage(stage.world, { account_id: user, person_id, text: '', file })
  const path = `/chats/platform:chat:${person_id}/messages/${message_id}/attachments/0?account_id=${id}`
  const bytes = await until('the file is there', hangMs, async () => {
    const headers = { authorization: `Bearer ${tenant.key}` }
    const answer = await fetch(`${service.url}/api/v1${path}`, { headers })
    const body = Buffer.from(await answer.arrayBuffer())
    return answer.status === 200 && body
  })
  expect(createHash('sha256').update(bytes).digest('hex')).toBe(hashOf(300_000, 7))
}

const certificates = new Certificates()
const builtIn = getCACertificates()
afterAll(() => {
  setDefaultCACertificates(builtIn)
  certificates.remove()
})

/** Of an HTTPS proxy that this process trusts. */
function trusted(): Certificate {
  const own = certificates.make('127.0.0.1', { days: 30 })
  setDefaultCACertificates([...builtIn, own.cert.toString()])
  return own
}

const kinds: [ProxyKind, typeof credentials | undefined][] = [
  ['socks5', undefined],
  ['socks5', credentials],
  ['http', undefined],
  ['http', credentials],
]
if (hasOpenssl) kinds.push(['https', credentials])

describe.each(kinds)('a proxy by %s with %j', (kind, wanted) => {
  test('carries login, updates, messages and files; every connection of the data centre comes from it', async () => {
    const tls = kind === 'https' ? { certificate: trusted() } : {}
    const proxy = await openProxy(kind, { credentials: wanted, ...tls })
    const { id, user, phone } = await newAccount(`${kind}://${wanted ? userinfo : ''}127.0.0.1:${proxy.port}`)
    await enter(id, phone)
    await untilLive(id)
    const { person_id } = stage.world.addPerson({ name: 'Mara Lind' })
    writeMessage(stage.world, { account_id: user, person_id, text: 'Hello' })
    await until('it is stored', hangMs, () =>
      service.app.db.maybe(sql`select 1 from messages where account_id = ${id} and text = 'Hello'`),
    )
    expect((await send(id, person_id, 'Welcome')).status).toBe(200)
    const before = proxy.asked.length
    await expectFile(id, { user, person_id })
    expect(proxy.asked.length).toBe(before + 1)
    expect(dialled().length).toBeGreaterThan(1)
    expect(dialled().filter((port) => !proxy.ports.has(port))).toEqual([])
    expect(new Set(proxy.asked)).toEqual(new Set([`127.0.0.1:${stage.centre.port}`]))
  })
})

describe('a proxy', () => {
  test('that is down: nothing connects, the status says so, and the account comes back with it', async () => {
    const proxy = await openProxy('socks5')
    const { id, phone } = await newAccount(`socks5://127.0.0.1:${proxy.port}`)
    await enter(id, phone)
    await untilLive(id)
    const before = dialled().length
    await proxy.close()
    const reason = await untilReason(id, 'cannot be reached')
    expect(reason).toBe(`The proxy socks5://127.0.0.1:${proxy.port} cannot be reached.`)
    expect([(await rowOf(id)).live, dialled().length]).toEqual([false, before])
    const other = await openProxy('http')
    await changeAccount(service.app, 'system', { id, proxy: `http://127.0.0.1:${other.port}` })
    await untilLive(id)
    // The account is live first; the sentence goes a moment later.
    await until('the status says nothing', hangMs, async () => (await rowOf(id)).status_reason === null)
    expect(other.asked.length).toBe(1)
  })

  test.each(['socks5', 'http'] as const)(
    'by %s that refuses the credentials: the status says so',
    async (kind) => {
      const proxy = await openProxy(kind, { credentials })
      const { id, phone } = await newAccount(`${kind}://127.0.0.1:${proxy.port}`)
      const refusal = await enter(id, phone).catch((error: Error) => error)
      expect(refusal).toMatchObject({
        code: 'provider_unavailable',
        message: `The proxy ${kind}://127.0.0.1:${proxy.port} refused the user name and password, or requires them.`,
      })
      const right = `${kind}://${userinfo}127.0.0.1:${proxy.port}`
      await changeAccount(service.app, 'system', { id, proxy: right })
      await enter(id, phone)
      await untilLive(id)
      await changeAccount(service.app, 'system', { id, proxy: right.replace('canary%20name', 'other') })
      await untilReason(id, 'refused the user name and password')
      expect([dialled().length, proxy.asked.length]).toEqual([proxy.ports.size, proxy.ports.size])
      const said = JSON.stringify([service.log, await service.app.metrics.metrics(), refusal])
      const rows = await service.app.db.rows(sql`select to_jsonb(a)::text as row from audit a`)
      for (const form of ['s3cret', 'canary', userinfo])
        expect(said + JSON.stringify(rows)).not.toContain(form)
    },
  )

  test('at a private address that is no longer allowed is not dialled', async () => {
    const proxy = await openProxy('socks5')
    const { id, phone } = await newAccount(`socks5://127.0.0.1:${proxy.port}`)
    await enter(id, phone)
    await untilLive(id)
    const clients = proxy.clients
    ;(service.app.config.proxy_allow as Set<string>).delete('127.0.0.1')
    try {
      await changeAccount(service.app, 'system', { id, name: 'Sales again' })
      await service.app.db.run(sql`
        update account_hosts set lease_epoch = lease_epoch + 1, lease_until = null where account_id = ${id}`)
      await untilReason(id, 'is at a private address')
      expect(proxy.clients).toBe(clients)
      await expect(changeAccount(service.app, 'system', { id, proxy: 'http://127.0.0.1:1' })).rejects.toThrow(
        'unless PARLEY_PROXY_ALLOW',
      )
    } finally {
      ;(service.app.config.proxy_allow as Set<string>).add('127.0.0.1')
    }
  })

  test.runIf(hasOpenssl)(
    'whose certificate is not trusted gets no byte of a request, whatever the environment says',
    async () => {
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
      onTestFinished(() => {
        Reflect.deleteProperty(process.env, 'NODE_TLS_REJECT_UNAUTHORIZED')
      })
      const certificate = certificates.make('other.example', { days: 30 })
      setDefaultCACertificates([...builtIn, certificate.cert.toString()])
      const proxy = await openProxy('https', { credentials, certificate })
      const { id, phone } = await newAccount(`https://${userinfo}127.0.0.1:${proxy.port}`)
      await expect(enter(id, phone)).rejects.toThrow(/certificate that is not trusted/)
      expect([proxy.asked, dialled()]).toEqual([[], []])
    },
  )

  test('stored under another secret is not gone around', async () => {
    const proxy = await openProxy('socks5')
    const { id, phone } = await newAccount(`socks5://127.0.0.1:${proxy.port}`)
    await enter(id, phone)
    await untilLive(id)
    const before = dialled().length
    await service.app.db.run(sql`update accounts set proxy_sealed = ${Buffer.alloc(64)} where id = ${id}`)
    await service.app.db.run(sql`
      update account_hosts set lease_epoch = lease_epoch + 1, lease_until = null where account_id = ${id}`)
    await untilReason(id, 'stored under another PARLEY_SECRET')
    expect(dialled().length).toBe(before)
  })
})

describe('parley account set', () => {
  function set(id: string, args: readonly string[], input = '') {
    const env = {
      DATABASE_URL: service.database.url,
      PARLEY_SECRET: testSecret,
      PARLEY_PROXY_ALLOW: '127.0.0.1',
    }
    return runVerb(['account', 'set', id, '--json', ...args], env, input)
  }

  test('sets a proxy, reads one with credentials from a line, and removes it', async () => {
    const { id } = await newAccount(null)
    expect(await set(id, ['--proxy', 'http://127.0.0.1:3128', '--cold-per-day', '7'])).toMatchObject({
      code: 0,
    })
    expect(await findProxy(service.app, id)).toMatchObject({ scheme: 'http', port: 3128, credentials: null })
    const typed = await set(id, ['--proxy', '-'], `socks5://${userinfo}127.0.0.1:1080\n`)
    expect(JSON.parse(typed.stdout)).toMatchObject({ id, proxy: 'socks5://127.0.0.1:1080', cold_per_day: 7 })
    expect(typed.stdout + typed.stderr).not.toContain('canary')
    expect(await findProxy(service.app, id)).toMatchObject({ scheme: 'socks5', credentials })
    expect(await set(id, ['--proxy', 'none'])).toMatchObject({ code: 0 })
    expect(await findProxy(service.app, id)).toBeNull()
  })

  test.each([
    [[], '', 'give --proxy or --cold-per-day'],
    [['--proxy', 'proxy.example.com:1080'], '', 'must begin with socks5://'],
    [['--proxy', `socks5://${userinfo}127.0.0.1:1080`], '', 'other processes see arguments'],
    [['--proxy', '-'], 'tg://proxy?server=a&port=1&secret=ee\n', 'MTProxy links are not supported'],
  ])('ends with 2 for %j %j', async (args, input, sentence) => {
    const { id } = await newAccount(null)
    const { code, stderr } = await set(id, args, input)
    expect([code, stderr]).toEqual([2, expect.stringContaining(sentence)])
    expect(await findProxy(service.app, id)).toBeNull()
  })
})
