/** Writes a segment: its row, which message each docId stands for, and its posting lists. */
import type { Owner } from '../../../contract.ts'
import { sql, type Tx } from '../../../db/sql.ts'
import { keyBytes, keysInPart, timeAt } from './doc-keys.ts'
import type { PostingLists } from './indexer.ts'
import { encodeDocIds, encodeOccurrences } from './posting-lists.ts'
import { hasPositions } from './terms.ts'

/**
 * How segments are stored. Raise it with every change of the terms, of the posting lists or of what `tokenise` makes of
 * a text: accounts with segments of another format are then indexed anew (`reindex.ts`).
 */
export const format = 2

export interface Segment {
  readonly messages: number
  readonly oldest_at: Date
  readonly newest_at: Date
}

export async function addSegment(
  tx: Tx,
  { account_id, workspace_id }: Owner,
  { oldest_at, newest_at }: Omit<Segment, 'messages'>,
): Promise<string> {
  const { id } = await tx.one<{ id: string }>(sql`
    insert into search_segments (account_id, workspace_id, format, messages, oldest_at, newest_at)
    values (${account_id}, ${workspace_id}, ${format}, 0, ${oldest_at}, ${newest_at})
    returning id`)
  return id
}

/** Rows of keys that are read or written with one statement. */
export const keyRowsAtOnce = 500
const bytesInPart = keysInPart * keyBytes

/** Writes the keys of a segment's documents, from docId 0 on. */
export class KeyWriter {
  count = 0
  readonly #tx: Tx
  readonly #segment: string
  readonly #waiting: Buffer[] = []
  #size = 0

  constructor(tx: Tx, segment: string) {
    this.#tx = tx
    this.#segment = segment
  }

  async add(keys: Buffer): Promise<void> {
    this.#waiting.push(keys)
    this.#size += keys.length
    if (this.#size >= keyRowsAtOnce * bytesInPart) await this.#write(this.#size - (this.#size % bytesInPart))
  }

  /** Also notes in the segment how many documents it has. */
  async end(): Promise<void> {
    await this.#write(this.#size)
    await this.#tx.run(sql`update search_segments set messages = ${this.count} where id = ${this.#segment}`)
  }

  async #write(size: number): Promise<void> {
    if (size === 0) return
    const all = Buffer.concat(this.#waiting)
    this.#waiting.splice(0, Infinity, all.subarray(size))
    this.#size -= size
    const parts: Buffer[] = []
    for (let at = 0; at < size; at += bytesInPart)
      parts.push(all.subarray(at, Math.min(size, at + bytesInPart)))
    await this.#tx.run(sql`
      insert into search_ranks (segment_id, part, newest_at, bytes)
      select ${this.#segment}, ${this.count / keysInPart}::int + place - 1, newest_at, bytes
      from unnest(${parts.map((bytes) => new Date(timeAt(bytes, 0)))}::timestamptz[], ${parts}::bytea[])
        with ordinality as r (newest_at, bytes, place)`)
    this.count += size / keyBytes
  }
}

/** A posting list is stored in parts, so that its beginning can be read alone. Four of them fill a page of the database. */
export const partBytes = 1940

/** Bytes of posting lists that travel with one statement. */
export const listBytesAtOnce = 1_000_000
/** What a short list takes besides its bytes. */
const rowBytes = 32

export async function addLists(tx: Tx, segment_id: string, lists: PostingLists): Promise<void> {
  let parts: { term: string; part: number; length: number; bytes: Buffer }[] = []
  let size = 0
  const flush = async () => {
    await tx.run(sql`
      insert into search_lists (segment_id, word, part, length, bytes)
      select ${segment_id}, word, part, length, bytes
      from unnest(${parts.map(({ term }) => term)}::text[], ${parts.map(({ part }) => part)}::int[],
        ${parts.map(({ length }) => length)}::int[], ${parts.map(({ bytes }) => bytes)}::bytea[])
        as l (word, part, length, bytes)`)
    parts = []
    size = 0
  }
  for (const [term, list] of lists) {
    const all = hasPositions(term) ? encodeOccurrences(list) : encodeDocIds(list)
    for (let at = 0; at < all.length; at += partBytes) {
      const bytes = all.subarray(at, at + partBytes)
      parts.push({ term, part: at / partBytes, length: all.length, bytes })
    }
    size += all.length + rowBytes
    if (size >= listBytesAtOnce) await flush()
  }
  if (parts.length > 0) await flush()
}
