import { createCipheriv, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import {
  IntermediatePacketCodec,
  type IPacketCodec,
  MemoryStorage,
  ObfuscatedPacketCodec,
  PaddedIntermediatePacketCodec,
} from '@mtcute/core'
import { expect, test } from 'vitest'
import { Client, setScene } from '../data-centre-fixture.ts'
import { Transport } from './transport.ts'

test.each<[string, () => IPacketCodec]>([
  ['padded', () => new PaddedIntermediatePacketCodec()],
  ['obfuscated intermediate', () => new ObfuscatedPacketCodec(new IntermediatePacketCodec())],
  ['obfuscated padded', () => new ObfuscatedPacketCodec(new PaddedIntermediatePacketCodec())],
])('a client of the %s transport agrees on a key and is answered', async (_, codec) => {
  const { stage } = await setScene()
  const client = new Client(stage.centre.port, new MemoryStorage(), codec)
  expect(await client.call({ _: 'help.getConfig' })).toMatchObject({ thisDc: 2 })
  await client.close()
})

function words(...values: number[]): Buffer {
  return Buffer.from(Uint32Array.from(values).buffer)
}

function fullFrame(packet: Uint8Array, number: number): Buffer {
  const body = Buffer.concat([words(packet.length + 12, number), packet])
  return Buffer.concat([body, words(crc32(body))])
}

function abridgedFrame(packet: Uint8Array): Buffer {
  const count = packet.length / 4
  const head = count < 0x7f ? Buffer.from([count]) : words(0x7f | (count << 8))
  return Buffer.concat([head, packet])
}

/** What a transport reads of these bytes when they arrive in pieces. */
function readAll(transport: Transport, bytes: Buffer, step: number): Buffer[] {
  const found: Buffer[] = []
  for (let at = 0; at < bytes.length; at += step) {
    transport.push(bytes.subarray(at, at + step))
    for (let frame = transport.next(); frame; frame = transport.next()) found.push(Buffer.from(frame))
  }
  return found
}

const packets = [24, 500, 508, 40_000].map((length) => randomBytes(length))

test.each([1, 7, 100_000])('abridged and full frames in pieces of %i bytes, in both directions', (step) => {
  const abridged = new Transport()
  const sent = Buffer.concat([Buffer.from([0xef]), ...packets.map(abridgedFrame)])
  expect(readAll(abridged, sent, step)).toEqual(packets)
  expect(packets.map((each) => abridged.frame(each))).toEqual(packets.map(abridgedFrame))
  const full = new Transport()
  expect(readAll(full, Buffer.concat(packets.map(fullFrame)), step)).toEqual(packets)
  expect(packets.map((each) => full.frame(each))).toEqual(packets.map(fullFrame))
})

test('a full frame that is damaged or out of order ends the connection', () => {
  const frame = fullFrame(randomBytes(40), 0)
  const damaged = Buffer.from(frame)
  damaged.writeUInt8((damaged[20] ?? 0) ^ 1, 20)
  expect(() => readAll(new Transport(), damaged, 100)).toThrow('damaged')
  expect(() => readAll(new Transport(), Buffer.concat([frame, frame]), 100)).toThrow('missing')
})

test('an obfuscated start that names no transport ends the connection', () => {
  const start = randomBytes(64)
  start.writeUInt8(1, 0)
  start.writeUInt32LE(1, 4)
  const stream = createCipheriv('aes-256-ctr', start.subarray(8, 40), start.subarray(40, 56))
  const named = Buffer.concat([start.subarray(0, 56), words(1), start.subarray(60)])
  stream.update(named).copy(start, 56, 56, 60)
  expect(() => readAll(new Transport(), start, 64)).toThrow('Not a transport.')
})
