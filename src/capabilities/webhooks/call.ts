/** One HTTP call to an endpoint. It connects only to checked addresses, and ends within its time limit. */
import type { LookupFunction, Socket } from 'node:net'
import { Agent, type Dispatcher } from 'undici'
import { type AllowedHosts, HostRefused, type Resolve, requireAddresses } from '../../lib/public-hosts.ts'
import { userAgent } from '../../lib/version.ts'
import { readRetryAfter } from './schedule.ts'
import { readTarget } from './url-rules.ts'

const callMsMax = 15_000 // limit: webhook call
const headerBytesMax = 16 * 1024
const bodyBytesRead = 64 * 1024
const bodyBytesKept = 2 * 1024
/** How much is read from a socket at once and buffered. Responses are short, and most have no body at all. */
const socketBytes = 8 * 1024
/**
 * All sockets read into this one buffer and keep a copy of what arrived. Otherwise every readable socket gets its own 64
 * KiB: hundreds of endless responses at once would fill the memory.
 */
const sharedRead = {
  buffer: Buffer.alloc(socketBytes),
  callback(this: Socket, size: number, buffer: Uint8Array): boolean {
    return this.push(Buffer.from(buffer.subarray(0, size)))
  },
}
/** Idle connections close soon, so that a name that moved is looked up again. */
const idleMs = 4_000

const problems = [
  'timeout',
  'refused',
  'unreachable',
  'reset',
  'dns',
  'tls',
  'blocked_address',
  'too_large',
  'invalid_response',
  // The endpoint's secret cannot be opened, so nothing was sent.
  'unsigned',
] as const
type Problem = (typeof problems)[number]

/** How a call ended. A status without a problem is a response, whatever it says. */
export interface CallOutcome {
  readonly status: number | null
  readonly error: Problem | null
  readonly ms: number
  /** The beginning of the response as text, unless it was a success. */
  readonly response: string | null
  /** Seconds. */
  readonly retry_after: number | null
}

interface NewCall {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

interface CallerOptions {
  readonly allow: AllowedHosts
  readonly resolve?: Resolve
  /** Certificate authorities besides the default ones. */
  readonly ca?: string
}

export class HttpCaller {
  readonly #allow: AllowedHosts
  readonly #agent: Agent

  constructor({ allow, resolve, ca }: CallerOptions) {
    this.#allow = allow
    const connect = {
      lookup: checkedLookup(allow, resolve),
      timeout: callMsMax,
      autoSelectFamily: true,
      highWaterMark: socketBytes,
      onread: sharedRead, // guard: one buffer for all sockets
      // Even if the environment says otherwise.
      rejectUnauthorized: true,
      ...(ca !== undefined && { ca }),
    }
    this.#agent = new Agent({
      connect,
      allowH2: false,
      maxHeaderSize: headerBytesMax,
      // Only the call's own limit counts: a trickle of bytes would reset these.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
    })
  }

  /** Undefined if `stopping` cut it off: then the outcome is unknown. */
  async post(call: NewCall, stopping?: AbortSignal): Promise<CallOutcome | undefined> {
    const startedAt = performance.now()
    const ended = new AbortController()
    let late = false
    const timer = setTimeout(() => {
      late = true
      ended.abort()
    }, callMsMax)
    // Not AbortSignal.any(): a signal derived from a long-lived one lives as long as that does.
    const cut = () => ended.abort()
    stopping?.addEventListener('abort', cut)
    if (stopping?.aborted) cut()
    let status: number | null = null
    try {
      const target = readTarget(call.url, this.#allow)
      // A literal address is never looked up, so the hook below would not see it.
      if (typeof target === 'string') throw new CallProblem('blocked_address') // guard: url checked at every call
      const { signal } = ended
      const answer = await Promise.race([this.#request(target.url, call, signal), rejectionOf(signal)])
      status = answer.statusCode
      const response = await readBeginning(answer)
      const ms = msSince(startedAt)
      const retry_after = readRetryAfter(one(answer.headers['retry-after']), Date.now())
      return { status, error: null, ms, response, retry_after }
    } catch (error) {
      if (stopping?.aborted && !late) return undefined
      const problem = late ? 'timeout' : problemOf(error)
      return { status, error: problem, ms: msSince(startedAt), response: null, retry_after: null }
    } finally {
      clearTimeout(timer)
      stopping?.removeEventListener('abort', cut)
    }
  }

  /** Aborts the calls that are left. */
  async close(): Promise<void> {
    await this.#agent.destroy()
  }

  #request(url: URL, { headers, body }: NewCall, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    return this.#agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': userAgent,
        accept: '*/*',
        'accept-encoding': 'identity',
        ...headers,
      },
      body: Buffer.from(body),
      highWaterMark: socketBytes,
      signal,
    })
  }
}

