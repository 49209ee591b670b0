/**
 * The boundary (T2): the re-check immediately before every submission, for many operations of many accounts in one
 * statement. Once it commits, a submission may have happened. Nothing leads from here back to the queue.
 */
import type { App } from '../app.ts'
import { given } from '../db/given.ts'
import { type Db, type Sql, sql } from '../db/sql.ts'
import type { OperationKinds } from '../operation.ts'
import { settled } from './enqueue.ts'
import { floodEndOf } from './floods.ts'
import type { HeldLease } from './leases.ts'
import { isLive } from './liveness.ts'
import { markOperations } from './operation-marks.ts'
import { settle } from './settle.ts'

/** How long an attempt may run without its worker recording an outcome. Expiry means `ambiguous`, never `queued`. */
export const attemptSeconds = { text: 60, file: 150 } as const

export interface Crossing {
  readonly id: string
  /** Of the new attempt. */
  readonly token: string
  /** The row's token when it was read: another value means that another transaction has changed the row since. */
  readonly seen_token: string | null
  readonly held: HeldLease
  readonly seconds: number
}

/**
 * `proven`: the boundary is crossed, and a stored message of the account carries the random id, so the platform accepted
 * it before and it must not be submitted. `busy`: another transaction has locked the account; retry. `behind`: the
 * database has forgotten what this process saw committed. `forbidden`: its kind's re-check forbids it.
 */
export type CrossingStatus = 'crossed' | 'proven' | 'busy' | 'behind' | 'forbidden' | 'no'

export interface CrossingAnswer {
  readonly id: string
  readonly status: CrossingStatus
  /** The account's count of writes as of this commit; null where nothing of the account crossed. */
  readonly writes: string | null
  /** The message that proves it. */
  readonly message_id: string | null
  readonly sent_at: Date | null
  /** Why its kind's re-check forbids it. */
  readonly forbidden: string | null
}

/** What every crossing of this process also requires of the database. */
export interface Instance {
  readonly worker_id: string
  readonly restore_counter: string
  readonly generation: string
  /** The run of the database server in which this process put its journals back and compared its marks. */
  readonly server_run: string
}

export function cross(
  { db, operations }: { readonly db: Db; readonly operations: OperationKinds },
  instance: Instance,
  crossings: readonly Crossing[],
): Promise<CrossingAnswer[]> {
  return db.rows<CrossingAnswer>(crossStatement(operations, instance, crossings))
}

export function crossStatement(
  kinds: OperationKinds,
  instance: Instance,
  crossings: readonly Crossing[],
): Sql {
  const ordered = crossings.toSorted((one, other) => (one.id < other.id ? -1 : 1))
  const { worker_id } = instance
  return sql`
    with given as materialized ${given(ordered, {
      id: 'uuid',
      token: 'uuid',
      seen_token: 'uuid',
      account_id: ['text', ({ held }) => held.account_id],
      epoch: ['bigint', ({ held }) => held.epoch],
      writes: ['bigint', ({ held }) => held.writes.seen],
      seconds: 'int',
    })},
    ${accountsHeld(instance)},
    taken as materialized (
      select g.id, g.token, g.seconds, g.account_id, o.workspace_id, o.kind, o.chat_id, m.id as message_id, m.sent_at
      from given g join held h on h.account_id = g.account_id
        and h.epoch = g.epoch -- guard: each by its own epoch
      cross join lateral (
        select o.random_id, o.workspace_id, o.kind, o.chat_id from operations o where o.id = g.id
          and o.state = 'queued' -- guard: queued
          and o.expires_at > (select real_now()) -- guard: expires_at
          and o.attempt_token is not distinct from g.seen_token -- guard: seen token
          and coalesce(${floodEndOf(kinds)} <= (select domain_now()), true) -- guard: flood_until
        for update skip locked) o
      left join lateral (
        select m.id, m.sent_at from messages m where m.account_id = g.account_id and m.random_id = o.random_id
        limit 1) m on true),
    -- A message that was sent before skips the re-check.
    rechecked as materialized (
      select o.*, case when o.message_id is null then ${recheckOf(kinds)} end as forbidden from taken o),
    crossed as (
      update operations o set state = 'submitting', attempt_no = attempt_no + 1, attempt_token = t.token,
        owner = ${worker_id}, crossed_at = (select domain_now()),
        lease_until = (select real_now()) + make_interval(secs => t.seconds),
        proof_message_id = coalesce(o.proof_message_id, t.message_id), proof_at = coalesce(o.proof_at, t.sent_at)
      from rechecked t where o.id = t.id
        and t.forbidden is null -- guard: recheck
      returning o.id, t.account_id, o.proof_message_id, o.proof_at),
    raised as (
      update account_hosts h set writes = h.writes + 1
      where h.account_id in (select account_id from crossed)
      returning h.account_id, h.writes)
    select g.id, raised.writes::text, crossed.proof_message_id::text as message_id, crossed.proof_at as sent_at,
      r.forbidden, case
        when crossed.proof_message_id is not null then 'proven' -- guard: proven is not sent
        when crossed.id is not null then 'crossed'
        when not fit.current then 'behind'
        when fit.account_id is not null and held.account_id is null or r.forbidden = 'busy' then 'busy'
        when r.forbidden is not null then 'forbidden'
        else 'no' end as status
    from given g left join crossed on crossed.id = g.id left join fit on fit.account_id = g.account_id
      left join held on held.account_id = g.account_id left join raised on raised.account_id = g.account_id
      left join rechecked r on r.id = g.id`
}

