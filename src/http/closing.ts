/** A clean stop: answers requests in flight and closes idle connections. */
import type { FastifyInstance, FastifyReply } from 'fastify'

const lookMs = 50
/** How long a client may take to read an answer that has begun: a slow reader must not keep the service from stopping. */
const readMsMax = 5_000

/** Node waits for idle keep-alive connections and for headers that never end; a supervisor does not wait that long. */
export function closePromptly(server: FastifyInstance): void {
  // An array: a set that changes with every request keeps removed entries until the next full garbage collection.
  const inFlight: FastifyReply['raw'][] = []
  let closing = false
  server.addHook('onRequest', (_request, reply, done) => {
    inFlight.push(reply.raw)
    reply.raw.on('close', () => remove(inFlight, reply.raw))
    done()
  })
  server.addHook('onSend', (_request, reply, _payload, done) => {
    if (closing) reply.header('connection', 'close')
    done()
  })
  server.addHook('preClose', async () => {
    closing = true
    const startedAt = performance.now()
    const timer = setInterval(() => {
      // A client recognizes an answer that is cut off in the middle as unfinished.
      const late = performance.now() - startedAt > readMsMax
      if (late) for (const response of inFlight) if (response.headersSent) response.destroy()
      if (inFlight.length === 0) server.server.closeAllConnections()
    }, lookMs)
    server.server.once('close', () => clearInterval(timer))
  })
}

/** Moves the last item into the gap, because the order does not matter. */
function remove<T>(list: T[], item: T): void {
  const at = list.indexOf(item)
  if (at === -1) return
  const last = list.pop() as T
  if (at < list.length) list[at] = last
}
