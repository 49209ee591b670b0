/** The HTTP door alone on the large data set: what is measured, in a process of its own. */
import { buildServer } from '../../src/http/server.ts'
import { routes } from '../../src/routes.ts'
import { openBench } from '../data.ts'

const app = await openBench({ rate_limit: 100_000_000 })
const readiness = { worker: () => 'elsewhere', stopping: () => false }
const server = await buildServer(app, routes, { readiness })
const address = await server.listen({ host: '127.0.0.1', port: 0 })
process.on('message', async (message) => {
  if (message !== 'stop') return
  await server.close()
  await app.close()
  process.exit(0)
})
process.send?.({ address })
