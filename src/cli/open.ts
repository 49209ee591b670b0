/** Builds the App: the database, the settings, the limits. The caller that opens it closes it. */
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { memoryLimits, postgresLimits, redisLimits } from '../access/limits.ts'
import { openSettings } from '../access/settings.ts'
import { costlyTurns, longTurns } from '../access/turns.ts'
import type { App, Limits, Sources } from '../app.ts'
import { addressDefault, type Config } from '../config.ts'
import type { RouteInfo } from '../contract.ts'
import { ensureClock } from '../db/domain-clock.ts'
import { type Embedded, openEmbedded } from '../db/embedded.ts'
import { listPending, type MigrationWatch, migrate } from '../db/migrate.ts'
import { openDatabase } from '../db/pool.ts'
import { findSecretUse, processNameWith } from '../db/secret-use.ts'
import { countConnections, isPooledByTransaction, processName, readServerState } from '../db/server-state.ts'
import { type Database, type OpenDatabase, sql } from '../db/sql.ts'
import { sharedWake } from '../events/wake.ts'
import { watchOperations } from '../ledger/waiting.ts'
import { Refusal } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { type Secrets, shortId } from '../lib/secrets.ts'
import { byKind, type OperationKind } from '../operation.ts'
import { explainDatabase, plainSslMode, pooledByTransaction } from './database-sentences.ts'
import { requireSecrets, secretsOf, tieSecrets } from './instance-secret.ts'
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
  /** The part of the connections that requests leave to the background work. */
  readonly background?: number | undefined
  /** Also migrates a database of DATABASE_URL. */
  readonly migrate?: boolean
  /** Opens the database as it is: neither migrates it nor refuses one that is not migrated. */
  readonly as_it_is?: boolean
  readonly routes: readonly RouteInfo[]
  readonly operations: readonly OperationKind[]
  /** Gets a line for each migration, and while one waits. */
  readonly say?: (line: string) => void
  /** The folders of migrations; our own unless given. */
  readonly migrations?: readonly string[]
}

export interface OpenApp extends App {
  readonly db: OpenDatabase
  /** For the worker and its loops: the same App, with connections that no request can take. */
  readonly background: App
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
  const { pool_size } = config
  const { background } = options
  const sizes = { pool_size, ...(background !== undefined && { background }) }
  const db = openDatabase(connectionOf(config, embedded), sizes)
  // Every request needs the settings, and many wait for one answer of the ledger: neither is any one request's.
  const settings = openSettings(db.background) // guard: connections of the settings
  const limits = await makeLimits(config, db)
  const named = options.claim === 'service'
  const wake = sharedWake(db, {
    sends: embedded === undefined || !named,
    ...(named && { name: processName }),
  })
  const waiting = watchOperations(db.background, wake)
  const stop = new AbortController()
  let address = addressDefault
  let metrics: Registry | undefined
  let stopWatching = () => {}
  const close = async () => {
    // Closing waits for transactions, and an import is one: what waits for the stop ends at once.
    stop.abort() // guard: closing ends what waits for the stop
    stopWatching()
    settings.close()
    waiting.close()
    await limits.close()
    await wake.close()
    await db.close()
    await embedded?.close()
  }
  try {
    const applied = await prepare(db, options)
    const given = await requireSecrets(config, { data_dir, makes: makesSecret(options, applied) })
    const secrets = secretsOf(given)
    const tied = await tieSecrets(db, secrets, { as_it_is: options.as_it_is ?? false })
    if (tied && !options.as_it_is) stopWatching = watchSecretUse(db.background, secrets, log)
    if (named) await wake.rename(processNameWith(secrets))
    const long = longTurns(sources, db)
    const shared = {
      config,
      base_url: () => config.base_url ?? address,
      long,
      costly: costlyTurns(sources, { requestsMax: db.requestsMax, long }),
      settings,
      limits,
      wake,
      waiting,
      log,
      secrets,
      routes: options.routes,
      operations: byKind(options.operations),
      sources,
      stopping: stop.signal,
    }
    const registry = () => {
      metrics ??= newRegistry()
      return metrics
    }
    return {
      ...shared,
      db,
      get metrics() {
        return registry()
      },
      background: {
        ...shared,
        db: db.background,
        get metrics() {
          return registry()
        },
      },
      listensAt: (listening) => {
        address = listening
      },
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
function makesSecret({ claim, existing }: OpenOptions, applied: readonly string[]): boolean {
  return !existing && (claim === 'service' || applied.length > 0)
}

const watchMs = 1_000

/** A rotation changes the secret that seals and signs; a process that has only the one of before says so in its log. */
function watchSecretUse(db: Database, secrets: Secrets, log: Logger): () => void {
  let reported: string | undefined
  const look = async () => {
    const use = await findSecretUse(db)
    if (!use || secrets.sealWith(use) || reported === use.secret_id) return
    reported = use.secret_id
    log.error(
      { secret: shortId(use.secret_id) },
      'the secret was rotated and this process has only the one of before: restart it with the new PARLEY_SECRET, and PARLEY_SECRET_OLD',
    )
  }
  // While the database is away nothing is sealed either.
  const timer = setInterval(() => void look().catch(() => {}), watchMs)
  timer.unref()
  return () => clearInterval(timer)
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
    applied = await withProgress('Migrating the database', migrate(db, options.migrations, watch(options)))
    if (applied.length > 0) log.info({ migrations: applied }, 'migrated')
  }
  const pending = migrates ? [] : await listPending(db, options.migrations)
  if (pending.length > 0) throw new Refusal(notMigrated) // guard: a command knows the schema
  if (claim === 'service') await ensureClock(db, config.clock)
  if (claim === 'service' && own) await warnOfFewConnections(db, options)
  return applied
}

/** What takes longer than this is worth a line in the log of a service. */
const slowMs = 1_000

function watch({ log, say = () => {} }: OpenOptions): MigrationWatch {
  return {
    elsewhere() {
      log.info('another process migrates the database, or holds the lock for it; this one waits')
      say('Another process migrates the database, or holds the lock for it; this one waits.')
    },
    applied(migration, took) {
      const ms = Math.round(took)
      if (ms > slowMs) log.info({ migration, ms }, 'applied a migration')
      say(`${migration}: applied in ${(ms / 1000).toFixed(1)} s`)
    },
    contended(migration, attempt, held) {
      log.warn(
        { migration, attempt, held },
        'a migration waits for tables that others use, and is tried again',
      )
      say(
        `${migration}: attempt ${attempt} gave way${held ? ` (${held})` : ''}; nothing of it is applied, trying again`,
      )
    },
  }
}

const notMigrated = 'The database is not migrated to this version. Run `parley migrate` first.'

/**
 * Before anything waits for a lock: under a pooler that works by transaction, another client may hold it for ever. The pooler comes
 * first, because a statement with a name may fail behind it.
 */
async function requireUsable(db: Database): Promise<void> {
  // guard: no pooling by transaction
  if (await isPooledByTransaction(db)) throw new Refusal(pooledByTransaction)
  const { encoding } = await readServerState(db)
  if (encoding !== 'UTF8') {
    throw new Refusal(
      `The database of DATABASE_URL has the encoding ${encoding}, which cannot store every message. Create it again ` +
        "with `create database … encoding 'UTF8' template template0`.",
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
