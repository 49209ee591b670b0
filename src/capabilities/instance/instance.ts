/** The running instance as operators see it: its workers, database and versions. */
import type { App } from '../../app.ts'
import { sql } from '../../db/sql.ts'
import { ages, readFileFigures, readLedgerFigures } from '../../ledger/figures.ts'
import { listWorkers } from '../../ledger/workers.ts'
import { version } from '../../lib/version.ts'

interface DatabaseFigures {
  readonly version: string
  readonly size: number
  readonly connections: number
  readonly connections_max: number
  /** The newest migration. */
  readonly migration: string
}

export async function describeInstance({ db, config }: App) {
  const [database, workers, ledger, files] = await Promise.all([
    db.one<DatabaseFigures>(sql`
      select current_setting('server_version') as version, pg_database_size(current_database())::float8 as size,
        (select count(*)::int from pg_stat_activity where datname = current_database()) as connections,
        current_setting('max_connections')::int as connections_max,
        (select name from schema_migrations order by version desc limit 1) as migration`),
    listWorkers(db),
    readLedgerFigures(db),
    readFileFigures(db),
  ])
  return {
    version,
    node: process.versions.node,
    database: { ...database, embedded: config.database.kind === 'embedded' },
    workers,
    queued: ledger.queued,
    queued_seconds: ledger.queued_seconds,
    ambiguous: ages.reduce((sum, age) => sum + ledger.ambiguous[age], 0),
    files_waiting: files.files,
  }
}
