/** Which messaging accounts a caller may use: those of its workspace that are READY. */
import type { App } from '../app.ts'
import type { Account, Caller } from '../contract.ts'
import { sql } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import { quote } from '../lib/text.ts'

/** Reads once per version of the settings: every change of an account's status raises that version. */
export async function listEligibleAccounts(app: App, caller: Caller): Promise<readonly Account[]> {
  const { accounts } = await app.settings.current()
  let known = accounts.get(caller.workspace_id)
  if (!known) {
    known = app.db.rows<Account>(sql`
      select id, platform as provider, 'MESSAGING' as type, name, status
      from accounts where workspace_id = ${caller.workspace_id} and status = 'READY'
      order by created_at, id`)
    accounts.set(caller.workspace_id, known)
    known.catch(() => accounts.delete(caller.workspace_id))
  }
  return known
}

/** Another workspace's account, a disabled one and a missing one get the same answer, so a caller can probe none. */
export function requireAccount(eligible: readonly Account[], account_id: string): Account {
  const account = eligible.find(({ id }) => id === account_id)
  if (!account) {
    throw new ApiError('account_unavailable', {
      detail: `The account ${quote(account_id)} is not an eligible account of this workspace.`,
    })
  }
  return account
}
