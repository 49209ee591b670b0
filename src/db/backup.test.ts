/** A backup's file and the database restored from it, on databases of the test cluster. */
import { createHash } from 'node:crypto'
import {
  copyFile,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { copyDatabase, type TestDatabase } from '../../test/harness/database.ts'
import { hangMs, until } from '../../test/harness/process.ts'
import { newId } from '../lib/ids.ts'
import { type BackupFacts, listTables, writeBackup } from './backup.ts'
import {
  type BackupEnd,
  type BackupHeader,
  type BackupTable,
  BackupWriter,
  openBackup,
} from './backup-file.ts'
import { copyRows } from './copy-stream.ts'
import { isMigrated, migrate, migrationsDirectory } from './migrate.ts'
import { openDatabase } from './pool.ts'
import { requireSteps, restoreBackup } from './restore.ts'
import { type Database, sql } from './sql.ts'

let directory: string
const opened: { db: Database; copy: TestDatabase }[] = []
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-backup-'))
})
afterAll(async () => {
  for (const { db, copy } of opened) {
    await db.close()
    await copy.drop()
  }
  await rm(directory, { recursive: true, force: true })
})

async function database(): Promise<Database> {
  const copy = await copyDatabase()
  const db = openDatabase({ connectionString: copy.url }, { pool_size: 4 })
  opened.push({ db, copy })
  return db
}

const path = (name: string) => join(directory, name)
const given = { parley_version: '0.0.0', secret: 's'.repeat(43), secret_id: 'which' }

function backUp(db: Database, name: string) {
  return writeBackup(db, path(name), { header: async () => given, made: async () => {} })
}

async function restore(db: Database, name: string): Promise<BackupEnd> {
  const backup = await openBackup(path(name))
  try {
    const steps = await requireSteps(backup)
    return await restoreBackup(db, backup, { steps, finish: async () => {} })
  } finally {
    await backup.close()
  }
}

async function addWorkspace(db: Database, stages: number): Promise<string> {
  const id = newId()
  await db.transaction(async (tx) => {
    await tx.run(sql`insert into workspaces (id, name) values (${id}, 'W')`)
    await tx.run(sql`
      insert into stages (workspace_id, key, label, position)
      select ${id}, 's' || n, 'S', n from generate_series(1, ${stages}::int) n`)
  })
  return id
}

/** Rows that are hard to copy, and rows that a trigger would change, refuse, or add others for. */
async function fill(db: Database): Promise<void> {
  const id = await addWorkspace(db, 3)
  const account = `acc_${'a'.repeat(8)}`
  await db.run(sql`
    insert into stages (workspace_id, key, label, position) values (${id}, 'odd', E'a\\tb\\nc\\\\d \\\\. \\\\N é😀', 9), (${id}, 'new', 'New', 0)`)
  await db.run(
    sql`insert into accounts (id, workspace_id, platform, name) values (${account}, ${id}, 'sandbox', 'A')`,
  )
  await db.run(sql`
    insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
    select ${account}, 1, n, ${id}, 'text ' || n, false, '2027-01-01T00:00:00.123Z' from generate_series(1, 3000) n`)
  // As if they were indexed: a restore must not index them again.
  await db.run(sql`delete from search_pending where id > 10`)
  await db.run(sql`
    insert into file_chunks (file_id, n, workspace_id, bytes)
    select ${newId()}, n, ${id}, decode(repeat(md5(n::text), 20000), 'hex') from generate_series(0, 4) n`)
  await db.run(sql`
    insert into operations (id, workspace_id, kind, effect, fingerprint, state, account_id, random_id)
    values (${newId()}, ${id}, 'send_message', 'platform', decode(repeat('ab', 32), 'hex'), 'ambiguous', ${account}, -42)`)
  await db.run(sql`
    insert into outbox (workspace_id, type, occurred_at, data) values (${id}, 't', '-infinity', '{"a":  1}'), (${id}, 't', 'infinity', '[]')`)
  await db.run(sql`delete from outbox`)
  await db.run(sql`insert into workers (id) values (${newId()})`)
  await db.run(sql`insert into request_log (caller, hits) values ('me', '{}')`)
}

/** Every row of every table as text. */
async function readAll(db: Database): Promise<Map<string, string[]>> {
  const client = await db.client()
  try {
    const tables = new Map<string, string[]>()
    for (const { name } of await listTables(client)) {
      const { rows } = await client.query(`select t::text as row from "${name}" t order by 1`)
      tables.set(
        name,
        rows.map(({ row }) => row),
      )
    }
    return tables
  } finally {
    await client.end()
  }
}

