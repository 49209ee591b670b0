/** Restores a backup into an empty database, all of it in one transaction. */
import pg from 'pg'
import { Refusal } from '../lib/errors.ts'
import { listOf, listSequences, listTables, patience } from './backup.ts'
import type { BackupEnd, BackupPart, BackupTable, OpenBackup } from './backup-file.ts'
import { copyStream } from './copy-stream.ts'
import {
  applyMigration,
  listMigrations,
  type Migration,
  makeMigrationsTable,
  migrationLock,
} from './migrate.ts'
import { transactionOn } from './pool.ts'
import type { Database, Tx } from './sql.ts'

/** The migrations of a backup, and those that came after it. */
interface Steps {
  readonly before: readonly Migration[]
  readonly after: readonly Migration[]
}

export async function requireSteps({ header }: OpenBackup, directories?: readonly string[]): Promise<Steps> {
  const known = await listMigrations(directories)
  for (const { name, checksum } of header.migrations) {
    const ours = known.find((migration) => migration.name === name)
    if (!ours) {
      throw new Refusal(
        `The backup was created by a newer Parley (${header.parley_version}): it has the migration ${name}. Restore it with that version.`,
      )
    }
    if (ours.checksum !== checksum) {
      throw new Refusal(`The migration ${name} differs from the one that created the backup.`)
    }
  }
  const names = new Set(header.migrations.map(({ name }) => name))
  return {
    before: known.filter(({ name }) => names.has(name)),
    after: known.filter(({ name }) => !names.has(name)),
  }
}

/**
 * `finish` commits with it. A process that is killed meanwhile leaves the database as empty as it found it.
 */
export async function restoreBackup(
  db: Database,
  backup: OpenBackup,
  { steps, finish }: { steps: Steps; finish: (tx: Tx, end: BackupEnd) => Promise<void> },
): Promise<BackupEnd> {
  const client = await db.client()
  try {
    await client.query(patience)
    await client.query('select pg_advisory_lock($1)', [migrationLock])
    return await transactionOn(client, async (tx) => {
      await requireEmpty(client)
      await client.query('drop schema public cascade; create schema public')
      await client.query(makeMigrationsTable)
      for (const migration of steps.before) await applyMigration(client, migration)
      const end = await load(client, backup)
      for (const migration of steps.after) await applyMigration(client, migration)
      // crash point 15: everything is loaded, nothing is committed
      await finish(tx, end)
      await client.query('analyze')
      return end
    })
  } finally {
    await client.end()
  }
}

async function requireEmpty(client: pg.Client): Promise<void> {
  const { rows } = await client.query(`select to_regclass('public.workspaces') is not null as there`)
  if (!rows[0].there) return
  // A transaction that wants to create one now waits, and finds the restored ones.
  await client.query('lock table workspaces, users in access exclusive mode')
  const { rows: found } = await client.query(
    'select exists (select from workspaces) or exists (select from users) as used',
  )
  if (found[0].used) {
    throw new Refusal(
      'The database of this data directory is not empty, and a restore never overwrites data. Move its folder postgres away, ' +
        'but keep ledger: it records what was sent after the backup.',
    )
  }
}

/** Triggers are off: rows return as they were, and nothing is counted, listed or refused a second time. */
async function load(client: pg.Client, backup: OpenBackup): Promise<BackupEnd> {
  const tables = await listTables(client)
  const all = tables.map(({ name }) => `public."${name}"`)
  for (const name of all) await client.query(`alter table ${name} disable trigger user`)
  // Migrations have inserted rows into some of them.
  await client.query(`truncate ${all.join(', ')}`)
  const end = await loadTables(client, tables, backup)
  const sequences = new Set(await listSequences(client))
  for (const { name, last_value, is_called } of end.sequences) {
    if (!sequences.has(name)) throw unfit(`the sequence ${name}`)
    await client.query('select setval($1::regclass, $2, $3)', [`public."${name}"`, last_value, is_called])
  }
  for (const name of all) await client.query(`alter table ${name} enable trigger user`)
  return end
}

/** If the checksum of a backup is right but its content is not, Parley did not make it. */
function unfit(what: string): Refusal {
  return new Refusal(`The backup does not match its own migrations: ${what}. Nothing was restored.`)
}

async function loadTables(
  client: pg.Client,
  tables: readonly BackupTable[],
  backup: OpenBackup,
): Promise<BackupEnd> {
  const parts = backup.parts()
  const loaded = new Map<string, number>()
  try {
    await parts.next()
    let next = await parts.next()
    while (!next.done && next.value.kind === 'table') {
      const table = requireTable(tables, next.value.table)
      if (loaded.has(table.name)) throw unfit(`the table ${table.name} is there twice`)
      const rest: { part?: IteratorResult<BackupPart, void> } = {}
      loaded.set(table.name, await loadRows(client, table, rowsOf(parts, rest)))
      next = rest.part ?? { done: true, value: undefined }
    }
    if (next.done || next.value.kind !== 'end') throw unfit('its end is missing')
    const { end } = next.value
    const counted = new Map(end.tables.map(({ name, rows }) => [name, rows]))
    for (const { name } of tables) {
      if (!loaded.has(name) || loaded.get(name) !== counted.get(name)) throw unfit(`the rows of ${name}`)
    }
    return end
  } finally {
    await parts.return()
  }
}

async function loadRows(client: pg.Client, table: BackupTable, rows: AsyncIterable<Buffer>): Promise<number> {
  try {
    return await copyStream(client, `copy ${listOf(table)} from stdin`, rows)
  } catch (error) {
    // An invalid value, a violated constraint, a foreign key without its row.
    const refused = error instanceof pg.DatabaseError && /^2[23]/.test(error.code ?? '')
    throw refused ? unfit(`the rows of ${table.name}`) : error
  }
}

function requireTable(tables: readonly BackupTable[], wanted: BackupTable): BackupTable {
  const table = tables.find(({ name }) => name === wanted.name)
  if (!table || table.columns.join() !== wanted.columns.join()) throw unfit(`the table ${wanted.name}`)
  return table
}

/** Yields the rows up to the next part of another kind, and leaves that part in `rest`. */
async function* rowsOf(
  parts: AsyncGenerator<BackupPart, void>,
  rest: { part?: IteratorResult<BackupPart, void> },
): AsyncGenerator<Buffer> {
  for (;;) {
    const part = await parts.next()
    if (part.done || part.value.kind !== 'rows') {
      rest.part = part
      return
    }
    yield part.value.bytes
  }
}
