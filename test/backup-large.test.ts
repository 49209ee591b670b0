/** A backup and a restore of 200 MB keep a small part of it in memory at a time, also of an encrypted one. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeBackup } from '../src/db/backup.ts'
import { type BackupKey, type BackupLock, prepareEncryption } from '../src/db/backup-encryption.ts'
import { openBackup } from '../src/db/backup-file.ts'
import { openDatabase } from '../src/db/pool.ts'
import { requireSteps, restoreBackup } from '../src/db/restore.ts'
import { type Database, sql } from '../src/db/sql.ts'
import { chunkBytes } from '../src/ledger/files.ts'
import { newId } from '../src/lib/ids.ts'
import { copyDatabase, type TestDatabase } from './harness/database.ts'

const chunks = 800
/** The runtime collects bytes outside its heap only after 64 MB; keeping the data would take 400. */
const growthMax = 128 * 1024 ** 2

let directory: string
const copies: TestDatabase[] = []
const databases: Database[] = []
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-large-'))
})
afterAll(async () => {
  for (const db of databases) await db.close()
  for (const copy of copies) await copy.drop()
  await rm(directory, { recursive: true, force: true })
})

async function database(): Promise<Database> {
  const copy = await copyDatabase({ plans: 'shipped' })
  const db = openDatabase({ connectionString: copy.url }, { pool_size: 2 })
  copies.push(copy)
  databases.push(db)
  return db
}

const header = async () => ({ parley_version: '0.0.0', secret: null, secret_id: 'which' })

async function backUp(db: Database, name: string, lock?: BackupLock): Promise<number> {
  const encrypt = lock && (await prepareEncryption(lock))
  const { bytes } = await writeBackup(db, join(directory, name), { header, made: async () => {}, encrypt })
  return bytes
}

async function restore(db: Database, name: string, key?: BackupKey): Promise<void> {
  const backup = await openBackup(join(directory, name), key)
  const steps = await requireSteps(backup)
  await restoreBackup(db, backup, { steps, finish: async () => {} })
  await backup.close()
}

async function growth(work: () => Promise<unknown>): Promise<number> {
  const base = process.memoryUsage().rss
  let peak = base
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss)
  }, 5)
  await work()
  clearInterval(timer)
  return Math.max(peak, process.memoryUsage().rss) - base
}

test('the process grows by less than 128 MB in both, so it keeps neither in memory', {
  timeout: 300_000,
}, async () => {
  const source = await database()
  const target = await database()
  const other = await database()
  const identity = await generateX25519Identity()
  const [lock, key] = [{ recipients: [await identityToRecipient(identity)] }, { identities: [identity] }]
  // Excludes what is loaded and compiled once.
  await backUp(source, 'warm')
  await restore(target, 'warm')
  await backUp(source, 'warm-locked', lock)
  await restore(other, 'warm-locked', key)
  const [file_id, workspace_id, bytes] = [newId(), newId(), randomBytes(chunkBytes)]
  await source.run(
    sql`insert into file_chunks (file_id, n, workspace_id, bytes) values (${file_id}, 0, ${workspace_id}, ${bytes})`,
  )
  for (let n = 1; n < chunks; n++) {
    await source.run(
      sql`insert into file_chunks (file_id, n, workspace_id, bytes) select file_id, ${n}, workspace_id, bytes from file_chunks where n = 0`,
    )
  }
  const backing = await growth(async () =>
    expect(await backUp(source, 'large')).toBeGreaterThan(chunks * chunkBytes),
  )
  const restoring = await growth(() => restore(target, 'large'))
  const locking = await growth(() => backUp(source, 'locked', lock))
  const unlocking = await growth(() => restore(other, 'locked', key))
  const grown = [backing, restoring, locking, unlocking].map((bytes) => Math.round(bytes / 2 ** 20))
  process.stdout.write(`grew by ${grown.join(', ')} MB\n`)
  expect(Math.max(backing, restoring, locking, unlocking)).toBeLessThan(growthMax)
  for (const db of [target, other]) {
    expect(
      await db.one(sql`select count(*)::int as n, sum(length(bytes))::float as size from file_chunks`),
    ).toEqual({
      n: chunks,
      size: chunks * chunkBytes,
    })
  }
})
