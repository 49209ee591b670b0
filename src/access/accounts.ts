/** Which messaging accounts of its workspace a caller may use: the READY ones, and at the dashboard every one to read. */
import type { App } from '../app.ts'
import type { Account, Caller, RouteInfo } from '../contract.ts'
import { sql } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import { quote } from '../lib/text.ts'

/**
 * Whether the call reads the chats of every account, named or not. People at the dashboard do: an account that needs a login
 * would otherwise hide its chats from those who answer them. Keys need a READY account, and so does every write.
 */
export function readsEveryAccount({ via }: Caller, { effect }: Pick<RouteInfo, 'effect'>): boolean {
  return via.kind === 'session' && effect === 'read' // guard: every account is read at the dashboard alone
}

/** The accounts that the call may be about. */
export async function listCallAccounts(
  app: App,
  caller: Caller,
  route: Pick<RouteInfo, 'effect'>,
): Promise<readonly Account[]> {
  return readsEveryAccount(caller, route) ? listAccounts(app, caller) : listEligibleAccounts(app, caller)
}

export async function listEligibleAccounts(app: App, caller: Caller): Promise<readonly Account[]> {
  return (await listAccounts(app, caller)).filter(({ status }) => status === 'READY')
}

/** Reads once per version of the settings: every change of an account's status raises that version. */
async function listAccounts(app: App, { workspace_id }: Caller): Promise<readonly Account[]> {
  const { accounts } = await app.settings.current()
  let known = accounts.get(workspace_id)
  if (!known) {
    known = app.db.rows<Account>(sql`
      select id, platform as provider, 'MESSAGING' as type, name, status
      from accounts where workspace_id = ${workspace_id} order by created_at, id`)
    accounts.set(workspace_id, known)
    known.catch(() => accounts.delete(workspace_id))
  }
  return known
}

/** Another workspace's account, a disabled one and a missing one get the same answer, so a caller can probe none. */
export function requireAccount(usable: readonly Account[], account_id: string): Account {
  const account = usable.find(({ id }) => id === account_id)
  if (!account) {
    throw new ApiError('account_unavailable', {
      detail: `The account ${quote(account_id)} is not an eligible account of this workspace.`,
    })
  }
  return account
}
