/**
 * Lists of the messages that have a word, as the database keeps them: the newest first, each as the distance to the one
 * before, so that the beginning of a list is a list as well. Pure.
 */

/** Where a message stands among those of its account: the later, the higher. No two listings share one, but by chance. */
export type Position = number

const perSecond = 2 ** 20
/** Above every position, and still a whole number to JavaScript. */
const top = 2 ** 52

export interface Listing {
  readonly chat_id: string
  readonly id: string
  /** Milliseconds since 1970. */
  readonly sent_at: number
  /** An edit lists the message anew, in another place. */
  readonly listing: number
}

export function positionOf({ chat_id, id, sent_at, listing }: Listing): Position {
  return secondAt(sent_at) * perSecond + (hash(`${chat_id} ${id} ${listing}`) % perSecond)
}

/** The second it was sent in, since 1970. */
export function secondOf(position: Position): number {
  return Math.floor(position / perSecond)
}

/** What was sent from then on stands there or above. */
export function positionAt(at: number): Position {
  return secondAt(at) * perSecond
}

/** What was sent before then stands below. */
export function positionBefore(at: number): Position {
  return (secondAt(at - 1) + 1) * perSecond
}

/** Above everything of the same second. */
export function secondAfter(position: Position): Position {
  return (secondOf(position) + 1) * perSecond
}

/** Whether positions tell what was sent before then from what was not. */
export function isTold(at: number): boolean {
  return at > 0 && secondAt(at) * 1000 === at
}

const secondMax = 2 ** 32 - 1

/** What is before 1970 is in the first second, what is after 2106 in the last. */
function secondAt(at: number): number {
  return Math.min(secondMax, Math.max(0, Math.floor(at / 1000)))
}

/** All times that are in a second, as PostgreSQL writes them. */
export function timesOf(second: number): { from: string; until: string } {
  return {
    from: second === 0 ? '-infinity' : new Date(second * 1000).toISOString(),
    until: second === secondMax ? 'infinity' : new Date((second + 1) * 1000).toISOString(),
  }
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

/** The newest first. Where several things share a list, each position has the tag of its thing. */
export interface List {
  readonly positions: ArrayLike<Position>
  readonly tags?: ArrayLike<number> | undefined
}

const tagBytes = 3
export const tagMax = 2 ** 24
/** The longest distance takes eight bytes of seven bits. */
const distanceBytes = 8

export function encodeList({ positions, tags }: List): Buffer {
  const bytes = Buffer.allocUnsafe(positions.length * (distanceBytes + (tags ? tagBytes : 0)))
  let end = 0
  let before = top
  for (let at = 0; at < positions.length; at++) {
    const position = positions[at] ?? 0
    let distance = before - position
    before = position
    for (; distance >= 128; distance = Math.floor(distance / 128)) bytes[end++] = 128 | (distance % 128)
    bytes[end++] = distance
    if (tags) end = bytes.writeUIntLE(tags[at] ?? 0, end, tagBytes)
  }
  return bytes.subarray(0, end)
}

/** Where the distance that was read last ends. */
let next = 0

/** The distance that begins there; -1 if it was cut off. Its first 28 bits as an integer, which is many times faster. */
function readDistance(bytes: Uint8Array, at: number): number {
  next = at
  let low = 0
  for (let shift = 0; shift < 28; shift += 7) {
    const byte = bytes[next++] as number
    low |= (byte & 127) << shift
    if (byte < 128) return low
  }
  let high = 0
  for (let shift = 0; shift < 28; shift += 7) {
    const byte = bytes[next++] as number
    high |= (byte & 127) << shift
    if (byte < 128) return high * 2 ** 28 + low
  }
  return -1
}

/** What was cut off in the middle of an entry is left out. */
export function decodeList(bytes: Uint8Array): Float64Array {
  let entries = 0
  // Without a branch, which would be taken at random.
  for (let at = 0; at < bytes.length; at++) entries += ((bytes[at] as number) >> 7) ^ 1
  const positions = new Float64Array(entries)
  let before = top
  let at = 0
  for (let entry = 0; entry < entries; entry++) {
    before -= readDistance(bytes, at)
    at = next
    positions[entry] = before
  }
  return positions
}

/** With `only`, what has this tag; `end` is where what was read ends all the same. */
export function decodeTagged(
  bytes: Uint8Array,
  only?: number,
): { positions: number[]; tags: number[]; end: Position | undefined } {
  const positions: number[] = []
  const tags: number[] = []
  let before = top
  for (let at = 0; at < bytes.length; at = next + tagBytes) {
    const distance = readDistance(bytes, at)
    if (distance < 0 || next + tagBytes > bytes.length) break
    before -= distance
    const tag = tagAt(bytes, next)
    if (only !== undefined && tag !== only) continue
    positions.push(before)
    tags.push(tag)
  }
  return { positions, tags, end: before === top ? undefined : before }
}

function tagAt(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16)
}

