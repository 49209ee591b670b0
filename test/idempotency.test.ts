/** One key, one effect: repeats, races, lost answers, and a database that is partly or wholly unreachable. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../src/db/sql.ts'
import { ok, type Route, route } from '../src/route.ts'
import { copyDatabase, dropDatabase, type TestDatabase } from './harness/database.ts'
import { probes } from './harness/probes.ts'
import { hangMs, until } from './harness/process.ts'
import { type Answer, openService, type Service, type Tenant } from './harness/service.ts'

/** Fails as often as the test says, and then works. */
let failures = 0
const own: readonly Route[] = [
  route({
    name: 'probe_shaky',
    method: 'POST',
    path: '/probe/shaky',
    summary: 'Fails at first',
    scopes: ['write'],
    idempotency: 'required',
    effect: 'local',
    response: z.object({ ok: z.boolean() }),
    example: { response: { ok: true } },
    handle: async (_app, tx, { caller }) => {
      await tx.run(sql`
        insert into suppressions (workspace_id, kind, value, source)
        values (${caller.workspace_id}, 'username', gen_random_uuid(), 'operator')`)
      if (failures-- > 0) throw new Error('not yet')
      return ok({ ok: true })
    },
  }),
]

interface World {
  readonly service: Service
  readonly tenant: Tenant
  readonly account_id: string
}

async function openWorld(env?: Readonly<Record<string, string>>): Promise<World> {
  const service = await openService({ routes: [...probes, ...own], ...(env && { env }) })
  const tenant = await service.tenant()
  await service.allow(tenant)
  return { service, tenant, account_id: await service.account(tenant.workspace_id) }
}

let serial = 0
const newKey = () => `key-${serial++}`

interface NoteOptions {
  readonly idempotency_key?: string
  readonly key?: string
  readonly text?: string
  readonly chat?: string
  readonly body?: unknown
}

function keep({ service, tenant, account_id }: World, given: NoteOptions = {}): Promise<Answer> {
  return service.post(`/probe/platform:chat:${given.chat ?? '42'}/notes`, {
    key: given.key ?? tenant.key,
    body: given.body ?? { account_id, text: given.text ?? 'called back' },
    headers: { 'idempotency-key': given.idempotency_key ?? newKey() },
  })
}

/** How often it ran, and how many answers are stored. */
async function effects({ service }: World): Promise<{ done: number; kept: number }> {
  return service.app.db.one(sql`
    select (select count(*)::int from suppressions) as done, (select count(*)::int from operations) as kept`)
}

function summary({ status, body, headers }: Answer): unknown {
  return { status, code: body.code, replayed: headers.get('idempotent-replayed') }
}

const first = { status: 201, code: undefined, replayed: null }
const replayed = { status: 200, code: undefined, replayed: 'true' }
const refusal = (status: number, code: string) => ({ status, code, replayed: null })

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.service.close())

