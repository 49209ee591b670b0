/**
 * Merges segments into one, without entries that have a tombstone. Any number of processes may merge concurrently: each
 * locks the segments it merges and skips those that others hold.
 */
import type { AccountKey } from '../../../contract.ts'
import { given } from '../../../db/given.ts'
import { type Database, type Db, sql, type Tx } from '../../../db/sql.ts'
import { encodeKeys, keyBytes, keysInPart, type Version } from './doc-keys.ts'
import { mustForget } from './forgetting.ts'
import { chooseSegments } from './merge-policy.ts'
import { decodeDocIds, decodeOccurrences, mergeSorted, stride } from './posting-lists.ts'
import { addKeys, addLists, addSegment, format, keysAtOnce, type Segment } from './segment-writer.ts'
import { hasPositions, lastTerm } from './terms.ts'

interface StoredSegment extends Segment {
  readonly id: string
}

interface MergeableRow extends AccountKey {
  readonly sizes: number[]
  readonly tombstones: number
  readonly is_quiet: boolean
  readonly must_forget: boolean
}

/** An account with segments to merge, except the named ones. */
export async function findMergeable(
  db: Db,
  { except = [] }: { except?: readonly string[] } = {},
): Promise<AccountKey | undefined> {
  const rows = await db.rows<MergeableRow>(sql`
    select s.*, ${mustForget(sql`s.account_id`)} as must_forget, not exists (select from search_pending p where p.account_id = s.account_id) as is_quiet from (
      select account_id, workspace_id, array_agg(messages) as sizes,
        (select count(*)::int from search_stale t where t.account_id = s.account_id) as tombstones
      from search_segments s where format = ${format} and account_id <> all(${except}::text[])
      group by account_id, workspace_id) s
    where cardinality(sizes) > 1 or tombstones > 0
    order by cardinality(sizes) desc`)
  for (const { sizes, tombstones, is_quiet, must_forget, ...owner } of rows) {
    if (must_forget && tombstones > 0) return owner
    const segments = sizes.map((messages) => ({ messages }))
    if (chooseSegments(segments, { tombstones, isQuiet: is_quiet })) return owner
  }
  return undefined
}

interface MergeOptions {
  /** Merge everything, whether or not it is worth it. */
  readonly force?: boolean
  /** A large account takes minutes: the signal aborts the merge, and nothing changes. */
  readonly signal?: AbortSignal
}

/** Merges the segments that are worth it. False: there was nothing to do, or other processes hold the segments. */
export function mergeSegments(
  db: Database,
  owner: AccountKey,
  { force = false, signal }: MergeOptions = {},
): Promise<boolean> {
  return db.transaction(async (tx) => {
    // Read before the segments, so that every tombstone read here belongs to a segment seen below.
    const tombstones = await tx.rows<Version>(sql`
      select chat_id, id, listing from search_stale where account_id = ${owner.account_id}`)
    const { is_quiet, must_forget } = await tx.one<{ is_quiet: boolean; must_forget: boolean }>(sql`
      select not exists (select from search_pending where account_id = ${owner.account_id}) as is_quiet,
        ${mustForget(sql`${owner.account_id}`)} as must_forget`)
    const mine = sql`account_id = ${owner.account_id} and format = ${format}`
    const seen = await tx.rows<Pick<StoredSegment, 'id'>>(sql`select id from search_segments where ${mine}`)
    const free = await tx.rows<StoredSegment>(sql`
      select id, messages, oldest_at, newest_at from search_segments where ${mine} order by id for update skip locked`)
    // While another process merges some of them, this one cannot merge all or remove tombstones.
    const isWhole = seen.every(({ id }) => free.some((segment) => segment.id === id))
    const state = { tombstones: isWhole ? tombstones.length : 0, isQuiet: isWhole && is_quiet }
    const all = force || (must_forget && tombstones.length > 0) // guard: words of cleared messages go
    const chosen = all ? isWhole && free : chooseSegments(free, state)
    if (!chosen || chosen.length === 0) return false
    await mergeChosen(tx, owner, { chosen, tombstones, signal })
    if (isWhole && chosen.length === free.length) await removeTombstones(tx, owner, tombstones)
    return true
  })
}

interface Merge {
  readonly chosen: readonly StoredSegment[]
  readonly tombstones: readonly Version[]
  readonly signal: AbortSignal | undefined
}

async function mergeChosen(tx: Tx, owner: AccountKey, merge: Merge): Promise<void> {
  const merged = await addSegment(tx, owner, {
    messages: 0,
    oldest_at: new Date(Math.min(...merge.chosen.map(({ oldest_at }) => oldest_at.getTime()))),
    newest_at: new Date(Math.max(...merge.chosen.map(({ newest_at }) => newest_at.getTime()))),
  })
  const { count, docIds } = await mergeKeys(tx, merged, merge)
  await mergeLists(tx, merged, { docIds, signal: merge.signal })
  const ids = [...merge.chosen.map(({ id }) => id), ...(count === 0 ? [merged] : [])]
  await tx.run(sql`delete from search_ranks where segment_id = any(${ids}::bigint[])`)
  await tx.run(sql`delete from search_segments where id = any(${ids}::bigint[])`)
  await tx.run(sql`update search_segments set messages = ${count} where id = ${merged}`)
}

