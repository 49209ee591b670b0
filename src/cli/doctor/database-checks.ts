/** Whether the database server is one that Parley can rely on. */
import type { Config } from '../../config.ts'
import { listPending } from '../../db/migrate.ts'
import {
  connectionsBeside,
  connectionsShort,
  countConnections,
  isPooledByTransaction,
  listUnusableTables,
  measureRoundTrip,
  readServerState,
  serverVersionMin,
} from '../../db/server-state.ts'
import type { Database } from '../../db/sql.ts'
import { Refusal } from '../../lib/errors.ts'
import { type Check, counted, fault, ok, some, warning } from './finding.ts'

interface DatabaseSubject {
  readonly db: Database
  readonly config: Config
}

/** A send waits for about six round trips. */
const tripMsMax = 10 // limit: round trip
/** Log lines of two machines that differ by more cannot be put in order. */
const clockMsMax = 2_000 // limit: clock difference

export const databaseChecks: readonly Check<DatabaseSubject>[] = [
  {
    name: 'database version',
    async look({ db }) {
      const { version, major } = await readServerState(db)
      if (major >= serverVersionMin) return ok(`PostgreSQL ${version}.`)
      return fault(`PostgreSQL ${version} is too old.`, `Upgrade it to ${serverVersionMin} or newer.`)
    },
  },
  {
    name: 'database encoding',
    async look({ db }) {
      const { encoding } = await readServerState(db)
      if (encoding === 'UTF8') return ok('UTF8.')
      return fault(
        `The encoding of the database is ${encoding}: it cannot store every message.`,
        "Create the database again with `create database … encoding 'UTF8' template template0`.",
      )
    },
  },
  {
    name: 'database rights',
    async look({ db }) {
      const tables = await listUnusableTables(db)
      if (tables.length === 0) return ok('The role reads and writes every table.')
      return fault(
        `The role cannot read and write ${counted(tables.length, 'table')}: ${some(tables)}.`,
        'Run `grant select, insert, update, delete on all tables in schema public to ROLE` as the owner.',
      )
    },
  },
  {
    name: 'durable settings',
    async look({ db }) {
      const { unsafe } = await readServerState(db)
      if (unsafe.length === 0) return ok('A commit survives a crash of the machine.')
      return fault(
        `A crash of the machine can lose commits, and messages could be sent twice: ${unsafe.join(', ')}.`,
        'Switch them on in postgresql.conf, for the database and for the role, and reload the server.',
      )
    },
  },
  {
    name: 'pooling',
    async look({ db }) {
      if (!(await isPooledByTransaction(db))) return ok('Every connection has a server process of its own.')
      return fault(
        'Two connections share one server process: a pooler works by transaction or statement.',
        'Let the pooler work by session (PgBouncer: `pool_mode = session`), or name the server itself in DATABASE_URL.',
      )
    },
  },
  {
    name: 'connections',
    async look({ db, config: { pool_size } }) {
      const { allowed, left, ours, of_role, processes } = await countConnections(db)
      if (pool_size > allowed) {
        return warning(
          `PARLEY_POOL_SIZE is ${pool_size}, and the server allows this role ${counted(allowed, 'connection')}.`,
          'Lower PARLEY_POOL_SIZE, or raise max_connections or the limit of the role or the database.',
        )
      }
      const wanted = processes * (pool_size + connectionsBeside)
      const running =
        `${counted(processes, 'running process', 'running processes')} with a PARLEY_POOL_SIZE of ${pool_size} may open ` +
        `${wanted} (each has up to ${connectionsBeside} besides)`
      // guard: connections of all processes
      if (wanted > ours) {
        return warning(
          `${running}, and ${ours} of ${allowed} can be theirs. This role has ${of_role} open.`,
          fewerConnections,
        )
      }
      if (left >= connectionsShort) return ok(`${left} of ${allowed} are left. ${running}.`)
      return warning(`Only ${left} of ${allowed} are left.`, fewerConnections)
    },
  },
  {
    name: 'round trip',
    async look({ db }) {
      const { ms } = await measureRoundTrip(db)
      const shown = `${ms.toFixed(1)} ms`
      if (ms <= tripMsMax) return ok(`${shown}.`)
      return warning(
        `A round trip to the database takes ${shown}: each send waits for about six.`,
        'Run Parley near its database.',
      )
    },
  },
  {
    name: 'clock',
    async look({ db }) {
      const { clock_ahead_ms: ahead } = await measureRoundTrip(db)
      if (Math.abs(ahead) <= clockMsMax) return ok("The server's clock agrees with this machine's.")
      const seconds = Math.round(Math.abs(ahead) / 1_000)
      return warning(
        `The server's clock is ${seconds} s ${ahead > 0 ? 'ahead of' : 'behind'} this machine's.`,
        'Let both machines set their clocks by NTP.',
      )
    },
  },
]

const fewerConnections =
  'Lower PARLEY_POOL_SIZE of the processes, or raise max_connections or the limit of the role or the database.'

export const migrationsCheck: Check<DatabaseSubject> = {
  name: 'migrations',
  async look({ db }) {
    try {
      const pending = await listPending(db)
      if (pending.length === 0) return ok('The database is migrated to this version.')
      return fault(`The database lacks ${counted(pending.length, 'migration')}: ${some(pending)}.`, upgrade)
    } catch (error) {
      if (error instanceof Refusal) return fault(error.message, 'Use the Parley that migrated this database.')
      throw error
    }
  },
}

const upgrade = 'Run `parley migrate`.'