describe('a repeat with the same key', () => {
  test('200 with the stored body, however the key and the JSON are spelled', async () => {
    const { account_id } = world
    const before = await effects(world)
    const original = await keep(world, { idempotency_key: 'k1' })
    expect(summary(original)).toEqual(first)
    const repeats = [
      await keep(world, { idempotency_key: 'k1' }),
      await keep(world, { idempotency_key: '"k1"' }),
      await keep(world, { idempotency_key: '  k1 ' }),
      await keep(world, { idempotency_key: 'k1', body: { text: 'called back', account_id } }),
      await keep(world, {
        idempotency_key: 'k1',
        body: `{ "text" : "c\\u0061lled back",\n"account_id":"${account_id}" }`,
      }),
    ]
    for (const repeat of repeats) {
      expect(summary(repeat)).toEqual(replayed)
      expect(repeat.body).toEqual(original.body)
      expect(repeat.headers.get('x-operation-id')).toBe(original.headers.get('x-operation-id'))
    }
    expect(await effects(world)).toEqual({ done: before.done + 1, kept: before.kept + 1 })
  })

  test('409 for another payload, another path, an additional property', async () => {
    const { account_id } = world
    const idempotency_key = newKey()
    await keep(world, { idempotency_key })
    const before = await effects(world)
    for (const given of [
      { text: 'something else' },
      { text: 'called back ' },
      { chat: '43' },
      { body: { account_id, text: 'called back', tags: [] } },
    ]) {
      const answer = await keep(world, { idempotency_key, ...given })
      expect(summary(answer)).toEqual(refusal(409, 'idempotency_collision'))
    }
    expect(await effects(world)).toEqual(before)
    expect(summary(await keep(world, { idempotency_key }))).toEqual(replayed)
  })

  test('201: the same key in another workspace, or for another operation, is another key', async () => {
    const { service, tenant } = world
    const idempotency_key = newKey()
    await keep(world, { idempotency_key })
    const other = await service.tenant('Other')
    await service.allow(other)
    const account_id = await service.account(other.workspace_id)
    const elsewhere = await keep({ service, tenant: other, account_id }, { idempotency_key })
    expect(summary(elsewhere)).toEqual(first)
    expect(elsewhere.body.workspace_id).toBe(other.workspace_id)
    const headers = { 'idempotency-key': idempotency_key }
    const variant = await service.post('/probe/variant', { key: tenant.key, body: {}, headers })
    expect(variant.headers.get('idempotent-replayed')).toBeNull()
  })

  test('200: the API key does not matter, so rotating one runs nothing again', async () => {
    const { service, tenant } = world
    const idempotency_key = newKey()
    const old = await service.key(tenant)
    const fresh = await service.key(tenant)
    expect(summary(await keep(world, { idempotency_key, key: old.key }))).toEqual(first)
    expect(summary(await keep(world, { idempotency_key, key: fresh.key }))).toEqual(replayed)
  })

  test('200 although the account is no longer eligible, and 403 for anything new', async () => {
    const { service, account_id } = world
    const idempotency_key = newKey()
    const original = await keep(world, { idempotency_key })
    for (const status of ['DISABLED', 'NEEDS_LOGIN', 'RESTRICTED', 'CONNECTING']) {
      await service.app.db.run(sql`update accounts set status = ${status} where id = ${account_id}`)
      await service.settle()
      const repeat = await keep(world, { idempotency_key })
      expect([summary(repeat), repeat.body]).toEqual([replayed, original.body])
      const before = await effects(world)
      expect(summary(await keep(world))).toEqual(refusal(403, 'account_unavailable'))
      expect(await effects(world)).toEqual(before)
    }
    await service.app.db.run(sql`update accounts set status = 'READY' where id = ${account_id}`)
    await service.settle()
  })

  test('503, 403: gates, scopes and allowlists are checked before it', async () => {
    const { service, tenant } = world
    const idempotency_key = newKey()
    await keep(world, { idempotency_key })
    await service.shut('crm')
    expect(summary(await keep(world, { idempotency_key }))).toEqual(refusal(503, 'feature_disabled'))
    await service.open('crm')
    const { key } = await service.key({ ...tenant, scopes: ['read'] })
    expect(summary(await keep(world, { idempotency_key, key }))).toEqual(refusal(403, 'missing_scope'))
    await service.allow(tenant, false)
    expect(summary(await keep(world, { idempotency_key }))).toEqual(refusal(403, 'not_allowlisted'))
    await service.allow(tenant)
    expect(summary(await keep(world, { idempotency_key }))).toEqual(replayed)
  })

  test('200 each time without a key, if the key is optional', async () => {
    const { service, tenant } = world
    for (let round = 0; round < 2; round++) {
      const answer = await service.post('/probe/variant', { key: tenant.key, body: {} })
      expect(answer.headers.get('idempotent-replayed')).toBeNull()
      expect(answer.headers.get('x-operation-id')).toBeNull()
    }
  })
})

describe('the key itself', () => {
  test.each([
    ['one character', 'a'],
    ['255 characters', 'a'.repeat(255)],
    ['255 in quotes', `"${'b'.repeat(255)}"`],
    ['every printable one', Array.from({ length: 94 }, (_, at) => String.fromCharCode(33 + at)).join('')],
    ['a quote inside', 'a"b'],
  ])('201 with %s', async (_, idempotency_key) => {
    expect(summary(await keep(world, { idempotency_key }))).toEqual(first)
  })

  test.each([
    ['nothing', ''],
    ['only quotes', '""'],
    ['only spaces', '"   "'],
    ['256 characters', 'a'.repeat(256)],
    ['256 in quotes', `"${'b'.repeat(256)}"`],
    ['what is not ASCII', 'clé'],
    ['a tab', 'a\tb'],
  ])('400 with %s', async (_, idempotency_key) => {
    const before = await effects(world)
    const answer = await keep(world, { idempotency_key })
    expect(summary(answer)).toEqual(refusal(400, 'invalid_request'))
    expect(await effects(world)).toEqual(before)
  })
})

