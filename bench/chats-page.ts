/**
 * What a page costs through the whole service, in CPU of Node and PostgreSQL together, against the sum of a bare
 * Fastify that answers the same bytes and a bare pool that asks the same SQL. Then how that cost grows.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join, resolve } from 'node:path'
import { chatPage } from '../src/capabilities/chats/read.ts'
import { contactPage } from '../src/capabilities/contacts/read.ts'
import { setGates } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { messagePage } from '../src/capabilities/messages/read.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { type Account, scopes } from '../src/contract.ts'
import { type Sql, sql } from '../src/db/sql.ts'
import { benchDirectory, embeddedConnection, openBench, requireData } from './data.ts'
import { number, quantile, row, verdict, withInstance } from './harness.ts'

const requests = 4_000
const clients = 8
const agents = new Map<string, Agent>()

const prepared = await prepare()
const service = await start('service')
try {
  for (const kind of prepared.kinds) await compare(kind)
  await walk(prepared.kinds[0] as Kind)
} finally {
  await stop(service)
}

interface Kind {
  readonly name: string
  readonly path: string
  readonly statement: Sql
}

function firstPage(account: Account): Sql {
  return chatPage([account], { filters: {}, after: undefined, limit: 51 })
}

interface Large {
  readonly account: Account
  readonly workspace_id: string
  readonly user_id: string
}

/** The data, a key to ask with, the statements, and how many buffers they touch near and far. */
async function prepare(): Promise<{ key: string; kinds: readonly Kind[] }> {
  const app = await openBench()
  try {
    await requireData(app)
    await setGates(app, 'system', { names: ['all', 'extended'], enabled: true })
    const large = await pick('Large')
    const small = await pick('Small')
    const { workspace_id, user_id, account } = large
    await app.db.run(sql`update keys set revoked_at = now() where name = 'chats-page'`)
    const { key } = await createKey(app, 'system', { workspace_id, user_id, name: 'chats-page', scopes })
    const kinds: Kind[] = [
      {
        name: 'chats',
        path: `/chats?limit=50&account_id=${account.id}`,
        statement: firstPage(account),
      },
      {
        name: 'messages',
        path: `/chats/platform:chat:1/messages?limit=50&account_id=${account.id}`,
        statement: messagePage(account.id, '1', { limit: 51 }),
      },
      {
        name: 'contacts',
        path: `/contacts?limit=50&account_id=${account.id}`,
        statement: contactPage([account], { limit: 51 }),
      },
    ]
    const first = await buffers(app, kinds[0]?.statement as Sql)
    const far = await buffers(app, await farPage(account))
    const crowded = await buffers(app, firstPage(small.account))
    const alone = await buffersAlone()
    row('buffers: page 1, page 1,000, small, small alone', `${first}, ${far}, ${crowded}, ${alone}`)
    verdict('buffers of page 1,000 over page 1', far / first, { most: 1.1 })
    verdict('buffers of a page among 1,000,000 chats over 10,000', first / alone, { most: 1.2 })
    verdict('buffers with 200 other workspaces over none', crowded / alone, { most: 1.1 })
    return { key, kinds }
  } finally {
    await app.close()
  }

  /** The same page in an instance that holds nothing but the small workspace. */
  async function buffersAlone(): Promise<number> {
    let touched = 0
    await withInstance(async (other) => {
      await requireData(other, { alone: true })
      const { account } = await pick('Small', other)
      touched = await buffers(other, firstPage(account))
    })
    return touched
  }

  async function pick(name: string, from: OpenApp = app): Promise<Large> {
    const found = await from.db.one<{ id: string; workspace_id: string; user_id: string }>(sql`
      select a.id, a.workspace_id, m.user_id from workspaces w join accounts a on a.workspace_id = w.id
      join memberships m on m.workspace_id = w.id
      where w.name = ${name} order by a.created_at, a.id limit 1`)
    const account: Account = {
      id: found.id,
      provider: 'sandbox',
      type: 'MESSAGING',
      name: '',
      status: 'READY',
    }
    return { account, workspace_id: found.workspace_id, user_id: found.user_id }
  }

  async function farPage(account: Account): Promise<Sql> {
    const at = await app.db.one<{ at: string; chat_id: string }>(sql`
      select last_message_at::text as at, chat_id from chats where account_id = ${account.id}
      order by last_message_at desc, chat_id desc offset 50000 limit 1`)
    return chatPage([account], { filters: {}, after: [at.at, at.chat_id, account.id], limit: 51 })
  }

  async function buffers({ db }: OpenApp, { text, values }: Sql): Promise<number> {
    const explain = `explain (analyze, buffers, format json) ${text}`
    await db.pool.query(explain, values as unknown[])
    const { rows } = await db.pool.query(explain, values as unknown[])
    const plan = rows[0]['QUERY PLAN'][0].Plan
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
  }
}

