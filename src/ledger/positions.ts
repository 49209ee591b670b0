/** How far the updates of an account have been stored, fenced by the account's lease. */
import { given } from '../db/given.ts'
import { type Db, sql, type Tx } from '../db/sql.ts'
import type { HeldLease } from './leases.ts'

export interface Advance {
  readonly held: HeldLease
  readonly position: string
  /** The stream had been read to its end when this batch arrived: once it commits, the account is live. */
  readonly caught_up: boolean
}

interface Advanced {
  readonly account_id: string
  readonly writes: string
}

/**
 * The fence of every batch of updates. Returns only accounts whose lease is the given one and whose count of writes is not
 * below what was seen committed. The rows stay locked until the commit, so that a new holder cannot begin in between.
 * Locks several accounts in the order of their ids.
 */
export function advancePositions(tx: Db | Tx, advances: readonly Advance[]): Promise<Advanced[]> {
  const ordered = advances.toSorted((one, other) => (one.held.account_id < other.held.account_id ? -1 : 1))
  return tx.rows<Advanced>(sql`
    with given as materialized ${given(ordered, {
      account_id: ['text', ({ held }) => held.account_id],
      worker_id: ['uuid', ({ held }) => held.worker_id],
      epoch: ['bigint', ({ held }) => held.epoch],
      writes: ['bigint', ({ held }) => held.writes.seen],
      position: 'text',
      caught_up: 'boolean',
    })},
    taken as materialized (
      select g.* from given g cross join lateral (
        select 1 from account_hosts h where h.account_id = g.account_id
          and h.lease_owner = g.worker_id -- guard: updates lease_owner
          and h.lease_epoch = g.epoch -- guard: updates lease_epoch
          and h.writes >= g.writes -- guard: updates writes
        for no key update) h)
    update account_hosts h set position = t.position, writes = h.writes + 1,
      handed_over_at = case when not t.caught_up then h.handed_over_at end, -- guard: handed over until caught up
      observed_at = case when t.caught_up or h.observed_at is not null then (select real_now()) end -- guard: live once caught up
    from taken t where h.account_id = t.account_id
    returning h.account_id, h.writes::text`)
}

/** How far the updates of the accounts that workers drive now have been stored. */
export function listPositions(db: Db): Promise<{ account_id: string; position: string | null }[]> {
  return db.rows(sql`
    select h.account_id, h.position from account_hosts h join accounts a on a.id = h.account_id
    where a.status = 'READY' and h.lease_until > real_now()`)
}
