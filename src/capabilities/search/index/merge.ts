/**
 * Makes one segment of several, without what has a tombstone. Any number of processes may do this side by side: each
 * locks the segments it merges and skips those that others hold.
 */
import type { Owner } from '../../../contract.ts'
import { type Database, type Db, sql, type Tx } from '../../../db/sql.ts'
import { encodeKeys, keyBytes, type Version } from './doc-keys.ts'
import { chooseSegments } from './merge-policy.ts'
import { countNumbers, decodeDocIds, decodeOccurrences, stride } from './posting-lists.ts'
import {
  addLists,
  addSegment,
  format,
  KeyWriter,
  keyRowsAtOnce,
  listBytesAtOnce,
  type Segment,
} from './segment-writer.ts'
import { hasPositions, lastTerm } from './terms.ts'

interface StoredSegment extends Segment {
  readonly id: string
}

/** An account that has something to merge, but for those that are named. */
export async function findMergeable(
  db: Db,
  { except = [] }: { except?: readonly string[] } = {},
): Promise<Owner | undefined> {
  const rows = await db.rows<Owner & { sizes: number[]; tombstones: number; is_quiet: boolean }>(sql`
    select s.*, not exists (select from search_pending p where p.account_id = s.account_id) as is_quiet from (
      select account_id, workspace_id, array_agg(messages) as sizes,
        (select count(*)::int from search_stale t where t.account_id = s.account_id) as tombstones
      from search_segments s where format = ${format} and account_id <> all(${except}::text[])
      group by account_id, workspace_id) s
    where cardinality(sizes) > 1 or tombstones > 0
    order by cardinality(sizes) desc`)
  for (const { sizes, tombstones, is_quiet, ...owner } of rows) {
    const segments = sizes.map((messages) => ({ messages }))
    if (chooseSegments(segments, { tombstones, isQuiet: is_quiet })) return owner
  }
  return undefined
}

export interface MergeOptions {
  /** Everything, whether it is worth it or not. */
  readonly force?: boolean
  /** A large account takes minutes: at the signal the merge is given up, and nothing has changed. */
  readonly signal?: AbortSignal
}

/** Makes one segment of those that are worth it. False: there was nothing to do, or others hold the segments. */
export function mergeSegments(
  db: Database,
  owner: Owner,
  { force = false, signal }: MergeOptions = {},
): Promise<boolean> {
  return db.transaction(async (tx) => {
    // Before the segments: then every tombstone that is read here belongs to a segment that is seen below.
    const tombstones = await tx.rows<Version>(sql`
      select chat_id, id, listing from search_stale where account_id = ${owner.account_id}`)
    const { is_quiet } = await tx.one<{ is_quiet: boolean }>(sql`
      select not exists (select from search_pending where account_id = ${owner.account_id}) as is_quiet`)
    const mine = sql`account_id = ${owner.account_id} and format = ${format}`
    const seen = await tx.rows<Pick<StoredSegment, 'id'>>(sql`select id from search_segments where ${mine}`)
    const free = await tx.rows<StoredSegment>(sql`
      select id, messages, oldest_at, newest_at from search_segments where ${mine} order by id for update skip locked`)
    // While somebody else merges some of them, not everything can be merged, and no tombstone be removed.
    const isWhole = seen.every(({ id }) => free.some((segment) => segment.id === id))
    const state = { tombstones: isWhole ? tombstones.length : 0, isQuiet: isWhole && is_quiet }
    const chosen = force ? isWhole && free : chooseSegments(free, state)
    if (!chosen || chosen.length === 0) return false
    await mergeChosen(tx, owner, { chosen, tombstones, signal })
    if (isWhole && chosen.length === free.length) await removeTombstones(tx, owner, tombstones)
    return true
  })
}

