/** The one way to the database: tagged statements, a pool, transactions, and errors with a meaning. */
import { createHash } from 'node:crypto'
import pg from 'pg'
import { ApiError } from '../lib/errors.ts'

/** A statement with its parameters. Fragments nest; nothing is ever built from strings. */
export interface Sql {
  readonly text: string
  readonly values: readonly unknown[]
  readonly name: string
}

const fragment = Symbol('sql')
interface Fragment extends Sql {
  readonly [fragment]: { readonly strings: readonly string[]; readonly values: readonly unknown[] }
}

const names = new WeakMap<TemplateStringsArray, { text: string; name: string }>()

export function sql(strings: TemplateStringsArray, ...values: readonly unknown[]): Sql {
  if (values.some(isFragment)) return nested(strings, values)
  let known = names.get(strings)
  if (!known) {
    const text = strings.reduce((joined, part, at) => `${joined}$${at}${part}`)
    known = { text, name: nameOf(text) }
    names.set(strings, known)
  }
  const statement: Fragment = { ...known, values, [fragment]: { strings, values } }
  return statement
}

/** Flattens fragments into one statement; the same shape gives the same text and so the same plan. */
function nested(strings: readonly string[], values: readonly unknown[]): Sql {
  const flat: { strings: string[]; values: unknown[] } = { strings: [strings[0] ?? ''], values: [] }
  for (const [at, value] of values.entries()) {
    const after = strings[at + 1] ?? ''
    if (isFragment(value)) {
      const inner = value[fragment]
      flat.strings[flat.strings.length - 1] += inner.strings[0] ?? ''
      flat.strings.push(...inner.strings.slice(1))
      flat.strings[flat.strings.length - 1] += after
      flat.values.push(...inner.values)
    } else {
      flat.strings.push(after)
      flat.values.push(value)
    }
  }
  const text = flat.strings.reduce((joined, part, at) => `${joined}$${at}${part}`)
  const statement: Fragment = { text, name: nameOf(text), values: flat.values, [fragment]: flat }
  return statement
}

function isFragment(value: unknown): value is Fragment {
  return typeof value === 'object' && value !== null && fragment in value
}

const hashes = new Map<string, string>()

function nameOf(text: string): string {
  let name = hashes.get(text)
  if (!name) {
    name = createHash('sha1').update(text).digest('base64url')
    hashes.set(text, name)
  }
  return name
}

/** Reads, and writes that stand alone. */
export interface Db {
  rows<T>(statement: Sql): Promise<T[]>
  maybe<T>(statement: Sql): Promise<T | undefined>
  one<T>(statement: Sql): Promise<T>
  /** How many rows it touched. */
  run(statement: Sql): Promise<number>
}

declare const inTransaction: unique symbol
/** A parameter of this type means "my work commits with yours". */
export interface Tx extends Db {
  readonly [inTransaction]: true
  /** A statement nobody here reads the answer of: it travels with COMMIT. If it fails, nothing is committed. */
  atCommit(statement: Sql): void
}

export interface Database extends Db {
  transaction<T>(work: (tx: Tx) => Promise<T> | T): Promise<T>
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
  statement_timeout: 5_000,
  idle_in_transaction_session_timeout: 10_000,
}
/** When the server itself does not answer, its own limits do not help. */
const silenceMs = 8_000

export type Connection = Pick<pg.PoolConfig, 'connectionString' | 'host' | 'user' | 'password' | 'database'>

export function openDatabase(connection: Connection, { pool_size }: { pool_size: number }): Database {
  const settings: pg.PoolConfig = {
    ...connection,
    application_name: 'parley',
    options: Object.entries(limits)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
    connectionTimeoutMillis: 3_000,
    query_timeout: silenceMs,
    keepAlive: true,
  }
  // What is asked without waiting goes out at once: BEGIN travels with the first statement.
  const pool = new pg.Pool({ ...settings, max: pool_size, pipeline: true })
  // Without a listener one dropped connection ends the process. The next query reports it.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))

  return {
    ...queries((statement) => withClient(pool, (client) => query(client, statement))),
    transaction: (work) => withClient(pool, (client) => transaction(client, work)),
    async client() {
      const { query_timeout: _, ...own } = settings
      const client = new pg.Client(own)
      client.on('error', () => {})
      await client.connect().catch(unavailable)
      return client
    },
    pool,
    close: () => pool.end(),
  }
}

function queries(ask: (statement: Sql) => Promise<pg.QueryResult>): Db {
  return {
    rows: async (statement) => (await ask(statement)).rows,
    maybe: async (statement) => (await ask(statement)).rows[0],
    async one<T>(statement: Sql): Promise<T> {
      const { rows } = await ask(statement)
      if (rows.length !== 1) throw new Error(`Expected one row, got ${rows.length}.`)
      return rows[0] as T
    },
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

function query(client: pg.ClientBase, { name, text, values }: Sql): Promise<pg.QueryResult> {
  return client.query({ name, text, values: values as unknown[] })
}

async function transaction<T>(client: pg.PoolClient, work: (tx: Tx) => Promise<T> | T): Promise<T> {
  const begun = client.query('begin')
  begun.catch(() => {})
  const last: Sql[] = []
  const tx = {
    ...queries((statement) => query(client, statement)),
    atCommit: (statement: Sql) => void last.push(statement),
  }
  let result: T
  try {
    result = await work(tx as unknown as Tx)
    await begun
  } catch (error) {
    // A connection that is gone has rolled back by itself.
    if (!isConnectionLost(error)) await client.query('rollback')
    throw error
  }
  const before = last.map((statement) => query(client, statement))
  const committed = client.query('commit').catch((error) => {
    throw isConnectionLost(error) ? new LostCommit('The answer to COMMIT was lost.', { cause: error }) : error
  })
  const failed = (await Promise.allSettled(before)).find((one) => one.status === 'rejected')
  const commit = await committed
  // After a statement that failed the server makes a ROLLBACK of it.
  if (failed) throw failed.reason
  if (commit.command !== 'COMMIT') throw new Error('The transaction had failed and was rolled back.')
  return result
}

/** True when nothing more can be said to this connection. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof LostCommit) return true
  if (error instanceof ApiError) return isConnectionLost(error.cause)
  if (!(error instanceof pg.DatabaseError)) return error instanceof Error && !isOurs(error)
  return /^(08|57P)/.test(error.code ?? '')
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
