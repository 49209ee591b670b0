/**
 * Writes a ZIP archive while its content is read: nothing but the list of its entries is kept. Entries are stored as they are,
 * each with its length and checksum behind it, because neither is known before. What needs 64 bits gets them (APPNOTE 6.3.10, 4.5.3).
 */
import { crc32 } from 'node:zlib'

export type Piece = string | Uint8Array

export interface ZipEntry {
  /** A path without `..`, with `/` between its parts. */
  readonly name: string
  readonly content: AsyncIterable<Piece>
}

interface WrittenEntry {
  readonly name: Buffer
  readonly crc: number
  readonly size: number
  readonly offset: number
}

/** The largest number of a field of 32 bits says that the number is in a field of 64. */
const max32 = 0xffffffff
const max16 = 0xffff
const versionPlain = 20
const version64 = 45
/** Sizes follow the content, and names are UTF-8. */
const flags = 0x0808

/** `large`: from where on a number is written with 64 bits; smaller only in tests. */
export async function* writeZip(
  entries: AsyncIterable<ZipEntry>,
  { at, large = max32 }: { readonly at: Date; readonly large?: number },
): AsyncGenerator<Piece, void> {
  const stamp = dosTime(at)
  const written: WrittenEntry[] = []
  let offset = 0
  for await (const { name: text, content } of entries) {
    const name = Buffer.from(text)
    const begin = offset
    const head = localHeader(name, stamp)
    yield head
    offset += head.length
    let crc = 0
    let size = 0
    for await (const piece of content) {
      crc = crc32(piece, crc)
      size += typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length
      yield piece
    }
    const end = descriptor(crc, size, large)
    yield end
    offset += size + end.length
    written.push({ name, crc, size, offset: begin })
  }
  const directory = offset
  for (const entry of written) {
    const record = directoryRecord(entry, stamp, large)
    yield record
    offset += record.length
  }
  yield endRecords({ count: written.length, directory, size: offset - directory, large })
}

interface Stamp {
  readonly time: number
  readonly date: number
}

/** The format counts years from 1980 and seconds in pairs. */
function dosTime(at: Date): Stamp {
  return {
    time: (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1),
    date: ((at.getUTCFullYear() - 1980) << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate(),
  }
}

/** Little-endian fields, one after the other. */
function fields(...values: readonly (readonly [bytes: 2 | 4 | 8, value: number])[]): Buffer {
  const record = Buffer.alloc(values.reduce((sum, [bytes]) => sum + bytes, 0))
  let at = 0
  for (const [bytes, value] of values) {
    if (bytes === 8) record.writeBigUInt64LE(BigInt(value), at)
    else record.writeUIntLE(value, at, bytes)
    at += bytes
  }
  return record
}

function localHeader(name: Buffer, { time, date }: Stamp): Buffer {
  const head = fields([4, 0x04034b50], [2, versionPlain], [2, flags], [2, 0], [2, time], [2, date])
  return Buffer.concat([head, fields([4, 0], [4, 0], [4, 0], [2, name.length], [2, 0]), name])
}

function descriptor(crc: number, size: number, large: number): Buffer {
  const bytes = size >= large ? 8 : 4 // guard: the length of a large entry
  return fields([4, 0x08074b50], [4, crc], [bytes, size], [bytes, size])
}

function directoryRecord(
  { name, crc, size, offset }: WrittenEntry,
  { time, date }: Stamp,
  large: number,
): Buffer {
  const isLarge = size >= large
  const isFar = offset >= large
  const wide: [8, number][] = [
    ...(isLarge
      ? ([
          [8, size],
          [8, size],
        ] as [8, number][])
      : []),
    ...(isFar ? ([[8, offset]] as [8, number][]) : []), // guard: the place of a far entry
  ]
  const extra = wide.length > 0 ? fields([2, 1], [2, wide.length * 8], ...wide) : Buffer.alloc(0)
  const version = wide.length > 0 ? version64 : versionPlain
  const short = isLarge ? max32 : size
  const head = fields(
    ...([
      [4, 0x02014b50],
      [2, version],
      [2, version],
      [2, flags],
      [2, 0],
      [2, time],
      [2, date],
    ] as const),
    ...([
      [4, crc],
      [4, short],
      [4, short],
      [2, name.length],
      [2, extra.length],
      [2, 0],
      [2, 0],
      [2, 0],
    ] as const),
    ...([
      [4, 0],
      [4, isFar ? max32 : offset],
    ] as const),
  )
  return Buffer.concat([head, name, extra])
}

function endRecords({
  count,
  directory,
  size,
  large,
}: {
  count: number
  directory: number
  size: number
  large: number
}): Buffer {
  const isWide = count >= max16 || directory >= large || size >= large // guard: the end of a large archive
  const many = isWide ? max16 : count
  const end = fields(
    ...([
      [4, 0x06054b50],
      [2, 0],
      [2, 0],
      [2, many],
      [2, many],
    ] as const),
    ...([
      [4, isWide ? max32 : size],
      [4, isWide ? max32 : directory],
      [2, 0],
    ] as const),
  )
  if (!isWide) return end
  const wide = fields(
    ...([
      [4, 0x06064b50],
      [8, 44],
      [2, version64],
      [2, version64],
      [4, 0],
      [4, 0],
    ] as const),
    ...([
      [8, count],
      [8, count],
      [8, size],
      [8, directory],
    ] as const),
  )
  const locator = fields([4, 0x07064b50], [4, 0], [8, directory + size], [4, 1])
  return Buffer.concat([wide, locator, end])
}
