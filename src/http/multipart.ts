/** Reads forms with one file: in order, strictly, with at most two chunks of the file in memory. */

import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type Chunk, chunkBytes } from '../ledger/files.ts'
import { ApiError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { quote } from '../lib/text.ts'
import type { FormFile } from '../route.ts'
import { fileBytesMax } from '../rules/limits.ts'
import { FormBytes, openPieces, restBytesMax } from './form-bytes.ts'
import { decodeText, type Head, parseHead, parseMediaType, parseParameters, placeOf } from './form-head.ts'

/** How long a file may take to arrive. */
export const fileMs = 120_000
/** The longest text that the contract allows: 4,096 characters of four bytes. */
const fieldBytesMax = 16 * 1024
const fieldNames = ['account_id', 'chat_id', 'text']
const deniedTypes = ['multipart/*', 'message/*']

type Fields = Readonly<Record<string, string>>

export interface Form {
  readonly fields: Fields
  readonly attachment: FormFile
  /** Why the file was read but not stored. */
  readonly refusal: ApiError | undefined
}

export interface FormOptions {
  /** Called before the first byte of the file is stored, with the fields before it. Returns why not to store the file. */
  readonly refuse?: (fields: Fields) => Promise<ApiError | undefined>
  /** The chunk's bytes are valid until the promise resolves. 429: there is no room for the file. */
  readonly store: (chunk: Chunk) => Promise<void>
  /** Deletes the stored chunks of a file. */
  readonly drop: (file_id: string) => Promise<void>
  readonly timeoutMs?: number
  /** Media types that are refused; `type/*` stands for all of a type. */
  readonly denied?: readonly string[]
}

export function isForm(raw: IncomingMessage): boolean {
  return /^multipart\/form-data[ \t]*(;|$)/i.test(raw.headers['content-type'] ?? '')
}

/**
 * Reads a form with exactly one file in the field `attachments`, and passes the file on in chunks while it arrives. A refusal
 * leaves the request paused and nothing of the file stored.
 *
 * A file that will not be stored is still read to its end: errors in the form come before errors of the account, and only
 * the bytes show whether the file repeats an earlier one.
 */
export async function readForm(raw: IncomingMessage, options: FormOptions): Promise<Form> {
  const boundary = requireBoundary(raw)
  const pieces = openPieces(raw, options.timeoutMs ?? fileMs)
  try {
    const declared = Number(raw.headers['content-length'] ?? 0)
    return await readParts(new FormBytes(pieces, boundary), { ...options, declared })
  } finally {
    pieces.close()
  }
}

function requireBoundary(raw: IncomingMessage): string {
  if (!isForm(raw) || (raw.headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new ApiError('unsupported_media_type', {
      detail: 'The body must be multipart/form-data, not compressed.',
    })
  }
  const boundary = parseParameters(raw.headers['content-type'] ?? '')?.get('boundary') ?? ''
  if (!/^[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]$/.test(boundary)) {
    throw invalid('The content type must give the form boundary: 1 to 70 characters.')
  }
  return boundary
}

type Reading = FormOptions & { readonly declared: number }
type FilePart = Pick<Form, 'attachment' | 'refusal'>

async function readParts(bytes: FormBytes, reading: Reading): Promise<Form> {
  const fields: Record<string, string> = {}
  let kept: FilePart | undefined
  try {
    await bytes.begin()
    for (let head = await bytes.nextHead(); head; head = await bytes.nextHead()) {
      const part = parseHead(head)
      if (isFile(part)) {
        if (kept) throw unsupported('Exactly one file is allowed, and attachments has more.')
        kept = await keepFile(bytes, part, { ...reading, fields })
      } else {
        requireExpected(part.name, fields)
        fields[part.name] = await readField(bytes, part)
      }
    }
    if (!kept) throw unsupported('A file is required in the field attachments.')
    return { fields, ...kept }
  } catch (error) {
    if (kept) await reading.drop(kept.attachment.file_id)
    throw error
  }
}

/** A file has a name, or at least a type that no text field has. */
function isFile({ name, file_name, content_type = 'text/plain' }: Head): boolean {
  const typed = name === 'attachments' && !/^text\/plain[ \t]*(;|$)/i.test(content_type)
  if (file_name === undefined && !typed) return false
  if (name !== 'attachments') {
    throw unsupported(`The file belongs in the field attachments, not in ${placeOf(name)}.`)
  }
  return true
}

function requireExpected(name: string, fields: Readonly<Record<string, string>>): void {
  if (name === 'attachments') throw unsupported('attachments must be a file, with a file name.')
  if (!fieldNames.includes(name)) throw invalid(`Unknown field: ${quote(name)}.`)
  if (name in fields) throw invalid(`The field ${name} appears twice.`)
}

async function readField(bytes: FormBytes, { name, content_type }: Head): Promise<string> {
  const charset = parseParameters(content_type ?? '')?.get('charset') ?? 'utf-8'
  if (!/^(utf-?8|us-ascii)$/i.test(charset)) throw invalid(`${name} must be in UTF-8.`)
  const tooLong = () => invalid(`${name} is larger than ${fieldBytesMax.toLocaleString('en')} bytes.`)
  return decodeText(await bytes.content(fieldBytesMax, tooLong), name)
}

async function keepFile(
  bytes: FormBytes,
  { file_name, content_type }: Head,
  { denied = deniedTypes, declared, ...reading }: Reading & { readonly fields: Fields },
): Promise<FilePart> {
  const media_type = parseMediaType(content_type ?? 'application/octet-stream')
  if (denied.includes(media_type) || denied.includes(media_type.replace(/\/.*/, '/*'))) {
    throw unsupported(`Files of the media type ${media_type} are not accepted in attachments.`)
  }
  // The declared length is already too large, so nothing is stored.
  if (declared > fileBytesMax + restBytesMax) throw new ApiError('attachment_too_large')
  const file_id = newId()
  try {
    const { size, sha256, refusal } = await storeFile(bytes, file_id, reading)
    if (size === 0) throw unsupported('The file in attachments is empty.')
    return { attachment: { file_id, file_name: file_name || 'file', media_type, size, sha256 }, refusal }
  } catch (error) {
    await reading.drop(file_id)
    throw error
  }
}

async function storeFile(
  bytes: FormBytes,
  file_id: string,
  { refuse, store, drop, fields }: FormOptions & { readonly fields: Fields },
): Promise<Pick<FormFile, 'size' | 'sha256'> & Pick<Form, 'refusal'>> {
  const hash = createHash('sha256')
  let size = 0
  let refusal = await refuse?.(fields)
  const tooLarge = () => new ApiError('attachment_too_large')
  for await (const chunk of inChunks(bytes.stream(), fileBytesMax, tooLarge)) {
    hash.update(chunk)
    const n = Math.floor(size / chunkBytes)
    size += chunk.length
    if (refusal) continue
    refusal = await store({ file_id, n, bytes: chunk }).then(() => undefined, requireFull)
    if (refusal) await drop(file_id)
  }
  return { size, sha256: hash.digest('hex'), refusal }
}

function requireFull(error: unknown): ApiError {
  if (error instanceof ApiError && error.code === 'rate_limited') return error
  throw error
}

/** Chunks of one size, the last one smaller. They share one buffer, so each overwrites the one before. */
export async function* inChunks(
  pieces: AsyncIterable<Buffer>,
  bytesMax: number,
  tooLarge: () => ApiError,
): AsyncGenerator<Buffer> {
  let size = 0
  let chunk: Buffer | undefined
  let used = 0
  for await (const piece of pieces) {
    size += piece.length
    if (size > bytesMax) throw tooLarge()
    for (let at = 0; at < piece.length; ) {
      chunk ??= Buffer.allocUnsafeSlow(chunkBytes)
      const copied = piece.copy(chunk, used, at)
      at += copied
      used += copied
      if (used < chunkBytes) continue
      yield chunk
      used = 0
    }
  }
  if (chunk && used > 0) yield chunk.subarray(0, used)
}

function unsupported(detail: string): ApiError {
  return new ApiError('unsupported_attachment', { detail })
}

function invalid(detail: string): ApiError {
  return new ApiError('invalid_request', { detail })
}
