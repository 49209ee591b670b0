/** Limits how much one client, and all clients together, may use: connections, waiting requests, time to read an answer. */
import {
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import { sourceOf } from '../lib/addresses.ts'

/** In all and not per address: a proxy is one address. Beyond it, each new connection cuts an old one (`makeRoom`). */
const connectionsMax = 2_000 // limit: connections in all
/** Requests waiting on one connection. Hardly any client sends a second request before the first answer. */
const pipelinedMax = 20
/** A client that reads nothing of its answer for this long never will. */
const stalledMsMax = 60_000 // limit: reader without progress
const lookMs = Math.min(5_000, stalledMsMax / 4)

/**
 * Why something was dropped: a connection to make room for a new one, a connection with too many requests at once, a request
 * whose connection closed before it began or while it waited, an answer that the client does not read.
 */
export const dropReasons = ['connections', 'pipelining', 'closed', 'stalled'] as const
export type DropReason = (typeof dropReasons)[number]
export type Drop = (reason: DropReason) => void

interface Timeouts {
  readonly headersMs: number
  readonly requestMs: number
  readonly keepAliveMs: number
}

interface Connection {
  /** The peer's source: only a request says which client a proxy speaks for. */
  readonly source: string
  /** When it last answered a complete request; before the first one, when it connected. */
  completeAt: number
  /** The latest request, which may still be arriving. */
  request: IncomingMessage | undefined
  /** Not fully answered yet, in order of arrival. */
  readonly responses: ServerResponse[]
  /** How many bytes the client had read when it last made progress, and when that was. */
  taken: number
  takenAt: number
}

export function createBoundedServer(handle: RequestListener, timeouts: Timeouts, drop: Drop): HttpServer {
  const open = new Map<Socket, Connection>()
  const server = createServer(
    {
      // A later check refuses a missing Host in our usual form.
      requireHostHeader: false,
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      keepAliveTimeout: timeouts.keepAliveMs,
      connectionsCheckingInterval: Math.min(2_000, timeouts.headersMs),
    },
    (request, response) => {
      const connection = open.get(request.socket)
      if (!connection) return drop('closed')
      if (connection.responses.length >= pipelinedMax) {
        open.delete(request.socket)
        cut(request.socket)
        return drop('pipelining')
      }
      noteWaiting(connection, request, response)
      handle(request, response)
    },
  )
  server.on('connection', (socket: Socket) => {
    if (open.size >= connectionsMax) {
      drop('connections')
      if (!makeRoom(open)) return void socket.destroy()
    }
    const source = sourceOf(socket.remoteAddress ?? '')
    const completeAt = performance.now()
    open.set(socket, { source, completeAt, request: undefined, responses: [], taken: 0, takenAt: 0 })
    socket.once('close', () => open.delete(socket))
  })
  const look = setInterval(() => cutStalled(open, drop), lookMs).unref()
  server.once('close', () => clearInterval(look))
  return server
}

/**
 * Ends a connection whose received bytes are only partly parsed. Node would still build a request and an answer for each of the
 * thousand that may be left, and an error for each that it then aborts: 40 ms for 64 KB. With a handler that ignores them, its
 * parser needs two.
 */
function cut(socket: Socket & { parser?: { onIncoming: unknown } | null }): void {
  if (socket.parser) socket.parser.onIncoming = () => 0
  socket.destroy()
}

/**
 * Cuts the connection that has been longest without a complete request, of the source with the most connections. Idle ones, and
 * those whose headers or bodies never end, go before those that do not read their answer. A connection that waits for an answer
 * is never cut. Returns false if all of them wait.
 */
function makeRoom(open: Map<Socket, Connection>): boolean {
  const counts = new Map<string, number>()
  for (const { source } of open.values()) counts.set(source, (counts.get(source) ?? 0) + 1)
  const compare = ([one, other]: readonly [Candidate, Candidate]) =>
    other.count - one.count || one.rank - other.rank || one.completeAt - other.completeAt
  let found: Candidate | undefined
  for (const [socket, { source, completeAt, ...connection }] of open) {
    const rank = rankOf(socket, connection)
    if (rank === undefined) continue
    const candidate = { socket, rank, completeAt, count: counts.get(source) ?? 0 } // guard: the source that has most
    if (!found || compare([candidate, found]) < 0) found = candidate
  }
  if (!found) return false
  // Now and not when it closes, or two arrivals at once would cut the same connection.
  open.delete(found.socket)
  found.socket.destroy()
  return true
}

interface Candidate {
  readonly socket: Socket
  /** How many connections its source has. */
  readonly count: number
  readonly rank: number
  readonly completeAt: number
}

/** 0: no complete request. 1: the client has an answer to read. Undefined: never cut it. */
function rankOf(
  socket: Socket,
  { request, responses }: Pick<Connection, 'request' | 'responses'>,
): number | undefined {
  if (responses.length === 0 || !request?.complete) return 0
  return socket.writableLength > 0 ? 1 : undefined // guard: who waits for an answer is not cut
}

function noteWaiting(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
  const { responses } = connection
  responses.push(response)
  connection.request = request
  response.once('close', () => {
    if (request.complete) connection.completeAt = performance.now()
    const at = responses.indexOf(response)
    if (at >= 0) responses.splice(at, 1)
  })
}

function cutStalled(open: ReadonlyMap<Socket, Connection>, drop: Drop): void {
  const now = performance.now()
  for (const [socket, connection] of open) {
    const taken = takenOf(socket)
    const waits = connection.responses.length > 0 && socket.writableLength > 0
    if (!waits || taken !== connection.taken) {
      connection.taken = taken
      connection.takenAt = now
    } else if (now - connection.takenAt >= stalledMsMax) {
      socket.destroy()
      drop('stalled')
    }
  }
}

/**
 * Bytes that the kernel has taken from us. Node's public counter counts a large write at once, so a client that reads it slowly
 * would seem to make no progress.
 */
function takenOf(socket: Socket): number {
  const { _handle } = socket as Socket & {
    _handle?: { bytesWritten?: number; writeQueueSize?: number } | null
  }
  return (_handle?.bytesWritten ?? 0) - (_handle?.writeQueueSize ?? 0)
}
