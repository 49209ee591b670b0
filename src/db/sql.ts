/** The one way to the database: tagged statements, a pool, transactions, and errors with a meaning. */
import { createHash } from 'node:crypto'
import pg from 'pg'
import { ApiError } from '../lib/errors.ts'
import { copyIn, divert } from './copy.ts'
import { watchSilence } from './silence.ts'

/** A statement with its parameters. Fragments nest; nothing is ever built from strings. */
export interface Sql {
  readonly text: string
  readonly values: readonly unknown[]
  readonly name: string
}

const fragment = Symbol('sql')
interface Fragment extends Sql {
  readonly [fragment]: Shape
}

/** A statement without its values. There is one for each text, and so one plan. */
interface Shape {
  readonly strings: readonly string[]
  readonly text: string
  readonly name: string
}

/** What a template has come to so far, by the shape of the next fragment in it; undefined is a plain value. */
interface Step {
  shape: Shape | undefined
  readonly next: Map<Shape | undefined, Step>
}

const templates = new WeakMap<TemplateStringsArray, Step>()
const shapes = new Map<string, Shape>()

/** The text is put together the first time only: a template with the same kinds of fragments has the same shape. */
export function sql(strings: TemplateStringsArray, ...values: readonly unknown[]): Sql {
  let step = templates.get(strings)
  if (!step) {
    step = { shape: undefined, next: new Map() }
    templates.set(strings, step)
  }
  const nested = values.some(isFragment)
  if (nested) for (const value of values) step = stepOf(step, isFragment(value) ? value[fragment] : undefined)
  step.shape ??= shapeOf(nested ? flatten(strings, values) : strings)
  const { text, name } = step.shape
  const flat = nested ? values.flatMap((value) => (isFragment(value) ? value.values : [value])) : values
  const statement: Fragment = { text, name, values: flat, [fragment]: step.shape }
  return statement
}

function stepOf({ next }: Step, shape: Shape | undefined): Step {
  let step = next.get(shape)
  if (!step) {
    step = { shape: undefined, next: new Map() }
    next.set(shape, step)
  }
  return step
}

/** The strings between the values, those inside fragments included. */
function flatten(strings: readonly string[], values: readonly unknown[]): string[] {
  const flat = [strings[0] ?? '']
  for (const [at, value] of values.entries()) {
    const [first = '', ...rest] = isFragment(value) ? value[fragment].strings : ['', '']
    flat[flat.length - 1] += first
    flat.push(...rest)
    flat[flat.length - 1] += strings[at + 1] ?? ''
  }
  return flat
}

function isFragment(value: unknown): value is Fragment {
  return typeof value === 'object' && value !== null && fragment in value
}

function shapeOf(strings: readonly string[]): Shape {
  const key = strings.join('\0')
  let shape = shapes.get(key)
  if (!shape) {
    const text = strings.reduce((joined, part, at) => `${joined}$${at}${part}`)
    shape = { strings, text, name: createHash('sha1').update(text).digest('base64url') }
    shapes.set(key, shape)
  }
  return shape
}

/** Reads, and writes that stand alone. */
export interface Db {
  rows<T>(statement: Sql): Promise<T[]>
  maybe<T>(statement: Sql): Promise<T | undefined>
  one<T>(statement: Sql): Promise<T>
  /** Rows as lists of their columns: an object for each row of a page costs more than the page is worth. */
  lists<T extends readonly unknown[]>(statement: Sql): Promise<T[]>
  /** How many rows it touched. */
  run(statement: Sql): Promise<number>
}

declare const inTransaction: unique symbol
/** A parameter of this type means "my work commits with yours". */
export interface Tx extends Db {
  readonly [inTransaction]: true
  /** A statement nobody here reads the answer of: it travels with COMMIT. If it fails, nothing is committed. */
  atCommit(statement: Sql): void
  /** A `copy … to stdout` as it comes; a piece is good during the call. It takes no parameters, but may read settings. */
  copyOut(statement: Sql, take: (bytes: Buffer) => void): Promise<void>
}

