/**
 * What the delivering process reads and writes: which endpoints it holds, what is due for them, how attempts ended. A
 * process claims whole endpoints, so concurrency, failure count and breaker of each have one owner.
 */
import type { App } from '../../app.ts'
import { given } from '../../db/given.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { retention } from '../../events/sequencer.ts'
import { record } from '../audit/audit.ts'
import type { StoredAddress } from './address.ts'
import { behind } from './planning.ts'
import { breakerFailures, disablingFailures, probeGapSeconds } from './schedule.ts'

/** In real time. For this long, no other process takes the endpoints of one that died. */
export const leaseSeconds = 6 // limit: lease of an endpoint

/** Due, and recent enough for its event to still be stored. */
const isDue = sql`d.state = 'pending' and d.due_at <= domain_now()
  and d.created_at > domain_now() - ${retention}::interval`

/** Due events of an active endpoint whose breaker allows one, and tests, which need neither. */
const ready = sql`(
  w.active and (w.probe_at is null or w.probe_at <= domain_now()) and exists (
    select from webhook_deliveries d
    where d.webhook_id = w.id and ${isDue} and d.sequence is not null)
  or w.id in (select d.webhook_id from webhook_deliveries d where d.sequence is null and ${isDue}))`

/** Deliveries of a disabled workspace wait until it is enabled. */
const ofEnabled = sql`exists (select from workspaces k where k.id = w.workspace_id and k.disabled_at is null)`

/** Claims endpoints with due deliveries that no process holds. Returns their ids. */
export async function claimEndpoints(
  db: Db,
  { owner, most }: { owner: string; most: number },
): Promise<readonly string[]> {
  if (most <= 0) return []
  const rows = await db.rows<{ id: string }>(sql`
    update webhooks set lease_owner = ${owner}, lease_until = real_now() + make_interval(secs => ${leaseSeconds})
    where id in (
      select w.id from webhooks w
      where w.deleted_at is null and w.lease_owner is distinct from ${owner}
        and ${ofEnabled} -- guard: no endpoint of a disabled workspace is claimed
        and (w.lease_until is null or w.lease_until < real_now() -- guard: lease of an endpoint
          or w.lease_until > real_now() + make_interval(secs => ${2 * leaseSeconds}))
        and ${ready}
      order by w.lease_until nulls first limit ${most} for update of w skip locked)
    returning id`)
  return rows.map(({ id }) => id)
}

/** Extends the leases of this process. An endpoint that was taken meanwhile stays with its new owner. */
export async function renewLeases(db: Db, owner: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await db.run(sql`
    update webhooks set lease_until = real_now() + make_interval(secs => ${leaseSeconds})
    where id = any(${ids}::uuid[]) and lease_owner = ${owner}`)
}

export async function releaseLeases(db: Db, owner: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await db.run(sql`
    update webhooks set lease_owner = null, lease_until = null
    where id = any(${ids}::uuid[]) and lease_owner = ${owner}`)
}

/** An endpoint as its owner needs it. */
export interface EndpointState extends StoredAddress {
  readonly webhook_id: string
  /** Counts its addresses. */
  readonly url_no: number
  readonly secret: Buffer
  readonly previous_secret: Buffer | null
  readonly active: boolean
  readonly consecutive_failures: number
}

export interface DueDelivery {
  readonly id: string
  readonly workspace_id: string
  readonly event_id: string
  readonly type: string
  readonly sequence: number | null
  readonly attempts: number
  readonly series_attempts: number
  readonly created_at: Date
  readonly body: string | null
  readonly occurred_at: Date | null
  readonly data: string | null
  readonly traceparent: string | null
}

interface EndpointRoom {
  readonly webhook_id: string
  /** How many more deliveries there is room for. */
  readonly room: number
}

type LoadedRow = EndpointState & { [K in keyof DueDelivery]: DueDelivery[K] | null }

