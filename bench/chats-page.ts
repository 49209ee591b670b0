/**
 * What a page costs through the whole service, in CPU of Node and PostgreSQL together, against the sum of a bare Fastify that
 * answers the same bytes and a bare pool that runs the same SQL.
 */
import { setGates } from '../src/capabilities/gates/gates.ts'
import { sql } from '../src/db/sql.ts'
import { benchDirectory, openBench, requireData } from './data.ts'
import { number, quantile, row, verdict } from './harness.ts'
import { ask, clients, cpuOf, get, load, makeReader, rssOf, start, statementsOf, stop } from './load.ts'

const rounds = 30
const requests = 200
/** Node's compiler needs some ten thousand requests to finish with the service; this is more. */
const warmup = 12_000

const { key, account_id } = await prepare()
const service = await start('service')
const fastify = await start('bare-http')
const pool = await start('bare-sql')
try {
  await compare('chats', '/chats?limit=50')
  await compare('chats of an account', `/chats?limit=50&account_id=${account_id}`)
  await compare('messages', `/chats/platform:chat:1/messages?limit=50&account_id=${account_id}`)
  await compare('contacts', `/contacts?limit=50&account_id=${account_id}`)
  await walk()
} finally {
  for (const process of [pool, fastify, service]) await stop(process)
}

async function prepare() {
  const app = await openBench()
  try {
    await requireData(app)
    await setGates(app, 'system', { names: ['all', 'extended'], enabled: true })
    const reader = await makeReader(app, 'Large')
    // The data was made without a platform, so it is complete.
    await app.db.run(sql`
      insert into chat_sync (account_id, chat_id, workspace_id, complete)
      select account_id, chat_id, workspace_id, true from chats where account_id = ${reader.account_id} and chat_id = 1
      on conflict (account_id, chat_id) do update set complete = true`)
    return reader
  } finally {
    await app.close()
  }
}

/** All three in turn, several times, so that a busy moment of the machine affects each of them. */
async function compare(name: string, path: string): Promise<void> {
  const url = `${service.address}/api/v1${path}`
  const answer = await get(url, key)
  const { body } = answer
  await ask(fastify, answer)
  const statements = await statementsOf(service, url, key)
  const askPool = (count: number) => ask(pool, { statements, clients, count })
  const times: number[] = []
  const cpu = { whole: 0, http: 0, sql: 0 }
  let wallMs = 0
  for (let round = 0; round <= rounds; round++) {
    const count = round === 0 ? warmup : requests
    const startedAt = performance.now()
    const whole = await spent(service, async () => times.push(...(await load(url, key, count))))
    const took = performance.now() - startedAt
    const http = await spent(fastify, () => load(fastify.address, key, count))
    const sql = await spent(pool, () => askPool(count))
    if (round === 0) {
      times.length = 0
      continue
    }
    wallMs += took
    cpu.whole += whole
    cpu.http += http
    cpu.sql += sql
  }
  const total = rounds * requests
  const each = (ms: number) => `${number((ms / total) * 1000)} µs`
  row(`${name}: bytes of a page, statements`, `${number(Buffer.byteLength(body))}, ${statements.length}`)
  row(`${name}: CPU of a request, bare Fastify`, each(cpu.http))
  row(`${name}: CPU of a request, bare pool`, each(cpu.sql))
  row(`${name}: CPU of a request, whole service`, each(cpu.whole))
  row(
    `${name}: requests/s and p99`,
    `${number(total / (wallMs / 1000))}/s, ${number(quantile(times, 0.99), 1)} ms`,
  )
  verdict(`${name}: whole over the sum of both`, cpu.whole / (cpu.http + cpu.sql), { most: 1.4 })
}

function spent(process: typeof service, work: () => Promise<unknown>): Promise<number> {
  return cpuOf({ processes: [process], data_dir: benchDirectory }, work)
}

/** Reads every chat of the workspace, page by page: the server's memory must not grow. */
async function walk(): Promise<void> {
  const before = rssOf(service)
  let most = before
  let seen = 0
  const first = `${service.address}/api/v1/chats?limit=100`
  for (let cursor: string | null = '', pages = 0; cursor !== null; pages++) {
    const { body } = await get(cursor === '' ? first : `${first}&cursor=${cursor}`, key)
    const page = JSON.parse(body)
    seen += page.chats.length
    cursor = page.next_cursor
    if (pages % 100 === 0) most = Math.max(most, rssOf(service))
  }
  row('chats walked through the API', number(seen))
  verdict('growth of the server while walking, MB', (most - before) / 1_048_576, { most: 60 })
}
