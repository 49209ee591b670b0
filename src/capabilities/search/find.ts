/** Finds what matches a condition in the lists, newest first: reads their beginnings, and more of them if need be. */
import type { Db } from '../../db/sql.ts'
import { countFrom, type Position, positionAt, positionBefore, secondOf, select } from '../../lib/postings.ts'
import { type Condition, isMatch, isTimeOnly, type Plan, planFor } from './conditions.ts'
import { evaluate, evaluateWhole, nameOf } from './evaluate.ts'
import { partBytes, partsMax } from './pack.ts'
import {
  type Asked,
  type Found,
  type Place,
  positionIn,
  readAt,
  readLists,
  readPending,
  readStale,
  readTimes,
  type SegmentRead,
  type Spot,
  type Stale,
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

/** Positions of one account, the newest first. */
interface Row {
  readonly account_id: string
  readonly positions: Float64Array
}

export async function findMatches(
  db: Db,
  place: Place,
  condition: Condition,
  wanted: Wanted,
): Promise<Matches> {
  if (place.account_ids.length === 0) return { page: [], total: 0, cut: false }
  if (isTimeOnly(condition)) {
    return { ...(await readTimes(db, place, { ...wanted, times: condition })), cut: false }
  }
  // Before the lists: what is listed meanwhile is seen twice rather than not at all.
  const [pending, stale] = await Promise.all([
    readPending(db, place.account_ids, pendingMax + 1),
    readStale(db, place.account_ids),
  ])
  const fresh = toRows(pending.filter((message) => isMatch(condition, message)))
  const listed = await readListed(db, place, { condition, wanted, stale: toRows(stale) })
  const rows = [...listed.rows, ...fresh.map((row) => unlisted(row, listed.rows))]
  const found = await (listed.check ? checkEach : checkPage)(db, rows, { condition, wanted })
  const more = listed.more && found.total < wanted.count
  return { ...found, cut: found.cut || more || overflows(pending) }
}

function toRows(messages: readonly Stale[]): Row[] {
  return [...Map.groupBy(messages, ({ account_id }) => account_id)].map(([account_id, some]) => ({
    account_id,
    positions: Float64Array.from(some.map(positionIn)).sort().reverse(),
  }))
}

function overflows(pending: readonly Stale[]): boolean {
  const accounts = Map.groupBy(pending, ({ account_id }) => account_id)
  return [...accounts.values()].some(({ length }) => length > pendingMax)
}

function unlisted({ account_id, positions }: Row, listed: readonly Row[]): Row {
  return { account_id, positions: select(positions, ofAccount(listed, account_id), { without: true }) }
}

function ofAccount(rows: readonly Row[], account_id: string): Float64Array[] {
  return rows.filter((row) => row.account_id === account_id).map(({ positions }) => positions)
}

interface Task {
  readonly condition: Condition
  readonly wanted: Wanted
}

interface Listed {
  /** One for each segment. */
  readonly rows: readonly Row[]
  /** They have to be checked, each by itself. */
  readonly check: boolean
  /** What else the lists have may match, too, where this is not enough. */
  readonly more: boolean
}

/** Reads so much of the lists that the newest matches are known, and how many there are. */
async function readListed(
  db: Db,
  place: Place,
  { condition, wanted, stale }: Task & { stale: readonly Row[] },
): Promise<Listed> {
  const plans = new Map(place.account_ids.map((id) => [id, planFor(id, condition)]))
  const asked = askFor(plans)
  const check = [...plans.values()].some((plan) => plan.check)
  const need = check ? checkedMax : wanted.count
  let parts = firstParts(plans)
  for (;;) {
    const read = await readLists(db, place, { asked, times: condition, parts })
    const segments = read.map((segment) =>
      look(segment, plans.get(segment.account_id) as Plan, (positions) =>
        select(within(positions, condition), ofAccount(stale, segment.account_id), { without: true }),
      ),
    )
    const horizon = Math.max(0, ...segments.map((segment) => segment.horizon))
    if (horizon <= positionAt(condition.from)) return { rows: segments, check, more: false }
    const known = segments.map((segment) => ({
      ...segment,
      positions: segment.positions.subarray(0, countFrom(segment.positions, horizon)),
    }))
    if (check && count(known) >= need) return { rows: known, check, more: true }
    // Counted is what is certain to match, wherever it stands; shown is only what nothing newer is missing among.
    const total = count(segments)
    if (!check && total >= need && count(known) >= wanted.limit) {
      return { rows: segments, check, more: false }
    }
    const few = fewIn(segments)
    if (few) return { rows: few, check: true, more: false }
    const more = moreParts(read, parts, Math.ceil((1.5 * need) / Math.max(total, 1)))
    if (more === undefined) return { rows: known, check, more: true }
    parts = more
  }
}

/** So many times as much, or what one search may take; undefined if that has been read. */
function moreParts(read: readonly SegmentRead[], parts: number, times: number): number | undefined {
  let more = Math.min(partsMax, parts * Math.max(4, times))
  while (more > parts && bytesIn(read, more) > bytesMax) more = Math.floor(more / 2)
  return more > parts ? more : undefined
}

/** Of all lists together: what one search may take. */
const bytesMax = 32_000_000

function bytesIn(segments: readonly SegmentRead[], parts: number): number {
  let bytes = 0
  for (const { pieces } of segments) {
    for (const { length } of [...pieces.values()].flat()) bytes += Math.min(length, parts * partBytes)
  }
  return bytes
}

/** How much of each list should be enough, if what is looked for is common. */
function firstParts(plans: ReadonlyMap<string, Plan>): number {
  const [{ groups } = { groups: [] }] = plans.values()
  const looks = groups.flat(2)
  if (looks.length > looksMany) return 1
  // Most of a list of marks is others'.
  if (looks.some(({ tag }) => tag !== undefined)) return 8
  if (looks.some(({ low, high }) => low !== high)) return 1
  return Math.ceil((groups.length > 1 ? 16 : 4) / plans.size)
}

const looksMany = 32

/** Each name once: people have the same lists in common, and so have plans. */
function askFor(plans: ReadonlyMap<string, Plan>): Asked[] {
  const asked = new Map<string, Asked>()
  for (const [account_id, { groups, none }] of plans) {
    for (const look of [...groups.flat(2), ...none.flat()]) {
      const name = nameOf(look)
      asked.set(`${account_id} ${name}`, { name, account_id, low: look.low, high: look.high })
    }
  }
  return [...asked.values()]
}

interface Looked extends Row {
  /** Nothing from here on is missing. */
  readonly horizon: Position
  /** Everything that may match, if that can be told from what was read. */
  readonly loose: () => Float64Array | undefined
}

type Trim = (positions: Float64Array) => Float64Array

function look({ account_id, pieces }: SegmentRead, plan: Plan, trim: Trim): Looked {
  const { positions, horizon } = evaluate(plan, pieces)
  return {
    account_id,
    positions: trim(positions),
    horizon,
    loose() {
      const found = horizon === 0 ? positions : evaluateWhole(plan, pieces)
      return found && trim(found)
    },
  }
}

function fewIn(segments: readonly Looked[]): Row[] | undefined {
  const rows: Row[] = []
  for (const { account_id, loose } of segments) {
    const positions = loose()
    if (!positions) return undefined
    rows.push({ account_id, positions })
    if (count(rows) > fewMax) return undefined
  }
  return rows
}

function within(positions: Float64Array, { from, until }: Condition): Float64Array {
  // The second that `until` is in the middle of, too.
  return positions.subarray(
    countFrom(positions, positionBefore(until)),
    countFrom(positions, positionAt(from)),
  )
}

function count(rows: readonly Row[]): number {
  return rows.reduce((sum, { positions }) => sum + positions.length, 0)
}

/** The page is read, and what does not match after all is not counted. */
async function checkPage(db: Db, rows: readonly Row[], { condition, wanted }: Task): Promise<Matches> {
  const spots = newestOf(rows, wanted.limit)
  const page = await readMatches(db, spots, condition)
  return { page, total: count(rows) - (spots.length - page.length), cut: false }
}

/** Everything is read, newest first, until enough of it matches. */
async function checkEach(db: Db, rows: readonly Row[], { condition, wanted }: Task): Promise<Matches> {
  const spots = newestOf(rows, checkedMax)
  const page: Found[] = []
  for (let at = 0, end = 0; at < spots.length && page.length < wanted.count; at = end) {
    end = at + checkedAtOnce
    // Which is the newest of a second is known when all of it has been read.
    while (end < spots.length && secondAt(spots, end) === secondAt(spots, end - 1)) end++
    page.push(...(await readMatches(db, spots.slice(at, end), condition)))
  }
  const cut = page.length < wanted.count && spots.length < count(rows)
  return { page: page.sort(byTime), total: page.length, cut }
}

function secondAt(spots: readonly Spot[], at: number): number {
  return secondOf(spots[at]?.position ?? 0)
}

/** So many of the newest, and all of the last one's second; the newest second first. */
function newestOf(rows: readonly Row[], limit: number): Spot[] {
  const heads = rows.map(({ positions }) => positions.subarray(0, limit))
  const all = new Float64Array(heads.reduce((sum, { length }) => sum + length, 0))
  let end = 0
  for (const head of heads) {
    all.set(head, end)
    end += head.length
  }
  const last = all.sort().at(-limit) ?? 0
  const least = positionAt(secondOf(last) * 1000)
  return rows
    .flatMap(({ account_id, positions }) =>
      Array.from(positions.subarray(0, countFrom(positions, least)), (position) => ({
        account_id,
        position,
      })),
    )
    .sort((a, b) => b.position - a.position)
}

async function readMatches(db: Db, spots: readonly Spot[], condition: Condition): Promise<Found[]> {
  const wanted = new Set(spots.map(({ account_id, position }) => `${account_id} ${position}`))
  const found = await readAt(db, spots)
  return found
    .filter(
      (message) => wanted.has(`${message.account_id} ${positionIn(message)}`) && isMatch(condition, message),
    )
    .sort(byTime)
}

/** The newest first; of the same moment, in an order that is always the same. */
function byTime(a: Found, b: Found): number {
  return (
    b.sent_at.getTime() - a.sent_at.getTime() ||
    compare(BigInt(b.id), BigInt(a.id)) ||
    compare(BigInt(a.chat_id), BigInt(b.chat_id)) ||
    compare(a.account_id, b.account_id)
  )
}

function compare<T>(a: T, b: T): number {
  return a < b ? -1 : Number(a > b)
}
