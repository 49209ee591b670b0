/** Uploads a file in parts before the message that carries it is sent. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { tl } from '@mtcute/core'
import Long from 'long'
import type { Outcome, Upload } from '../port.ts'
import { findSeconds, outcomeOf, Refused } from './errors.ts'

const partBytes = 256 * 1024
const flyingMax = 4
const partMsMax = 20_000
/** From this size on Telegram requires the number of parts with each of them. */
const bigFrom = 10 * 1024 * 1024 + 1
/** Telegram slows accounts without Premium down between parts. A longer wait is returned to the caller. */
const waitSecondsMax = 10
const triesMax = 5

interface UploadOptions {
  call<T extends tl.RpcMethod>(request: T, msMax?: number): Promise<tl.RpcCallReturn[T['_']]>
}

export async function upload(file: Upload, { call }: UploadOptions): Promise<Outcome<tl.TypeInputMedia>> {
  const { file_name: name, media_type: mimeType, size, chunks } = file
  const fileId = Long.fromBytesLE([...randomBytes(8)])
  const parts = Math.ceil(size / partBytes)
  const isBig = size >= bigFrom
  const flights = new Flights(flyingMax)
  const put = (bytes: Uint8Array, filePart: number) =>
    patiently(() =>
      isBig
        ? call({ _: 'upload.saveBigFilePart', fileId, filePart, fileTotalParts: parts, bytes }, partMsMax)
        : call({ _: 'upload.saveFilePart', fileId, filePart, bytes }, partMsMax),
    )
  try {
    let next = 0
    for await (const bytes of partsOf(chunks, size)) {
      const filePart = next++
      await flights.add(() => put(bytes, filePart))
    }
    await flights.landed()
  } catch (error) {
    return outcomeOf(error, 'sends')
  }
  const input: tl.TypeInputFile = isBig
    ? { _: 'inputFileBig', id: fileId, parts, name }
    : { _: 'inputFile', id: fileId, parts, name, md5Checksum: '' }
  const media: tl.TypeInputMedia = {
    _: 'inputMediaUploadedDocument',
    file: input,
    mimeType,
    forceFile: true,
    attributes: [{ _: 'documentAttributeFilename', fileName: name }],
  }
  return { kind: 'accepted', value: media }
}

/** Parts of one length except the last. Each has its own buffer, because a chunk is valid only until the next. */
async function* partsOf(chunks: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let left = size
  let part = new Uint8Array(Math.min(partBytes, left))
  let filled = 0
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      if (left === 0) throw new Refused('message_invalid')
      const bytes = chunk.subarray(at, at + part.length - filled)
      part.set(bytes, filled) // guard: parts are copied
      filled += bytes.length
      at += bytes.length
      if (filled < part.length) continue
      yield part
      left -= filled
      part = new Uint8Array(Math.min(partBytes, left))
      filled = 0
    }
  }
  // The file is empty, or shorter than announced.
  if (size === 0 || left > 0) throw new Refused('message_invalid')
}

/** Runs a few tasks at a time. The first failure is thrown when the next would start, and nothing starts after it. */
class Flights {
  readonly #most: number
  readonly #flying = new Set<Promise<void>>()
  #failure: { readonly error: unknown } | undefined

  constructor(most: number) {
    this.#most = most
  }

  async add(work: () => Promise<void>): Promise<void> {
    while (this.#flying.size >= this.#most) await Promise.race(this.#flying)
    this.#check()
    const flight: Promise<void> = work()
      .catch((error) => {
        this.#failure ??= { error }
      })
      .finally(() => this.#flying.delete(flight))
    this.#flying.add(flight)
  }

  async landed(): Promise<void> {
    await Promise.all(this.#flying)
    this.#check()
  }

  #check(): void {
    if (this.#failure) throw this.#failure.error
  }
}

async function patiently(put: () => Promise<boolean>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      if (await put()) return
      throw new Error('A part was not accepted.')
    } catch (error) {
      const seconds = findSeconds(error)
      if (seconds === undefined || seconds > waitSecondsMax || tries >= triesMax) throw error
      await sleep(seconds * 1000)
    }
  }
}
