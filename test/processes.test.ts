/** Several processes on one database agree, and each of them starts and stops as a supervisor expects. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { setAllowed } from '../src/capabilities/gates/gates.ts'
import { revokeKey } from '../src/capabilities/keys/keys.ts'
import { isMigrated } from '../src/db/migrate.ts'
import { openDatabase } from '../src/db/pool.ts'
import { copyDatabase } from './harness/database.ts'
import { probes } from './harness/probes.ts'
import { endProcesses, hangMs, type Parley, spawnParley, until } from './harness/process.ts'
import { openService, type Service } from './harness/service.ts'
import { timed } from './harness/timed.ts'

const secret = 'a secret for tests that is long enough'

function serve(database_url: string, env: Readonly<Record<string, string>> = {}): Parley {
  return spawnParley(['serve', '--port', '0'], { DATABASE_URL: database_url, PARLEY_SECRET: secret, ...env })
}

let service: Service
let processes: readonly Parley[]
let urls: readonly string[]

beforeAll(async () => {
  service = await openService()
  processes = [serve(service.database.url), serve(service.database.url)]
  urls = await Promise.all(processes.map((process) => process.ready()))
})
afterAll(async () => {
  await endProcesses()
  await service.close()
})

async function ask(
  url: string,
  key: string,
  path = '/me',
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

/** Requests to both, again and again, but not so often that the rate limit answers. */
async function bothSee(what: string, seen: (url: string) => Promise<boolean>): Promise<void> {
  await Promise.all(
    urls.map((url) =>
      until(what, 1_100, async () => {
        await sleep(40)
        return seen(url)
      }),
    ),
  )
}

describe('two processes on one database', timed, () => {
  test('200 from both, and /readyz says that the work is done elsewhere', async () => {
    const { key, workspace_id } = await service.tenant()
    for (const url of urls) {
      expect((await ask(url, key)).body.workspace_id).toBe(workspace_id)
      const ready = await fetch(`${url}/readyz`)
      expect([ready.status, await ready.json()]).toMatchObject([
        200,
        { checks: { database: 'ok', migrations: 'ok' } },
      ])
    }
  })

  test('401 from both within a second of a revocation', async () => {
    const tenant = await service.tenant()
    for (const url of urls) expect((await ask(url, tenant.key)).status).toBe(200)
    await revokeKey(service.app, 'system', tenant.key_id)
    await bothSee('the key is refused', async (url) => (await ask(url, tenant.key)).status === 401)
  })

  test('503 from both within a second of a closed gate, and 200 again', async () => {
    const tenant = await service.tenant()
    await service.shut('rest')
    await bothSee('the gate is closed', async (url) => (await ask(url, tenant.key)).status === 503)
    await service.open('rest')
    await bothSee('the gate is open', async (url) => (await ask(url, tenant.key)).status === 200)
  })

  test('403 from both within a second of a removal from an allowlist', async () => {
    const tenant = await service.tenant()
    const account_id = await service.account(tenant.workspace_id)
    await service.allow(tenant)
    // No operation of the contract needs one yet, so these two are processes in all but their number.
    const env = { DATABASE_URL: service.database.url }
    const both = [await openService({ routes: probes, env }), await openService({ routes: probes, env })]
    try {
      const statuses = () =>
        Promise.all(
          both.map(async (each, at) => {
            const headers = { 'idempotency-key': `${at}-${performance.now()}` }
            const body = { account_id, text: 'hello' }
            const path = '/probe/platform:chat:1/notes'
            return (await each.post(path, { key: tenant.key, body, headers })).status
          }),
        )
      expect(await statuses()).toEqual([201, 201])
      const { user_id } = tenant
      await setAllowed(service.app, 'system', { list: 'campaign_user', id: user_id, allowed: false })
      await until('both refuse', 1_100, async () => (await statuses()).every((status) => status === 403))
    } finally {
      for (const each of both) await each.close()
    }
  })

  test('200, and both see a disabled account within a second', async () => {
    const tenant = await service.tenant()
    const id = await service.account(tenant.workspace_id)
    const has = async (url: string) => JSON.stringify((await ask(url, tenant.key)).body.accounts).includes(id)
    await bothSee('it is there', has)
    await service.app.db.pool.query(`update accounts set status = 'DISABLED' where id = $1`, [id])
    await bothSee('it is gone', async (url) => !(await has(url)))
  })

  test('429 exactly from the 121st on, whichever process answers', async () => {
    const alternating = await service.tenant()
    for (let at = 0; at < 125; at++) {
      const { status } = await ask(urls[at % 2] ?? '', alternating.key)
      expect([at, status]).toEqual([at, at < 120 ? 200 : 429])
    }
    const concurrent = await service.tenant()
    // On a busy machine some wait too long for their turn, hear that nothing was done, and retry.
    const insist = (url: string) =>
      until('it is answered', hangMs, async () => {
        const answer = await ask(url, concurrent.key)
        return answer.status !== 503 && answer
      })
    const answers = await Promise.all(Array.from({ length: 200 }, (_, at) => insist(urls[at % 2] ?? '')))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(120)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(80)
    expect((await ask(urls[0] ?? '', 'svc_live_wrong')).status).toBe(401)
  })
})

