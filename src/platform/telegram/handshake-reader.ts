/** Reads a handshake from a socket byte for byte: whatever follows it belongs to the next protocol. */
import type { Socket } from 'node:net'

export class HandshakeReader {
  readonly #socket: Socket
  readonly #listeners: readonly (readonly [string, () => void])[]
  #bytes: Buffer = Buffer.alloc(0)
  #isOver = false
  #wake: () => void = () => {}

  constructor(socket: Socket) {
    this.#socket = socket
    const end = () => {
      this.#isOver = true
      this.#wake()
    }
    this.#listeners = [
      ['readable', () => this.#wake()],
      ['end', end],
      ['close', end],
    ]
    for (const [event, listener] of this.#listeners) socket.on(event, listener)
  }

  async take(length: number): Promise<Buffer> {
    await this.#until(() => this.#bytes.length >= length)
    return this.#cut(length)
  }

  /** Reads up to and including this text. Rejects if it does not arrive within `bytesMax`. */
  async takeThrough(text: string, bytesMax: number): Promise<Buffer> {
    await this.#until(() => this.#bytes.includes(text) || this.#bytes.length > bytesMax)
    const at = this.#bytes.indexOf(text)
    if (at < 0 || at > bytesMax) throw new Error('The handshake is too long.')
    return this.#cut(at + text.length)
  }

  /** Gives the rest back to the socket. */
  release(): void {
    for (const [event, listener] of this.#listeners) this.#socket.off(event, listener)
    if (this.#bytes.length > 0) this.#socket.unshift(this.#bytes)
  }

  async #until(holds: () => boolean): Promise<void> {
    for (;;) {
      const more: Buffer | null = this.#socket.read()
      if (more) this.#bytes = Buffer.concat([this.#bytes, more])
      if (holds()) return
      if (this.#isOver) throw new Error('The proxy hung up.')
      if (!more) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    }
  }

  #cut(length: number): Buffer {
    const taken = this.#bytes.subarray(0, length)
    this.#bytes = this.#bytes.subarray(length)
    return taken
  }
}
