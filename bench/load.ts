/** Processes to put under load, the load, and its cost in CPU of Node and PostgreSQL together. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join, resolve } from 'node:path'
import { createKey } from '../src/capabilities/keys/keys.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { scopes } from '../src/contract.ts'
import { type Sql, sql } from '../src/db/sql.ts'

export const clients = 8

/** Makes a key to read with, and returns it with the workspace's first account. */
export async function makeReader(app: OpenApp, name: string): Promise<{ key: string; account_id: string }> {
  const { account_id, ...owner } = await app.db.one<
    Record<'account_id' | 'workspace_id' | 'user_id', string>
  >(sql`
    select a.id as account_id, a.workspace_id, m.user_id from workspaces w
    join accounts a on a.workspace_id = w.id join memberships m on m.workspace_id = w.id
    where w.name = ${name} order by a.created_at, a.id limit 1`)
  await app.db.run(sql`update keys set revoked_at = now()
    where workspace_id = ${owner.workspace_id} and name = 'reader' and revoked_at is null`)
  const { key } = await createKey(app, 'system', { ...owner, name: 'reader', scopes })
  return { key, account_id }
}

export interface Running {
  readonly child: ChildProcess
  readonly address: string
}

export async function start(name: string, env: Record<string, string> = {}): Promise<Running> {
  const child = fork(join(import.meta.dirname, 'processes', `${name}.ts`), {
    env: { ...process.env, ...env },
    // As `bin/parley.js` runs it.
    execArgv: ['--max-semi-space-size=16'],
  })
  const [message] = await once(child, 'message')
  return { child, address: message.address }
}

export async function stop({ child }: Running): Promise<void> {
  child.send('stop')
  await once(child, 'exit')
}

export async function ask<T>({ child }: Running, question: object | string): Promise<T> {
  child.send(question)
  const [answer] = await once(child, 'message')
  return answer
}

/** How another process connects to that directory's database while the service runs. */
export function connectionTo(data_dir: string) {
  const directory = resolve(data_dir)
  const password = readFileSync(join(directory, 'postgres.password'), 'utf8').trim()
  return { host: join(directory, 'socket'), user: 'parley', password, database: 'postgres' }
}

/** The statements that the service runs for a request: those that repeat with every repeated request. */
export async function statementsOf(service: Running, url: string, key: string): Promise<Sql[]> {
  const times = 5
  await ask(service, 'record')
  for (let at = 0; at < times; at++) await get(url, key)
  const { statements } = await ask<{ statements: Sql[] }>(service, 'recorded')
  const keyOf = (statement: Sql) => JSON.stringify(statement)
  const counts = Map.groupBy(statements, keyOf)
  return [...counts.values()].flatMap((same) => same.slice(0, Math.floor(same.length / times)))
}

/** The milliseconds of CPU that these processes and this PostgreSQL server use for the work. */
export async function cpuOf(
  { processes, data_dir }: { processes: readonly Running[]; data_dir: string },
  work: () => Promise<unknown>,
): Promise<number> {
  const total = () => {
    const own = processes.reduce((sum, { child }) => sum + cpuMsOf(Number(child.pid)), 0)
    return own + postgresMs(data_dir)
  }
  const before = total()
  await work()
  return total() - before
}

/** The server on that directory, its backends, and the backends that have ended. */
function postgresMs(data_dir: string): number {
  const file = readFileSync(join(resolve(data_dir), 'postgres', 'postmaster.pid'), 'utf8')
  const postmaster = Number(file.split('\n')[0])
  const backends = readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && statOf(name)[1] === String(postmaster),
  )
  return backends.reduce((sum, pid) => sum + cpuMsOf(pid), cpuMsOf(postmaster))
}

/** The fields after the name: state, parent, … */
function statOf(pid: number | string): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  } catch {
    return []
  }
}

/** Its threads, to the nanosecond, and its ended children, in ticks of a hundredth of a second. */
function cpuMsOf(pid: number | string): number {
  const children = statOf(pid)
    .slice(13, 15)
    .reduce((sum, ticks) => sum + Number(ticks) * 10, 0)
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    return threads.reduce((sum, thread) => sum + threadMs(pid, thread), children)
  } catch {
    return children
  }
}

function threadMs(pid: number | string, thread: string): number {
  return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6
}

export function rssOf({ child }: Running): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) * 1024
}

/**
 * Sends `count` requests from several clients at once; returns how long each took. The clients read no more of an answer than
 * necessary, because their CPU would distort the measurement.
 */
export async function load(
  url: string,
  key: string,
  count: number,
  { method = 'GET', headers = {}, body = '' }: Question = {},
): Promise<number[]> {
  const { hostname, port, host, pathname, search } = new URL(url)
  const length = body && { 'content-length': String(Buffer.byteLength(body)) }
  const lines = Object.entries({ host, authorization: `Bearer ${key}`, ...headers, ...length })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const question = `${method} ${pathname}${search} HTTP/1.1\r\n${head}\r\n${body}`
  const times: number[] = []
  let left = count
  await Promise.all(
    Array.from({ length: clients }, async () => {
      const socket = connect(Number(port), hostname)
      await once(socket, 'connect')
      while (left-- > 0) {
        const startedAt = performance.now()
        socket.write(question)
        await readAnswer(socket, url)
        times.push(performance.now() - startedAt)
      }
      socket.destroy()
    }),
  )
  return times
}

interface Question {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const endOfHead = '\r\n\r\n'
const endOfChunks = Buffer.from('\r\n0\r\n\r\n')

/** Reads as many bytes as the answer announces, or up to its last chunk if it announces none. */
function readAnswer(socket: Socket, url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let awaited: number | undefined
    let tail = Buffer.alloc(0)
    const settle = (error?: Error) => {
      socket.off('data', take).off('close', lose)
      if (error) reject(error)
      else resolve()
    }
    const lose = () => settle(new Error(`${url} closed the connection.`))
    const take = (chunk: Buffer) => {
      if (awaited === undefined) {
        const end = chunk.indexOf(endOfHead) + endOfHead.length
        const head = chunk.toString('latin1', 0, end)
        if (!head.startsWith('HTTP/1.1 200 ')) return settle(new Error(`${url} answered ${head}`))
        awaited = end + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.POSITIVE_INFINITY)
      }
      // The end may arrive in a packet of its own.
      tail = Buffer.concat([tail, chunk.subarray(-endOfChunks.length)]).subarray(-endOfChunks.length)
      if (awaited === Number.POSITIVE_INFINITY && tail.equals(endOfChunks)) return settle()
      awaited -= chunk.length
      if (awaited <= 0) settle()
    }
    socket.on('data', take).on('close', lose)
  })
}

const agent = new Agent({ keepAlive: true, maxSockets: clients })

export interface Answer {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The headers that Node adds by itself. */
const ownHeaders = ['date', 'connection', 'keep-alive', 'content-length']

export function get(url: string, key: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request(url, { agent, headers: { authorization: `Bearer ${key}` } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () => {
        const headers = Object.entries(response.headers).filter(([name]) => !ownHeaders.includes(name))
        resolve({
          headers: Object.fromEntries(headers) as Answer['headers'],
          body: Buffer.concat(chunks).toString(),
        })
      })
    })
      .on('error', reject)
      .end()
  })
}