describe('a round trip', () => {
  let before: Map<string, string[]>
  let facts: BackupFacts
  beforeAll(async () => {
    const source = await database()
    await fill(source)
    before = await readAll(source)
    facts = await backUp(source, 'round')
  })

  test('restores every row of every table unchanged, from a file that only its owner can read', async () => {
    const { tables, bytes } = facts
    expect(await stat(path('round'))).toMatchObject({ size: bytes })
    expect((await stat(path('round'))).mode & 0o777).toBe(0o600)
    expect(Object.fromEntries(tables.map(({ name, rows }) => [name, rows]))).toEqual(
      Object.fromEntries([...before].map(([name, rows]) => [name, rows.length])),
    )
    const target = await database()
    await restore(target, 'round')
    expect(await readAll(target)).toEqual(before)
    expect(await isMigrated(target)).toBe(true)
    expect(before.get('messages')).toHaveLength(3000)
    expect(before.get('search_pending')).toHaveLength(10)
  })

  test('leaves out tables whose rows have lost their meaning, and continues sequences where they were', async () => {
    const target = await database()
    await restore(target, 'round')
    expect(
      await target.rows(sql`select id::text from workers union all select caller from request_log`),
    ).toEqual([])
    const id = newId()
    await target.run(sql`insert into workspaces (id, name) values (${id}, 'W')`)
    expect(
      await target.one(sql`
        insert into outbox (workspace_id, type, occurred_at, data) values (${id}, 't', now(), '1') returning id::int`),
    ).toEqual({ id: 3 })
  })

  test('switches the triggers on again', async () => {
    const target = await database()
    await restore(target, 'round')
    await expect(target.run(sql`update operations set state = 'queued'`)).rejects.toThrow('must not go from')
    expect(
      await target.rows(sql`select tgname from pg_trigger where tgenabled <> 'O' and not tgisinternal`),
    ).toEqual([])
  })

  test('contains the rows of one moment, whatever is written in the meantime', async () => {
    const source = await database()
    await addWorkspace(source, 2)
    const writing = await source.client()
    await writing.query('begin; lock table stages in access exclusive mode')
    const made = backUp(source, 'moment')
    // By then workspaces are copied and suppressions are not.
    await until('the backup waits for the stages', hangMs, async () => {
      const { rows } = await writing.query(
        `select from pg_locks where relation = 'stages'::regclass and not granted`,
      )
      return rows.length > 0
    })
    // Longer than the service waits for a lock.
    await sleep(2_500)
    const id = newId()
    await writing.query(`insert into workspaces (id, name) values ('${id}', 'Later')`)
    await writing.query(
      `insert into suppressions (workspace_id, kind, value, source) values ('${id}', 'username', 'x', 'operator')`,
    )
    await writing.query('commit')
    await writing.end()
    await made
    const target = await database()
    await restore(target, 'moment')
    expect(
      await target.one(sql`
        select (select count(*)::int from workspaces) as workspaces, (select count(*)::int from stages) as stages,
          (select count(*)::int from suppressions) as suppressions`),
    ).toEqual({ workspaces: 1, stages: 2, suppressions: 0 })
  })

  test('migrates a backup of an older version to this one, with its rows', async () => {
    const older = path('older-migrations')
    await mkdir(older)
    const all = (await readdir(migrationsDirectory)).sort()
    const old = all.filter((name) => name < '0012')
    for (const name of old) await copyFile(join(migrationsDirectory, name), join(older, name))
    const source = await database()
    await source.pool.query('drop schema public cascade; create schema public')
    await migrate(source, [older])
    await source.run(sql`insert into workspaces (id, name) values (${newId()}, 'Old')`)
    await backUp(source, 'older')
    const target = await database()
    await restore(target, 'older')
    expect(await isMigrated(target)).toBe(true)
    expect(await target.rows(sql`select name from workspaces`)).toEqual([{ name: 'Old' }])
    const { instance } = await source.one<{ instance: string }>(
      sql`select id::text as instance from instance`,
    )
    expect(await target.one(sql`select id::text as instance from instance`)).toEqual({ instance })
  })
})

