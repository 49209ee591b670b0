/** Reads a ZIP archive by its directory, and compares it with what stands before and behind each entry. */
import { crc32 } from 'node:zlib'
import { expect } from 'vitest'

interface Entry {
  readonly name: string
  readonly crc: number
  readonly size: number
  readonly offset: number
}

const max32 = 0xffffffff

/** The bytes by name. Fails if the archive contradicts itself. */
export function readZip(zip: Buffer): Map<string, Buffer> {
  const end = zip.length - 22
  expect(zip.readUInt32LE(end)).toBe(0x06054b50)
  let count = zip.readUInt16LE(end + 10)
  let directory = zip.readUInt32LE(end + 16)
  if (directory === max32) {
    const locator = end - 20
    expect(zip.readUInt32LE(locator)).toBe(0x07064b50)
    const wide = Number(zip.readBigUInt64LE(locator + 8))
    expect(zip.readUInt32LE(wide)).toBe(0x06064b50)
    count = Number(zip.readBigUInt64LE(wide + 32))
    directory = Number(zip.readBigUInt64LE(wide + 48))
  } else {
    expect(count).toBeLessThan(0xffff)
  }
  const found = new Map<string, Buffer>()
  for (let n = 0, at = directory; n < count; n++) {
    expect(zip.readUInt32LE(at)).toBe(0x02014b50)
    const names = zip.readUInt16LE(at + 28)
    const extras = zip.readUInt16LE(at + 30)
    found.set(...contentOf(zip, entryAt(zip, at, { names, extras })))
    at += 46 + names + extras
  }
  expect(found.size).toBe(count)
  return found
}

function entryAt(zip: Buffer, at: number, { names, extras }: { names: number; extras: number }): Entry {
  const extra = zip.subarray(at + 46 + names, at + 46 + names + extras)
  const wide: number[] = []
  for (let field = 4; field < extra.length; field += 8) wide.push(Number(extra.readBigUInt64LE(field)))
  const isLarge = zip.readUInt32LE(at + 24) === max32
  const size = isLarge ? (wide[0] ?? Number.NaN) : zip.readUInt32LE(at + 24)
  const isFar = zip.readUInt32LE(at + 42) === max32
  const offset = isFar ? (wide[isLarge ? 2 : 0] ?? Number.NaN) : zip.readUInt32LE(at + 42)
  return {
    name: String(zip.subarray(at + 46, at + 46 + names)),
    crc: zip.readUInt32LE(at + 16),
    size,
    offset,
  }
}

function contentOf(zip: Buffer, { name, crc, size, offset }: Entry): [name: string, content: Buffer] {
  expect([name, zip.readUInt32LE(offset)]).toEqual([name, 0x04034b50])
  const begin = offset + 30 + zip.readUInt16LE(offset + 26) + zip.readUInt16LE(offset + 28)
  expect(String(zip.subarray(offset + 30, begin))).toBe(name)
  const content = zip.subarray(begin, begin + size)
  expect([name, crc32(content)]).toEqual([name, crc])
  const behind = begin + size
  expect([zip.readUInt32LE(behind), zip.readUInt32LE(behind + 4)]).toEqual([0x08074b50, crc])
  const next = zip.readUInt32LE(behind + 16)
  const isShort = next === 0x04034b50 || next === 0x02014b50
  expect([name, isShort ? zip.readUInt32LE(behind + 12) : Number(zip.readBigUInt64LE(behind + 16))]).toEqual([
    name,
    size,
  ])
  return [name, content]
}
