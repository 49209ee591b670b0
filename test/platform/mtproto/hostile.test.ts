import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { deflateSync } from 'node:zlib'
import { createAesIgeForMessage } from '@mtcute/core/utils.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Crypto } from '../../../src/platform/mtcute-crypto.ts'
import { within } from '../conformance-recorder.ts'
import { type Client, lookUp, openStage, type Stage, textOf } from '../data-centre-fixture.ts'

const account_id = 'acc_one'
const crypto = new Crypto()
let stage: Stage
let client: Client
beforeAll(async () => {
  stage = await openStage()
  stage.world.addAccount({ account_id, name: 'Sales desk' })
  stage.world.addPerson({ name: 'Mara Lind', username: 'mara_lind' })
  client = stage.client(account_id)
  await client.state()
})
afterAll(() => stage.close())

const tag = Buffer.from('eeeeeeee', 'hex')

function frame(...parts: Uint8Array[]): Buffer {
  const body = Buffer.concat(parts)
  const head = Buffer.alloc(4)
  head.writeUInt32LE(body.length)
  return Buffer.concat([head, body])
}

function words(...values: number[]): Buffer {
  return Buffer.from(Uint32Array.from(values).buffer)
}

/** As a client that is logged in would send it. */
function encrypted(...body: Uint8Array[]): Buffer {
  const key = stage.centre.makeKey('acc_two')
  const message = Buffer.concat(body)
  const key_id = crypto.sha1(key).subarray(-8)
  const salt = stage.centre.saltOf(Buffer.from(key_id).toString('hex')).toBytesLE()
  const id = words(0, Math.floor(Date.now() / 1000))
  const head = Buffer.concat([Buffer.from(salt), randomBytes(8), id, words(1, message.length)])
  const padding = randomBytes(12 + ((16 - ((head.length + message.length + 12) % 16)) % 16))
  const plain = Buffer.concat([head, message, padding])
  const messageKey = crypto.sha256(Buffer.concat([key.subarray(88, 120), plain])).subarray(8, 24)
  return frame(key_id, messageKey, createAesIgeForMessage(crypto, key, messageKey, true).encrypt(plain))
}

/** The answer to these bytes, once the data centre has closed the connection. */
function answerTo(bytes: Uint8Array): Promise<Buffer> {
  const socket = connect(stage.centre.port, '127.0.0.1')
  const parts: Buffer[] = []
  socket.on('error', () => {})
  socket.on('data', (part) => parts.push(part))
  socket.write(bytes)
  return within(10_000, new Promise((closed) => socket.once('close', () => closed(Buffer.concat(parts)))))
}

const container = 0x73f1f8dc
const gzipPacked = 0x3072cfa1
const plainHead = Buffer.alloc(20)

function packed(bytes: Buffer): Buffer {
  return Buffer.concat([words(gzipPacked), Buffer.from([254, ...words(bytes.length).subarray(0, 3)]), bytes])
}

describe('garbage ends its own connection and no other', () => {
  test.each<[string, () => Uint8Array]>([
    ['random bytes', () => randomBytes(1000)],
    ['HTTP', () => Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['a frame of 2 GiB', () => Buffer.concat([tag, words(0x7fffffff)])],
    ['a frame over the limit', () => Buffer.concat([tag, words(4 * 1024 * 1024 + 1)])],
    ['empty frames', () => Buffer.concat([tag, Buffer.alloc(400)])],
    ['a plain message that is none', () => Buffer.concat([tag, frame(plainHead, randomBytes(64))])],
    ['a plain request', () => Buffer.concat([tag, frame(plainHead, words(0xedd4882a))])],
    [
      'a step of the key exchange before the first',
      () => {
        return Buffer.concat([tag, frame(plainHead, words(0xf5045f1f), randomBytes(300))])
      },
    ],
    [
      'a wrong message key',
      () => {
        const bytes = encrypted(words(0xedd4882a))
        bytes.writeUInt8(bytes.readUInt8(20) ^ 1, 20)
        return Buffer.concat([tag, bytes])
      },
    ],
    ['half blocks', () => Buffer.concat([tag, frame(encrypted(words(1)).subarray(4, -3))])],
    ['an unknown constructor', () => Buffer.concat([tag, encrypted(words(0xdeadbeef))])],
    ['a container without an end', () => Buffer.concat([tag, encrypted(words(container, 0xffffffff))])],
    ['a container with nothing in it', () => Buffer.concat([tag, encrypted(words(container, 5))])],
    ['a request that breaks off', () => Buffer.concat([tag, encrypted(words(0xa0f4cb4f))])],
    [
      'a small text that unpacks to 64 MiB',
      () => {
        return Buffer.concat([tag, encrypted(packed(deflateSync(Buffer.alloc(64 * 1024 * 1024))))])
      },
    ],
    [
      'a request inside 100,000 others',
      () => {
        const invokeWithoutUpdates = 0xbf9459b7
        return Buffer.concat([tag, encrypted(words(...new Array(100_000).fill(invokeWithoutUpdates)))])
      },
    ],
  ])('%s', async (_, bytes) => {
    await answerTo(bytes())
    expect(await client.state()).toMatchObject({ pts: expect.any(Number) })
  })

  test('answers an unknown key with the transport error 404', async () => {
    const answer = await answerTo(Buffer.concat([tag, frame(randomBytes(8 + 16 + 64))]))
    expect([answer.readUInt32LE(0), answer.readInt32LE(4)]).toEqual([4, -404])
    expect(await client.state()).toMatchObject({ pts: expect.any(Number) })
  })
})

test('reads a frame that arrives byte by byte as one frame', async () => {
  const socket = connect(stage.centre.port, '127.0.0.1')
  socket.setNoDelay(true)
  const first = new Promise<Buffer>((come) => socket.once('data', come))
  const request = Buffer.concat([tag, frame(plainHead, words(0xbe7e8ef1), randomBytes(16))])
  for (const byte of request) {
    await new Promise<void>((written) => socket.write(Buffer.from([byte]), () => written()))
  }
  expect((await within(10_000, first)).length).toBeGreaterThan(60)
  socket.destroy()
})

test('processes frames once that are written twice', async () => {
  const mara = await lookUp(client, 'mara_lind')
  const sent = () => stage.world.journal(0).filter(({ kind }) => kind === 'send').length
  await client.call(textOf(mara, 'Hello', 1))
  await client.repeatWrites()
  await client.call(textOf(mara, 'Again', 2))
  expect(sent()).toBe(2)
})
