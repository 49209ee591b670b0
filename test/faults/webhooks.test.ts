/** Webhooks and killed processes: no event is lost or changed, and the count of failures is exact. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { setGates } from '../../src/capabilities/gates/gates.ts'
import type { OpenApp } from '../../src/cli/open.ts'
import { sql } from '../../src/db/sql.ts'
import { emit, emitted } from '../../src/events/emit.ts'
import { copyDatabase, type TestDatabase } from '../harness/database.ts'
import { endProcesses, hangMs, type Parley, spawnParley, until } from '../harness/process.ts'
import type { Tenant } from '../harness/service.ts'
import { Receiver } from '../harness/webhooks.ts'
import { openNeighbour, seedTenant, testSecret } from '../harness/worker.ts'
import { patchEnv } from './patch.ts'

const kills = Number(process.env.TEST_WEBHOOK_KILLS ?? 20)
/** How long other processes wait for a killed process's endpoints. */
const briefLease = { marker: 'limit: lease of an endpoint', replace: 'export const leaseSeconds = 1' }

afterAll(endProcesses)

/** A database, this process as a neighbour of those that are killed, and a receiver. */
interface Scene {
  readonly database: TestDatabase
  readonly directory: string
  readonly app: OpenApp
  readonly tenant: Tenant
  readonly receiver: Receiver
  close(): Promise<void>
}

async function openScene(env: Readonly<Record<string, string>>): Promise<Scene> {
  const database = await copyDatabase()
  const directory = await mkdtemp(join(tmpdir(), 'parley-hooks-'))
  const app = await openNeighbour(database.url, { ...env, PARLEY_WEBHOOK_ALLOW: '127.0.0.1' })
  await setGates(app, 'system', { names: ['rest'], enabled: true })
  const tenant = await seedTenant(app)
  const receiver = await Receiver.open()
  const close = async () => {
    await endProcesses()
    await app.close()
    await receiver.close()
    await database.drop()
    await rm(directory, { recursive: true, force: true })
  }
  return { database, directory, app, tenant, receiver, close }
}

function start(
  { database, directory }: Scene,
  verb: string,
  env: Readonly<Record<string, string>> = {},
): Parley {
  return spawnParley([verb, '--port', '0', '--data-dir', directory], {
    DATABASE_URL: database.url,
    PARLEY_SECRET: testSecret,
    PARLEY_WEBHOOK_ALLOW: '127.0.0.1',
    ...patchEnv([briefLease]),
    ...env,
  })
}

async function emitMany({ app, tenant }: Scene, count: number): Promise<void> {
  const event = { type: 'message.received', occurred_at: null } as const
  await app.db.transaction((tx) =>
    emit(
      tx,
      tenant.workspace_id,
      Array.from({ length: count }, (_, n) => ({ ...event, data: { n, text: 'Grüße 😀' } })),
    ),
  )
  app.wake.signal(emitted)
}

/** Every event was delivered, and each event's bytes are the same on every attempt. */
async function expectAll({ app, tenant, receiver }: Scene, count: number): Promise<void> {
  const events = await app.db.rows<{ id: string; sequence: number }>(sql`
    select id, sequence::int as sequence from events where workspace_id = ${tenant.workspace_id} order by sequence`)
  expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: count }, (_, n) => n + 1))
  const bytes = Map.groupBy(receiver.received, ({ id }) => id)
  expect(new Set(bytes.keys())).toEqual(new Set(events.map(({ id }) => id)))
  for (const [id, received] of bytes) {
    expect(new Set(received.map(({ body }) => body)).size, id).toBe(1)
    expect(JSON.parse(received[0]?.body ?? '').id).toBe(id)
  }
}

