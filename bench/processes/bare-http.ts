/** A bare Fastify that answers the same bytes. */
import Fastify from 'fastify'

let body = ''
const server = Fastify()
server.get('/', (_request, reply) => reply.type('application/json; charset=utf-8').send(body))
const address = await server.listen({ host: '127.0.0.1', port: 0 })
process.on('message', (message: { body: string } | 'stop') => {
  if (message === 'stop') process.exit(0)
  body = message.body
  process.send?.({ done: true })
})
process.send?.({ address })
