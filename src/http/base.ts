/** What all our servers have in common: limits, request ids, rate headers, one form of failure, a log line. */
import { METHODS } from 'node:http'
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import type { Logger } from 'pino'
import { makeLog } from '../access/limits.ts'
import type { Window } from '../app.ts'
import type { AnyCaller } from '../contract.ts'
import { type Network, sourceOf } from '../lib/addresses.ts'
import { ApiError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { hideTokens } from '../lib/text.ts'
import { readTraceparent, type Traceparent, traceFacts } from '../lib/traceparent.ts'
import { clientAddressOf } from './client-address.ts'
import { closePromptly } from './closing.ts'
import { reportDrops } from './drops.ts'
import { answerBrokenRequest, answerError, rateHeaders } from './errors.ts'
import type { Transport } from './origins.ts'
import { explainPort, type Place } from './ports.ts'
import { takeQueryKey } from './query-key.ts'
import { createBoundedServer, type Drop } from './sockets.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The client's address, as reported by trusted proxies only. */
    client_address: string
    /** The numbers for X-RateLimit-*: the key's once it is known, the address's until then. */
    window: Window | undefined
    caller: AnyCaller | undefined
    /** How a browser reached the dashboard; undefined everywhere else. */
    transport: Transport | undefined
    /** The name of the operation, for logs and metrics. */
    operation: string
    refusal: string | undefined
    /** The caller's trace; undefined if the header is missing or malformed. */
    traceparent: Traceparent | undefined
    /** The row of the ledger that the answer is about. */
    operation_id: string | undefined
    /** Why an answer that had begun was not finished. */
    broken: unknown
  }
}

/** What the rest of the code sees of a server. */
export interface Server {
  /** Returns the address it answers at. */
  listen(at: Place): Promise<string>
  /** Accepts no more requests and lets those in flight finish. */
  close(): Promise<void>
}

interface BaseOptions {
  readonly log: Logger
  readonly rate_limit: number
  readonly headersMs?: number | undefined
  /** Proxies that may report the client's address. None by default. */
  readonly trusted_proxies?: readonly Network[]
  /** In every answer, also to what is not a request that HTTP knows. */
  readonly always?: Readonly<Record<string, string>>
  /** Sets what every answer to a request carries, whatever its outcome. */
  readonly meetFirst?: (request: FastifyRequest, reply: FastifyReply) => void
  /** Runs before a malformed address is refused: a caller without a key must learn nothing else. */
  readonly enterFirst?: (request: FastifyRequest) => Promise<unknown>
  readonly answered?: (operation: string, status: number, seconds: number) => void
  readonly dropped?: Drop
}

export function makeBase(options: BaseOptions): FastifyInstance {
  const { log, rate_limit, headersMs = 10_000, trusted_proxies = [], always = {} } = options
  const addresses = makeLog()
  const rule = { limit: rate_limit, seconds: 60 }
  const countAddress = (address = 'unknown') => addresses.take(sourceOf(address), rule)
  const meet: Meet = (request, reply) => {
    request.client_address = clientAddressOf(request.raw, trusted_proxies)
    request.window = countAddress(request.client_address)
    request.traceparent = traceparentOf(request)
    reply.headers({ 'x-request-id': request.id, ...answerHeaders, ...always }) // guard: browsers return over https
    options.meetFirst?.(request, reply)
  }
  const drop = reportDrops(log, options.dropped)
  const timeouts = { headersMs, requestMs: 130_000, keepAliveMs: 72_000 }
  const server = Fastify({
    genReqId: () => newId(),
    requestIdHeader: false,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    bodyLimit: Number.MAX_SAFE_INTEGER,
    // Longer than any address that fits the limit on headers.
    routerOptions: { maxParamLength: 65_536 },
    frameworkErrors: (error, request, reply) => {
      meet(request, reply)
      // Fastify runs no hook for these.
      reply.raw.once('finish', () => logAnswer(options, request, reply))
      const entered = options.enterFirst?.(request) ?? Promise.resolve()
      void entered.then(
        () => answerError(log, request, reply, error),
        (refused) => answerError(log, request, reply, refused),
      )
    },
    clientErrorHandler: (error, socket) => {
      const window = countAddress(socket.remoteAddress)
      const logged = answerBrokenRequest(error, socket, { window, always })
      if (!logged) return
      options.answered?.('none', logged.status, 0)
      log.info({ ...logged, operation: 'none' }, 'request')
    },
    serverFactory: (handle) => {
      const takingKeys: typeof handle = (request, response) => {
        takeQueryKey(request)
        handle(request, response)
      }
      return createBoundedServer(takingKeys, timeouts, drop)
    },
  })
  closePromptly(server)
  takeEveryRequest(server)
  server.setErrorHandler((error: FastifyError | ApiError, request, reply) =>
    answerError(log, request, reply, error),
  )
  addHooks(server, meet, options)
  return server
}

/** Runs first for every request, including those that Fastify itself refuses. */
type Meet = (request: FastifyRequest, reply: FastifyReply) => void

const answerHeaders = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
}

