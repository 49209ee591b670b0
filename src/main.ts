/** Everything there is, listed, and handed to the command line. */
import { platformModules } from './cli/platforms.ts'
import { runProgram } from './cli/program.ts'
import { verbs } from './cli/verb-list.ts'
import { migrationsDirectory } from './db/migrate.ts'
import { loops } from './loops.ts'
import { operations } from './operations.ts'
import { ownRoutes, workspaceRoutes } from './people.ts'
import { routes } from './routes.ts'

const parts = {
  routes,
  people: { workspaceRoutes, ownRoutes },
  operations,
  loops,
  platforms: platformModules,
  migrations: [migrationsDirectory],
}

await runProgram(parts, verbs)