/** The re-checks of all kinds, over the row `o`. */
function recheckOf(kinds: OperationKinds): Sql {
  let whole = sql`null`
  for (const { kind, recheck } of kinds.values()) {
    if (recheck) whole = sql`case when o.kind = ${kind} then ${recheck} else ${whole} end`
  }
  return whole
}

/**
 * Of the accounts in `given`, `fit` are those that may act and `held` those that this transaction has locked. Locks the
 * switch first, then the accounts; every transaction keeps this order.
 */
export function accountsHeld({ worker_id, restore_counter, generation, server_run }: Instance): Sql {
  return sql`
    dispatch as materialized (
      select 1 from settings where name = 'dispatch'
        and value = 'true'::jsonb -- guard: dispatch
      for share),
    instance_ok as materialized (
      select 1 from instance
      where restore_counter >= ${restore_counter}::bigint -- guard: restore_counter
        and generation = ${generation}::uuid -- guard: generation
        and server_run() = ${server_run} -- guard: server run
        and not exists (select from workers where owes) -- guard: owes
      ),
    accounts_given as materialized (
      select account_id, max(epoch) as epoch, max(writes) as writes from given group by account_id),
    fit as materialized (
      select h.account_id, h.writes >= g.writes as current from accounts_given g
      cross join lateral (${accountFits(worker_id)}) h, dispatch, instance_ok),
    held as materialized (
      select h.account_id, g.epoch, h.flood_until, h.lookup_flood_until, h.reading_flood_until
      from accounts_given g join fit on fit.account_id = g.account_id
      cross join lateral (${accountFits(worker_id)}
        and h.writes >= g.writes -- guard: writes
        for no key update of h skip locked) h)`
}

/** The account may act: its lease is ours, and it is READY and live. */
function accountFits(worker_id: string): Sql {
  return sql`
    select h.* from account_hosts h join accounts a on a.id = h.account_id
    where h.account_id = g.account_id
      and h.lease_owner = ${worker_id} -- guard: lease_owner
      and h.lease_epoch = g.epoch -- guard: lease_epoch
      and h.lease_until > (select real_now()) -- guard: lease_until
      and a.status = 'READY' -- guard: account status
      and ${isLive} -- guard: live
    `
}

/**
 * The answer to a crossing was lost, so nothing is sent. Locks the row first, which waits for a crossing that has begun.
 * If it crossed, only this process knows that nothing was written. If it has not, it may still reach the database later, so
 * the row gets a token that the crossing does not expect.
 */
export async function releaseNeverSent(
  app: App,
  { id, token }: Pick<Crossing, 'id' | 'token'>,
): Promise<void> {
  const rows = await app.db.transaction(async (tx) => {
    const row = await tx.maybe<{ state: string; attempt_token: string | null }>(sql`
      select state, attempt_token from operations where id = ${id}
      for update -- guard: the release waits for the row
      `)
    const ours = row?.attempt_token === token // guard: token of a release
    // It was withdrawn or expired meanwhile: its caller may queue it again before the crossing arrives.
    if (row?.state === 'queued' || (row?.state === 'released' && !ours)) {
      const fresh = app.sources.newToken()
      // guard: a late crossing finds another token
      await tx.run(sql`update operations set attempt_token = ${fresh} where id = ${id}`)
    } else if (ours) {
      const ending = { to: 'released', reason: 'never_written', detail: 'lost_commit' } as const
      return settle(tx, app.operations, [{ id, token, ending }])
    }
    return []
  })
  app.wake.signal(settled)
  markOperations(app, rows)
}
