import { createHash, randomBytes } from 'node:crypto'
import type { tl } from '@mtcute/core'
import { expect, test } from 'vitest'
import { upload } from './upload.ts'

/** What Telegram would have: the parts by number, with their bytes at the time of the call and now. */
function takeParts({ fail = () => false }: { fail?: (part: number) => boolean } = {}) {
  const parts = new Map<number, Uint8Array>()
  const totals = new Set<number | undefined>()
  let flying = 0
  let flyingMax = 0
  const call = async (request: tl.RpcMethod) => {
    if (request._ !== 'upload.saveFilePart' && request._ !== 'upload.saveBigFilePart')
      throw new Error(request._)
    flyingMax = Math.max(flyingMax, ++flying)
    await new Promise((resolve) => setImmediate(resolve))
    flying--
    if (fail(request.filePart)) throw new Error('Session is reset')
    parts.set(request.filePart, request.bytes)
    totals.add(request._ === 'upload.saveBigFilePart' ? request.fileTotalParts : undefined)
    return true
  }
  const sha256 = () => {
    const hash = createHash('sha256')
    for (const [, bytes] of [...parts].sort(([a], [b]) => a - b)) hash.update(bytes)
    return hash.digest('hex')
  }
  return { call: call as never, parts, totals, sha256, flyingMax: () => flyingMax }
}

/** Chunks of odd lengths that all share one buffer, as a reader that reuses its memory returns them. */
async function* reusedChunks(bytes: Uint8Array, length = 100_003): AsyncGenerator<Uint8Array> {
  const shared = new Uint8Array(length)
  for (let at = 0; at < bytes.length; at += length) {
    const piece = bytes.subarray(at, at + length)
    shared.set(piece)
    yield shared.subarray(0, piece.length)
    shared.fill(0)
  }
}

const file = { file_name: 'offer.pdf', media_type: 'application/pdf' }
const tenMiB = 10 * 1024 * 1024

test.each([1, 262_143, 262_144, 262_145, tenMiB - 1, tenMiB, tenMiB + 1])(
  'uploads a file of %d bytes whole from reused chunks',
  async (size) => {
    const bytes = randomBytes(size)
    const telegram = takeParts()
    const outcome = await upload({ ...file, size, chunks: reusedChunks(bytes) }, telegram)
    expect(telegram.sha256()).toBe(createHash('sha256').update(bytes).digest('hex'))
    const count = Math.ceil(size / 262_144)
    expect(telegram.totals).toEqual(new Set([size > tenMiB ? count : undefined]))
    expect(telegram.flyingMax()).toBeLessThanOrEqual(4)
    expect(outcome).toMatchObject({
      kind: 'accepted',
      value: {
        _: 'inputMediaUploadedDocument',
        forceFile: true,
        mimeType: 'application/pdf',
        file: { _: size > tenMiB ? 'inputFileBig' : 'inputFile', parts: count, name: 'offer.pdf' },
      },
    })
  },
)

test('also copies a chunk as long as a part', async () => {
  const bytes = randomBytes(600_000)
  const telegram = takeParts()
  await upload({ ...file, size: bytes.length, chunks: reusedChunks(bytes, 262_144) }, telegram)
  expect(telegram.sha256()).toBe(createHash('sha256').update(bytes).digest('hex'))
})

test.each([
  ['empty', 0, 0],
  ['shorter', 300_000, 299_999],
  ['longer', 300_000, 300_001],
])('refuses a file that is %s than announced', async (_, size, length) => {
  const chunks = reusedChunks(randomBytes(length))
  const outcome = await upload({ ...file, size, chunks }, takeParts())
  expect(outcome).toEqual({ kind: 'refused', reason: 'message_invalid' })
})

test('a part that fails ends the upload, and no further part starts', async () => {
  const telegram = takeParts({ fail: (part) => part === 2 })
  const bytes = randomBytes(tenMiB)
  const outcome = await upload({ ...file, size: tenMiB, chunks: reusedChunks(bytes) }, telegram)
  expect(outcome).toMatchObject({ kind: 'unknown' })
  expect(telegram.parts.size).toBeLessThan(10)
})
