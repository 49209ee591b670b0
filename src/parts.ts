/** The lists of everything the program consists of. */
import { platformModules } from './cli/platforms.ts'
import { migrationsDirectory } from './db/migrate.ts'
import { ownRoutes, workspaceRoutes } from './lists/dashboard-routes.ts'
import { loops } from './lists/loops.ts'
import { operations } from './lists/operations.ts'
import { routes } from './lists/routes.ts'

export const parts = {
  routes,
  dashboard: { workspaceRoutes, ownRoutes },
  operations,
  loops,
  platforms: platformModules,
  migrations: [migrationsDirectory],
}
