/**
 * Makes few segments of many, and leaves out what is stale. Any number of processes may do this side by side: each locks
 * what it works on, and skips what others hold.
 */
import type { Owner } from '../../contract.ts'
import { type Database, type Db, sql, type Tx } from '../../db/sql.ts'
import { encodeKeys, type Key, keyBytes } from './keys.ts'
import { lastWord, markListOf } from './listing.ts'
import { packed, partsMax } from './pack.ts'
import { type ListRow, mergeLists, type NewRanks, noRank } from './renumber.ts'
import { addLists, addSegment, bytesMax, RankWriter, rankParts, type Segment } from './write.ts'

interface Kept extends Segment {
  readonly id: string
}

/** So many segments of about the same size become one. */
const segmentsMax = 4
/** Where more have come together, so many at once. */
const mergedMax = 16
/** So many stale places, and one in so many, are worth a merge of everything. */
const stale = { least: 1000, oneIn: 100 }

/** What to merge; undefined: nothing. */
export function chooseSegments<T extends Pick<Segment, 'messages'>>(
  segments: readonly T[],
  staleCount: number,
): readonly T[] | undefined {
  const total = segments.reduce((sum, { messages }) => sum + messages, 0)
  if (staleCount >= Math.max(stale.least, total / stale.oneIn)) return segments
  const classes = Map.groupBy(segments, ({ messages }) =>
    Math.floor(Math.log(messages) / Math.log(segmentsMax)),
  )
  return [...classes.values()].find((some) => some.length >= segmentsMax)?.slice(0, mergedMax)
}

/** Where nothing is pending, so many segments, of which the smaller are so large a part, are worth being put together. */
const scattered = { segments: 3, oneIn: 8 }

/** An account at rest whose messages lie in several segments, or of which much is stale: searches read one sooner. */
export function findScattered(
  db: Db,
  { except = [] }: { except?: readonly string[] } = {},
): Promise<Owner | undefined> {
  return db.maybe<Owner>(sql`
    select s.account_id, s.workspace_id from search_segments s
    where s.account_id <> all(${except}::text[])
      and not exists (select from search_pending p where p.account_id = s.account_id)
    group by s.account_id, s.workspace_id
    having (count(*) >= ${scattered.segments}
        and (sum(s.messages) - max(s.messages)) * ${scattered.oneIn} >= max(s.messages))
      or (select count(*) from search_stale t where t.account_id = s.account_id)
        >= greatest(${stale.least}, sum(s.messages) / ${stale.oneIn})
    order by count(*) desc limit 1`)
}

export interface MergeOptions {
  readonly all?: boolean
  /** A large account takes minutes: at the signal it is given up, and nothing has changed. */
  readonly signal?: AbortSignal
}

/** Makes one segment of several, if there are enough, or of all. True: there was something to do. */
export function mergeSegments(
  db: Database,
  owner: Owner,
  { all = false, signal }: MergeOptions = {},
): Promise<boolean> {
  return db.transaction(async (tx) => {
    // Before the segments: what is stale in one of them is in one that is seen.
    const places = await tx.rows<Omit<Key, 'at'>>(sql`
      select chat_id, id, listing from search_stale where account_id = ${owner.account_id}`)
    const seen = await tx.rows<Pick<Kept, 'id'>>(sql`
      select id from search_segments where account_id = ${owner.account_id}`)
    const free = await tx.rows<Kept>(sql`
      select id, messages, oldest_at, newest_at from search_segments where account_id = ${owner.account_id}
      order by id for update skip locked`)
    // Where somebody else merges some, not everything can be merged, nor what is stale be forgotten.
    const isWhole = seen.every(({ id }) => free.some((segment) => segment.id === id))
    const chosen = all ? isWhole && free : chooseSegments(free, isWhole ? places.length : 0)
    if (!chosen || chosen.length === 0) return false
    const merged = await addSegment(tx, owner, {
      oldest_at: new Date(Math.min(...chosen.map(({ oldest_at }) => oldest_at.getTime()))),
      newest_at: new Date(Math.max(...chosen.map(({ newest_at }) => newest_at.getTime()))),
    })
    const { count, ranks } = await moveRanks(tx, chosen, {
      merged,
      signal,
      gone: new Set(places.map((place) => nameIn(encodeKeys([{ ...place, at: 0 }])))),
    })
    await moveLists(tx, ranks, { merged, signal })
    const ids = chosen.map(({ id }) => id)
    await tx.run(sql`delete from search_segments where id = any(${ids}::bigint[])`)
    if (count === 0) await tx.run(sql`delete from search_segments where id = ${merged}`)
    if (isWhole && chosen.length === free.length) await forgetStale(tx, owner, places)
    return true
  })
}

/** What tells a listing from every other, as it stands in its key after the time. */
function nameIn(key: Buffer): string {
  return key.toString('latin1', keyBytes - nameBytes)
}

const nameBytes = 18

interface Target {
  /** The segment that the others become. */
  readonly merged: string
  readonly signal: AbortSignal | undefined
}

