/**
 * Posting lists as they are stored. A plain list has the docIds of the documents with a term, in order, each as the
 * distance to the one before. A list with positions has an entry for each occurrence: that distance, and which token of
 * the document it is. Numbers take one byte for each seven bits, so the beginning of a list is a list as well. Pure.
 */

/** In order, each once. */
export type DocIds = Uint32Array<ArrayBuffer>

/** An occurrence is `docId * stride + position`: a phrase is then occurrences that differ by one. Positions stay below 4,096. */
export const stride = 8192

/** The longest distance takes five bytes, a position two. */
const distanceBytes = 5
const positionBytes = 2

export function encodeDocIds(docIds: ArrayLike<number>): Buffer {
  const bytes = Buffer.allocUnsafe(docIds.length * distanceBytes)
  let end = 0
  let before = 0
  for (let at = 0; at < docIds.length; at++) {
    const docId = docIds[at] as number
    end = writeNumber(bytes, end, docId - before)
    before = docId
  }
  return bytes.subarray(0, end)
}

export function encodeOccurrences(occurrences: ArrayLike<number>): Buffer {
  const bytes = Buffer.allocUnsafe(occurrences.length * (distanceBytes + positionBytes))
  let end = 0
  let before = 0
  for (let at = 0; at < occurrences.length; at++) {
    const docId = docIdOf(occurrences[at] as number)
    end = writeNumber(bytes, end, docId - before)
    end = writeNumber(bytes, end, (occurrences[at] as number) - docId * stride)
    before = docId
  }
  return bytes.subarray(0, end)
}

export function docIdOf(occurrence: number): number {
  return Math.floor(occurrence / stride)
}

function writeNumber(bytes: Buffer, start: number, value: number): number {
  let end = start
  let left = value
  for (; left >= 128; left >>>= 7) bytes[end++] = 128 | (left & 127)
  bytes[end++] = left
  return end
}

/** How many numbers end here: what was cut off in the middle of a number is left out. */
export function countNumbers(bytes: Uint8Array): number {
  let count = 0
  // Without a branch: it would go either way at random.
  for (let at = 0; at < bytes.length; at++) count += ((bytes[at] as number) >> 7) ^ 1
  return count
}

/** Writes the docIds into an array that has room for them, and returns where they end there. */
export function decodeDocIds(bytes: Uint8Array, docIds: DocIds, start: number): number {
  const end = start + countNumbers(bytes)
  let docId = 0
  let at = 0
  for (let place = start; place < end; place++) {
    let byte = bytes[at++] as number
    docId += byte & 127
    for (let shift = 7; byte >= 128; shift += 7) {
      byte = bytes[at++] as number
      docId += (byte & 127) << shift
    }
    docIds[place] = docId
  }
  return end
}

/** Two numbers for each occurrence. */
export function decodeOccurrences(bytes: Uint8Array): Float64Array<ArrayBuffer> {
  const occurrences = new Float64Array(countNumbers(bytes) >>> 1)
  let docId = 0
  let at = 0
  for (let place = 0; place < occurrences.length; place++) {
    let byte = bytes[at++] as number
    docId += byte & 127
    for (let shift = 7; byte >= 128; shift += 7) {
      byte = bytes[at++] as number
      docId += (byte & 127) << shift
    }
    byte = bytes[at++] as number
    let position = byte & 127
    if (byte >= 128) position += (bytes[at++] as number) << 7
    occurrences[place] = docId * stride + position
  }
  return occurrences
}

/** Of these places, those that have one of the others `distance` further on. Both in order. */
export function followedBy(
  places: Float64Array<ArrayBuffer>,
  others: Float64Array<ArrayBuffer>,
  distance: number,
): Float64Array<ArrayBuffer> {
  const found = new Float64Array(Math.min(places.length, others.length))
  let count = 0
  let other = 0
  for (let at = 0; at < places.length; at++) {
    const wanted = (places[at] as number) + distance
    while (other < others.length && (others[other] as number) < wanted) other++
    if (other === others.length) break
    if (others[other] === wanted) found[count++] = places[at] as number
  }
  return found.subarray(0, count)
}

/** The documents of occurrences that are in order. */
export function docIdsOf(occurrences: Float64Array): DocIds {
  const docIds = new Uint32Array(occurrences.length)
  let count = 0
  for (let at = 0; at < occurrences.length; at++) {
    const docId = docIdOf(occurrences[at] as number)
    if (count === 0 || docIds[count - 1] !== docId) docIds[count++] = docId
  }
  return docIds.subarray(0, count)
}

/** How many are below. */
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

/** All of them, in order, each once. */
export function unite(lists: readonly DocIds[]): DocIds {
  const some = lists.filter(({ length }) => length > 0)
  return some.length <= 1 ? (some[0] ?? new Uint32Array()) : sorted(some)
}

/** The docIds of these arrays, which need not be in order, in order and each once. */
export function sorted(arrays: readonly DocIds[]): DocIds {
  let last = 0
  for (const docIds of arrays) {
    for (let at = 0; at < docIds.length; at++) last = Math.max(last, docIds[at] as number)
  }
  return docIdsIn(bitsOf(arrays, 1 + last))
}

/** Those of the docIds that the other list has; or, with `without`, has not. */
export function select(docIds: DocIds, other: DocIds, { without = false } = {}): DocIds {
  const last = docIds.at(-1)
  if (last === undefined) return docIds
  const bits = bitsOf([other.subarray(0, countBelow(other, 1 + last))], 1 + last)
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

/** A bit for each docId below the size. */
function bitsOf(arrays: readonly DocIds[], size: number): DocIds {
  const bits = new Uint32Array((size + 31) >>> 5)
  for (const docIds of arrays) {
    for (let at = 0; at < docIds.length; at++) {
      const docId = docIds[at] as number
      bits[docId >>> 5] = (bits[docId >>> 5] as number) | (1 << (docId & 31))
    }
  }
  return bits
}

function docIdsIn(bits: DocIds): DocIds {
  let count = 0
  for (let at = 0; at < bits.length; at++) count += countBits(bits[at] as number)
  const docIds = new Uint32Array(count)
  let end = 0
  for (let at = 0; at < bits.length; at++) {
    for (let left = bits[at] as number; left !== 0; left &= left - 1) {
      docIds[end++] = at * 32 + 31 - Math.clz32(left & -left)
    }
  }
  return docIds
}

function countBits(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555)
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}