async function mergeChosen(
  tx: Tx,
  owner: Owner,
  {
    chosen,
    tombstones,
    signal,
  }: {
    chosen: readonly StoredSegment[]
    tombstones: readonly Version[]
    signal: AbortSignal | undefined
  },
): Promise<void> {
  const merged = await addSegment(tx, owner, {
    oldest_at: new Date(Math.min(...chosen.map(({ oldest_at }) => oldest_at.getTime()))),
    newest_at: new Date(Math.max(...chosen.map(({ newest_at }) => newest_at.getTime()))),
  })
  const deleted = new Set(tombstones.map((version) => versionIn(encodeKeys([{ ...version, at: 0 }]))))
  const { count, docIds } = await mergeKeys(tx, chosen, { merged, signal, deleted })
  await mergeLists(tx, docIds, { merged, signal })
  const ids = [...chosen.map(({ id }) => id), ...(count === 0 ? [merged] : [])]
  await tx.run(sql`delete from search_segments where id = any(${ids}::bigint[])`)
}

/** What tells a version from every other, as its key has it after the time. */
function versionIn(key: Buffer): string {
  return key.toString('latin1', keyBytes - versionBytes)
}

const versionBytes = 18

/** By segment, for each docId the one it becomes. */
type NewDocIds = ReadonlyMap<string, Float64Array>

/** The new docId of what has a tombstone. */
const dropped = -1

interface Target {
  /** The segment that the others become. */
  readonly merged: string
  readonly signal: AbortSignal | undefined
}

/** Puts the documents of all segments in one order. */
async function mergeKeys(
  tx: Tx,
  segments: readonly StoredSegment[],
  { merged, deleted, signal }: Target & { deleted: ReadonlySet<string> },
): Promise<{ count: number; docIds: NewDocIds }> {
  const readers = segments.map((segment) => new KeyReader(tx, segment))
  for (const reader of readers) await reader.read()
  const writer = new KeyWriter(tx, merged)
  let keys: Buffer[] = []
  let count = 0
  for (;;) {
    let newest: KeyReader | undefined
    for (const reader of readers) if (reader.isNewer(newest)) newest = reader
    if (!newest) break
    const { key } = newest
    const isDeleted = deleted.size > 0 && deleted.has(versionIn(key))
    if (!isDeleted) keys.push(key)
    if (newest.take(isDeleted ? dropped : count++)) continue
    signal?.throwIfAborted()
    await writer.add(Buffer.concat(keys))
    keys = []
    await newest.read()
  }
  await writer.add(Buffer.concat(keys))
  await writer.end()
  const ids = segments.map(({ id }) => id)
  await tx.run(sql`delete from search_ranks where segment_id = any(${ids}::bigint[])`)
  return { count, docIds: new Map(readers.map(({ id, docIds }) => [id, docIds])) }
}

/** Reads the keys of a segment, some rows at once, and notes what becomes of each docId. */
class KeyReader {
  readonly id: string
  readonly docIds: Float64Array
  readonly #tx: Tx
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0
  #part = 0
  #docId = 0

  constructor(tx: Tx, { id, messages }: StoredSegment) {
    this.#tx = tx
    this.id = id
    this.docIds = new Float64Array(messages)
  }