describe('a receiver that is down for a day', () => {
  const env = { PARLEY_CLOCK: 'manual', PARLEY_SANDBOX_CONTROL: 'on' }
  let scene: Scene
  let parley: Parley
  beforeAll(async () => {
    scene = await openScene({ PARLEY_CLOCK: 'manual' })
    parley = start(scene, 'start', env)
  })
  afterAll(() => scene.close())

  async function advance(seconds: number): Promise<number> {
    const response = await fetch(`${await parley.admin()}/sandbox/v1/clock/advance`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ seconds }),
    })
    await response.text()
    return response.status
  }

  async function kill(): Promise<void> {
    parley.signal('SIGKILL')
    await parley.exit()
    parley = start(scene, 'start', env)
    // The killed process's lease has to expire first; the clock waits for what it holds.
    await until('the clock moves', hangMs, async () => (await advance(0)) === 200)
  }

  async function call(method: string, path: string, body: object) {
    const response = await fetch(`${await parley.ready()}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${scene.tenant.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return (await response.json()) as {
      webhook: { id: string; active: boolean; consecutive_failures: number }
    }
  }

  const states = (id: string) =>
    scene.app.db.one<{ active: boolean; failures: number; failed_attempts: number }>(sql`
      select active, consecutive_failures as failures, (select count(*)::int from webhook_attempts) as failed_attempts
      from webhooks where id = ${id}`)

  test('gets 2,000 events in the end, and becomes inactive after exactly 20 failures', {
    timeout: 300_000,
  }, async () => {
    const { receiver } = scene
    receiver.status(503)
    const { webhook } = await until('the gate is open', hangMs, async () => {
      const made = await call('POST', '/webhooks', { url: receiver.url })
      return made.webhook && made
    })
    await emitMany(scene, 80)
    expect(await advance(100)).toBe(200)
    // Once while nothing happens, once during an attempt.
    await kill()
    const before = receiver.received.length
    receiver.answer = async (response) => {
      await sleep(300)
      response.writeHead(503).end()
    }
    const moving = advance(600).catch(() => 0)
    await until('an attempt is under way', hangMs, () => receiver.received.length > before)
    await kill()
    await moving
    receiver.status(503)
    for (let hour = 0; hour < 24; hour++) {
      await emitMany(scene, 80)
      expect(await advance(3_600)).toBe(200)
    }
    expect(await states(webhook.id)).toEqual({ active: false, failures: 20, failed_attempts: 20 })
    receiver.status(200)
    await call('PATCH', `/webhooks/${webhook.id}`, { active: true })
    await until('everything is delivered', hangMs, async () => {
      await advance(3_600)
      return new Set(receiver.ids).size === 2_000
    })
    await expectAll(scene, 2_000)
  })
})

describe('workers that are killed in the middle', () => {
  test(`${kills} kills: every event is delivered at least once`, {
    timeout: 60_000 + kills * 20_000,
  }, async () => {
    const scene = await openScene({})
    const { app, tenant, receiver } = scene
    const made = await import('../../src/capabilities/webhooks/webhooks.ts')
    await app.db.transaction((tx) =>
      made.createWebhook(app, tx, 'system', { workspace_id: tenant.workspace_id, url: receiver.url }),
    )
    receiver.answer = async (response) => {
      await sleep(Math.random() * 40)
      response.end()
    }
    // While one is killed and restarts, another takes over what it held.
    const workers = [start(scene, 'work'), start(scene, 'work'), start(scene, 'work')]
    await Promise.all(workers.map((worker) => worker.ready()))
    let emitted = 0
    for (let n = 0; n < kills; n++) {
      const before = receiver.received.length
      await emitMany(scene, 30)
      emitted += 30
      await until('some are delivered', hangMs, () => receiver.received.length > before + 5)
      const victim = workers.shift()
      victim?.signal('SIGKILL')
      await victim?.exit()
      workers.push(start(scene, 'work'))
    }
    await until('everything is delivered', hangMs, () => new Set(receiver.ids).size === emitted)
    await expectAll(scene, emitted)
    // Some were cut off in the middle, otherwise this would prove nothing.
    const repeated = receiver.received.length - emitted
    process.stdout.write(`${kills} kills, ${emitted} events, ${repeated} sent again\n`)
    expect(repeated).toBeGreaterThan(0)
    await scene.close()
  })
})
