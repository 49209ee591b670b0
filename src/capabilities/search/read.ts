/** Reads the lists that a condition asks for: their beginnings, and more of them if need be. */
import type { Db } from '../../db/sql.ts'
import { countBelow, type Ranks } from '../../lib/postings.ts'
import { type Condition, type Plan, planFor } from './conditions.ts'
import { evaluate, evaluateWhole, nameOf, type Pieces } from './evaluate.ts'
import { partBytes, partsMax } from './pack.ts'
import { type Asked, countSince, type Read, readFirst, readLists, type Segment, type Times } from './store.ts'

export interface Wanted {
  /** The newest to show, and one more that tells whether there are more. */
  readonly limit: number
  /** How far to count. */
  readonly count: number
}

/** Where lists say too little, so many messages are read and checked. */
export const checkedMax = 5000
/** So few are rather read and checked than looked for further down in long lists. */
const fewMax = 300
/** To read and check a message takes as long as to read so many bytes of lists. */
const messageBytes = 3000

export interface Task {
  readonly condition: Condition
  readonly wanted: Wanted
}

/** By account what its lists have still, although it is not so any more. */
export type Gone = ReadonlyMap<string, ReadonlySet<string>>

/** What may match in a segment, the newest first. */
export interface Row {
  readonly segment: Segment
  readonly ranks: Ranks
  /** Nothing is missing after the last. */
  readonly whole: boolean
}

export interface Listed {
  readonly rows: readonly Row[]
  /** They have to be checked, each by itself. */
  readonly check: boolean
}

/** The beginnings of the lists, and whose they are. */
export interface Begun {
  readonly plans: ReadonlyMap<string, Plan>
  readonly parts: number
  readonly segments: readonly Segment[]
  readonly read: Read
}

export async function beginLists(
  db: Db,
  account_ids: readonly string[],
  condition: Condition,
): Promise<Begun> {
  const plans = new Map(account_ids.map((id) => [id, planFor(id, condition)]))
  const asked = [...plans].flatMap(([account_id, plan]) =>
    namesIn(plan).map((name) => ({ account_id, ...name })),
  )
  const parts = firstParts(plans)
  return { plans, parts, ...(await readFirst(db, asked, { parts, times: condition })) }
}

/** Reads so much of the lists that the newest matches are known, and how many there are. */
export async function readListed(
  db: Db,
  { plans, segments, ...begun }: Begun,
  { condition, wanted, gone }: Task & { gone: Gone },
): Promise<Listed> {
  const check = [...plans.values()].some((plan) => plan.check)
  const need = (check ? checkedMax : wanted.count) + sizeOf(gone)
  const isEnough = ({ segment, ranks, whole }: Looked) =>
    whole || ranks.length >= wanted.limit + (gone.get(segment.account_id)?.size ?? 0)
  const ranges = await readRanges(db, segments, condition)
  const looked = new Map<string, Looked>()
  let { parts, read } = begun
  for (;;) {
    for (const segment of segments) {
      const pieces = read.get(segment.id)
      const plan = plans.get(segment.account_id) as Plan
      const range = ranges.get(segment.id) as Range
      if (pieces) looked.set(segment.id, look(segment, { plan, pieces, range }))
    }
    const rows = [...looked.values()]
    const total = count(rows)
    if (rows.every(({ whole }) => whole)) return { rows, check }
    if (total >= need && rows.every(isEnough)) return { rows, check }
    const few = fewIn(rows, (bytesIn(read, partsMax) - bytesIn(read, parts)) / messageBytes)
    if (few) return { rows: few, check: true }
    const more = moreParts(read, parts, Math.ceil((1.5 * need) / Math.max(total, 1)))
    if (more === undefined) return { rows, check }
    parts = more
    const open = rows.filter(({ whole }) => !whole).map(({ segment }) => segment)
    read = await readLists(db, askFor(open, plans), parts)
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
function moreParts(read: Read, parts: number, times: number): number | undefined {
  if (bytesIn(read, partsMax) <= bytesFew) return partsMax
  let more = Math.min(partsMax, parts * Math.max(4, times))
  while (more > parts && bytesIn(read, more) > bytesMax) more = Math.floor(more / 2)
  return more > parts ? more : undefined
}

/** Of all lists together: what one search may take, and what is rather read whole than in several goes. */
const bytesMax = 32_000_000
const bytesFew = 300_000

function bytesIn(read: Read, parts: number): number {
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
  if (looks.some(({ mark }) => mark)) return 32
  if (looks.some(({ low, high }) => low !== high)) return 1
  return Math.ceil((groups.length > 1 ? 16 : 2) / plans.size)
}

const looksMany = 32

/** What to read, each name once: people have the same lists in common. */
function namesIn({ groups, none }: Plan): Omit<Asked, 'segment_id'>[] {
  const names = new Map<string, Omit<Asked, 'segment_id'>>()
  for (const look of [...groups.flat(2), ...none.flat()]) {
    const { low, high, mark } = look
    names.set(nameOf(look), { name: nameOf(look), low, high })
    if (mark) names.set(mark.own, { name: mark.own, low: mark.own, high: mark.own })
  }
  return [...names.values()]
}

function askFor(segments: readonly Segment[], plans: ReadonlyMap<string, Plan>): Asked[] {
  return segments.flatMap(({ id, account_id }) =>
    namesIn(plans.get(account_id) as Plan).map((name) => ({ segment_id: id, ...name })),
  )
}

interface Looked extends Row {
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

function fewIn(rows: readonly Looked[], most: number): Row[] | undefined {
  const few: Row[] = []
  for (const { segment, loose } of rows) {
    const ranks = loose()
    if (!ranks) return undefined
    few.push({ segment, ranks, whole: true })
    if (count(few) > Math.min(fewMax, most)) return undefined
  }
  return few
}

export function count(rows: readonly Row[]): number {
  return rows.reduce((sum, { ranks }) => sum + ranks.length, 0)
}
