/** The first start: a running demo, announced once; and the starts that must be empty. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gates } from '../src/contract.ts'
import { openEmbedded } from '../src/db/embedded.ts'
import { type Connection, openDatabase } from '../src/db/pool.ts'
import { type Database, sql } from '../src/db/sql.ts'
import { routes } from '../src/lists/routes.ts'
import { exampleKey } from '../src/openapi/openapi.ts'
import { copyDatabase } from './harness/database.ts'
import { endProcesses, hangMs, type Parley, spawnParley, until } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { testSecret } from './harness/worker.ts'

let directory: string
beforeAll(async () => {
  directory = await makeScratch('parley-demo-')
})
afterAll(async () => {
  await endProcesses()
  await rm(directory, { recursive: true, force: true })
})

async function withDatabase<T>(connection: Connection, work: (db: Database) => Promise<T>): Promise<T> {
  const db = openDatabase(connection, { pool_size: 2 })
  try {
    return await work(db)
  } finally {
    await db.close()
  }
}

/** The contents of a running service's database. */
async function inspect<T>(data_dir: string, work: (db: Database) => Promise<T>): Promise<T> {
  const embedded = await openEmbedded({ data_dir, claim: 'command' })
  try {
    return await withDatabase(embedded.connection, work)
  } finally {
    await embedded.close()
  }
}

async function countRows(db: Database) {
  return db.one<Record<string, number>>(sql`
    select (select count(*)::int from workspaces) as workspaces, (select count(*)::int from users) as users,
      (select count(*)::int from accounts) as accounts, (select count(*)::int from keys) as keys,
      (select count(*)::int from gates where enabled) as gates,
      (select count(*)::int from allowlists) as allowlists`)
}

const nothing = { workspaces: 0, users: 0, accounts: 0, keys: 0, gates: 0, allowlists: 0 }

interface Me {
  readonly accounts: readonly { readonly id: string; readonly status: string }[]
  readonly key: { readonly scopes: readonly string[] }
  readonly capabilities: Readonly<Record<string, boolean>>
}

async function me(base: string, key: string): Promise<Me> {
  const response = await fetch(`${base}/api/v1/me`, { headers: { authorization: `Bearer ${key}` } })
  expect(response.status).toBe(200)
  return (await response.json()) as Me
}

async function untilReady(base: string, key: string): Promise<Me> {
  return until('both accounts are ready', hangMs, async () => {
    const found = await me(base, key)
    return found.accounts.length === 2 && found
  })
}

