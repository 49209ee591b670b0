/** Attachments: stored in chunks as they arrive, deleted once their operation no longer needs them. */
import type { App } from '../app.ts'
import { type Database, type Db, type Sql, sql, type Tx } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import { freeBuffer } from '../lib/free-buffer.ts'

export const chunkBytes = 256 * 1024
/** How many files one call deletes: their thousand chunks stay well below a statement's time limit. */
const forgottenMax = 10
/** How many bytes of unsent files one workspace may store: 1 GiB. */
const storedBytesMax = sql`1073741824` // limit: stored bytes of a workspace
/** The SQLSTATE of the trigger that counts them. */
const tooMuchStored = 'PF429'
/** Files are deleted as they are sent, and every minute a loop deletes those never sent. */
const fullSeconds = 60

export interface Chunk {
  readonly file_id: string
  readonly n: number
  readonly bytes: Buffer
}

/**
 * Its commit is not flushed to disk: nothing refers to the chunk before the operation's own commit, which is flushed.
 * Refuses with 429 when the workspace has stored as much as it may.
 */
export async function storeChunk(db: Database, chunk: Chunk & { workspace_id: string }): Promise<void> {
  const statement = sql`
    set local synchronous_commit = off;
    set local parley.stored_bytes_max = ${storedBytesMax};
    copy file_chunks (file_id, n, workspace_id, bytes) from stdin (format binary)`
  const copy = () => db.copyIn(statement, [copyHead, rowOf(chunk), chunk.bytes, copyTail])
  await oneOf(storingMax, copy).catch((cause) => {
    if ((cause as { code?: unknown }).code !== tooMuchStored) throw cause
    throw new ApiError('rate_limited', {
      detail:
        'The files that this workspace has waiting to be sent have reached their size limit. Retry once some of them are sent.',
      retry_after: fullSeconds,
      cause,
    })
  })
}

/** The header of PostgreSQL's binary COPY: signature, flags, no extension. */
const copyHead = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
const copyTail = Buffer.from([0xff, 0xff])

/** A row of four fields, each preceded by its length, up to the bytes of the last one. */
function rowOf({ file_id, n, workspace_id, bytes }: Chunk & { workspace_id: string }): Buffer {
  const row = Buffer.alloc(54)
  row.writeInt16BE(4, 0)
  row.writeInt32BE(16, 2)
  row.write(file_id.replaceAll('-', ''), 6, 'hex')
  row.writeInt32BE(4, 22)
  row.writeInt32BE(n, 26)
  row.writeInt32BE(16, 30)
  row.write(workspace_id.replaceAll('-', ''), 34, 'hex')
  row.writeInt32BE(bytes.length, 50)
  return row
}

/** How many chunks, of all uploads together, are stored at once. It leaves most of the pool to other requests. */
const storingMax = 4
let storing = 0
const queue: (() => void)[] = []

async function oneOf<T>(most: number, work: () => Promise<T>): Promise<T> {
  if (storing >= most) await new Promise<void>((resolve) => queue.push(resolve))
  else storing++
  try {
    return await work()
  } finally {
    const next = queue.shift()
    if (next) next()
    else storing--
  }
}

/** Of a row with one field: the number of fields, and the field's length. */
const fieldHeadBytes = 6

/**
 * One chunk of a file in a buffer of its own; undefined if there is none. A copy takes no parameters, so `copy` reads the
 * settings `parley.file_id` and `parley.chunk`.
 */
export function readChunk(db: Database, copy: Sql, place: ChunkPlace): Promise<Buffer | undefined> {
  return db.transaction((tx) => readChunkIn(tx, copy, place))
}

type ChunkPlace = Pick<Chunk, 'file_id' | 'n'>

async function readChunkIn(tx: Tx, copy: Sql, { file_id, n }: ChunkPlace): Promise<Buffer | undefined> {
  const copied = Buffer.allocUnsafeSlow(copyHead.length + fieldHeadBytes + chunkBytes + copyTail.length)
  let used = 0
  const which = sql`
    select set_config('parley.file_id', ${file_id}, true), set_config('parley.chunk', ${String(n)}, true)`
  const take = (bytes: Buffer) => {
    used += bytes.copy(copied, used)
  }
  await Promise.all([tx.run(which), tx.copyOut(copy, take)])
  if (used === copyHead.length + copyTail.length) return undefined
  return copied.subarray(copyHead.length + fieldHeadBytes, used - copyTail.length)
}

/** The file's bytes, one chunk in memory at a time. Asking for the next chunk frees the memory of the last. */
export function readChunks(db: Database, file_id: string): AsyncGenerator<Buffer> {
  return eachChunk((n) => readChunk(db, copyChunk, { file_id, n }))
}

/** The same inside a transaction, which must not wait for a second connection. */
export function readChunksIn(tx: Tx, file_id: string): AsyncGenerator<Buffer> {
  return eachChunk((n) => readChunkIn(tx, copyChunk, { file_id, n }))
}

const copyChunk = sql`
  copy (
    select bytes from file_chunks
    where file_id = current_setting('parley.file_id')::uuid and n = current_setting('parley.chunk')::integer
  ) to stdout (format binary)`

async function* eachChunk(read: (n: number) => Promise<Buffer | undefined>): AsyncGenerator<Buffer> {
  for (let n = 0; ; n++) {
    const chunk = await read(n)
    if (!chunk) return
    yield chunk
    freeBuffer(Buffer.from(chunk.buffer))
  }
}

/** Deletes the file now, unless an operation may still need it. `forgetFiles` deletes later what this could not. */
export async function dropFile({ db, log }: Pick<App, 'db' | 'log'>, file_id: string): Promise<void> {
  const dropped = db.run(sql`
    delete from file_chunks where file_id = ${file_id} and not exists (
      select from operations where file_id = ${file_id} and state in ('queued', 'submitting', 'ambiguous'))`)
  await dropped.catch((err) => log.warn({ err, file_id }, 'Parley could not delete an unused file'))
}

/**
 * Deletes files that no operation linked within an hour, and those that their operation no longer needs: it is final, or
 * has been released or ambiguous for an hour. (A request that runs an operation again contains its file again.) Returns how many files.
 */
export async function forgetFiles(db: Db): Promise<number> {
  const { files } = await db.one<{ files: number }>(sql`
    with forgotten as (
      select c.file_id from file_chunks c
      where c.n = 0
        and (c.stored_at < clock_timestamp() - interval '1 hour'
          or exists (select from operations o where o.file_id = c.file_id))
        and not exists (
          select from operations o
          where o.file_id = c.file_id and o.state not in ('completed', 'refused')
            and (o.state not in ('released', 'ambiguous')
              or coalesce(o.finished_at, o.created_at) >= domain_now() - interval '1 hour'))
      order by c.stored_at limit ${forgottenMax} for update skip locked
    ), gone as (
      delete from file_chunks c using forgotten f where c.file_id = f.file_id returning c.n
    )
    select (count(*) filter (where n = 0))::integer as files from gone`)
  return files
}
