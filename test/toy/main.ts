/** Parley with one more slice: the lists of main, extended by the toy's. */
import { join } from 'node:path'
import { platformModules } from '../../src/cli/platforms.ts'
import { runProgram } from '../../src/cli/program.ts'
import { verbs } from '../../src/cli/verb-list.ts'
import { commandOf, verb } from '../../src/cli/verbs.ts'
import { migrationsDirectory } from '../../src/db/migrate.ts'
import { ownRoutes, workspaceRoutes } from '../../src/lists/dashboard-routes.ts'
import { loops } from '../../src/lists/loops.ts'
import { operations } from '../../src/lists/operations.ts'
import { routes } from '../../src/lists/routes.ts'
import { loops as toyLoops } from './loops.ts'
import { routes as toyRoutes } from './routes.ts'
import { forgetReminder } from './toy.ts'
import { operations as toyOperations } from './wave.ts'

const parts = {
  routes: [...routes, ...toyRoutes],
  dashboard: { workspaceRoutes, ownRoutes },
  operations: [...operations, ...toyOperations],
  loops: [...loops, toyLoops],
  platforms: platformModules,
  migrations: [migrationsDirectory, join(import.meta.dirname, 'migrations')],
}

await runProgram(
  async () => parts,
  [
    ...verbs,
    {
      words: { reminder: 'the reminders of a toy' },
      load: async () => (program) => {
        verb(commandOf(program, 'reminder'), 'forget <id>', 'forgets one', (app, actor, _, id) =>
          forgetReminder(app, actor, id ?? ''),
        )
      },
    },
  ],
  parts.migrations,
)
