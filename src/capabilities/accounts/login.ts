/** Logs an account in at its platform. The key, its user and the status CONNECTING are stored in one transaction. */
import type { App } from '../../app.ts'
import { isAway } from '../../db/errors.ts'
import { lockSecretUse } from '../../db/secret-use.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { revokeLease } from '../../ledger/leases.ts'
import { hasWorker } from '../../ledger/workers.ts'
import { ApiError, type ErrorCode } from '../../lib/errors.ts'
import type { AccountProxy, LoginFailure, LoginStep, Person, Platform } from '../../platform/port.ts'
import { type Actor, record } from '../audit/audit.ts'
import { type AccountRow, fields, noWorker, requireAccount, signalAccountChanged } from './account-row.ts'
import { refused, withLoginLock } from './login-lock.ts'
import { sealSession } from './platform-store.ts'
import { requireProxy } from './proxy.ts'

type Shown = Extract<LoginStep, { kind: 'qr' }>
type LoginQuestion = Extract<LoginStep, { kind: 'code' | 'password' }>
type LoginEnd = Extract<LoginStep, { kind: 'done' | 'failed' }>

/** The person who logs in. */
export interface LoginDialogue {
  /** Shows a QR code, in place of the one before. */
  show(step: Shown): void
  /** Resolves with what the person typed. If it rejects, the login ends. */
  ask(step: LoginQuestion): Promise<string>
}

interface LoginOptions {
  readonly id: string
  /** Null: by a QR code. */
  readonly phone: string | null
  /** Another program's session instead of a new login. */
  readonly session_string?: string
  readonly platform: Platform
  readonly dialogue: LoginDialogue
  /** Aborted once the login is cancelled: it ends with the signal's reason. */
  readonly left?: AbortSignal
  /** Commits with the login. If it throws, nothing is stored. */
  readonly confirm?: (tx: Tx) => Promise<void>
}

export function logIn(app: App, actor: Actor, wanted: LoginOptions): Promise<AccountRow> {
  const { id, platform, left, confirm } = wanted
  return withLoginLock(app, id, async () => {
    await requireMayLogIn(app.db, id)
    const proxy = await requireProxy(app, id)
    const end = await converse(wanted, proxy).catch(async (error) => {
      // The cancellation has its own audit row.
      if (!left?.aborted) await noteFailure(app, actor, id, 'abandoned')
      throw error
    })
    if (end.kind === 'failed') {
      await noteFailure(app, actor, id, end.reason)
      throw refusalOf(end)
    }
    const imported = wanted.session_string !== undefined
    return keepLogin(app, actor, { id, platform, proxy, imported, ...end, ...(confirm && { confirm }) })
  })
}

/** From the first step to the last. */
function converse(
  { platform, phone, session_string, dialogue: { show, ask }, left }: LoginOptions,
  proxy: AccountProxy | null,
): Promise<LoginEnd> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      void login?.close()
      reject(left?.reason)
    }
    const login = platform.login?.({ phone, session_string, proxy }, (step) => {
      if (step.kind === 'qr') show(step)
      else if (step.kind === 'done' || step.kind === 'failed') resolve(step)
      else
        ask(step).then(
          (text) => login?.answer(text),
          (error) => {
            void login?.close()
            reject(error)
          },
        )
    })
    if (!login) reject(refused(`Accounts of the platform ${platform.name} need no login.`))
    if (left?.aborted) leave()
    left?.addEventListener('abort', leave, { once: true })
  })
}

interface NewLogin {
  readonly id: string
  readonly platform: Platform
  readonly proxy: AccountProxy | null
  /** It was another program's, which may still have it. */
  readonly imported: boolean
  readonly self: Person
  readonly session: Uint8Array
  readonly confirm?: LoginOptions['confirm']
}

/** A login that is refused here is revoked at the platform: no key may stay valid that no account uses. */
async function keepLogin(app: App, actor: Actor, login: NewLogin): Promise<AccountRow> {
  const { id, platform, proxy, session } = login
  try {
    const account = await app.db.transaction((tx) => storeLogin(app, tx, actor, login))
    signalAccountChanged(app, account)
    await app.settings.refresh()
    return account
  } catch (error) {
    if (isAway(error)) throw new ApiError('store_unavailable', { detail: unconfirmed, cause: error })
    if (!(error instanceof ApiError)) throw error
    await noteFailure(app, actor, id, error instanceof OtherUser ? error.reason : 'account_changed')
    // The other program's session is not ours to end.
    if (login.imported) throw error // guard: a refused import ends no session
    const outcome = await platform.logout?.({ session, proxy }) // guard: a refused login leaves no key behind
    if (outcome?.kind === 'accepted') throw error
    throw new ApiError(error.code, { detail: `${error.message} ${leftBehind}` })
  }
}

const leftBehind = 'The new login could not be ended on the platform: end it there, in the list of devices.'
const unconfirmed =
  'The database did not confirm that the login is stored. If the account does not connect, end the login at the ' +
  'platform, in the list of devices, and log in again.'

/** The user who logged in is not the account's, or another account has that user. */
class OtherUser extends ApiError {
  readonly reason: 'other_user' | 'connected_elsewhere'

  constructor(reason: OtherUser['reason'], detail: string) {
    super('conflict', { detail })
    this.reason = reason
  }
}

