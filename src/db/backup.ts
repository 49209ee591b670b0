/** Writes everything the database holds into one file, as of one moment. */
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { type FileHandle, link, lstat, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type pg from 'pg'
import { Refusal } from '../lib/errors.ts'
import type { EncryptBytes } from './backup-encryption.ts'
import { type BackupEnd, type BackupHeader, type BackupTable, BackupWriter } from './backup-file.ts'
import { copyRows } from './copy-stream.ts'
import { syncDirectory } from './secret-file.ts'
import type { SecretUse } from './secret-use.ts'
import type { Database } from './sql.ts'

/** Migrations fill the first themselves; the others are out of date after a restore. Unlogged tables are left out as well. */
const leftOut = ['schema_migrations', 'workers', 'alerts', 'alert_posts']

/** A backup has no time limit. Values are written and read the same way whatever a server's settings are. */
export const patience = `
  set lock_timeout = 0; set statement_timeout = 0; set idle_in_transaction_session_timeout = 0;
  set client_encoding = 'UTF8'; set timezone = 'UTC'; set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres';
  set extra_float_digits = 1; set bytea_output = 'hex'; set search_path = public`

export interface BackupFacts {
  readonly bytes: number
  readonly tables: BackupEnd['tables']
}

type HeaderOfCaller = Omit<BackupHeader, 'made_at' | 'migrations'>
/** The secrets that the snapshot is sealed with; undefined if it does not say. */
export type SnapshotSecrets = Pick<SecretUse, 'secret_id' | 'old_id'> | undefined

interface NewBackup {
  /** Asked within the snapshot: a rotation may have begun since the caller looked. */
  readonly header: (secrets: SnapshotSecrets) => Promise<HeaderOfCaller>
  readonly made: (facts: BackupFacts) => Promise<void>
  readonly encrypt?: EncryptBytes | undefined
}

/**
 * The file has a temporary name until it is complete and on the disk. `made` runs before it gets its final name: a file
 * with all the data must not exist without a record of who made it.
 */
export async function writeBackup(
  db: Database,
  path: string,
  { header, made, encrypt }: NewBackup,
): Promise<BackupFacts> {
  await requireAbsent(path)
  const draft = `${path}.${randomBytes(4).toString('hex')}.partial`
  const file = await open(draft, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw new Refusal(`The file ${path} cannot be created (${error.code}).`)
  })
  // Also when the process is interrupted: half a backup is useless.
  const forget = () => rmSync(draft, { force: true })
  process.once('exit', forget)
  try {
    const { tables } = await fill(db, file, { header, encrypt })
    const { size } = await file.stat()
    const facts = { bytes: size, tables }
    await made(facts)
    await publish(draft, path)
    return facts
  } finally {
    await file.close()
    await rm(draft, { force: true })
    process.off('exit', forget)
  }
}

async function requireAbsent(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (found) throw exists(path)
}

function exists(path: string): Refusal {
  return new Refusal(`${path} already exists, and a backup never overwrites a file. Choose another name.`)
}

/** A link does not replace an existing file, as a rename would. */
async function publish(draft: string, path: string): Promise<void> {
  await link(draft, path).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EEXIST' ? exists(path) : new Refusal(`${path} cannot be created (${error.code}).`)
  })
  await syncDirectory(dirname(path))
}

async function fill(
  db: Database,
  file: FileHandle,
  { header, encrypt }: Pick<NewBackup, 'header' | 'encrypt'>,
): Promise<BackupEnd> {
  const client = await db.client()
  const writer = new BackupWriter(file, encrypt)
  try {
    await client.query(patience)
    // crash point 26: the snapshot is taken next
    await client.query('begin isolation level repeatable read read only')
    const secrets = await readSecrets(client) // guard: a backup names the secrets of its snapshot
    writer.header({ ...(await readState(client)), ...(await header(secrets)) })
    const tables = []
    for (const table of await listTables(client)) {
      writer.table(table)
      const rows = await copyRows(client, `copy ${listOf(table)} to stdout`, (row) => writer.rows(row))
      tables.push({ name: table.name, rows })
    }
    // Sequences are not part of a snapshot. Read last, they are beyond every copied row.
    const end = { tables, sequences: await readSequences(client) }
    await writer.end(end)
    return end
  } catch (error) {
    throw refusalOf(writer.failure ?? error)
  } finally {
    await writer.abandon()
    await client.end()
  }
}

/** Disk errors become a refusal for the operator; other errors stay as they are. */
function refusalOf(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG' || code === 'EIO') {
    return new Refusal(`The backup could not be written (${code}). The incomplete file was removed.`)
  }
  return error
}

async function readSecrets(client: pg.Client): Promise<SnapshotSecrets> {
  // The schema may be an older one.
  const { rows: found } = await client.query(`select to_regclass('public.secret_use') is not null as there`)
  if (!found[0].there) return undefined
  const { rows } = await client.query('select secret_id, old_id from secret_use')
  return rows[0]
}

async function readState(client: pg.Client): Promise<Pick<BackupHeader, 'made_at' | 'migrations'>> {
  const { rows } = await client.query(`
    select clock_timestamp() as made_at,
      (select json_agg(json_build_object('name', name, 'checksum', checksum) order by version)
       from schema_migrations) as migrations`)
  return { ...rows[0], made_at: rows[0].made_at.toISOString() }
}

/** The tables of a backup and their columns, each after the tables it refers to. */
export async function listTables(client: pg.Client): Promise<BackupTable[]> {
  const { rows } = await client.query<BackupTable & { needs: readonly string[] }>(
    `
    select c.relname as name,
      (select array_agg(attname::text order by attnum) from pg_attribute
       where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns,
      array(select distinct f.relname::text from pg_constraint k join pg_class f on f.oid = k.confrelid
       where k.conrelid = c.oid and k.contype = 'f' and f.oid <> c.oid) as needs
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relpersistence = 'p'
      and c.relname <> all($1)
    order by c.relname`,
    [leftOut],
  )
  const sorted: BackupTable[] = []
  let left = rows
  while (left.length > 0) {
    const names = new Set(left.map(({ name }) => name))
    const next = left.filter(({ needs }) => !needs.some((need) => names.has(need)))
    if (next.length === 0)
      throw new Error(`Tables refer to each other in a circle: ${[...names].join(', ')}.`)
    sorted.push(...next.map(({ name, columns }) => ({ name, columns })))
    left = left.filter((table) => !next.includes(table))
  }
  return sorted
}

/** A table and its columns in COPY's syntax. The names come from the catalogs. */
export function listOf({ name, columns }: BackupTable): string {
  const quoted = [name, ...columns].map((word) => `"${word.replaceAll('"', '""')}"`)
  return `public.${quoted[0]} (${quoted.slice(1).join(', ')})`
}

async function readSequences(client: pg.Client): Promise<BackupEnd['sequences']> {
  const sequences = []
  for (const name of await listSequences(client)) {
    const { rows } = await client.query(
      `select last_value::text, is_called from public."${name.replaceAll('"', '""')}"`,
    )
    sequences.push({ name, ...rows[0] })
  }
  return sequences
}

export async function listSequences(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'S' and relpersistence = 'p' order by relname`)
  return rows.map(({ name }) => name)
}
