/**
 * Which message has which rank in a segment, as the database keeps it: so many bytes each, so many in a row of the table. Bytes
 * that compare as higher are newer.
 */

/** A message in the state in which it was listed. */
export interface Key {
  readonly chat_id: string
  readonly id: string
  /** When it was sent, in milliseconds since 1970. */
  readonly at: number
  /** An edit lists the message anew. */
  readonly listing: number
}

export const keyBytes = 24
/** Four rows fill a page of the database. */
export const keysInPart = 80

const timeBytes = 6
export const idAt = 6
export const chatAt = 14
const listingAt = 22
/** Added to what may be negative: times are from the year 1413 to the year 10332, or as good as that. */
const timeShift = 2 ** 44
const timeMax = 2 ** 48 - 1
const idShift = 2n ** 63n

export function encodeKeys(keys: readonly Key[]): Buffer {
  const bytes = Buffer.allocUnsafe(keys.length * keyBytes)
  for (const [place, { chat_id, id, at, listing }] of keys.entries()) {
    const start = place * keyBytes
    bytes.writeUIntBE(shifted(at), start, timeBytes)
    bytes.writeBigUInt64BE(BigInt(id) + idShift, start + idAt)
    bytes.writeBigUInt64BE(BigInt(chat_id) + idShift, start + chatAt)
    bytes.writeUInt16BE(listing, start + listingAt)
  }
  return bytes
}

function shifted(at: number): number {
  return Math.min(timeMax, Math.max(0, at + timeShift))
}

export function decodeKey(bytes: Buffer, start: number): Key {
  return {
    at: timeAt(bytes, start),
    id: String(bytes.readBigUInt64BE(start + idAt) - idShift),
    chat_id: String(bytes.readBigUInt64BE(start + chatAt) - idShift),
    listing: bytes.readUInt16BE(start + listingAt),
  }
}

export function timeAt(bytes: Buffer, start: number): number {
  return bytes.readUIntBE(start, timeBytes) - timeShift
}

/** The newest first; of the same moment, in an order that is always the same. */
export function byTime(a: Omit<Key, 'listing'>, b: Omit<Key, 'listing'>): number {
  return b.at - a.at || compare(BigInt(b.id), BigInt(a.id)) || compare(BigInt(b.chat_id), BigInt(a.chat_id))
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : Number(a > b)
}

/** What tells it from every other listing of its account. */
export function nameOfKey({ chat_id, id, listing }: Omit<Key, 'at'>): string {
  return `${chat_id} ${id} ${listing}`
}

/** Ranks whose times a segment tells without being looked through: the further down, the fewer. */
export function nextSampled(rank: number): number {
  return rank + Math.max(1, Math.floor(rank / 8))
}

export function encodeTimes(times: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(times.length * timeBytes)
  for (const [place, at] of times.entries()) bytes.writeUIntBE(shifted(at), place * timeBytes, timeBytes)
  return bytes
}

/** Between which times the messages of these ranks were sent, which are in order: the newest first. */
export function boundsOf(times: Buffer, ranks: ArrayLike<number>): { upper: number; lower: number }[] {
  const bounds: { upper: number; lower: number }[] = []
  let sampled = 0
  let next = nextSampled(0)
  let place = 0
  for (let at = 0; at < ranks.length; at++) {
    const rank = ranks[at] as number
    while (next <= rank) {
      sampled = next
      next = nextSampled(sampled)
      place += timeBytes
    }
    const upper = timeAt(times, place)
    const isSampled = rank === sampled
    const isLast = place + timeBytes >= times.length
    bounds.push({ upper, lower: isSampled ? upper : isLast ? -Infinity : timeAt(times, place + timeBytes) })
  }
  return bounds
}
