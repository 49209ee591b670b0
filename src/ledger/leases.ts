/**
 * Which worker drives which account. A worker takes a lease with a new epoch and renews it while it lives. The lease is
 * free again once it expires or its worker signs off. Leases use real time.
 */
import type { Sources, Topic } from '../app.ts'
import { given } from '../db/given.ts'
import { type Db, sql, type Tx } from '../db/sql.ts'
import { isHandedOver, isLive } from './liveness.ts'

/** There may be an account to take or to release. */
export const accountsChanged: Topic = { topic: 'accounts' }

export const leaseSeconds = 15
/** A worker without a heartbeat for this long does not count when accounts are shared out. */
const silentSeconds = 7

/** A lease, as its holder acts under it. */
export interface HeldLease {
  readonly worker_id: string
  readonly account_id: string
  readonly workspace_id: string
  readonly epoch: string
  readonly writes: Writes
}

/** The highest count of writes to the account that this process has seen committed. */
export interface Writes {
  seen: string
}

/** Answers may arrive in another order than their commits, so the count never falls. */
export function noteWrites({ writes }: Pick<HeldLease, 'writes'>, committed: string): void {
  if (BigInt(committed) > BigInt(writes.seen)) writes.seen = committed // guard: what was seen stays seen
}

export interface Lease {
  readonly account_id: string
  readonly workspace_id: string
  readonly platform: string
  readonly name: string
  readonly epoch: string
  readonly position: string | null
  readonly writes: string
}

/** A moment by both clocks of a process. A process that is suspended may find that only one of them went on. */
export interface Moment {
  readonly monotonic: number
  readonly wall: number
}

export function momentOf({ now, date }: Pick<Sources, 'now' | 'date'>): Moment {
  return { monotonic: now(), wall: date().getTime() }
}

/** Whether a lease that was taken or renewed by a statement sent at `asked` still holds, without asking the database. */
export function isHeldSince(asked: Moment, now: Moment): boolean {
  const ms = leaseSeconds * 1_000
  const awake = now.monotonic - asked.monotonic < ms // guard: held by the monotonic clock
  return awake && now.wall - asked.wall < ms // guard: held by the wall clock
}

interface Claim {
  readonly worker_id: string
  readonly platform: string
  readonly limit: number
  /** How long a lease must have run out before another worker takes it. */
  readonly takeover_seconds: number
  /** Workers whose journals are on this worker's disk: their platform sessions used the same address. */
  readonly neighbours: readonly string[]
}

/** Takes up to `limit` accounts of a platform that no worker drives. */
export async function claimAccounts(
  db: Db,
  { worker_id, platform, limit, takeover_seconds, neighbours }: Claim,
): Promise<Lease[]> {
  if (limit <= 0) return []
  await db.run(sql`
    insert into account_hosts (account_id, workspace_id)
    select id, workspace_id from accounts a
    where not exists (select from account_hosts h where h.account_id = a.id)
    on conflict do nothing`)
  return db.rows<Lease>(sql`
    update account_hosts h set lease_owner = ${worker_id}, lease_epoch = lease_epoch + 1,
      lease_until = real_now() + make_interval(secs => ${leaseSeconds}),
      takeover_seconds = ${takeover_seconds}, -- guard: the takeover time is stored with the lease
      handed_over_at = case when ${isLive} then real_now() else h.handed_over_at end, -- guard: a claim hands over
      heard_at = coalesce(h.observed_at, h.heard_at),
      observed_at = null -- guard: not live until caught up
    from accounts a
    where a.id = h.account_id and h.account_id in (
      select f.account_id from account_hosts f join accounts b on b.id = f.account_id
        join workspaces k on k.id = f.workspace_id
      where b.platform = ${platform}
        and k.disabled_at is null -- guard: no account of a disabled workspace is claimed
        and b.status in ('CONNECTING', 'READY') -- guard: only accounts that may act are claimed
        and (${takeover_seconds}::int = 0
          or not exists (select from instance where unconfirmed_since is not null)) -- guard: no connection for a clone
        and (f.lease_until is null
          or f.lease_until < real_now() - make_interval(secs => ${takeover_seconds}) -- guard: takeover waits
          or f.lease_until < real_now() -- guard: a neighbour that is alive keeps its accounts
            and f.lease_owner = any(${neighbours}::uuid[])
          or f.lease_until > real_now() + make_interval(secs => ${2 * leaseSeconds}) -- guard: account lease too far ahead
          or exists (select from workers w where w.id = f.lease_owner and w.stopped_at is not null))
      order by f.lease_until nulls first, f.account_id limit ${limit} for update of f skip locked
      for share of k skip locked) -- guard: a claim sees a workspace that was just disabled
    returning h.account_id, h.workspace_id, a.platform, a.name, h.lease_epoch as epoch, h.position,
      h.writes::text`)
}

