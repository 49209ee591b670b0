/** The operator's verbs. Each calls the same function as the dashboard. */
import { type Command, Option } from 'commander'
import type { App } from '../app.ts'
import {
  createAccount,
  listAccounts,
  setAccountEnabled,
  setColdPerDay,
} from '../capabilities/accounts/accounts.ts'
import { listAudit, verifyAudit } from '../capabilities/audit/audit.ts'
import {
  dispatchWithout,
  listAllowed,
  listGates,
  readDispatch,
  setAllowed,
  setDispatch,
  setGates,
} from '../capabilities/gates/gates.ts'
import { createKey, listKeys, type NewKey, revokeKey } from '../capabilities/keys/keys.ts'
import { type ClosedAs, closeOperation, listLedger } from '../capabilities/operations/operations.ts'
import {
  createWorkspace,
  listWorkspaces,
  requireWorkspace,
  updateWorkspace,
  type WorkspaceFields,
} from '../capabilities/workspaces/workspaces.ts'
import { scopes } from '../contract.ts'
import { Refusal } from '../lib/errors.ts'
import { addLoginVerbs } from './account-login.ts'
import { workspaceHelp } from './help.ts'
import { keyNote, Noted } from './output.ts'
import { platformDefault, platformNames } from './platforms.ts'
import { addUsers } from './users.ts'
import { commandOf, date, list, verb, wholeOrNone, within } from './verbs.ts'

export function addAdminVerbs(program: Command): void {
  addWorkspaces(commandOf(program, 'workspace'))
  addUsers(commandOf(program, 'user'))
  addKeys(commandOf(program, 'key'))
  addAccounts(commandOf(program, 'account'))
  addGates(commandOf(program, 'gate'))
  addAllowlists(commandOf(program, 'allow'))
  addOperations(commandOf(program, 'operation'))
  addDispatch(commandOf(program, 'dispatch'))
  addAudit(commandOf(program, 'audit'))
}

const zoneHelp = "whose midnight ends the workspace's day; a name such as Europe/Berlin"

function addWorkspaces(workspace: Command): void {
  verb<WorkspaceFields>(
    workspace,
    'create <name>',
    'make a workspace',
    (app, actor, { timezone }, name) => createWorkspace(app, actor, { name, timezone }),
    { makes_instance: true },
  ).option('--timezone <zone>', zoneHelp, 'UTC')
  verb<WorkspaceFields>(
    workspace,
    'update <id>',
    'rename it, move its midnight, or say when campaigns may write',
    (app, actor, { name, timezone, window }, id = '') =>
      updateWorkspace(app, actor, { id, name, timezone, window }),
  )
    .option('--name <name>', 'what people call it from now on')
    .option('--timezone <zone>', zoneHelp)
    .option(
      '--window <window>',
      'when campaigns and broadcasts may write, such as "mon-fri 09:00-18:00", or none',
    )
  verb(workspace, 'list', 'every workspace', (app) => listWorkspaces(app.db))
}

function addKeys(key: Command): void {
  type Options = {
    workspace: string
    user: string
    name: string
    scopes: string[]
    expires?: Date
    mcpOnly?: true
  }
  verb<Options>(key, 'create', 'make a key; it is shown once', async (app, actor, options) => {
    const { workspace, user, expires, mcpOnly, ...rest } = options
    const wanted: NewKey = {
      workspace_id: workspace,
      user_id: user,
      name: rest.name,
      scopes: rest.scopes,
      expires_at: expires,
      mcp_only: mcpOnly,
    }
    return new Noted(await createKey(app, actor, wanted), keyNote)
  })
    .requiredOption('--workspace <id>', workspaceHelp)
    .requiredOption(
      '--user <id>',
      'whose key it is (a UUID of `parley user list`); campaign allowlists go by that user',
    )
    .requiredOption('--name <name>', 'what people call it, such as "crm sync"')
    .requiredOption('--scopes <scopes>', `separated by commas: any of ${scopes.join(',')}`, list)
    .option(
      '--expires <date>',
      'when it stops working: 2027-01-31, or an RFC 3339 time; without it, never',
      date,
    )
    .option('--mcp-only', 'refused by the REST API')
  verb<{ workspace?: string }>(key, 'list', 'the keys there are', (app, _, { workspace }) =>
    inWorkspaces(app, workspace, (id) => listKeys(app.db, id)),
  ).option('--workspace <id>', `${workspaceHelp}; without it, of all`)
  verb(
    key,
    'revoke <id>',
    'refuse it from now on, on every process within a second',
    (app, actor, _, id = '') => revokeKey(app, actor, id),
  )
}

/** The rows of one workspace, or of each. */
async function inWorkspaces<T>(
  app: App,
  named: string | undefined,
  list: (workspace_id: string) => Promise<readonly T[]>,
): Promise<T[]> {
  const ids = named === undefined ? (await listWorkspaces(app.db)).map(({ id }) => id) : [named]
  return (await Promise.all(ids.map(list))).flat()
}

