/** Splits the bytes of a connection into frames: MTProto's intermediate transport. */

const intermediateTag = 0xeeeeeeee
const frameBytesMax = 4 * 1024 * 1024

export class FrameReader {
  #parts: Buffer[] = []
  #length = 0
  #isTagged = false

  push(bytes: Buffer): void {
    this.#parts.push(bytes)
    this.#length += bytes.length
  }

  /** The next whole frame; undefined: not all of it has arrived. */
  next(): Uint8Array | undefined {
    if (!this.#isTagged) {
      const tag = this.#peek(4)?.readUInt32LE(0)
      if (tag === undefined) return undefined
      if (tag !== intermediateTag) throw new Error('Not the intermediate transport.')
      this.#isTagged = true
      this.#shift(4)
    }
    const length = this.#peek(4)?.readUInt32LE(0)
    if (length === undefined) return undefined
    if (length < 24 || length > frameBytesMax) throw new Error('Not a frame.') // guard: bounded frames
    const frame = this.#peek(4 + length)
    if (!frame) return undefined
    this.#shift(4 + length)
    return new Uint8Array(frame.subarray(4))
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