async function compare({ name, path, statement }: Kind): Promise<void> {
  const address = `${service.address}/api/v1${path}`
  const { body } = await get(address)
  await load(address, 500)
  const whole = await measure([service.child.pid], () => load(address, requests))
  const http = await start('bare-http', { BENCH_BODY: body })
  await load(http.address, 500)
  const bareHttp = await measure([http.child.pid], () => load(http.address, requests))
  await stop(http)
  const pool = await start('bare-sql')
  const job = { connection: embeddedConnection(), ...statement, clients }
  await ask(pool.child, { ...job, count: 500 })
  const bareSql = await measure([pool.child.pid], () => ask(pool.child, { ...job, count: requests }))
  pool.child.kill()
  const { times = [] } = whole.result
  row(`${name}: bytes of a page`, number(body.length))
  row(`${name}: CPU of a request, bare Fastify`, `${number((bareHttp.cpuMs / requests) * 1000)} µs`)
  row(`${name}: CPU of a request, bare pool`, `${number((bareSql.cpuMs / requests) * 1000)} µs`)
  row(`${name}: CPU of a request, whole service`, `${number((whole.cpuMs / requests) * 1000)} µs`)
  row(
    `${name}: requests/s and p99`,
    `${number(requests / (whole.wallMs / 1000))}/s, ${number(quantile(times, 0.99), 1)} ms`,
  )
  verdict(`${name}: whole over the sum of both`, whole.cpuMs / (bareHttp.cpuMs + bareSql.cpuMs), {
    most: 1.4,
  })
}

/** Every chat of the workspace, page by page: the server's memory stays where it was. */
async function walk({ path }: Kind): Promise<void> {
  const before = rssOf(service.child.pid)
  let most = before
  let seen = 0
  const first = `${service.address}/api/v1${path.replace('limit=50', 'limit=100').replace(/&account_id=\w+/, '')}`
  for (let cursor: string | null = '', pages = 0; cursor !== null; pages++) {
    const { body } = await get(cursor === '' ? first : `${first}&cursor=${cursor}`)
    const page = JSON.parse(body)
    seen += page.chats.length
    cursor = page.next_cursor
    if (pages % 100 === 0) most = Math.max(most, rssOf(service.child.pid))
  }
  row('chats walked through the API', number(seen))
  verdict('growth of the server while walking, MB', (most - before) / 1_048_576, { most: 60 })
}

interface Running {
  readonly child: ChildProcess
  readonly address: string
}

async function start(name: string, env: Record<string, string> = {}): Promise<Running> {
  const child = fork(join(import.meta.dirname, 'processes', `${name}.ts`), {
    env: { ...process.env, ...env },
  })
  const [message] = await once(child, 'message')
  return { child, address: message.address }
}

async function stop({ child }: Running): Promise<void> {
  child.send('stop')
  await once(child, 'exit')
}

async function ask(child: ChildProcess, job: object): Promise<{ times?: number[] }> {
  child.send(job)
  await once(child, 'message')
  return {}
}

/** CPU of these processes and of every PostgreSQL process, while the work is done. */
async function measure<T>(pids: readonly (number | undefined)[], work: () => Promise<T>) {
  const watched = () => [...pids.map(Number), ...postgresPids()]
  const before = new Map(watched().map((pid) => [pid, cpuMsOf(pid)]))
  const startedAt = performance.now()
  const result = await work()
  const wallMs = performance.now() - startedAt
  const cpuMs = watched().reduce((total, pid) => total + cpuMsOf(pid) - (before.get(pid) ?? 0), 0)
  return { result, wallMs, cpuMs }
}

/** The server that the service has opened, and its backends: another PostgreSQL on the machine does not count. */
function postgresPids(): number[] {
  const postmaster = Number(
    readFileSync(join(resolve(benchDirectory), 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0],
  )
  const backends = readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && statOf(name)[1] === String(postmaster),
  )
  return [postmaster, ...backends.map(Number)]
}

/** What follows the name: state, parent, … */
function statOf(pid: number | string): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  } catch {
    return []
  }
}

/** Ticks of a hundredth of a second, with those of its ended children. */
function cpuMsOf(pid: number): number {
  const fields = statOf(pid)
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 10
}

function rssOf(pid: number | undefined): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

async function load(url: string, count: number): Promise<{ times: number[] }> {
  const times: number[] = []
  let left = count
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (left-- > 0) {
        const startedAt = performance.now()
        const { status } = await get(url)
        if (status !== 200) throw new Error(`${url} answered ${status}.`)
        times.push(performance.now() - startedAt)
      }
    }),
  )
  return { times }
}

function get(url: string): Promise<{ status: number; body: string }> {
  const { origin } = new URL(url)
  const agent = agents.get(origin) ?? new Agent({ keepAlive: true, maxSockets: clients })
  agents.set(origin, agent)
  return new Promise((resolve, reject) => {
    request(url, { agent, headers: { authorization: `Bearer ${prepared.key}` } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
      )
    })
      .on('error', reject)
      .end()
  })
}
