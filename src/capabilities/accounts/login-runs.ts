/** The worker's side of logins from the dashboard: claims them, stores their steps, reads answers, ends them. */
import type { App } from '../../app.ts'
import type { AccountKey } from '../../contract.ts'
import { lockSecretUse } from '../../db/secret-use.ts'
import { type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import type { Actor } from '../audit/audit.ts'
import { markAccount } from './account-row.ts'
import { refused } from './login-lock.ts'
import { isLost, type LoginFailureView, type LoginWay, open, type ShownStep, seal } from './login-requests.ts'

/** A worker that has not renewed its login for this long has ended. */
const aliveSeconds = 15

export interface ClaimedLogin {
  readonly account_id: string
  readonly workspace_id: string
  readonly attempt: string
  readonly platform: string
  readonly actor: Actor
  readonly way: LoginWay | 'logout'
  readonly phone: string | null
}

/** A login that no worker has taken yet, and that one with these platforms could run. */
const isWaiting = (
  platforms: readonly string[],
): Sql => sql`l.worker_id is null and l.state not in ('done', 'failed')
  and l.alive_until > real_now() and a.platform = any(${platforms})`

/** The first login of a workspace comes before the second of any other one. */
const inTurn: Sql = sql`(
  select count(*) from account_logins o
  where o.workspace_id = l.workspace_id and o.state not in ('done', 'failed') and o.begun_at < l.begun_at), l.begun_at`

/** Whose login is the next that a worker would take. */
export function findWaitingLogin(
  db: Db,
  platforms: readonly string[],
): Promise<Pick<ClaimedLogin, 'workspace_id' | 'actor'> | undefined> {
  return db.maybe(sql`
    select l.workspace_id, l.actor from account_logins l join accounts a on a.id = l.account_id
    where ${isWaiting(platforms)} order by ${inTurn} limit 1`)
}

/** Claims logins that wait for a worker with one of these platforms. */
export async function claimLogins(
  app: App,
  { worker_id, platforms, limit }: { worker_id: string; platforms: readonly string[]; limit: number },
): Promise<ClaimedLogin[]> {
  const rows = await app.db.rows<Omit<ClaimedLogin, 'phone'> & { typed: Buffer | null }>(sql`
    with waiting as (
      select l.account_id, l.typed, a.platform from account_logins l join accounts a on a.id = l.account_id
      where ${isWaiting(platforms)}
      order by ${inTurn} limit ${limit} for update of l skip locked) -- guard: logins of workspaces take turns
    update account_logins l set worker_id = ${worker_id}, typed = null,
      alive_until = real_now() + make_interval(secs => ${aliveSeconds})
    from waiting w where l.account_id = w.account_id
    returning l.account_id, l.workspace_id, l.attempt, w.platform, l.actor, l.way, w.typed`)
  return rows.map(({ typed, ...row }) => ({ ...row, phone: typed && open<string>(app, row.attempt, typed) }))
}

/** Returns the attempts that are still wanted: neither cancelled nor declared lost. */
export async function renewLogins(db: Db, attempts: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await db.rows<{ attempt: string }>(sql`
    update account_logins set alive_until = real_now() + make_interval(secs => ${aliveSeconds})
    where attempt = any(${attempts}::uuid[]) and state not in ('done', 'failed') and not (${isLost}) returning attempt`)
  return new Set(rows.map(({ attempt }) => attempt))
}

export async function showStep(
  app: App,
  attempt: string,
  { state, shown }: { state: 'qr' | 'code' | 'password'; shown: ShownStep },
): Promise<void> {
  const rows = await app.db.transaction(async (tx) => {
    await lockSecretUse(tx, app.secrets) // guard: a question is sealed with the secret in use
    return tx.rows<AccountKey>(sql`
      update account_logins set state = ${state}, shown = ${seal(app, attempt, shown)}, typed = null
      where attempt = ${attempt} and state not in ('done', 'failed') returning account_id, workspace_id`)
  })
  for (const row of rows) markAccount(app, row)
}

/** What users have typed since. It is deleted with the question. */
export async function takeAnswers(app: App, attempts: readonly string[]): Promise<Map<string, string>> {
  const rows = await app.db.rows<AccountKey & { attempt: string; typed: Buffer }>(sql`
    with answered as (
      select account_id, typed from account_logins
      where attempt = any(${attempts}::uuid[]) and typed is not null for update)
    update account_logins l set typed = null, shown = null
    from answered a where l.account_id = a.account_id 
    returning l.account_id, l.workspace_id, l.attempt, a.typed`)
  for (const row of rows) markAccount(app, row)
  return new Map(rows.map(({ attempt, typed }) => [attempt, open<string>(app, attempt, typed)]))
}

/** Runs in the transaction that stores the login: one that was cancelled meanwhile is not stored. */
export async function finishLogin(tx: Tx, attempt: string): Promise<void> {
  const done = await tx.run(sql`
    update account_logins set state = 'done', shown = null, typed = null
    where attempt = ${attempt} and state not in ('done', 'failed')`)
  if (done === 0) throw refused('The login was cancelled, or its worker was declared lost.') // guard: a given up login is not stored
}

/** Why it ended, as the user reads it. */
export async function failLogin(app: App, attempt: string, error: unknown): Promise<void> {
  const refusal = error instanceof ApiError ? error : new ApiError('internal')
  const { code, message, retry_after = null } = refusal
  const failure: LoginFailureView = { code, error: message, retry_after }
  const rows = await app.db.rows<AccountKey>(sql`
    update account_logins set state = 'failed', shown = null, typed = null, failure = ${JSON.stringify(failure)}::jsonb
    where attempt = ${attempt} and state not in ('done', 'failed') returning account_id, workspace_id`)
  for (const row of rows) markAccount(app, row)
}
