/** The operator's verbs. Each calls the same function as the dashboard. */
import { type Command, Option } from 'commander'
import type { App } from '../app.ts'
import { createAccount, listAccounts, setAccountEnabled } from '../capabilities/accounts/accounts.ts'
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
import {
  type ClosedAs,
  closeOperation,
  listLedger,
  showOperation,
} from '../capabilities/operations/operations.ts'
import {
  createWorkspace,
  listWorkspaces,
  requireWorkspace,
  setWorkspaceEnabled,
  updateWorkspace,
  type WorkspaceFields,
} from '../capabilities/workspaces/workspaces.ts'
import { scopes } from '../contract.ts'
import { Refusal } from '../lib/errors.ts'
import { addLoginVerbs } from './account-login.ts'
import { addSetVerb } from './account-set.ts'
import { workspaceHelp } from './help.ts'
import { keyNote, Noted } from './output.ts'
import { platformDefault, platformNames } from './platforms.ts'
import { addUsers } from './users.ts'
import { commandOf, date, list, verb, within } from './verbs.ts'

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

const zoneHelp = 'time zone in which the day of the workspace ends at midnight, such as Europe/Berlin'

function addWorkspaces(workspace: Command): void {
  verb<WorkspaceFields>(
    workspace,
    'create <name>',
    'create a workspace',
    (app, actor, { timezone }, name) => createWorkspace(app, actor, { name, timezone }),
    { makes_instance: true },
  ).option('--timezone <zone>', zoneHelp, 'UTC')
  verb<WorkspaceFields>(
    workspace,
    'update <id>',
    'change the name, time zone or sending window of a workspace',
    (app, actor, { name, timezone, window }, id = '') =>
      updateWorkspace(app, actor, { id, name, timezone, window }),
  )
    .option('--name <name>', 'new name')
    .option('--timezone <zone>', zoneHelp)
    .option(
      '--window <window>',
      'when campaigns and broadcasts can send, such as "mon-fri 09:00-18:00", or none',
    )
  verb(workspace, 'list', 'list all workspaces', (app) => listWorkspaces(app.db))
  verb(
    workspace,
    'disable <id>',
    'disable a workspace: its keys and members are refused, its accounts send nothing',
    (app, actor, _, id = '') => setWorkspaceEnabled(app, actor, { id, enabled: false }),
  )
  verb(
    workspace,
    'enable <id>',
    'enable a workspace: everything continues where it stopped',
    (app, actor, _, id = '') => setWorkspaceEnabled(app, actor, { id, enabled: true }),
  )
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
  verb<Options>(key, 'create', 'create a key; prints it once', async (app, actor, options) => {
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
      'id of the owner (a UUID), as `parley user list` lists it; campaign allowlists check this user',
    )
    .requiredOption('--name <name>', 'name of the key, such as "crm sync"')
    .requiredOption('--scopes <scopes>', `comma-separated list of ${scopes.join(',')}`, list)
    .option(
      '--expires <date>',
      'when the key expires: 2027-01-31, or an RFC 3339 time; never by default',
      date,
    )
    .option('--mcp-only', 'works for MCP only; the REST API refuses it')
  verb<{ workspace?: string }>(key, 'list', 'list keys', (app, _, { workspace }) =>
    inWorkspaces(app, workspace, (id) => listKeys(app.db, id)),
  ).option('--workspace <id>', `${workspaceHelp}; all by default`)
  verb(key, 'revoke <id>', 'revoke a key, on every process within a second', (app, actor, _, id = '') =>
    revokeKey(app, actor, id),
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
    'create an account; a worker connects it',
    (app, actor, { workspace, platform, name }) =>
      createAccount(app, actor, { workspace_id: workspace, platform, name }),
  )
    .requiredOption('--workspace <id>', workspaceHelp)
    .addOption(
      new Option('--platform <platform>', 'platform of the account')
        .choices(platformNames)
        .default(platformDefault),
    )
    .requiredOption('--name <name>', 'name of the account, such as "Sales"')
  verb<{ workspace?: string }>(account, 'list', 'list accounts', (app, _, { workspace }) =>
    inWorkspaces(app, workspace, (id) => listAccounts(app.db, id)),
  ).option('--workspace <id>', `${workspaceHelp}; all by default`)
  addSetVerb(account)
  verb(account, 'disable <id>', 'disable an account immediately', (app, actor, _, id = '') =>
    setAccountEnabled(app, actor, { id, enabled: false }),
  )
  verb(account, 'enable <id>', 'enable an account; a worker connects it again', (app, actor, _, id = '') =>
    setAccountEnabled(app, actor, { id, enabled: true }),
  )
  addLoginVerbs(account)
}

function addOperations(operation: Command): void {
  verb<{ workspace?: string; ambiguous?: true }>(
    operation,
    'list',
    'list the newest operations, or those with an unknown outcome',
    (app, _, { workspace, ambiguous }) =>
      listLedger(app.db, { workspace_id: workspace, ambiguous: ambiguous ?? false }),
  )
    .option('--workspace <id>', `${workspaceHelp}; all by default`)
    .option('--ambiguous', 'only operations with an unknown outcome')
  verb(
    operation,
    'show <id>',
    'show what became of one operation, and where its time went',
    (app, _, __, id = '') => showOperation(app, id),
  )
  verb<{ as: ClosedAs }>(
    operation,
    'close <id>',
    'record the outcome of an ambiguous operation; it is never sent again',
    (app, actor, { as }, id = '') => closeOperation(app, actor, { id, closed_as: as }),
    { operations: async () => (await import('../lists/operations.ts')).operations },
  ).addOption(
    new Option('--as <outcome>', 'the outcome that a person found out')
      .choices(['sent', 'not_sent'])
      .makeOptionMandatory(),
  )
}

function addGates(gate: Command): void {
  verb(gate, 'list', 'list the gates and their states', (app) => listGates(app.db))
  verb(
    gate,
    'enable <names...>',
    'open gates and print what changed; "all" is every gate except extended',
    (app, actor, _, ...names) => setGates(app, actor, { names, enabled: true }),
    { makes_instance: true },
  )
  verb(
    gate,
    'disable <names...>',
    'close gates and print what changed',
    (app, actor, _, ...names) => setGates(app, actor, { names, enabled: false }),
    { makes_instance: true },
  )
}

function addAllowlists(allow: Command): void {
  for (const [name, kind] of [
    ['user', 'campaign_user'],
    ['workspace', 'campaign_workspace'],
  ] as const) {
    const entry = allow.command(name).description(`list the ${name}s that can use campaigns`)
    verb(entry, 'add <id>', `allow a ${name}`, (app, actor, _, id = '') =>
      setAllowed(app, actor, { list: kind, id, allowed: true }),
    )
    verb(entry, 'remove <id>', `remove a ${name} from the allowlist`, (app, actor, _, id = '') =>
      setAllowed(app, actor, { list: kind, id, allowed: false }),
    )
  }
  verb(allow, 'list', 'list both allowlists', (app) => listAllowed(app.db))
}

function addDispatch(dispatch: Command): void {
  verb<{ without?: string }>(dispatch, 'on', 'resume sending', async (app, actor, { without }) => {
    if (without !== undefined) await dispatchWithout(app, actor, without)
    return setDispatch(app, actor, true)
  }).option('--without <worker>', 'do not wait for the journals of this worker to be replayed')
  verb(dispatch, 'status', 'show whether Parley sends messages and what stops it', (app) =>
    readDispatch(app.db),
  )
  verb<{ reason?: string }>(
    dispatch,
    'off',
    'stop all sending on every process within a second',
    (app, actor, { reason }) => setDispatch(app, actor, false, reason),
    { makes_instance: true },
  ).option('--reason <text>', 'why, for every user: the dashboard shows it until sending resumes')
}

const auditRows = { standard: 50, max: 10_000 }

function addAudit(audit: Command): void {
  verb<{ workspace?: string; limit: number }>(
    audit,
    'list',
    'list the newest changes: who changed what, and when',
    async (app, _, { workspace, limit }) => {
      if (workspace !== undefined) await requireWorkspace(app.db, workspace)
      return listAudit(app.db, { workspace_id: workspace, limit })
    },
  )
    .option('--workspace <id>', `${workspaceHelp}; all and the instance by default`)
    .addOption(
      new Option('--limit <n>', `number of rows, 1 to ${auditRows.max}`)
        .default(auditRows.standard)
        .argParser((value) => within(value, auditRows.max)),
    )
  verb(audit, 'verify', 'verify the hash chain; names the first invalid row', async (app) => {
    const verdict = await verifyAudit(app)
    if (!verdict.ok) throw new Refusal(`The audit log is invalid at row ${verdict.seq}: ${verdict.problem}.`)
    return verdict
  })
}