/** Keeps Fastify and Node from refusing a request before our own checks see it. */
function takeEveryRequest(server: FastifyInstance): void {
  server.decorateRequest('client_address', '')
  server.decorateRequest('window', undefined)
  server.decorateRequest('caller', undefined)
  server.decorateRequest('transport', undefined)
  server.decorateRequest('operation', 'none')
  server.decorateRequest('refusal', undefined)
  server.decorateRequest('traceparent', undefined)
  server.decorateRequest('operation_id', undefined)
  server.decorateRequest('broken', undefined)
  // Every method is known, so that a wrong method differs from a wrong address. Bodies stay on the wire until `perform`
  // reads them.
  for (const method of METHODS) server.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  // An unknown `Expect` header is ignored: Node would answer 417 without our body.
  server.server.on('checkExpectation', (request, response) =>
    server.server.emit('request', request, response),
  )
}

/** Hooks that do not wait use callbacks: a promise for each would cost as much as the hook's work. */
function addHooks(server: FastifyInstance, meet: Meet, options: BaseOptions): void {
  const { log } = options
  server.addHook('onRequest', (request, reply, done) => {
    meet(request, reply)
    if (headerValues(request, 'host').length === 1 || isOldProbe(request)) return done()
    done(new ApiError('invalid_request', { detail: 'Exactly one Host header is required.' }))
  })
  server.addHook('onSend', (request, reply, _payload, done) => {
    if (request.window) reply.headers(rateHeaders(request.window))
    done()
  })
  server.addHook('onRequest', (request, reply, done) => {
    reply.raw.on('close', () => {
      if (!reply.raw.writableFinished) logCutOff(log, request, reply)
    })
    done()
  })
  server.addHook('onResponse', (request, reply, done) => {
    logAnswer(options, request, reply)
    done()
  })
}

/** HTTP/1.0 has no Host header, and proxies probe with it unless they are configured otherwise. */
function isOldProbe(request: FastifyRequest): boolean {
  const isOld = request.raw.httpVersion === '1.0' && headerValues(request, 'host').length === 0
  return isOld && ['/healthz', '/readyz'].includes(pathOf(request))
}

function logAnswer({ log, answered }: BaseOptions, request: FastifyRequest, reply: FastifyReply): void {
  answered?.(request.operation, reply.statusCode, reply.elapsedTime / 1000)
  const facts = factsOf(request, reply)
  // Supervisors ask these every few seconds, forever.
  if (probes.has(request.operation) && !facts.code) log.debug(facts, 'request')
  else log.info(facts, 'request')
}

const probes = new Set(['healthz', 'readyz', 'metrics'])

function factsOf(request: FastifyRequest, reply: FastifyReply) {
  const { operation, caller, refusal, operation_id } = request
  return {
    request_id: request.id,
    client_request_id: readClientId(request),
    ...traceFacts(request.traceparent), // guard: trace in the line of a request
    method: request.method,
    path: hideSecrets(pathOf(request)),
    operation,
    status: reply.statusCode,
    code: refusal,
    operation_id,
    ms: Math.round(reply.elapsedTime * 10) / 10,
    workspace_id: caller && 'workspace_id' in caller ? caller.workspace_id : undefined,
    key: caller?.via.kind === 'key' ? caller.via.prefix : undefined,
    session: caller?.via.kind === 'session' ? caller.via.id : undefined,
  }
}

/** The caller's id for this request, so that its log can be matched with ours. Never stores a key. */
function readClientId(request: FastifyRequest): string | undefined {
  if (request.headers['x-request-id'] === undefined) return undefined
  const [id = '', ...others] = headerValues(request, 'x-request-id')
  const sound = others.length === 0 && /^[\w.:-]{1,128}$/.test(id) && hideTokens(id) === id
  return sound ? id : undefined
}

function traceparentOf(request: FastifyRequest): Traceparent | undefined {
  if (request.headers.traceparent === undefined) return undefined
  return readTraceparent(headerValues(request, 'traceparent'))
}

/** Logs an answer that was cut off, with its cause, so that it can be found by its request id. */
function logCutOff(log: Logger, request: FastifyRequest, reply: FastifyReply): void {
  const facts = factsOf(request, reply)
  // The client has seen no status before the first byte, so none is logged.
  const logged = { ...facts, status: reply.raw.headersSent ? facts.status : undefined }
  if (request.broken) log.warn({ ...logged, err: request.broken }, 'a response was cut off')
  else log.info(logged, 'the client disconnected before it had the whole response')
}

export function toServer(server: FastifyInstance): Server {
  return { listen: (at) => listen(server, at), close: () => server.close() }
}

async function listen(server: FastifyInstance, at: Place): Promise<string> {
  const { host, port } = at
  try {
    await server.listen({ host, port })
  } catch (error) {
    throw explainPort(error, at)
  }
  const bound = server.server.address()
  const number = typeof bound === 'object' && bound ? bound.port : port
  const everywhere = host === '0.0.0.0' || host === '::'
  return `http://${everywhere ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${number}`
}

/** All values of a header as they arrived: Node joins or drops repeated ones. */
export function headerValues(request: FastifyRequest, name: string): string[] {
  const { rawHeaders } = request.raw
  const values: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const given = rawHeaders[at] as string
    if (given.length === name.length && given.toLowerCase() === name)
      values.push(rawHeaders[at + 1] as string)
  }
  return values
}

/** The path for the log. It keeps chat ids and hides a token or a phone number that a caller put into the address. */
export function hideSecrets(path: string): string {
  const safe = hideTokens(path)
  if (!/\d{6}/.test(safe)) return safe
  return safe.replaceAll(
    /(platform(?::|%3A)chat(?::|%3A)-?\d+)|(?:\+|%2B)?\d{6,}/gi,
    (_, chat) => chat ?? '…',
  )
}

/** Without the query, which may contain a key. */
export function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0] ?? ''
}
