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
import { isMigrated, migrate } from '../db/migrate.ts'
import { openDatabase } from '../db/pool.ts'
import { findSecret, keepSecret } from '../db/secret-file.ts'
import type { Database } from '../db/sql.ts'
import { localWake, sharedWake } from '../events/wake.ts'
import { watchOperations } from '../ledger/waiting.ts'
import { ApiError, Refusal } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { Secrets } from '../lib/secrets.ts'
import { byKind, type OperationKind } from '../operation.ts'
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
  const wake = config.database.kind === 'embedded' ? localWake() : sharedWake(db)
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
    if (error instanceof ApiError && error.code === 'schema_unavailable') {
      throw new Refusal('The database has not been set up yet. Run `parley migrate` first.')
    }
    if ((error as { code?: string }).code === '42501') {
      throw new Refusal(
        'The role of DATABASE_URL cannot create the tables: it needs CREATE on the database (for the extension ' +
          'btree_gin) and on the schema public.',
      )
    }
    if (error instanceof ApiError && error.code === 'store_unavailable') {
      throw new Refusal(`The database of DATABASE_URL does not respond: ${reasonOf(error)}.`)
    }
    throw error
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
  return config.database.kind === 'url' ? { connectionString: config.database.url } : {}
}

async function makeLimits(config: Config, db: Database): Promise<Limits> {
  if (config.database.kind === 'embedded') return memoryLimits()
  return config.redis_url ? redisLimits(config.redis_url) : postgresLimits(db)
}

/** A service migrates. A command migrates only an embedded database. */
async function prepare(db: Database, options: OpenOptions): Promise<readonly string[]> {
  const { config, claim, log } = options
  let applied: readonly string[] = []
  if (options.migrate || claim === 'service' || config.database.kind === 'embedded') {
    applied = await withProgress('Migrating the database', migrate(db, options.migrations))
    if (applied.length > 0) log.info({ migrations: applied }, 'migrated')
  } else if (!(await isMigrated(db))) {
    throw new Refusal('The database is not migrated to this version. Run `parley migrate` first.')
  }
  if (claim === 'service') await ensureClock(db, config.clock)
  return applied
}

/** Explains the most common mistakes to the person who sets up the database. */
const reasons: Readonly<Record<string, string>> = {
  '28P01': 'the password is wrong',
  '28000': 'the role is not allowed to log in',
  '3D000': 'the database does not exist',
  ECONNREFUSED: 'nothing listens at that address',
  ENOTFOUND: 'the host name is unknown',
  ENOENT: 'the socket does not exist',
  ETIMEDOUT: 'the connection timed out',
}

function reasonOf(error: ApiError): string {
  const { code, message } = (error.cause ?? error) as Error & { code?: string }
  return (code && reasons[code]) ?? message
}
