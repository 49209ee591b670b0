/** The bytes of a received file that is stored. */
import { type Database, sql } from '../../db/sql.ts'
import { chunkBytes, readChunk } from '../../ledger/files.ts'
import type { ByteRange } from './byte-range.ts'

/** A chunk at a time, each in a buffer of its own: the response still sends one while it asks for the next. */
export async function* readRange(
  db: Database,
  file_id: string,
  { start, end }: ByteRange,
): AsyncGenerator<Buffer> {
  const copy = sql`
    copy (
      select bytes from media_chunks
      where file_id = current_setting('parley.file_id')::uuid and n = current_setting('parley.chunk')::integer
    ) to stdout (format binary)`
  for (let at = start; at <= end; ) {
    const n = Math.floor(at / chunkBytes)
    const chunk = await readChunk(db, copy, { file_id, n })
    // It was deleted while it was sent. The caller notices: the response ends before its length.
    if (!chunk) throw new Error('The file is no longer stored.')
    const first = at - n * chunkBytes
    const bytes = chunk.subarray(first, Math.min(chunk.length, end + 1 - n * chunkBytes))
    if (bytes.length === 0) throw new Error('The file is shorter than it should be.')
    yield bytes
    at += bytes.length
  }
}