/**
 * Takes the lease of one account that no worker drives, whatever its status: for a login. Undefined: a worker drives it. No
 * takeover time, because a login makes a session of its own.
 */
export async function claimAccount(
  db: Db,
  { worker_id, account_id }: { worker_id: string; account_id: string },
): Promise<{ account_id: string; epoch: string } | undefined> {
  await db.run(sql`
    insert into account_hosts (account_id, workspace_id) select id, workspace_id from accounts where id = ${account_id}
    on conflict do nothing`)
  return db.maybe(sql`
    update account_hosts h set lease_owner = ${worker_id}, lease_epoch = lease_epoch + 1,
      lease_until = real_now() + make_interval(secs => ${leaseSeconds}),
      heard_at = coalesce(observed_at, heard_at), observed_at = null,
      handed_over_at = null -- guard: nothing waits for a login
    where account_id = ${account_id} and (lease_until is null
      or lease_until < real_now() -- guard: a login takes no account that a worker drives
      or exists (select from workers w where w.id = h.lease_owner and w.stopped_at is not null))
    returning account_id, lease_epoch as epoch`)
}

interface Renewal {
  readonly account_id: string
  readonly epoch: string
  /** Milliseconds since the platform's last sign of life; null: never. */
  readonly silent_ms: number | null
}

/**
 * Renews in one statement, and stores each platform's last sign of life: never a future time, if a clock was set back.
 * Returns the accounts whose leases were still ours.
 */
export async function renewLeases(
  db: Db,
  worker_id: string,
  renewals: readonly Renewal[],
): Promise<ReadonlySet<string>> {
  const rows = await db.rows<{ account_id: string }>(sql`
    update account_hosts h set lease_until = real_now() + make_interval(secs => ${leaseSeconds}),
      observed_at = case
        when h.observed_at is not null -- guard: renewing makes nothing live
        then greatest(
          least(h.observed_at, real_now()), -- guard: observed in the future
          real_now() - make_interval(secs => r.silent_ms / 1000.0)) end
    from ${given(renewals, { account_id: 'text', epoch: 'bigint', silent_ms: 'float8' })} as r
    where h.account_id = r.account_id and h.lease_owner = ${worker_id} and h.lease_epoch = r.epoch
    returning h.account_id`)
  return new Set(rows.map(({ account_id }) => account_id))
}

/** The epochs of this worker's leases, except on disabled accounts. */
export async function listLeases(db: Db, worker_id: string): Promise<Map<string, string>> {
  const rows = await db.rows<{ account_id: string; epoch: string }>(sql`
    select h.account_id, h.lease_epoch as epoch from account_hosts h join accounts a on a.id = h.account_id
    where h.lease_owner = ${worker_id} and a.status in ('CONNECTING', 'READY')`)
  return new Map(rows.map(({ account_id, epoch }) => [account_id, epoch]))
}

/**
 * The account's session has ended. If it was `lost`, requests that need the platform are refused from now on. If its worker
 * gives a live account up, they wait for the next one.
 */
export async function noteNotLive(
  db: Db,
  { worker_id, account_id, epoch }: HeldLease,
  why: 'lost' | 'given up',
): Promise<void> {
  const handedOver = why === 'lost' ? sql`false` : isLive
  await db.run(sql`
    update account_hosts h set observed_at = null, heard_at = coalesce(observed_at, heard_at),
      handed_over_at = case when ${handedOver} then real_now() else handed_over_at end -- guard: a release hands over
    where account_id = ${account_id} and lease_owner = ${worker_id} and lease_epoch = ${epoch}`)
}

/** Whether the account was live until this worker gave it up, so that the next worker executes its operations. */
export async function findHandOver(db: Db, account_id: string): Promise<boolean> {
  const row = await db.maybe(sql`
    select from account_hosts h where account_id = ${account_id} and ${isHandedOver}`)
  return row !== undefined
}

/** Releases a lease, so that no worker waits for it to expire. */
export async function releaseLease(
  db: Db,
  worker_id: string,
  { account_id, epoch }: { account_id: string; epoch: string },
): Promise<void> {
  await db.run(sql`
    update account_hosts set lease_until = null, lease_owner = null
    where account_id = ${account_id} and lease_owner = ${worker_id}
      and lease_epoch = ${epoch} -- guard: a lease is given back by its epoch
    `)
}

