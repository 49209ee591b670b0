/**
 * Wake-ups between processes and loops. They only save waiting: whoever is woken looks for itself, and a
 * poll finds what a lost wake-up missed. Never sent inside a data transaction.
 */
import { EventEmitter } from 'node:events'
import type pg from 'pg'
import type { Topic, Wake } from '../app.ts'
import type { Database } from '../db/sql.ts'

const channel = 'parley_wake'
const batchMs = 3
const reconnectMs = 1_000

/** One process: no more than an emitter. */
export function localWake(): Wake {
  const emitter = new EventEmitter().setMaxListeners(0)
  return {
    signal: (topic) => void emitter.emit(topic),
    on(topic, listener) {
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
    if (closed) return
    try {
      const next = await db.client()
      next.on('notification', ({ payload = '' }) => {
        for (const topic of payload.split(' ')) local.signal(topic as Topic)
      })
      next.once('end', () => retry())
      await next.query(`listen ${channel}`)
      client = next
    } catch {
      retry()
    }
  }

  function retry(): void {
    client = undefined
    if (!closed) setTimeout(connect, reconnectMs).unref()
  }

  function flush(): void {
    timer = undefined
    const topics = [...pending].join(' ')
    pending.clear()
    // A notification that fails is made up for by the poll.
    client?.query('select pg_notify($1, $2)', [channel, topics]).catch(() => {})
  }

  void connect()
  return {
    signal(topic) {
      local.signal(topic)
      pending.add(topic)
      timer ??= setTimeout(flush, batchMs)
    },
    on: local.on,
    async close() {
      closed = true
      clearTimeout(timer)
      await client?.end().catch(() => {})
    },
  }
}