export interface Database extends Db {
  transaction<T>(work: (tx: Tx) => Promise<T> | T): Promise<T>
  /** Whatever is read here was so at one and the same moment. */
  snapshot<T>(work: (db: Db) => Promise<T>): Promise<T>
  /** A `copy … from stdin`. The bytes are sent from where they lie, and are free again once it resolves. */
  copyIn(statement: Sql, bytes: readonly Buffer[]): Promise<void>
  /** A connection of its own, for locks and notifications. */
  client(): Promise<pg.Client>
  readonly pool: pg.Pool
  close(): Promise<void>
}

/** The answer to COMMIT never came: it may have happened. */
export class LostCommit extends Error {
  override readonly name = 'LostCommit'
}

/** Statements give up before a caller would: a stuck lock or a slow plan is an answer, not a queue. */
const limits = {
  lock_timeout: 2_000,
  statement_timeout: 5_000, // limit: statement
  idle_in_transaction_session_timeout: 10_000, // limit: idle transaction
}

export type Connection = Pick<pg.PoolConfig, 'connectionString' | 'host' | 'user' | 'password' | 'database'>

export function openDatabase(connection: Connection, { pool_size }: { pool_size: number }): Database {
  const settings: pg.PoolConfig = {
    ...connection,
    application_name: 'parley',
    options: Object.entries(limits)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
    connectionTimeoutMillis: 3_000,
    keepAlive: true,
  }
  // What is asked without waiting goes out at once: BEGIN travels with the first statement.
  const pool = new pg.Pool({ ...settings, max: pool_size, pipeline: true })
  // Without a listener one dropped connection ends the process. The next query reports it.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const watch = watchSilence()
  const ask: Ask = (client, statement, form) =>
    query(client, statement, { form, answered: watch.ask(client) }).catch(trace)

  return {
    ...queries((statement, form) => withClient(pool, (client) => ask(client, statement, form))),
    transaction: (work) => withClient(pool, (client) => transaction(client, { ask, begin, work })),
    snapshot: (work) =>
      withClient(pool, (client) => transaction(client, { ask, begin: beginSnapshot, work })),
    copyIn: (statement, bytes) =>
      withClient(pool, (client) => copyIn(client, statement.text, bytes).finally(watch.ask(client))),
    async client() {
      const client = new pg.Client(settings)
      client.on('error', () => {})
      await client.connect().catch(unavailable)
      return client
    },
    pool,
    close() {
      watch.close()
      return pool.end()
    },
  }
}

type Form = 'objects' | 'lists'
type Ask = (client: pg.ClientBase, statement: Sql, form?: Form) => Promise<pg.QueryResult>

// Without a name: there is nothing to prepare.
const begin: Sql = { name: '', text: 'begin', values: [] }
const beginSnapshot: Sql = { ...begin, text: 'begin isolation level repeatable read read only' }
const commit: Sql = { ...begin, text: 'commit' }
const rollback: Sql = { ...begin, text: 'rollback' }

function queries(ask: (statement: Sql, form?: Form) => Promise<pg.QueryResult>): Db {
  return {
    rows: async (statement) => (await ask(statement)).rows,
    maybe: async (statement) => (await ask(statement)).rows[0],
    async one<T>(statement: Sql): Promise<T> {
      const { rows } = await ask(statement)
      if (rows.length !== 1) throw new Error(`Expected one row, got ${rows.length}.`)
      return rows[0] as T
    },
    lists: async <T>(statement: Sql) => (await ask(statement, 'lists')).rows as T[],
    run: async (statement) => (await ask(statement)).rowCount ?? 0,
  }
}

async function withClient<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect().catch(unavailable)
  let broken = false
  try {
    return await work(client)
  } catch (error) {
    broken = isConnectionLost(error)
    return rethrow(error)
  } finally {
    client.release(broken)
  }
}

/** The driver copies what is asked property by property, and the prototype as it is. */
const asLists: pg.QueryConfig = Object.create({ rowMode: 'array' })