describe('at the same time', () => {
  test('201 once and 200 for the other 49, although nothing is cached', async () => {
    const { service, tenant } = world
    // A changed account makes every process read it again.
    await service.account(tenant.workspace_id)
    const before = await effects(world)
    const idempotency_key = newKey()
    const answers = await Promise.all(Array.from({ length: 50 }, () => keep(world, { idempotency_key })))
    const kinds = answers.map((answer) => JSON.stringify(summary(answer))).sort()
    expect(kinds).toEqual([...Array(49).fill(JSON.stringify(replayed)), JSON.stringify(first)].sort())
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
    expect(await effects(world)).toEqual({ done: before.done + 1, kept: before.kept + 1 })
  })

  test('201 for 50 different ones, more than there are connections', async () => {
    const { service, tenant } = world
    await service.account(tenant.workspace_id)
    const answers = await Promise.all(Array.from({ length: 50 }, () => keep(world)))
    expect(answers.map(summary)).toEqual(Array(50).fill(first))
  })

  test('409 for the repeat of one that is still running, 503 for the one that waits in vain', async () => {
    const before = await effects(world)
    const client = await world.service.app.db.client()
    try {
      await client.query('begin; lock table suppressions in exclusive mode')
      const idempotency_key = newKey()
      const under_way = keep(world, { idempotency_key })
      await until('it waits', hangMs, async () => {
        const { rows } = await client.query(
          `select from pg_locks where not granted and relation = 'suppressions'::regclass`,
        )
        return rows.length > 0
      })
      const repeat = keep(world, { idempotency_key })
      expect(summary(await under_way)).toEqual(refusal(503, 'store_unavailable'))
      await client.query('rollback')
      expect([201, 409]).toContain((await repeat).status)
    } finally {
      await client.end()
    }
    expect((await effects(world)).done - before.done).toBeLessThanOrEqual(1)
  })
})

describe('when it fails', () => {
  test('500 and stores nothing; the repeat runs', async () => {
    const { service, tenant } = world
    const before = await effects(world)
    const ask = () =>
      service.post('/probe/shaky', { key: tenant.key, headers: { 'idempotency-key': 'shaky' } })
    failures = 2
    for (let round = 0; round < 2; round++) {
      const answer = await ask()
      expect(summary(answer)).toEqual(refusal(500, 'internal'))
      expect(answer.body.error).not.toContain('not yet')
      expect(await effects(world)).toEqual(before)
    }
    expect(summary(await ask())).toEqual({ ...replayed, replayed: null })
    expect(summary(await ask())).toEqual(replayed)
    expect(await effects(world)).toEqual({ done: before.done + 1, kept: before.kept + 1 })
  })

  test.each(['suppressions', 'operations', 'accounts'])(
    '503 schema_unavailable without the table %s, only for what needs it',
    async (table) => {
      const { service, tenant } = world
      const idempotency_key = newKey()
      await service.app.db.pool.query(`alter table ${table} rename to away`)
      await service.shut('branching')
      await service.open('branching')
      try {
        expect(summary(await keep(world, { idempotency_key }))).toEqual(refusal(503, 'schema_unavailable'))
        const me = await service.get('/me', { key: tenant.key })
        expect(me.status).toBe(table === 'accounts' ? 503 : 200)
        expect((await service.post('/probe/variant', { key: tenant.key, body: {} })).status).toBe(200)
      } finally {
        await service.app.db.pool.query(`alter table away rename to ${table}`)
      }
      expect(summary(await keep(world, { idempotency_key }))).toEqual(first)
    },
  )

  test('503 schema_unavailable without a column', async () => {
    const { service, tenant } = world
    await service.app.db.pool.query('alter table suppressions rename column source to away')
    try {
      expect(summary(await keep(world))).toEqual(refusal(503, 'schema_unavailable'))
      expect((await service.get('/me', { key: tenant.key })).status).toBe(200)
    } finally {
      await service.app.db.pool.query('alter table suppressions rename column away to source')
    }
    expect(summary(await keep(world))).toEqual(first)
  })

  test.each([
    ['is missing', `delete from settings where name = 'version'`],
    ['is garbage', `update settings set value = '"x"' where name = 'version'`],
  ])('503 while the version of the settings %s', async (_, damage) => {
    const { service, tenant } = world
    const { rows } = await service.app.db.pool.query(`select value from settings where name = 'version'`)
    await service.app.db.pool.query(damage)
    try {
      await until('it is noticed', hangMs, async () => {
        const { status, body } = await service.get('/me', { key: tenant.key })
        expect([200, 503]).toContain(status)
        return status === 503 && body.code === 'schema_unavailable'
      })
    } finally {
      await service.app.db.pool.query(
        `insert into settings values ('version', $1) on conflict (name) do update set value = excluded.value`,
        [JSON.stringify(rows[0].value)],
      )
    }
    await until('it is well again', hangMs, async () => {
      return (await service.get('/me', { key: tenant.key })).status === 200
    })
  })
})

