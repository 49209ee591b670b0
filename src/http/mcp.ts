/** `/api/mcp`: authenticates like the API, then speaks the protocol. */
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../app.ts'
import { type Caller, mcpPath } from '../contract.ts'
import { ApiError } from '../lib/errors.ts'
import { traceFacts } from '../lib/traceparent.ts'
import type { Exchange, Facts } from '../mcp/call.ts'
import type { Route } from '../route.ts'
import { once } from './assets.ts'
import { readBody } from './body.ts'
import { senderOf, traced, unlessLeft } from './doors.ts'
import { logFailure } from './errors.ts'
import { requireNoForeignPage } from './origins.ts'
import type { Drop } from './sockets.ts'

/** Authenticates a request by its key and counts it against the key's rate. */
export type EnterByKey = (request: FastifyRequest) => Promise<Caller>

interface McpMountOptions {
  readonly routes: readonly Route[]
  readonly enter: EnterByKey
  readonly bodyMs: number
  readonly drop: Drop
}

export function mountMcp(app: App, server: FastifyInstance, mounting: McpMountOptions): void {
  const { routes, enter, bodyMs, drop } = mounting
  // Loaded on first use: it takes a quarter of a second, too long for a start.
  const endpoint = once(async () => (await import('../mcp/endpoint.ts')).makeEndpoint(app, routes))
  server.all(mcpPath, async (request, reply) => {
    request.operation = 'mcp'
    const caller = await enter(request)
    requireNoForeignPage(app.config, request)
    requirePost(request, reply)
    return unlessLeft(reply, drop, async (left) => {
      const sender = senderOf(app, caller, { response: reply.raw, left })
      const message = await readBody(request.raw, { method: 'POST', body: true }, sender, bodyMs)
      requireOne(message)
      // The client has disconnected, and nothing has been done yet.
      left().throwIfAborted()
      const exchange: Exchange = {
        caller: traced(caller, request),
        user_agent: request.headers['user-agent'],
        tell: (facts) => note(app, request, facts),
        left,
      }
      const { serve } = await endpoint()
      // The protocol calls it a failure if the client has disconnected.
      const response = await serve(toRequest(request, left()), message, exchange).finally(() =>
        left().throwIfAborted(),
      )
      return answer(app, { request, reply }, response)
    })
  })
}

/** Other methods are for sessions and for streams of server messages. This endpoint has neither. */
function requirePost({ method }: FastifyRequest, reply: FastifyReply): void {
  if (method === 'POST') return
  reply.header('Allow', 'POST')
  throw new ApiError('method_not_allowed', { detail: `This address supports POST, not ${method}.` })
}

/** A batch would make many calls count as one against the rate. */
function requireOne(message: unknown): void {
  if (!Array.isArray(message)) return
  throw new ApiError('invalid_request', { detail: 'The body must be one message, not a list of messages.' })
}

/** The headers that the protocol reads. The key is not one of them. */
const protocolHeaders = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name']

function toRequest({ raw }: FastifyRequest, signal: AbortSignal): Request {
  const headers = protocolHeaders.flatMap((name): [string, string][] => {
    const value = raw.headers[name]
    return typeof value === 'string' ? [[name, value]] : []
  })
  return new Request(`http://localhost${mcpPath}`, { method: 'POST', headers, signal })
}

function note(app: App, request: FastifyRequest, { tool, operation_id, code, error }: Facts): void {
  request.operation = tool
  request.operation_id = operation_id
  request.refusal = code
  if (error) logFailure(app.log, request, error)
}

async function answer(
  app: App,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  response: Response,
): Promise<FastifyReply> {
  const { status, headers, body } = response
  if (status >= 500) {
    const facts = { request_id: request.id, ...traceFacts(request.traceparent) }
    app.log.error(facts, 'the MCP endpoint failed unexpectedly')
  }
  reply.code(status)
  if (body === null) return reply.send()
  const type = headers.get('content-type') ?? ''
  // Forward a stream as it arrives: its messages keep proxies from closing the connection during a long call.
  if (type.startsWith('text/event-stream')) {
    return reply
      .type(type)
      .header('x-accel-buffering', 'no')
      .send(Readable.fromWeb(body as ReadableStream))
  }
  // As bytes, because text would be decoded and encoded again.
  return reply.type(type).send(Buffer.from(await response.arrayBuffer()))
}
