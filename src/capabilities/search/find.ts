/** Finds what matches a condition in the lists, newest first: reads their beginnings, and more of them if need be. */
import type { Database, Db } from '../../db/sql.ts'
import { countBelow, type Ranks } from '../../lib/postings.ts'
import { type Condition, isMatch, isTimeOnly, type Plan, planFor } from './conditions.ts'
import { evaluate, evaluateWhole, nameOf, type Pieces } from './evaluate.ts'
import { byTime, nameOfKey } from './keys.ts'
import { partBytes, partsMax } from './pack.ts'
import {
  type Asked,
  countSince,
  type Found,
  type Message,
  type MessageKey,
  type Place,
  readFound,
  readKeys,
  readLists,
  readMessages,
  readPending,
  readSegments,
  readStale,
  readTimes,
  type Segment,
  type Times,
} from './store.ts'

export interface Wanted {
  /** The newest to show, and one more that tells whether there are more. */
  readonly limit: number
  /** How far to count. */
  readonly count: number
}

export interface Matches {
  readonly page: readonly Found[]
  readonly total: number
  /** Not everything was looked through. */
  readonly cut: boolean
}

/** So many messages of each account that no list has yet are looked through. */
const pendingMax = 500
/** Where lists say too little, so many messages are read and checked, in parts. */
const checkedMax = 5000
const checkedAtOnce = 1000
/** So few are rather read and checked than looked for further down in long lists. */
const fewMax = 300

export async function findMatches(
  db: Database,
  place: Place,
  condition: Condition,
  wanted: Wanted,
): Promise<Matches> {
  if (place.account_ids.length === 0) return { page: [], total: 0, cut: false }
  if (isTimeOnly(condition)) {
    return { ...(await readTimes(db, place, { ...wanted, times: condition })), cut: false }
  }
  // What is pending is in no segment, and every segment is there until the end.
  return db.snapshot((at) => find(at, place, { condition, wanted }))
}

interface Task {
  readonly condition: Condition
  readonly wanted: Wanted
}

