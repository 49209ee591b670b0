/** How much of the service one client, and all of them together, may take up: connections, waiting requests, time to read. */
import { createServer, type Server as HttpServer, type RequestListener, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** In all and not for each address: a proxy is one address. */
const connectionsMax = 2_000 // limit: connections in all
/** Requests of one connection that wait for their answers. Hardly any client sends a second before the first is answered. */
const pipelinedMax = 20
/** A client that takes nothing of its answer for so long is not going to. */
const stalledMsMax = 60_000 // limit: reader without progress
const lookMs = Math.min(5_000, stalledMsMax / 4)

/**
 * Why something was dropped: a connection beyond the most, a connection with too many requests at once, a request whose
 * connection was gone before it began or while it waited, an answer that nobody reads.
 */
export const dropReasons = ['connections', 'pipelining', 'closed', 'stalled'] as const
export type DropReason = (typeof dropReasons)[number]
export type Drop = (reason: DropReason) => void

export interface Timeouts {
  readonly headersMs: number
  readonly requestMs: number
  readonly keepAliveMs: number
}

interface Connection {
  /** Not answered in full yet, in the order they came. */
  readonly responses: ServerResponse[]
  /** What the client had taken when it was last seen to take something, and when that was. */
  taken: number
  takenAt: number
}

export function createBoundedServer(handle: RequestListener, timeouts: Timeouts, drop: Drop): HttpServer {
  const open = new Map<Socket, Connection>()
  const server = createServer(
    {
      // A missing Host is refused later, in the same form as everything else.
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
      noteWaiting(connection.responses, response)
      handle(request, response)
    },
  )
  server.maxConnections = connectionsMax
  server.on('drop', () => drop('connections'))
  server.on('connection', (socket: Socket) => {
    open.set(socket, { responses: [], taken: 0, takenAt: 0 })
    socket.once('close', () => open.delete(socket))
  })
  const look = setInterval(() => cutStalled(open, drop), lookMs).unref()
  server.once('close', () => clearInterval(look))
  return server
}

/**
 * Ends a connection in the middle of what was read from it. Node would still make a request and an answer of each of the
 * thousand that may be left in there, and an error for each that it then aborts: 40 ms for 64 KB. Told to make nothing of
 * them its parser is through in two.
 */
function cut(socket: Socket & { parser?: { onIncoming: unknown } | null }): void {
  if (socket.parser) socket.parser.onIncoming = () => 0
  socket.destroy()
}

function noteWaiting(responses: ServerResponse[], response: ServerResponse): void {
  responses.push(response)
  response.once('close', () => {
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
 * Bytes that the kernel has taken from us. What Node tells in public counts a large write as one, and a slow reader of it
 * would look as if it stood still.
 */
function takenOf(socket: Socket): number {
  const { _handle } = socket as Socket & {
    _handle?: { bytesWritten?: number; writeQueueSize?: number } | null
  }
  return (_handle?.bytesWritten ?? 0) - (_handle?.writeQueueSize ?? 0)
}