async function control(admin: string, path: string, body: object): Promise<number> {
  const response = await fetch(`${admin}/sandbox/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  await response.arrayBuffer()
  return response.status
}

describe('parley start on an empty data directory', () => {
  let data_dir: string
  let service: Parley
  let base: string
  let key: string
  beforeAll(async () => {
    data_dir = join(directory, 'first')
    service = spawnParley(['start', '--port', '0', '--data-dir', data_dir])
    base = await service.ready()
    key = await until('the key is printed', hangMs, () => /svc_live_\w+/.exec(service.stdout())?.[0])
  })

  test("200 has two accounts that are ready within seconds, for a key without the scopes of a person's data", async () => {
    const { accounts, key: own, capabilities } = await untilReady(base, key)
    expect(accounts.map(({ status }) => status)).toEqual(['READY', 'READY'])
    expect(own.scopes).toEqual(['read', 'write', 'send', 'campaigns'])
    const closed = Object.keys(capabilities).filter((name) => !capabilities[name])
    expect(closed.sort()).toEqual([
      'erase_person',
      'export_person',
      'find_people',
      'get_erasure',
      'get_person',
      'preview_erasure',
    ])
  })

  test('opens every gate and allows its user and workspace, with stages and columns', async () => {
    const found = await inspect(data_dir, async (db) => ({
      counts: await countRows(db),
      gates: await db.rows<{ name: string }>(sql`select name from gates where enabled`),
      lists: await db.rows(sql`
        select list from allowlists where id in (select id from users union select id from workspaces)
        order by list`),
      operators: await db.rows(sql`select email from users where operator`),
      stages: await db.rows<{ key: string }>(sql`select key from stages order by key`),
      columns: await db.rows<{ type: string }>(sql`select distinct type from columns order by type`),
      audited: await db.one(sql`select count(*)::int as gates from audit where action = 'gate.enabled'`),
    }))
    expect(found.counts).toMatchObject({ workspaces: 1, users: 1, accounts: 2, keys: 1 })
    expect(found.gates.map(({ name }) => name).sort()).toEqual([...gates].sort())
    expect(found.lists).toEqual([{ list: 'campaign_user' }, { list: 'campaign_workspace' }])
    expect(found.operators).toHaveLength(1)
    expect(found.stages.map((stage) => stage.key)).toEqual(
      expect.arrayContaining(['new', 'contacted', 'qualified', 'won', 'lost']),
    )
    expect(found.columns.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['checkbox', 'date', 'multi_select', 'number', 'select', 'text', 'url']),
    )
    expect(found.audited).toEqual({ gates: gates.length })
  })

  test('200 has a running campaign: its first message is sent, its forecast has an end', async () => {
    const get = async (path: string) => {
      const response = await fetch(`${base}/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } })
      return (await response.json()) as Record<string, unknown>
    }
    const running = await until('a message of the campaign was sent', hangMs, async () => {
      const [campaign] = (await get('/campaigns')).campaigns as { id: string; started_at: string | null }[]
      return campaign?.started_at ? campaign : undefined
    })
    expect(await get(`/campaigns/${running.id}/forecast`)).toMatchObject({
      end: expect.stringContaining('T'),
    })
    expect(await get(`/campaigns/${running.id}/verify`)).toMatchObject({ ok: true })
  })

  test('200 for every example of the reference, unchanged', async () => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    await until('what the examples look for was synced', hangMs, async () => {
      const body = JSON.stringify(routes.find(({ name }) => name === 'search_messages')?.example.body)
      const found = await fetch(`${base}/api/v1/search`, { method: 'POST', headers, body })
      return ((await found.json()) as { match_count: number }).match_count === 1
    })
    // No one can know the id of an operation, campaign, broadcast or webhook before it exists, and no message here has a file. The
    // demo's key has no scope for people.
    const known = routes.filter(
      ({ path, scopes }) =>
        !/\{((operation|campaign|broadcast|webhook)_id|index)\}/.test(path) &&
        !scopes.some((scope) => scope.startsWith('people')),
    )
    for (const route of known) {
      const { params = {}, query = {}, body } = route.example
      const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name] ?? ''))
      const response = await fetch(`${base}/api/v1${path}?${new URLSearchParams(query)}`, {
        method: route.method,
        headers: { ...headers, ...(route.idempotency && { 'idempotency-key': exampleKey }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const answer = (await response.json()) as Record<string, unknown>
      expect([route.name, response.status, answer.error]).toEqual([
        route.name,
        route.statuses?.[0] ?? 200,
        undefined,
      ])
    }
  })

  test('200 has forty people with a history, and a new message of one of them is an event immediately', async () => {
    const { accounts } = await untilReady(base, key)
    const admin = await service.admin()
    // The world numbers its people from 1001, except the one of the examples; an account does not know people it has
    // never talked with.
    const people = [42, ...Array.from({ length: 60 }, (_, n) => 1001 + n)]
    const known = await Promise.all(
      people.map(async (person_id) => {
        const asked = accounts.map(({ id }) => control(admin, '/read', { account_id: id, person_id }))
        return (await Promise.all(asked)).includes(200)
      }),
    )
    expect(known.filter(Boolean)).toHaveLength(40)
    const account_id = accounts.find(({ id }) => id)?.id
    expect(await control(admin, '/messages', { account_id, person_id: 1001, text: 'Are you there?' })).toBe(
      200,
    )
    const headers = { authorization: `Bearer ${key}` }
    await until('the event is there', hangMs, async () => {
      const response = await fetch(`${base}/api/v1/events`, { headers })
      return JSON.stringify(await response.json()).includes('Are you there?')
    })
  })

  test('200 prints the key and the set-up link once: another start prints neither, and works', async () => {
    const printed = service.stdout()
    expect(printed).toMatch(new RegExp(`${base}/dashboard/setup#\\w{20,}`))
    expect(printed).toContain(`curl ${base}/api/v1/me -H "Authorization: Bearer ${key}"`)
    service.signal('SIGTERM')
    expect(await service.exit()).toMatchObject({ code: 0 })
    const again = spawnParley(['start', '--port', '0', '--data-dir', data_dir])
    base = await again.ready()
    const { accounts } = await untilReady(base, key)
    expect(accounts).toHaveLength(2)
    expect(again.stdout() + again.stderr()).not.toMatch(/svc_live_|dashboard\/setup/)
    expect(await inspect(data_dir, countRows)).toMatchObject({ workspaces: 1, accounts: 2, keys: 1 })
    again.signal('SIGTERM')
    expect(await again.exit()).toMatchObject({ code: 0 })
  })
})

