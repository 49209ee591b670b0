/**
 * The search index, and the only file of this folder that others import: `indexPending` indexes new messages,
 * `mergeSegments` merges, `findMatches` queries and says whether it saw everything, `countPending` returns the backlog.
 * docs/search.md explains how it works.
 */
import type { Db } from '../../../db/sql.ts'
import { mapInSlices } from '../../../lib/slices.ts'
import { type Condition, isMatch } from './condition.ts'
import { inOrder, type MessageKey, nameOfVersion, type Version } from './doc-keys.ts'
import type { Evaluation } from './evaluate.ts'
import { evaluateSegments } from './evaluations.ts'
import { readPending } from './pending.ts'
import { countBelow, type DocIds } from './posting-lists.ts'
import { readDocRange, readKeys, readSegments, readTombstones, type SegmentRead } from './segment-reader.ts'
import { format } from './segment-writer.ts'
import { type IndexQuery, rangesIn, toIndexQuery } from './terms.ts'

export type { Condition, Words } from './condition.ts'
export { inOrder, type MessageKey } from './doc-keys.ts'
export { areWordsForgotten, forgetWords, settleForgetting } from './forgetting.ts'
export { findMergeable, mergeSegments } from './merge.ts'
export { countPending, findPending, indexPending } from './pending.ts'
export { reindexOutdated } from './reindex.ts'

export interface MatchLimits {
  /** How many of the newest matches to return. */
  readonly limit: number
  /** How far to count. */
  readonly count: number
}

interface Matches {
  /** The newest matches, in order. */
  readonly page: readonly MessageKey[]
  /** How many matches there are, exact up to the requested count. */
  readonly total: number
  /** False: there may be more matches that were not checked. */
  readonly complete: boolean
}

/** How many pending messages of each account a search checks. If more are pending, the result is not complete. */
const pendingMax = 500

/** In a snapshot, every message is either pending or in one segment, and no segment disappears by a merge. */
export async function findMatches(
  snapshot: Db,
  account_ids: readonly string[],
  condition: Condition,
  wanted: MatchLimits,
): Promise<Matches> {
  const [{ found, complete }, pending] = await Promise.all([
    findIndexed(snapshot, account_ids, { condition, wanted }),
    readPending(snapshot, account_ids, pendingMax + 1),
  ])
  const matching = await mapInSlices(pending, (message) => isMatch(condition, message))
  const fresh = pending
    .filter((_, at) => matching[at])
    .map(({ sent_at, ...message }) => ({ ...message, at: sent_at.getTime() }))
  const indexed = await readNewest(snapshot, found, wanted.limit)
  const accounts = Map.groupBy(pending, ({ account_id }) => account_id)
  return {
    page: [...indexed, ...fresh].sort(inOrder).slice(0, wanted.limit),
    total: countDocs(found) + fresh.length,
    complete: complete && [...accounts.values()].every(({ length }) => length <= pendingMax),
  }
}

/** The matches in a segment, newest first. */
interface SegmentMatches {
  readonly segment: SegmentRead
  readonly docIds: DocIds
  /** Nothing is missing after the last one. */
  readonly whole: boolean
}

function countDocs(found: readonly SegmentMatches[]): number {
  return found.reduce((sum, { docIds }) => sum + docIds.length, 0)
}

/** The most parts of a posting list that a search reads, 8 MB. If they are not enough, the result is not complete. */
const partsMax = 4096

/** Reads as much of the posting lists as it takes to know the newest matches and their number. */
async function findIndexed(
  db: Db,
  account_ids: readonly string[],
  { condition, wanted }: { condition: Condition; wanted: MatchLimits },
): Promise<{ found: readonly SegmentMatches[]; complete: boolean }> {
  const queries = new Map(account_ids.map((id) => [id, toIndexQuery(id, condition)]))
  const ranges = [...queries].flatMap(([account_id, query]) =>
    rangesIn(query).map((range) => ({ account_id, ...range })),
  )
  let parts = firstParts(queries)
  const read = () => readSegments(db, ranges, { parts, times: condition })
  const first = await Promise.all([read(), readTombstones(db, account_ids)])
  const tombstones = first[1]
  let segments = first[0]
  for (;;) {
    const readable = segments.filter((segment) => segment.format === format)
    const evaluations = await evaluateSegments(
      readable.map(({ account_id, lists }) => ({ query: queries.get(account_id) as IndexQuery, lists })),
    )
    const found = await Promise.all(
      readable.map(async (segment, at) => {
        const { docIds, horizon } = evaluations[at] as Evaluation
        const { from, until } = await readDocRange(db, segment, condition)
        const inTime = docIds.subarray(countBelow(docIds, from), countBelow(docIds, until))
        const matches = { segment, docIds: inTime, whole: horizon >= until }
        return withoutTombstones(db, matches, {
          most: Math.max(wanted.count, wanted.limit),
          deleted: tombstones.get(segment.account_id),
        })
      }),
    )
    const total = countDocs(found)
    const isEnough = found.every(
      ({ whole, docIds }) => whole || (total >= wanted.count && docIds.length >= wanted.limit),
    )
    if (isEnough || parts >= partsMax) {
      return { found, complete: isEnough && readable.length === segments.length }
    }
    parts = Math.min(partsMax, parts * Math.max(4, Math.ceil((1.5 * wanted.count) / Math.max(total, 1))))
    segments = await read()
  }
}

/** How many parts of each list to read at first: enough for common words. */
function firstParts(queries: ReadonlyMap<string, IndexQuery>): number {
  const [{ must, mustNot } = { must: [], mustNot: [] }] = queries.values()
  const phrases = [...must.flat(2), ...mustNot]
  const isSimple = phrases.length === 1 && phrases[0]?.length === 1
  return Math.ceil((isSimple ? 2 : 16) / queries.size)
}

/** Skips entries with a tombstone until `most` are left: later entries of the segment cannot be among the results. */
async function withoutTombstones(
  db: Db,
  { segment, docIds, whole }: SegmentMatches,
  { most, deleted }: { most: number; deleted: ReadonlySet<string> | undefined },
): Promise<SegmentMatches> {
  if (!deleted) return { segment, docIds, whole }
  const kept: number[] = []
  let at = 0
  for (; at < docIds.length && kept.length < most; at += most) {
    const some = docIds.subarray(at, at + most)
    const keys = await readKeys(db, placesOf(segment, some))
    kept.push(...some.filter((_, place) => !deleted.has(nameOfVersion(keys[place] as Version))))
  }
  return { segment, docIds: Uint32Array.from(kept), whole: whole && at >= docIds.length }
}

function placesOf({ id, account_id }: SegmentRead, docIds: DocIds) {
  return Array.from(docIds, (docId) => ({ account_id, segment_id: id, docId }))
}

/** The newest documents of each segment, which include the newest of all. */
async function readNewest(db: Db, found: readonly SegmentMatches[], limit: number): Promise<MessageKey[]> {
  const places = found.flatMap(({ segment, docIds }) => placesOf(segment, docIds.subarray(0, limit)))
  const keys = await readKeys(db, places)
  return keys.map((key, at) => ({ ...key, account_id: places[at]?.account_id ?? '' }))
}
