/** A bare Fastify that answers the same bytes, head and body. */
import Fastify from 'fastify'
import type { Answer } from '../load.ts'

let answer: Answer = { headers: {}, body: '' }
const server = Fastify()
server.get('/', (_request, reply) => reply.headers(answer.headers).send(answer.body))
const address = await server.listen({ host: '127.0.0.1', port: 0 })
process.on('message', (message: Answer | 'stop') => {
  if (message === 'stop') process.exit(0)
  answer = message
  process.send?.({ done: true })
})
process.send?.({ address })