/** A request that waits for its connection ignores the signal. It is aborted once it is connected. */
function rejectionOf(signal: AbortSignal): Promise<never> {
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  aborted.catch(() => {})
  return aborted
}

export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status <= 299
}

class CallProblem extends Error {
  override readonly name = 'CallProblem'
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem)
    this.problem = problem
  }
}

/** The look-up for net.connect: returns only permitted addresses, or the problem. */
function checkedLookup(allow: AllowedHosts, resolve: Resolve | undefined): LookupFunction {
  return (hostname, _options, callback) => {
    const name = hostname.replace(/\.$/, '')
    requireAddresses(name, allow, resolve).then(
      (addresses) =>
        callback(
          null,
          addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        ),
      (error) => callback(error, []),
    )
  }
}

/** Reads no more than the limit, and keeps the beginning unless it was a success. Leaving early closes the connection. */
async function readBeginning({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<string | null> {
  const kept: Buffer[] = []
  let size = 0
  // Reading a long body to its end, only to reuse the connection, is not worth it.
  const enough = Number(one(headers['content-length'])) > bodyBytesRead ? bodyBytesKept : bodyBytesRead
  for await (const chunk of body) {
    // A copy, because a slice would keep the whole chunk in memory.
    if (size < bodyBytesKept) kept.push(Buffer.from(chunk.subarray(0, bodyBytesKept - size)))
    size += chunk.length
    if (size >= enough) break
  }
  if (isSuccess(statusCode)) return null
  return Buffer.concat(kept)
    .toString('utf8')
    .replaceAll(/\p{Cc}/gu, '\ufffd')
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}

function msSince(startedAt: number): number {
  return Math.round(performance.now() - startedAt)
}

/** Matched by the error's code, never by its message, which may quote what the receiver sent. */
const patterns: readonly (readonly [RegExp, Problem])[] = [
  [/^(UND_ERR_HEADERS_OVERFLOW|HPE_HEADER_OVERFLOW)$/, 'too_large'],
  [/^(UND_ERR_\w*TIMEOUT|ETIMEDOUT)$/, 'timeout'],
  [/^ECONNREFUSED$/, 'refused'],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ENETDOWN|EACCES|EPERM)$/, 'unreachable'],
  [/^(ECONNRESET|EPIPE|ECONNABORTED|UND_ERR_SOCKET)$/, 'reset'],
  [/CERT|^ERR_(TLS|SSL)|UNABLE_TO|HOSTNAME_MISMATCH|^EPROTO$|INVALID_CA|PATH_LENGTH|INVALID_PURPOSE/, 'tls'],
]

function problemOf(error: unknown): Problem {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (each instanceof CallProblem || each instanceof HostRefused) return each.problem
    const [first] = (each as AggregateError).errors ?? []
    const code = String((each as { code?: unknown }).code ?? first?.code ?? '')
    const known = patterns.find(([pattern]) => pattern.test(code))
    if (known) return known[1]
  }
  return 'invalid_response'
}