async function storeLogin(
  app: App,
  tx: Tx,
  actor: Actor,
  { id, platform, imported, self, session, confirm }: NewLogin,
): Promise<AccountRow> {
  await tx.run(sql`select 1 from accounts where id = ${id} for no key update`)
  const { workspace_id } = await requireMayLogIn(tx, id)
  await confirm?.(tx)
  const account = await tx.maybe<AccountRow>(sql`
    update accounts a set status = 'CONNECTING', status_reason = case when not ${hasWorker} then ${noWorker} end,
      platform_user_id = ${self.id}, username = ${self.username}, phone = ${self.phone}
    where id = ${id}
      and coalesce(platform_user_id, ${self.id}::bigint) = ${self.id}::bigint -- guard: an account keeps its user
    returning ${fields}`)
  if (!account) {
    throw new OtherUser(
      'other_user',
      'The account belongs to another user of the platform. Nothing was stored.',
    )
  }
  // A worker that still holds the account stores nothing more of the previous login.
  await revokeLease(tx, id)
  await tx.run(sql`delete from platform_sessions where account_id = ${id}`)
  await lockSecretUse(tx, app.secrets)
  const stored = await tx.run(sql`
    insert into platform_sessions (account_id, platform, platform_user_id, sealed)
    values (${id}, ${platform.name}, ${self.id}, ${sealSession(app.secrets, id, session)})
    on conflict (platform, platform_user_id) do nothing -- guard: one user is one account
    `)
  if (stored === 0) {
    const detail = 'This user is connected to another account of this instance. Log that one out first.'
    throw new OtherUser('connected_elsewhere', detail)
  }
  await record(app, tx, actor, {
    action: 'account.logged_in',
    target: id,
    workspace_id,
    ...(imported && { detail: { imported } }),
  })
  return account
}

/** A login never replaces one that may be in use, and does not override what an operator or the platform has decided. */
export async function requireMayLogIn(db: Db, id: string): Promise<AccountRow> {
  const account = await requireAccount(db, id)
  const { status } = account
  if (status === 'NEEDS_LOGIN') return account
  if (status === 'DISABLED' || status === 'RESTRICTED') {
    throw refused(`The account is ${status}, and a login does not change that. Enable it first.`)
  }
  const stored = await db.maybe(sql`select 1 from platform_sessions where account_id = ${id}`)
  if (status === 'READY' || stored) throw refused('The account is logged in. Log it out first.') // guard: log out first
  return account
}

async function noteFailure(app: App, actor: Actor, id: string, reason: string): Promise<void> {
  await app.db.transaction(async (tx) => {
    const { workspace_id } = await requireAccount(tx, id)
    await record(app, tx, actor, {
      action: 'account.login_failed',
      target: id,
      workspace_id,
      detail: { reason },
    })
  })
}

const failures: Readonly<Record<LoginFailure, readonly [ErrorCode, string]>> = {
  phone_invalid: [
    'invalid_request',
    'The platform does not know this phone number. Write it in international form, with its country code.',
  ],
  phone_banned: [
    'conflict',
    'The platform has banned this number or its account. Only its support can help.',
  ],
  sign_up_required: ['conflict', 'This number has no account yet. Sign up in the official app first.'],
  email_set_up_required: [
    'conflict',
    'The platform wants an e-mail address for this account first. Add one in the official app.',
  ],
  payment_required: [
    'conflict',
    'The platform wants to be paid before it sends a code to this number. Log in with the official app once, then by a QR code here.',
  ],
  code_expired: ['conflict', 'The code has expired. Start again for a new one.'],
  too_many_attempts: ['conflict', 'Login ended after three wrong attempts. Start again.'],
  timed_out: ['conflict', 'The login was not finished within ten minutes. Start again.'],
  flood_wait: ['flood_wait', 'The platform accepts no logins of this number for now.'],
  connection_lost: [
    'provider_unavailable',
    'The platform was not reached, or the connection was lost. Start again.',
  ],
  proxy_failed: ['provider_unavailable', 'The proxy of the account failed.'],
  misconfigured: ['provider_unavailable', 'The variables of the platform are wrong.'],
  session_string_invalid: [
    'invalid_request',
    'This is no session string of Telethon, Pyrogram or gramjs, or one of a bot or of other servers. Nothing was stored.',
  ],
  session_ended: [
    'conflict',
    'The platform no longer accepts this session. Nothing was stored. Log the account in instead.',
  ],
  session_duplicated: [
    'conflict',
    'Two programs have used this session at once, so the platform has destroyed it. Nothing was stored. Stop the other program, and log the account in instead.',
  ],
  refused: ['conflict', 'The platform refused the login.'],
}

function refusalOf({
  reason,
  detail,
  retry_after_seconds,
}: Extract<LoginStep, { kind: 'failed' }>): ApiError {
  const [code, sentence] = failures[reason]
  if (retry_after_seconds !== null) {
    return new ApiError(code, {
      detail: `${sentence} Wait ${retry_after_seconds} s.`,
      retry_after: retry_after_seconds,
    })
  }
  if (reason === 'proxy_failed' || reason === 'misconfigured')
    return new ApiError(code, { detail: detail ?? sentence })
  // The platform's own name for the error helps where our sentence is general.
  if (reason === 'too_many_attempts' && detail !== null) {
    return new ApiError(code, {
      detail: `The platform accepts no more attempts for now (${detail}). Wait a few hours.`,
    })
  }
  return new ApiError(code, {
    detail:
      (reason === 'refused' || reason === 'session_ended') && detail
        ? `${sentence} It says ${detail}.`
        : sentence,
  })
}