describe('an existing file', () => {
  test.each(['file', 'link'])('is refused and unchanged (%s)', async (kind) => {
    const name = `taken-${kind}`
    if (kind === 'file') await writeFile(path(name), 'mine')
    else await symlink(path('nowhere'), path(name))
    let made = false
    const note = async () => {
      made = true
    }
    const refused = writeBackup(await database(), path(name), { header: async () => given, made: note })
    await expect(refused).rejects.toThrow('never overwrites')
    // Immediately, not after everything was copied.
    expect(made).toBe(false)
    if (kind === 'file') expect(await readFile(path(name), 'utf8')).toBe('mine')
  })

  test('is also refused when it appears while the backup is made, and nothing is left over', async () => {
    const made = () => writeFile(path('raced'), 'mine')
    await expect(
      writeBackup(await database(), path('raced'), { header: async () => given, made }),
    ).rejects.toThrow('never overwrites')
    expect(await readFile(path('raced'), 'utf8')).toBe('mine')
    expect((await readdir(directory)).filter((name) => name.includes('partial'))).toEqual([])
  })

  test('a backup that cannot be audited leaves no file', async () => {
    const made = () => Promise.reject(new Error('no audit'))
    await expect(
      writeBackup(await database(), path('unnoted'), { header: async () => given, made }),
    ).rejects.toThrow('no audit')
    expect((await readdir(directory)).filter((name) => name.includes('unnoted'))).toEqual([])
  })
})

test("a file that cannot be written fails with the disk's error, and delays no other transaction", async () => {
  const source = await database()
  await fill(source)
  const client = await source.client()
  await writeFile(path('read-only'), '')
  const file = await open(path('read-only'), 'r')
  const writer = new BackupWriter(file)
  const copied = copyRows(client, 'copy file_chunks to stdout', (row) => writer.rows(row))
  await expect(copied.then(() => writer.end({ tables: [], sequences: [] }))).rejects.toThrow('EBADF')
  await file.close()
  await client.end()
})

describe('a damaged file', () => {
  const whole = 'whole'
  let bytes: Buffer
  beforeAll(async () => {
    const source = await database()
    await fill(source)
    await backUp(source, whole)
    bytes = await readFile(path(whole))
  })

  async function openWith(content: Buffer | string): Promise<string> {
    await writeFile(path('bad'), content)
    return openBackup(path('bad')).then(
      async (backup) => {
        await backup.close()
        return 'opened'
      },
      (error: Error) => `${error.name}: ${error.message}`,
    )
  }

  test('opens when it is whole', async () => {
    expect(await openWith(bytes)).toBe('opened')
  })

  test('is refused wherever it is cut off', async () => {
    for (const length of [15, 16, 17, 80, 100, bytes.length >> 1, bytes.length - 72, bytes.length - 1]) {
      expect(await openWith(bytes.subarray(0, length)), String(length)).toMatch(
        /Refusal: .*truncated or changed/,
      )
    }
    expect(await openWith(Buffer.concat([bytes, Buffer.from('\n')]))).toMatch(/truncated or changed/)
  })

  test('is refused wherever a bit is flipped', async () => {
    for (const at of [
      16,
      17,
      20,
      25,
      40,
      bytes.length >> 2,
      bytes.length >> 1,
      bytes.length - 73,
      bytes.length - 70,
      bytes.length - 1,
    ]) {
      const flipped = Buffer.from(bytes)
      flipped.writeUInt8(flipped.readUInt8(at) ^ 1, at)
      expect(await openWith(flipped), String(at)).toMatch(/Refusal: .*truncated or changed/)
    }
  })

  test('is refused if it is something else, has a later format, or does not exist', async () => {
    expect(await openWith('')).toMatch(/is not a backup of Parley/)
    expect(await openWith('hello, this is a letter and not a backup')).toMatch(/is not a backup of Parley/)
    expect(await openWith(gzipSync('rows'))).toMatch(/is not a backup of Parley/)
    const later = bytes.toString('latin1').replace('parley-backup 1', 'parley-backup 2')
    expect(await openWith(Buffer.from(later, 'latin1'))).toMatch(/created by a newer Parley/)
    await expect(openBackup(path('absent'))).rejects.toThrow('does not exist')
    await expect(openBackup(directory)).rejects.toThrow(/cannot be read|not a backup/)
  })

  test('is refused if its checksum is right and its frames are not', async () => {
    for (const frames of [
      Buffer.alloc(0),
      Buffer.from([0x48, 0, 0, 0, 2, 0x7b, 0x7d]),
      Buffer.from([0x48, 0xff, 0xff, 0xff, 0xff]),
    ]) {
      const head = Buffer.concat([Buffer.from('parley-backup 1\n'), gzipSync(frames)])
      const hash = createHash('sha256').update(head).digest('hex')
      expect(await openWith(Buffer.concat([head, Buffer.from(`sha256 ${hash}\n`)]))).toMatch(
        /Refusal: .*truncated or changed/,
      )
    }
  })
})

