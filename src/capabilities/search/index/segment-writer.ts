/** Writes a segment: its row, the message of each docId, and its posting lists. */
import type { AccountKey } from '../../../contract.ts'
import { given } from '../../../db/given.ts'
import { sql, type Tx } from '../../../db/sql.ts'
import { keyBytes, keysInPart, timeAt } from './doc-keys.ts'
import type { PostingLists } from './indexer.ts'
import { encodeList } from './posting-lists.ts'
import { hasPositions } from './terms.ts'

/**
 * The version of the stored format. Raise it with every change of the terms, the posting lists or the output of `tokenise`:
 * segments of another format are then indexed again (`reindex.ts`).
 */
export const format = 2

export interface Segment {
  readonly messages: number
  readonly oldest_at: Date
  readonly newest_at: Date
}

export async function addSegment(
  tx: Tx,
  { account_id, workspace_id }: AccountKey,
  { messages, oldest_at, newest_at }: Segment,
): Promise<string> {
  const { id } = await tx.one<{ id: string }>(sql`
    insert into search_segments (account_id, workspace_id, format, messages, oldest_at, newest_at)
    values (${account_id}, ${workspace_id}, ${format}, ${messages}, ${oldest_at}, ${newest_at})
    returning id`)
  return id
}

/** How many keys one statement reads or writes: 500 rows of them. */
export const keysAtOnce = 500 * keysInPart

/** Writes the keys of the documents from this docId on, which must start a row. */
export async function addKeys(
  tx: Tx,
  segment_id: string,
  { docId, keys }: { docId: number; keys: Buffer },
): Promise<void> {
  const parts: Buffer[] = []
  for (let at = 0; at < keys.length; at += keysInPart * keyBytes) {
    parts.push(keys.subarray(at, at + keysInPart * keyBytes))
  }
  await tx.run(sql`
    insert into search_ranks (segment_id, part, newest_at, bytes)
    select ${segment_id}, ${docId / keysInPart}::int + place - 1, newest_at, bytes
    from ${given(parts, {
      newest_at: ['timestamptz', (bytes) => new Date(timeAt(bytes, 0))],
      bytes: ['bytea', (bytes) => bytes],
      place: 'ordinality',
    })} as r`)
}

/** Posting lists are stored in parts, so that a search can read only the beginning. Four parts fill a database page. */
export const partBytes = 1940
/** Bytes of posting lists in one statement; a short list counts as a whole row. */
const bytesAtOnce = 1_000_000
const rowBytes = 32

export async function addLists(tx: Tx, segment_id: string, lists: PostingLists): Promise<void> {
  let parts: { term: string; part: number; length: number; bytes: Buffer }[] = []
  let size = 0
  const flush = async () => {
    await tx.run(sql`
      insert into search_lists (segment_id, word, part, length, bytes)
      select ${segment_id}, word, part, length, bytes
      from ${given(parts, { word: ['text', ({ term }) => term], part: 'int', length: 'int', bytes: 'bytea' })} as l`)
    parts = []
    size = 0
  }
  for (const [term, list] of lists) {
    const all = encodeList(list, { positions: hasPositions(term) })
    for (let at = 0; at < all.length; at += partBytes) {
      const bytes = all.subarray(at, at + partBytes)
      parts.push({ term, part: at / partBytes, length: all.length, bytes })
    }
    size += all.length + rowBytes
    if (size >= bytesAtOnce) await flush()
  }
  if (parts.length > 0) await flush()
}
