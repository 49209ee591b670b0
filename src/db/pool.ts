/** The connections to the database: a pool, statements on it, transactions. */
import pg from 'pg'
import { type FairQueue, fairQueue } from '../lib/queue.ts'
import { copyIn, divert } from './copy.ts'
import { isAborted, isConnectionLost, LostCommit, notConnected, rethrow, unavailable } from './errors.ts'
import { watchSilence } from './silence.ts'
import type { Database, Db, OpenDatabase, Sql, Tx } from './sql.ts'

/** Statements fail before a caller gives up: an error is better than queueing behind a stuck lock or a slow plan. */
const limits = {
  lock_timeout: 2_000, // limit: lock
  statement_timeout: 5_000, // limit: statement
  idle_in_transaction_session_timeout: 10_000, // limit: idle transaction
}

/** Set once a connection is open, because PgBouncer refuses start-up options. */
const setLimits: Sql = {
  name: '',
  text: `select ${Object.entries(limits)
    .map(([name, ms]) => `set_config('${name}', '${ms}', false)`)
    .join(', ')}`,
  values: [],
}

export type Connection = Pick<pg.PoolConfig, 'connectionString' | 'host' | 'user' | 'password' | 'database'>

const connectMsMax = 3_000 // limit: connect

interface Sizes {
  readonly pool_size: number
  /** The part of the connections that requests leave to the background work; two fifths unless given. */
  readonly background?: number
}

/**
 * One pool with two entrances. Requests leave a part of the connections to the background work, and that leaves a fifth to
 * them. Between these bounds each side uses what the other does not.
 */
export function openDatabase(connection: Connection, { pool_size, background = 0.4 }: Sizes): OpenDatabase {
  const settings: pg.PoolConfig = {
    ...connection,
    application_name: 'parley',
    connectionTimeoutMillis: connectMsMax,
    keepAlive: true,
  }
  const watch = watchSilence()
  const ask: Ask = (client, statement, form) =>
    query(client, statement, { form, answered: watch.ask(client) }).catch(trace)
  // Without a listener, one dropped connection ends the process. The next query reports it.
  const limit = async (client: pg.ClientBase) => {
    client.on('error', () => {})
    await ask(client, setLimits) // guard: time limits of a connection
  }
  // Pipelining sends BEGIN together with the first statement.
  const pool = new pg.Pool({ ...settings, max: pool_size, pipeline: true, onConnect: limit })
  pool.on('error', () => {})

  const requestsMax = placesBeside(pool_size, background) // guard: connections of the background
  const backgroundMax = placesBeside(pool_size, 0.2) // guard: connections of requests

  const [ofRequests, ofBackground] = [placesOf(requestsMax), placesOf(backgroundMax)]

  const open = (inTurn: FairQueue): Database => {
    const withClient: WithClient = (work) => inTurn(turn, () => connect(pool, work))
    return {
      ...queries((statement, form) => withClient((client) => ask(client, statement, form))),
      transaction: (work) => withClient((client) => transaction(client, { ask, begin, work })),
      snapshot: (work) => withClient((client) => transaction(client, { ask, begin: beginSnapshot, work })),
      copyIn: (statement, bytes) =>
        withClient((client) => copyIn(client, statement.text, bytes).finally(watch.ask(client))),
      async client() {
        const client = new pg.Client(settings)
        client.on('error', () => {})
        await client.connect().catch(unavailable)
        await limit(client).catch(async (error) => {
          await client.end().catch(() => {})
          return unavailable(error)
        })
        return client
      },
      pool,
      requestsMax,
      countWaiting: () => pool.waitingCount + ofRequests.countWaiting() + ofBackground.countWaiting(),
      close() {
        watch.close()
        return pool.end()
      },
    }
  }
  return { ...open(ofRequests), background: open(ofBackground) }
}

type WithClient = <T>(work: (client: pg.PoolClient) => Promise<T>) => Promise<T>

