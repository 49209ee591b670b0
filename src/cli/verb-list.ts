/** Every verb of the command line, by module. A module is loaded only when one of its words is used. */
import { gates } from '../contract.ts'
import { makeProgram, type VerbModule } from './program.ts'

export const verbs: readonly VerbModule[] = [
  {
    words: {
      start: 'everything in one process: HTTP, background work, and the sandbox',
      serve: 'HTTP only',
      work: 'background work only; the port answers /healthz and /readyz',
    },
    load: async (parts) => {
      const { addRunVerbs } = await import('./run.ts')
      return addRunVerbs(await parts())
    },
  },
  {
    words: {
      demo: 'make the demo workspace in an empty data directory; opens every gate; the key is shown once',
    },
    load: async (parts) => {
      const { addDemoVerb } = await import('./demo-verb.ts')
      return addDemoVerb(await parts())
    },
  },
  {
    words: {
      sandbox: 'the sandbox platform alone, in --data-dir or .parley-sandbox; name it in PARLEY_SANDBOX_URL',
    },
    load: async () => (await import('./sandbox.ts')).addSandboxVerb,
  },
  {
    words: { migrate: 'bring the database up to this version; forward only' },
    load: async () => (await import('./migrate.ts')).addMigrateVerb,
  },
  {
    words: {
      backup: 'write the embedded database and its secret into a new file',
      restore: 'make an empty embedded database out of a backup; sending stays off',
    },
    load: async (parts) => {
      const { addBackupVerbs } = await import('./backup.ts')
      return addBackupVerbs(await parts())
    },
  },
  {
    words: {
      workspace: 'the tenants: create, update, list',
      user: 'the people who sign in',
      key: 'API keys of a workspace',
      account: 'messaging accounts of a workspace',
      gate: `what is switched on: ${gates.join(', ')}`,
      allow: 'who may use campaigns: users and workspaces',
      operation: 'the ledger of what was sent, and what nobody knows',
      dispatch: 'the switch that stops all sending',
      audit: 'the log of every change by an operator',
    },
    load: async () => (await import('./admin.ts')).addAdminVerbs,
  },
  {
    words: {
      stage: 'the stages that chats move through',
      column: 'the columns of a workspace',
      suppress: 'whom a workspace never writes to first',
    },
    load: async () => (await import('./crm.ts')).addCrmVerbs,
  },
  {
    words: { campaign: 'messages to many: list, show, create, stop', verify: 'whether the books agree' },
    load: async () => (await import('./campaigns.ts')).addCampaignVerbs,
  },
  {
    words: {
      events: 'what happened, one JSON document a line; needs PARLEY_API_KEY',
      webhook: 'where events are delivered; needs PARLEY_API_KEY',
    },
    load: async () => (await import('./webhooks.ts')).addWebhookVerbs,
  },
  {
    words: { mcp: 'serve the tools of /api/mcp over standard input and output; needs PARLEY_API_KEY' },
    load: async () => (await import('./mcp.ts')).addMcpVerb,
  },
  {
    words: {
      generate:
        'write openapi.json, src/db/schema.sql, web/src/api-types.ts, docs/cli.md and docs/configuration.md; --check only compares',
    },
    hidden: true,
    load: async (parts) => {
      const { addGenerateVerb } = await import('./generate.ts')
      const words = verbs.flatMap((module) => Object.keys(module.words))
      return addGenerateVerb(() => makeProgram(parts, verbs, words))
    },
  },
]
