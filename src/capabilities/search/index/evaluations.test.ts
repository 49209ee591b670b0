import { expect, test } from 'vitest'
import type { PackedSegment } from './evaluate-packed.ts'
import { evaluateSegments } from './evaluations.ts'
import { encodeList } from './posting-lists.ts'
import { nameOfRange } from './terms.ts'

const range = { low: 'a', high: 'a' }

/** A segment with one list of this many documents, as the database returns it. */
function segmentOf(documents: number): PackedSegment {
  const docIds = Array.from({ length: documents }, (_, at) => at * 2)
  const bytes = encodeList(docIds, { positions: false })
  const head = Buffer.alloc(8)
  head.writeInt32BE(bytes.length, 0)
  head.writeInt32BE(bytes.length, 4)
  const packed = `\\x${Buffer.concat([head, bytes]).toString('hex')}`
  return { query: { must: [[[[range]]]], mustNot: [] }, lists: [[nameOfRange(range), packed]] }
}

/** The matches, and whether the event loop did other work before they were there. */
async function evaluate(documents: number) {
  let isFree = false
  setImmediate(() => {
    isFree = true
  })
  const evaluations = await evaluateSegments([segmentOf(documents), segmentOf(0)])
  return { found: evaluations.map(({ docIds }) => [docIds.length, docIds.at(-1)]), isFree }
}

test('long posting lists leave the event loop free', async () => {
  expect(await evaluate(100_000)).toEqual({
    found: [
      [100_000, 199_998],
      [0, undefined],
    ],
    isFree: true,
  })
})

test('short ones are evaluated at once', async () => {
  expect(await evaluate(100)).toEqual({
    found: [
      [100, 198],
      [0, undefined],
    ],
    isFree: false,
  })
})
