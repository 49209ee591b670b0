/**
 * COPY of large files around the driver, which would copy every byte twice on the way in and decode it as text on the way
 * out. Node collects such garbage late, so it would add up to hundreds of megabytes.
 */
import type { Duplex } from 'node:stream'
import pg from 'pg'
import { freeBuffer } from '../lib/free-buffer.ts'

const copyData = 0x64
const copyDone = Buffer.from([0x63, 0, 0, 0, 4])
/** The head of a protocol message: its kind, and its length, which includes itself. */
const headBytes = 5

/** A `copy … from stdin`. */
export function copyIn(client: pg.ClientBase, text: string, bytes: readonly Buffer[]): Promise<void> {
  return new Promise((resolve, reject) => {
    client.query(new CopyIn(text, bytes, (error) => (error ? reject(error) : resolve())))
  })
}

class CopyIn extends pg.Query {
  readonly #bytes: readonly Buffer[]

  constructor(text: string, bytes: readonly Buffer[], done: (error: Error | undefined) => void) {
    super(text, done)
    this.#bytes = bytes
  }

  /** Called by the driver when the server is ready for the data. Sends all of it as one message. */
  handleCopyInResponse({ stream }: pg.Connection): void {
    const head = Buffer.from([copyData, 0, 0, 0, 0])
    const size = this.#bytes.reduce((sum, { length }) => sum + length, 0)
    head.writeInt32BE(size + headBytes - 1, 1)
    stream.cork()
    for (const piece of [head, ...this.#bytes, copyDone]) stream.write(piece)
    stream.uncork()
  }
}

/** Until undone, sends the data of a `copy … to stdout` to `take`; only other messages reach the driver. */
export function divert(stream: Duplex, take: (bytes: Buffer) => void): () => void {
  const driver = stream.listeners('data') as ((bytes: Buffer) => void)[]
  let head = Buffer.alloc(0)
  let left = 0
  let ours = false
  const pass = (bytes: Buffer) => {
    for (const listener of driver) listener(Buffer.from(bytes))
  }
  const sort = (piece: Buffer) => {
    for (let at = 0; at < piece.length; ) {
      if (left === 0) {
        const more = piece.subarray(at, at + headBytes - head.length)
        head = Buffer.concat([head, more])
        at += more.length
        if (head.length < headBytes) break
        ours = head[0] === copyData
        left = head.readInt32BE(1) - headBytes + 1
        if (!ours) pass(head)
        head = Buffer.alloc(0)
      }
      const part = piece.subarray(at, at + left)
      if (ours) take(part)
      else if (part.length > 0) pass(part)
      at += part.length
      left -= part.length
    }
    freeBuffer(piece)
  }
  stream.on('data', sort)
  for (const listener of driver) stream.off('data', listener)
  return () => {
    if (head.length > 0) pass(head)
    for (const listener of driver) stream.on('data', listener)
    stream.off('data', sort)
  }
}
