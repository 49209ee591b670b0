/**
 * Which worker drives which account. A worker takes a lease with a new epoch and renews it while it lives. The lease is
 * free again once it expires or its worker signs off. Leases use real time.
 */
import type { Sources, Topic } from '../app.ts'
import { given } from '../db/given.ts'
import { type Db, sql, type Tx } from '../db/sql.ts'

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
      heard_at = coalesce(h.observed_at, h.heard_at),
      observed_at = null -- guard: not live until caught up
    from accounts a
    where a.id = h.account_id and h.account_id in (
      select f.account_id from account_hosts f join accounts b on b.id = f.account_id
      where b.platform = ${platform}
        and b.status in ('CONNECTING', 'READY') -- guard: only accounts that may act are claimed
        and (${takeover_seconds}::int = 0
          or not exists (select from instance where unconfirmed_since is not null)) -- guard: no connection for a clone
        and (f.lease_until is null
          or f.lease_until < real_now() - make_interval(secs => ${takeover_seconds}) -- guard: takeover waits
          or f.lease_until < real_now() and f.lease_owner = any(${neighbours}::uuid[])
          or f.lease_until > real_now() + make_interval(secs => ${2 * leaseSeconds}) -- guard: account lease too far ahead
          or exists (select from workers w where w.id = f.lease_owner and w.stopped_at is not null))
      order by f.lease_until nulls first, f.account_id limit ${limit} for update of f skip locked)
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
      heard_at = coalesce(observed_at, heard_at), observed_at = null
    where account_id = ${account_id} and (lease_until is null or lease_until < real_now()
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
      and lease_epoch = ${epoch} for no key update`)
  if (!held) throw new LeaseLost('The lease of the account is lost.')
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
  /** How many accounts of the platform there are, and how many workers to drive them. */
  readonly accounts: number
  readonly workers: number
}

export function readShares(db: Db, platforms: readonly string[]): Promise<Share[]> {
  return db.rows<Share>(sql`
    select platform,
      (select count(*)::int from accounts a
       where a.platform = p.platform and a.status in ('CONNECTING', 'READY')) as accounts,
      (select count(*)::int from workers w where w.stopped_at is null and w.drives
        and p.platform = any(w.platforms) -- guard: only workers that have the platform
        and w.beat_at > real_now() - make_interval(secs => ${silentSeconds})
        and w.beat_at < real_now() + make_interval(secs => ${silentSeconds}) -- guard: heartbeat from the future
      ) as workers
    from unnest(${platforms}::text[]) as p (platform)`)
}
