/** Separates the data of a copy from everything else, wherever the network cuts it. */
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { divert } from './copy.ts'

const copyData = 'd'.charCodeAt(0)
const message = fc.record({
  kind: fc.oneof(fc.constant(copyData), fc.integer({ min: 1, max: 255 })),
  body: fc.uint8Array({ maxLength: 40 }),
})
type Message = typeof message extends fc.Arbitrary<infer T> ? T : never

function bytesOf({ kind, body }: Message): Buffer {
  const head = Buffer.from([kind, 0, 0, 0, 0])
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

/** Cut at those places, each piece in memory of its own, as a socket delivers them. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((start, n) => Buffer.from(new Uint8Array(bytes.subarray(start, at[n]))))
}

describe('divert', () => {
  const given = fc.record({
    messages: fc.array(message, { maxLength: 12 }),
    places: fc.array(fc.nat(), { maxLength: 30 }),
    undone: fc.nat(),
  })

  test('delivers the copied data here and all else to the driver, and everything to the driver once undone', () => {
    fc.assert(
      fc.property(given, ({ messages, places, undone }) => {
        const stream = new PassThrough()
        const driver: Buffer[] = []
        const ours: Buffer[] = []
        stream.on('data', (bytes: Buffer) => driver.push(bytes))
        const undo = divert(stream, (bytes) => ours.push(Buffer.from(bytes)))
        for (const piece of cut(Buffer.concat(messages.map(bytesOf)), places)) stream.emit('data', piece)
        // The server may have started to send something by then.
        const next = bytesOf({ kind: 0x4e, body: Buffer.from('a notice') })
        const begun = undone % next.length
        if (begun > 0) stream.emit('data', Buffer.from(new Uint8Array(next.subarray(0, begun))))
        undo()
        stream.emit('data', next.subarray(begun))
        const copied = messages.filter(({ kind }) => kind === copyData)
        const others = messages.filter(({ kind }) => kind !== copyData)
        expect(Buffer.concat(ours)).toEqual(Buffer.concat(copied.map(({ body }) => body)))
        expect(Buffer.concat(driver)).toEqual(Buffer.concat([...others.map(bytesOf), next]))
        expect(stream.listenerCount('data')).toBe(1)
      }),
    )
  })
})
