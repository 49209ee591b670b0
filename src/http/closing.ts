/** A clean end: requests in flight are answered, and connections that only wait are not waited for. */
import type { FastifyInstance } from 'fastify'

const lookMs = 50

/** Node waits for idle keep-alive connections and for headers that never end; a supervisor would not. */
export function closePromptly(server: FastifyInstance): void {
  let inFlight = 0
  let closing = false
  const leave = () => {
    inFlight--
  }
  server.addHook('onRequest', (_request, reply, done) => {
    inFlight++
    reply.raw.on('close', leave)
    done()
  })
  server.addHook('onSend', (_request, reply, _payload, done) => {
    if (closing) reply.header('connection', 'close')
    done()
  })
  server.addHook('preClose', async () => {
    closing = true
    const timer = setInterval(() => {
      if (inFlight === 0) server.server.closeAllConnections()
    }, lookMs)
    server.server.once('close', () => clearInterval(timer))
  })
}