/** Turns of workspaces are taken before, by work that holds a connection for long. */
const turn = {
  key: '',
  left: undefined,
  timer(ms: number, done: () => void) {
    const timer = setTimeout(done, ms)
    return () => clearTimeout(timer)
  },
}

/** How many connections one side may take if it leaves this part of them to the other. Both sides have at least one. */
function placesBeside(pool_size: number, part: number): number {
  return Math.max(1, pool_size - Math.max(1, Math.round(pool_size * part)))
}

function placesOf(most: number): FairQueue {
  return fairQueue({
    atOnceMax: most,
    eachMax: most,
    waitingMax: Number.POSITIVE_INFINITY,
    waitMsMax: connectMsMax,
    refuse: () => notConnected(new Error('timeout exceeded while waiting for a connection')),
  })
}

type Form = 'objects' | 'lists'
type Ask = (client: pg.ClientBase, statement: Sql, form?: Form) => Promise<pg.QueryResult>

// No name, because there is nothing to prepare.
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

async function connect<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
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

/** The driver copies the query's own properties one by one, but keeps its prototype. */
const asLists: pg.QueryConfig = Object.create({ rowMode: 'array' })

/** Uses a callback, because the driver's own promise keeps the rows in memory until the next full garbage collection. */
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
  client: pg.ClientBase,
  ask: Ask,
  { statement, take }: { statement: Sql; take: (bytes: Buffer) => void },
): Promise<void> {
  const undo = divert((client as pg.Client).connection.stream, take)
  try {
    await ask(client, statement)
  } finally {
    undo()
  }
}

/** Replaces the driver's stack trace, which ends at a socket, with one that leads to the caller. */
function trace(error: unknown): never {
  if (error instanceof Error) Error.captureStackTrace(error)
  throw error
}

interface Transaction<T> {
  readonly ask: Ask
  readonly begin: Sql
  readonly work: (tx: Tx) => Promise<T> | T
}

/** A transaction on the caller's own connection, with that connection's limits. */
export function transactionOn<T>(client: pg.Client, work: (tx: Tx) => Promise<T>): Promise<T> {
  const ask: Ask = (one, statement, form) => query(one, statement, { form, answered() {} }).catch(trace)
  return transaction(client, { ask, begin, work })
}

/** Statements of one transaction may run concurrently: after the first failure, the others only report that. */
async function transaction<T>(
  client: pg.ClientBase,
  { ask: askOne, begin, work }: Transaction<T>,
): Promise<T> {
  let first: unknown
  const ask: Ask = (...asked) =>
    askOne(...asked).catch((error) => {
      first ??= error
      throw error
    })
  const begun = ask(client, begin)
  begun.catch(() => {})
  const last: Sql[] = []
  const after: (() => void)[] = []
  const tx = {
    ...queries((statement, form) => ask(client, statement, form)),
    atCommit: (statement: Sql) => void last.push(statement),
    afterCommit: (act: () => void) => void after.push(act),
    copyOut: (statement: Sql, take: (bytes: Buffer) => void) => copyOut(client, ask, { statement, take }),
  }
  let result: T
  try {
    result = await work(tx as unknown as Tx)
    await begun
  } catch (error) {
    // A lost connection has rolled back by itself.
    if (!isConnectionLost(error)) await ask(client, rollback)
    throw isAborted(error) ? first : error
  }
  const before = last.map((statement) => ask(client, statement))
  const committed = ask(client, commit).catch((error) => {
    throw isConnectionLost(error) ? new LostCommit('The answer to COMMIT was lost.', { cause: error }) : error
  })
  committed.catch(() => {})
  const failed = (await Promise.allSettled(before)).find((one) => one.status === 'rejected')
  const done = await committed
  // After a failed statement, the server turns COMMIT into ROLLBACK.
  if (failed) throw failed.reason
  if (done.command !== 'COMMIT') throw new Error('The transaction had failed and was rolled back.')
  for (const act of after) act()
  return result
}
