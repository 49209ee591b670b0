/** How much of the service one client, and all of them together, may take up: connections, waiting requests, time to read. */
import {
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import { sourceOf } from '../lib/addresses.ts'

/** In all and not for each address: a proxy is one address. Beyond it one is cut for each that comes (`makeRoom`). */
const connectionsMax = 2_000 // limit: connections in all
/** Requests of one connection that wait for their answers. Hardly any client sends a second before the first is answered. */
const pipelinedMax = 20
/** A client that takes nothing of its answer for so long is not going to. */
const stalledMsMax = 60_000 // limit: reader without progress
const lookMs = Math.min(5_000, stalledMsMax / 4)

/**
 * Why something was dropped: a connection for a new one beyond the most, a connection with too many requests at once, a request
 * whose connection was gone before it began or while it waited, an answer that nobody reads.
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
  /** Whose it is: the peer's, because only a request says whom a proxy speaks for. */
  readonly source: string
  /** When it last had a complete request that was answered; before that, when it began. */
  completeAt: number
  /** The last that came, and may still be on its way. */
  request: IncomingMessage | undefined
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
 * Ends a connection in the middle of what was read from it. Node would still make a request and an answer of each of the
 * thousand that may be left in there, and an error for each that it then aborts: 40 ms for 64 KB. Told to make nothing of
 * them its parser is through in two.
 */
function cut(socket: Socket & { parser?: { onIncoming: unknown } | null }): void {
  if (socket.parser) socket.parser.onIncoming = () => 0
  socket.destroy()
}

/**
 * Cuts the connection that has been longest without a complete request, of the source that has most: idle ones and those
 * whose headers or bodies do not end before those that do not read their answer. One that waits for an answer is never cut.
 * False where all of them wait.
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
  // At once and not with its close, or two that come together would cut the same.
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

/** 0 without a complete request, 1 where an answer waits for its reader. Undefined: not to be cut. */
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
 * Bytes that the kernel has taken from us. What Node tells in public counts a large write as one, and a slow reader of it
 * would look as if it stood still.
 */
function takenOf(socket: Socket): number {
  const { _handle } = socket as Socket & {
    _handle?: { bytesWritten?: number; writeQueueSize?: number } | null
  }
  return (_handle?.bytesWritten ?? 0) - (_handle?.writeQueueSize ?? 0)
}
