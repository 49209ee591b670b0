/** Which messages of a segment are in the lists a plan asks for. Pure. */
import {
  countFrom,
  decodeList,
  decodeTagged,
  type Position,
  secondAfter,
  select,
  unite,
} from '../../lib/postings.ts'
import type { Plan } from './conditions.ts'
import type { Look } from './listing.ts'
import type { Piece } from './pack.ts'

/** What was read of a segment, by the names asked for (`nameOf`). */
export type Pieces = ReadonlyMap<string, readonly Piece[]>

export function nameOf({ low, high }: Look): string {
  return `${low} ${high}`
}

/** All lists that one look is for. */
interface Lists {
  readonly lists: readonly Float64Array[]
  readonly size: number
  /** From here on the lists are whole. */
  readonly horizon: Position
}

export interface Evaluated {
  /** The newest first. */
  readonly positions: Float64Array
  /** Nothing from here on is missing. Zero: nothing at all. */
  readonly horizon: Position
}

/** What matches, as far as the lists were read. */
export function evaluate(plan: Plan, pieces: Pieces): Evaluated {
  const lists = reader(pieces)
  const looks = [...plan.groups.flat(2), ...plan.none.flat()]
  const horizon = Math.max(0, ...looks.map((look) => lists(look).horizon))
  return { positions: combine(plan, lists, horizon), horizon }
}

/** What may match, by the lists that were read to their end; undefined if no part of the plan has only such lists. */
export function evaluateWhole(plan: Plan, pieces: Pieces): Float64Array | undefined {
  const lists = reader(pieces)
  const isWhole = (look: Look) => lists(look).horizon === 0
  const groups = plan.groups.filter((group) => group.flat().every(isWhole))
  return groups.length === 0 ? undefined : combine({ ...plan, groups, none: [] }, lists, 0)
}

type Reader = (look: Look) => Lists

/** Each list is decoded once. */
function reader(pieces: Pieces): Reader {
  const known = new Map<Look, Lists>()
  return (look) => {
    let lists = known.get(look)
    if (!lists) {
      lists = read(pieces.get(nameOf(look)) ?? [], look.tag)
      known.set(look, lists)
    }
    return lists
  }
}

function read(pieces: readonly Piece[], tag: number | undefined): Lists {
  const lists: Float64Array[] = []
  let horizon = 0
  let size = 0
  for (const { bytes, length } of pieces) {
    const { positions, end } = tag === undefined ? decodeAll(bytes) : decodeOne(bytes, tag)
    // The second it was cut in is known in part, and which is the newest there no position tells.
    if (bytes.length < length) horizon = Math.max(horizon, end === undefined ? unknown : secondAfter(end))
    lists.push(positions)
    size += positions.length
  }
  return { lists, size, horizon }
}

/** Nothing was read. */
const unknown = Number.MAX_SAFE_INTEGER

function decodeOne(bytes: Uint8Array, tag: number) {
  const { positions, end } = decodeTagged(bytes, tag)
  return { positions: new Float64Array(positions), end }
}

function decodeAll(bytes: Uint8Array) {
  const positions = decodeList(bytes)
  return { positions, end: positions.at(-1) }
}

function combine({ groups, none }: Plan, lists: Reader, horizon: Position): Float64Array {
  const sizeOf = (group: readonly (readonly Look[])[]) =>
    group.reduce((sum, looks) => sum + Math.min(...looks.map((look) => lists(look).size)), 0)
  const [first, ...rest] = groups.toSorted((a, b) => sizeOf(a) - sizeOf(b))
  let found = unite((first ?? []).map((looks) => allOf(looks, lists, horizon)))
  for (const group of rest) {
    if (found.length === 0) break
    found = unite(group.map((looks) => looks.reduce((some, look) => select(some, lists(look).lists), found)))
  }
  for (const looks of none) {
    const out = looks.reduce((some, look) => select(some, lists(look).lists), found)
    found = select(found, [out], { without: true })
  }
  return found
}

/** What is in all of these lists, from the shortest on. */
function allOf(looks: readonly Look[], lists: Reader, horizon: Position): Float64Array {
  const [shortest, ...rest] = looks.map(lists).toSorted((a, b) => a.size - b.size)
  const all = unite((shortest?.lists ?? []).map((list) => list.subarray(0, countFrom(list, horizon))))
  return rest.reduce((some, { lists: others }) => select(some, others), all)
}