/** Puts the ranks of all segments in one order. */
async function moveRanks(
  tx: Tx,
  segments: readonly Kept[],
  { merged, gone, signal }: Target & { gone: ReadonlySet<string> },
): Promise<{ count: number; ranks: NewRanks }> {
  const readers = segments.map((segment) => new RankReader(tx, segment))
  for (const reader of readers) await reader.read()
  const writer = new RankWriter(tx, merged)
  let keys: Buffer[] = []
  let count = 0
  for (;;) {
    let newest: RankReader | undefined
    for (const reader of readers) if (reader.isNewer(newest)) newest = reader
    if (!newest) break
    const { key } = newest
    const isGone = gone.size > 0 && gone.has(nameIn(key))
    if (!isGone) keys.push(key)
    if (newest.take(isGone ? noRank : count++)) continue
    signal?.throwIfAborted()
    await writer.add(Buffer.concat(keys))
    keys = []
    await newest.read()
  }
  await writer.add(Buffer.concat(keys))
  await writer.end()
  await tx.run(
    sql`delete from search_ranks where segment_id = any(${segments.map(({ id }) => id)}::bigint[])`,
  )
  return { count, ranks: new Map(readers.map(({ id, ranks }) => [id, ranks])) }
}

/** Reads the ranks of a segment, so many rows at once, and notes what becomes of them. */
class RankReader {
  readonly id: string
  readonly ranks: Uint32Array
  readonly #tx: Tx
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0
  #part = 0
  #rank = 0

  constructor(tx: Tx, { id, messages }: Kept) {
    this.#tx = tx
    this.id = id
    this.ranks = new Uint32Array(messages)
  }

  async read(): Promise<void> {
    const { bytes } = await this.#tx.one<{ bytes: Buffer | null }>(sql`
      select string_agg(bytes, '' order by part) as bytes from search_ranks
      where segment_id = ${this.id} and part >= ${this.#part} and part < ${this.#part + rankParts}`)
    this.#part += rankParts
    this.#bytes = bytes ?? Buffer.alloc(0)
    this.#at = 0
  }

  get key(): Buffer {
    return this.#bytes.subarray(this.#at, this.#at + keyBytes)
  }

  isNewer(other: RankReader | undefined): boolean {
    if (this.#at >= this.#bytes.length) return false
    if (!other) return true
    const [start, otherStart] = [this.#at, other.#at]
    return other.#bytes.compare(this.#bytes, start, start + keyBytes, otherStart, otherStart + keyBytes) < 0
  }

  /** Its newest becomes this. False: what was read is used up. */
  take(rank: number): boolean {
    this.ranks[this.#rank++] = rank
    this.#at += keyBytes
    return this.#at < this.#bytes.length
  }
}

const wordsAtOnce = 400

/** Word by word, in pieces: no statement takes long, however large the segments are. */
async function moveLists(tx: Tx, ranks: NewRanks, { merged, signal }: Target): Promise<void> {
  const ids = [...ranks.keys()]
  for (let after = ''; ; ) {
    signal?.throwIfAborted()
    const until = await endOfPiece(tx, ids, after)
    const inPiece = sql`word > ${after} and word <= ${until ?? lastWord}`
    const rows = await tx.rows<ListRow>(sql`
      select s.id, l.word, ${packed(partsMax, sql`l.part`)} as lists from unnest(${ids}::bigint[]) as s (id)
      cross join lateral (
        select word, part, length, bytes from search_lists where segment_id = s.id and ${inPiece} offset 0) l
      group by s.id, l.word`)
    await tx.run(sql`delete from search_lists where segment_id = any(${ids}::bigint[]) and ${inPiece}`)
    await addLists(tx, merged, mergeLists(rows, ranks))
    if (until === null) return
    after = until
  }
}

/** The last word to take, so that no segment has many words or bytes before it; null: all the rest. */
async function endOfPiece(tx: Tx, ids: readonly string[], after: string): Promise<string | null> {
  const { until } = await tx.one<{ until: string | null }>(sql`
    select min(u.until) as until from unnest(${ids}::bigint[]) as s (id)
    cross join lateral (
      select case when count(*) < ${wordsAtOnce} and max(bytes) <= ${bytesMax} then null
        else coalesce(max(word) filter (where bytes <= ${bytesMax}), min(word)) end as until
      from (
        select word, sum(length) over (order by word) as bytes from (
          select word, length from search_lists
          where segment_id = s.id and word > ${after} and part = 0
          order by word limit ${wordsAtOnce}) w) w) u`)
  const marked = until === null ? undefined : markListOf(until)
  // A list that is shared goes with those that came from it.
  return marked === undefined ? until : marked + lastWord
}

/** Once no segment has it: all that were there have been merged without it, and it is in none that came since. */
async function forgetStale(tx: Tx, { account_id }: Owner, places: readonly Omit<Key, 'at'>[]): Promise<void> {
  if (places.length === 0) return
  await tx.run(sql`
    delete from search_stale s using unnest(${places.map(({ chat_id }) => chat_id)}::bigint[],
      ${places.map(({ id }) => id)}::bigint[], ${places.map(({ listing }) => listing)}::smallint[])
      as p (chat_id, id, listing)
    where s.account_id = ${account_id} and s.chat_id = p.chat_id and s.id = p.id and s.listing = p.listing`)
}
