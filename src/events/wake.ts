/**
 * Wake-ups between processes and loops. They only shorten waiting: a woken loop queries the database as on every poll,
 * and the next poll makes up for a wake-up that was lost. Never sent inside a data transaction.
 */
import { EventEmitter } from 'node:events'
import type pg from 'pg'
import type { Topic, Wake } from '../app.ts'
import type { Database } from '../db/sql.ts'

const channel = 'parley_wake'
const batchMs = 3
const reconnectMs = 1_000

/** For a single process. */
export function localWake(): Wake {
  const emitter = new EventEmitter().setMaxListeners(0)
  return {
    signal: ({ topic }) => void emitter.emit(topic),
    on({ topic }, listener) {
      emitter.on(topic, listener)
      return () => void emitter.off(topic, listener)
    },
    async close() {},
  }
}

/** For several processes: topics travel by LISTEN and NOTIFY on a connection of their own. */
export function sharedWake(db: Database): Wake {
  return new SharedWake(db)
}

class SharedWake implements Wake {
  readonly on: Wake['on']
  readonly #db: Database
  readonly #local = localWake()
  /** Signalled but not sent yet; topics signalled within a few milliseconds share one notification. */
  readonly #pending = new Set<string>()
  #client: pg.Client | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false
  #sending = Promise.resolve()
  #connecting: Promise<void>

  constructor(db: Database) {
    this.#db = db
    this.on = this.#local.on
    this.#connecting = this.#connect()
  }

  signal(topic: Topic): void {
    this.#local.signal(topic)
    this.#pending.add(topic.topic)
    this.#timer ??= setTimeout(() => void this.#flush(), batchMs)
  }

  /** Sends what is still pending first: a command ends right after its change. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#connecting
    await this.#flush()
    await this.#client?.end().catch(() => {})
  }

  async #connect(): Promise<void> {
    let next: pg.Client | undefined
    try {
      next = await this.#db.client()
      next.once('end', () => this.#retry())
      next.on('notification', ({ payload = '' }) => {
        for (const topic of payload.split(' ')) this.#local.signal({ topic })
      })
      await next.query(`listen ${channel}`)
      this.#client = next
      await this.#flush()
    } catch {
      // An open connection reports its own end.
      if (next) void next.end().catch(() => {})
      else this.#retry()
    }
  }

  #retry(): void {
    this.#client = undefined
    if (this.#closed) return
    setTimeout(() => {
      if (!this.#closed) this.#connecting = this.#connect()
    }, reconnectMs).unref()
  }

  /** One notification at a time; what is signalled meanwhile goes into the next. */
  #flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending = this.#sending.then(() => this.#notify())
    return this.#sending
  }

  async #notify(): Promise<void> {
    if (!this.#client || this.#pending.size === 0) return
    const topics = [...this.#pending].join(' ')
    this.#pending.clear()
    // If it fails, the loops find the work at their next poll.
    await this.#client.query('select pg_notify($1, $2)', [channel, topics]).catch(() => {})
  }
}
