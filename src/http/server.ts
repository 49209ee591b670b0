/** The HTTP server of the API: every route of the contract at its address. */
import { transcode } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Chunk, dropFile, storeChunk } from '../access/ledger/files.ts'
import { admit, perform, type Wanted } from '../access/perform.ts'
import type { App } from '../app.ts'
import { apiPrefix, type Caller } from '../contract.ts'
import { ApiError } from '../lib/errors.ts'
import { makeOpenApi } from '../openapi.ts'
import { Form, Json, type Reply, type Route, Stream } from '../route.ts'
import { mountAsset } from './assets.ts'
import { headerValues, makeBase, pathOf, type Server, toServer } from './base.ts'
import { bodyMs, readBody } from './body.ts'
import { mountDocs, type Source } from './docs.ts'
import { mountHealth, type Readiness } from './health.ts'
import { trackKeyUse } from './key-use.ts'
import { makeMetrics } from './metrics.ts'
import { isForm, readForm } from './multipart.ts'
import type { Drop } from './sockets.ts'

export interface ServerOptions {
  readonly readiness: Readiness
  /** What the reference page shows besides the API. */
  readonly sources?: readonly Source[]
  /** How long a client may take for its headers, and for a JSON body. */
  readonly headersMs?: number
  readonly bodyMs?: number
}

export async function buildServer(
  app: App,
  routes: readonly Route[],
  options: ServerOptions,
): Promise<Server> {
  const metrics = makeMetrics(app)
  const server = makeBase({
    log: app.log,
    rate_limit: app.config.rate_limit,
    headersMs: options.headersMs,
    enterFirst: async (request) => {
      if (isApiPath(pathOf(request))) await enter(request)
    },
    answered: metrics.observe,
    dropped: metrics.drop,
  })
  const enter = makeEnter(app, server)
  mountRoutes(app, server, { routes, enter, bodyMs: options.bodyMs ?? bodyMs, drop: metrics.drop })
  mountMissing(server, { routes, enter })
  const url = `${apiPrefix}/openapi.json`
  const make = () => JSON.stringify(makeOpenApi(routes))
  mountAsset(server, url, { operation: 'get_openapi', type: json, make })
  mountHealth(app, server, options.readiness)
  if (routes.length > 0)
    await mountDocs(server, [{ title: 'API', slug: 'api', url }, ...(options.sources ?? [])])
  return toServer(server)
}

/** Lets a request in by its key, within the key's rate. */
type Enter = (request: FastifyRequest) => Promise<Caller>

function makeEnter(app: App, server: FastifyInstance): Enter {
  const uses = trackKeyUse(app)
  server.addHook('onClose', () => uses.flush())
  return async (request) => {
    const { caller, window } = await admit(app, {
      authorization: headerValues(request, 'authorization'),
    })
    request.caller = caller
    request.window = window
    if (!window.allowed) throw new ApiError('rate_limited', { retry_after: window.retry_after })
    uses.note(caller)
    return caller
  }
}

interface Mounted {
  readonly routes: readonly Route[]
  readonly enter: Enter
}

function mountRoutes(
  app: App,
  server: FastifyInstance,
  { routes, enter, bodyMs, drop }: Mounted & { readonly bodyMs: number; readonly drop: Drop },
): void {
  async function read(
    raw: IncomingMessage,
    { workspace_id }: Caller,
    { route, refuse }: Wanted,
  ): Promise<unknown> {
    if (!route.form || !isForm(raw)) return readBody(raw, route, bodyMs)
    const store = (chunk: Chunk) => storeChunk(app.db, { ...chunk, workspace_id })
    const drop = (file_id: string) => dropFile(app, file_id)
    const { fields, attachment, refusal } = await readForm(raw, { refuse, store, drop })
    return new Form(fields, attachment, refusal)
  }
  for (const route of routes) {
    server.route({
      method: route.method,
      url: apiPrefix + route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      handler: async (request, reply) => {
        request.operation = route.name
        const caller = await enter(request)
        // Nobody would hear the answer, and nothing has been done yet.
        if (request.raw.socket.destroyed) {
          drop('closed')
          return reply.hijack()
        }
        const answer = await perform(app, route, caller, {
          params: request.params as Record<string, string>,
          query: request.query as Record<string, unknown>,
          body: (wanted) => read(request.raw, caller, wanted),
          idempotency_keys: route.effect === 'read' ? [] : headerValues(request, 'idempotency-key'),
          channel: 'rest',
        })
        return send(request, reply, answer)
      },
    })
  }
}

