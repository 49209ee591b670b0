/** Builds the App: the database, the settings, the limits. The caller that opens it closes it. */
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { memoryLimits, postgresLimits, redisLimits } from '../access/limits.ts'
import { openSettings } from '../access/settings.ts'
import type { App, Limits, Sources } from '../app.ts'
import { addressDefault, type Config } from '../config.ts'
import type { RouteInfo } from '../contract.ts'
import { ensureClock } from '../db/domain-clock.ts'
import { type Embedded, openEmbedded } from '../db/embedded.ts'
import { listPending, migrate } from '../db/migrate.ts'
import { openDatabase } from '../db/pool.ts'
import { findSecret, keepSecret } from '../db/secret-file.ts'
import { countConnections, isPooledByTransaction, readServerState } from '../db/server-state.ts'
import { type Database, sql } from '../db/sql.ts'
import { sharedWake } from '../events/wake.ts'
import { watchOperations } from '../ledger/waiting.ts'
import { Refusal } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { Secrets } from '../lib/secrets.ts'
import { byKind, type OperationKind } from '../operation.ts'
import { explainDatabase, plainSslMode } from './database-sentences.ts'
import { withProgress } from './progress.ts'

const require = createRequire(import.meta.url)

const sources: Sources = {
  newId,
  newToken: randomUUID,
  now: () => performance.now(),
  date: () => new Date(),
  random: () => Math.random(),
  sleep: (ms) => sleep(ms),
  timer(ms, done) {
    const timer = setTimeout(done, ms)
    return () => clearTimeout(timer)
  },
}

interface OpenOptions {
  readonly config: Config
  readonly data_dir: string
  readonly log: Logger
  /** A service claims its data directory for itself; a command shares it. */
  readonly claim: 'service' | 'command'
  /** Refuses a data directory without an embedded database instead of creating one. */
  readonly existing?: boolean
  /** Also migrates a database of DATABASE_URL. */
  readonly migrate?: boolean
  /** Opens the database as it is: neither migrates it nor refuses one that is not migrated. */
  readonly as_it_is?: boolean
  readonly routes: readonly RouteInfo[]
  readonly operations: readonly OperationKind[]
  /** The folders of migrations; our own unless given. */
  readonly migrations?: readonly string[]
}

export interface OpenApp extends App {
  /** Resolves when the embedded database is lost. */
  readonly lost: Promise<Error> | undefined
  /** The migrations that opening the database applied. */
  readonly applied: readonly string[]
  /** Sets the address it listens at as its public address, unless PARLEY_BASE_URL names one. */
  listensAt(address: string): void
  /** Ends long waits, before the server waits for requests in flight. */
  beginStop(): void
  close(): Promise<void>
}

/** A signal that arrives while this opens takes effect once the embedded server can be stopped. */
export async function openApp(options: OpenOptions): Promise<OpenApp> {
  let signal: NodeJS.Signals | undefined
  const note = (name: NodeJS.Signals) => {
    signal = name
  }
  process.on('SIGINT', note).on('SIGTERM', note)
  try {
    const app = await open(options)
    if (!signal) return app
    await app.close()
    throw new Refusal(`Stopped by ${signal} before it was ready.`)
  } finally {
    process.off('SIGINT', note).off('SIGTERM', note)
  }
}

async function open(options: OpenOptions): Promise<OpenApp> {
  const { config, data_dir, log } = options
  const embedded =
    config.database.kind === 'embedded'
      ? await withProgress(
          'Starting the embedded PostgreSQL',
          openEmbedded({ data_dir, claim: options.claim, existing: options.existing ?? false }),
        )
      : undefined
  const db = openDatabase(connectionOf(config, embedded), config)
  const settings = openSettings(db)
  const limits = await makeLimits(config, db)
  const wake = sharedWake(db, { sends: embedded === undefined || options.claim === 'command' })
  const waiting = watchOperations(db, wake)
  const stop = new AbortController()
  let address = addressDefault
  let metrics: Registry | undefined
  const close = async () => {
    stop.abort()
    settings.close()
    waiting.close()
    await limits.close()
    await wake.close()
    await db.close()
    await embedded?.close()
  }
  try {
    const applied = await prepare(db, options)
    const secret = config.secret ?? (await openSecret(options, applied))
    return {
      config,
      base_url: () => config.base_url ?? address,
      listensAt: (listening) => {
        address = listening
      },
      db,
      settings,
      limits,
      wake,
      waiting,
      log,
      get metrics() {
        metrics ??= newRegistry()
        return metrics
      },
      secrets: new Secrets(secret),
      routes: options.routes,
      operations: byKind(options.operations),
      sources,
      stopping: stop.signal,
      beginStop: () => stop.abort(),
      lost: embedded?.lost,
      applied,
      close,
    }
  } catch (error) {
    await close()
    throw explainDatabase(error)
  }
}

