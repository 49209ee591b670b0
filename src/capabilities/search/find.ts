/** Finds what matches a condition, newest first, and counts it. */
import type { Db } from '../../db/sql.ts'
import type { Ranks } from '../../lib/postings.ts'
import { type Condition, isMatch, isSure, isTimeOnly } from './conditions.ts'
import { boundsOf, byTime, nameOfKey } from './keys.ts'
import {
  beginLists,
  checkedMax,
  count,
  type Gone,
  type Row,
  readListed,
  type Task,
  type Wanted,
} from './read.ts'
import {
  type Found,
  type Message,
  type MessageKey,
  type Place,
  readFound,
  readKeys,
  readMessages,
  readNewest,
  readPending,
  readStale,
  readTimes,
  type Segment,
} from './store.ts'

export interface Matches {
  readonly page: readonly Found[]
  readonly total: number
  /** Not everything was looked through. */
  readonly cut: boolean
}

/** So many messages of each account that no list has yet are looked through. */
const pendingMax = 500
/** Where lists say too little, so many messages are read and checked at once. */
const checkedAtOnce = 1000

/** In a snapshot what is pending is in no segment, and every segment is there until the end. */
export async function findMatches(
  snapshot: Db,
  place: Place,
  condition: Condition,
  wanted: Wanted,
): Promise<Matches> {
  if (place.account_ids.length === 0) return { page: [], total: 0, cut: false }
  if (isTimeOnly(condition)) {
    return { ...(await readTimes(snapshot, place, { ...wanted, times: condition })), cut: false }
  }
  return find(snapshot, place, { condition, wanted })
}

async function find(db: Db, { account_ids }: Place, { condition, wanted }: Task): Promise<Matches> {
  const [begun, pending, stale] = await Promise.all([
    beginLists(db, account_ids, condition),
    readPending(db, account_ids, pendingMax + 1),
    readStale(db, account_ids),
  ])
  const gone = new Map(
    [...Map.groupBy(stale, ({ account_id }) => account_id)].map(([id, keys]) => [
      id,
      new Set(keys.map(nameOfKey)),
    ]),
  )
  const fresh = pending.filter((message) => isMatch(condition, message)).map(keyOf)
  const listed = await readListed(db, begun, { condition, wanted, gone })
  const most = listed.check ? checkedMax : wanted.count
  const rows = await Promise.all(listed.rows.map((row) => withoutGone(db, row, { most, gone })))
  const task = { condition, wanted }
  const quick = !listed.check && fresh.length === 0 ? await findQuickly(db, rows, task) : undefined
  if (quick) return { ...quick, cut: overflows(pending) }
  const counted = await (listed.check ? checkEach : countEach)(db, rows, task)
  const matches = await readPage(db, { ...task, counted, fresh })
  const found =
    // Something else has the same mark, and there may be much of it: whoever writes can look for such words.
    matches.dropped > 0
      ? await readPage(db, { ...task, counted: await checkEach(db, rows, task), fresh })
      : matches
  return { ...found, cut: found.cut || overflows(pending) }
}

/** Where nothing is in doubt, which is most of the time: the page in one go. */
async function findQuickly(
  db: Db,
  rows: readonly Row[],
  { condition, wanted }: Task,
): Promise<Matches | undefined> {
  const { limit } = wanted
  const total = count(rows)
  if (rows.some(({ whole, ranks }) => !whole && (total < wanted.count || ranks.length < limit)))
    return undefined
  const page = await readNewest(db, newestOf(rows, limit), limit)
  if (!page.every((message) => isRight(condition, message)) || page.length < Math.min(limit, total))
    return undefined
  return { page: page.sort((a, b) => byTime(keyOf(a), keyOf(b))), total, cut: false }
}

/** Those that may be among the newest, as far as segments tell when what was sent. */
function newestOf(rows: readonly Row[], limit: number) {
  const heads = rows.flatMap(({ segment: { id, account_id, times }, ranks }) => {
    const some = ranks.subarray(0, limit)
    return boundsOf(times, some).map((bounds, at) => ({
      account_id,
      segment_id: id,
      rank: some[at] as number,
      ...bounds,
    }))
  })
  const lowest =
    Float64Array.from(heads, ({ lower }) => lower)
      .sort()
      .at(-limit) ?? -Infinity
  return heads.filter(({ upper }) => upper >= lowest)
}

/** The newest of what lists have and of what is pending, and how many of them do not match after all. */
async function readPage(
  db: Db,
  { condition, wanted, counted, fresh }: Task & { counted: Counted; fresh: readonly MessageKey[] },
): Promise<Matches & { dropped: number }> {
  const keys = [...counted.newest, ...fresh].sort(byTime).slice(0, wanted.limit)
  const page = (await readFound(db, keys)).filter((message) => isRight(condition, message))
  const dropped = keys.length - page.length
  const total = counted.total + fresh.length - dropped
  return {
    page: page.sort((a, b) => byTime(keyOf(a), keyOf(b))),
    total,
    cut: counted.cut || (counted.more && total < wanted.count),
    dropped,
  }
}

/** Two things may share a mark by chance, but no two words a list. */
function isRight(condition: Condition, message: Message): boolean {
  return isSure(condition) || isMatch(condition, message)
}

function keyOf({ account_id, chat_id, id, sent_at }: Message): MessageKey {
  return { account_id, chat_id, id, at: sent_at.getTime() }
}

