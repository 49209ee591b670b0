/** Which messaging accounts a caller may use: those of its workspace, and for most purposes only those that are READY. */
import type { App } from '../app.ts'
import type { Account, Caller } from '../contract.ts'
import { sql } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import { notFound } from '../lib/names.ts'
import { quote } from '../lib/text.ts'

export async function listEligibleAccounts(app: App, caller: Caller): Promise<readonly Account[]> {
  return (await listAccounts(app, caller)).filter(({ status }) => status === 'READY')
}

/** Whatever their status. Reads once per version of the settings: every change of a status raises that version. */
export async function listAccounts(app: App, caller: Caller): Promise<readonly Account[]> {
  const { accounts } = await app.settings.current()
  let known = accounts.get(caller.workspace_id)
  if (!known) {
    known = app.db.rows<Account>(sql`
      select id, platform as provider, 'MESSAGING' as type, name, status
      from accounts where workspace_id = ${caller.workspace_id} order by created_at, id`)
    accounts.set(caller.workspace_id, known)
    known.catch(() => accounts.delete(caller.workspace_id))
  }
  return known
}

/**
 * An account of another workspace, one that is left out for its status and a missing one get the same answer, so that a
 * caller cannot probe for accounts.
 */
export function requireAccount(
  usable: readonly Account[],
  account_id: string,
  missing: 'account_unavailable' | 'not_found' = 'account_unavailable',
): Account {
  const account = usable.find(({ id }) => id === account_id)
  if (account) return account
  if (missing === 'not_found') throw notFound('account', account_id)
  throw new ApiError('account_unavailable', {
    detail: `The account ${quote(account_id)} is not an eligible account of this workspace.`,
  })
}