/** Unknown addresses and methods need a key too: the key is checked before the address. */
function mountMissing(server: FastifyInstance, { routes, enter }: Mounted): void {
  const answerMissing = async (request: FastifyRequest, reply: FastifyReply) => {
    const path = pathOf(request)
    if (!isApiPath(path)) throw new ApiError('not_found')
    await enter(request)
    const methods = methodsOf(routes, path.slice(apiPrefix.length))
    if (methods.length === 0) throw new ApiError('not_found')
    reply.header('Allow', methods.join(', '))
    throw new ApiError('method_not_allowed', {
      detail: `This address answers ${methods.join(', ')}, not ${request.method}.`,
    })
  }
  server.setNotFoundHandler(answerMissing)
  // A fixed path, such as /chats/start, must not be taken for a value of a path parameter beside it.
  for (const { method, path } of shadowed(routes)) {
    server.route({ method, url: apiPrefix + path, handler: answerMissing })
  }
}

/** Whether it lies under the API's prefix, also where some letters of that are written as escapes. */
function isApiPath(path: string): boolean {
  const [, ...segments] = path.split('/')
  const start = `/${segments.slice(0, 2).map(unescapePart).join('/')}`
  return start === apiPrefix
}

function unescapePart(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

const json = 'application/json; charset=utf-8'

function send(
  request: FastifyRequest,
  reply: FastifyReply,
  { status, headers = {}, body }: Reply,
): FastifyReply {
  reply.code(status).headers(headers)
  request.operation_id = headers['X-Operation-Id']
  if (status >= 400) request.refusal = (body as { readonly code?: string }).code
  if (body instanceof Json) return reply.type(json).send(bytesOf(body.text))
  if (!(body instanceof Stream)) return reply.send(body)
  // HEAD needs no body, so nothing is read.
  const chunks = request.method === 'HEAD' ? [] : body
  // As text, which the socket encodes itself: buffers of our own would be garbage that Node collects late.
  const readable = Readable.from(chunks)
  readable.once('error', (error) => {
    request.broken = error
  })
  return reply.type(json).send(readable)
}

/**
 * Encodes text beyond Latin-1 here, because Node would go through it twice, character by character. It comes from the
 * database, so it has no lone surrogates that UTF-8 could not encode.
 */
function bytesOf(text: string): string | Buffer {
  if (!/[^\0-\xff]/.test(text)) return text
  const fits = text.length * 2 <= desk.length
  const units = fits ? desk.subarray(0, desk.write(text, 'utf16le')) : Buffer.from(text, 'utf16le')
  return transcode(units, 'utf16le', 'utf8')
}

/** Shared by all encodings, because allocating a buffer for each costs as much as the encoding. */
const desk = Buffer.allocUnsafeSlow(256 * 1024)

function methodsOf(routes: readonly Route[], path: string): string[] {
  const exact = routes.filter((route) => route.path === path)
  const matching = exact.length > 0 ? exact : routes.filter((route) => matches(route, path))
  // Where GET is allowed, HEAD is too.
  return [...new Set(matching.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))]
}

function matches({ path: pattern }: Route, path: string): boolean {
  return new RegExp(`^${pattern.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path)
}

/** What the router would take for another operation: GET /chats/start for the chat called "start". */
function shadowed(routes: readonly Route[]): Pick<Route, 'method' | 'path'>[] {
  return routes
    .filter(({ path }) => !path.includes('{'))
    .flatMap(({ path }) =>
      routes
        .filter((other) => other.path !== path && matches(other, path))
        .filter(({ method }) => !routes.some((route) => route.path === path && route.method === method))
        .map(({ method }) => ({ method, path })),
    )
}
