/**
 * Who drives which account. A lease is taken with a new epoch, renewed while its owner lives, and free again
 * when it runs out or its owner has signed off. Leases go by real time.
 */
import type { App } from '../../app.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'

export const leaseSeconds = 15
/** A session that answered or delivered something this recently is live. */
export const liveSeconds = 90 // limit: live session
/** A worker that has not been heard of for this long is not counted on. */
const silentSeconds = 7

export interface Lease {
  readonly account_id: string
  readonly workspace_id: string
  readonly platform: string
  readonly name: string
  readonly epoch: string
  readonly position: string | null
}

/** Takes up to `limit` accounts that nobody drives. */
export async function claimAccounts(
  db: Db,
  { owner, platforms, limit }: { owner: string; platforms: readonly string[]; limit: number },
): Promise<Lease[]> {
  if (limit <= 0) return []
  await db.run(sql`
    insert into account_hosts (account_id, workspace_id)
    select id, workspace_id from accounts a
    where not exists (select from account_hosts h where h.account_id = a.id)
    on conflict do nothing`)
  return db.rows<Lease>(sql`
    update account_hosts h set lease_owner = ${owner}, lease_epoch = lease_epoch + 1,
      lease_until = clock_timestamp() + make_interval(secs => ${leaseSeconds})
    from accounts a
    where a.id = h.account_id and h.account_id in (
      select f.account_id from account_hosts f join accounts b on b.id = f.account_id
      where b.platform = any(${platforms}) and b.status in ('CONNECTING', 'READY')
        and (f.lease_until is null or f.lease_until < clock_timestamp()
          or exists (select from workers w where w.id = f.lease_owner and w.stopped_at is not null))
      order by f.lease_until nulls first, f.account_id limit ${limit} for update of f skip locked)
    returning h.account_id, h.workspace_id, a.platform, a.name, h.lease_epoch as epoch, h.position`)
}

export interface Renewal {
  readonly account_id: string
  readonly epoch: string
  /** When the platform was last heard of, in milliseconds before now; null: never. */
  readonly silent_ms: number | null
}

/** Renews in one statement, and passes on when each platform was last heard of. */
export async function renewLeases(db: Db, owner: string, renewals: readonly Renewal[]): Promise<void> {
  await db.run(sql`
    update account_hosts h set lease_until = clock_timestamp() + make_interval(secs => ${leaseSeconds}),
      observed_at = greatest(h.observed_at, clock_timestamp() - make_interval(secs => r.silent_ms / 1000.0))
    from unnest(${renewals.map(({ account_id }) => account_id)}::text[],
      ${renewals.map(({ epoch }) => epoch)}::bigint[],
      ${renewals.map(({ silent_ms }) => silent_ms)}::float8[]) as r (account_id, epoch, silent_ms)
    where h.account_id = r.account_id and h.lease_owner = ${owner} and h.lease_epoch = r.epoch`)
}

/** The epochs of the leases that are this owner's, for accounts that are to be driven at all. */
export async function listLeases(db: Db, owner: string): Promise<Map<string, string>> {
  const rows = await db.rows<{ account_id: string; epoch: string }>(sql`
    select h.account_id, h.lease_epoch as epoch from account_hosts h join accounts a on a.id = h.account_id
    where h.lease_owner = ${owner} and a.status in ('CONNECTING', 'READY')`)
  return new Map(rows.map(({ account_id, epoch }) => [account_id, epoch]))
}

/** Gives a lease back, so that nobody waits for it to run out. */
export async function releaseLease(
  db: Db,
  owner: string,
  { account_id, epoch }: { account_id: string; epoch: string },
): Promise<void> {
  await db.run(sql`
    update account_hosts set lease_until = null, lease_owner = null
    where account_id = ${account_id} and lease_owner = ${owner} and lease_epoch = ${epoch}`)
}

/** Ends whatever lease there is: from this commit on its holder stores nothing more. */
export async function revokeLease(tx: Tx, account_id: string): Promise<void> {
  await tx.run(sql`
    update account_hosts set lease_epoch = lease_epoch + 1, lease_until = null, lease_owner = null
    where account_id = ${account_id}`)
}

/**
 * The fence of every write a host makes: true only while the lease is this one. The row stays locked until
 * the commit, so that a new owner cannot begin in between.
 */
