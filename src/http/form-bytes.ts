/** The bytes of a form as they arrive: reads them in pieces, cuts them at boundaries, counts them. */
import type { IncomingMessage } from 'node:http'
import { ApiError } from '../lib/errors.ts'
import { freeBuffer } from '../lib/free-buffer.ts'
import { invalid } from './form-head.ts'

interface Pieces {
  /** The next bytes, or undefined at the end of the body. */
  next(): Promise<Buffer | undefined>
  /** Stops listening and leaves the request paused, for the code that answers it. */
  close(): void
}

/** Pauses the request between two calls of `next`, so that no bytes pile up in memory. */
export function openPieces(raw: IncomingMessage, timeoutMs: number, stopping?: AbortSignal): Pieces {
  const waiting: Buffer[] = []
  let ended = raw.readableEnded
  let failure: ApiError | undefined
  let wake = () => {}
  const take = (piece: Buffer) => {
    raw.pause()
    waiting.push(piece)
    wake()
  }
  const end = () => {
    ended = true
    wake()
  }
  const fail = (error: ApiError) => {
    failure ??= error
    wake()
  }
  const lose = () => {
    if (!ended)
      fail(new ApiError('invalid_request', { detail: 'The body ended before its declared length.' }))
  }
  const timer = setTimeout(() => fail(new ApiError('request_timeout')), timeoutMs)
  const stop = () =>
    fail(new ApiError('store_unavailable', { detail: 'Parley is stopping. Send the file again.' }))
  stopping?.addEventListener('abort', stop) // guard: a stop ends an upload
  if (stopping?.aborted) stop()
  raw.pause()
  raw.on('data', take).once('end', end).once('error', lose).once('close', lose)
  return {
    async next() {
      // A client that disconnected before we listened causes no further event.
      if (raw.destroyed) lose()
      while (!failure && !ended && waiting.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
          raw.resume()
        })
      }
      if (failure) throw failure
      return waiting.shift()
    },
    close() {
      clearTimeout(timer)
      stopping?.removeEventListener('abort', stop)
      raw.off('data', take).off('end', end).off('error', lose).off('close', lose)
      raw.pause()
    },
  }
}

const lineEnd = Buffer.from('\r\n')
const headEnd = Buffer.from('\r\n\r\n')
const headBytesMax = 16 * 1024
/** All bytes but the file's: fields, headers, boundaries, and what precedes the first and follows the last. */
export const restBytesMax = 64 * 1024

/** A form's bytes in order. Where the network splits them does not change what is read or refused. */
export class FormBytes {
  readonly #pieces: Pieces
  readonly #delimiter: Buffer
  /** Starts with a line end, so that the first boundary is found like every other. */
  #held: Buffer = lineEnd
  /** The piece that the held bytes belong to. */
  #piece: Buffer = lineEnd
  #left = restBytesMax + lineEnd.length

  constructor(pieces: Pieces, boundary: string) {
    this.#pieces = pieces
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  }

  /** Skips everything before the first boundary. */
  async begin(): Promise<void> {
    await this.#collect(this.#delimiter, Number.POSITIVE_INFINITY)
  }

  /** The headers of the next part, or undefined after the last one. Anything else after a boundary is refused. */
  async nextHead(): Promise<Buffer | undefined> {
    if ((await this.#peek()) === '--') {
      await this.#finish()
      return undefined
    }
    const padding = await this.#collect(lineEnd, headBytesMax)
    if (!/^[ \t]*$/.test(padding.toString('latin1'))) throw misplacedBoundary()
    if ((await this.#peek()) === '\r\n') throw invalid('A part has no headers.')
    return this.#collect(headEnd, headBytesMax, () =>
      invalid(`The headers of a part are larger than ${headBytesMax.toLocaleString('en')} bytes.`),
    )
  }

  /** The part's whole content, up to the next boundary. */
  content(max: number, refusal: () => ApiError): Promise<Buffer> {
    return this.#collect(this.#delimiter, max, refusal)
  }

  /** The part's content up to the next boundary, as it arrives. A piece is freed when the caller asks for the next. */
  stream(): AsyncGenerator<Buffer> {
    return this.#upTo(this.#delimiter)
  }

  async #collect(mark: Buffer, max: number, refusal = misplacedBoundary): Promise<Buffer> {
    const most = Math.min(max, this.#left)
    const pieces: Buffer[] = []
    let size = 0
    for await (const piece of this.#upTo(mark)) {
      size += piece.length
      if (size > most) throw most < max ? restTooLarge() : refusal()
      pieces.push(Buffer.from(piece))
    }
    this.#spend(size)
    return Buffer.concat(pieces, size)
  }

  async *#upTo(mark: Buffer): AsyncGenerator<Buffer> {
    for (;;) {
      const at = this.#held.indexOf(mark)
      const end = at < 0 ? beginningOf(mark, this.#held) : at
      const piece = this.#held.subarray(0, end)
      this.#held = this.#held.subarray(at < 0 ? end : at + mark.length)
      if (piece.length > 0) yield piece
      if (at >= 0) return this.#spend(mark.length)
      await this.#more()
    }
  }

  /** After the last boundary comes a line end or the end of the body. Ignores and discards what follows. */
  async #finish(): Promise<void> {
    this.#spend(this.#held.length)
    let end = this.#held.toString('latin1', 2)
    for (let piece = await this.#pieces.next(); piece; piece = await this.#pieces.next()) {
      this.#spend(piece.length)
      end += piece.toString('latin1')
    }
    if (!/^[ \t]*(\r\n|$)/.test(end)) throw misplacedBoundary()
  }

  async #peek(): Promise<string> {
    while (this.#held.length < 2) await this.#more()
    return this.#held.toString('latin1', 0, 2)
  }

  async #more(): Promise<void> {
    const piece = await this.#pieces.next()
    if (!piece) throw invalid('The form ends before its last boundary.')
    const held = this.#held.length > 0 ? Buffer.concat([this.#held, piece]) : piece
    if (held !== piece) freeBuffer(piece)
    freeBuffer(this.#piece)
    this.#piece = held
    this.#held = held
  }

  #spend(size: number): void {
    this.#left -= size
    if (this.#left < 0) throw restTooLarge()
  }
}

/** Where, at the end of these bytes, a mark begins that the next ones may complete. Every mark begins with CR. */
function beginningOf(mark: Buffer, bytes: Buffer): number {
  let at = bytes.indexOf('\r', Math.max(0, bytes.length - mark.length + 1))
  while (at >= 0 && !bytes.subarray(at).equals(mark.subarray(0, bytes.length - at))) {
    at = bytes.indexOf('\r', at + 1)
  }
  return at < 0 ? bytes.length : at
}

/** Most parsers take `--boundaryX` for a boundary and lose the rest of the file. */
function misplacedBoundary(): ApiError {
  return invalid('The boundary of the form appears inside a part, or is followed by other text.')
}

function restTooLarge(): ApiError {
  return new ApiError('payload_too_large', {
    detail: `The form is larger than ${restBytesMax.toLocaleString('en')} bytes beside its file.`,
  })
}
