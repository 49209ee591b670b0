/** Chunks on a real database: stored, read back in order, and deleted when no operation needs them. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { copyDatabase, type TestDatabase } from '../../test/harness/database.ts'
import { loops } from '../access/loops.ts'
import type { App } from '../app.ts'
import { openDatabase } from '../db/pool.ts'
import { type Database, sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import { chunkBytes, forgetFiles, readChunks, storeChunk } from './files.ts'

const workspace_id = newId()
let copy: TestDatabase
let db: Database

beforeAll(async () => {
  copy = await copyDatabase()
  db = openDatabase({ connectionString: copy.url }, { pool_size: 4 })
  await db.run(sql`insert into workspaces (id, name) values (${workspace_id}, 'Files')`)
})
afterAll(async () => {
  await db.close()
  await copy.drop()
})
beforeEach(() => db.run(sql`delete from file_chunks`))

async function storeFile({ chunks = 1, minutes = 0 } = {}): Promise<string> {
  const file_id = newId()
  for (let n = 0; n < chunks; n++) {
    await storeChunk(db, { file_id, workspace_id, n, bytes: Buffer.from(`chunk ${n}`) })
  }
  await db.run(sql`
    update file_chunks set stored_at = stored_at - make_interval(mins => ${minutes}) where file_id = ${file_id}`)
  return file_id
}

/** An operation in that state, which ended this many minutes ago. */
async function link(file_id: string, state: string, minutes: number | null = null): Promise<void> {
  await db.run(sql`
    insert into operations (id, workspace_id, kind, effect, fingerprint, state, reply_status, file_id, finished_at)
    values (${newId()}, ${workspace_id}, 'send_message', 'platform', ${randomBytes(32)}, ${state},
      ${state === 'completed' ? 200 : null}, ${file_id}, domain_now() - make_interval(mins => ${minutes}))`)
}

async function readAll(file_id: string): Promise<Buffer[]> {
  const chunks: Buffer[] = []
  for await (const chunk of readChunks(db, file_id)) chunks.push(Buffer.from(chunk))
  return chunks
}

async function stored(): Promise<string[]> {
  const rows = await db.rows<{ file_id: string }>(sql`select distinct file_id from file_chunks`)
  return rows.map(({ file_id }) => file_id)
}

describe('storeChunk and readChunks', () => {
  test('returns the bytes in order, chunk by chunk', async () => {
    const file_id = newId()
    const other = await storeFile({ chunks: 2 })
    const chunks = [randomBytes(chunkBytes), randomBytes(chunkBytes), Buffer.from([0, 255, 0])]
    for (const [n, bytes] of chunks.entries()) await storeChunk(db, { file_id, workspace_id, n, bytes })
    expect(await readAll(file_id)).toEqual(chunks)
    expect((await readAll(other)).map(String)).toEqual(['chunk 0', 'chunk 1'])
  })

  test('empties a chunk when the next one is read, so that no caller reads the wrong bytes', async () => {
    const file_id = newId()
    const bytes = randomBytes(chunkBytes)
    await storeChunk(db, { file_id, workspace_id, n: 0, bytes })
    const kept: Buffer[] = []
    for await (const chunk of readChunks(db, file_id)) {
      expect(chunk.equals(bytes)).toBe(true)
      kept.push(chunk)
    }
    expect(kept.map(({ length }) => length)).toEqual([0])
  })

  test('returns each its own bytes when many are stored and read at once', async () => {
    const files = Array.from({ length: 12 }, () => ({ file_id: newId(), bytes: randomBytes(chunkBytes) }))
    await Promise.all(files.map((file) => storeChunk(db, { ...file, workspace_id, n: 0 })))
    const read = await Promise.all(files.map(({ file_id }) => readAll(file_id)))
    expect(read.map(([first], at) => first?.equals(files[at]?.bytes ?? Buffer.alloc(0)))).toEqual(
      files.map(() => true),
    )
  })

  test('an unknown file has no bytes', async () => {
    expect(await readAll(newId())).toEqual([])
  })

  test('flushes everything to disk but the commit of a chunk', async () => {
    const setting = sql`select current_setting('synchronous_commit') as value`
    await db.run(sql`create table commits (value text)`)
    await db.run(sql`
      create function note_commit() returns trigger language plpgsql as $$
      begin
        insert into commits values (current_setting('synchronous_commit'));
        return null;
      end $$`)
    await db.run(
      sql`create trigger commits after insert on file_chunks for each row execute function note_commit()`,
    )
    for (let round = 0; round < 8; round++) await storeFile()
    expect(await db.rows(sql`select distinct value from commits`)).toEqual([{ value: 'off' }])
    await db.run(sql`drop trigger commits on file_chunks`)
    const after = await Promise.all([1, 2, 3, 4].map(() => db.one(setting)))
    expect(after).toEqual(Array(4).fill({ value: 'on' }))
  })

  test('a connection that breaks in the middle stores nothing, and the next one works', async () => {
    await db.run(sql`
      create function end_here() returns trigger language plpgsql as $$
      begin
        perform pg_terminate_backend(pg_backend_pid());
        return null;
      end $$`)
    await db.run(
      sql`create trigger ends after insert on file_chunks for each row execute function end_here()`,
    )
    const chunk = { file_id: newId(), workspace_id, n: 0, bytes: randomBytes(chunkBytes) }
    await expect(storeChunk(db, chunk)).rejects.toMatchObject({ code: 'store_unavailable' })
    await db.run(sql`drop trigger ends on file_chunks`)
    expect(await stored()).toEqual([])
    await storeChunk(db, chunk)
    expect(await readAll(chunk.file_id)).toEqual([chunk.bytes])
  })

  test('refuses what the database refuses to read, and keeps the connection usable', async () => {
    const one = openDatabase({ connectionString: copy.url }, { pool_size: 1 })
    const file_id = await storeFile()
    await db.transaction(async (tx) => {
      await tx.run(sql`lock table file_chunks in access exclusive mode`)
      await expect(readChunks(one, file_id).next()).rejects.toMatchObject({ code: 'store_unavailable' })
    })
    const { value } = await readChunks(one, file_id).next()
    expect(String(value)).toBe('chunk 0')
    await one.close()
  })

  test('storing the same chunk twice is a bug, not a second chunk', async () => {
    const chunk = { file_id: newId(), workspace_id, n: 0, bytes: Buffer.from('x') }
    await storeChunk(db, chunk)
    await expect(storeChunk(db, chunk)).rejects.toMatchObject({ code: '23505' })
    // The connection is usable.
    for (let n = 1; n < 9; n++) await storeChunk(db, { ...chunk, n })
    expect(await readAll(chunk.file_id)).toHaveLength(9)
  })
})

