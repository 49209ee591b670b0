/**
 * Wake-ups between processes and loops. They only shorten waiting: a woken loop queries the database as on every poll,
 * and the next poll makes up for a wake-up that was lost. Never sent inside a data transaction.
 */

import { randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type pg from 'pg'
import type { Topic, Wake } from '../app.ts'
import type { Database } from '../db/sql.ts'
import type { Mark } from '../mark.ts'
import { MarkBatch, readNotification, toNotifications } from './mark-batch.ts'

const channel = 'parley_wake'
const marksChannel = 'parley_marks'
const batchMs = 3
/** Pages read at most once a second, so marks may gather for longer than wake-ups. */
const marksMs = 25
/** No topic has this name: topics are words of ours. */
const marksEvent = Symbol('marks')
const reconnectMs = 1_000

/** For a single process. */
export function localWake(): Wake {
  return new LocalWake()
}

class LocalWake implements Wake {
  readonly #emitter = new EventEmitter().setMaxListeners(0)
  readonly #marked = new MarkBatch()
  readonly #passOn: (marks: readonly Mark[]) => void
  #timer: NodeJS.Timeout | undefined

  /** `passOn` gets what this process has marked, not what it has received. */
  constructor(passOn: (marks: readonly Mark[]) => void = () => {}) {
    this.#passOn = passOn
  }

  signal({ topic }: Topic): void {
    this.#emitter.emit(topic)
  }

  on({ topic }: Topic, listener: () => void): () => void {
    this.#emitter.on(topic, listener)
    return () => void this.#emitter.off(topic, listener)
  }

  mark(...marks: readonly Mark[]): void {
    for (const mark of marks) this.#marked.add(mark)
    if (marks.length > 0) this.#timer ??= setTimeout(() => this.flushMarks(), marksMs)
  }

  onMarks(listener: (marks: readonly Mark[]) => void): () => void {
    this.#emitter.on(marksEvent, listener)
    return () => void this.#emitter.off(marksEvent, listener)
  }

  deliver(marks: readonly Mark[]): void {
    this.#emitter.emit(marksEvent, marks)
  }

  flushMarks(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const marks = this.#marked.take()
    if (marks.length === 0) return
    this.deliver(marks)
    this.#passOn(marks)
  }

  async close(): Promise<void> {
    this.flushMarks()
  }
}

/**
 * For several processes: topics travel by LISTEN and NOTIFY on a connection of their own. One that does not send still
 * receives: on an embedded database, where the service is alone but for the commands of a terminal.
 */
export function sharedWake(db: Database, options: WakeOptions = {}): NamedWake {
  return new SharedWake(db, options)
}

export interface NamedWake extends Wake {
  /** Changes the name of its connection, which others read. */
  rename(name: string): Promise<void>
}

interface WakeOptions {
  readonly sends?: boolean
  /** The name of its connection, if it belongs to a process of the service and not to a command. */
  readonly name?: string
}

class SharedWake implements NamedWake {
  readonly on: Wake['on']
  readonly onMarks: Wake['onMarks']
  readonly #db: Database
  readonly #sends: boolean
  #name: string | undefined
  readonly #local = new LocalWake((marks) => this.#share(marks))
  /** A process receives its own notifications too, and has delivered those marks already. */
  readonly #origin = randomUUID()
  /** Signalled but not sent yet; topics signalled within a few milliseconds share one notification. */
  readonly #pending = new Set<string>()
  readonly #unsent = new MarkBatch()
  #client: pg.Client | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false
  #wasConnected = false
  #sending = Promise.resolve()
  #connecting: Promise<void>

  constructor(db: Database, { sends = true, name }: WakeOptions) {
    this.#db = db
    this.#sends = sends
    this.#name = name
    this.on = (topic, listener) => this.#local.on(topic, listener)
    this.onMarks = (listener) => this.#local.onMarks(listener)
    this.#connecting = this.#connect()
  }

  signal(topic: Topic): void {
    this.#local.signal(topic)
    this.#pending.add(topic.topic)
    this.#timer ??= setTimeout(() => void this.#flush(), batchMs)
  }

  mark(...marks: readonly Mark[]): void {
    this.#local.mark(...marks)
  }

  #share(marks: readonly Mark[]): void {
    for (const mark of marks) this.#unsent.add(mark)
    this.#timer ??= setTimeout(() => void this.#flush(), batchMs)
  }

  async rename(name: string): Promise<void> {
    this.#name = name
    await this.#connecting
    await this.#sayName()
  }

  async #sayName(): Promise<void> {
    if (this.#name === undefined) return
    await this.#client?.query("select set_config('application_name', $1, false)", [this.#name]) // guard: processes can be counted
  }

  /** Sends what is still pending first: a command ends right after its change. */
  async close(): Promise<void> {
    this.#local.flushMarks()
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
      next.on('notification', ({ channel: from, payload = '' }) => {
        if (from === marksChannel) return this.#receive(payload)
        for (const topic of payload.split(' ')) this.#local.signal({ topic })
      })
      await next.query(`listen ${channel}; listen ${marksChannel}`)
      this.#client = next
      await this.#sayName()
      // Others may have marked anything while this process did not listen.
      if (this.#wasConnected) this.#local.deliver([{ workspace_id: null, kind: 'everything' }])
      this.#wasConnected = true
      await this.#flush()
    } catch {
      // An open connection reports its own end.
      if (next) void next.end().catch(() => {})
      else this.#retry()
    }
  }

  #receive(payload: string): void {
    const { origin, marks } = readNotification(payload)
    if (origin !== this.#origin) this.#local.deliver(marks) // guard: own marks arrive once
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
    if (!this.#client) return
    const topics = [...this.#pending].join(' ')
    this.#pending.clear()
    const marks = toNotifications(this.#origin, this.#unsent.take())
    if (!this.#sends) return // guard: the service on an embedded database sends nothing
    // If it fails, the loops find the work at their next poll, and pages read again by themselves.
    if (topics) await this.#client.query('select pg_notify($1, $2)', [channel, topics]).catch(() => {})
    if (marks.length === 0) return
    const notify = 'select pg_notify($1, payload) from unnest($2::text[]) payload'
    await this.#client?.query(notify, [marksChannel, marks]).catch(() => {})
  }
}
