/** Logs an account out: takes it from its worker, revokes the key at the platform, deletes it. The history stays. */
import type { App } from '../../app.ts'
import { sql } from '../../db/sql.ts'
import { revokeLease } from '../../ledger/leases.ts'
import { ApiError } from '../../lib/errors.ts'
import type { LogoutRequest, Platform } from '../../platform/port.ts'
import { type Actor, record } from '../audit/audit.ts'
import { type AccountRow, fields, requireAccount, signalAccountChanged } from './account-row.ts'
import { refused, withLoginLock } from './login-lock.ts'
import { findSession } from './platform-store.ts'
import { requireProxy } from './proxy.ts'

interface LogoutOptions {
  readonly id: string
  /** Null: the key is deleted here, and the platform is not asked. */
  readonly platform: Platform | null
}

/** Longer than a lease lasts, so that the lease of a worker that was killed has run out. */
const releaseMsMax = 60_000
const pollMs = 100

export function logOut(app: App, actor: Actor, { id, platform }: LogoutOptions): Promise<AccountRow> {
  return withLoginLock(app, id, async () => {
    const session = await findSession(app, id)
    const before = await requireAccount(app.db, id)
    if (session === null) throw refused('The account is not logged in.')
    if (session === 'unreadable' && platform) {
      throw refused(
        'The login was stored under another PARLEY_SECRET, so it cannot be ended on the platform.',
      )
    }
    if (platform) await requireConfirmed(app)
    await takeFromWorker(app, before)
    try {
      await untilReleased(app, id)
      if (platform && session !== 'unreadable')
        await revoke(platform, { session, proxy: await requireProxy(app, id) })
    } catch (error) {
      await putBack(app, before)
      throw error
    }
    return forgetLogin(app, actor, { id, local: platform === null })
  })
}

/** A copy of a database has the keys of the original, whose login a logout here would end. */
async function requireConfirmed({ db }: App): Promise<void> {
  const copied = await db.maybe(sql`select 1 from instance where unconfirmed_since is not null`)
  // guard: a copy logs no account of the original out
  if (copied) {
    throw refused(
      'This database may be a copy, and a logout would end the login of the original. Nothing was changed.',
    )
  }
}

/** Shown if the process is killed before it ends. */
const pending = (id: string) =>
  `A logout has begun. If it was interrupted, run parley account logout ${id} or parley account enable ${id}.`

/** Its worker closes the session and releases the lease within a second or two, because the status changes. */
async function takeFromWorker(app: App, account: AccountRow): Promise<void> {
  const { id } = account
  await app.db.run(sql`
    update accounts set status = 'NEEDS_LOGIN', status_reason = ${pending(id)}
    where id = ${id} and status in ('CONNECTING', 'READY')`)
  signalAccountChanged(app, account)
}

/** A key that two connections use at once may be destroyed before it is revoked. */
async function untilReleased({ db, sources }: App, id: string): Promise<void> {
  const deadline = sources.now() + releaseMsMax
  for (;;) {
    const held = await db.maybe(sql`
      select 1 from account_hosts where account_id = ${id} and lease_until > real_now()`)
    if (!held) return // guard: the worker has let go
    if (sources.now() > deadline) {
      throw refused('The worker that drives the account has not released it. Nothing was changed.')
    }
    await sources.sleep(pollMs)
  }
}

async function revoke(platform: Platform, request: LogoutRequest): Promise<void> {
  const outcome = await platform.logout?.(request)
  if (!outcome) throw refused(`Accounts of the platform ${platform.name} need no login.`)
  if (outcome.kind === 'accepted') return
  if (outcome.kind === 'flood_wait') {
    const { retry_after_seconds: retry_after } = outcome
    const detail = `The platform asks to wait ${retry_after} s. Nothing was changed.`
    throw new ApiError('flood_wait', { detail, retry_after })
  }
  if (outcome.kind === 'refused') {
    throw refused(
      `The platform refused the logout (${outcome.detail ?? outcome.reason}). Nothing was changed.`,
    )
  }
  const detail = 'The platform could not be reached, so the login there is still valid. Nothing was changed.'
  throw new ApiError('provider_unavailable', { detail })
}

/** A READY account connects again. */
async function putBack(app: App, account: AccountRow): Promise<void> {
  const { id, status, status_reason } = account
  await app.db.run(sql`
    update accounts set status = ${status === 'READY' ? 'CONNECTING' : status}, status_reason = ${status_reason}
    where id = ${id} and status = 'NEEDS_LOGIN' and status_reason = ${pending(id)}`)
  signalAccountChanged(app, account)
}

async function forgetLogin(
  app: App,
  actor: Actor,
  { id, local }: { id: string; local: boolean },
): Promise<AccountRow> {
  const account = await app.db.transaction(async (tx) => {
    const left = await tx.one<AccountRow>(sql`
      update accounts set status = case when status = 'DISABLED' then status else 'NEEDS_LOGIN' end,
        status_reason = ${`Logged out. To use it again, run parley account login ${id}.`}
      where id = ${id} returning ${fields}`)
    await revokeLease(tx, id)
    await tx.run(sql`delete from platform_sessions where account_id = ${id}`)
    const { workspace_id } = left
    await record(app, tx, actor, {
      action: 'account.logged_out',
      target: id,
      workspace_id,
      detail: { local },
    })
    return left
  })
  signalAccountChanged(app, account)
  await app.settings.refresh()
  return account
}
