/** The process the tests start: a world served on a loopback port, whose address is its one line of output. */
import { createServer, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import { ApiError } from '../../src/lib/errors.ts'
import { controlOperations } from '../../src/platform/sandbox/control.ts'
import { serveLink } from '../../src/platform/sandbox/serve-link.ts'
import { openWorld } from '../../src/platform/sandbox/world.ts'
import { drive } from '../../src/platform/sandbox/world-clock.ts'

const world = openWorld({ data_dir: process.argv[2] ?? null, seed: 7 })
const driver = drive(world, (error) => {
  throw error
})

async function answer(request: IncomingMessage): Promise<{ status: number; body: unknown }> {
  const url = new URL(request.url ?? '/', 'http://127.0.0.1')
  const operation = controlOperations.find(
    (each) => each.method === request.method && `/sandbox/v1${each.path}` === url.pathname,
  )
  if (!operation) return { status: 404, body: { detail: 'There is nothing at this address.' } }
  try {
    const query = Object.fromEntries(url.searchParams)
    const body = operation.body ? await json(request) : undefined
    return { status: 200, body: await operation.handle(world, { body, query }) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { status: error.status, body: { code: error.code, detail: error.message } }
  }
}

const server = createServer((request, response) => {
  answer(request).then(
    ({ status, body }) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    },
    () => response.destroy(),
  )
})
server.on('upgrade', serveLink(world))
server.listen(0, '127.0.0.1', () => {
  const bound = server.address()
  const port = bound !== null && typeof bound === 'object' ? bound.port : 0
  process.stdout.write(`http://127.0.0.1:${port}\n`)
})

process.once('SIGTERM', () => {
  driver.stop()
  server.close()
  world.close().then(
    () => process.exit(0),
    () => process.exit(1),
  )
})