describe('a process that is stopped', () => {
  // A statement that waits for the lock is refused after two seconds.
  test('200 for requests in progress, nothing new, exit 0', timed, async () => {
    const { key } = await service.tenant()
    const leaving = serve(service.database.url)
    const url = await leaving.ready()
    const client = await service.app.db.client()
    try {
      await client.query('begin; lock table workspaces in access exclusive mode')
      const under_way = ask(url, key)
      await until('the request waits', hangMs, async () => {
        const { rows } = await client.query(
          `select from pg_locks where not granted and relation = 'workspaces'::regclass`,
        )
        return rows.length > 0
      })
      leaving.signal('SIGTERM')
      await until('it is stopping', hangMs, () => leaving.stdout().includes('"msg":"stopping"'))
      await client.query('rollback')
      expect((await under_way).status).toBe(200)
    } finally {
      await client.end()
    }
    const { code, stdout } = await leaving.exit()
    expect([code, stdout.includes('"msg":"stopped"')]).toEqual([0, true])
    await expect(ask(url, key)).rejects.toThrow()
  })

  test('does not wait for clients that only hold a connection', async () => {
    const leaving = serve(service.database.url)
    const { hostname, port } = new URL(await leaving.ready())
    const idle = connect(Number(port), hostname)
    const slow = connect(Number(port), hostname)
    for (const socket of [idle, slow]) socket.on('error', () => {})
    await new Promise((resolve) => slow.write('GET /api/v1/me HTTP/1.1\r\nHost: x\r\n', resolve))
    await until('the service has heard it', hangMs, () => slow.bytesWritten > 0)
    leaving.signal('SIGTERM')
    const { code } = await leaving.exit()
    for (const socket of [idle, slow]) socket.destroy()
    expect(code).toBe(0)
  })
})

describe('a process that starts', () => {
  test('with others on an empty database: all become ready', async () => {
    const copy = await copyDatabase()
    const db = openDatabase({ connectionString: copy.url }, { pool_size: 2 })
    try {
      await db.pool.query('drop schema public cascade; create schema public')
      const starting = Array.from({ length: 3 }, () => serve(copy.url))
      const ready = await Promise.all(starting.map((process) => process.ready()))
      for (const url of ready) expect((await fetch(`${url}/readyz`)).status).toBe(200)
      expect(await isMigrated(db)).toBe(true)
      expect(starting.filter((process) => process.stdout().includes('"msg":"migrated"'))).toHaveLength(1)
      for (const process of starting) process.signal('SIGTERM')
      for (const process of starting) expect((await process.exit()).code).toBe(0)
    } finally {
      await db.close()
      await copy.drop()
    }
  })

  test.each([
    [
      'a newer database',
      `insert into schema_migrations (version, name, checksum) values (9999, '9999_later.sql', '')`,
      'The database is newer than this Parley: it has the migration 9999_later.sql. Run the newer version.',
    ],
    [
      'a manual clock that is not configured',
      `insert into manual_clock (at) values (now())`,
      'This database runs on a manual clock. Set PARLEY_CLOCK=manual, or use another database for real time.',
    ],
  ])('refuses %s with a sentence', async (_, damage, sentence) => {
    const copy = await copyDatabase()
    const db = openDatabase({ connectionString: copy.url }, { pool_size: 2 })
    try {
      await db.pool.query(damage)
      const { code, stderr } = await serve(copy.url).exit()
      expect([code, stderr.trim()]).toEqual([1, sentence])
    } finally {
      await db.close()
      await copy.drop()
    }
  })

  test('refuses a database that does not answer, without its password', async () => {
    const { code, stderr } = await serve('postgres://parley:hunter2@127.0.0.1:9/parley').exit()
    expect(code).toBe(1)
    expect(stderr).toMatch(/^The database of DATABASE_URL does not respond: .+\.\n$/)
    expect(stderr).not.toContain('hunter2')
  })
})
