/** `parley doctor`: a healthy instance has no warning, and every fault that it knows, made on purpose, is named. */
import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, readdir, rm, statfs, writeFile } from 'node:fs/promises'
import { createServer, request as httpRequest, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer as createHandshakes, type Server as TlsServer } from 'node:tls'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { createAccount } from '../src/capabilities/accounts/accounts.ts'
import { setDispatch } from '../src/capabilities/gates/gates.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { openDatabase } from '../src/db/pool.ts'
import { countConnections, processName } from '../src/db/server-state.ts'
import { sql } from '../src/db/sql.ts'
import { sharedWake } from '../src/events/wake.ts'
import { probeHeaders } from '../src/http/doctor-probe.ts'
import { noteDrives, noteHeartbeat, noteOwing } from '../src/ledger/workers.ts'
import { newId } from '../src/lib/ids.ts'
import { Secrets } from '../src/lib/secrets.ts'
import { patchEnv } from './faults/patch.ts'
import { type Certificate, Certificates, hasOpenssl } from './harness/certificates.ts'
import { administer } from './harness/cluster.ts'
import { copyDatabase, dropDatabase } from './harness/database.ts'
import { runVerb } from './harness/operator.ts'
import { endProcesses, freePort, hangMs, runParley, spawnParley, until } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'
import { testSecret } from './harness/worker.ts'

interface Line {
  readonly check: string
  readonly level: string
  readonly found: string
  readonly todo: string | null
}

type Env = Readonly<Record<string, string>>

let home: string
let service: Service
let tenant: Tenant
beforeAll(async () => {
  home = await makeScratch('parley-doctor-')
  service = await openService()
  tenant = await service.tenant()
})
afterAll(async () => {
  await endProcesses()
  await service.close()
  await rm(home, { recursive: true, force: true })
})

const nowhere = join('/tmp', 'no', 'parley', 'here')

/** What doctor says about the service's database, or about what `env` names instead. */
async function examine(env: Env = {}, data_dir = nowhere): Promise<Line[]> {
  const own = { DATABASE_URL: service.database.url, PARLEY_SECRET: testSecret }
  const { code, stdout, stderr } = await runVerb(['doctor', '--json', '--data-dir', data_dir], {
    ...own,
    ...env,
  })
  const { ok, lines } = JSON.parse(stdout) as { ok: boolean; lines: Line[] }
  const faults = lines.filter(({ level }) => level === 'fault').length
  expect([ok, code]).toEqual(faults === 0 ? [true, 0] : [false, 1])
  expect(stderr).toMatch(faults === 0 ? /^$/ : /^Found \d+ faults?\.\n$/)
  for (const { level, todo } of lines) expect(todo === null).toBe(level === 'ok')
  return lines
}

const problems = (lines: readonly Line[], check: string) =>
  lines
    .filter((line) => line.check === check && line.level !== 'ok')
    .map(({ level, found }) => `${level}: ${found}`)

/** Expects one problem of this check, and none of it without the fault. */
async function expectProblem(check: string, sentence: RegExp, env: Env = {}): Promise<void> {
  const found = problems(await examine(env), check)
  expect(found.filter((each) => sentence.test(each))).toHaveLength(1)
}

/** A worker that has just had a heartbeat. */
async function beat(more: Partial<Parameters<typeof noteHeartbeat>[1]> = {}): Promise<string> {
  const worker_id = newId()
  await noteHeartbeat(service.app.db, { worker_id, platforms: ['sandbox'], ...more })
  return worker_id
}

const forgetWorkers = () => service.app.db.pool.query('delete from workers')