/** With a callback: the driver's own promise keeps what was read until the next full collection of garbage. */
function query(
  client: pg.ClientBase,
  { name, text, values: given }: Sql,
  { form, answered }: { form: Form | undefined; answered: () => void },
): Promise<pg.QueryResult> {
  const values = given as unknown[]
  return new Promise((resolve, reject) => {
    const answer = (error: Error | undefined, result: pg.QueryResult) => {
      answered()
      if (error) reject(error)
      else resolve(result)
    }
    const question = new pg.Query(form === 'lists' ? asLists : text, values, answer)
    client.query(Object.assign(question, { name, text }))
  })
}

async function copyOut(
  client: pg.PoolClient,
  ask: Ask,
  { statement, take }: { statement: Sql; take: (bytes: Buffer) => void },
): Promise<void> {
  const undo = divert((client as unknown as pg.Client).connection.stream, take)
  try {
    await ask(client, statement)
  } finally {
    undo()
  }
}

/** The driver's trace leads to a socket; this one leads to whoever asked. */
function trace(error: unknown): never {
  if (error instanceof Error) Error.captureStackTrace(error)
  throw error
}

interface Transaction<T> {
  readonly ask: Ask
  readonly begin: Sql
  readonly work: (tx: Tx) => Promise<T> | T
}

async function transaction<T>(client: pg.PoolClient, { ask, begin, work }: Transaction<T>): Promise<T> {
  const begun = ask(client, begin)
  begun.catch(() => {})
  const last: Sql[] = []
  const tx = {
    ...queries((statement, form) => ask(client, statement, form)),
    atCommit: (statement: Sql) => void last.push(statement),
    copyOut: (statement: Sql, take: (bytes: Buffer) => void) => copyOut(client, ask, { statement, take }),
  }
  let result: T
  try {
    result = await work(tx as unknown as Tx)
    await begun
  } catch (error) {
    // A connection that is gone has rolled back by itself.
    if (!isConnectionLost(error)) await ask(client, rollback)
    throw error
  }
  const before = last.map((statement) => ask(client, statement))
  const committed = ask(client, commit).catch((error) => {
    throw isConnectionLost(error) ? new LostCommit('The answer to COMMIT was lost.', { cause: error }) : error
  })
  committed.catch(() => {})
  const failed = (await Promise.allSettled(before)).find((one) => one.status === 'rejected')
  const done = await committed
  // After a statement that failed the server makes a ROLLBACK of it.
  if (failed) throw failed.reason
  if (done.command !== 'COMMIT') throw new Error('The transaction had failed and was rolled back.')
  return result
}

/** True when nothing more can be said to this connection. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof LostCommit) return true
  if (error instanceof ApiError) return isConnectionLost(error.cause)
  if (!(error instanceof pg.DatabaseError)) return error instanceof Error && !isOurs(error)
  return /^(08|57P)/.test(error.code ?? '')
}

/** True when a unique index of the table said no. */
export function isDuplicate(error: unknown, table: string): boolean {
  return error instanceof pg.DatabaseError && error.code === '23505' && error.table === table
}

/** Errors that our own code throws inside a transaction leave the connection whole. */
function isOurs(error: Error): boolean {
  const code = (error as NodeJS.ErrnoException).code
  if (typeof code === 'string' && /^E[A-Z]+$/.test(code)) return false
  return !/^(Connection terminated|Query read timeout|timeout e|Client has encountered|Client was closed)/i.test(
    error.message,
  )
}

/** Whatever keeps us from connecting, a wrong password or a database that is gone, is nobody's bug here. */
function unavailable(cause: unknown): never {
  throw new ApiError('store_unavailable', { cause })
}

/** What a failure of the database means to a caller. A statement that is simply wrong stays a bug. */
function rethrow(error: unknown): never {
  if (error instanceof ApiError || error instanceof LostCommit) throw error
  if (error instanceof pg.DatabaseError) {
    const code = error.code ?? ''
    // Not there, or not ours to read.
    if (['42P01', '42703', '42501'].includes(code)) throw new ApiError('schema_unavailable', { cause: error })
    // Connections, resources, cancellations, time limits, recovery.
    if (/^(08|53|57|58|25006|25P03|40|55P03)/.test(code)) {
      throw new ApiError('store_unavailable', { cause: error })
    }
    throw error
  }
  if (isConnectionLost(error)) throw new ApiError('store_unavailable', { cause: error })
  throw error
}
