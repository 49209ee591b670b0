/** Every failure in one form: JSON with a sentence and a code, and the rate headers. */
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Window } from '../app.ts'
import { ApiError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { traceFacts } from '../lib/traceparent.ts'
import { drain } from './body.ts'

/** In lower case, as Fastify sends them: it would build a new string from any other name for every answer. */
export function rateHeaders({ limit, remaining, reset }: Window): Record<string, string> {
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(reset),
  }
}

/** Answers every failure in one form. An unexpected one is a bug: the caller gets its request id, the log its cause. */
export async function answerError(
  logger: Logger,
  request: FastifyRequest,
  reply: FastifyReply,
  thrown: FastifyError | ApiError,
): Promise<void> {
  const error = toApiError(thrown)
  request.refusal = error.code
  logFailure(logger, request, error)
  if (request.window) reply.headers(rateHeaders(request.window))
  if (error.retry_after !== undefined) reply.header('Retry-After', String(error.retry_after))
  if (error.content_range !== undefined) reply.header('Content-Range', error.content_range)
  if (error.status === 413) reply.header('Connection', 'close')
  const body = JSON.stringify({ error: error.message, code: error.code })
  reply.code(error.status).type('application/json; charset=utf-8')
  if (request.raw.complete) return void reply.send(body)
  // The client is still sending: it gets the whole answer now, and the connection ends after it.
  reply.headers({ Connection: 'close', 'Content-Length': String(Buffer.byteLength(body)) })
  reply.hijack()
  reply.raw.writeHead(error.status, reply.getHeaders() as Record<string, string>)
  reply.raw.write(body)
  await drain(request.raw)
  reply.raw.end()
  reply.raw.once('finish', () => request.raw.destroy())
}

/** Logs what is not the caller's fault, for the operator of this instance. */
export function logFailure(logger: Logger, request: FastifyRequest, error: ApiError): void {
  if (error.status < 500 || ['rest_disabled', 'feature_disabled'].includes(error.code)) return
  // A refusal's stack trace helps no one: its code says everything.
  const err = error.cause ?? (error.status === 500 ? error : undefined)
  const log = {
    request_id: request.id,
    ...traceFacts(request.traceparent), // guard: trace in the line of a failure
    code: error.code,
    ...(err !== undefined && { err }),
  }
  if (error.status === 500) logger.error(log, 'a request failed unexpectedly')
  else logger.warn(log, 'a request failed because a dependency is unavailable')
}

function toApiError(thrown: FastifyError | ApiError): ApiError {
  if (thrown instanceof ApiError) return thrown
  if (thrown.code === 'FST_ERR_BAD_URL') {
    return new ApiError('invalid_request', { detail: 'The URL is malformed.' })
  }
  return new ApiError('internal', { cause: thrown })
}

/** What is logged about a malformed request. */
interface BrokenRequestFacts {
  readonly request_id: string
  readonly status: number
  readonly code: string
}

interface BareAnswer {
  readonly window: Window
  /** Headers of every answer. */
  readonly always: Readonly<Record<string, string>>
}

/** Answers a malformed request on the bare socket, in the same form, and closes it. Undefined: the client is gone. */
export function answerBrokenRequest(
  error: Error & { code?: string },
  socket: Socket,
  { window: { limit, remaining, reset }, always }: BareAnswer,
): BrokenRequestFacts | undefined {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return undefined
  }
  const refusal =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new ApiError('headers_too_large')
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? new ApiError('request_timeout')
        : new ApiError('invalid_request', { detail: 'This HTTP request is malformed.' })
  const { status, code } = refusal
  const request_id = newId()
  const body = JSON.stringify({ error: refusal.message, code })
  const lines = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-Id': request_id,
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(reset),
    ...always, // guard: also broken requests return over https
    Connection: 'close',
  }
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}`)
  socket.end(`HTTP/1.1 ${status} ${reasons[status]}\r\n${head.join('\r\n')}\r\n\r\n${body}`)
  return { request_id, status, code }
}

const reasons: Record<number, string> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
}
