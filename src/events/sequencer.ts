/** Gives events their sequence numbers: gapless for each workspace, without making commits wait for each other. */
import type { Topic } from '../app.ts'
import { type Db, sql } from '../db/sql.ts'

/** There are new events. */
export const sequenced: Topic = { topic: 'events' }

const lock = 7_346_004
const batchMax = 1_000
export const retention = '30 days'

/**
 * Moves the outbox to `events` in one statement and returns how many it moved. One process at a time: another that tries
 * meanwhile moves nothing. It takes a range of the outbox's keys, so that no plan, however wrong the planner's statistics,
 * can compare every waiting row with every other.
 */
export async function sequence(db: Db): Promise<number> {
  return db.run(sql`
    with turn as materialized (select pg_try_advisory_xact_lock(${lock}) as mine),
    taken as (
      delete from outbox where id <= (
        select max(id) from (
          select id from outbox where (select mine from turn) order by id limit ${batchMax}) first)
      returning id, workspace_id, type, occurred_at, data, traceparent),
    placed as (
      select *, row_number() over each_workspace as place,
        count(*) over (partition by workspace_id) as total
      from taken window each_workspace as (partition by workspace_id order by id)),
    ends as (
      insert into event_sequences as s (workspace_id, sequence)
      select workspace_id, count(*) from taken group by workspace_id
      on conflict (workspace_id) do update set sequence = s.sequence + excluded.sequence
      returning workspace_id, sequence)
    insert into events (workspace_id, sequence, id, type, occurred_at, data, traceparent)
    select p.workspace_id, e.sequence - p.total + p.place,
      'evt_' || replace(gen_random_uuid()::text, '-', ''), p.type, p.occurred_at, p.data, p.traceparent
    from placed p join ends e on e.workspace_id = p.workspace_id
    order by p.workspace_id, p.place`)
}

/** How many events in the outbox have no sequence number yet. */
export async function countUnsequenced(db: Db): Promise<number> {
  const { waiting } = await db.one<{ waiting: number }>(sql`select count(*)::int as waiting from outbox`)
  return waiting
}

export function forgetOldEvents(db: Db): Promise<number> {
  return db.run(sql`
    delete from events where (workspace_id, sequence) in (
      select workspace_id, sequence from events
      where created_at < domain_now() - ${retention}::interval limit 10000)`)
}
