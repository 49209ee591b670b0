/** The row of an account, as operators see it. */
import type { App } from '../../app.ts'
import type { AccountKey } from '../../contract.ts'
import { type Db, sql } from '../../db/sql.ts'
import { accountsChanged } from '../../ledger/leases.ts'
import { notFound } from '../../lib/names.ts'

export const statuses = ['CONNECTING', 'READY', 'NEEDS_LOGIN', 'RESTRICTED', 'DISABLED'] as const
export type Status = (typeof statuses)[number]

export interface AccountRow {
  readonly id: string
  readonly workspace_id: string
  readonly platform: string
  readonly name: string
  readonly status: Status
  readonly status_reason: string | null
  readonly created_at: Date
}

export const fields = sql`id, workspace_id, platform, name, status, status_reason, created_at`

/** The `status_reason` of an account while no running worker can drive it. */
export const noWorker = 'No running worker can drive it.'

/**
 * The `status_reason` of account `a` with its host `h`: what is stored, or why its campaign messages hold. The hold is not stored
 * there, because a new connection clears what is.
 */
export const statusReason = sql`coalesce(a.status_reason, case when h.campaigns_held_at is not null then
  'Sends kept ending with an error that Parley does not know: ' || h.campaigns_held_by || '. Its campaign messages wait; single messages '
  || 'are still sent. Find out what the error means, then run parley account enable ' || a.id || '.' end)`

/** Signals workers and open pages. Call it after the commit. */
export function signalAccountChanged(
  app: Pick<App, 'wake'>,
  account: Pick<AccountRow, 'id' | 'workspace_id'>,
): void {
  app.wake.signal(accountsChanged)
  markAccount(app, { account_id: account.id, workspace_id: account.workspace_id })
}

/** Signals open pages only: nothing that a worker acts on has changed. */
export function markAccount({ wake }: Pick<App, 'wake'>, { account_id, workspace_id }: AccountKey): void {
  wake.mark({ workspace_id, kind: 'accounts', account_id }) // guard: accounts are marked
}

export async function requireAccount(db: Db, id: string): Promise<AccountRow> {
  const account = await db.maybe<AccountRow>(sql`select ${fields} from accounts where id = ${id}`)
  if (!account) throw notFound('account', id)
  return account
}
