/** Reads segments: their posting lists and document keys. Every statement starts from an account or a segment. */
import { given } from '../../../db/given.ts'
import { type Db, sql } from '../../../db/sql.ts'
import {
  type DocKey,
  decodeKey,
  keyBytes,
  keysInPart,
  nameOfVersion,
  timeAt,
  type Version,
} from './doc-keys.ts'
import type { PackedLists } from './evaluate-packed.ts'
import { format, partBytes } from './segment-writer.ts'
import { nameOfRange, type TermRange } from './terms.ts'

interface Times {
  /** From `from` until before `until`, in milliseconds since 1970. */
  readonly from: number
  readonly until: number
}

export interface SegmentRead {
  readonly id: string
  readonly account_id: string
  readonly format: number
  readonly oldest_at: Date
  readonly newest_at: Date
  /** The beginnings of its lists, as many parts as requested. */
  readonly lists: PackedLists
}

type AccountRange = TermRange & { readonly account_id: string }

interface SegmentRow extends Omit<SegmentRead, 'lists'> {
  readonly place: number
  readonly packed: string | null
}

/**
 * The segments that may have messages of these times, and the first parts of their lists. The lists of a range arrive as one
 * value, which the driver reads much faster than a row per list, and as text, because a thread may decode it.
 */
export async function readSegments(
  db: Db,
  ranges: readonly AccountRange[],
  { parts, times: { from, until } }: { parts: number; times: Times },
): Promise<SegmentRead[]> {
  const rows = await db.rows<SegmentRow>(sql`
    select s.id, s.account_id, s.format, s.oldest_at, s.newest_at, a.place::int, l.packed::text
    from unnest((select ${ranges.map(({ account_id }) => account_id)}::text[]),
      (select ${ranges.map(({ low }) => low)}::text[]), (select ${ranges.map(({ high }) => high)}::text[]))
      with ordinality as a (account_id, low, high, place)
    cross join lateral (
      select * from search_segments s where s.account_id = a.account_id
        and s.newest_at >= ${new Date(from)} and s.oldest_at < ${new Date(until)} offset 0) s
    left join lateral (
      select string_agg(case when l.part = 0
        then int4send(l.length) || int4send(least(l.length, ${parts * partBytes}::bigint)::int) || l.bytes
        else l.bytes end, '' order by l.word, l.part) as packed
      from search_lists l
      where l.segment_id = s.id and s.format = ${format} and l.word >= a.low and l.word <= a.high and l.part < ${parts}) l on true`)
  return [...Map.groupBy(rows, ({ id }) => id).values()].map((some) => {
    const [{ place: _, packed: __, ...segment }] = some as [SegmentRow]
    const lists = some.map((row) => [nameOfRange(ranges[row.place - 1] as TermRange), row.packed] as const)
    return { ...segment, lists }
  })
}

/** By account, the versions that segments still have although the message was edited or deleted since. */
export async function readTombstones(
  db: Db,
  account_ids: readonly string[],
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const rows = await db.rows<Version & { account_id: string }>(sql`
    select account_id, chat_id, id, listing from search_stale where account_id = any(${account_ids})`)
  const accounts = Map.groupBy(rows, ({ account_id }) => account_id)
  return new Map([...accounts].map(([id, versions]) => [id, new Set(versions.map(nameOfVersion))]))
}

interface DocRange {
  readonly from: number
  /** Exclusive. */
  readonly until: number
}

/** The range of docIds in a segment whose messages are of these times. */
export async function readDocRange(
  db: Db,
  { id, oldest_at, newest_at }: SegmentRead,
  { from, until }: Times,
): Promise<DocRange> {
  return {
    from: newest_at.getTime() < until ? 0 : await countSince(db, id, until),
    until: oldest_at.getTime() >= from ? Infinity : await countSince(db, id, from),
  }
}

/** How many messages of a segment were sent at this time or later, which is the docId of the first one before. */
async function countSince(db: Db, segment_id: string, at: number): Promise<number> {
  const row = await db.maybe<{ part: number; bytes: Buffer }>(sql`
    select part, bytes from search_ranks where segment_id = ${segment_id} and newest_at >= ${new Date(at)}
    order by newest_at, part desc limit 1`)
  if (!row) return 0
  let count = 0
  while (count * keyBytes < row.bytes.length && timeAt(row.bytes, count * keyBytes) >= at) count++
  return row.part * keysInPart + count
}

interface DocPlace {
  readonly segment_id: string
  readonly docId: number
}

/** The keys of these documents, in the same order. */
export async function readKeys(db: Db, places: readonly DocPlace[]): Promise<DocKey[]> {
  if (places.length === 0) return []
  const { keys } = await db.one<{ keys: Buffer }>(sql`
    select string_agg(int4send(a.place::int) || k.bytes, '') as keys
    from ${given(places, { segment_id: 'bigint', doc_id: ['int', ({ docId }) => docId], place: 'ordinality' })} as a
    cross join lateral (
      select substring(r.bytes from a.doc_id % ${keysInPart}::int * ${keyBytes}::int + 1 for ${keyBytes}::int) as bytes
      from search_ranks r where r.segment_id = a.segment_id and r.part = a.doc_id / ${keysInPart}::int offset 0) k`)
  const read: DocKey[] = new Array(places.length)
  for (let at = 0; at < keys.length; at += 4 + keyBytes) {
    read[keys.readInt32BE(at) - 1] = decodeKey(keys, at + 4)
  }
  return read
}
