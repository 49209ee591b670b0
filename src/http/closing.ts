/** A clean end: requests in flight are answered, and connections that only wait are not waited for. */
import type { FastifyInstance, FastifyReply } from 'fastify'

const lookMs = 50
/** An answer that has begun may take so long to be read: whoever dawdles must not keep the service from stopping. */
const readMsMax = 5_000

/** Node waits for idle keep-alive connections and for headers that never end; a supervisor would not. */
export function closePromptly(server: FastifyInstance): void {
  // A list: a set that changes with every request keeps what it held until the next full collection of garbage.
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
      // Cut off in the middle it does not look finished.
      const late = performance.now() - startedAt > readMsMax
      if (late) for (const response of inFlight) if (response.headersSent) response.destroy()
      if (inFlight.length === 0) server.server.closeAllConnections()
    }, lookMs)
    server.server.once('close', () => clearInterval(timer))
  })
}

/** The last one takes its place: nobody asks in which order they came. */
function remove<T>(list: T[], item: T): void {
  const at = list.indexOf(item)
  if (at === -1) return
  const last = list.pop() as T
  if (at < list.length) list[at] = last
}
