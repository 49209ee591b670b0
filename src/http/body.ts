/** Reads request bodies, with limits on time and size, once the caller has passed the checks. */
import type { IncomingMessage } from 'node:http'
import { ApiError } from '../lib/errors.ts'
import { parseJson } from '../lib/text.ts'

const jsonBytesMax = 1024 * 1024
export const bodyMs = 30_000
const drainMsMax = 10_000
const drainBytesMax = 64 * 1024 * 1024

/** What reading a body needs to know about a route. */
interface BodyRules {
  readonly method: string
  /** Whether it takes a body. */
  readonly body?: unknown
  /** Whether it also takes a form, which is read elsewhere. */
  readonly form?: unknown
  readonly body_limit?: number
}

/** The JSON body of an operation, or undefined if it takes none. */
export async function readBody(raw: IncomingMessage, route: BodyRules, timeoutMs = bodyMs): Promise<unknown> {
  if (route.method === 'GET') return undefined
  const limit = route.body_limit ?? jsonBytesMax
  if (route.body) requireJson(raw, route)
  const bytes = await readBytes(raw, limit, timeoutMs)
  if (!route.body) return requireNothing(bytes)
  if (bytes.length === 0) throw new ApiError('invalid_request', { detail: 'A JSON body is required.' })
  return parseJson(bytes)
}

function requireJson(raw: IncomingMessage, { form }: BodyRules): void {
  const type = raw.headers['content-type'] ?? ''
  const encoding = raw.headers['content-encoding'] ?? 'identity'
  if (!/^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(type) || encoding !== 'identity') {
    throw new ApiError('unsupported_media_type', {
      detail: `The body must be application/json in UTF-8${form ? ', or multipart/form-data' : ''}, not compressed.`,
    })
  }
}

/** Accepts no body, an empty one, or `{}`. */
function requireNothing(bytes: Buffer): undefined {
  if (bytes.length > 0 && !/^\s*(\{\s*\}\s*)?$/.test(bytes.toString('latin1'))) {
    throw new ApiError('invalid_request', { detail: 'This operation accepts no body.' })
  }
}

function readBytes(raw: IncomingMessage, limit: number, timeoutMs: number): Promise<Buffer> {
  const tooLarge = () =>
    new ApiError('payload_too_large', {
      detail: `The body is larger than ${limit.toLocaleString('en')} bytes.`,
    })
  if (Number(raw.headers['content-length'] ?? 0) > limit) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const timer = setTimeout(() => settle(new ApiError('request_timeout')), timeoutMs)
    const settle = (error?: Error) => {
      clearTimeout(timer)
      raw.off('data', take).off('end', settle).off('error', lose).off('close', lose)
      raw.pause()
      if (error) reject(error)
      else resolve(Buffer.concat(chunks, size))
    }
    const take = (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) settle(tooLarge())
      else chunks.push(chunk)
    }
    const lose = () =>
      settle(new ApiError('invalid_request', { detail: 'The body ended before its declared length.' }))
    raw.on('data', take).once('end', settle).once('error', lose).once('close', lose)
  })
}

/** Lets a client finish sending, within limits, so that it can read the answer. */
export function drain(raw: IncomingMessage): Promise<void> {
  // Do not wait for a client that has disconnected.
  if (raw.destroyed) return Promise.resolve()
  return new Promise((resolve) => {
    let size = 0
    const timer = setTimeout(resolve, drainMsMax)
    const stop = () => {
      clearTimeout(timer)
      resolve()
    }
    raw.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > drainBytesMax) stop()
    })
    raw.once('end', stop).once('close', stop).once('error', stop).resume()
  })
}