/** By segment, the new docId of each docId. */
type NewDocIds = ReadonlyMap<string, Float64Array>

/** The new docId of an entry with a tombstone. */
const dropped = -1

/** Merges the documents of all segments into one order: the newest is 0. */
async function mergeKeys(
  tx: Tx,
  merged: string,
  { chosen, tombstones, signal }: Merge,
): Promise<{ count: number; docIds: NewDocIds }> {
  const deleted = new Set(tombstones.map((version) => versionIn(encodeKeys([{ ...version, at: 0 }]))))
  const docIds = new Map(chosen.map(({ id, messages }) => [id, new Float64Array(messages)]))
  const heads: { id: string; keys: AsyncGenerator<Buffer>; key: Buffer | undefined; docId: number }[] = []
  for (const { id } of chosen) {
    const keys = keysOf(tx, id)
    heads.push({ id, keys, key: (await keys.next()).value, docId: 0 })
  }
  let waiting: Buffer[] = []
  let count = 0
  const flush = async () => {
    signal?.throwIfAborted()
    await addKeys(tx, merged, { docId: count - waiting.length, keys: Buffer.concat(waiting) })
    waiting = []
  }
  for (;;) {
    let head: (typeof heads)[number] | undefined
    for (const one of heads) if (one.key && (!head?.key || one.key.compare(head.key) > 0)) head = one
    if (!head?.key) break
    const isDeleted = deleted.size > 0 && deleted.has(versionIn(head.key))
    const news = docIds.get(head.id) as Float64Array
    news[head.docId++] = isDeleted ? dropped : count++
    if (!isDeleted) waiting.push(head.key)
    if (waiting.length === keysAtOnce) await flush()
    head.key = (await head.keys.next()).value
  }
  await flush()
  return { count, docIds }
}

async function* keysOf(tx: Tx, segment_id: string): AsyncGenerator<Buffer, undefined> {
  const rows = keysAtOnce / keysInPart
  for (let part = 0; ; part += rows) {
    const { keys } = await tx.one<{ keys: Buffer | null }>(sql`
      select string_agg(bytes, '' order by part) as keys from search_ranks
      where segment_id = ${segment_id} and part >= ${part} and part < ${part + rows}`)
    if (!keys) return undefined
    for (let at = 0; at < keys.length; at += keyBytes) yield keys.subarray(at, at + keyBytes)
  }
}

/** The bytes of a key after its time, which identify a version. */
function versionIn(key: Buffer): string {
  return key.toString('latin1', keyBytes - versionBytes)
}

const versionBytes = 18

/** Terms, over all segments, that are merged at once, so that no statement takes long. */
const termsAtOnce = 2000

interface ListRow {
  readonly id: string
  readonly word: string
  readonly bytes: Buffer
}

async function mergeLists(
  tx: Tx,
  merged: string,
  { docIds, signal }: { docIds: NewDocIds; signal: AbortSignal | undefined },
): Promise<void> {
  const ids = [...docIds.keys()]
  const each = Math.ceil(termsAtOnce / ids.length)
  for (let after: string | null = ''; after !== null; ) {
    signal?.throwIfAborted()
    const { next }: { next: string | null } = await tx.one(sql`
      select min(l.last) as next from unnest(${ids}::bigint[]) as s (id) cross join lateral (
        select case when count(*) = ${each} then max(word) end as last from (
          select word from search_lists where segment_id = s.id and word > ${after} and part = 0
          order by word limit ${each}) l) l`)
    const until = next ?? lastTerm
    const rows = await tx.rows<ListRow>(sql`
      select s.id, l.word, string_agg(l.bytes, '' order by l.part) as bytes from unnest(${ids}::bigint[]) as s (id)
      cross join lateral (
        select word, part, bytes from search_lists
        where segment_id = s.id and word > ${after} and word <= ${until} offset 0) l
      group by s.id, l.word order by l.word`)
    await tx.run(sql`
      delete from search_lists where segment_id = any(${ids}::bigint[]) and word > ${after} and word <= ${until}`)
    const lists = new Map<string, Float64Array>()
    for (const [term, some] of Map.groupBy(rows, ({ word }) => word)) {
      lists.set(term, mergeSorted(some.map((row) => renumber(row, docIds))))
    }
    await addLists(tx, merged, lists)
    after = next
  }
}

/** The list with the docIds of the merged segment. Documents keep their order, so the list stays sorted. */
export function renumber({ id, word, bytes }: ListRow, docIds: NewDocIds): Float64Array {
  const news = docIds.get(id) ?? new Float64Array()
  const step = hasPositions(word) ? stride : 1
  const old = hasPositions(word) ? decodeOccurrences(bytes) : decodeDocIds(bytes)
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

/** Removes tombstones once no segment has these versions: old segments were merged without them, new ones never had them. */
async function removeTombstones(
  tx: Tx,
  { account_id }: AccountKey,
  versions: readonly Version[],
): Promise<void> {
  if (versions.length === 0) return
  await tx.run(sql`
    delete from search_stale s using ${given(versions, { chat_id: 'bigint', id: 'bigint', listing: 'smallint' })} as v
    where s.account_id = ${account_id} and s.chat_id = v.chat_id and s.id = v.id and s.listing = v.listing`)
}
