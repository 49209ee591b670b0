/**
 * Splits the bytes of a connection into frames, and makes frames: in the transport that the client's first bytes choose
 * (https://core.telegram.org/mtproto/mtproto-transports), obfuscated or not.
 */
import { type Cipheriv, createCipheriv, randomBytes, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

type Kind = 'abridged' | 'intermediate' | 'padded' | 'full'

const kindOfTag = new Map<number, Kind>([
  [0xefefefef, 'abridged'],
  [0xeeeeeeee, 'intermediate'],
  [0xdddddddd, 'padded'],
])
const abridgedTag = 0xef
/** HEAD, POST, GET, OPTI and TLS: an obfuscated start never begins like another protocol. */
const foreign = new Set([0x44414548, 0x54534f50, 0x20544547, 0x4954504f, 0x02010316])
const obfuscationBytes = 64
const frameBytesMax = 4 * 1024 * 1024
const frameBytesMin = 24
/** A client sets it to ask for an acknowledgement of the transport, which no client of ours needs. */
const quickAck = 0x80000000
const paddingMax = 15

export class Transport {
  /** Undefined until the client's first bytes have arrived. */
  #kind: Kind | undefined
  #decipher: Cipheriv | undefined
  #encipher: Cipheriv | undefined
  #parts: Buffer[] = []
  #length = 0
  /** Of the full transport: how many frames each side has sent. */
  readonly #count = { received: 0, sent: 0 }

  push(bytes: Buffer): void {
    this.#keep(this.#decipher ? this.#decipher.update(bytes) : bytes)
  }

  /** The next whole frame; undefined: not all of it has arrived. */
  next(): Uint8Array | undefined {
    if (!this.#kind && !this.#begin()) return undefined
    switch (this.#kind) {
      case 'abridged':
        return this.#nextAbridged()
      case 'full':
        return this.#nextFull()
      default:
        return this.#nextIntermediate()
    }
  }

  /** Before the client's first bytes it is the intermediate transport's. */
  frame(packet: Uint8Array): Buffer {
    const frame = this.#plainFrame(packet)
    return this.#encipher ? this.#encipher.update(frame) : frame
  }

  /** Chooses the transport; false: too few bytes to know it. */
  #begin(): boolean {
    const start = this.#peek(1)
    if (!start) return false
    if (start[0] === abridgedTag) return this.#choose('abridged', 1)
    const tag = this.#peek(4)?.readUInt32LE(0)
    if (tag === undefined) return false
    const kind = kindOfTag.get(tag)
    if (kind) return this.#choose(kind, 4)
    if (foreign.has(tag)) throw new Error('Not a transport.')
    const head = this.#peek(8)
    if (!head) return false
    // The number of the first frame; in an obfuscated start it is never 0.
    if (head.readUInt32LE(4) === 0) return this.#choose('full', 0)
    return this.#beginObfuscated()
  }

  #choose(kind: Kind, tagBytes: number): true {
    this.#kind = kind
    this.#shift(tagBytes)
    return true
  }

  #beginObfuscated(): boolean {
    const start = this.#peek(obfuscationBytes)
    if (!start) return false
    const backwards = Buffer.from(start).reverse()
    this.#decipher = createCipheriv('aes-256-ctr', start.subarray(8, 40), start.subarray(40, 56))
    this.#encipher = createCipheriv('aes-256-ctr', backwards.subarray(8, 40), backwards.subarray(40, 56))
    const kind = kindOfTag.get(this.#decipher.update(start).readUInt32LE(56))
    if (!kind) throw new Error('Not a transport.')
    this.#choose(kind, obfuscationBytes)
    const rest = Buffer.concat(this.#parts.splice(0))
    this.#length = 0
    this.push(rest)
    return true
  }

  #nextAbridged(): Uint8Array | undefined {
    const first = this.#peek(1)?.[0]
    if (first === undefined) return undefined
    const short = first & 0x7f
    if (short !== 0x7f) return this.#take(1, short * 4)
    const head = this.#peek(4)
    return head && this.#take(4, head.readUIntLE(1, 3) * 4)
  }

  #nextIntermediate(): Uint8Array | undefined {
    const length = this.#peek(4)?.readUInt32LE(0)
    if (length === undefined) return undefined
    const frame = this.#take(4, (length & ~quickAck) >>> 0)
    return frame && this.#kind === 'padded' ? trim(frame) : frame
  }

  #nextFull(): Uint8Array | undefined {
    const length = this.#peek(4)?.readUInt32LE(0)
    if (length === undefined) return undefined
    const whole = this.#take(0, length)
    if (!whole) return undefined
    const bytes = Buffer.from(whole)
    const end = length - 4
    if (bytes.readUInt32LE(4) !== this.#count.received++) throw new Error('Frames are missing.')
    if (bytes.readUInt32LE(end) !== crc32(bytes.subarray(0, end))) throw new Error('A frame is damaged.')
    return whole.slice(8, end)
  }

  #plainFrame(packet: Uint8Array): Buffer {
    const head = Buffer.alloc(4)
    switch (this.#kind) {
      case 'abridged': {
        const words = packet.length / 4
        if (words < 0x7f) return Buffer.concat([Buffer.from([words]), packet])
        head[0] = 0x7f
        head.writeUIntLE(words, 1, 3)
        return Buffer.concat([head, packet])
      }
      case 'full': {
        const start = Buffer.alloc(8)
        start.writeUInt32LE(packet.length + 12)
        start.writeUInt32LE(this.#count.sent++, 4)
        const body = Buffer.concat([start, packet])
        head.writeUInt32LE(crc32(body))
        return Buffer.concat([body, head])
      }
      default: {
        // An error of the transport is four bytes, and has no padding.
        const padding = this.#kind === 'padded' && packet.length > 4 ? randomInt(paddingMax + 1) : 0
        head.writeUInt32LE(packet.length + padding)
        return Buffer.concat([head, packet, randomBytes(padding)])
      }
    }
  }

  #take(start: number, length: number): Uint8Array | undefined {
    if (length < frameBytesMin || length > frameBytesMax) throw new Error('Not a frame.') // guard: bounded frames
    const frame = this.#peek(start + length)
    if (!frame) return undefined
    this.#shift(start + length)
    return new Uint8Array(frame.subarray(start))
  }

  #keep(bytes: Buffer): void {
    this.#parts.push(bytes)
    this.#length += bytes.length
  }

  /**
   * The first `count` bytes, once that many have arrived. Joins the pieces only then: a frame may arrive in many
   * small ones.
   */
  #peek(count: number): Buffer | undefined {
    if (this.#length < count) return undefined
    const first = this.#parts[0]
    if (first && first.length >= count) return first.subarray(0, count)
    const whole = Buffer.concat(this.#parts)
    this.#parts = [whole]
    return whole.subarray(0, count)
  }

  #shift(count: number): void {
    const [first = Buffer.alloc(0), ...rest] = this.#parts
    this.#parts = first.length > count ? [first.subarray(count), ...rest] : rest
    this.#length -= count
  }
}

/** Without the padding: a message that is not encrypted says how long it is, others are whole blocks. */
function trim(frame: Uint8Array): Uint8Array {
  const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.length)
  const isPlain = bytes.readBigUInt64LE(0) === 0n
  return frame.slice(0, isPlain ? 20 + bytes.readUInt32LE(16) : frame.length - ((frame.length - 24) % 16))
}
