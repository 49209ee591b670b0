/** Every verb of the command line, by module. A module is loaded only when one of its words is used. */
import { gates } from '../contract.ts'
import { makeProgram, type VerbModule } from './program.ts'

export const verbs: readonly VerbModule[] = [
  {
    words: {
      start: 'run everything in one process: HTTP, background work and the sandbox',
      serve: 'run HTTP only',
      work: 'run background work only; the port serves /healthz and /readyz',
    },
    load: async (parts) => {
      const { addRunVerbs } = await import('./run.ts')
      return addRunVerbs(await parts())
    },
  },
  {
    words: {
      demo: 'create the demo workspace in an empty data directory; opens every gate and prints the key once',
    },
    load: async (parts) => {
      const { addDemoVerb } = await import('./demo-verb.ts')
      return addDemoVerb(await parts())
    },
  },
  {
    words: {
      sandbox:
        'run only the sandbox platform, in --data-dir or .parley-sandbox; set PARLEY_SANDBOX_URL to its address',
    },
    load: async () => (await import('./sandbox.ts')).addSandboxVerb,
  },
  {
    words: { migrate: 'migrate the database to this version; forward only' },
    load: async () => (await import('./migrate.ts')).addMigrateVerb,
  },
  {
    words: { doctor: 'check the set-up and say what is wrong with it; changes nothing' },
    load: async () => (await import('./doctor/doctor.ts')).addDoctorVerb,
  },
  {
    words: {
      backup: 'write the embedded database and its secret to a new file',
      restore: 'restore a backup into an empty embedded database; sending stays off',
    },
    load: async (parts) => {
      const { addBackupVerbs } = await import('./backup.ts')
      return addBackupVerbs(await parts())
    },
  },
  {
    words: { secret: 'replace the secret of the instance while the service runs' },
    load: async () => (await import('./secret.ts')).addSecretVerbs,
  },
  {
    words: {
      workspace: 'manage the tenants',
      user: 'manage the people who sign in',
      key: 'manage the API keys of a workspace',
      account: 'manage the messaging accounts of a workspace',
      gate: `open and close features: ${gates.join(', ')}`,
      allow: 'manage which users and workspaces can use campaigns',
      operation: 'read the ledger of operations and close ambiguous ones',
      dispatch: 'stop and resume all sending',
      audit: 'read and verify the audit log of changes',
    },
    load: async () => (await import('./admin.ts')).addAdminVerbs,
  },
  {
    words: { telegram: 'rehearse at Telegram with two accounts of yours' },
    load: async () => (await import('./telegram.ts')).addTelegramVerbs,
  },
  {
    words: {
      stage: 'manage the pipeline stages of a workspace',
      column: 'manage the columns of a workspace',
      suppress: 'manage the suppression list: people whom a workspace never writes to first',
    },
    load: async () => (await import('./crm.ts')).addCrmVerbs,
  },
  {
    words: { retention: 'manage how long a workspace keeps texts, files and names' },
    load: async () => (await import('./retention.ts')).addRetentionVerbs,
  },
  {
    words: { person: 'find a person, show, export and erase what is stored about them' },
    load: async () => (await import('./person.ts')).addPersonVerbs,
  },
  {
    words: {
      campaign: 'manage campaigns: messages to many people',
      verify: 'verify a campaign against the ledger',
    },
    load: async () => (await import('./campaigns.ts')).addCampaignVerbs,
  },
  {
    words: {
      events: 'print events, one JSON document per line; needs PARLEY_API_KEY',
      webhook: 'manage the endpoints that receive events; needs PARLEY_API_KEY',
    },
    load: async () => (await import('./webhooks.ts')).addWebhookVerbs,
  },
  {
    words: { mcp: 'serve the MCP tools over standard input and output; needs PARLEY_API_KEY' },
    load: async () => (await import('./mcp.ts')).addMcpVerb,
  },
  {
    words: {
      generate:
        'write openapi.json, src/db/schema.sql, web/src/data/api-types.ts, docs/cli.md and docs/configuration.md; --check only compares',
    },
    hidden: true,
    load: async (parts) => {
      const { addGenerateVerb } = await import('./generate.ts')
      const words = verbs.flatMap((module) => Object.keys(module.words))
      return addGenerateVerb(() => makeProgram(parts, verbs, words))
    },
  },
]