describe('parley doctor on a healthy instance', () => {
  test('has no warning, and changes nothing', async () => {
    const port = await freePort()
    const data_dir = join(home, 'healthy')
    const env = { PARLEY_BASE_URL: `http://127.0.0.1:${port}` }
    const parley = spawnParley(['start', '--port', port, '--data-dir', data_dir], env)
    await parley.ready()
    const before = (await readdir(data_dir)).sort()
    const lines = await examine({ DATABASE_URL: '', PARLEY_SECRET: '', ...env }, data_dir)
    const asProcess = await runParley(['doctor', '--data-dir', data_dir], env)
    expect((await readdir(data_dir)).sort()).toEqual(before)
    parley.signal('SIGTERM')
    await parley.exit()
    // Tests keep their databases in memory where they can, which doctor rightly warns about.
    const isLasting = ![0x01021994, 0x794c7630].includes((await statfs(home)).type)
    const expected = isLasting ? [] : [expect.stringContaining('a restart loses the journals')]
    expect(lines.filter(({ level }) => level !== 'ok').map(({ found }) => found)).toEqual(expected)
    expect([asProcess.code, asProcess.stderr]).toEqual([0, ''])
    expect(asProcess.stdout).toMatch(/^ok {7}configuration {6}Every variable is known and valid\.\n/)
    expect(asProcess.stdout).toContain(`http://127.0.0.1:${port} leads here.`)
  })

  test('exits with 1 and creates nothing where there is no Parley', async () => {
    const missing = join(home, 'missing')
    const lines = await examine({ DATABASE_URL: '', PARLEY_SECRET: '' }, missing)
    expect(problems(lines, 'data directory')).toEqual([`fault: There is no Parley in ${missing}.`])
    expect(existsSync(missing)).toBe(false)
  })
})

