/** Receives webhooks: `/hook` accepts them, `/hang` never answers, `/flood` answers without end. Prints its port. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const chunk = Buffer.alloc(64 * 1024, 'x')

const server = createServer((request, response) => {
  request.resume().on('end', () => {
    if (request.url === '/hang') return
    if (request.url !== '/flood') return void response.end()
    const more = () => {
      while (!response.destroyed && response.write(chunk));
    }
    response
      .writeHead(200, { 'content-length': 10 * 2 ** 30 })
      .on('drain', more)
      .on('error', () => {})
    more()
  })
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
