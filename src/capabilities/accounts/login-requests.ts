/**
 * Logins and logouts that a user starts at the dashboard. The process that serves the user has no platform, so a request is
 * a row, and a worker that has the platform executes it (`login-runs.ts`).
 */
import { requireMaker } from '../../access/makers.ts'
import type { App, Topic } from '../../app.ts'
import { sealedColumn } from '../../db/sealed-column.ts'
import { lockSecretUse } from '../../db/secret-use.ts'
import { type Db, type Sql, sql } from '../../db/sql.ts'
import { hasWorker } from '../../ledger/workers.ts'
import { ApiError, type ErrorCode } from '../../lib/errors.ts'
import type { LoginCodeWay } from '../../platform/port.ts'
import { type Actor, record, userOf } from '../audit/audit.ts'
import { requireMayLogIn } from './login.ts'
import { refused } from './login-lock.ts'
import { countLogin } from './login-numbers.ts'

/** A login was started, answered or cancelled. */
export const loginsChanged: Topic = { topic: 'logins' }

/** The platform counts the logins of a number, and refuses them after too many. */
const begins = { max: 3, hours: 1 }
/** Each open login keeps a connection to the database for up to ten minutes. */
const openMax = 5
/** How long a request waits for a worker. */
const takenSeconds = 30
const loginMinutes = 10
/** A worker releases the account within a second or two. */
const logoutMsMax = 25_000
const pollMs = 100

export type LoginWay = 'qr' | 'phone'
type LoginState = 'qr' | 'code' | 'password' | 'done' | 'failed'

/** What the user sees now, sealed. */
export interface ShownStep {
  readonly qr_url?: string
  readonly qr_expires_at?: string
  readonly sent_by?: LoginCodeWay
  readonly place?: string | null
  readonly again?: { readonly by: LoginCodeWay; readonly at: string } | null
  readonly hint?: string | null
  readonly wrong: boolean
  readonly tries_left: number
}

export interface LoginFailureView {
  readonly code: ErrorCode
  readonly error: string
  readonly retry_after: number | null
}

/** Why a login ended that no worker renews any more. */
export const isLost: Sql = sql`state not in ('done', 'failed') and alive_until < real_now()`

const lostSentence = {
  unclaimed: 'No worker started the login. Nothing was stored. Start again.',
  worker_lost: 'The worker that ran the login has stopped. Nothing was stored. Start again.',
}

function lostFailure(worker_id: string | null): LoginFailureView {
  const error = worker_id === null ? lostSentence.unclaimed : lostSentence.worker_lost
  return { code: 'provider_unavailable', error, retry_after: null }
}

interface LoginStart {
  readonly workspace_id: string
  readonly account_id: string
  /** International, with `+`. Null: by a QR code. */
  readonly phone: string | null
}

export async function beginLogin(app: App, actor: Actor, wanted: LoginStart): Promise<void> {
  const { workspace_id, account_id, phone } = wanted
  await endLost(app)
  await requireMayLogIn(app.db, account_id)
  await requireWorker(app.db, account_id)
  const attempt = app.sources.newId()
  const way: LoginWay = phone === null ? 'qr' : 'phone'
  await app.db.transaction(async (tx) => {
    await tx.one(sql`select id from workspaces where id = ${workspace_id} for no key update`)
    const { open } = await tx.one<{ open: number }>(sql`
      select count(*)::int as open from account_logins
      where workspace_id = ${workspace_id} and account_id <> ${account_id} and state not in ('done', 'failed')`)
    const sentence = `This workspace has ${open} logins in progress. Finish one of them first.`
    if (open >= openMax) throw refused(sentence) // guard: few open logins of a workspace
    await lockSecretUse(tx, app.secrets) // guard: a number is sealed with the secret in use
    const begun = await tx.run(sql`
      insert into account_logins as l (account_id, workspace_id, actor, way, state, attempt, begins, alive_until, typed)
      values (${account_id}, ${workspace_id}, ${actor}, ${way}, ${way === 'qr' ? 'qr' : 'code'}, ${attempt},
        array[domain_now()], ${untilTaken}, ${phone && seal(app, attempt, phone)})
      on conflict (account_id) do update set actor = excluded.actor, way = excluded.way, state = excluded.state,
        attempt = excluded.attempt, begun_at = domain_now(), alive_until = excluded.alive_until,
        begins = array(select b from unnest(l.begins) as b where b > ${hourAgo}) || domain_now(),
        worker_id = null, shown = null, typed = excluded.typed, failure = null
      where l.state in ('done', 'failed') -- guard: one request for an account
        and (select count(*) from unnest(l.begins) as b where b > ${hourAgo}) < ${begins.max} -- guard: few logins an hour
      `)
    if (begun === 0) throw await refusalToBegin(tx, account_id)
    if (phone !== null) await countLogin(app, tx, { workspace_id, phone })
    await record(app, tx, actor, {
      action: 'account.login_begun',
      target: account_id,
      workspace_id,
      detail: { way },
    })
    const user_id = userOf(actor)
    if (user_id !== undefined) await requireMaker(tx, { workspace_id, user_id }) // guard: logins of a member who leaves
  })
  app.wake.signal(loginsChanged)
}