describe('starts without a demo', () => {
  async function expectClosed(base: string): Promise<void> {
    const response = await fetch(`${base}/api/v1/me`)
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({ code: 'rest_disabled' })
  }

  test('503 after parley start --no-demo: empty, every gate closed', async () => {
    const data_dir = join(directory, 'empty')
    const service = spawnParley(['start', '--no-demo', '--port', '0', '--data-dir', data_dir])
    await expectClosed(await service.ready())
    expect(await inspect(data_dir, countRows)).toEqual(nothing)
    expect(service.stdout()).not.toMatch(/svc_live_|dashboard\/setup/)
    service.signal('SIGTERM')
    expect(await service.exit()).toMatchObject({ code: 0 })
  })

  test('503 after another start without --no-demo: the demo was declined; parley demo makes it, once (V10)', async () => {
    const data_dir = join(directory, 'empty')
    const again = spawnParley(['start', '--port', '0', '--data-dir', data_dir])
    await expectClosed(await again.ready())
    expect(await inspect(data_dir, countRows)).toEqual(nothing)
    const meanwhile = await spawnParley(['demo', '--json', '--data-dir', data_dir]).exit()
    expect(meanwhile).toMatchObject({ code: 1, stdout: '' })
    again.signal('SIGTERM')
    expect(await again.exit()).toMatchObject({ code: 0 })
    const asked = await spawnParley(['demo', '--json', '--data-dir', data_dir]).exit()
    expect(asked).toMatchObject({ code: 0, stderr: '' })
    const { key } = JSON.parse(asked.stdout)
    expect(await spawnParley(['demo', '--json', '--data-dir', data_dir]).exit()).toMatchObject({ code: 1 })
    const third = spawnParley(['start', '--port', '0', '--data-dir', data_dir])
    const { accounts } = await untilReady(await third.ready(), key)
    expect(accounts).toHaveLength(2)
    third.signal('SIGTERM')
    expect(await third.exit()).toMatchObject({ code: 0 })
  })

  test('503 after parley start with DATABASE_URL: empty, every gate closed', async () => {
    const database = await copyDatabase()
    const env = { DATABASE_URL: database.url, PARLEY_SECRET: testSecret }
    const args = ['start', '--port', '0', '--data-dir', join(directory, 'elsewhere')]
    const service = spawnParley(args, env)
    await expectClosed(await service.ready())
    expect(await withDatabase({ connectionString: database.url }, countRows)).toEqual(nothing)
    expect(service.stdout()).not.toMatch(/svc_live_|dashboard\/setup/)
    service.signal('SIGTERM')
    expect(await service.exit()).toMatchObject({ code: 0 })
    await database.drop()
  })
})
