/**
 * Posting lists as they are stored. A plain list holds the sorted docIds of the documents with a term, each as the distance
 * to the one before. A list with positions has an entry for each occurrence: that distance, and its token's index in the
 * document. Numbers take a byte for each seven bits, so the beginning of a list is a list as well. Pure.
 */

/** Sorted, each once. */
export type DocIds = Uint32Array<ArrayBuffer>
/** Sorted, each as `docId * stride + position`: words of a phrase are then one apart. Positions stay below 4,096. */
type Occurrences = Float64Array<ArrayBuffer>
export const stride = 8192

export function docIdOf(occurrence: number): number {
  return Math.floor(occurrence / stride)
}

/** The longest distance takes five bytes, a position two. */
const entryBytes = 7

export function encodeList(entries: ArrayLike<number>, { positions }: { positions: boolean }): Buffer {
  const bytes = Buffer.allocUnsafe(entries.length * entryBytes)
  let end = 0
  const write = (value: number) => {
    let left = value
    for (; left >= 128; left >>>= 7) bytes[end++] = 128 | (left & 127)
    bytes[end++] = left
  }
  let before = 0
  for (let at = 0; at < entries.length; at++) {
    const entry = entries[at] as number
    const docId = positions ? docIdOf(entry) : entry
    write(docId - before)
    if (positions) write(entry - docId * stride)
    before = docId
  }
  return bytes.subarray(0, end)
}

/** Skips a number that was cut off in the middle. */
function decodeNumbers(bytes: Uint8Array): DocIds {
  let count = 0
  // Branch-free, because the processor could not predict the branch.
  for (let at = 0; at < bytes.length; at++) count += ((bytes[at] as number) >> 7) ^ 1
  const numbers = new Uint32Array(count)
  let at = 0
  for (let place = 0; place < count; place++) {
    let byte = bytes[at++] as number
    let number = byte & 127
    for (let shift = 7; byte >= 128; shift += 7) {
      byte = bytes[at++] as number
      number += (byte & 127) << shift
    }
    numbers[place] = number
  }
  return numbers
}

export function decodeDocIds(bytes: Uint8Array): DocIds {
  const docIds = decodeNumbers(bytes)
  let docId = 0
  for (let at = 0; at < docIds.length; at++) {
    docId += docIds[at] as number
    docIds[at] = docId
  }
  return docIds
}

export function decodeOccurrences(bytes: Uint8Array): Occurrences {
  const numbers = decodeNumbers(bytes)
  const occurrences = new Float64Array(numbers.length >>> 1)
  let docId = 0
  for (let at = 0; at < occurrences.length; at++) {
    docId += numbers[2 * at] as number
    occurrences[at] = docId * stride + (numbers[2 * at + 1] as number)
  }
  return occurrences
}

/** Iterates over the occurrences of a list without an array, which would be most of a search's garbage. */
export class OccurrenceReader {
  docId = 0
  /** Before the first. */
  position = -1
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** Advances to the first occurrence at or after this one. False: the list has ended. */
  advance(docId: number, position: number): boolean {
    const bytes = this.#bytes
    let at = this.#at
    while (this.docId < docId || (this.docId === docId && this.position < position)) {
      let byte = 128
      let distance = 0
      for (let shift = 0; byte >= 128 && at < bytes.length; shift += 7) {
        byte = bytes[at++] as number
        distance += (byte & 127) << shift
      }
      byte = 128
      let next = 0
      for (let shift = 0; byte >= 128 && at < bytes.length; shift += 7) {
        byte = bytes[at++] as number
        next += (byte & 127) << shift
      }
      // Also true if the list was cut off in the middle of an entry.
      if (byte >= 128) {
        this.#at = bytes.length
        return false
      }
      this.docId += distance
      this.position = next
    }
    this.#at = at
    return true
  }
}

/** Merges sorted lists in pairs, so that the time hardly grows with their number. */
export function mergeSorted(lists: readonly Float64Array[]): Float64Array {
  if (lists.length <= 1) return lists[0] ?? new Float64Array()
  const half = lists.length >>> 1
  const [one, other] = [mergeSorted(lists.slice(0, half)), mergeSorted(lists.slice(half))]
  const all = new Float64Array(one.length + other.length)
  let [first, second] = [0, 0]
  for (let at = 0; at < all.length; at++) {
    const isFirst =
      second === other.length || (first < one.length && (one[first] as number) < (other[second] as number))
    all[at] = (isFirst ? one[first++] : other[second++]) as number
  }
  return all
}

/** How many docIds are below `least`. */
export function countBelow(docIds: DocIds, least: number): number {
  let low = 0
  let high = docIds.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((docIds[middle] as number) < least) low = middle + 1
    else high = middle
  }
  return low
}

/** The union: all docIds, each once. */
export function unite(lists: readonly DocIds[]): DocIds {
  const [first = new Uint32Array()] = lists
  if (lists.length <= 1) return first
  const size = 1 + lists.reduce((last, list) => Math.max(last, list.at(-1) ?? 0), 0)
  const bits = bitsOf(lists, size)
  const all = new Uint32Array(lists.reduce((sum, { length }) => sum + length, 0))
  let count = 0
  for (let at = 0; at < bits.length; at++) {
    for (let left = bits[at] as number; left !== 0; left &= left - 1) {
      all[count++] = at * 32 + 31 - Math.clz32(left & -left)
    }
  }
  return all.subarray(0, count)
}

/** The docIds that the other list has; or, with `without`, has not. */
export function select(docIds: DocIds, other: DocIds, { without = false } = {}): DocIds {
  const bits = bitsOf([other], 1 + (docIds.at(-1) ?? 0))
  const unwanted = without ? 1 : 0
  const selected = new Uint32Array(docIds.length)
  let count = 0
  for (let at = 0; at < docIds.length; at++) {
    const docId = docIds[at] as number
    selected[count] = docId
    count += (((bits[docId >>> 5] as number) >>> (docId & 31)) & 1) ^ unwanted
  }
  return selected.subarray(0, count)
}

/** A bit for each docId below the size: many times faster than comparing lists entry by entry. */
function bitsOf(lists: readonly DocIds[], size: number): DocIds {
  const bits = new Uint32Array((size + 31) >>> 5)
  for (const list of lists) {
    const end = countBelow(list, size)
    for (let at = 0; at < end; at++) {
      const docId = list[at] as number
      bits[docId >>> 5] = (bits[docId >>> 5] as number) | (1 << (docId & 31))
    }
  }
  return bits
}
