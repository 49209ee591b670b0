/** Operations that wait for a worker's accounts, and how they end when they cannot cross. */
import type { App } from '../app.ts'
import { type Db, sql } from '../db/sql.ts'
import type { Operation } from '../operation.ts'
import { executable } from './columns.ts'
import { settled } from './enqueue.ts'
import { floodEndOf } from './floods.ts'
import type { HeldLease } from './leases.ts'
import { isHandedOver, isLive } from './liveness.ts'
import { markOperations } from './operation-marks.ts'
import { type Ending, settle } from './settle.ts'

export interface QueuedOperation extends Operation {
  readonly queued_no: number
  /** As read. `releaseNeverSent` changes it, so that a crossing whose answer was lost does not match if it arrives late. */
  readonly attempt_token: string | null
  /** How long it had waited when it was read. */
  readonly waited_seconds?: number
}

/** How many operations without a chat are read, and how many chats. */
const lanesMax = 32

/** The oldest of each chat: only one per chat is sent at a time, and a chat with many waiting must not hide another. */
export function listQueued(db: Db, account_ids: readonly string[]): Promise<QueuedOperation[]> {
  return db.rows<QueuedOperation>(sql`
    select q.*, extract(epoch from (select domain_now()) - q.created_at)::float8 as waited_seconds from unnest(${account_ids}::text[]) as a (id) cross join lateral (
      select * from (
        select * from (
          select distinct on (o.chat_id) -- guard: a chat hides no other
            ${executable}, o.queued_no, o.attempt_token, o.created_at
          from operations o where o.account_id = a.id and o.state = 'queued' and o.chat_id is not null
          order by o.chat_id, o.created_at, o.id) chats
        union all
        select * from (
          select ${executable}, o.queued_no, o.attempt_token, o.created_at
          from operations o where o.account_id = a.id and o.state = 'queued' and o.chat_id is null
          order by o.created_at, o.id limit ${lanesMax}) others) each_lane
      order by created_at, id limit ${lanesMax}) q`)
}

/** Before the boundary nothing has happened, so the operation ends here. */
export async function settleQueued(
  app: App,
  { id, queued_no }: QueuedOperation,
  ending: Ending,
): Promise<void> {
  const rows = await app.db.transaction((tx) =>
    settle(tx, app.operations, [{ id, token: null, queued_no, ending }]),
  )
  app.wake.signal(settled)
  markOperations(app, rows)
}

/** Releases an operation that could not cross, with the reason. False: no reason found, so it waits, perhaps for another worker. */
export async function settleUncrossed(
  app: App,
  held: HeldLease,
  { id, queued_no }: QueuedOperation,
): Promise<boolean> {
  const rows = await app.db.transaction(async (tx) => {
    const why = await tx.maybe<{ reason: string | null }>(sql`
      select case
          when not exists (select from settings where name = 'dispatch' and value = 'true'::jsonb) then 'dispatch_off'
          when ${floodEndOf(app.operations)} > domain_now() then 'flood_wait'
          when not ${isLive}
            and not ${isHandedOver} -- guard: an operation waits while its account changes hands
          then 'not_live'
          when o.expires_at <= real_now() then 'expired'
        end as reason
      from account_hosts h, operations o
      where h.account_id = ${held.account_id}
        and h.lease_owner = ${held.worker_id} and h.lease_epoch = ${held.epoch} -- guard: uncrossed under our lease
        and o.id = ${id} and o.state = 'queued'`)
    if (!why?.reason) return []
    const ending: Ending = { to: 'released', reason: why.reason }
    return settle(tx, app.operations, [{ id, token: null, queued_no, ending }])
  })
  if (rows.length === 0) return false
  app.wake.signal(settled)
  markOperations(app, rows)
  return true
}
