/** Whose key this is, and what it can do right now. */
import { listAccounts, listEligibleAccounts } from '../../access/accounts.ts'
import { isCapable } from '../../access/needs.ts'
import type { App } from '../../app.ts'
import { type Caller, contractVersion, type Scope } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import { canSend, listConnections } from '../../ledger/liveness.ts'

interface Me {
  readonly workspace_id: string
  readonly workspace: { readonly id: string; readonly name: string }
  readonly key: { readonly name: string; readonly prefix: string; readonly scopes: readonly Scope[] }
  readonly accounts: readonly unknown[]
  readonly capabilities: Readonly<Record<string, boolean>>
  readonly contract_version: string
}

export async function describeCaller(app: App, caller: Caller): Promise<Me> {
  const [settings, sending, accounts, workspace] = await Promise.all([
    app.settings.current(),
    canSend(app),
    // At the dashboard this read sees every account, as the others do.
    caller.via.kind === 'session' ? listAccounts(app, caller) : listEligibleAccounts(app, caller),
    app.db.one<Me['workspace']>(sql`select id, name from workspaces where id = ${caller.workspace_id}`),
  ])
  const ready = accounts.filter(({ status }) => status === 'READY').map(({ id }) => id)
  // Without the list of workers, which `sending` reports, none counts as connected.
  const connections = await listConnections(app.db, ready).catch(() => [])
  const connected = new Set(connections.filter(({ live }) => live).map(({ account_id }) => account_id))
  const reaches = sending && connections.some(({ reachable }) => reachable) // guard: capabilities follow live accounts
  const { name, prefix } = caller.via.kind === 'key' ? caller.via : { name: 'Dashboard', prefix: '' }
  return {
    workspace_id: caller.workspace_id,
    workspace,
    key: { name, prefix, scopes: caller.scopes },
    accounts: accounts.map((account) => ({ ...account, connected: connected.has(account.id) })),
    capabilities: Object.fromEntries(
      app.routes.map((route) => {
        const possible = route.effect !== 'platform' || reaches
        return [route.name, possible && isCapable(settings, caller, route)]
      }),
    ),
    contract_version: contractVersion,
  }
}