/** Ends any lease: once this commits, its holder stores nothing more. */
export async function revokeLease(tx: Tx, account_id: string): Promise<void> {
  await tx.run(sql`
    update account_hosts set lease_epoch = lease_epoch + 1, lease_until = null, lease_owner = null
    where account_id = ${account_id}`)
}

/** The same for every account of a workspace, in the order in which all transactions lock several accounts. */
export async function revokeLeases(tx: Tx, workspace_id: string): Promise<void> {
  await tx.run(sql`
    with taken as materialized (
      select account_id from account_hosts where workspace_id = ${workspace_id} order by account_id for no key update)
    update account_hosts h set lease_epoch = lease_epoch + 1, lease_until = null, lease_owner = null
    from taken t where h.account_id = t.account_id`)
}

/** This worker has lost the account's lease, so another one may be driving the account already. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/** Throws unless this worker holds the lease. Locks the row until the commit, as `advancePositions` does. */
export async function requireLease(
  tx: Tx,
  { worker_id, account_id, epoch }: { worker_id: string; account_id: string; epoch: string },
): Promise<void> {
  const held = await tx.maybe(sql`
    select 1 from account_hosts where account_id = ${account_id} and lease_owner = ${worker_id}
      and lease_epoch = ${epoch} -- guard: an earlier lease of the same worker is lost
    for no key update`)
  if (!held) throw new LeaseLost('The lease of the account is lost.')
}

/**
 * Waits for transactions that are storing what these accounts show: they hold the rows until their commit. Those that come later see what
 * was committed before this call.
 */
export async function waitForStoring(tx: Tx, account_ids: readonly string[]): Promise<void> {
  await tx.run(sql`
    select 1 from account_hosts where account_id = any(${account_ids}) order by account_id for no key update`)
}

export async function holdsLease(
  db: Db,
  worker_id: string,
  { account_id, epoch }: { account_id: string; epoch: string },
): Promise<boolean> {
  const row = await db.maybe(sql`
    select 1 from account_hosts where account_id = ${account_id} and lease_owner = ${worker_id}
      and lease_until > real_now() -- guard: a lease that has run out is not held
      and lease_epoch = ${epoch}`)
  return row !== undefined
}

interface Share {
  readonly platform: string
  /** How many workers drive accounts of the platform. */
  readonly workers: number
  /** How many accounts of it this worker drives. */
  readonly share: number
}

/** What of each platform is this worker's: no worker drives over one account more than another. */
export async function readShares(
  db: Db,
  worker_id: string,
  platforms: readonly string[],
): Promise<readonly Share[]> {
  const counts = await db.rows<PlatformCounts & { platform: string }>(sql`
    select p.platform, a.accounts, a.before, w.workers, w.rank
    from unnest(${platforms}::text[]) as p (platform) cross join lateral (
      select (count(*) filter (where a.platform = p.platform))::int as accounts,
        (count(*) filter (where a.platform < p.platform))::int as before
      from accounts a join workspaces k on k.id = a.workspace_id
      where a.status in ('CONNECTING', 'READY')
        and k.disabled_at is null -- guard: accounts of disabled workspaces are not shared out
      ) a
    cross join lateral (
      select count(*)::int as workers, (count(*) filter (where w.id < ${worker_id}::uuid))::int as rank
      from workers w where w.stopped_at is null and w.drives
        and p.platform = any(w.platforms) -- guard: only workers that have the platform
        and w.beat_at > real_now() - make_interval(secs => ${silentSeconds})
        and w.beat_at < real_now() + make_interval(secs => ${silentSeconds}) -- guard: heartbeat from the future
      ) w`)
  return counts.map((each) => ({ platform: each.platform, workers: each.workers, share: shareOf(each) }))
}

interface PlatformCounts {
  readonly accounts: number
  /** The accounts of platforms whose names sort before this one. */
  readonly before: number
  readonly workers: number
  /** How many of these workers have a lower id. */
  readonly rank: number
}

/**
 * The workers divide the accounts evenly, and some take one more. Those of the next platform take turns where these end, so
 * that the same workers do not get more of each. All workers see the same counts, so together their shares are all accounts.
 */
export function shareOf({ accounts, before, workers, rank }: PlatformCounts): number {
  if (workers === 0) return accounts
  const turn = (rank + workers - (before % workers)) % workers
  return Math.floor(accounts / workers) + (turn < accounts % workers ? 1 : 0) // guard: the remainder is divided
}
