/** Whether an account's session is live, and so whether it can serve a request that needs the platform. */
import type { App } from '../app.ts'
import { type Db, type Sql, sql, type Tx } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import type { OperationKind } from '../operation.ts'
import { waitSeconds } from './floods.ts'
import { countWorkers } from './workers.ts'

/** A session that answered or delivered something within this time is live. */
export const liveSeconds = 90 // limit: live session

/** Whether the session of the account of a row of `account_hosts` is live. False before its first sign of life. */
export const isLiveHost = (host: Sql): Sql =>
  sql`coalesce(${host}.observed_at > (select real_now()) - make_interval(secs => ${liveSeconds}), false)`

/** The same for row `h`. */
export const isLive: Sql = isLiveHost(sql`h`)

/** An account that was live is connected again within this time after it changed hands; until then its operations wait. */
export const handOverSeconds = 30

/** Whether the account of row `h` was live until it changed hands, and its next session is still catching up. */
export const isHandedOver: Sql = sql`coalesce(h.handed_over_at between
  (select real_now()) - make_interval(secs => ${handOverSeconds}) and (select real_now()), false)`

/** A caller waits this long for a lease that rests before another worker may claim it. */
const claimSecondsMax = 5
/** A worker on the same disk claims the lease without waiting for the takeover, at its next tick. */
const neighbourSeconds = 2

/** The lease of row `h` has run out, and no worker may claim it while a caller waits. */
const isOutOfReach: Sql = sql`coalesce(h.lease_until < (select real_now()) - make_interval(secs => ${neighbourSeconds})
  and h.lease_until + make_interval(secs => h.takeover_seconds - ${claimSecondsMax}) > (select real_now())
  and not exists (select from workers w where w.id = h.lease_owner and w.stopped_at is not null), false)`

interface Connection {
  readonly account_id: string
  /** Its session is live. Otherwise the account can be read from the store only. */
  readonly live: boolean
  /** An operation is accepted: the session is live, or about to be after the account changed hands. */
  readonly reachable: boolean
}

const reachable: Sql = sql`(${isLive}
  or ${isHandedOver} -- guard: an account that changes hands is reachable
  ) and not ${isOutOfReach} -- guard: no waiting for a lease that no worker may claim
  `

/** Accounts that no worker has ever driven are left out. */
export function listConnections(db: Db, account_ids: readonly string[]): Promise<Connection[]> {
  return db.rows<Connection>(sql`
    select account_id, ${isLive} as live, ${reachable} as reachable
    from account_hosts h where account_id = any(${account_ids})`)
}

/** Which accounts have a live session. */
export async function listLiveness(db: Db, account_ids: readonly string[]): Promise<Map<string, boolean>> {
  const connections = await listConnections(db, account_ids)
  return new Map(connections.map(({ account_id, live }) => [account_id, live]))
}

const sendingIsOff = 'Sending is switched off on this instance.'

/**
 * Refuses a request that needs the platform while the account's session is not live or is in a flood wait. An account that is
 * changing hands is reachable: its operation waits for the next session.
 */
export async function requireReachable(
  app: App,
  account_id: string,
  { operation, flood }: { readonly operation: OperationKind; readonly flood: 429 | 503 },
): Promise<void> {
  const { dispatch } = await app.settings.current()
  if (!dispatch) {
    throw new ApiError('provider_unavailable', { detail: sendingIsOff })
  }
  const session = await app.db.maybe<{ reachable: boolean; wait: number | null }>(sql`
    select ${reachable} as reachable, ${waitSeconds(operation.stopped_by)} as wait
    from account_hosts h where account_id = ${account_id}`)
  if (!session?.reachable) throw new ApiError('session_unavailable')
  if (session.wait !== null) throw new ApiError('flood_wait', { status: flood, retry_after: session.wait })
}

/** Whether this instance can send at all. An instance whose workers are still starting can. */
export async function canSend(app: App): Promise<boolean> {
  return (await findSendingStop(app)) === null
}

/** Whether messages can be sent now: sending is on, and a worker that can drive accounts is alive. */
export async function canDrive(app: App): Promise<boolean> {
  if (!(await canSend(app))) return false
  return (await countWorkers(app.db)).driving > 0
}

/** Why this instance sends nothing, as a sentence; null if it sends. */
export async function findSendingStop({ db, settings }: App): Promise<string | null> {
  const { dispatch } = await settings.current()
  if (!dispatch) return sendingIsOff
  const workers = await countWorkers(db).catch(() => undefined)
  if (!workers) return 'The database does not say which workers run.'
  if (workers.owing > 0) return 'The database was restored, and a worker has not replayed its journals yet.'
  return workers.driving > 0 || workers.without_journal === 0 ? null : 'No worker can write its journal.'
}

/** Updates of the account are missing since then; null: none are. Campaigns wait for the account until none are. */
export async function noteGapSince(
  tx: Tx,
  { account_id }: { readonly account_id: string },
  since: 'now' | null,
): Promise<void> {
  const at = since === null ? sql`null` : sql`coalesce(gap_since, domain_now())`
  await tx.run(sql`update account_hosts set gap_since = ${at} where account_id = ${account_id}`)
}
