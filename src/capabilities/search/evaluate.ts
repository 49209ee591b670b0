/** Which messages of a segment are in the lists a plan asks for. Pure. */
import {
  countBelow,
  decodeList,
  decodeTagged,
  type Ranks,
  select,
  unite,
  withScratch,
} from '../../lib/postings.ts'
import type { Plan } from './conditions.ts'
import type { Look } from './listing.ts'
import type { Piece } from './pack.ts'

/** What was read of a segment, by the names asked for (`nameOf`, and those of lists of their own). */
export type Pieces = ReadonlyMap<string, readonly Piece[]>

export function nameOf({ low, high }: Look): string {
  return `${low} ${high}`
}

/** All lists that one look is for. */
interface Lists {
  readonly lists: readonly Ranks[]
  readonly size: number
  /** Below this the lists are whole. */
  readonly horizon: number
}

export interface Evaluated {
  readonly ranks: Ranks
  /** Nothing below is missing. Infinity: nothing at all. */
  readonly horizon: number
}

/** What matches, as far as the lists were read. */
export function evaluate(plan: Plan, pieces: Pieces): Evaluated {
  return withScratch(() => {
    const lists = reader(pieces)
    const looks = [...plan.groups.flat(2), ...plan.none.flat()]
    const horizon = Math.min(...looks.map((look) => lists(look).horizon))
    return { ranks: combine(plan, lists, horizon).slice(), horizon }
  })
}

/** What may match, by the lists that were read to their end; undefined if no part of the plan has only such lists. */
export function evaluateWhole(plan: Plan, pieces: Pieces): Ranks | undefined {
  return withScratch(() => {
    const lists = reader(pieces)
    const isWhole = (look: Look) => lists(look).horizon === Infinity
    const groups = plan.groups.filter((group) => group.flat().every(isWhole))
    return groups.length === 0 ? undefined : combine({ ...plan, groups, none: [] }, lists, Infinity).slice()
  })
}

type Reader = (look: Look) => Lists

/** Each list is decoded once. */
function reader(pieces: Pieces): Reader {
  const known = new Map<Look, Lists>()
  return (look) => {
    let lists = known.get(look)
    if (!lists) {
      lists = read(pieces, look)
      known.set(look, lists)
    }
    return lists
  }
}

function read(pieces: Pieces, look: Look): Lists {
  const { mark } = look
  const named = pieces.get(nameOf(look)) ?? []
  const own = mark ? (pieces.get(mark.own) ?? []) : named
  const decoded = [
    ...own.map(decodePlain),
    ...(mark ? named.map((piece) => decodeMarked(piece, mark.tag)) : []),
  ]
  return {
    lists: decoded.map(({ ranks }) => ranks),
    size: decoded.reduce((sum, { ranks }) => sum + ranks.length, 0),
    // They may be more than a call takes arguments: every word that begins so.
    horizon: decoded.reduce((least, { horizon }) => Math.min(least, horizon), Infinity),
  }
}

function decodePlain({ bytes, length }: Piece): Evaluated {
  const ranks = decodeList(bytes)
  return { ranks, horizon: bytes.length < length ? 1 + (ranks.at(-1) ?? -1) : Infinity }
}

/** The rank it was cut at may have another mark. */
function decodeMarked({ bytes, length }: Piece, tag: number): Evaluated {
  const { ranks, last } = decodeTagged(bytes, tag)
  return { ranks: new Uint32Array(ranks), horizon: bytes.length < length ? (last ?? 0) : Infinity }
}

function combine({ groups, none }: Plan, lists: Reader, horizon: number): Ranks {
  const sizeOf = (group: readonly (readonly Look[])[]) =>
    group.reduce((sum, looks) => sum + Math.min(...looks.map((look) => lists(look).size)), 0)
  const [first, ...rest] = groups.toSorted((a, b) => sizeOf(a) - sizeOf(b))
  let found = unite((first ?? []).map((looks) => allOf(looks, lists, horizon)))
  for (const group of rest) {
    if (found.length === 0) break
    // Those of one list each, as people are, go together: each by itself would go through all that was found.
    const alone = group.flatMap((looks) =>
      looks.length === 1 ? looks.flatMap((look) => lists(look).lists) : [],
    )
    const several = group.filter((looks) => looks.length > 1)
    found = unite([select(found, alone), ...several.map((looks) => inAll(found, looks, lists))])
  }
  for (const looks of none) found = select(found, [inAll(found, looks, lists)], { without: true })
  return found
}

function inAll(found: Ranks, looks: readonly Look[], lists: Reader): Ranks {
  return looks.reduce((some, look) => select(some, lists(look).lists), found)
}

/** What is in all of these lists, from the shortest on. */
function allOf(looks: readonly Look[], lists: Reader, horizon: number): Ranks {
  const [shortest, ...rest] = looks.map(lists).toSorted((a, b) => a.size - b.size)
  const all = unite((shortest?.lists ?? []).map((list) => list.subarray(0, countBelow(list, horizon))))
  return rest.reduce((some, { lists: others }) => select(some, others), all)
}
