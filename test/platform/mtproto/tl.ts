/**
 * The server's side of TL: reads what clients write, writes what they read. mtcute's readers cover every constructor but
 * no API method, because a client never reads one; those are made here from the schema that mtcute ships.
 */
import { createRequire } from 'node:module'
import { gzipSync, unzipSync } from 'node:zlib'
import type { mtp, tl } from '@mtcute/core'
import { __tlReaderMap, __tlWriterMap, TlBinaryReader, TlBinaryWriter } from '@mtcute/core/utils.js'
import type Long from 'long'

interface Argument {
  readonly name: string
  readonly type: string
  readonly typeModifiers?: { readonly predicate?: string; readonly isVector?: boolean }
}

interface SchemaEntry {
  readonly kind: 'class' | 'method'
  readonly name: string
  readonly id: number
  readonly arguments: readonly Argument[]
}

type Reader = (reader: TlBinaryReader) => unknown
type ReaderMap = NonNullable<ConstructorParameters<typeof TlBinaryReader>[0]>

export const containerId = 0x73f1f8dc
export const gzipPackedId = 0x3072cfa1
export const rpcResultId = 0xf35c6d01
const vectorId = 0x1cb5c415

const containerMax = 1020
const unpackedBytesMax = 4 * 1024 * 1024
/** A longer answer is compressed. */
const plainBytesMax = 1024

const schema = createRequire(import.meta.url)('@mtcute/core/tl/api-schema.json') as {
  readonly e: readonly SchemaEntry[]
}

function readerOf(type: string): Reader {
  switch (type) {
    case 'int':
    case 'int53':
    case 'double':
    case 'string':
    case 'bytes':
    case 'int128':
    case 'int256':
      return (reader) => reader[type]()
    case 'long':
      return (reader) => reader.long()
    case 'Bool':
      return (reader) => reader.boolean()
    case 'true':
      return () => true
    default:
      return (reader) => reader.object()
  }
}

function camelCase(name: string): string {
  return name.replace(/(?<!^|_)_[a-z0-9]/gi, (match) => match.slice(1).toUpperCase())
}

function methodReader(method: SchemaEntry): Reader {
  const fields = method.arguments.map(({ name, type, typeModifiers }) => {
    const [flags, bit] = typeModifiers?.predicate?.split('.') ?? []
    const one = readerOf(type)
    const read: Reader = typeModifiers?.isVector ? (reader) => reader.vector(() => one(reader)) : one
    return { name, type, key: camelCase(name), flags, bit: Number(bit), read }
  })
  return (reader) => {
    const request: Record<string, unknown> = { _: method.name }
    const given: Record<string, number> = {}
    for (const { name, type, key, flags, bit, read } of fields) {
      if (type === '#') given[name] = reader.uint()
      else if (flags === undefined || ((given[flags] ?? 0) >>> bit) & 1) request[key] = read(reader)
    }
    return request
  }
}

const readers: Record<number, Reader> = Object.assign(Object.create(null), __tlReaderMap)
for (const entry of schema.e) if (entry.kind === 'method') readers[entry.id] = methodReader(entry)
// What clients call gzip is zlib.
readers[gzipPackedId] = (reader) => read(unzipSync(reader.bytes(), { maxOutputLength: unpackedBytesMax }))

export function readerAt(bytes: Uint8Array, start = 0): TlBinaryReader {
  return new TlBinaryReader(readers as ReaderMap, bytes, start)
}

/** Reads a service message or a request, and throws on anything else. */
export function read(bytes: Uint8Array, start = 0): mtp.TlObject | tl.RpcMethod {
  return readerAt(bytes, start).object() as mtp.TlObject | tl.RpcMethod
}

/** What a client proves in the key exchange: with its data centre since 2020, without it before. mtcute knows the first only. */
export interface InnerData {
  readonly p: Uint8Array
  readonly q: Uint8Array
  readonly nonce: Uint8Array
  readonly serverNonce: Uint8Array
  readonly newNonce: Uint8Array
}

const innerDataId = 0x83c95aec

function innerDataReader(reader: TlBinaryReader): InnerData {
  reader.bytes()
  const [p, q] = [reader.bytes(), reader.bytes()]
  return { p, q, nonce: reader.int128(), serverNonce: reader.int128(), newNonce: reader.int256() }
}
readers[innerDataId] = innerDataReader

export function readInnerData(bytes: Uint8Array): InnerData {
  const reader = readerAt(bytes)
  if (reader.peekUint() === innerDataId) return reader.object() as InnerData
  const inner = reader.object() as mtp.TlObject
  if (inner._ !== 'mt_p_q_inner_data_dc') throw new Error('The key exchange is broken.')
  return inner
}

export function lengthOfInnerData(bytes: Uint8Array): number {
  const reader = readerAt(bytes)
  reader.object()
  return reader.pos
}

export function write(object: mtp.TlObject | tl.TlObject): Uint8Array {
  return TlBinaryWriter.serializeObject(__tlWriterMap, object)
}

function writeValue(value: unknown): Uint8Array {
  if (typeof value === 'boolean') {
    const writer = TlBinaryWriter.manual(4)
    writer.boolean(value)
    return writer.result()
  }
  if (!Array.isArray(value)) return write(value as tl.TlObject)
  const parts = value.map((each) => write(each))
  const writer = TlBinaryWriter.manual(8 + parts.reduce((sum, { length }) => sum + length, 0))
  writer.uint(vectorId)
  writer.uint(parts.length)
  for (const part of parts) writer.raw(part)
  return writer.result()
}

export function writeAnswer(to: Long, value: unknown): Uint8Array {
  let body = writeValue(value)
  if (body.length > plainBytesMax) {
    const packed = gzipSync(body)
    const writer = TlBinaryWriter.manual(packed.length + 16)
    writer.uint(gzipPackedId)
    writer.bytes(packed)
    body = writer.result()
  }
  const writer = TlBinaryWriter.manual(12 + body.length)
  writer.uint(rpcResultId)
  writer.long(to)
  writer.raw(body)
  return writer.result()
}

export interface Message {
  readonly id: Long
  readonly body: Uint8Array
}

/** The messages of a container; any other message is returned alone. */
export function unpack({ id, body }: Message): Message[] {
  const reader = readerAt(body)
  if (reader.peekUint() !== containerId) return [{ id, body }]
  reader.uint()
  const count = reader.uint()
  if (count > containerMax) throw new Error('The container is too long.')
  return Array.from({ length: count }, () => {
    const inner = reader.long(true)
    reader.uint()
    return { id: inner, body: reader.raw(reader.uint()).slice() }
  })
}

/**
 * Written by hand, because mtcute's own writer of it is broken. `now` is in seconds. It lists the current salt only: each later one would
 * start a timer.
 */
export function writeSalt(to: Long, salt: Long, now: number): Uint8Array {
  const writer = TlBinaryWriter.manual(36)
  writer.uint(0xae500895)
  writer.long(to)
  writer.int(now)
  writer.uint(1)
  writer.int(now - 60)
  writer.int(now + 1_000_000)
  writer.long(salt)
  return writer.result()
}
