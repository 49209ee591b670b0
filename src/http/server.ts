/** The HTTP door, and the only room that knows Fastify. */
import { METHODS } from 'node:http'
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import { memoryLimits } from '../access/limits.ts'
import { admit, perform } from '../access/perform.ts'
import type { App, Window } from '../app.ts'
import { apiPrefix, type Caller } from '../contract.ts'
import { ApiError, Refusal } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { makeOpenApi } from '../openapi.ts'
import type { Reply, Route } from '../route.ts'
import { bodyMs, readBody } from './body.ts'
import { mountDocs } from './docs.ts'
import { answerBrokenRequest, answerError, rateHeaders } from './errors.ts'
import { mountHealth, type Readiness } from './health.ts'
import { trackKeyUse } from './key-use.ts'
import { makeMetrics } from './metrics.ts'

export interface ServerOptions {
  readonly readiness: Readiness
  /** How long a client may take for its headers, and for a JSON body. */
  readonly headersMs?: number
  readonly bodyMs?: number
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The numbers for X-RateLimit-*: the key's once it is known, the address's until then. */
    window: Window | undefined
    caller: Caller | undefined
    /** The name of the operation, for logs and metrics. */
    operation: string
    refusal: string | undefined
  }
}

/** What the rest of the house sees of it. */
export interface Server {
  /** The address it answers at. */
  listen(at: { host: string; port: number }): Promise<string>
  /** Takes no more requests and lets those in flight finish. */
  close(): Promise<void>
}

export async function buildServer(
  app: App,
  routes: readonly Route[],
  options: ServerOptions,
): Promise<Server> {
  const addresses = memoryLimits()
  const countAddress = (address = 'unknown') =>
    addresses.take(address, { limit: app.config.rate_limit, seconds: 60 })
  const server = Fastify({
    genReqId: () => newId(),
    requestIdHeader: false,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    requestTimeout: 130_000,
    bodyLimit: Number.MAX_SAFE_INTEGER,
    routerOptions: { maxParamLength: 4096 },
    frameworkErrors: (error, request, reply) => void answerError(app, request, reply, error),
    clientErrorHandler: (error, socket) => {
      void countAddress(socket.remoteAddress).then((window) => answerBrokenRequest(error, socket, window))
    },
    http: {
      // A missing Host is refused below, in the same form as everything else.
      requireHostHeader: false,
      headersTimeout: options.headersMs ?? 10_000,
      connectionsCheckingInterval: Math.min(2_000, options.headersMs ?? 2_000),
    },
  })
  server.server.maxConnections = 2_000
  const metrics = makeMetrics(app)
  const uses = trackKeyUse(app)

  server.decorateRequest('window', undefined)
  server.decorateRequest('caller', undefined)
  server.decorateRequest('operation', 'none')
  server.decorateRequest('refusal', undefined)
  // Bodies are left on the wire until `perform` asks for them.
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', (_request, _payload, done) => done(null))

  server.setErrorHandler((error: FastifyError | ApiError, request, reply) =>
    answerError(app, request, reply, error),
  )
  server.addHook('onRequest', async (request, reply) => {
    request.window = await countAddress(request.ip)
    reply.headers({
      'X-Request-Id': request.id,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-store',
    })
    if (headerValues(request, 'host').length !== 1) {
      throw new ApiError('invalid_request', { detail: 'Exactly one Host header is required.' })
    }
  })
  server.addHook('onSend', async (request, reply) => {
    if (request.window) reply.headers(rateHeaders(request.window))
  })
  server.addHook('onResponse', async (request, reply) => {
    const { operation, caller, refusal } = request
    metrics.observe(operation, reply.statusCode, reply.elapsedTime / 1000)
    const key = caller?.via.kind === 'key' ? caller.via.prefix : undefined
    app.log.info(
      {
        request_id: request.id,
        method: request.method,
        path: pathOf(request),
        operation,
        status: reply.statusCode,
        code: refusal,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        workspace_id: caller?.workspace_id,
        key,
      },
      'request',
    )
  })
  server.addHook('onClose', () => uses.flush())

  async function enter(request: FastifyRequest): Promise<Caller> {
    const { caller, window } = await admit(app, {
      authorization: headerValues(request, 'authorization'),
      channel: 'rest',
    })
    request.caller = caller
    request.window = window
    if (!window.allowed) throw new ApiError('rate_limited', { retry_after: window.retry_after })
    uses.note(caller)
    return caller
  }

  for (const route of routes) {
    server.route({
      method: route.method,
      url: apiPrefix + route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      handler: async (request, reply) => {
        request.operation = route.name
        const caller = await enter(request)
        const answer = await perform(app, route, caller, {
          params: request.params as Record<string, string>,
          query: request.query as Record<string, unknown>,
          body: (wanted) => readBody(request.raw, wanted, options.bodyMs ?? bodyMs),
          idempotency_keys: headerValues(request, 'idempotency-key'),
        })
        return send(reply, answer)
      },
    })
  }
  server.setNotFoundHandler(async (request, reply) => {
    const path = pathOf(request)
    if (path !== apiPrefix && !path.startsWith(`${apiPrefix}/`)) throw new ApiError('not_found')
    await enter(request)
    const methods = methodsOf(routes, path.slice(apiPrefix.length))
    if (methods.length === 0) throw new ApiError('not_found')
    reply.header('Allow', methods.join(', '))
    throw new ApiError('method_not_allowed', {
      detail: `This address answers ${methods.join(', ')}, not ${request.method}.`,
    })
  })
  for (const method of METHODS) {
    if (!server.supportedMethods.includes(method)) server.addHttpMethod(method, { hasBody: true })
  }

  const document = makeOpenApi(routes)
  server.get(`${apiPrefix}/openapi.json`, async (request) => {
    request.operation = 'get_openapi'
    return document
  })
  mountHealth(app, server, metrics, options.readiness)
  await mountDocs(server)
  return { listen: (at) => listen(server, at), close: () => server.close() }
}

async function listen(
  server: FastifyInstance,
  { host, port }: { host: string; port: number },
): Promise<string> {
  try {
    await server.listen({ host, port })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') throw new Refusal(`Port ${port} is taken. Choose another with --port.`)
    if (code === 'EACCES') throw new Refusal(`Port ${port} is not ours to use. Choose another with --port.`)
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
      throw new Refusal(`PARLEY_HOST names no address of this machine: ${host}.`)
    }
    throw error
  }
  const bound = server.server.address()
  const number = typeof bound === 'object' && bound ? bound.port : port
  const everywhere = host === '0.0.0.0' || host === '::'
  return `http://${everywhere ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${number}`
}

function send(reply: FastifyReply, { status, headers = {}, body }: Reply): FastifyReply {
  return reply.code(status).headers(headers).send(body)
}

/** All values of a header as they came: Node joins or drops repeated ones. */
function headerValues(request: FastifyRequest, name: string): string[] {
  const { rawHeaders } = request.raw
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name)
}

/** Without the query, which may hold a key. */
function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0] ?? ''
}

function methodsOf(routes: readonly Route[], path: string): string[] {
  const matching = routes.filter((route) =>
    new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path),
  )
  return [...new Set(matching.map(({ method }) => method))]
}
