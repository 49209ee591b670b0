/** Attachments on their way: stored in chunks while they arrive, gone when their operation no longer needs them. */
import { type Db, sql } from '../../db/sql.ts'

export const chunkBytes = 256 * 1024
/** As much as one call forgets: deleting a thousand chunks stays well within a statement's time. */
const forgottenMax = 10

export interface Chunk {
  readonly file_id: string
  readonly n: number
  readonly bytes: Buffer
}

/**
 * Stored while it arrives; nobody is told of it before the operation's own commit, so its commit need not be flushed.
 * It stands alone: inside a transaction it would leave that transaction's commit unflushed too.
 */
export async function storeChunk(
  db: Db,
  { file_id, workspace_id, n, bytes }: Chunk & { workspace_id: string },
): Promise<void> {
  await oneOf(storingMax, () =>
    db.run(sql`
    with unflushed as (select set_config('synchronous_commit', 'off', true))
    insert into file_chunks (file_id, n, workspace_id, bytes)
    select ${file_id}::uuid, ${n}::integer, ${workspace_id}::uuid, ${bytes}::bytea from unflushed`),
  )
}

/** So many chunks of all uploads are on their way to the database at once; the others' callers wait with their bytes. */
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

/** A piece as text stays below what the engine keeps for long: a large one would be held until a full collection. */
const pieceBytes = 48 * 1024

/**
 * The file's bytes, one piece in memory at a time. As base64, because the driver reads bytes as text and the database's own
 * way of writing them takes twice their size.
 */
export async function* readChunks(db: Db, file_id: string): AsyncGenerator<Buffer> {
  for (let n = 0, at = 0; ; ) {
    const piece = await db.maybe<{ text: string; size: number }>(sql`
      select encode(substring(bytes from ${at + 1}::int for ${pieceBytes}), 'base64') as text, length(bytes) as size
      from file_chunks where file_id = ${file_id} and n = ${n}`)
    if (!piece) return
    if (piece.text !== '') yield Buffer.from(piece.text, 'base64')
    at += pieceBytes
    if (at >= piece.size) {
      n++
      at = 0
    }
  }
}

/**
 * Forgets files that nobody linked within an hour, and those whose operation needs them no more: it is final, or it
 * has been released or ambiguous for an hour. (What runs again brings its file again.) Returns how many files.
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