async function find(db: Db, { account_ids }: Place, { condition, wanted }: Task): Promise<Matches> {
  const [segments, pending, stale] = await Promise.all([
    readSegments(db, account_ids, condition),
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
  const listed = await readListed(db, segments, { condition, wanted, gone })
  const rows = await Promise.all(listed.rows.map((row) => withoutGone(db, row, { wanted, gone })))
  const { newest, total, cut } = await (listed.check ? checkEach : countEach)(db, rows, { condition, wanted })
  const keys = [...newest, ...fresh].sort(byTime).slice(0, wanted.limit)
  const page = (await readFound(db, keys)).filter((message) => isMatch(condition, message))
  const counted = total + fresh.length - (keys.length - page.length)
  return {
    page: page.sort((a, b) => byTime(keyOf(a), keyOf(b))),
    total: counted,
    cut: cut || (listed.more && counted < wanted.count) || overflows(pending),
  }
}

function keyOf({ account_id, chat_id, id, sent_at }: Message): MessageKey {
  return { account_id, chat_id, id, at: sent_at.getTime() }
}

function overflows(pending: readonly Message[]): boolean {
  const accounts = Map.groupBy(pending, ({ account_id }) => account_id)
  return [...accounts.values()].some(({ length }) => length > pendingMax)
}

/** By account what its lists have still, although it is not so any more. */
type Gone = ReadonlyMap<string, ReadonlySet<string>>

/** What may match in a segment, the newest first. */
interface Row {
  readonly segment: Segment
  readonly ranks: Ranks
}

/** What is beyond so many of a segment matters to nobody. */
async function withoutGone(
  db: Db,
  { segment, ranks }: Row,
  { wanted, gone }: { wanted: Wanted; gone: Gone },
): Promise<Row> {
  const names = gone.get(segment.account_id)
  if (!names) return { segment, ranks }
  const some = ranks.subarray(0, Math.max(wanted.count, checkedMax) + names.size)
  const keys = await readKeys(db, spotsOf(segment, some))
  return { segment, ranks: some.filter((_, at) => !names.has(nameOfKey(keys[at] as (typeof keys)[number]))) }
}

function spotsOf({ id }: Segment, ranks: Ranks) {
  return Array.from(ranks, (rank) => ({ segment_id: id, rank }))
}

interface Listed {
  readonly rows: readonly Row[]
  /** They have to be checked, each by itself. */
  readonly check: boolean
  /** What else the lists have may match, too, where this is not enough. */
  readonly more: boolean
}

/** Reads so much of the lists that the newest matches are known, and how many there are. */
async function readListed(
  db: Db,
  segments: readonly Segment[],
  { condition, wanted, gone }: Task & { gone: Gone },
): Promise<Listed> {
  if (segments.length === 0) return { rows: [], check: false, more: false }
  const plans = new Map(segments.map(({ account_id: id }) => [id, planFor(id, condition)]))
  const check = [...plans.values()].some((plan) => plan.check)
  const need = (check ? checkedMax : wanted.count) + sizeOf(gone)
  const isEnough = ({ segment, ranks, whole }: Looked) =>
    whole || ranks.length >= wanted.limit + (gone.get(segment.account_id)?.size ?? 0)
  const ranging = readRanges(db, segments, condition)
  const looked = new Map<string, Looked>()
  let parts = firstParts(plans)
  for (;;) {
    const open = segments.filter(({ id }) => !looked.get(id)?.whole)
    const [read, ranges] = await Promise.all([readLists(db, askFor(open, plans), parts), ranging])
    for (const segment of open) {
      const pieces = read.get(segment.id) ?? new Map()
      const plan = plans.get(segment.account_id) as Plan
      looked.set(segment.id, look(segment, { plan, pieces, range: ranges.get(segment.id) as Range }))
    }
    const rows = [...looked.values()]
    const total = count(rows)
    if (rows.every(({ whole }) => whole)) return { rows, check, more: false }
    if (total >= need && (check || rows.every(isEnough))) return { rows, check, more: check }
    const few = fewIn(rows)
    if (few) return { rows: few, check: true, more: false }
    const more = moreParts(read, parts, Math.ceil((1.5 * need) / Math.max(total, 1)))
    if (more === undefined) return { rows, check, more: true }
    parts = more
  }
}

function sizeOf(gone: Gone): number {
  return [...gone.values()].reduce((sum, { size }) => sum + size, 0)
}

/** From the first rank to before the last. */
interface Range {
  readonly from: number
  readonly until: number
}

/** Which ranks are of the times that are asked for, by segment. */
async function readRanges(
  db: Db,
  segments: readonly Segment[],
  { from, until }: Times,
): Promise<ReadonlyMap<string, Range>> {
  const cutBelow = segments.filter(({ oldest_at }) => oldest_at.getTime() < from)
  const cutAbove = segments.filter(({ newest_at }) => newest_at.getTime() >= until)
  const counts = await countSince(db, [
    ...cutBelow.map(({ id }) => ({ segment_id: id, at: from })),
    ...cutAbove.map(({ id }) => ({ segment_id: id, at: until })),
  ])
  const countOf = (segment: Segment, cut: readonly Segment[], offset: number) =>
    cut.includes(segment) ? counts[offset + cut.indexOf(segment)] : undefined
  return new Map(
    segments.map((segment) => [
      segment.id,
      {
        from: countOf(segment, cutAbove, cutBelow.length) ?? 0,
        until: countOf(segment, cutBelow, 0) ?? Number.POSITIVE_INFINITY,
      },
    ]),
  )
}

/** So many times as much, or what one search may take; undefined if that has been read. */
function moreParts(read: ReadonlyMap<string, Pieces>, parts: number, times: number): number | undefined {
  let more = Math.min(partsMax, parts * Math.max(4, times))
  while (more > parts && bytesIn(read, more) > bytesMax) more = Math.floor(more / 2)
  return more > parts ? more : undefined
}

/** Of all lists together: what one search may take. */
const bytesMax = 32_000_000

function bytesIn(read: ReadonlyMap<string, Pieces>, parts: number): number {
  let bytes = 0
  for (const pieces of read.values()) {
    for (const { length } of [...pieces.values()].flat()) bytes += Math.min(length, parts * partBytes)
  }
  return bytes
}

/** How much of each list should be enough, if what is looked for is common. */
function firstParts(plans: ReadonlyMap<string, Plan>): number {
  const [{ groups } = { groups: [] }] = plans.values()
  const looks = groups.flat(2)
  if (looks.length > looksMany) return 1
  if (looks.some(({ low, high }) => low !== high)) return 1
  return Math.ceil((groups.length > 1 ? 16 : 2) / plans.size)
}

const looksMany = 32

/** Each name once: people have the same lists in common. */
function askFor(segments: readonly Segment[], plans: ReadonlyMap<string, Plan>): Asked[] {
  const asked = new Map<string, Asked>()
  for (const { id, account_id } of segments) {
    const { groups, none } = plans.get(account_id) as Plan
    const add = (name: string, low: string, high: string) =>
      asked.set(`${id} ${name}`, { name, segment_id: id, low, high })
    for (const look of [...groups.flat(2), ...none.flat()]) {
      add(nameOf(look), look.low, look.high)
      if (look.mark) add(look.mark.own, look.mark.own, look.mark.own)
    }
  }
  return [...asked.values()]
}

interface Looked extends Row {
  /** Nothing is missing. */
  readonly whole: boolean
  /** Everything that may match, if that can be told from what was read. */
  readonly loose: () => Ranks | undefined
}

function look(
  segment: Segment,
  { plan, pieces, range }: { plan: Plan; pieces: Pieces; range: Range },
): Looked {
  const { ranks, horizon } = evaluate(plan, pieces)
  const whole = horizon >= range.until
  return {
    segment,
    ranks: within(ranks, range),
    whole,
    loose() {
      const found = whole ? ranks : evaluateWhole(plan, pieces)
      return found && within(found, range)
    },
  }
}

function within(ranks: Ranks, { from, until }: Range): Ranks {
  return ranks.subarray(countBelow(ranks, from), countBelow(ranks, until))
}

function fewIn(rows: readonly Looked[]): Row[] | undefined {
  const few: Row[] = []
  for (const { segment, loose } of rows) {
    const ranks = loose()
    if (!ranks) return undefined
    few.push({ segment, ranks })
    if (count(few) > fewMax) return undefined
  }
  return few
}

function count(rows: readonly Row[]): number {
  return rows.reduce((sum, { ranks }) => sum + ranks.length, 0)
}

interface Counted {
  readonly newest: readonly MessageKey[]
  readonly total: number
  readonly cut: boolean
}

/** Every one of them matches. */
async function countEach(db: Db, rows: readonly Row[], { wanted }: Task): Promise<Counted> {
  const newest = await readRow(
    db,
    rows.map(({ segment, ranks }) => ({ segment, ranks: ranks.subarray(0, wanted.limit) })),
  )
  return { newest, total: count(rows), cut: false }
}

async function readRow(db: Db, rows: readonly Row[]): Promise<MessageKey[]> {
  const spots = rows.flatMap(({ segment, ranks }) => spotsOf(segment, ranks))
  const accounts = new Map(rows.map(({ segment }) => [segment.id, segment.account_id]))
  const keys = await readKeys(db, spots)
  return keys.map((key, at) => ({ ...key, account_id: accounts.get(spots[at]?.segment_id ?? '') ?? '' }))
}

/** A segment of which so much has been looked at. */
interface Checking {
  readonly row: Row
  checked: number
  /** When the last one was sent. */
  last: number
  found: number
}

/** Every one is read, the newest of each segment first, until enough of them match. */
async function checkEach(db: Db, rows: readonly Row[], { condition, wanted }: Task): Promise<Counted> {
  const all: Checking[] = rows.map((row) => ({ row, checked: 0, last: Number.POSITIVE_INFINITY, found: 0 }))
  const found: MessageKey[] = []
  let left = checkedMax
  const isOpen = ({ row, checked }: Checking) => checked < row.ranks.length
  for (;;) {
    const open = all.filter(isOpen)
    found.sort(byTime)
    // What is newer than the last to be shown may be wherever nothing that old has been seen.
    const least = found[wanted.limit - 1]?.at ?? Number.NEGATIVE_INFINITY
    const some =
      found.length < wanted.count ? open : open.filter((one) => one.found < wanted.limit && one.last >= least)
    if (some.length === 0) return { newest: found.slice(0, wanted.limit), total: found.length, cut: false }
    if (left === 0) return { newest: found.slice(0, wanted.limit), total: found.length, cut: true }
    const each = Math.ceil(Math.min(left, checkedAtOnce) / some.length)
    const matched = await checkSome(db, some, { condition, each })
    found.push(...matched)
    left = Math.max(0, checkedMax - all.reduce((sum, { checked }) => sum + checked, 0))
  }
}

async function checkSome(
  db: Db,
  some: readonly Checking[],
  { condition, each }: { condition: Condition; each: number },
): Promise<MessageKey[]> {
  const next = some.map(({ row, checked }) => ({
    segment: row.segment,
    ranks: row.ranks.subarray(checked, checked + each),
  }))
  const keys = await readRow(db, next)
  const messages = (await readMessages(db, keys)).filter((message) => isMatch(condition, message))
  const matching = new Set(
    messages.map((message) => `${message.account_id} ${message.chat_id} ${message.id}`),
  )
  const matched: MessageKey[] = []
  let at = 0
  for (const [place, one] of some.entries()) {
    const size = next[place]?.ranks.length ?? 0
    const mine = keys.slice(at, at + size)
    at += size
    const hits = mine.filter((key) => matching.has(`${key.account_id} ${key.chat_id} ${key.id}`))
    one.checked += size
    one.found += hits.length
    one.last = mine.at(-1)?.at ?? one.last
    matched.push(...hits)
  }
  return matched
}