/** The current state of endpoints that this process still holds, each with due deliveries that are not in `busy`. */
export async function loadDue(
  db: Db,
  { owner, wanted, busy }: { owner: string; wanted: readonly EndpointRoom[]; busy: readonly string[] },
): Promise<{ state: EndpointState; due: DueDelivery[] }[]> {
  const rows = await db.rows<LoadedRow>(sql`
    select w.id as webhook_id, w.url, w.url_sealed, w.url_no, w.secret,
      case when w.previous_until > domain_now() then w.previous_secret end as previous_secret, w.active,
      w.consecutive_failures, d.id, d.workspace_id, d.event_id, d.type, d.sequence::float8 as sequence, d.attempts,
      d.series_attempts, d.created_at, d.body, d.traceparent, e.occurred_at, e.data::text as data
    from ${given(wanted, { webhook_id: 'uuid', room: 'int' })} as wanted
    join webhooks w on w.id = wanted.webhook_id and w.lease_owner = ${owner}
      and w.deleted_at is null -- guard: nothing is loaded for a deleted endpoint
      and ${ofEnabled} -- guard: nothing is loaded for a disabled workspace
    left join lateral (
      select * from webhook_deliveries d
      where d.webhook_id = w.id and ${isDue}
        and d.id <> all(${busy}::uuid[])
        and (d.sequence is null or w.active and (w.probe_at is null or w.probe_at <= domain_now()))
      order by d.due_at, d.sequence limit wanted.room) d on true
    left join events e on e.workspace_id = d.workspace_id and e.sequence = d.sequence
    order by d.due_at, d.sequence`)
  const grouped = Map.groupBy(rows, ({ webhook_id }) => webhook_id)
  return [...grouped.values()].flatMap((group) => {
    const [state] = group
    return state
      ? [{ state, due: group.filter((row): row is LoadedRow & DueDelivery => row.id !== null) }]
      : []
  })
}

/** How one attempt ended. */
export interface AttemptResult {
  readonly webhook_id: string
  /** The address it was sent to: the endpoint may have another one by now. */
  readonly url_no: number
  readonly delivery_id: string
  /** The attempts of the series before this one. */
  readonly series_attempts: number
  readonly test: boolean
  /** It was the one attempt that an open breaker allows. */
  readonly probe: boolean
  readonly ok: boolean
  /** How long ago it started. */
  readonly ago_ms: number
  readonly status: number | null
  readonly ms: number
  readonly error: string | null
  readonly response: string | null
  /** Seconds until the next attempt; null if there is none. */
  readonly retry_seconds: number | null
}

interface DisabledEndpoint {
  readonly id: string
  readonly workspace_id: string
  readonly consecutive_failures: number
}

/** Stores many attempts in one statement, in the order they ended, and audits endpoints that 20 failures disabled. */
export async function recordAttempts(
  app: App,
  owner: string,
  attempts: readonly AttemptResult[],
): Promise<readonly DisabledEndpoint[]> {
  return app.db.transaction(async (tx) => {
    const disabled = await storeAttempts(tx, owner, attempts)
    for (const { id, workspace_id, consecutive_failures } of disabled) {
      const detail = { consecutive_failures }
      await record(app, tx, 'system', { action: 'webhook.disabled', target: id, workspace_id, detail })
    }
    return disabled
  })
}

/**
 * How the attempts at one address change the endpoint's count: a success resets it, and later failures add to it. Responses
 * from an address that the endpoint no longer has do not count.
 */
function tallyOf(attempts: readonly AttemptResult[]) {
  const lastSuccess = attempts.findLastIndex(({ ok }) => ok)
  // A test never counts as a failure, but its success resets the count like any other.
  const failed = attempts.slice(lastSuccess + 1).filter(({ test }) => !test)
  const probed = failed.some(({ probe }) => probe)
  const { webhook_id, url_no } = attempts[0] as AttemptResult
  return { webhook_id, url_no, succeeded: lastSuccess >= 0, failures: failed.length, probed }
}

/** It was queued again during the attempt, which belongs to the previous series: the new series stays as requested. */
const wasQueuedAgain = sql`d.series_attempts < r.series_attempts` // guard: queued again

