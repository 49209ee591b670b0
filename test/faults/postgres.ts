/**
 * The plant's own PostgreSQL, which can be crashed, stopped, copied and restored. After a crash it restarts by itself, like a
 * supervised server; after `stop` only when it is started.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Embedded, openEmbedded } from '../../src/db/embedded.ts'
import type { Connection } from '../../src/db/pool.ts'
import type { Server } from '../harness/cluster.ts'

/** For a hang: a busy machine notices a crash late. */
const startAttemptsMax = 1_000
/** More than any server of a plant allows. */
const connectionsMax = 300
const yes = () => true
const no = () => false

export class Postgres {
  readonly #data_dir: string
  #server: Embedded | undefined
  /** The same at every start. */
  #connection: Connection = {}
  #starting: Promise<void> | undefined

  constructor(data_dir: string) {
    this.#data_dir = data_dir
  }

  /** Where its socket is, and Parley's role, for a pooler before it. */
  get cluster(): Server {
    const { host, user, password } = this.#connection
    return { host: String(host), user: String(user), password: String(password) }
  }

  /** Its socket, for clients that speak the protocol themselves. */
  get socket(): string {
    return join(String(this.#connection.host), '.s.PGSQL.5432')
  }

  /** The address of a database: over the socket, or over a port of 127.0.0.1 that forwards to it. */
  url(database: string, { name, port }: { name: string; port?: number | undefined }): string {
    const { host, user, password } = this.#connection
    const query = new URLSearchParams({ application_name: name })
    if (port === undefined) query.set('host', String(host))
    return `postgres://${user}:${password}@127.0.0.1:${port ?? 5432}/${database}?${query}`
  }

  async start(): Promise<void> {
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined
    })
    await this.#starting
  }

  async #start(): Promise<void> {
    for (let attempt = 1; !this.#server; attempt++) {
      try {
        this.#server = await openEmbedded({ data_dir: this.#data_dir, claim: 'service' })
      } catch (error) {
        // The remains of a killed server may hold its shared memory for a moment.
        if (attempt === startAttemptsMax) throw error
        await sleep(100)
      }
    }
    const server = this.#server
    this.#connection = server.connection
    void server.lost.then(async () => {
      if (this.#server !== server) return
      this.#server = undefined
      await this.start()
    })
  }

  /** Shuts down cleanly. Nothing is left to recover, so the files can be copied. */
  async stop(): Promise<void> {
    await this.#starting
    const server = this.#server
    this.#server = undefined
    await server?.close()
  }

  /** An immediate shutdown (SIGQUIT) without a restart. Resolves when its processes are gone. */
  async halt(): Promise<void> {
    await this.#starting
    const server = this.#server
    if (!server) return
    const pid = await this.#pid()
    const processes = [pid, ...(await childrenOf(pid))]
    this.#server = undefined
    kill(pid, 'SIGQUIT')
    // Without a delay: a lost server restarts unless it is being closed.
    await server.close()
    while (processes.some(isAlive)) await sleep(20)
  }

  /** SIGKILL takes every process at once, like a power cut; SIGQUIT is an immediate shutdown. */
  async crash(signal: 'SIGKILL' | 'SIGQUIT' = 'SIGKILL'): Promise<void> {
    const pid = await this.#pid()
    const children = signal === 'SIGKILL' ? await childrenOf(pid) : []
    for (const each of [pid, ...children]) kill(each, signal)
  }

  /** Freezes all its processes, with every connection open. */
  async freeze(ms: number): Promise<void> {
    const pid = await this.#pid()
    // The postmaster first, so that it starts no new processes meanwhile.
    kill(pid, 'SIGSTOP')
    await this.freezeProcesses([pid, ...(await childrenOf(pid))], ms)
  }

  async freezeProcesses(pids: readonly number[], ms: number): Promise<void> {
    for (const pid of pids) kill(pid, 'SIGSTOP')
    try {
      await sleep(ms)
    } finally {
      for (const pid of pids) kill(pid, 'SIGCONT')
    }
  }