const hourAgo: Sql = sql`(domain_now() - make_interval(hours => ${begins.hours}))`
const untilTaken: Sql = sql`real_now() + make_interval(secs => ${takenSeconds})`

async function refusalToBegin(db: Db, account_id: string): Promise<ApiError> {
  const { open, seconds } = await db.one<{ open: boolean; seconds: number }>(sql`
    select state not in ('done', 'failed') as open,
      ceil(extract(epoch from (select min(b) from unnest(begins) as b where b > ${hourAgo}) - ${hourAgo}))::int as seconds
    from account_logins where account_id = ${account_id}`)
  if (open) return refused('Another login or logout of this account is in progress.')
  return new ApiError('rate_limited', {
    detail: `An account may start ${begins.max} logins an hour, because the platform counts them against its number. Retry after the seconds in Retry-After.`,
    retry_after: seconds,
  })
}

async function requireWorker(db: Db, account_id: string): Promise<void> {
  const driven = await db.maybe(sql`select 1 from accounts a where id = ${account_id} and ${hasWorker}`)
  if (!driven) {
    throw new ApiError('provider_unavailable', {
      detail: 'No running worker uses the platform of this account.',
    })
  }
}

/** Runs the logout in a worker, and waits for its end. */
export async function requestLogout(
  app: App,
  actor: Actor,
  { workspace_id, account_id }: Omit<LoginStart, 'phone'>,
): Promise<void> {
  await endLost(app)
  await requireWorker(app.db, account_id)
  const attempt = app.sources.newId()
  const begun = await app.db.run(sql`
    insert into account_logins as l (account_id, workspace_id, actor, way, state, attempt, alive_until)
    values (${account_id}, ${workspace_id}, ${actor}, 'logout', 'ending', ${attempt}, ${untilTaken})
    on conflict (account_id) do update set actor = excluded.actor, way = excluded.way, state = excluded.state,
      attempt = excluded.attempt, begun_at = domain_now(), alive_until = excluded.alive_until, worker_id = null,
      shown = null, typed = null, failure = null
    where l.state in ('done', 'failed')`)
  if (begun === 0) throw refused('Another login or logout of this account is in progress.')
  app.wake.signal(loginsChanged)
  const deadline = app.sources.now() + logoutMsMax
  while (app.sources.now() < deadline) {
    await app.sources.sleep(pollMs)
    const row = await app.db.maybe<LoginRow>(sql`
      select ${columns} from account_logins where account_id = ${account_id} and attempt = ${attempt}`)
    const failure = row?.lost ? lostFailure(row.worker_id) : row?.failure
    if (failure) throw new ApiError(failure.code, { detail: failure.error, ...retryAfter(failure) })
    if (!row || row.state === 'done') return
  }
  const detail = 'The logout is still in progress. Read the account again in a few seconds.'
  throw new ApiError('provider_unavailable', { detail })
}

function retryAfter({ retry_after }: LoginFailureView) {
  return retry_after === null ? {} : { retry_after }
}

interface LoginRow {
  readonly way: LoginWay | 'logout'
  readonly state: LoginState | 'ending'
  readonly attempt: string
  readonly begun_at: Date
  readonly expires_at: Date
  readonly worker_id: string | null
  readonly shown: Buffer | null
  readonly typed: Buffer | null
  readonly failure: LoginFailureView | null
  readonly lost: boolean
}

const columns: Sql = sql`way, state, attempt, begun_at, begun_at + make_interval(mins => ${loginMinutes}) as expires_at,
  worker_id, shown, typed, failure, ${isLost} as lost`