/** Several lists as one, without what is not to be kept. */
export function mergeLists(lists: readonly List[], keep: (position: Position) => boolean): List {
  const positions: number[] = []
  const tags: number[] = []
  const tagged = lists.some((list) => list.tags)
  const next = lists.map(() => 0)
  for (;;) {
    let newest = -1
    let from = 0
    for (let at = 0; at < lists.length; at++) {
      const position = lists[at]?.positions[next[at] as number]
      if (position !== undefined && position > newest) {
        newest = position
        from = at
      }
    }
    if (newest < 0) return { positions, tags: tagged ? tags : undefined }
    const at = next[from] as number
    next[from] = at + 1
    if (!keep(newest)) continue
    positions.push(newest)
    if (tagged) tags.push(lists[from]?.tags?.[at] ?? 0)
  }
}

/** How many of these are at `least` or above. */
export function countFrom(positions: Float64Array, least: Position): number {
  let low = 0
  let high = positions.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((positions[middle] as number) >= least) low = middle + 1
    else high = middle
  }
  return low
}

/** All of them, each once. */
export function unite(lists: readonly Float64Array[]): Float64Array {
  const [first] = lists
  if (!first) return new Float64Array()
  if (lists.length === 1) return first
  const all = new Float64Array(lists.reduce((sum, { length }) => sum + length, 0))
  let end = 0
  for (const list of lists) {
    all.set(list, end)
    end += list.length
  }
  all.sort().reverse()
  let count = 0
  for (const position of all) {
    if (count === 0 || position !== all[count - 1]) all[count++] = position
  }
  return all.subarray(0, count)
}

/** Those that are in one of the lists; or, with `without`, in none. */
export function select(
  positions: Float64Array,
  lists: readonly Float64Array[],
  { without = false } = {},
): Float64Array {
  if (lists.length === 0 && without) return positions
  const found = new Uint8Array(positions.length)
  for (const list of lists) mark(found, positions, list)
  const wanted = without ? 0 : 1
  const selected = new Float64Array(positions.length)
  let count = 0
  for (let at = 0; at < positions.length; at++) {
    selected[count] = positions[at] as number
    count += (found[at] as number) ^ (1 - wanted)
  }
  return selected.subarray(0, count)
}

/** Goes through the shorter one and looks for each in the rest of the longer: step by step, unless that is much longer. */
function mark(found: Uint8Array, positions: Float64Array, list: Float64Array): void {
  const swapped = list.length < positions.length
  const short = swapped ? list : positions
  const long = swapped ? positions : list
  const leap = long.length > 16 * short.length
  let from = 0
  for (let at = 0; at < short.length && from < long.length; at++) {
    const position = short[at] as number
    if (leap) from = seek(long, from, position)
    else while (from < long.length && (long[from] as number) > position) from++
    if (long[from] === position) found[swapped ? from : at] = 1
  }
}

/** The first place from there on that holds this position or a lower one, in steps that double. */
function seek(positions: Float64Array, from: number, position: Position): number {
  let step = 1
  let low = from
  while (low + step < positions.length && (positions[low + step] as number) > position) {
    low += step
    step *= 2
  }
  let high = Math.min(positions.length, low + step + 1)
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((positions[middle] as number) > position) low = middle + 1
    else high = middle
  }
  return low
}