function overflows(pending: readonly Message[]): boolean {
  const accounts = Map.groupBy(pending, ({ account_id }) => account_id)
  return [...accounts.values()].some(({ length }) => length > pendingMax)
}

/** What is beyond so many of a segment matters to nobody. Most of what is gone is further down, so no more are read at once. */
async function withoutGone(
  db: Db,
  { segment, ranks, whole }: Row,
  { most, gone }: { most: number; gone: Gone },
): Promise<Row> {
  const names = gone.get(segment.account_id)
  if (!names) return { segment, ranks, whole }
  const kept: number[] = []
  let at = 0
  for (; at < ranks.length && kept.length < most; at += most) {
    const some = ranks.subarray(at, at + most)
    const keys = await readKeys(db, spotsOf(segment, some))
    for (const [place, key] of keys.entries()) {
      if (!names.has(nameOfKey(key))) kept.push(some[place] as number)
    }
  }
  return { segment, ranks: Uint32Array.from(kept), whole: whole && at >= ranks.length }
}

function spotsOf({ id }: Segment, ranks: Ranks) {
  return Array.from(ranks, (rank) => ({ segment_id: id, rank }))
}

interface Counted {
  readonly newest: readonly MessageKey[]
  readonly total: number
  /** There may be newer ones. */
  readonly cut: boolean
  /** There may be older ones. */
  readonly more: boolean
}

/** Every one of them matches. */
async function countEach(db: Db, rows: readonly Row[], { wanted: { limit } }: Task): Promise<Counted> {
  const walked = await walk(db, rows, { wanted: { limit, count: limit }, atOnce: 2 * limit })
  return { ...walked, total: count(rows) }
}

/** Every one is read, until enough of them match. */
function checkEach(db: Db, rows: readonly Row[], { condition, wanted }: Task): Promise<Counted> {
  return walk(db, rows, { wanted, atOnce: checkedAtOnce, most: checkedMax, condition })
}

async function readRow(db: Db, rows: readonly Row[]): Promise<MessageKey[]> {
  const spots = rows.flatMap(({ segment, ranks }) => spotsOf(segment, ranks))
  const accounts = new Map(rows.map(({ segment }) => [segment.id, segment.account_id]))
  const keys = await readKeys(db, spots)
  return keys.map((key, at) => ({ ...key, account_id: accounts.get(spots[at]?.segment_id ?? '') ?? '' }))
}

/** A segment of which so much has been looked at. */
interface Walking {
  readonly row: Row
  seen: number
  /** When the last one was sent. */
  last: number
  found: number
}

interface Walk {
  readonly wanted: Wanted
  /** So many are read in one go. */
  readonly atOnce: number
  /** And so many in all. */
  readonly most?: number
  /** What they have to be; undefined: they are. */
  readonly condition?: Condition
}

/** The newest of each segment first, until enough was found and nothing newer can be left. */
async function walk(
  db: Db,
  rows: readonly Row[],
  { wanted, atOnce, most = Infinity, condition }: Walk,
): Promise<Counted> {
  const all: Walking[] = rows.map((row) => ({ row, seen: 0, last: Infinity, found: 0 }))
  const found: MessageKey[] = []
  let left = most
  const more = rows.some(({ whole }) => !whole)
  for (;;) {
    const open = all.filter(({ row, seen }) => seen < row.ranks.length)
    found.sort(byTime)
    const newest = found.slice(0, wanted.limit)
    // What is newer than the last to be shown may be wherever nothing that old has been seen.
    const least = found[wanted.limit - 1]?.at ?? -Infinity
    const mayHaveNewer = (one: Walking) => one.found < wanted.limit && one.last >= least
    const some = found.length < wanted.count ? open : open.filter(mayHaveNewer)
    if (some.length === 0 || left === 0) {
      const cut = some.length > 0 || all.some((one) => !one.row.whole && mayHaveNewer(one))
      return { newest, total: found.length, cut, more }
    }
    const each = Math.ceil(Math.min(left, atOnce) / some.length)
    found.push(...(await goOn(db, some, { condition, each })))
    left = Math.max(0, most - all.reduce((sum, { seen }) => sum + seen, 0))
  }
}

/** The next ones of each, and what of them matches. */
async function goOn(
  db: Db,
  some: readonly Walking[],
  { condition, each }: { condition: Condition | undefined; each: number },
): Promise<MessageKey[]> {
  const next = some.map(({ row, seen }) => ({ ...row, ranks: row.ranks.subarray(seen, seen + each) }))
  const keys = await readRow(db, next)
  const matching = condition && (await readMatching(db, keys, condition))
  const found: MessageKey[] = []
  let at = 0
  for (const [place, one] of some.entries()) {
    const size = next[place]?.ranks.length ?? 0
    const mine = keys.slice(at, at + size)
    at += size
    const hits = matching ? mine.filter((key) => matching.has(nameOfMessage(key))) : mine
    one.seen += size
    one.found += hits.length
    one.last = mine.at(-1)?.at ?? one.last
    found.push(...hits)
  }
  return found
}

async function readMatching(
  db: Db,
  keys: readonly MessageKey[],
  condition: Condition,
): Promise<ReadonlySet<string>> {
  const messages = await readMessages(db, keys)
  return new Set(messages.filter((message) => isMatch(condition, message)).map(nameOfMessage))
}

function nameOfMessage({ account_id, chat_id, id }: Omit<MessageKey, 'at'>): string {
  return `${account_id} ${chat_id} ${id}`
}
