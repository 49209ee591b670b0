/**
 * Maps the docIds of a segment to messages, as stored in `search_ranks`: 24 bytes per document, 80 documents per row. Of two
 * keys compared as bytes, the greater is newer.
 */

/** A message in the version that was indexed. */
export interface DocKey {
  readonly chat_id: string
  readonly id: string
  /** When it was sent, in milliseconds since 1970. */
  readonly at: number
  /** The version of its text: an edit increments it, and the message is indexed again. */
  readonly listing: number
}

export type MessageKey = Omit<DocKey, 'listing'> & { readonly account_id: string }

export const keyBytes = 24
/** Four rows fill a database page. */
export const keysInPart = 80

const timeBytes = 6
const idAt = 6
const chatAt = 14
const listingAt = 22
/** Added to times, which may be negative: the years 1413 to 10332 fit, and other times are clamped to these. */
const timeShift = 2 ** 44
const timeMax = 2 ** 48 - 1
const idShift = 2n ** 63n

export function encodeKeys(keys: readonly DocKey[]): Buffer {
  const bytes = Buffer.allocUnsafe(keys.length * keyBytes)
  for (const [docId, { chat_id, id, at, listing }] of keys.entries()) {
    const start = docId * keyBytes
    bytes.writeUIntBE(Math.min(timeMax, Math.max(0, at + timeShift)), start, timeBytes)
    bytes.writeBigUInt64BE(BigInt(id) + idShift, start + idAt)
    bytes.writeBigUInt64BE(BigInt(chat_id) + idShift, start + chatAt)
    bytes.writeUInt16BE(listing, start + listingAt)
  }
  return bytes
}

export function decodeKey(bytes: Buffer, start: number): DocKey {
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

/** Newest first; ties always in the same order. */
export function byTime(a: Omit<DocKey, 'listing'>, b: Omit<DocKey, 'listing'>): number {
  return b.at - a.at || compare(BigInt(b.id), BigInt(a.id)) || compare(BigInt(b.chat_id), BigInt(a.chat_id))
}

/** The same across accounts, which may share a chat: the order of pages. */
export function inOrder(a: MessageKey, b: MessageKey): number {
  return byTime(a, b) || (a.account_id < b.account_id ? -1 : Number(a.account_id > b.account_id))
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : Number(a > b)
}

/** What a tombstone refers to: one version of one message of the account. */
export type Version = Omit<DocKey, 'at'>

export function nameOfVersion({ chat_id, id, listing }: Version): string {
  return `${chat_id} ${id} ${listing}`
}