/**
 * A command makes no secret for a database that already exists: the service has one, perhaps in its environment, and audit
 * rows signed with a different secret do not verify.
 */
async function openSecret(
  { data_dir, claim, existing }: OpenOptions,
  applied: readonly string[],
): Promise<string> {
  const file = join(data_dir, 'secret')
  const known = existing || (claim === 'command' && applied.length === 0)
  if (!known || (await findSecret(file)) !== undefined) return keepSecret(file)
  // guard: a command makes no second secret
  throw missingSecret(file)
}

function missingSecret(file: string): Refusal {
  return new Refusal(
    `The file ${file} is missing. Set PARLEY_SECRET to the value that the service uses, or restore the file from a backup.`,
  )
}

/** Loads prom-client on first use: a command counts nothing. */
function newRegistry(): Registry {
  const { Registry } = require('prom-client') as typeof import('prom-client')
  return new Registry()
}

function connectionOf(config: Config, embedded: Embedded | undefined) {
  if (embedded) return embedded.connection
  return config.database.kind === 'url' ? { connectionString: plainSslMode(config.database.url) } : {}
}

async function makeLimits(config: Config, db: Database): Promise<Limits> {
  if (config.database.kind === 'embedded') return memoryLimits()
  return config.redis_url ? redisLimits(config.redis_url) : postgresLimits(db)
}

/** A service migrates. A command migrates only an embedded database. */
async function prepare(db: Database, options: OpenOptions): Promise<readonly string[]> {
  const { config, claim, log } = options
  if (options.as_it_is) {
    await db.one(sql`select 1 as up`)
    return []
  }
  const own = config.database.kind === 'url'
  const migrates = options.migrate || claim === 'service' || !own
  let applied: readonly string[] = []
  if (migrates) {
    if (own) await requireUsable(db)
    const waits = () =>
      log.info('another process migrates the database, or holds the lock for it; this one waits')
    applied = await withProgress('Migrating the database', migrate(db, options.migrations, waits))
    if (applied.length > 0) log.info({ migrations: applied }, 'migrated')
  }
  const pending = migrates ? [] : await listPending(db, options.migrations)
  if (pending.length > 0) throw new Refusal(notMigrated) // guard: a command knows the schema
  if (claim === 'service') await ensureClock(db, config.clock)
  if (claim === 'service' && own) await warnOfFewConnections(db, options)
  return applied
}

const notMigrated = 'The database is not migrated to this version. Run `parley migrate` first.'

/** Before anything waits for a lock: under a pooler that works by transaction, another client may hold it for ever. */
async function requireUsable(db: Database): Promise<void> {
  const { encoding } = await readServerState(db)
  if (encoding !== 'UTF8') {
    throw new Refusal(
      `The database of DATABASE_URL has the encoding ${encoding}, which cannot store every message. Create it again ` +
        "with `create database … encoding 'UTF8' template template0`.",
    )
  }
  // guard: no pooling by transaction
  if (await isPooledByTransaction(db)) {
    throw new Refusal(
      'DATABASE_URL leads to a pooler that works by transaction or statement: two connections share one server process. ' +
        'Parley holds locks and listens on its connections. Let the pooler work by session (PgBouncer: ' +
        '`pool_mode = session`), or name the server itself.',
    )
  }
}

/** Connections that a process holds besides its pool, for locks and notifications. */
const connectionsBesides = 3

/** Only a warning: the other processes may end before this one needs all of its own. */
async function warnOfFewConnections(
  db: Database,
  { config: { pool_size }, log }: OpenOptions,
): Promise<void> {
  // Those that this process has open already are among the used ones.
  const { allowed, left } = await countConnections(db)
  const wanted = pool_size + connectionsBesides - db.pool.totalCount
  if (wanted <= left) return // guard: few connections are warned of
  log.warn(
    { pool_size, allowed, left },
    'PARLEY_POOL_SIZE exceeds the connections that the server, the database or the role still allow: lower it, or raise max_connections or their limits',
  )
}