/** Between the service and its database: cuts the connection where a test says so. */
interface Relay {
  readonly port: number
  /** Cuts the connection at the next COMMIT: before the server receives it, or before the client receives the answer. */
  cut: 'never' | 'before' | 'after'
  /** `away` refuses new connections, `mute` accepts them and stays silent. */
  mood: 'well' | 'away' | 'mute'
  hangUp(): void
  close(): Promise<void>
}

async function openRelay(): Promise<Relay> {
  const lines = new Set<Socket>()
  const server = createServer((client) => {
    lines.add(client)
    client.on('error', () => {})
    if (relay.mood === 'mute') return
    if (relay.mood === 'away') return void client.destroy()
    const upstream = connect(`${inject('cluster').host}/.s.PGSQL.5432`)
    const hangUp = () => {
      client.destroy()
      upstream.destroy()
      lines.delete(client)
    }
    upstream.on('error', () => {})
    client.on('close', hangUp)
    upstream.on('close', hangUp)
    client.on('data', (bytes) => {
      if (relay.cut === 'before' && bytes.includes('commit\0')) {
        relay.cut = 'never'
        return hangUp()
      }
      upstream.write(bytes)
    })
    upstream.on('data', (bytes) => {
      if (relay.cut === 'after' && bytes.includes('COMMIT\0')) {
        relay.cut = 'never'
        return hangUp()
      }
      client.write(bytes)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const relay: Relay = {
    port: typeof address === 'object' && address ? address.port : 0,
    cut: 'never',
    mood: 'well',
    hangUp() {
      for (const line of lines) line.destroy()
    },
    async close() {
      relay.hangUp()
      server.close()
    },
  }
  return relay
}

describe('behind a connection that breaks', () => {
  let relay: Relay
  let database: TestDatabase
  let shaky: World

  beforeAll(async () => {
    relay = await openRelay()
    database = await copyDatabase()
    const { pathname, username, password } = new URL(database.url)
    const url = `postgres://${username}:${password}@127.0.0.1:${relay.port}${pathname}`
    shaky = await openWorld({ DATABASE_URL: url })
  })
  afterAll(async () => {
    await shaky.service.close()
    await relay.close()
    await database.drop()
  })

  test('503 outcome_ambiguous when COMMIT never arrived; the repeat runs', async () => {
    const before = await effects(shaky)
    const idempotency_key = newKey()
    relay.cut = 'before'
    const answer = await keep(shaky, { idempotency_key })
    expect(summary(answer)).toEqual(refusal(503, 'outcome_ambiguous'))
    expect(answer.headers.get('retry-after')).toBeNull()
    expect(await effects(shaky)).toEqual(before)
    expect(summary(await keep(shaky, { idempotency_key }))).toEqual(first)
    expect(await effects(shaky)).toEqual({ done: before.done + 1, kept: before.kept + 1 })
  })

  test('503 outcome_ambiguous when its answer was lost; the repeat reads the row', async () => {
    const before = await effects(shaky)
    const idempotency_key = newKey()
    relay.cut = 'after'
    expect(summary(await keep(shaky, { idempotency_key }))).toEqual(refusal(503, 'outcome_ambiguous'))
    expect(await effects(shaky)).toEqual({ done: before.done + 1, kept: before.kept + 1 })
    expect(summary(await keep(shaky, { idempotency_key }))).toEqual(replayed)
    expect(await effects(shaky)).toEqual({ done: before.done + 1, kept: before.kept + 1 })
  })

  test('503 outcome_ambiguous without a key too', async () => {
    const { service, tenant } = shaky
    for (const cut of ['before', 'after'] as const) {
      relay.cut = cut
      const answer = await service.post('/probe/variant', { key: tenant.key, body: {} })
      expect(summary(answer)).toEqual(refusal(503, 'outcome_ambiguous'))
    }
  })

  test('503 outcome_ambiguous when the server itself dies at COMMIT', async () => {
    const { service } = shaky
    await service.app.db.pool.query(`
      create function die() returns trigger language plpgsql as
        $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
      create constraint trigger die after insert on suppressions deferrable initially deferred
        for each row execute function die()`)
    const idempotency_key = newKey()
    const before = await effects(shaky)
    try {
      expect(summary(await keep(shaky, { idempotency_key }))).toEqual(refusal(503, 'outcome_ambiguous'))
    } finally {
      await service.app.db.pool.query('drop trigger die on suppressions; drop function die')
    }
    expect(await effects(shaky)).toEqual(before)
    expect(summary(await keep(shaky, { idempotency_key }))).toEqual(first)
  })

  test('503 store_unavailable when the connection breaks earlier, and nothing was done', async () => {
    const { service } = shaky
    await service.app.db.pool.query(`
      create function die() returns trigger language plpgsql as
        $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
      create trigger die after insert on suppressions for each row execute function die()`)
    const before = await effects(shaky)
    try {
      expect(summary(await keep(shaky))).toEqual(refusal(503, 'store_unavailable'))
    } finally {
      await service.app.db.pool.query('drop trigger die on suppressions; drop function die')
    }
    expect(await effects(shaky)).toEqual(before)
  })

  test.each(['away', 'mute'] as const)('503 store_unavailable while the database is %s', async (mood) => {
    const { service, tenant } = shaky
    relay.mood = mood
    relay.hangUp()
    try {
      await until('the settings are too old to be trusted', hangMs, async () => {
        const { status, body } = await service.get('/me', { key: tenant.key })
        expect([200, 503]).toContain(status)
        return status === 503 && body.code === 'store_unavailable'
      })
      const [kept, health, ready] = await Promise.all([
        keep(shaky),
        fetch(`${service.url}/healthz`),
        fetch(`${service.url}/readyz`),
      ])
      expect(summary(kept)).toEqual(refusal(503, 'store_unavailable'))
      expect([health.status, ready.status]).toEqual([200, 503])
      expect(await ready.json()).toMatchObject({ checks: { database: 'store_unavailable' } })
    } finally {
      relay.mood = 'well'
      relay.hangUp()
    }
    await until('it serves again', hangMs, async () => (await keep(shaky)).status === 201)
  })
})

describe('a database that refuses connections', () => {
  async function asAdmin(statement: string): Promise<void> {
    const client = new pg.Client({ ...inject('cluster'), database: 'postgres' })
    await client.connect()
    await client.query(statement).finally(() => client.end())
  }

  async function closeDatabase(name: string): Promise<void> {
    await asAdmin(`alter database ${name} allow_connections false`)
    await asAdmin(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and usename = current_user`,
    )
  }

  test.each([
    ['dropped', dropDatabase],
    ['closed', closeDatabase],
  ])('503 store_unavailable when it was %s', async (_, end) => {
    const lonely = await openWorld()
    const { service, tenant } = lonely
    try {
      const name = new URL(service.database.url).pathname.slice(1)
      await end(name)
      for (let round = 0; round < 3; round++) {
        expect(summary(await keep(lonely))).toEqual(refusal(503, 'store_unavailable'))
        const { status, body } = await service.get('/me', { key: tenant.key })
        expect([status, body.code]).toEqual([503, 'store_unavailable'])
      }
    } finally {
      await service.close()
    }
  })
})
