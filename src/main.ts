/** Everything there is, listed, and handed to the command line. */
import { addAdminVerbs } from './cli/admin.ts'
import { addBackupVerbs } from './cli/backup.ts'
import { addCampaignVerbs } from './cli/campaigns.ts'
import { addCrmVerbs } from './cli/crm.ts'
import { addDemoVerb } from './cli/demo-verb.ts'
import { addGenerateVerb } from './cli/generate.ts'
import { addMigrateVerb } from './cli/migrate.ts'
import { platformModules } from './cli/platforms.ts'
import { runProgram } from './cli/program.ts'
import { addRunVerbs } from './cli/run.ts'
import { addSandboxVerb } from './cli/sandbox.ts'
import { migrationsDirectory } from './db/migrate.ts'
import { loops } from './loops.ts'
import { operations } from './operations.ts'
import { routes } from './routes.ts'

const parts = {
  routes,
  operations,
  loops,
  platforms: platformModules,
  migrations: [migrationsDirectory],
}

await runProgram(parts, [
  addRunVerbs,
  addDemoVerb,
  addSandboxVerb,
  addMigrateVerb,
  addBackupVerbs,
  addAdminVerbs,
  addCrmVerbs,
  addCampaignVerbs,
  addGenerateVerb,
])
