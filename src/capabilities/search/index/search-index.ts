/**
 * The search index, and the only file of this folder that others import: `indexPending` indexes what is new,
 * `mergeSegments` merges, `findMatches` queries and says whether it saw everything, `countPending` says how far behind
 * indexing is. docs/search.md explains how it works.
 */
import type { Db } from '../../../db/sql.ts'
import { type Condition, isMatch } from './condition.ts'
import { byTime, type MessageKey, nameOfVersion } from './doc-keys.ts'
import { evaluate } from './evaluate.ts'
import { readPending } from './pending.ts'
import { countBelow, type DocIds } from './posting-lists.ts'
import {
  type DocRange,
  readDocRanges,
  readKeys,
  readSegments,
  readTombstones,
  type SegmentRead,
} from './segment-reader.ts'
import { format, partBytes } from './segment-writer.ts'
import { type IndexQuery, rangesIn, toIndexQuery } from './terms.ts'

export type { Condition, Words } from './condition.ts'
export { byTime, type MessageKey } from './doc-keys.ts'
export { findMergeable, mergeSegments } from './merge.ts'
export { countPending, findPending, indexPending } from './pending.ts'
export { reindexOutdated } from './reindex.ts'

export interface Wanted {
  /** How many of the newest matches to return. */
  readonly limit: number
  /** How far to count. */
  readonly count: number
}

export interface Matches {
  /** The newest, in order. */
  readonly page: readonly MessageKey[]
  /** How many there are, exact up to the count that was wanted. */
  readonly total: number
  /** False: there may be matches that were not looked at. */
  readonly complete: boolean
}

/** Pending messages of each account that a search reads, one by one. */
const pendingMax = 500

/** In a snapshot every message is either pending or in one segment, and no segment is merged away meanwhile. */
export async function findMatches(
  snapshot: Db,
  account_ids: readonly string[],
  condition: Condition,
  wanted: Wanted,
): Promise<Matches> {
  const [read, pending] = await Promise.all([
    findIndexed(snapshot, account_ids, { condition, wanted }),
    readPending(snapshot, account_ids, pendingMax + 1),
  ])
  const fresh = pending
    .filter((message) => isMatch(condition, message))
    .map(({ sent_at, ...message }) => ({ ...message, at: sent_at.getTime() }))
  const indexed = await readNewest(snapshot, read.found, wanted.limit)
  const accounts = Map.groupBy(pending, ({ account_id }) => account_id)
  return {
    page: [...indexed, ...fresh].sort(byTime).slice(0, wanted.limit),
    total: countDocs(read.found) + fresh.length,
    complete: read.complete && [...accounts.values()].every(({ length }) => length <= pendingMax),
  }
}

interface Task {
  readonly condition: Condition
  readonly wanted: Wanted
}

/** What matches in a segment, the newest first. */
interface SegmentMatches {
  readonly segment: Omit<SegmentRead, 'lists'>
  readonly docIds: DocIds
  /** Nothing is missing after the last. */
  readonly whole: boolean
}

function countDocs(found: readonly SegmentMatches[]): number {
  return found.reduce((sum, { docIds }) => sum + docIds.length, 0)
}

async function findIndexed(
  db: Db,
  account_ids: readonly string[],
  task: Task,
): Promise<{ found: readonly SegmentMatches[]; complete: boolean }> {
  const { condition, wanted } = task
  const queries = new Map(account_ids.map((id) => [id, toIndexQuery(id, condition)]))
  const parts = firstParts(queries)
  const [segments, rows] = await Promise.all([
    readAll(db, queries, { parts, condition }),
    readTombstones(db, account_ids),
  ])
  const tombstones = new Map(
    [...Map.groupBy(rows, ({ account_id }) => account_id)].map(([id, versions]) => [
      id,
      new Set(versions.map(nameOfVersion)),
    ]),
  )
  const readable = segments.filter((segment) => segment.format === format)
  const matches = await readEnough(db, { ...task, queries, tombstones, parts, segments: readable })
  const found: SegmentMatches[] = []
  for (const one of matches) found.push(await withoutTombstones(db, one, { most: wanted.count, tombstones }))
  const total = countDocs(found)
  const isEnough = ({ whole, docIds }: SegmentMatches) =>
    whole || (total >= wanted.count && docIds.length >= wanted.limit)
  return { found, complete: readable.length === segments.length && found.every(isEnough) }
}

type Queries = ReadonlyMap<string, IndexQuery>
/** By account the names of the versions that no search may find. */
type Tombstones = ReadonlyMap<string, ReadonlySet<string>>

function readAll(
  db: Db,
  queries: Queries,
  { parts, condition }: { parts: number; condition: Condition },
): Promise<SegmentRead[]> {
  const ranges = [...queries].flatMap(([account_id, query]) =>
    rangesIn(query).map((range) => ({ account_id, ...range })),
  )
  return readSegments(db, ranges, { parts, times: condition })
}