async function storeAttempts(
  tx: Tx,
  owner: string,
  attempts: readonly AttemptResult[],
): Promise<DisabledEndpoint[]> {
  const byAddress = Map.groupBy(attempts, ({ webhook_id, url_no }) => `${webhook_id} ${url_no}`)
  const tallies = [...byAddress.values()].map(tallyOf)
  const changed = await tx.rows<DisabledEndpoint & { disabled: boolean }>(sql`
    with tally as ${given(tallies, {
      webhook_id: 'uuid',
      url_no: 'int',
      succeeded: 'boolean',
      failures: 'int',
      probed: 'boolean',
    })},
    -- Endpoints before deliveries, by id: the lock order of every transaction.
    locked as materialized (
      select w.id, w.url_no, w.lease_owner, w.active, w.consecutive_failures, w.probe_at, w.probe_gap_seconds
      from webhooks w where w.id in (select webhook_id from tally) order by w.id for no key update),
    result as (
      -- A manual clock stands still during an attempt.
      select *, case when exists (select from manual_clock) then domain_now()
        else domain_now() - make_interval(secs => ago_ms / 1000) end as at
      from ${given(attempts, {
        delivery_id: 'uuid',
        webhook_id: 'uuid',
        ok: 'boolean',
        ago_ms: 'float8',
        status: 'int',
        ms: 'int',
        error: 'text',
        response: 'text',
        retry_seconds: 'float8',
        series_attempts: 'int',
      })} as r),
    stored as (
      update webhook_deliveries d set attempts = d.attempts + 1,
        series_attempts = d.series_attempts + case when ${wasQueuedAgain} then 0 else 1 end,
        state = case when r.ok then 'delivered' when r.retry_seconds is not null or ${wasQueuedAgain} then 'pending'
          else 'failed' end,
        due_at = case when r.ok then null when ${wasQueuedAgain} then d.due_at
          else domain_now() + make_interval(secs => r.retry_seconds) end,
        delivered_at = case when r.ok then domain_now() end,
        last_at = r.at, last_status = r.status, last_ms = r.ms, last_error = r.error
      from result r join locked l on l.id = r.webhook_id
      where d.id = r.delivery_id and d.state = 'pending'
      returning d.id, d.workspace_id, d.attempts as n, r.*),
    failed as (
      insert into webhook_attempts (delivery_id, n, workspace_id, at, status, ms, error, response)
      select id, n, workspace_id, at, status, ms, error, response from stored where not ok),
    counted as (
      select l.*, t.succeeded, t.failures, t.probed,
        case when t.succeeded then t.failures else l.consecutive_failures + t.failures end as count
      from locked l join tally t on t.webhook_id = l.id
        and t.url_no = l.url_no -- guard: count of the address
      where l.lease_owner = ${owner}), -- guard: count of the owner
    -- The breaker opens with the first gap. Attempts then in flight change nothing; a failed probe doubles the gap.
    breaker as (
      select c.*, case
        when c.count < ${breakerFailures} then null
        when c.succeeded or c.probe_gap_seconds is null then ${probeGapSeconds.first}
        when c.probed then least(c.probe_gap_seconds * 2, ${probeGapSeconds.most})
        else c.probe_gap_seconds end as gap
      from counted c)
    update webhooks w set consecutive_failures = p.count, probe_gap_seconds = p.gap,
      probe_at = case when p.gap is null then null
        when p.succeeded or p.probed or p.probe_at is null then domain_now() + make_interval(secs => p.gap)
        else p.probe_at end,
      active = p.active and p.count < ${disablingFailures},
      disabled_at = case when p.active and p.count >= ${disablingFailures} then domain_now() else w.disabled_at end
    from breaker p
    -- Skips the most common batch: successes of endpoints that work change nothing.
    where w.id = p.id and (p.failures > 0 or w.consecutive_failures <> p.count or w.probe_at is not null)
    returning w.id, w.workspace_id, w.consecutive_failures, p.active and not w.active as disabled`)
  return changed.filter(({ disabled }) => disabled).map(({ disabled: _, ...rest }) => rest)
}

/**
 * How much is due now, or about to be: events without a sequence number, and endpoints that are behind. One statement,
 * because a caller that waits for 0 must not miss what moves between two reads.
 */
export async function countDue(db: Db): Promise<number> {
  const { count } = await db.one<{ count: number }>(sql`
    select ((select count(*) from outbox) + (select count(*) from ${behind}) + coalesce(sum(due.count), 0))::int as count
    from webhooks w cross join lateral (
      select count(*) as count from (
        select from webhook_deliveries d
        where d.webhook_id = w.id and ${isDue}
          and (d.sequence is null or w.active and (w.probe_at is null or w.probe_at <= domain_now()))
        limit 10000) d) due
    where w.deleted_at is null and ${ofEnabled}`)
  return count
}

/** When the next attempt is due, in domain time. */
export async function findNextDue(db: Db): Promise<Date | null> {
  const { due_at } = await db.one<{ due_at: Date | null }>(sql`
    select min(greatest(w.probe_at, first.due_at)) as due_at
    from webhooks w cross join lateral (
      select d.due_at from webhook_deliveries d where d.webhook_id = w.id and d.state = 'pending'
      order by d.due_at limit 1) first
    where w.active and ${ofEnabled}`)
  return due_at
}