describe('parley doctor names a fault of', () => {
  test('the configuration', async () => {
    const lines = await examine({ PARLEY_NONSENSE: '1', PARLEY_POOL_SIZE: 'many' })
    expect(problems(lines, 'configuration')).toEqual([
      expect.stringMatching(/^fault: PARLEY_NONSENSE is not a variable/),
      expect.stringMatching(/^fault: PARLEY_POOL_SIZE must be/),
    ])
  })

  test('a database that does not answer', async () => {
    const url = 'postgres://parley:secret-4711@127.0.0.1:9/parley'
    const lines = await examine({ DATABASE_URL: url })
    expect(problems(lines, 'database')).toEqual([expect.stringMatching(/^fault: .*nothing listens/)])
    expect(JSON.stringify(lines)).not.toContain('secret-4711')
  })

  test('an encoding, and missing migrations', async () => {
    const name = `test_ascii_${newId().replaceAll('-', '')}`
    await administer(
      inject('cluster'),
      `create database ${name} encoding 'SQL_ASCII' template template0 locale 'C'`,
    )
    try {
      const url = new URL(service.database.url.replace('localhost', 'placeholder'))
      url.pathname = `/${name}`
      const lines = await examine({ DATABASE_URL: url.href.replace('placeholder', 'localhost') })
      expect(problems(lines, 'database encoding')).toEqual([expect.stringMatching(/^fault: .*SQL_ASCII/)])
      expect(problems(lines, 'migrations')).toEqual([expect.stringMatching(/^fault: .*lacks \d+ migrations/)])
    } finally {
      await dropDatabase(name)
    }
  })

  test('rights, durable settings and connections', async () => {
    const other = await copyDatabase()
    const name = new URL(other.url.replace('localhost', 'placeholder')).pathname.slice(1)
    await administer(
      inject('cluster'),
      `alter database ${name} set synchronous_commit = off`,
      `alter database ${name} connection limit 6`,
    )
    const client = new pg.Client(other.url)
    await client.connect()
    try {
      await client.query('revoke delete on accounts, chats from current_user')
      const lines = await examine({ DATABASE_URL: other.url })
      expect(problems(lines, 'database rights')).toEqual([
        'fault: The role cannot read and write 2 tables: accounts, chats.',
      ])
      expect(problems(lines, 'durable settings')).toEqual([
        expect.stringContaining('synchronous_commit = off'),
      ])
      expect(problems(lines, 'connections')).toEqual([
        'warning: PARLEY_POOL_SIZE is 10, and the server allows this role 6 connections.',
      ])
      const few = await examine({ DATABASE_URL: other.url, PARLEY_POOL_SIZE: '5' })
      expect(problems(few, 'connections')).toEqual([
        expect.stringMatching(/^warning: Only [0-4] of 6 are left/),
      ])
    } finally {
      await client.end()
      await other.drop()
    }
  })

  test('connections that all running processes may open together', async () => {
    const other = await copyDatabase()
    const name = new URL(other.url.replace('localhost', 'placeholder')).pathname.slice(1)
    await administer(inject('cluster'), `alter database ${name} connection limit 30`)
    const ask = async (pool_size: number) => {
      const lines = await examine({ DATABASE_URL: other.url, PARLEY_POOL_SIZE: String(pool_size) })
      return lines.find(({ check }) => check === 'connections')
    }
    const db = openDatabase({ connectionString: other.url }, { pool_size: 2 })
    const running = [
      sharedWake(db, { name: processName }),
      sharedWake(db, { name: processName }),
      sharedWake(db),
    ]
    const strangers = Array.from({ length: 3 }, () => new pg.Client(other.url))
    try {
      await until('two are named', hangMs, async () => (await countConnections(db)).processes === 2)
      expect(await ask(12)).toMatchObject({
        level: 'ok',
        found: expect.stringContaining('2 running processes with a PARLEY_POOL_SIZE of 12 may open 30'),
      })
      for (const each of strangers) await each.connect()
      expect(await ask(12)).toMatchObject({
        level: 'warning',
        found: expect.stringMatching(
          / may open 30 .*, and 27 of 30 can be theirs\. This role has \d+ open\./,
        ),
        todo: expect.stringContaining('raise max_connections'),
      })
      expect(await ask(10)).toMatchObject({ level: 'ok' })
    } finally {
      for (const each of [...running.map((wake) => wake.close()), ...strangers.map((one) => one.end())])
        await each
      await db.close()
      await other.drop()
    }
  })

  test('an old server, a pooler, a slow network, another clock, a slow and a full disk', async () => {
    const patches = patchEnv([
      { marker: 'limit: oldest postgresql', replace: 'export const serverVersionMin = 99' },
      { marker: 'limit: two connections', replace: 'const others = await readBackend(one)' },
      { marker: 'limit: round trip', replace: 'const tripMsMax = -1' },
      { marker: 'limit: clock difference', replace: 'const clockMsMax = -1' },
      { marker: 'limit: slow disk', replace: 'const fsyncMsMax = -1' },
      { marker: 'limit: short disk', replace: 'export const diskShortBytes = 1e18' },
    ])
    const { code, stdout } = await runParley(['doctor', '--json', '--data-dir', home], {
      DATABASE_URL: service.database.url,
      PARLEY_SECRET: testSecret,
      ...patches,
    })
    const { lines } = JSON.parse(stdout) as { lines: Line[] }
    expect(code).toBe(1)
    expect(problems(lines, 'database version')).toEqual([expect.stringMatching(/^fault: .*too old/)])
    expect(problems(lines, 'pooling')).toEqual([expect.stringMatching(/^fault: .*share one server process/)])
    expect(problems(lines, 'round trip')).toEqual([expect.stringMatching(/^warning: .* ms/)])
    expect(problems(lines, 'clock')).toEqual([expect.stringMatching(/^warning: .*clock is/)])
    const directory = problems(lines, 'data directory')
    expect(directory).toContainEqual(expect.stringMatching(/^warning: .* MiB left/))
    expect(directory).toContainEqual(expect.stringMatching(/^warning: Writing to .* takes/))
  })

  test('a data directory that is not writable, and one in memory', async () => {
    const unwritable = problems(await examine({}, '/proc'), 'data directory')
    expect(unwritable).toContainEqual(expect.stringMatching(/^fault: .* written|^fault: .* cannot write/))
    if (!existsSync('/dev/shm')) return
    const found = problems(await examine({}, '/dev/shm'), 'data directory')
    expect(found).toContainEqual(expect.stringMatching(/^warning: .*in memory/))
  })

  test('a data directory that a worker would refuse', async () => {
    const open_dir = await makeScratch('parley-open-')
    await chmod(open_dir, 0o777)
    const found = problems(await examine({}, open_dir), 'data directory')
    expect(found).toContainEqual(expect.stringMatching(/^fault: Every user of this machine can write to/))
    await rm(open_dir, { recursive: true })
  })

  test('migrations that a newer Parley made', async () => {
    const { db } = service.app
    await db.pool.query(
      `insert into schema_migrations (version, name, checksum) values (9999, '9999_later.sql', '')`,
    )
    await expectProblem('migrations', /^fault: The database is newer than this Parley/)
    await db.pool.query('delete from schema_migrations where version = 9999')
  })

  test('the secret, and of an audit log that did not verify', async () => {
    await expectProblem('secret', /^fault: The audit log was begun under another secret/, {
      PARLEY_SECRET: 'another secret for tests that is long enough',
    })
    const verdict = JSON.stringify({ ok: false, rows: 1, problem: 'row 2 is missing', at: new Date() })
    await service.app.db.pool.query(`insert into settings (name, value) values ('audit_verdict', $1)`, [
      verdict,
    ])
    await expectProblem('secret', /^fault: .*row 2 is missing/)
    await service.app.db.pool.query(`delete from settings where name = 'audit_verdict'`)
  })

  test('workers', async () => {
    await forgetWorkers()
    await expectProblem('workers', /^fault: No worker runs/)
    const silent = await beat()
    await service.app.db.pool.query(`update workers set beat_at = beat_at - interval '1 hour'`)
    await expectProblem('workers', new RegExp(`^warning: The worker ${silent} ended without signing off`))
    const failing = await beat({ failing: ['sweep'], disk_free: 1024 ** 2 })
    const without = await beat()
    await noteDrives(service.app.db, without, false)
    await service.app.db.run(sql`update workers set version = '0.0.1' where id = ${without}`)
    expect(problems(await examine(), 'workers').sort()).toEqual([
      `fault: The worker ${failing} fails in sweep.`,
      `fault: The worker ${without} cannot write its journal, so it drives no account.`,
      `warning: The disk of the worker ${failing} has 1 MiB left.`,
      expect.stringMatching(/^warning: Workers of other versions than this one, .* run: 0\.0\.1\.$/),
    ])
    await forgetWorkers()
  })

  test('accounts', async () => {
    const { workspace_id } = tenant
    await beat()
    const ids = {
      login: await service.account(workspace_id, 'NEEDS_LOGIN'),
      restricted: await service.account(workspace_id, 'RESTRICTED'),
      cold: await service.account(workspace_id, 'READY'),
      held: await service.account(workspace_id, 'READY'),
    }
    const telegram = await createAccount(service.app, 'system', {
      workspace_id,
      platform: 'telegram',
      name: 'Canary',
    })
    await service.app.db.run(sql`
      insert into account_hosts (account_id, workspace_id, cold_stopped_at) values (${ids.cold}, ${workspace_id}, now())
      on conflict (account_id) do update set cold_stopped_at = now()`)
    await service.app.db.run(sql`
      insert into account_hosts (account_id, workspace_id, campaigns_held_at, campaigns_held_by)
      values (${ids.held}, ${workspace_id}, now(), 'NEW_LIMIT')`)
    const lines = await examine()
    expect(problems(lines, 'accounts')).toEqual([
      `warning: Accounts need a login: ${ids.login}.`,
      `warning: The platform or Parley restricts accounts: ${ids.restricted}.`,
      `fault: No worker can drive accounts: ${telegram.id}.`,
      `warning: The platform takes no first messages from accounts: ${ids.cold}.`,
      `warning: Campaign messages of accounts wait, because sends kept ending with an unknown error: ${ids.held}.`,
    ])
    expect(JSON.stringify(lines)).not.toContain('Canary')
    await forgetWorkers()
  })

  test('dispatch, and names the worker that has to replay its journals', async () => {
    await setDispatch(service.app, 'system', false, 'Maintenance.')
    const owing = newId()
    await noteOwing(service.app.db, owing, true)
    const found = problems(await examine(), 'dispatch')
    expect(found).toEqual([
      expect.stringMatching(/^warning: Sending is off since \S+: Maintenance\.$/),
      expect.stringContaining(`fault: Nothing is sent before the worker ${owing} has replayed its journals`),
    ])
    await setDispatch(service.app, 'system', true)
    await forgetWorkers()
  })

  test('webhooks', async () => {
    const url = 'https://example.com/hook'
    const { body } = await service.post('/webhooks', { key: tenant.key, body: { url } })
    const { id } = body.webhook as { id: string }
    await service.app.db.run(sql`update webhooks set active = false, disabled_at = now() where id = ${id}`)
    await expectProblem(
      'webhooks',
      new RegExp(`^warning: Webhooks were disabled after too many failures: ${id}`),
    )
  })

  test('keys from before the role of their user counted', async () => {
    const { workspace_id } = tenant
    const email = 'narrowed@acme.example'
    const user = await createUser(service.app, 'system', { email, workspace_id, role: 'member' })
    const wanted = { workspace_id, user_id: user.id }
    const sender = await service.key({ ...wanted, scopes: ['read', 'send'] })
    const reader = await service.key({ ...wanted, scopes: ['read'] })
    const issued = await service.key({ ...wanted, scopes: ['write'] })
    const revoked = await service.key({ ...wanted, scopes: ['write'] })
    const older = [sender, reader, revoked].map(({ id }) => id)
    await service.app.db.run(sql`update keys set issued_by = null where id = any(${older}::uuid[])`)
    await service.app.db.run(sql`update keys set revoked_at = now() where id = ${revoked.id}`)
    const lost = 'create_campaign, preview_campaign, create_broadcast, get_broadcast'
    expect(problems(await examine(), 'keys')).toEqual([
      `warning: The key ${sender.prefix}… (${sender.id}, never used) can no longer do what the role of its user does not allow: ${lost}.`,
    ])
    await service.app.db.run(
      sql`update keys set revoked_at = now() where id = any(${[sender.id, issued.id]}::uuid[])`,
    )
    expect(problems(await examine(), 'keys')).toEqual([])
  })

  test('Redis and platforms', async () => {
    const { workspace_id } = tenant
    const proxy = 'socks5://canary:pass-4711@127.0.0.1:9'
    const env = {
      REDIS_URL: 'redis://127.0.0.1:9',
      PARLEY_PROXY_ALLOW: '127.0.0.1',
      PARLEY_SANDBOX_URL: 'http://127.0.0.1:9',
      PARLEY_TELEGRAM_API_ID: '1',
      PARLEY_TELEGRAM_API_HASH: '0'.repeat(32),
      PARLEY_TELEGRAM_DC: '127.0.0.1:9,/nowhere',
    }
    const allowed = { ...service.app, config: { ...service.app.config, proxy_allow: new Set(['127.0.0.1']) } }
    await createAccount(allowed, 'system', { workspace_id, platform: 'telegram', name: 'Proxied', proxy })
    const lines = await examine(env)
    expect(problems(lines, 'redis')).toEqual([
      expect.stringMatching(/^fault: Redis does not answer \(ECONNREFUSED\)/),
    ])
    expect(problems(lines, 'platforms')).toEqual([
      expect.stringMatching(/^fault: The sandbox of PARLEY_SANDBOX_URL does not answer/),
      expect.stringMatching(/^fault: Telegram's data centre at 127\.0\.0\.1:9 accepts no connection/),
      'fault: The proxy socks5://127.0.0.1:9 cannot be reached.',
    ])
    expect(JSON.stringify(lines)).not.toContain('pass-4711')
    const half = await examine({ PARLEY_TELEGRAM_API_ID: '1' })
    expect(problems(half, 'platforms')).toEqual([expect.stringMatching(/are needed together/)])
    const other = await examine({ ...env, PARLEY_SECRET: 'another secret for tests that is long enough' })
    expect(problems(other, 'platforms')).toContainEqual(expect.stringMatching(/stored under another secret/))
  })
})

describe.skipIf(!hasOpenssl)('parley doctor and the certificates of PARLEY_BASE_URL and rediss://', () => {
  const certificates = new Certificates()
  const servers: TlsServer[] = []
  afterAll(() => {
    for (const server of servers) server.close()
    certificates.remove()
  })

  /** Both lines about a server that has this certificate. */
  async function examineServer(certificate: Certificate, trusted?: Certificate) {
    const server = createHandshakes(certificate)
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const at = `127.0.0.1:${(server.address() as AddressInfo).port}`
    const authority = join(home, 'authority.crt')
    if (trusted) await writeFile(authority, trusted.cert)
    const { stdout } = await runParley(['doctor', '--json', '--data-dir', nowhere], {
      DATABASE_URL: service.database.url,
      PARLEY_SECRET: testSecret,
      PARLEY_BASE_URL: `https://${at}`,
      REDIS_URL: `rediss://${at}`,
      ...(trusted && { NODE_EXTRA_CA_CERTS: authority }),
    })
    const { lines } = JSON.parse(stdout) as { lines: Line[] }
    return ['public address', 'redis'].map((name) => {
      const line = lines.find(({ check }) => check === name)
      return `${line?.level}: ${line?.found} ${line?.todo}`
    })
  }

  test('names one that has expired', async () => {
    const authority = certificates.make('authority.example', { days: 1 })
    const expired = certificates.make('127.0.0.1', { by: 'authority.example', days: 0 })
    await until(
      'it has expired',
      hangMs,
      () => new Date(new X509Certificate(expired.cert).validTo) < new Date(),
    )
    const [address, redis] = await examineServer(expired, authority)
    expect(address).toMatch(
      /^fault: .* does not lead here: the server's certificate has expired\. Renew it in the proxy in front\.$/,
    )
    expect(redis).toMatch(/^fault: .*\(the server's certificate has expired\).*\. Renew it on the server\.$/)
  })

  test('names one that is for another host', async () => {
    const authority = certificates.make('other-authority.example', { days: 1 })
    const misnamed = certificates.make('other.example', { by: 'other-authority.example', days: 1 })
    const [address, redis] = await examineServer(misnamed, authority)
    expect(address).toMatch(/is for another host name\. Use the name that it is for in PARLEY_BASE_URL, or /)
    expect(redis).toMatch(/is for another host name\).* Use the name that it is for in REDIS_URL, or /)
  })

  test('names one that is self-signed, and one that no known authority has signed', async () => {
    const [address, redis] = await examineServer(certificates.make('127.0.0.1', { days: 1 }))
    expect(address).toMatch(/is self-signed, or its authority is\. If that is intended, every browser /)
    expect(redis).toMatch(
      /is self-signed, or its authority is\).* name that certificate with NODE_EXTRA_CA_CERTS=/,
    )
    certificates.make('unknown.example', { days: 1 })
    const unknown = certificates.make('127.0.0.1', { by: 'unknown.example', days: 1 })
    for (const line of await examineServer(unknown)) {
      expect(line).toMatch(/cannot be verified.* Let the server send the certificates up to its authority; /)
    }
  })
})

describe('parley doctor and PARLEY_BASE_URL', () => {
  const servers: Server[] = []
  afterAll(() => {
    for (const server of servers) server.close()
  })

  /** Forwards to a service, with the headers that a proxy adds. */
  const forwardTo =
    (url: string, headers: Env): RequestListener =>
    (incoming, response) => {
      const all = { headers: { ...incoming.headers, ...headers } }
      const forwarded = httpRequest(`${url}${incoming.url}`, all, (answer) => {
        response.writeHead(answer.statusCode ?? 502)
        answer.pipe(response)
      })
      forwarded.end()
    }

  async function listen(server: Server): Promise<string> {
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  test('names an address where nothing answers, and one of another service', async () => {
    await expectProblem('public address', /^fault: .* does not lead here: ECONNREFUSED/, {
      PARLEY_BASE_URL: `http://127.0.0.1:${await freePort()}`,
    })
    const other = await listen(
      createServer((_, response) => void response.end('{"status":"ok","proof":"00"}')),
    )
    await expectProblem('public address', /^fault: .* leads to another service/, { PARLEY_BASE_URL: other })
    const page = await listen(createServer((_, response) => void response.writeHead(404).end('<html>')))
    await expectProblem('public address', /^fault: .*status 404/, { PARLEY_BASE_URL: page })
  })

  test('names a proxy that is not trusted, and is content with one that is', async () => {
    const appended = { 'x-forwarded-for': '203.0.113.9' }
    const untrusted = await listen(createServer(forwardTo(service.url, appended)))
    const lines = await examine({ PARLEY_BASE_URL: untrusted })
    expect(problems(lines, 'public address')).toEqual([])
    expect(problems(lines, 'proxy')).toEqual([
      expect.stringMatching(/^warning: The proxy at 127\.0\.0\.1 is not in PARLEY_TRUSTED_PROXIES/),
    ])
    const trusting = await openService({ env: { PARLEY_TRUSTED_PROXIES: '127.0.0.1' } })
    const url = await listen(createServer(forwardTo(trusting.url, appended)))
    const content = await examine({ DATABASE_URL: trusting.database.url, PARLEY_BASE_URL: url })
    expect(content.filter(({ check }) => check === 'proxy').map(({ found }) => found)).toEqual([
      'The proxy at 127.0.0.1 is trusted.',
    ])
    await trusting.close()
  })

  test.skipIf(!hasOpenssl)('names a proxy with TLS that does not say for whom it asks', async () => {
    const certificates = new Certificates()
    const { key, cert } = certificates.make('127.0.0.1', { days: 1 })
    const authority = join(home, 'proxy.crt')
    await writeFile(authority, cert)
    const trusting = await openService({ env: { PARLEY_TRUSTED_PROXIES: '127.0.0.1' } })
    const url = await listen(createTlsServer({ key, cert }, forwardTo(trusting.url, {})))
    const { stdout } = await runParley(['doctor', '--json', '--data-dir', nowhere], {
      DATABASE_URL: trusting.database.url,
      PARLEY_SECRET: testSecret,
      PARLEY_BASE_URL: url.replace('http:', 'https:'),
      NODE_EXTRA_CA_CERTS: authority,
    })
    const { lines } = JSON.parse(stdout) as { lines: Line[] }
    expect(problems(lines, 'public address')).toEqual([])
    expect(problems(lines, 'proxy')).toEqual([expect.stringMatching(/^warning: .* sends no X-Forwarded-For/)])
    await trusting.close()
    certificates.remove()
  })

  test('only a probe with the secret, and a recent one, learns how it came', async () => {
    const ask = async (headers: Env) => (await fetch(`${service.url}/healthz`, { headers })).json()
    const { secrets } = service.app
    expect(await ask(probeHeaders(secrets, new Date()))).toMatchObject({
      status: 'ok',
      way: { peer: '127.0.0.1' },
    })
    const others = [
      probeHeaders(new Secrets('another secret for tests that is long enough'), new Date()),
      probeHeaders(secrets, new Date(Date.now() - 3_600_000)),
      { 'x-parley-doctor': '' },
      { 'x-parley-doctor': `${Math.floor(Date.now() / 1000)}.` },
      {},
    ]
    for (const headers of others) expect(await ask(headers as Env)).toEqual({ status: 'ok' })
  })
})