export async function advancePosition(
  tx: Tx,
  {
    owner,
    account_id,
    epoch,
    position,
  }: { owner: string; account_id: string; epoch: string; position: string },
): Promise<boolean> {
  const held = await tx.run(sql`
    update account_hosts set position = ${position}, observed_at = clock_timestamp()
    where account_id = ${account_id} and lease_owner = ${owner} and lease_epoch = ${epoch}`)
  return held === 1
}

/** The host no longer drives the account: what it was doing is somebody else's by now. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/** The same fence for what leaves the position alone. */
export async function requireLease(
  tx: Tx,
  { owner, account_id, epoch }: { owner: string; account_id: string; epoch: string },
): Promise<void> {
  const held = await tx.maybe(sql`
    select 1 from account_hosts where account_id = ${account_id} and lease_owner = ${owner}
      and lease_epoch = ${epoch} for no key update`)
  if (!held) throw new LeaseLost('The lease of the account is lost.')
}

export async function holdsLease(
  db: Db,
  owner: string,
  { account_id, epoch }: { account_id: string; epoch: string },
): Promise<boolean> {
  const row = await db.maybe(sql`
    select 1 from account_hosts where account_id = ${account_id} and lease_owner = ${owner}
      and lease_epoch = ${epoch} and lease_until > clock_timestamp()`)
  return row !== undefined
}

/** Which accounts have a session that is live. The others are known from the store only. */
export async function listLiveness(db: Db, account_ids: readonly string[]): Promise<Map<string, boolean>> {
  const rows = await db.rows<{ account_id: string; live: boolean }>(sql`
    select account_id,
      coalesce(observed_at > clock_timestamp() - make_interval(secs => ${liveSeconds}), false) as live
    from account_hosts where account_id = any(${account_ids})`)
  return new Map(rows.map(({ account_id, live }) => [account_id, live]))
}

/** The platform asks this account to slow down: every path waits, in domain time. */
export async function noteFlood(db: Db, account_id: string, seconds: number): Promise<void> {
  await db.run(sql`
    update account_hosts
    set flood_until = greatest(flood_until, domain_now() + make_interval(secs => ${seconds}))
    where account_id = ${account_id}`)
}

/** Seconds until the account may ask again; undefined when it may now. */
export async function findFloodWait(db: Db, account_id: string): Promise<number | undefined> {
  const row = await db.maybe<{ seconds: number }>(sql`
    select ceil(extract(epoch from flood_until - domain_now()))::int as seconds
    from account_hosts where account_id = ${account_id} and flood_until > domain_now()`)
  return row?.seconds
}

/** What needs the platform is refused at once where it cannot be reached: nobody waits for a session that is not there. */
export async function requireReachable(app: App, account_id: string, flood: 429 | 503): Promise<void> {
  const { dispatch } = await app.settings.current()
  if (!dispatch) {
    throw new ApiError('provider_unavailable', { detail: 'Sending is switched off on this instance.' })
  }
  const host = await app.db.maybe<{ live: boolean; wait: number | null }>(sql`
    select coalesce(observed_at > clock_timestamp() - make_interval(secs => ${liveSeconds}), false) as live,
      case when flood_until > domain_now() then ceil(extract(epoch from flood_until - domain_now()))::int end as wait
    from account_hosts where account_id = ${account_id}`)
  if (!host?.live) throw new ApiError('session_unavailable')
  if (host.wait !== null) throw new ApiError('flood_wait', { status: flood, retry_after: host.wait })
}

export interface Share {
  /** How many accounts there are to drive, and how many workers to do it. */
  readonly accounts: number
  readonly workers: number
}

export function readShare(db: Db, platforms: readonly string[]): Promise<Share> {
  return db.one<Share>(sql`
    select
      (select count(*)::int from accounts
       where platform = any(${platforms}) and status in ('CONNECTING', 'READY')) as accounts,
      (select count(*)::int from workers where stopped_at is null
        and beat_at > clock_timestamp() - make_interval(secs => ${silentSeconds})) as workers`)
}

/** How far the updates of the accounts that are driven now have been stored. */
export function listPositions(db: Db): Promise<{ account_id: string; position: string | null }[]> {
  return db.rows(sql`
    select h.account_id, h.position from account_hosts h join accounts a on a.id = h.account_id
    where a.platform = 'sandbox' and a.status = 'READY' and h.lease_until > clock_timestamp()`)
}
