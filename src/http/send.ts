/** Sends a route's answer: an object, JSON from the database, a long text, a file, or events. */
import { transcode } from 'node:buffer'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Bytes, Json, Live, type Reply, type Sending, Stream } from '../route.ts'
import { setDeviceCookie, setFlowCookie, setSessionCookie } from './cookies.ts'

export const json = 'application/json; charset=utf-8'

export function send(
  request: FastifyRequest,
  reply: FastifyReply,
  { status, headers = {}, body, session_token, device_token, oidc_flow }: Reply,
): FastifyReply {
  reply.code(status).headers(headers)
  if (session_token !== undefined) setSessionCookie(request, reply, session_token)
  if (device_token !== undefined) setDeviceCookie(request, reply, device_token)
  if (oidc_flow) setFlowCookie(request, reply, oidc_flow)
  request.operation_id = headers['X-Operation-Id']
  if (status >= 400) request.refusal = (body as { readonly code?: string }).code
  if (body instanceof Json) return reply.type(json).send(bytesOf(body.text))
  if (body instanceof Live) return sendLive(request, reply, body)
  if (body instanceof Bytes) {
    body.begins(sendingOf(reply))
    reply.header('content-length', String(body.length))
  } else if (body instanceof Stream) describe(reply, body)
  else return reply.send(body)
  // HEAD needs no body, so read nothing more: what has begun ends.
  if (request.method === 'HEAD') void body[Symbol.asyncIterator]().return?.() // guard: a stream that is only asked about ends
  const chunks = request.method === 'HEAD' ? [] : body
  // Text as text, which the socket encodes itself: buffers of ours would be garbage that Node collects late.
  const readable = Readable.from(chunks, { objectMode: body instanceof Stream, highWaterMark: 1 })
  readable.once('error', (error) => {
    request.broken = error
  })
  return reply.send(readable)
}

function sendingOf({ raw }: FastifyReply): Sending {
  return {
    cut: () => void raw.destroy(),
    onEnd: (act) => {
      if (raw.destroyed) act()
      else raw.once('close', act)
    },
  }
}

function describe(reply: FastifyReply, { saved_as }: Stream): void {
  const charset = saved_as?.media_type.startsWith('text/') ? '; charset=utf-8' : ''
  reply.type(saved_as ? `${saved_as.media_type}${charset}` : json)
  if (saved_as) reply.header('content-disposition', `attachment; filename="${saved_as.file_name}"`)
}

/** A proxy that buffers answers would delay events. */
const liveHeaders = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' }

function sendLive(request: FastifyRequest, reply: FastifyReply, live: Live): FastifyReply {
  reply.headers(liveHeaders)
  if (request.method === 'HEAD') return reply.send('')
  // It ends with its connection. Chunked, each event would be three pieces, and writing one to 1,000 streams cost half more.
  reply.raw.useChunkedEncodingByDefault = false
  const readable = new Readable({ read() {} })
  live.begin({
    get waiting() {
      return readable.readableLength + reply.raw.writableLength
    },
    write: (text) => void readable.push(text),
    end: () => void readable.push(null),
    cut: () => void reply.raw.destroy(),
    onEnd: (act) => void reply.raw.once('close', act),
  })
  return reply.send(readable)
}

/**
 * Encodes text beyond Latin-1 here, because Node would traverse it twice, character by character. The text comes from the
 * database, so it has no lone surrogates that UTF-8 could not encode.
 */
function bytesOf(text: string): string | Buffer {
  if (!/[^\0-\xff]/.test(text)) return text
  const fits = text.length * 2 <= desk.length
  const units = fits ? desk.subarray(0, desk.write(text, 'utf16le')) : Buffer.from(text, 'utf16le')
  return transcode(units, 'utf16le', 'utf8')
}

/** Shared by all calls, because allocating a buffer for each costs as much as the encoding. */
const desk = Buffer.allocUnsafeSlow(256 * 1024)
