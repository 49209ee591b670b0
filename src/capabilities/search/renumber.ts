/** Lists of several segments as lists of the one they become: with other ranks, and without what is stale. Pure. */
import {
  decodeList,
  decodeTagged,
  type List,
  type Marked,
  type Ranks,
  tagMax,
  unite,
} from '../../lib/postings.ts'
import { markListOf, ownTagOf, shareList } from './listing.ts'
import { unpack } from './pack.ts'

/** By segment, for each rank the one it becomes. */
export type NewRanks = ReadonlyMap<string, Uint32Array>

/** Of what is not there any more. */
export const noRank = 2 ** 32 - 1

/** A list of a segment. */
export interface ListRow {
  readonly id: string
  readonly word: string
  readonly lists: Buffer
}

/** The lists of the one segment, by name. */
export function mergeLists(rows: readonly ListRow[], ranks: NewRanks): Map<string, List> {
  const lists = new Map<string, List>()
  for (const [name, some] of Map.groupBy(rows, ({ word }) => markListOf(word) ?? word)) {
    const newRanks = ({ id }: ListRow) => ranks.get(id) ?? new Uint32Array()
    if (markListOf(name) === undefined) {
      lists.set(name, { ranks: mergeRanks(some.map((row) => moveRanksOf(row, newRanks(row)))) })
    } else {
      const moved = some.map((row) => moveMarked(row, newRanks(row)))
      for (const [own, list] of shareList(name, mergeMarked(moved))) lists.set(own, list)
    }
  }
  return lists
}

function moveRanksOf({ lists }: ListRow, ranks: Uint32Array): Ranks {
  const [{ bytes } = { bytes: new Uint8Array() }] = unpack(lists)
  const moved = decodeList(bytes)
  let count = 0
  for (let at = 0; at < moved.length; at++) {
    const rank = ranks[moved[at] as number] as number
    if (rank !== noRank) moved[count++] = rank
  }
  return moved.subarray(0, count)
}

/** With the tags that its name or its bytes tell. */
function moveMarked(row: ListRow, ranks: Uint32Array): Marked {
  const own = ownTagOf(row.word)
  if (own !== undefined) {
    const moved = moveRanksOf(row, ranks)
    return { ranks: moved, tags: new Uint32Array(moved.length).fill(own) }
  }
  const [{ bytes } = { bytes: new Uint8Array() }] = unpack(row.lists)
  const { ranks: old, tags } = decodeTagged(bytes)
  const moved: number[] = []
  const kept: number[] = []
  for (let at = 0; at < old.length; at++) {
    const rank = ranks[old[at] as number] as number
    if (rank === noRank) continue
    moved.push(rank)
    kept.push(tags[at] as number)
  }
  return { ranks: moved, tags: kept }
}

/** Long lists are not put in order one by one: of millions that would take long, and everybody waits meanwhile. */
function mergeRanks(lists: readonly Ranks[]): Ranks {
  const count = lists.reduce((sum, { length }) => sum + length, 0)
  if (count >= manyRanks) return unite(lists)
  const all = new Uint32Array(count)
  let end = 0
  for (const ranks of lists) {
    all.set(ranks, end)
    end += ranks.length
  }
  return all.sort()
}

const manyRanks = 100_000

function mergeMarked(lists: readonly Marked[]): Marked {
  const all = new Float64Array(lists.reduce((sum, { ranks }) => sum + ranks.length, 0))
  let end = 0
  for (const { ranks, tags } of lists) {
    for (let at = 0; at < ranks.length; at++)
      all[end++] = (ranks[at] as number) * tagMax + (tags[at] as number)
  }
  all.sort()
  return {
    ranks: Array.from(all, (one) => Math.floor(one / tagMax)),
    tags: Array.from(all, (one) => one % tagMax),
  }
}
