/** Reads text files: stored in chunks as they arrive, as the file of a form is, so that no size of them fills the memory. */
import type { IncomingMessage } from 'node:http'
import { ApiError } from '../lib/errors.ts'
import { freeBuffer } from '../lib/free-buffer.ts'
import { newId } from '../lib/ids.ts'
import { TextFile } from '../route.ts'
import { openPieces } from './form-bytes.ts'
import { parseParameters } from './form-head.ts'
import { type FormOptions, fileMs, inChunks } from './multipart.ts'

const textBytesMax = 64 * 1_048_576

export interface TextOptions extends Pick<FormOptions, 'store' | 'drop' | 'timeoutMs'> {
  readonly type: string
  /** Aborted once the service stops. */
  readonly stopping?: AbortSignal
}

/** Whether the request says that its body is a text of this type. */
export function isText(raw: IncomingMessage, type: string): boolean {
  return (raw.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() === type
}

/** A refusal leaves nothing stored and the request paused. */
export async function readTextFile(
  raw: IncomingMessage,
  { type, store, drop, stopping, timeoutMs = fileMs }: TextOptions,
): Promise<TextFile> {
  requireText(raw, type)
  const declared = Number(raw.headers['content-length'] ?? 0)
  if (declared > textBytesMax) throw tooLarge()
  const pieces = openPieces(raw, timeoutMs, stopping)
  const file_id = newId()
  try {
    let n = 0
    const max = textBytesMax // guard: bytes of a text file
    for await (const bytes of inChunks(each(pieces), max, tooLarge)) {
      await store({ file_id, n: n++, bytes })
    }
    if (n === 0) throw new ApiError('invalid_request', { detail: `A ${type} body is required.` })
    return new TextFile(file_id)
  } catch (error) {
    await drop(file_id) // guard: nothing of a refused text stays stored
    throw error
  } finally {
    pieces.close()
  }
}

function requireText(raw: IncomingMessage, type: string): void {
  const charset = parseParameters(raw.headers['content-type'] ?? '')?.get('charset') ?? 'utf-8'
  const isPlain = (raw.headers['content-encoding'] ?? 'identity') === 'identity'
  const sound = isText(raw, type) && /^(utf-?8|us-ascii)$/i.test(charset) && isPlain // guard: media type of a text file
  if (!sound) {
    throw new ApiError('unsupported_media_type', {
      detail: `The body must be ${type} in UTF-8, not compressed.`,
    })
  }
}

async function* each(pieces: ReturnType<typeof openPieces>): AsyncGenerator<Buffer> {
  for (let piece = await pieces.next(); piece; piece = await pieces.next()) {
    yield piece
    freeBuffer(piece)
  }
}

function tooLarge(): ApiError {
  return new ApiError('payload_too_large', {
    detail: `The file is larger than ${textBytesMax / 1_048_576} MiB.`,
  })
}
