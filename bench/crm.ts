/**
 * The CRM on the large data set. A million placements in one answer: how much the server's memory grows, and how fast it is
 * against a bare COPY of the same rows. Analytics against GET /me.
 */
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { setInterval } from 'node:timers'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { setGates } from '../src/capabilities/gates/gates.ts'
import { addStages } from '../src/capabilities/pipeline/pipeline.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { sql } from '../src/db/sql.ts'
import { benchDirectory, openBench, requireData } from './data.ts'
import { number, quantile, row, verdict } from './harness.ts'
import { connectionTo, load, makeReader, rssOf, start, stop } from './load.ts'

const { values } = parseArgs({ options: { scale: { type: 'string', default: '1' } } })
const rounds = 5
const requests = 400
const agent = new Agent({ keepAlive: true })

const { key, workspace_id } = await prepare()
const service = await start('service')
try {
  row('data', benchDirectory)
  await streaming()
  await onItsLastDay(analytics)
} finally {
  await stop(service)
}

async function withApp<T>(work: (app: OpenApp) => Promise<T>): Promise<T> {
  const app = await openBench()
  try {
    return await work(app)
  } finally {
    await app.close()
  }
}

function prepare() {
  return withApp(async (app) => {
    await requireData(app, { scale: Number(values.scale) })
    await setGates(app, 'system', { names: ['all', 'extended'], enabled: true })
    const { key } = await makeReader(app, 'Large')
    const workspace = await app.db.one<{ id: string }>(sql`select id from workspaces where name = 'Large'`)
    await fill(app, workspace.id)
    return { key, workspace_id: workspace.id }
  })
}

/** Makes what the slices maintain as they store, in one go for rows that were copied in. */
async function fill(app: OpenApp, id: string): Promise<void> {
  const { done } = await app.db.one<{ done: boolean }>(sql`
    select exists (select from stages where workspace_id = ${id} and key = 'won') as done`)
  if (done) return
  const client = await app.db.client()
  try {
    await client.query('set statement_timeout = 0')
    await client.query("set session_replication_role = 'replica'")
    await client.query(
      `update chats set placed_at = now(), stage_key = case when chat_id % 3 = 0 then 'won' else 'new' end
      where workspace_id = $1`,
      [id],
    )
    await client.query('delete from message_counts')
    await client.query(`
      insert into message_counts (workspace_id, span, at, account_id, received, sent)
      select workspace_id, case when grouping(day) = 0 then 'day' when grouping(quarter) = 0 then 'quarter' else 'all' end,
        coalesce(day, quarter, '-infinity'), account_id, count(*) filter (where not is_sender),
        count(*) filter (where is_sender)
      from (
        select workspace_id, account_id, is_sender, date_bin('1 day', sent_at, '2000-01-01 00:00Z') as day,
          date_bin('15 minutes', sent_at, '2000-01-01 00:00Z') as quarter
        from messages) stored
      group by grouping sets ((workspace_id, account_id), (workspace_id, account_id, day), (workspace_id, account_id, quarter))`)
    await client.query('vacuum analyze chats')
    await client.query('vacuum analyze message_counts')
  } finally {
    await client.end()
  }
  await app.db.transaction((tx) => addStages(tx, id, [{ key: 'won', label: 'Won' }]))
}

async function streaming(): Promise<void> {
  const client = new pg.Client(connectionTo(benchDirectory))
  client.on('error', () => {})
  await client.connect()
  // A server that has just started grows whatever it does.
  for (let page = 0; page < 200; page++) await read('/pipeline?limit=1000')
  const before = rssOf(service)
  let most = before
  const watch = setInterval(() => {
    most = Math.max(most, rssOf(service))
  }, 20)
  const streamed: number[] = []
  const copied: number[] = []
  let size = 0
  for (let round = 0; round < rounds; round++) {
    const stream = await timed(() => read('/pipeline'))
    const bare = await timed(() => copy(client))
    streamed.push(stream.rate)
    copied.push(bare.rate)
    size = stream.bytes
  }
  clearInterval(watch)
  const { rows } = await client.query(
    'select count(*)::int as count from chats where workspace_id = $1 and placed_at is not null',
    [workspace_id],
  )
  await client.end()
  row('placements, bytes of the answer', `${number(rows[0].count)}, ${number(size)}`)
  row('streamed, median', `${number(quantile(streamed, 0.5) / 1_048_576, 1)} MB/s`)
  row('bare COPY TO STDOUT, median', `${number(quantile(copied, 0.5) / 1_048_576, 1)} MB/s`)
  verdict('bytes/s streamed over copied', quantile(streamed, 0.5) / quantile(copied, 0.5), { least: 0.3 })
  verdict('growth of the server while streaming, MB', (most - before) / 1_048_576, { most: 40 })
}

async function timed(work: () => Promise<number>): Promise<{ bytes: number; rate: number }> {
  const startedAt = performance.now()
  const bytes = await work()
  return { bytes, rate: bytes / ((performance.now() - startedAt) / 1000) }
}

/** Counts the bytes and keeps none. */
function read(path: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const options = { agent, headers: { authorization: `Bearer ${key}` } }
  request(`${service.address}/api/v1${path}`, options, (response) => {
    let bytes = 0
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    response.on('end', () =>
      response.statusCode === 200 ? resolve(bytes) : reject(new Error(`${response.statusCode}`)),
    )
    response.on('error', reject)
  })
    .on('error', reject)
    .end()
  return promise
}

async function copy(client: pg.Client): Promise<number> {
  const stream = client.query(
    copyTo(`copy (select account_id, chat_id, stage_key from chats
      where workspace_id = '${workspace_id}' and placed_at is not null) to stdout`),
  )
  let bytes = 0
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  await once(stream, 'end')
  return bytes
}

/** The data ends on a past day. On that day its last week is as full as any. */
async function onItsLastDay(work: () => Promise<void>): Promise<void> {
  const client = new pg.Client(connectionTo(benchDirectory))
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query("insert into manual_clock (at) values ('2026-11-01T00:00:00Z')")
    await work()
  } finally {
    await client.query('delete from manual_clock')
    await client.end()
  }
}

async function analytics(): Promise<void> {
  const paths = { me: '/me', '7d': '/analytics?period=7d', all: '/analytics?period=all' }
  const times: Record<string, number[]> = { me: [], '7d': [], all: [] }
  for (let round = 0; round <= rounds; round++) {
    for (const [name, path] of Object.entries(paths)) {
      const took = await load(`${service.address}/api/v1${path}`, key, requests)
      // The first round warms up.
      if (round > 0) times[name]?.push(...took)
    }
  }
  const p95 = (name: string) => quantile(times[name] ?? [], 0.95)
  for (const name of Object.keys(paths)) row(`p95 of ${name}`, `${number(p95(name), 2)} ms`)
  verdict('analytics of 7d over GET /me, p95', p95('7d') / p95('me'), { most: 3 })
  verdict('analytics of all over GET /me, p95', p95('all') / p95('me'), { most: 3 })
}