  /**
   * Runs `work` while the server and these other processes are frozen: a copy of their files made meanwhile equals what the disk
   * would hold after a power cut, and a snapshot of the file system.
   */
  async whileStill(others: readonly number[], work: () => Promise<void>): Promise<void> {
    for (const pid of others) kill(pid, 'SIGSTOP')
    const pid = await this.#pid()
    kill(pid, 'SIGSTOP')
    const pids = [...others, pid, ...(await childrenOf(pid))]
    for (const each of pids) kill(each, 'SIGSTOP')
    try {
      await Promise.all(pids.map(untilStopped))
      await work()
    } finally {
      for (const each of pids) kill(each, 'SIGCONT')
    }
  }

  /** Takes every connection, so that no other client gets a new one. */
  async exhaust(database: string, ms: number): Promise<void> {
    const clients: pg.Client[] = []
    const take = async () => {
      const client = new pg.Client({ ...this.#connection, database, connectionTimeoutMillis: 2_000 })
      client.on('error', () => {})
      clients.push(client)
      await client.connect()
    }
    try {
      // Also take the connections that others close meanwhile.
      const until = performance.now() + ms
      while (performance.now() < until) {
        if (clients.length >= connectionsMax || !(await take().then(yes, no))) await sleep(50)
      }
    } finally {
      await Promise.all(clients.map((client) => client.end().catch(no)))
    }
  }

  /** Resolves once the database answers. */
  async untilUp(database: string): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      await this.start()
      const client = new pg.Client({ ...this.#connection, database, connectionTimeoutMillis: 2_000 })
      client.on('error', () => {})
      try {
        await client.connect()
        await client.query('select 1')
        return
      } catch (error) {
        if (attempt === startAttemptsMax) throw error
        await sleep(50)
      } finally {
        await client.end().catch(() => {})
      }
    }
  }

  /** Copies the files of the stopped server; `restore` replaces them with such a copy. */
  async copy(to: string): Promise<void> {
    if (this.#server) throw new Error('Only a stopped server can be copied.')
    await copyTree(join(this.#data_dir, 'postgres'), to)
  }

  /** Copies the files of the running server, and whatever `meanwhile` copies, while these processes are frozen. */
  async snapshot(
    to: string,
    others: readonly number[] = [],
    meanwhile: () => Promise<void> = async () => {},
  ): Promise<void> {
    await this.whileStill(others, async () => {
      await copyTree(join(this.#data_dir, 'postgres'), to)
      await meanwhile()
    })
    // It belongs to the server that ran then. PostgreSQL would check whether that process is alive.
    await rm(join(to, 'postmaster.pid'), { force: true })
  }

  async restore(from: string): Promise<void> {
    if (this.#server) throw new Error('Only a stopped server can be replaced.')
    const cluster = join(this.#data_dir, 'postgres')
    await rm(cluster, { recursive: true, force: true })
    await copyTree(from, cluster)
  }

  async #pid(): Promise<number> {
    const file = await readFile(join(this.#data_dir, 'postgres', 'postmaster.pid'), 'utf8')
    return Number(file.split('\n')[0])
  }
}

/** Keeps owners and modes: the server may run as another user. */
export async function copyTree(from: string, to: string): Promise<void> {
  const [code] = await once(spawn('cp', ['-a', from, to], { stdio: 'ignore' }), 'exit')
  if (code !== 0) throw new Error(`Copying to ${to} failed.`)
}

async function childrenOf(pid: number): Promise<number[]> {
  const list = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return list.split(' ').filter(Boolean).map(Number)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** A process stops some time after the signal to stop. */
async function untilStopped(pid: number): Promise<void> {
  for (;;) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    const state = stat.slice(stat.lastIndexOf(')') + 2)[0]
    if (state === undefined || 'TtZX'.includes(state)) return
    await sleep(1)
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // Already gone.
  }
}
