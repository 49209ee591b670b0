/**
 * What a hostile network or a broken server does to a client: a table of cases, each in place of one packet. Without a
 * case the data centre behaves.
 */
import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { mtp } from '@mtcute/core'
import { TlBinaryWriter } from '@mtcute/core/utils.js'
import Long from 'long'
import type { HostileCase } from './hostility.ts'
import { containerId, gzipPackedId, rpcResultId, write } from './tl.ts'

/** A connection as a case uses it. */
export interface Wire {
  /** The packet that the case replaces. */
  readonly due: Uint8Array
  /** The request that it answers; null: none. */
  readonly request_id: Long | null
  /** Bytes as they are. */
  raw(...bytes: Uint8Array[]): void
  frame(packet: Uint8Array): void
  /** Encrypted like the server's own messages, or with something wrong about it. Before the client's first such message the server has no key, and takes a random one. */
  seal(body: Uint8Array, wrong?: { readonly key?: Uint8Array; readonly id?: Long }): Uint8Array
  /** From now on the server writes and reads nothing. */
  silence(): void
  /** From now on this replaces every packet. */
  always(packet: (request_id: Long | null) => Uint8Array): void
  /** The server closes its half and keeps reading. */
  finish(): void
  reset(): void
}

const bombBytes = 32 * 1024 * 1024
/** Made once: packing takes long. */
let bomb: Uint8Array | undefined

const noise = (length: number) => new Uint8Array(randomBytes(length))
const text = (value: string) => Buffer.from(value, 'latin1')
const unknownId = 0xdeadbeef

export const hostileCases = {
  truncated: (wire) => {
    wire.raw(words(wire.due.length), wire.due.subarray(0, wire.due.length >> 1))
    wire.finish()
  },
  /** The header of a frame of 2 GiB, of which a part arrives. */
  endless: (wire) => wire.raw(words(0x7fffffff), noise(100_000)),
  /** A frame of a legal length that never becomes whole. */
  unfinished: (wire) => {
    wire.raw(words(4 * 1024 * 1024), wire.due)
    wire.silence()
  },
  empty: (wire) => wire.raw(new Uint8Array(4 * 1000)),
  short: (wire) => {
    for (const length of [1, 2, 3, 5, 7, 8, 20, 23]) wire.frame(noise(length))
  },
  foreign: (wire) => wire.raw(text('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<h1>Sign in</h1>')),
  noise: (wire) => wire.frame(noise(24 + 16 * 20)),
  plain: (wire) => wire.frame(Buffer.concat([new Uint8Array(8), noise(200)])),
  /** The first message of a key exchange, which no key protects, with a number that nothing can factor. */
  unfactorable: (wire) => wire.frame(plain(resPq(wire.due, 256))),
  /** The same with a number so long that even parsing it takes minutes. */
  unbounded: (wire) => wire.frame(plain(resPq(wire.due, 100_000))),
  /** A malformed answer in the key exchange. */
  refused_exchange: (wire) => wire.frame(plain(write(pong))),
  flipped: (wire) => {
    const bytes = wire.due.slice()
    const at = bytes.length - 9
    bytes[at] = (bytes[at] ?? 0) ^ 4
    wire.frame(bytes)
  },
  wrong_key: (wire) => wire.frame(wire.seal(write(pong), { key: noise(256) })),
  wrong_session: (wire) => wire.frame(wire.seal(write(pong), { id: Long.fromNumber(7) })),
  wrong_salts: (wire) => wire.always((request_id) => wire.seal(badSalt(request_id))),
  bad_messages: (wire) => {
    for (const errorCode of [16, 17, 32, 33, 48, 64, 99]) wire.frame(wire.seal(badMessage(wire, errorCode)))
  },
  unknown_constructor: (wire) => wire.frame(wire.seal(words(unknownId, 1, 2))),
  unknown_answer: (wire) => wire.frame(wire.seal(answer(wire, words(unknownId, 1, 2)))),
  broken_answer: (wire) => wire.frame(wire.seal(answer(wire, wire.due.subarray(0, 24)))),
  endless_container: (wire) => wire.frame(wire.seal(words(containerId, 0xffffffff, 1, 2, 3))),
  bomb: (wire) => wire.frame(wire.seal(answer(wire, packed()))),
  pushed_bomb: (wire) => wire.frame(wire.seal(packed())),
  error_404: (wire) => wire.frame(words(-404)),
  error_429: (wire) => wire.frame(words(-429)),
  error_444: (wire) => wire.frame(words(-444)),
  unasked: (wire) => {
    for (let n = 0; n < 100; n++) {
      wire.frame(wire.seal(Buffer.concat([words(rpcResultId), noise(8), write(pong)])))
      wire.frame(wire.seal(write(pong)))
    }
  },
  silence: (wire) => wire.silence(),
  /** The client may write forever, and gets no answer. */
  half_open: (wire) => {
    wire.finish()
    wire.silence()
  },
  cut: (wire) => wire.reset(),
} satisfies Record<HostileCase, (wire: Wire) => void>

function words(...values: number[]): Uint8Array {
  return new Uint8Array(Int32Array.from(values.map((value) => value | 0)).buffer)
}

const pong: mtp.RawMt_pong = { _: 'mt_pong', msgId: Long.fromNumber(5), pingId: Long.fromNumber(6) }

function answer({ request_id }: Wire, body: Uint8Array): Uint8Array {
  return Buffer.concat([words(rpcResultId), Buffer.from((request_id ?? Long.ONE).toBytesLE()), body])
}

function packed(): Uint8Array {
  bomb ??= gzipSync(new Uint8Array(bombBytes))
  const writer = TlBinaryWriter.manual(bomb.length + 16)
  writer.uint(gzipPackedId)
  writer.bytes(bomb)
  return writer.result()
}

function badSalt(request_id: Long | null): Uint8Array {
  const newServerSalt = Long.fromBytesLE([...noise(8)])
  const badMsgId = request_id ?? Long.ONE
  return write({ _: 'mt_bad_server_salt', badMsgId, badMsgSeqno: 1, errorCode: 48, newServerSalt })
}

function badMessage({ request_id }: Wire, errorCode: number): Uint8Array {
  return write({
    _: 'mt_bad_msg_notification',
    badMsgId: request_id ?? Long.ONE,
    badMsgSeqno: 1,
    errorCode,
  })
}

function plain(body: Uint8Array): Uint8Array {
  return Buffer.concat([
    new Uint8Array(8),
    Buffer.from(Long.fromNumber(Date.now()).toBytesLE()),
    words(body.length),
    body,
  ])
}

/** With the nonces and the key of the real one, which begins at 20. */
function resPq(due: Uint8Array, bytes: number): Uint8Array {
  const [head, tail] = [due.slice(20, 20 + 36), due.slice(20 + 36 + 12)]
  const pq = noise(bytes)
  pq[bytes - 1] = 1
  const writer = TlBinaryWriter.manual(bytes + 16)
  writer.bytes(pq)
  return Buffer.concat([head, writer.result(), tail])
}
