/** Attachments on their way: stored in chunks while they arrive. */
import { type Db, sql } from '../../db/sql.ts'

export const chunkBytes = 256 * 1024

export async function storeChunk(
  db: Db,
  chunk: { file_id: string; workspace_id: string; n: number; bytes: Buffer },
): Promise<void> {
  await db.run(sql`
    with unflushed as materialized (select set_config('synchronous_commit', 'off', true))
    insert into file_chunks (file_id, workspace_id, n, bytes)
    select ${chunk.file_id}::uuid, ${chunk.workspace_id}::uuid, ${chunk.n}::int, ${chunk.bytes}::bytea from unflushed`)
}

export async function* readChunks(db: Db, file_id: string): AsyncGenerator<Buffer> {
  for (let n = 0; ; n++) {
    const row = await db.maybe<{ bytes: Buffer }>(sql`
      select bytes from file_chunks where file_id = ${file_id} and n = ${n}`)
    if (!row) return
    yield row.bytes
  }
}

export async function forgetFiles(_db: Db): Promise<number> {
  return 0
}
