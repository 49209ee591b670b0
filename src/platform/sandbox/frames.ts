/** The socket link's language: one JSON document a line, in both directions. */
import type { Duplex } from 'node:stream'
import { z } from 'zod'
import { floodScopes, platformRefusals } from '../port.ts'
import { callParams, hello, type Method } from './calls.ts'

export const linkPath = '/sandbox/link'
export const linkProtocol = 'parley-sandbox'

/** A client's frame holds at most one call; a frame of the platform may hold a page of long messages. */
export const clientFrameBytesMax = 1024 * 1024
export const platformFrameBytesMax = 64 * 1024 * 1024

const frameId = z.int().nonnegative()

export const clientFrame = z.union([
  z.strictObject({ id: frameId, call: z.enum(Object.keys(callParams) as [Method]), params: z.unknown() }),
  z.strictObject({ taken: frameId }),
  z.strictObject({ id: frameId, connect: hello }),
])

const outcome = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('accepted'), value: z.unknown() }),
  z.strictObject({ kind: z.literal('refused'), reason: z.enum(platformRefusals) }),
  z.strictObject({
    kind: z.literal('flood_wait'),
    retry_after_seconds: z.number(),
    stops: z.enum(floodScopes),
  }),
  z.strictObject({ kind: z.literal('not_written'), reason: z.string() }),
  z.strictObject({ kind: z.literal('unknown'), reason: z.string() }),
])

export const platformFrame = z.union([
  z.strictObject({ id: frameId, outcome }),
  z.strictObject({
    batch: frameId,
    position: z.string(),
    caught_up: z.boolean(),
    updates: z.array(z.looseObject({ kind: z.string() })),
  }),
  z.strictObject({ closed: z.string() }),
])
export type PlatformFrame = z.infer<typeof platformFrame>

export function writeFrame(socket: Duplex, frame: object): void {
  // crash point 6: nothing of the frame is written
  if (socket.writable) socket.write(`${JSON.stringify(frame)}\n`)
  // crash point 6a: the frame is written
}

const newline = 0x0a

/** Passes on every complete line as JSON; calls `refuse` for a line that is too long or is not JSON. */
export function readFrames(
  socket: Duplex,
  head: Buffer,
  on: { readonly bytesMax: number; frame(value: unknown): void; refuse(): void },
): void {
  let parts: Buffer[] = []
  let length = 0
  let refused = false
  const refuse = () => {
    refused = true
    parts = []
    on.refuse()
  }
  const take = (bytes: Buffer) => {
    let start = 0
    for (let end = bytes.indexOf(newline); end !== -1 && !refused; end = bytes.indexOf(newline, start)) {
      const line = Buffer.concat([...parts, bytes.subarray(start, end)])
      parts = []
      length = 0
      start = end + 1
      const value = line.length > on.bytesMax ? undefined : parse(line)
      if (value === undefined) refuse()
      else on.frame(value)
    }
    if (refused) return
    if (start < bytes.length) parts.push(bytes.subarray(start))
    length += bytes.length - start
    if (length > on.bytesMax) refuse()
  }
  socket.on('data', take)
  if (head.length > 0) take(head)
}

function parse(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8'))
  } catch {
    return undefined
  }
}
