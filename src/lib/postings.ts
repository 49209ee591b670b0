/**
 * Lists of the messages that have a word, as the database keeps them. A message is known by its rank in its segment: the
 * newest is 0. A list has ranks in order, each as the distance to the one before, so that the beginning of a list is a list
 * as well. Pure.
 */

/** In order, each once. */
export type Ranks = Uint32Array<ArrayBuffer>

/**
 * What is made on the way to an answer lies in one place that is used again: arrays of their own would bring on a full
 * collection of garbage every few searches.
 */
let scratch: Ranks | undefined
let used = 0
const scratchSize = 2 ** 20

/** For work that keeps nothing of what it makes but what it copies. */
export function withScratch<T>(work: () => T): T {
  scratch ??= new Uint32Array(scratchSize)
  const [before, beforeUsed] = [inScratch, used]
  inScratch = true
  try {
    return work()
  } finally {
    inScratch = before
    used = beforeUsed
  }
}

let inScratch = false

/** As it was left by others. */
function arrayOf(size: number): Ranks {
  if (!inScratch || !scratch || used + size > scratch.length) return new Uint32Array(size)
  used += size
  return scratch.subarray(used - size, used)
}

/** Where several things share a list, each rank has the tag of its thing. */
export interface List {
  readonly ranks: ArrayLike<number>
  readonly tags?: ArrayLike<number> | undefined
}

export interface Marked extends List {
  readonly tags: ArrayLike<number>
}

const tagBytes = 3
export const tagMax = 2 ** 24
/** The longest distance takes five bytes of seven bits. */
const distanceBytes = 5

export function encodeList({ ranks, tags }: List): Buffer {
  const bytes = Buffer.allocUnsafe(ranks.length * (distanceBytes + (tags ? tagBytes : 0)))
  let end = 0
  let before = 0
  for (let at = 0; at < ranks.length; at++) {
    const rank = ranks[at] as number
    let distance = rank - before
    before = rank
    for (; distance >= 128; distance >>>= 7) bytes[end++] = 128 | (distance & 127)
    bytes[end++] = distance
    if (tags) end = bytes.writeUIntLE(tags[at] as number, end, tagBytes)
  }
  return bytes.subarray(0, end)
}

/** What was cut off in the middle of a distance is left out. */
export function decodeList(bytes: Uint8Array): Ranks {
  let count = 0
  // Without a branch, which would be taken at random.
  for (let at = 0; at < bytes.length; at++) count += ((bytes[at] as number) >> 7) ^ 1
  const ranks = arrayOf(count)
  let rank = 0
  let at = 0
  for (let entry = 0; entry < count; entry++) {
    let byte = bytes[at++] as number
    rank += byte & 127
    for (let shift = 7; byte >= 128; shift += 7) {
      byte = bytes[at++] as number
      rank += (byte & 127) << shift
    }
    ranks[entry] = rank
  }
  return ranks
}

export interface Tagged {
  readonly ranks: number[]
  readonly tags: number[]
  /** The last rank that was read, whatever its tag. */
  readonly last: number | undefined
}

/** With `only`, what has this tag. */
export function decodeTagged(bytes: Uint8Array, only?: number): Tagged {
  const ranks: number[] = []
  const tags: number[] = []
  let last: number | undefined
  let rank = 0
  for (let at = 0; at < bytes.length; ) {
    let byte = 128
    for (let shift = 0; byte >= 128 && at < bytes.length; shift += 7) {
      byte = bytes[at++] as number
      rank += (byte & 127) << shift
    }
    if (byte >= 128 || at + tagBytes > bytes.length) break
    const tag = tagAt(bytes, at)
    at += tagBytes
    last = rank
    if (only !== undefined && tag !== only) continue
    ranks.push(rank)
    tags.push(tag)
  }
  return { ranks, tags, last }
}

function tagAt(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16)
}

/** How many are below. */
export function countBelow(ranks: Ranks, least: number): number {
  let low = 0
  let high = ranks.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ranks[middle] as number) < least) low = middle + 1
    else high = middle
  }
  return low
}

/** All of them, each once. */
export function unite(lists: readonly Ranks[]): Ranks {
  const some = lists.filter(({ length }) => length > 0)
  if (some.length <= 1) return some[0] ?? new Uint32Array()
  const size = 1 + some.reduce((last, list) => Math.max(last, list.at(-1) ?? 0), 0)
  return ranksIn(bitsOf(some, size))
}

/** Those that are in one of the lists; or, with `without`, in none. */
export function select(ranks: Ranks, lists: readonly Ranks[], { without = false } = {}): Ranks {
  const bits = bitsOf(lists, 1 + (ranks.at(-1) ?? 0))
  const unwanted = without ? 1 : 0
  const selected = arrayOf(ranks.length)
  let count = 0
  for (let at = 0; at < ranks.length; at++) {
    const rank = ranks[at] as number
    selected[count] = rank
    count += (((bits[rank >>> 5] as number) >>> (rank & 31)) & 1) ^ unwanted
  }
  return selected.subarray(0, count)
}

/** A bit for each rank below the size. */
function bitsOf(lists: readonly Ranks[], size: number): Ranks {
  const bits = arrayOf((size + 31) >>> 5).fill(0)
  for (const list of lists) {
    const end = countBelow(list, size)
    for (let at = 0; at < end; at++) {
      const rank = list[at] as number
      bits[rank >>> 5] = (bits[rank >>> 5] as number) | (1 << (rank & 31))
    }
  }
  return bits
}

function ranksIn(bits: Ranks): Ranks {
  let count = 0
  for (let at = 0; at < bits.length; at++) count += countBits(bits[at] as number)
  const ranks = arrayOf(count)
  let end = 0
  for (let at = 0; at < bits.length; at++) {
    for (let left = bits[at] as number; left !== 0; left &= left - 1) {
      ranks[end++] = at * 32 + 31 - Math.clz32(left & -left)
    }
  }
  return ranks
}

function countBits(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555)
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

/** FNV-1a, mixed. Another seed makes another hash. */
export function hash(text: string, seed = 2_166_136_261): number {
  let folded = seed
  for (let at = 0; at < text.length; at++) folded = Math.imul(folded ^ text.charCodeAt(at), 16_777_619)
  return mix(folded)
}

/** Because the lower bits alone are used, too. */
export function mix(hashed: number): number {
  const once = Math.imul(hashed ^ (hashed >>> 16), 0x45d9f3b)
  const twice = Math.imul(once ^ (once >>> 15), 0x45d9f3b)
  return (twice ^ (twice >>> 16)) >>> 0
}
