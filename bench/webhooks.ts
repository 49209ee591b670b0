/**
 * Deliveries per second from the committed event to the recorded answer, over a bare undici loop with the same concurrency
 * that signs and posts the same bytes and commits one row each. Nine endpoints while the tenth hangs. What a delivery costs
 * beside a million undelivered events of inactive endpoints. Memory while 64 endpoints answer without end. Medians of
 * alternating rounds; the receiver is a process of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent } from 'undici'
import { createWebhook } from '../src/capabilities/webhooks/webhooks.ts'
import { createWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { sql } from '../src/db/sql.ts'
import { emit, emitted } from '../src/events/emit.ts'
import { newSecret, signatureHeaders } from '../src/lib/webhook-signatures.ts'
import { loops } from '../src/lists/loops.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { fsyncMs, number, quantile, row, verdict, withInstance } from './harness.ts'

const concurrency = 8
const each = 2_000
const rounds = 3
const inactive = 1_000_000
const flooding = 64
const mb = 1024 * 1024

const data = {
  account_id: 'acc_bench',
  chat_id: 'platform:chat:1',
  message: { id: '1', text: 'Is it there? '.repeat(10) },
}

await withInstance(
  async (app, data_dir) => {
    const { child, address } = await openReceiver()
    const worker = await assembleWorker(app, { platforms: new Map(), directory: data_dir, loops })
    const running = runWorker(app, worker)
    try {
      row('fsync, median', `${number(fsyncMs(data_dir), 2)} ms`)
      await measureRate(app, address)
      await measureHanging(app, address)
      await measureInactive(app, address)
      await measureMemory(app, address)
    } finally {
      await running.stop()
      child.kill()
    }
  },
  { env: { PARLEY_WEBHOOK_ALLOW: '127.0.0.1' } },
)

async function openReceiver(): Promise<{ child: ChildProcess; address: string }> {
  const file = join(import.meta.dirname, 'processes', 'receiver.ts')
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise<string>((resolve) =>
    child.stdout.once('data', (text) => resolve(String(text).trim())),
  )
  return { child, address: `http://127.0.0.1:${port}` }
}

/** Creates a workspace with one endpoint at each of these paths. */
async function workspaceWith(app: OpenApp, address: string, paths: readonly string[]): Promise<string> {
  const { id: workspace_id } = await createWorkspace(app, 'system', { name: 'Bench' })
  await app.db.transaction(async (tx) => {
    for (const path of paths) await createWebhook(app, tx, 'system', { workspace_id, url: address + path })
  })
  return workspace_id
}

async function emitMany(app: OpenApp, workspace_id: string, count: number): Promise<void> {
  const event = { type: 'message.received', occurred_at: null, data } as const
  await app.db.transaction((tx) =>
    emit(
      tx,
      workspace_id,
      Array.from({ length: count }, () => event),
    ),
  )
  app.wake.signal(emitted)
}

/** Waits until the endpoints at `/hook` have everything; returns seconds. */
async function deliver(
  app: OpenApp,
  workspace_id: string,
  { count, path = '/hook' }: { count: number; path?: string },
) {
  const left = () =>
    app.db.one<{ left: number }>(sql`
      select coalesce(sum(s.sequence - w.position + (
        select count(*) from webhook_deliveries d where d.webhook_id = w.id and d.state = 'pending')), 0)::int as left
      from webhooks w join event_sequences s using (workspace_id)
      where w.workspace_id = ${workspace_id} and w.active and w.url like ${`%${path}`}`)
  const startedAt = performance.now()
  await emitMany(app, workspace_id, count)
  while ((await app.db.one<{ some: boolean }>(sql`select exists (select from outbox) as some`)).some)
    await sleep(5)
  while ((await left()).left > 0) await sleep(30)
  return (performance.now() - startedAt) / 1000
}

async function measureRate(app: OpenApp, address: string): Promise<void> {
  await app.db.pool.query(
    'create table bare_rows (id bigint generated always as identity primary key, status int, at timestamptz)',
  )
  const workspace_id = await workspaceWith(app, address, ['/hook'])
  const [ours, bare]: [number[], number[]] = [[], []]
  await deliver(app, workspace_id, { count: 200 })
  await bareLoop(app, address, 200)
  for (let round = 0; round < rounds; round++) {
    bare.push(each / (await bareLoop(app, address, each)))
    ours.push(each / (await deliver(app, workspace_id, { count: each })))
  }
  row('bare loop: signed, posted, one committed row each', `${number(quantile(bare, 0.5))} /s`)
  row('deliveries, from committed event to recorded answer', `${number(quantile(ours, 0.5))} /s`)
  verdict('deliveries over the bare loop', quantile(ours, 0.5) / quantile(bare, 0.5), { least: 0.6 })
}

/** Returns seconds. */
async function bareLoop(app: OpenApp, address: string, count: number): Promise<number> {
  const agent = new Agent()
  const secret = newSecret()
  const body = JSON.stringify({ id: 'evt_5f0c9a6e1f3b4d0c8a7e6b5d4c3f2a10', type: 'message.received', data })
  let left = count
  const one = async () => {
    while (left-- > 0) {
      const timestamp = Math.floor(Date.now() / 1000)
      const headers = signatureHeaders({ id: 'evt_1', timestamp, body }, [secret])
      const { statusCode, body: answer } = await agent.request({
        origin: address,
        path: '/hook',
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
      })
      await answer.dump()
      await app.db.run(sql`insert into bare_rows (status, at) values (${statusCode}, now())`)
    }
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: concurrency }, one))
  await agent.close()
  return (performance.now() - startedAt) / 1000
}

