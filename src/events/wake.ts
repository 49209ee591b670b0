/**
 * Wake-ups between processes and loops. They only save waiting: whoever is woken looks for itself, and a
 * poll finds what a lost wake-up missed. Never sent inside a data transaction.
 */
import { EventEmitter } from 'node:events'
import type pg from 'pg'
import type { Wake } from '../app.ts'
import type { Database } from '../db/sql.ts'

const channel = 'parley_wake'
const batchMs = 3
const reconnectMs = 1_000

/** One process: no more than an emitter. */
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

/** Several processes: topics of a few milliseconds go out together, on a connection of their own. */
export function sharedWake(db: Database): Wake {
  const local = localWake()
  const pending = new Set<string>()
  let client: pg.Client | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false

  async function connect(): Promise<void> {
    let next: pg.Client | undefined
    try {
      next = await db.client()
      next.once('end', retry)
      next.on('notification', ({ payload = '' }) => {
        for (const topic of payload.split(' ')) local.signal({ topic })
      })
      await next.query(`listen ${channel}`)
      client = next
      await flush()
    } catch {
      // A connection that was made says so itself when it ends.
      if (next) void next.end().catch(() => {})
      else retry()
    }
  }

  function retry(): void {
    client = undefined
    if (closed) return
    setTimeout(() => {
      if (!closed) connecting = connect()
    }, reconnectMs).unref()
  }

  /** One notification at a time; what is signalled meanwhile goes with the next. */
  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    sending = sending.then(notify)
    return sending
  }

  async function notify(): Promise<void> {
    if (!client || pending.size === 0) return
    const topics = [...pending].join(' ')
    pending.clear()
    // A notification that fails is made up for by the poll.
    await client.query('select pg_notify($1, $2)', [channel, topics]).catch(() => {})
  }

  let sending = Promise.resolve()
  let connecting = connect()
  return {
    signal(topic) {
      local.signal(topic)
      pending.add(topic.topic)
      timer ??= setTimeout(flush, batchMs)
    },
    on: local.on,
    /** What was signalled last still goes out: a command that made a change ends right after it. */
    async close() {
      closed = true
      await connecting
      await flush()
      await client?.end().catch(() => {})
    },
  }
}
