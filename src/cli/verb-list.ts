/** Every verb of the command line. */
import { addAdminVerbs } from './admin.ts'
import { addBackupVerbs } from './backup.ts'
import { addCampaignVerbs } from './campaigns.ts'
import { addCrmVerbs } from './crm.ts'
import { addDemoVerb } from './demo-verb.ts'
import { addGenerateVerb } from './generate.ts'
import { addMcpVerb } from './mcp.ts'
import { addMigrateVerb } from './migrate.ts'
import type { AddVerbs } from './program.ts'
import { addRunVerbs } from './run.ts'
import { addSandboxVerb } from './sandbox.ts'
import { addWebhookVerbs } from './webhooks.ts'

export const verbs: readonly AddVerbs[] = [
  addRunVerbs,
  addDemoVerb,
  addSandboxVerb,
  addMigrateVerb,
  addBackupVerbs,
  addAdminVerbs,
  addCrmVerbs,
  addCampaignVerbs,
  addWebhookVerbs,
  addMcpVerb,
  addGenerateVerb,
]