async function measureHanging(app: OpenApp, address: string): Promise<void> {
  const nine = Array.from({ length: 9 }, () => '/hook')
  const healthy = await workspaceWith(app, address, nine)
  const [alone, beside]: [number[], number[]] = [[], []]
  await deliver(app, healthy, { count: 100 })
  for (let round = 0; round < rounds; round++) {
    alone.push(await deliver(app, healthy, { count: each / 4 }))
    const hanging = await workspaceWith(app, address, [...nine, '/hang'])
    beside.push(await deliver(app, hanging, { count: each / 4 }))
    await app.db.run(sql`update webhooks set active = false where workspace_id = ${hanging}`)
  }
  verdict('nine endpoints beside one that hangs', quantile(alone, 0.5) / quantile(beside, 0.5), {
    least: 0.9,
  })
}

async function measureInactive(app: OpenApp, address: string): Promise<void> {
  const cost = async (workspace_id: string) => {
    await deliver(app, workspace_id, { count: 200 })
    const figures: { buffers: number; cpu: number }[] = []
    for (let round = 0; round < rounds; round++) {
      const before = await buffers(app)
      const cpu = process.cpuUsage()
      await deliver(app, workspace_id, { count: each })
      const { user, system } = process.cpuUsage(cpu)
      figures.push({ buffers: ((await buffers(app)) - before) / each, cpu: (user + system) / each })
    }
    return {
      buffers: quantile(
        figures.map((figure) => figure.buffers),
        0.5,
      ),
      cpu: quantile(
        figures.map((figure) => figure.cpu),
        0.5,
      ),
    }
  }
  const none = await cost(await workspaceWith(app, address, ['/hook']))
  const workspace_id = await workspaceWith(
    app,
    address,
    Array.from({ length: 9 }, () => '/hook'),
  )
  await app.db.run(sql`update webhooks set active = false where workspace_id = ${workspace_id}`)
  await app.db.pool.query('set statement_timeout = 0')
  for (let from = 0; from < inactive; from += 50_000) {
    await app.db.run(sql`
      insert into events (workspace_id, sequence, id, type, occurred_at, data)
      select ${workspace_id}, n, 'evt_' || md5(n::text), 'message.received', now(), ${JSON.stringify(data)}::json
      from generate_series(${from + 1}::int, ${from + 50_000}::int) n`)
  }
  await app.db.run(
    sql`insert into event_sequences (workspace_id, sequence) values (${workspace_id}, ${inactive})`,
  )
  await app.db.transaction((tx) => createWebhook(app, tx, 'system', { workspace_id, url: `${address}/hook` }))
  await app.db.pool.query('vacuum analyze events')
  const many = await cost(workspace_id)
  row('buffers a delivery, and beside a million', `${number(none.buffers)}, ${number(many.buffers)}`)
  row('CPU a delivery in µs, and beside a million', `${number(none.cpu)}, ${number(many.cpu)}`)
  verdict('buffers beside a million undelivered events', many.buffers / none.buffers, { most: 1.2 })
  verdict('CPU beside a million undelivered events', many.cpu / none.cpu, { most: 1.2 })
}

async function buffers(app: OpenApp): Promise<number> {
  // Backends report their work once they are idle, at most every second.
  await sleep(1_500)
  const { blocks } = await app.db.one<{ blocks: number }>(sql`
    select (blks_hit + blks_read)::float8 as blocks from pg_stat_database where datname = current_database()`)
  return blocks
}

/**
 * What 10 GB of answer cost each of 64 endpoints that take 8 deliveries at once. The base is the same number of warmed-up
 * endpoints and deliveries with short answers, because 512 calls at once have a cost of their own. Both are the peak while they
 * ran.
 */
async function measureMemory(app: OpenApp, address: string): Promise<void> {
  const short = await manyWorkspaces(app, address, '/hook')
  for (let round = 0; round < rounds; round++) await mostMemory(app, short, '/hook')
  const base = await mostMemory(app, short, '/hook')
  const endless = await mostMemory(app, await manyWorkspaces(app, address, '/flood'), '/flood')
  const shown = (of: Memory) => `${number(of.rss / mb)} (${number(of.arrayBuffers / mb)}) MB`
  row(`RSS (and buffers) at most, ${flooding} endpoints, short answers`, shown(base))
  row('the same with 10 GB each', shown(endless))
  verdict('MB more with endless answers', (endless.rss - base.rss) / mb, { most: 32 })
}

type Memory = Pick<NodeJS.MemoryUsage, 'rss' | 'arrayBuffers'>

async function manyWorkspaces(app: OpenApp, address: string, path: string): Promise<string[]> {
  const paths = Array.from({ length: 8 }, () => path)
  const made: string[] = []
  while (made.length < flooding / paths.length) made.push(await workspaceWith(app, address, paths))
  return made
}

/** The process's peak memory while every endpoint gets 16 deliveries. */
async function mostMemory(app: OpenApp, workspaces: readonly string[], path: string): Promise<Memory> {
  const most = { rss: 0, arrayBuffers: 0 }
  const timer = setInterval(() => {
    const { rss, arrayBuffers } = process.memoryUsage()
    most.rss = Math.max(most.rss, rss)
    most.arrayBuffers = Math.max(most.arrayBuffers, arrayBuffers)
  }, 20)
  await Promise.all(workspaces.map((workspace_id) => deliver(app, workspace_id, { count: 16, path })))
  clearInterval(timer)
  return most
}