/** The current or last login, as every tab shows it; null: none. Only users who may answer see the question. */
export async function findLogin(app: App, account_id: string, { mayAnswer }: { mayAnswer: boolean }) {
  const row = await app.db.maybe<LoginRow>(sql`
    select ${columns} from account_logins where account_id = ${account_id} and way <> 'logout'`)
  if (!row) return null
  const { way, begun_at, expires_at, attempt } = row
  const state = row.lost ? 'failed' : row.state
  const isOver = state === 'failed' || state === 'done'
  const pending = !isOver && (row.shown === null || row.typed !== null)
  const shown = !isOver && mayAnswer && row.shown ? open<ShownStep>(app, attempt, row.shown) : undefined // guard: only who may answer sees what is shown
  return {
    way,
    state,
    begun_at,
    expires_at,
    pending,
    qr_url: shown?.qr_url ?? null,
    qr_expires_at: shown?.qr_expires_at ?? null,
    sent_by: shown?.sent_by ?? null,
    place: shown?.place ?? null,
    again: shown?.again ?? null,
    hint: shown?.hint ?? null,
    wrong: shown?.wrong ?? false,
    tries_left: shown?.tries_left ?? null,
    failure: row.lost ? lostFailure(row.worker_id) : row.failure,
  }
}

interface Answer {
  readonly account_id: string
  /** What the text is for: another tab may have answered since. */
  readonly kind: 'code' | 'password'
  readonly text: string
}

export async function answerLogin(app: App, { account_id, kind, text }: Answer): Promise<void> {
  const row = await app.db.maybe<Pick<LoginRow, 'attempt' | 'shown'>>(
    sql`select attempt, shown from account_logins where account_id = ${account_id}`,
  )
  const answered =
    row &&
    (await app.db.transaction(async (tx) => {
      await lockSecretUse(tx, app.secrets) // guard: an answer is sealed with the secret in use
      return tx.run(sql`
        update account_logins set typed = ${seal(app, row.attempt, text)}
        where account_id = ${account_id} and attempt = ${row.attempt} and state = ${kind} and not (${isLost})
          and typed is null -- guard: one answer to one question
          -- A caller may wait here while the worker takes another answer and asks again.
          and shown = ${row.shown} -- guard: no answer to a later question
        `)
    }))
  if (!answered) throw refused(`The login is not asking for a ${kind} now.`)
  app.wake.signal(loginsChanged)
}

/** Its worker closes the connection. Cancelling twice is the same as once. */
export async function giveUpLogin(
  app: App,
  actor: Actor,
  { workspace_id, account_id }: Omit<LoginStart, 'phone'>,
): Promise<void> {
  const failure: LoginFailureView = { code: 'conflict', error: 'The login was cancelled.', retry_after: null }
  await app.db.transaction(async (tx) => {
    const ended = await tx.run(sql`
      update account_logins set state = 'failed', shown = null, typed = null, failure = ${JSON.stringify(failure)}::jsonb
      where account_id = ${account_id} and way <> 'logout' and state not in ('done', 'failed')`)
    if (ended === 0) return
    const detail = { reason: 'given_up' }
    await record(app, tx, actor, { action: 'account.login_failed', target: account_id, workspace_id, detail })
  })
  app.wake.signal(loginsChanged)
}

/** Ends logins that no worker renews any more. */
export async function endLost(app: App): Promise<void> {
  const found = await app.db.maybe(sql`select 1 from account_logins where ${isLost} limit 1`)
  if (!found) return
  await app.db.transaction(async (tx) => {
    const lost = await tx.rows<{
      account_id: string
      workspace_id: string
      actor: Actor
      way: string
      unclaimed: boolean
    }>(sql`
      update account_logins set state = 'failed', shown = null, typed = null,
        failure = case when worker_id is null then ${JSON.stringify(lostFailure(null))}::jsonb
          else ${JSON.stringify(lostFailure(''))}::jsonb end
      where ${isLost} returning account_id, workspace_id, actor, way, worker_id is null as unclaimed`)
    for (const { account_id, workspace_id, actor, way, unclaimed } of lost) {
      if (way === 'logout') continue
      const detail = { reason: unclaimed ? 'unclaimed' : 'worker_lost' }
      await record(app, tx, actor, {
        action: 'account.login_failed',
        target: account_id,
        workspace_id,
        detail,
      })
    }
  })
}

/** Bound to one login: text from another login cannot be opened. */
export function seal({ secrets }: Pick<App, 'secrets'>, attempt: string, value: unknown): Buffer {
  return secrets.seal('account_login', attempt, Buffer.from(JSON.stringify(value)))
}

export function open<T>({ secrets }: Pick<App, 'secrets'>, attempt: string, sealed: Buffer): T {
  return JSON.parse(secrets.open('account_login', attempt, sealed).toString()) as T
}

/** A login lasts ten minutes. Its key is the account's, and what it is bound to is the attempt. */
const logins = {
  purpose: 'account_login',
  table: sql`account_logins`,
  key: sql`account_id`,
  bound: sql`attempt`,
  placeOf: (attempt: string) => attempt,
} as const

export const sealedShown = sealedColumn({ ...logins, name: 'account_logins.shown', column: sql`shown` })
export const sealedTyped = sealedColumn({ ...logins, name: 'account_logins.typed', column: sql`typed` })
