/** Messaging accounts: the identities that a workspace writes from. */

import type { App } from '../../app.ts'
import { type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import { type AccountUsage, allowCold, listAccountUsage } from '../../ledger/account-usage.ts'
import { endHold } from '../../ledger/holds.ts'
import { type HeldLease, LeaseLost, requireLease, revokeLease } from '../../ledger/leases.ts'
import { isLive } from '../../ledger/liveness.ts'
import { confirmDisabled } from '../../ledger/runs.ts'
import { hasWorker } from '../../ledger/workers.ts'
import { dayOf } from '../../ledger/workspace-days.ts'
import { ApiError } from '../../lib/errors.ts'
import { newAccountId } from '../../lib/ids.ts'
import { notFound, requireName } from '../../lib/names.ts'
import type { Person } from '../../platform/port.ts'
import { type Actor, record } from '../audit/audit.ts'
import { requireWorkspace } from '../workspaces/workspaces.ts'
import {
  type AccountRow,
  fields,
  markAccount,
  noWorker,
  requireAccount,
  type Status,
  signalAccountChanged,
  statusReason,
} from './account-row.ts'
import { requireProxyUrl, sealProxy } from './proxy.ts'

export { changeAccount } from './account-changes.ts'
export { markAccount, noWorker, type Status, statuses } from './account-row.ts'
export { listTroubled } from './account-views.ts'
export { type LoginDialogue, logIn } from './login.ts'
export { endLost, loginsChanged } from './login-requests.ts'
export {
  type ClaimedLogin,
  claimLogins,
  failLogin,
  findWaitingLogin,
  finishLogin,
  renewLogins,
  showStep,
  takeAnswers,
} from './login-runs.ts'
export { logOut } from './logout.ts'
export { erasePeers, openAccountStore, tidyAccount } from './platform-store.ts'
export { type AccountProxies, findProxy, listProxies, unreadableProxy } from './proxy.ts'

/** The name of the account's platform. */
export async function requirePlatform(db: Db, id: string): Promise<string> {
  return (await requireAccount(db, id)).platform
}

interface NewAccount {
  readonly workspace_id: string
  readonly platform: string
  readonly name: string
  readonly cold_per_day?: number | null | undefined
  /** Set before the first connection, so that none is made without it. */
  readonly proxy?: string | null | undefined
  /** Set by the demo, whose account is the one in the examples. */
  readonly id?: string
}

export async function createAccount(app: App, actor: Actor, wanted: NewAccount): Promise<AccountRow> {
  const { workspace_id, platform, name, cold_per_day = null, id = newAccountId() } = wanted
  requireName('An account needs a name', name)
  requireProxyUrl(app, wanted.proxy)
  await requireWorkspace(app.db, workspace_id)
  const account = await app.db.transaction(async (tx) => {
    const { proxy, proxy_sealed } = await sealProxy(app, tx, { account_id: id, url: wanted.proxy ?? null })
    await requireAccountPlace(app, tx, workspace_id)
    const made = await tx.one<AccountRow>(sql`
      insert into accounts (id, workspace_id, platform, name, cold_per_day, proxy, proxy_sealed, status_reason)
      select ${id}, ${workspace_id}::uuid, a.platform, ${name}, ${cold_per_day}::int, ${proxy}, ${proxy_sealed}::bytea,
        case when not ${hasWorker} then ${noWorker} end
      from (select ${platform}::text as platform) a returning ${fields}`)
    await record(app, tx, actor, {
      action: 'account.created',
      target: made.id,
      workspace_id,
      detail: { platform, name, ...(cold_per_day !== null && { cold_per_day }), ...(proxy && { proxy }) },
    })
    return made
  })
  signalAccountChanged(app, account)
  return account
}

/** Refuses with 409 if the workspace has as many accounts as it may have. Disabled accounts do not count. */
async function requireAccountPlace({ config }: App, tx: Tx, workspace_id: string): Promise<void> {
  const most = config.workspace_accounts
  if (most === undefined) return
  // Accounts of one workspace are created and enabled one after the other.
  await tx.one(sql`select id from workspaces where id = ${workspace_id} for no key update`)
  const { count } = await tx.one<{ count: number }>(sql`
    select count(*)::int as count from accounts where workspace_id = ${workspace_id} and status <> 'DISABLED'`)
  if (count < most) return // guard: accounts of a workspace
  throw new ApiError('conflict', {
    detail: `This workspace has ${count} accounts, and the operator of this instance allows ${most}. Disable one first.`,
  })
}

interface Undriven {
  readonly platform: string
  readonly accounts: number
}

/**
 * Sets `noWorker` on accounts that no worker can drive, and clears it where a worker can again. Returns only changes: how
 * many accounts of each platform lost their worker, and how many have one again.
 */
export async function noteUndriven(db: Db): Promise<{ lost: readonly Undriven[]; found: number }> {
  const found = await db.run(sql`
    update accounts a set status_reason = null
    where status_reason = ${noWorker} and (status not in ('CONNECTING', 'READY') or ${hasWorker})`)
  const lost = await db.rows<Undriven>(sql`
    with lost as (
      update accounts a set status_reason = ${noWorker}
      where status in ('CONNECTING', 'READY') and status_reason is null and not ${hasWorker} returning platform)
    select platform, count(*)::int as accounts from lost group by platform order by platform`)
  return { lost, found }
}

export interface AccountCounts {
  readonly status: Status
  readonly accounts: number
  /** How many of them no worker can drive. */
  readonly undriven: number
}

/** Counts the accounts of the whole instance by status. */
export function countAccounts(db: Db): Promise<AccountCounts[]> {
  return db.rows<AccountCounts>(sql`
    select status, count(*)::int as accounts,
      (count(*) filter (where status in ('CONNECTING', 'READY') and not ${hasWorker}))::int as undriven
    from accounts a group by status`)
}

/** Accounts that should be connected, and that no worker could drive. Those of disabled workspaces do not count. */
export async function countUndriven(db: Db): Promise<number> {
  const { undriven } = await db.one<{ undriven: number }>(sql`
    select count(*)::int as undriven from accounts a join workspaces w on w.id = a.workspace_id
    where a.status in ('CONNECTING', 'READY') and w.disabled_at is null and not ${hasWorker}`)
  return undriven
}

interface AccountState extends AccountRow {
  /** The session answered or delivered something in the last minute and a half. */
  readonly live: boolean
  /** Progress of the account's first sync: `chats`, `contacts`, `history 37/40`, `done`. */
  readonly sync: string
}

/** Adds what limits the account on the platform: flood wait, messages, look-ups, strikes. */
type AccountDetail = AccountState & Omit<AccountUsage, 'account_id'>

export async function listAccounts(db: Db, workspace_id: string): Promise<AccountDetail[]> {
  await requireWorkspace(db, workspace_id)
  const usage = await listAccountUsage(db, workspace_id)
  const accounts = await listStates(db, workspace_id)
  return accounts.flatMap((account) => {
    const own = usage.find(({ account_id }) => account_id === account.id)
    if (!own) return []
    const { account_id: _, ...counted } = own
    return [{ ...account, ...counted }]
  })
}

function listStates(db: Db, workspace_id: string): Promise<AccountState[]> {
  return db.rows<AccountState>(sql`
    select a.id, a.workspace_id, a.platform, a.name, a.status, ${statusReason} as status_reason, a.created_at,
      a.status = 'READY' and ${isLive}
        as live,
      case when s.phase is null then 'not begun'
        when s.phase = 'chats' and s.chats_expected is not null
          then 'chats ' || s.chats_total || '/' || greatest(s.chats_total, s.chats_expected)
        when s.phase = 'history'
          then 'history ' || least(s.chats_synced, coalesce(s.history_total, s.chats_total)) || '/'
            || coalesce(s.history_total, s.chats_total)
        else s.phase end as sync
    from accounts a left join account_hosts h on h.account_id = a.id
      left join account_sync s on s.account_id = a.id
    where a.workspace_id = ${workspace_id} order by a.created_at, a.id`)
}

/** The statuses that enabling changes, and those that disabling changes. */
const idle: readonly Status[] = ['DISABLED', 'NEEDS_LOGIN', 'RESTRICTED']
const driven: readonly Status[] = ['CONNECTING', 'READY', 'NEEDS_LOGIN', 'RESTRICTED']

/** Disabling stops every use of the account at once. Enabling lets a worker connect it again, even after trouble. */
export async function setAccountEnabled(
  app: App,
  actor: Actor,
  { id, enabled }: { id: string; enabled: boolean },
): Promise<AccountRow> {
  const account = await app.db.transaction(async (tx) => {
    const disabled = sql`select workspace_id from accounts where id = ${id} and status = 'DISABLED'`
    const added = enabled && (await tx.maybe<{ workspace_id: string }>(disabled))
    if (added) await requireAccountPlace(app, tx, added.workspace_id) // guard: enabling takes a place
    const changed = await tx.maybe<AccountRow>(sql`
      update accounts set status = ${enabled ? 'CONNECTING' : 'DISABLED'}, status_reason = null
      where id = ${id} and status = any(${enabled ? idle : driven}) returning ${fields}`)
    if (changed) {
      // Without the lease, the worker stores nothing that the session still delivers.
      await revokeLease(tx, id)
      if (enabled) await liftStops(tx, id)
      if (!enabled) await confirmDisabled(tx, id) // guard: disabling lets the pools go on
      const action = enabled ? 'account.enabled' : 'account.disabled'
      await record(app, tx, actor, { action, target: id, workspace_id: changed.workspace_id })
      return changed
    }
    const known = await tx.maybe<AccountRow>(sql`select ${fields} from accounts where id = ${id}`)
    if (!known) throw notFound('account', id)
    if (!enabled) await confirmDisabled(tx, id)
    // guard: enabling lifts what was stopped
    else if (await liftStops(tx, id)) {
      await record(app, tx, actor, {
        action: 'account.enabled',
        target: id,
        workspace_id: known.workspace_id,
      })
    }
    return known
  })
  signalAccountChanged(app, account)
  await app.settings.refresh()
  return account
}

/** An operator lets first messages and campaign messages go on. False: neither was stopped. */
async function liftStops(tx: Tx, id: string): Promise<boolean> {
  const cold = await allowCold(tx, id) // guard: enabling allows first messages again
  const held = await endHold(tx, id) // guard: a person lets campaigns go on
  return cold || held
}

/** Makes a connected account READY and updates its platform user id, username and phone. */
export async function noteConnected(
  app: App,
  { held, coldRamp }: { readonly held: Omit<HeldLease, 'writes'>; readonly coldRamp: boolean },
  self: Person,
): Promise<void> {
  const today = sql`(
    select ${dayOf(sql`w`, sql`domain_now()`)} from workspaces w where w.id = accounts.workspace_id)`
  await app.db.run(sql`
    update accounts set status = 'READY', status_reason = null, platform_user_id = ${self.id},
      username = ${self.username}, phone = ${self.phone},
      cold_ramp_from = coalesce(cold_ramp_from, case when ${coldRamp} then ${today} end)
    where id = ${held.account_id}
      and status in ('CONNECTING', 'READY') -- guard: connecting does not undo trouble
      and ${isHeld(held)} -- guard: connected under the present lease
      and ((status, platform_user_id, username, phone)
        is distinct from ('READY', ${self.id}::bigint, ${self.username}::text, ${self.phone}::text)
        or status_reason is not null)`)
  markAccount(app, held)
}

/** Why the account is not connected now, for people. Its worker retries without their help. */
export async function noteNotConnected(
  app: App,
  held: Omit<HeldLease, 'writes'>,
  reason: string,
): Promise<void> {
  const changed = await app.db.run(sql`
    update accounts set status_reason = ${reason}
    where id = ${held.account_id} and status in ('CONNECTING', 'READY') and status_reason is distinct from ${reason}
      and ${isHeld(held)}`)
  if (changed > 0) markAccount(app, held)
}

function isHeld({ account_id, worker_id, epoch }: Omit<HeldLease, 'writes'>): Sql {
  return sql`exists (
    select 1 from account_hosts h
    where h.account_id = ${account_id} and h.lease_owner = ${worker_id} and h.lease_epoch = ${epoch})`
}

interface Trouble {
  readonly status: 'needs_login' | 'restricted'
  /** A sentence for `status_reason`, or the status again: then a sentence that is there stays. */
  readonly reason: string
}

/** The platform demands a new login, or has restricted the account: an operator has to act. */
export async function noteTrouble(
  app: App,
  held: Omit<HeldLease, 'writes'>,
  { status: trouble, reason }: Trouble,
): Promise<void> {
  const { account_id } = held
  const status = trouble.toUpperCase()
  const noted = app.db.transaction(async (tx) => {
    // Locks the account before its host, in the same order as enabling does.
    await tx.run(sql`select 1 from accounts where id = ${account_id} for no key update`)
    await requireLease(tx, held) // guard: an ended session says nothing of a new login
    await tx.run(sql`
      update accounts set status = ${status},
        status_reason = case when status = ${status} and ${reason === trouble}
          then coalesce(status_reason, ${reason}) else ${reason} end
      where id = ${account_id} and status <> 'DISABLED'`)
  })
  await noted.catch((error) => {
    // The account was disabled, logged out or logged in meanwhile.
    if (!(error instanceof LeaseLost)) throw error
  })
  markAccount(app, held)
}