describe('forgetFiles', () => {
  test('deletes an unlinked file after an hour, with all its chunks', async () => {
    const young = await storeFile({ chunks: 3, minutes: 59 })
    await storeFile({ chunks: 3, minutes: 61 })
    expect(await forgetFiles(db)).toBe(1)
    expect(await stored()).toEqual([young])
    expect(await forgetFiles(db)).toBe(0)
  })

  test.each([
    ['queued', null],
    ['submitting', null],
    ['released', 59],
    ['ambiguous', 59],
  ])('keeps the file of an operation that is %s', async (state, minutes) => {
    const file_id = await storeFile({ minutes: 600 })
    await link(file_id, state, minutes)
    expect(await forgetFiles(db)).toBe(0)
    expect(await stored()).toEqual([file_id])
  })

  test.each([
    ['completed', 0],
    ['refused', 0],
    ['released', 61],
    ['ambiguous', 61],
  ])('deletes the file of one that has been %s for %i minutes', async (state, minutes) => {
    await link(await storeFile({ chunks: 2 }), state, minutes)
    expect(await forgetFiles(db)).toBe(1)
    expect(await stored()).toEqual([])
  })

  test('keeps it while any of its operations needs it', async () => {
    const file_id = await storeFile({ minutes: 600 })
    await link(file_id, 'completed', 600)
    await link(file_id, 'queued')
    expect(await forgetFiles(db)).toBe(0)
  })

  test('does a bounded part of the work per call, and two at once do not wait for each other', async () => {
    for (let at = 0; at < 25; at++) await storeFile({ minutes: 61 + at })
    const both = await Promise.all([forgetFiles(db), forgetFiles(db)])
    for (const files of both) expect(files).toBeLessThanOrEqual(10)
    let rest = 25 - both.reduce((sum, files) => sum + files)
    while (rest > 0) rest -= await forgetFiles(db)
    expect(await stored()).toEqual([])
  })

  test('the loop continues while there is something to delete', async () => {
    for (let at = 0; at < 31; at++) await storeFile({ minutes: 61 + at })
    const loop = loops().find(({ name }) => name === 'forget-files')
    const step = () => loop?.step({ db } as App, AbortSignal.timeout(60_000))
    while (await step());
    expect(await stored()).toEqual([])
  })
})

describe('what a workspace has stored', () => {
  const count = () =>
    db.maybe(sql`select bytes::int from stored_bytes where workspace_id = ${workspace_id} and bytes > 0`)

  test('is counted up and down, also when files of several workspaces are deleted together', async () => {
    const other = newId()
    const bytes = randomBytes(1_000)
    for (const n of [0, 1]) await storeChunk(db, { file_id: newId(), workspace_id, n, bytes })
    await storeChunk(db, { file_id: newId(), workspace_id: other, n: 0, bytes })
    expect(await db.rows(sql`select sum(bytes)::int as bytes from stored_bytes`)).toEqual([{ bytes: 3_000 }])
    expect(await count()).toEqual({ bytes: 2_000 })
    await db.run(sql`delete from file_chunks`)
    expect(await count()).toBeUndefined()
    expect(await db.rows(sql`select sum(bytes)::int as bytes from stored_bytes`)).toEqual([{ bytes: 0 }])
  })

  test('does not include a chunk that was not stored', async () => {
    const chunk = { file_id: newId(), workspace_id, n: 0, bytes: Buffer.from('12345') }
    await storeChunk(db, chunk)
    await expect(storeChunk(db, chunk)).rejects.toMatchObject({ code: '23505' })
    expect(await count()).toEqual({ bytes: 5 })
  })
})
