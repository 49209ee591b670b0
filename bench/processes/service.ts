/** The HTTP server alone on the large data set, with its log: the thing measured, in its own process. */
import { openSync } from 'node:fs'
import pg from 'pg'
import { makeLogger } from '../../src/cli/log.ts'
import { writeLines } from '../../src/cli/log-lines.ts'
import { openApp } from '../../src/cli/open.ts'
import { readConfig } from '../../src/config.ts'
import type { Sql } from '../../src/db/sql.ts'
import { builtPages } from '../../src/http/dashboard-pages.ts'
import { buildServer } from '../../src/http/server.ts'
import { ownRoutes, workspaceRoutes } from '../../src/lists/dashboard-routes.ts'
import { operations } from '../../src/lists/operations.ts'
import { routes } from '../../src/lists/routes.ts'
import { benchDirectory } from '../data.ts'

const app = await openApp({
  config: { ...readConfig({ PARLEY_POOL_SIZE: '16' }), rate_limit: 100_000_000 },
  data_dir: benchDirectory,
  log: makeLogger('info', writeLines(openSync('/dev/null', 'w'))),
  claim: 'service',
  operations,
  routes,
})
const readiness = { worker: () => 'elsewhere', journal: () => 'elsewhere', stopping: () => false }
const dashboard = { workspaceRoutes, ownRoutes }
const server = await buildServer(app, routes, { readiness, dashboard, pages: builtPages })
const address = await server.listen({ host: '127.0.0.1', port: 0 })
const { query } = pg.Client.prototype
let statements: Sql[] = []
process.on('message', async (message) => {
  if (message === 'record') {
    statements = []
    pg.Client.prototype.query = function (this: pg.Client, statement: Sql, ...rest: unknown[]) {
      const { name, text, values } = statement
      statements.push({ name, text, values })
      return Reflect.apply(query, this, [statement, ...rest])
    } as typeof query
    process.send?.({ done: true })
  }
  if (message === 'recorded') {
    pg.Client.prototype.query = query
    process.send?.({ statements })
  }
  if (message !== 'stop') return
  await server.close()
  await app.close()
  process.exit(0)
})
process.send?.({ address })
