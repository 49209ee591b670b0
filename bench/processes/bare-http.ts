/** A bare Fastify that answers the same bytes. */
import Fastify from 'fastify'

const body = process.env.BENCH_BODY ?? ''
const server = Fastify()
server.get('/', (_request, reply) => reply.type('application/json; charset=utf-8').send(body))
const address = await server.listen({ host: '127.0.0.1', port: 0 })
process.on('message', () => process.exit(0))
process.send?.({ address })