  async read(): Promise<void> {
    const { bytes } = await this.#tx.one<{ bytes: Buffer | null }>(sql`
      select string_agg(bytes, '' order by part) as bytes from search_ranks
      where segment_id = ${this.id} and part >= ${this.#part} and part < ${this.#part + keyRowsAtOnce}`)
    this.#part += keyRowsAtOnce
    this.#bytes = bytes ?? Buffer.alloc(0)
    this.#at = 0
  }

  get key(): Buffer {
    return this.#bytes.subarray(this.#at, this.#at + keyBytes)
  }

  isNewer(other: KeyReader | undefined): boolean {
    if (this.#at >= this.#bytes.length) return false
    if (!other) return true
    const [start, otherStart] = [this.#at, other.#at]
    return other.#bytes.compare(this.#bytes, start, start + keyBytes, otherStart, otherStart + keyBytes) < 0
  }

  /** Gives its newest document a new docId. False: what was read is used up. */
  take(docId: number): boolean {
    this.docIds[this.#docId++] = docId
    this.#at += keyBytes
    return this.#at < this.#bytes.length
  }
}

const termsAtOnce = 400

interface ListRow {
  readonly id: string
  readonly word: string
  readonly bytes: Buffer
}

/** Some terms at once: no statement takes long, however large the segments are. */
async function mergeLists(tx: Tx, docIds: NewDocIds, { merged, signal }: Target): Promise<void> {
  const ids = [...docIds.keys()]
  for (let after: string | null = ''; after !== null; ) {
    signal?.throwIfAborted()
    const until: string | null = await lastOfNext(tx, ids, after)
    const inPiece = sql`word > ${after} and word <= ${until ?? lastTerm}`
    const rows = await tx.rows<ListRow>(sql`
      select s.id, l.word, string_agg(l.bytes, '' order by l.part) as bytes from unnest(${ids}::bigint[]) as s (id)
      cross join lateral (
        select word, part, bytes from search_lists where segment_id = s.id and ${inPiece} offset 0) l
      group by s.id, l.word order by l.word`)
    await tx.run(sql`delete from search_lists where segment_id = any(${ids}::bigint[]) and ${inPiece}`)
    const lists = new Map<string, Float64Array>()
    for (const [term, some] of Map.groupBy(rows, ({ word }) => word)) {
      lists.set(term, some.map((row) => renumber(row, docIds)).reduce(mergeSorted))
    }
    await addLists(tx, merged, lists)
    after = until
  }
}

/** The last of the next terms, so that no segment has many terms or bytes of lists up to it; null: all that are left. */
async function lastOfNext(tx: Tx, ids: readonly string[], after: string): Promise<string | null> {
  const { until } = await tx.one<{ until: string | null }>(sql`
    select min(u.until) as until from unnest(${ids}::bigint[]) as s (id)
    cross join lateral (
      select case when count(*) < ${termsAtOnce} and max(bytes) <= ${listBytesAtOnce} then null
        else coalesce(max(word) filter (where bytes <= ${listBytesAtOnce}), min(word)) end as until
      from (
        select word, sum(length) over (order by word) as bytes from (
          select word, length from search_lists
          where segment_id = s.id and word > ${after} and part = 0
          order by word limit ${termsAtOnce}) w) w) u`)
  return until
}

/** The list with the docIds of the merged segment. Documents keep their order, so the list stays in order. */
export function renumber({ id, word, bytes }: ListRow, docIds: NewDocIds): Float64Array {
  const news = docIds.get(id) ?? new Float64Array()
  const step = hasPositions(word) ? stride : 1
  const old = hasPositions(word) ? decodeOccurrences(bytes) : new Uint32Array(countNumbers(bytes))
  if (old instanceof Uint32Array) decodeDocIds(bytes, old, 0)
  const moved = new Float64Array(old.length)
  let count = 0
  for (let at = 0; at < old.length; at++) {
    const entry = old[at] as number
    const oldDocId = Math.floor(entry / step)
    const docId = news[oldDocId] as number
    if (docId !== dropped) moved[count++] = docId * step + (entry - oldDocId * step)
  }
  return moved.subarray(0, count)
}

/** Of two lists in order one in order. They have nothing in common: no two segments have the same document. */
export function mergeSorted(one: Float64Array, other: Float64Array): Float64Array {
  const all = new Float64Array(one.length + other.length)
  let [first, second] = [0, 0]
  for (let at = 0; at < all.length; at++) {
    const isFirst =
      second === other.length || (first < one.length && (one[first] as number) < (other[second] as number))
    all[at] = (isFirst ? one[first++] : other[second++]) as number
  }
  return all
}

/** Once no segment has these versions: all that were there have been merged without them, and newer ones never had them. */
async function removeTombstones(tx: Tx, { account_id }: Owner, versions: readonly Version[]): Promise<void> {
  if (versions.length === 0) return
  await tx.run(sql`
    delete from search_stale s using unnest(${versions.map(({ chat_id }) => chat_id)}::bigint[],
      ${versions.map(({ id }) => id)}::bigint[], ${versions.map(({ listing }) => listing)}::smallint[])
      as v (chat_id, id, listing)
    where s.account_id = ${account_id} and s.chat_id = v.chat_id and s.id = v.id and s.listing = v.listing`)
}