function addAccounts(account: Command): void {
  verb<{ workspace: string; platform: string; name: string }>(
    account,
    'create',
    'make an account; a worker connects it',
    (app, actor, { workspace, platform, name }) =>
      createAccount(app, actor, { workspace_id: workspace, platform, name }),
  )
    .requiredOption('--workspace <id>', workspaceHelp)
    .addOption(
      new Option('--platform <platform>', 'where it writes').choices(platformNames).default(platformDefault),
    )
    .requiredOption('--name <name>', 'what people call it, such as "Sales"')
  verb<{ workspace?: string }>(account, 'list', 'the accounts there are', (app, _, { workspace }) =>
    inWorkspaces(app, workspace, (id) => listAccounts(app.db, id)),
  ).option('--workspace <id>', `${workspaceHelp}; without it, of all`)
  verb<{ coldPerDay: number | 'none' }>(
    account,
    'set <id>',
    'what campaigns may do with it in a day',
    (app, actor, { coldPerDay }, id = '') =>
      setColdPerDay(app, actor, { id, cold_per_day: coldPerDay === 'none' ? null : coldPerDay }),
  ).requiredOption(
    '--cold-per-day <n>',
    'first messages to people who never wrote to it; or none',
    wholeOrNone,
  )
  verb(account, 'disable <id>', 'take it out of every path at once', (app, actor, _, id = '') =>
    setAccountEnabled(app, actor, { id, enabled: false }),
  )
  verb(account, 'enable <id>', 'let a worker connect it again', (app, actor, _, id = '') =>
    setAccountEnabled(app, actor, { id, enabled: true }),
  )
  addLoginVerbs(account)
}

function addOperations(operation: Command): void {
  verb<{ workspace?: string; ambiguous?: true }>(
    operation,
    'list',
    'the newest operations, or those whose outcome nobody knows',
    (app, _, { workspace, ambiguous }) =>
      listLedger(app.db, { workspace_id: workspace, ambiguous: ambiguous ?? false }),
  )
    .option('--workspace <id>', `${workspaceHelp}; without it, of all`)
    .option('--ambiguous', 'only those that need a look')
  verb<{ as: ClosedAs }>(
    operation,
    'close <id>',
    'note what became of an ambiguous one; it is never sent again',
    (app, actor, { as }, id = '') => closeOperation(app, actor, { id, closed_as: as }),
    { operations: async () => (await import('../lists/operations.ts')).operations },
  ).addOption(
    new Option('--as <outcome>', 'what a person has found out')
      .choices(['sent', 'not_sent'])
      .makeOptionMandatory(),
  )
}

function addGates(gate: Command): void {
  verb(gate, 'list', 'every gate and its state', (app) => listGates(app.db))
  verb(
    gate,
    'enable <names...>',
    'open gates; "all" is every gate but extended; prints what changed',
    (app, actor, _, ...names) => setGates(app, actor, { names, enabled: true }),
    { makes_instance: true },
  )
  verb(
    gate,
    'disable <names...>',
    'close gates; prints what changed',
    (app, actor, _, ...names) => setGates(app, actor, { names, enabled: false }),
    { makes_instance: true },
  )
}

function addAllowlists(allow: Command): void {
  for (const [name, kind] of [
    ['user', 'campaign_user'],
    ['workspace', 'campaign_workspace'],
  ] as const) {
    const entry = allow.command(name).description(`the ${name}s that may use campaigns`)
    verb(entry, 'add <id>', `allow a ${name}`, (app, actor, _, id = '') =>
      setAllowed(app, actor, { list: kind, id, allowed: true }),
    )
    verb(entry, 'remove <id>', `no longer allow a ${name}`, (app, actor, _, id = '') =>
      setAllowed(app, actor, { list: kind, id, allowed: false }),
    )
  }
  verb(allow, 'list', 'both allowlists', (app) => listAllowed(app.db))
}

function addDispatch(dispatch: Command): void {
  verb<{ without?: string }>(dispatch, 'on', 'let messages go out again', async (app, actor, { without }) => {
    if (without !== undefined) await dispatchWithout(app, actor, without)
    return setDispatch(app, actor, true)
  }).option('--without <worker>', 'do not wait for what the journals of this worker would put back')
  verb(dispatch, 'status', 'whether messages go out, and what keeps them', (app) => readDispatch(app.db))
  verb(
    dispatch,
    'off',
    'stop all sending, everywhere, within a second',
    (app, actor) => setDispatch(app, actor, false),
    { makes_instance: true },
  )
}

const auditRows = { standard: 50, max: 10_000 }

function addAudit(audit: Command): void {
  verb<{ workspace?: string; limit: number }>(
    audit,
    'list',
    'the newest changes: who changed what, and when',
    async (app, _, { workspace, limit }) => {
      if (workspace !== undefined) await requireWorkspace(app.db, workspace)
      return listAudit(app.db, { workspace_id: workspace, limit })
    },
  )
    .option('--workspace <id>', `${workspaceHelp}; without it, of all and of the instance`)
    .addOption(
      new Option('--limit <n>', `how many, 1 to ${auditRows.max}`)
        .default(auditRows.standard)
        .argParser((value) => within(value, auditRows.max)),
    )
  verb(audit, 'verify', 'check the chain; names the first row that does not fit', async (app) => {
    const verdict = await verifyAudit(app)
    if (!verdict.ok)
      throw new Refusal(`The audit log does not fit at row ${verdict.seq}: ${verdict.problem}.`)
    return verdict
  })
}