describe('a backup that does not match is refused', () => {
  let header: BackupHeader
  let tables: BackupTable[]
  beforeAll(async () => {
    const source = await database()
    await backUp(source, 'empty')
    const backup = await openBackup(path('empty'))
    header = backup.header
    await backup.close()
    const client = await source.client()
    tables = await listTables(client)
    await client.end()
  })

  /** A file made by hand, checksum included. */
  async function forge(
    name: string,
    change: {
      header?: Partial<BackupHeader>
      tables?: BackupTable[]
      rows?: Record<string, string>
      end?: Partial<BackupEnd>
    },
  ) {
    const file = await open(path(name), 'wx')
    const writer = new BackupWriter(file)
    writer.header({ ...header, ...change.header })
    for (const table of change.tables ?? tables) {
      writer.table(table)
      await writer.rows(Buffer.from(change.rows?.[table.name] ?? ''))
    }
    const counts = tables.map((table) => ({ name: table.name, rows: 0 }))
    await writer.end({ tables: counts, sequences: [], ...change.end })
    await file.close()
    return name
  }

  /** A refused file leaves the database unchanged. */
  async function expectRefused(name: string, sentence: RegExp): Promise<void> {
    const target = await database()
    const before = await readAll(target)
    await expect(restore(target, name)).rejects.toThrow(sentence)
    expect(await readAll(target)).toEqual(before)
  }

  test('of a newer Parley', async () => {
    const migrations = [...header.migrations, { name: '9999_later.sql', checksum: 'x' }]
    await expectRefused(await forge('newer', { header: { migrations } }), /newer Parley .*9999_later/)
  })

  test('of other migrations', async () => {
    const migrations = header.migrations.map(({ name }) => ({ name, checksum: 'x' }))
    await expectRefused(await forge('other', { header: { migrations } }), /differs from the one/)
  })

  test('with a missing, an additional, a repeated table, or with other columns', async () => {
    const [first, ...rest] = tables as [BackupTable, ...BackupTable[]]
    await expectRefused(await forge('few', { tables: rest }), /the rows of/)
    await expectRefused(
      await forge('many', { tables: [...tables, { name: 'workers', columns: ['id'] }] }),
      /the table workers/,
    )
    await expectRefused(await forge('twice', { tables: [first, ...tables] }), /there twice/)
    await expectRefused(
      await forge('columns', { tables: [{ ...first, columns: ['x'] }, ...rest] }),
      /the table/,
    )
  })

  test('with another number of rows than it states, or with rows that refer to nothing', async () => {
    const rows = { workspaces: `${newId()}\tW\tUTC\t2027-01-01\n` }
    await expectRefused(await forge('uncounted', { rows }), /the rows of workspaces/)
    const counts = tables.map(({ name }) => ({ name, rows: name === 'stages' ? 1 : 0 }))
    const orphan = { stages: `${newId()}\tx\tX\tf\tf\t1\t2027-01-01\n` }
    await expectRefused(
      await forge('orphan', { rows: orphan, end: { tables: counts } }),
      /the rows of stages/,
    )
  })

  test('with an unknown sequence', async () => {
    const sequences = [{ name: 'pg_catalog.x', last_value: '1', is_called: true }]
    await expectRefused(await forge('sequence', { end: { sequences } }), /the sequence/)
  })
})

describe('a database that is not empty', () => {
  test('is refused and unchanged', async () => {
    const source = await database()
    await fill(source)
    await backUp(source, 'full')
    const target = await database()
    await addWorkspace(target, 1)
    const before = await readAll(target)
    await expect(restore(target, 'full')).rejects.toThrow('is not empty')
    expect(await readAll(target)).toEqual(before)
  })

  test('is also noticed when another transaction creates a workspace at the same moment', async () => {
    await backUp(await database(), 'race')
    const target = await database()
    const other = await target.client()
    await other.query('begin')
    await other.query(`insert into workspaces (id, name) values ('${newId()}', 'First')`)
    const restored = expect(restore(target, 'race')).rejects.toThrow('is not empty')
    await until('the restore waits', hangMs, async () => {
      const { rows } = await other.query(
        `select from pg_locks where relation = 'workspaces'::regclass and not granted`,
      )
      return rows.length > 0
    })
    await other.query('commit')
    await other.end()
    await restored
    expect(await target.rows(sql`select name from workspaces`)).toEqual([{ name: 'First' }])
  })
})
