/** Writes a segment: what it is, which message has which rank, and its lists. */
import type { Owner } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { encodeList, type List } from '../../lib/postings.ts'
import { encodeTimes, keyBytes, keysInPart, nextSampled, timeAt } from './keys.ts'
import { partBytes } from './pack.ts'

export interface Segment {
  readonly messages: number
  readonly oldest_at: Date
  readonly newest_at: Date
}

export async function addSegment(
  tx: Tx,
  { account_id, workspace_id }: Owner,
  segment: Omit<Segment, 'messages'>,
): Promise<string> {
  const { id } = await tx.one<{ id: string }>(sql`
    insert into search_segments (account_id, workspace_id, messages, oldest_at, newest_at, times)
    values (${account_id}, ${workspace_id}, 0, ${segment.oldest_at}, ${segment.newest_at}, '')
    returning id`)
  return id
}

/** So many rows of ranks travel in one statement. */
export const rankParts = 500

/** Writes which message has which rank, from the first on. */
export class RankWriter {
  count = 0
  readonly #tx: Tx
  readonly #segment: string
  readonly #waiting: Buffer[] = []
  #size = 0
  /** Of the ranks that are sampled, and the next of them. */
  readonly #times: number[] = []
  #sampled = 0

  constructor(tx: Tx, segment: string) {
    this.#tx = tx
    this.#segment = segment
  }

  async add(keys: Buffer): Promise<void> {
    this.#waiting.push(keys)
    this.#size += keys.length
    const most = rankParts * keysInPart * keyBytes
    if (this.#size >= most) await this.#write(this.#size - (this.#size % (keysInPart * keyBytes)))
  }

  /** And tells the segment. */
  async end(): Promise<void> {
    await this.#write(this.#size)
    await this.#tx.run(sql`
      update search_segments set messages = ${this.count}, times = ${encodeTimes(this.#times)}
      where id = ${this.#segment}`)
  }

  async #write(size: number): Promise<void> {
    if (size === 0) return
    const all = Buffer.concat(this.#waiting)
    this.#waiting.splice(0, Infinity, all.subarray(size))
    this.#size -= size
    const parts: Buffer[] = []
    for (let at = 0; at < size; at += keysInPart * keyBytes) {
      parts.push(all.subarray(at, Math.min(size, at + keysInPart * keyBytes)))
    }
    await this.#tx.run(sql`
      insert into search_ranks (segment_id, part, newest_at, bytes)
      select ${this.#segment}, ${this.count / keysInPart}::int + place - 1, newest_at, bytes
      from unnest(${parts.map((bytes) => new Date(timeAt(bytes, 0)))}::timestamptz[], ${parts}::bytea[])
        with ordinality as r (newest_at, bytes, place)`)
    for (; this.#sampled < this.count + size / keyBytes; this.#sampled = nextSampled(this.#sampled)) {
      this.#times.push(timeAt(all, (this.#sampled - this.count) * keyBytes))
    }
    this.count += size / keyBytes
  }
}

/** So many bytes of lists travel in one statement. */
export const bytesMax = 1_000_000

export async function addLists(tx: Tx, segment_id: string, lists: ReadonlyMap<string, List>): Promise<void> {
  let parts: Part[] = []
  let size = 0
  const flush = async () => {
    await tx.run(sql`
      insert into search_lists (segment_id, word, part, length, bytes)
      select ${segment_id}, word, part, length, bytes
      from unnest(${parts.map(({ word }) => word)}::text[], ${parts.map(({ part }) => part)}::int[],
        ${parts.map(({ length }) => length)}::int[], ${parts.map(({ bytes }) => bytes)}::bytea[])
        as l (word, part, length, bytes)`)
    parts = []
    size = 0
  }
  for (const [word, list] of lists) {
    const bytes = encodeList(list)
    for (let at = 0; at < bytes.length; at += partBytes) {
      parts.push({
        word,
        part: at / partBytes,
        length: bytes.length,
        bytes: bytes.subarray(at, at + partBytes),
      })
    }
    size += bytes.length + overhead
    if (size >= bytesMax) await flush()
  }
  if (parts.length > 0) await flush()
}

interface Part {
  readonly word: string
  readonly part: number
  readonly length: number
  readonly bytes: Buffer
}

/** What a short list takes besides its bytes. */
const overhead = 32
