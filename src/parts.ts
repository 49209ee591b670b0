/** Everything there is, listed. */
import { platformModules } from './cli/platforms.ts'
import { migrationsDirectory } from './db/migrate.ts'
import { loops } from './loops.ts'
import { operations } from './operations.ts'
import { ownRoutes, workspaceRoutes } from './people.ts'
import { routes } from './routes.ts'

export const parts = {
  routes,
  people: { workspaceRoutes, ownRoutes },
  operations,
  loops,
  platforms: platformModules,
  migrations: [migrationsDirectory],
}