/** How much of each list should do, if what is searched for is common. Further parts are read if it does not. */
function firstParts(queries: Queries): number {
  const [{ must, mustNot } = { must: [], mustNot: [] }] = queries.values()
  const phrases = [...must.flat(2), ...mustNot]
  if (phrases.some((phrase) => phrase.some(({ low, high }) => low !== high))) return 1
  const isSimple = phrases.length === 1 && phrases[0]?.length === 1
  return Math.ceil((isSimple ? 2 : 16) / queries.size)
}

/** All parts of every list. */
const partsMax = 2 ** 20
/** Bytes of posting lists that one search may read, and those that are read whole rather than in several rounds. */
const bytesMax = 32_000_000
const bytesFew = 300_000

/** Reads so much of the lists that the newest matches are known, and how many there are. */
async function readEnough(
  db: Db,
  task: Task & {
    queries: Queries
    tombstones: Tombstones
    parts: number
    segments: readonly SegmentRead[]
  },
): Promise<readonly SegmentMatches[]> {
  const { condition, wanted, queries, tombstones } = task
  const ranges = await readDocRanges(db, task.segments, condition)
  const deleted = (account_id: string) => tombstones.get(account_id)?.size ?? 0
  const need = wanted.count + [...tombstones.values()].reduce((sum, { size }) => sum + size, 0)
  let { parts, segments } = task
  for (;;) {
    const found = segments.map((segment) => {
      const query = queries.get(segment.account_id) as IndexQuery
      return matchIn(segment, query, ranges.get(segment.id) as DocRange)
    })
    const total = countDocs(found)
    const isEnough = ({ segment, docIds, whole }: SegmentMatches) =>
      whole || (total >= need && docIds.length >= wanted.limit + deleted(segment.account_id))
    const more = moreParts(segments, parts, Math.ceil((1.5 * need) / Math.max(total, 1)))
    if (found.every(isEnough) || more === undefined) return found
    parts = more
    segments = (await readAll(db, queries, { parts, condition })).filter(({ id }) => ranges.has(id))
  }
}

function matchIn(segment: SegmentRead, query: IndexQuery, range: DocRange): SegmentMatches {
  const { docIds, horizon } = evaluate(query, segment.lists)
  const { lists: _, ...rest } = segment
  return {
    segment: rest,
    docIds: docIds.subarray(countBelow(docIds, range.from), countBelow(docIds, range.until)),
    whole: horizon >= range.until,
  }
}

/** That many times as much, or what one search may read; undefined if that has been read. */
function moreParts(segments: readonly SegmentRead[], parts: number, times: number): number | undefined {
  if (bytesIn(segments, partsMax) <= bytesFew) return partsMax
  let more = Math.min(partsMax, parts * Math.max(4, times))
  while (more > parts && bytesIn(segments, more) > bytesMax) more = Math.floor(more / 2)
  return more > parts ? more : undefined
}

function bytesIn(segments: readonly SegmentRead[], parts: number): number {
  let bytes = 0
  for (const { lists } of segments) {
    for (const { length } of [...lists.values()].flat()) bytes += Math.min(length, parts * partBytes)
  }
  return bytes
}

/** Drops what has a tombstone, until `most` are left: what comes after them in a segment matters to nobody. */
async function withoutTombstones(
  db: Db,
  { segment, docIds, whole }: SegmentMatches,
  { most, tombstones }: { most: number; tombstones: Tombstones },
): Promise<SegmentMatches> {
  const deleted = tombstones.get(segment.account_id)
  if (!deleted) return { segment, docIds, whole }
  const kept: number[] = []
  let at = 0
  for (; at < docIds.length && kept.length < most; at += most) {
    const some = docIds.subarray(at, at + most)
    const keys = await readKeys(db, placesOf(segment, some))
    for (const [place, key] of keys.entries()) {
      if (!deleted.has(nameOfVersion(key))) kept.push(some[place] as number)
    }
  }
  return { segment, docIds: Uint32Array.from(kept), whole: whole && at >= docIds.length }
}

function placesOf({ id }: Pick<SegmentRead, 'id'>, docIds: DocIds) {
  return Array.from(docIds, (docId) => ({ segment_id: id, docId }))
}

/** The newest documents of all segments. */
async function readNewest(db: Db, found: readonly SegmentMatches[], limit: number): Promise<MessageKey[]> {
  const places = found.flatMap(({ segment, docIds }) => placesOf(segment, docIds.subarray(0, limit)))
  const accounts = new Map(found.map(({ segment }) => [segment.id, segment.account_id]))
  const keys = await readKeys(db, places)
  return keys.map((key, at) => ({ ...key, account_id: accounts.get(places[at]?.segment_id ?? '') ?? '' }))
}
