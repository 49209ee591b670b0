/** Reads request bodies, with limits on time and size, once the caller has passed the checks. */
import type { IncomingMessage } from 'node:http'
import { ApiError } from '../lib/errors.ts'
import { freeBuffer } from '../lib/free-buffer.ts'
import { largeBytes, parseLargeJson } from '../lib/large-json.ts'
import { parseJson } from '../lib/text.ts'
import { BodyBudget, type HeldBody } from './body-budget.ts'

const jsonBytesMax = 1024 * 1024
export const bodyMs = 30_000
const drainMsMax = 10_000
const drainBytesMax = 64 * 1024 * 1024

/** Of JSON bodies, until they are answered. A workspace may have four of the largest at once. */
const heldBytesMax = { eachMax: 32 * 1024 * 1024, allMax: 128 * 1024 * 1024 }
const budget = new BodyBudget(heldBytesMax)

/** What reading a body needs to know about a route. */
interface BodyRules {
  readonly method: string
  /** Whether it takes a body. */
  readonly body?: unknown
  /** Whether it also takes a form, which is read elsewhere. */
  readonly form?: unknown
  readonly body_limit?: number
}

/** Who sends a body. */
export interface BodySender {
  /** Whose share of the memory it takes: a workspace, or a user or an address outside one. */
  readonly source: string
  readonly timer?: (ms: number, done: () => void) => () => void
  /** Aborted once the caller has left. */
  readonly left?: (() => AbortSignal) | undefined
  /** Called when the request has been answered, or the caller has left. */
  readonly onEnd: (act: () => void) => void
}

/** The JSON body of an operation, or undefined if it takes none. */
export async function readBody(
  raw: IncomingMessage,
  route: BodyRules,
  sender: BodySender,
  timeoutMs = bodyMs,
): Promise<unknown> {
  if (route.method === 'GET') return undefined
  const limit = route.body_limit ?? jsonBytesMax
  if (route.body) requireJson(raw, route)
  const bytes = await readBytes(raw, { limit, sender, timeoutMs })
  if (!route.body) return requireNothing(bytes)
  if (bytes.length === 0) throw new ApiError('invalid_request', { detail: 'A JSON body is required.' })
  if (bytes.length <= largeBytes) return parseJson(bytes)
  const { source, timer = setTimer } = sender
  return parseLargeJson(bytes, { source, timer, left: sender.left?.() }) // guard: large bodies are parsed in a thread
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

interface ByteRules {
  readonly limit: number
  readonly sender: BodySender
  readonly timeoutMs: number
}

function readBytes(raw: IncomingMessage, { limit, sender, timeoutMs }: ByteRules): Promise<Buffer> {
  const tooLarge = () =>
    new ApiError('payload_too_large', {
      detail: `The body is larger than ${limit.toLocaleString('en')} bytes.`,
    })
  if (Number(raw.headers['content-length'] ?? 0) > limit) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const timer = setTimeout(() => settle(new ApiError('request_timeout')), timeoutMs)
    const held: HeldBody = budget.open(sender.source, () => settle(tooMuch()))
    sender.onEnd(() => held.release()) // guard: an answered body is free
    const settle = (error?: Error) => {
      clearTimeout(timer)
      raw.off('data', take).off('end', settle).off('error', lose).off('close', lose)
      raw.pause()
      held.arrived()
      // Buffers live outside V8's heap, where much gathers before they are collected.
      const bytes = error ? undefined : joined(chunks, size)
      for (const chunk of chunks.splice(0)) if (chunk !== bytes) freeBuffer(chunk)
      if (bytes) return resolve(bytes)
      held.release()
      reject(error)
    }
    const take = (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) return settle(tooLarge())
      chunks.push(chunk)
      held.take(chunk.length)
    }
    const lose = () =>
      settle(new ApiError('invalid_request', { detail: 'The body ended before its declared length.' }))
    raw.on('data', take).once('end', settle).once('error', lose).once('close', lose)
  })
}

/** A large one has memory of its own, which can be moved to a thread. */
function joined(chunks: readonly Buffer[], size: number): Buffer {
  const [first] = chunks
  if (first && chunks.length === 1 && size <= largeBytes) return first
  const bytes = Buffer.allocUnsafeSlow(size)
  let at = 0
  for (const chunk of chunks) at += chunk.copy(bytes, at)
  return bytes
}

function setTimer(ms: number, done: () => void): () => void {
  const timer = setTimeout(done, ms)
  return () => clearTimeout(timer)
}

function tooMuch(): ApiError {
  return new ApiError('rate_limited', {
    detail: 'Too much data is arriving in other requests at the same time. Retry in a few seconds.',
    retry_after: 5,
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
