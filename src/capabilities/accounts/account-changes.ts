/** Changes what people decide about an account: its name, its daily limit of first messages, its proxy. */
import type { App } from '../../app.ts'
import { sql } from '../../db/sql.ts'
import { revokeLease } from '../../ledger/leases.ts'
import { notFound, requireName } from '../../lib/names.ts'
import { type Actor, record } from '../audit/audit.ts'
import { type AccountRow, fields, signalAccountChanged } from './account-row.ts'
import { requireProxyUrl, sealProxy } from './proxy.ts'

interface AccountChange {
  readonly id: string
  readonly name?: string | undefined
  /** The daily limit of first messages to people who never wrote, on top of each campaign's quota. Null: none. */
  readonly cold_per_day?: number | null | undefined
  /** A URL with or without credentials. Null: no proxy. */
  readonly proxy?: string | null | undefined
}

type ChangedAccount = AccountRow & { readonly cold_per_day: number | null; readonly proxy: string | null }

/** Undefined fields stay as they are. A new proxy takes the account from its worker, which connects it again. */
export async function changeAccount(app: App, actor: Actor, change: AccountChange): Promise<ChangedAccount> {
  const { id, name, cold_per_day, proxy: url } = change
  if (name !== undefined) requireName('An account needs a name', name)
  requireProxyUrl(app, url)
  const account = await app.db.transaction(async (tx) => {
    const sealed = url === undefined ? undefined : await sealProxy(app, tx, { account_id: id, url })
    const changed = await tx.maybe<ChangedAccount>(sql`
      update accounts set name = coalesce(${name ?? null}, name),
        cold_per_day = case when ${cold_per_day !== undefined} then ${cold_per_day ?? null}::int else cold_per_day end,
        proxy = case when ${sealed !== undefined} then ${sealed?.proxy ?? null} else proxy end,
        proxy_sealed = case when ${sealed !== undefined} then ${sealed?.proxy_sealed ?? null}::bytea else proxy_sealed end
      where id = ${id} returning ${fields}, cold_per_day, proxy`)
    if (!changed) throw notFound('account', id)
    const { workspace_id, proxy } = changed
    const note = (action: string, detail: Readonly<Record<string, unknown>>) =>
      record(app, tx, actor, { action, target: id, workspace_id, detail })
    if (name !== undefined) await note('account.renamed', { name })
    if (cold_per_day !== undefined) await note('account.limited', { cold_per_day })
    if (sealed) {
      await revokeLease(tx, id) // guard: another proxy ends the session
      await note('account.proxy_set', { proxy })
    }
    return changed
  })
  signalAccountChanged(app, account)
  await app.settings.refresh()
  return account
}
