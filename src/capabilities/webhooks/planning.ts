/** Turns events into deliveries: each endpoint follows the sequence of its workspace at its own position. */
import type { Topic } from '../../app.ts'
import { type Db, sql } from '../../db/sql.ts'
import { retention } from '../../events/sequencer.ts'
import { allEvents } from './webhook-shapes.ts'

/** New deliveries were planned. */
export const planned: Topic = { topic: 'planned' }

/** How many endpoints one statement plans for, and how many events for each. */
const endpointsMax = 20
const eventsMax = 500
/** How many events it scans at a time for an endpoint's types: rare types must not make a statement long. */
const windowMax = 5_000
/**
 * An endpoint with this many pending deliveries gets no more for now. Its backlog stays a position in the sequence, which
 * costs nothing, however long the endpoint is down.
 */
const backlogMax = 1_000

/** Active, behind its workspace, and with room in its backlog. */
export const behind = sql`
  webhooks w join event_sequences s on s.workspace_id = w.workspace_id and s.sequence > w.position
  where w.active and not exists (
    select from webhook_deliveries d where d.webhook_id = w.id and d.state = 'pending' offset ${backlogMax - 1})`

/** Plans for some endpoints that are behind, and advances their positions in the same statement. Returns how many. */
export function plan(db: Db): Promise<number> {
  return db.run(sql`
    with behind as materialized (
      select w.id, w.workspace_id, w.events, w.position, least(s.sequence, w.position + ${windowMax}) as up_to
      from ${behind} limit ${endpointsMax} for update of w skip locked),
    found as materialized (
      select b.id as webhook_id, b.workspace_id, e.*
      from behind b cross join lateral (
        select sequence, id, type, created_at, traceparent from events
        where workspace_id = b.workspace_id and sequence > b.position and sequence <= b.up_to
          and (b.events = array[${allEvents}] or type = any(b.events))
          and created_at > domain_now() - ${retention}::interval
        order by sequence limit ${eventsMax}) e),
    planned as (
      insert into webhook_deliveries (id, workspace_id, webhook_id, sequence, event_id, type, due_at, created_at, traceparent)
      select gen_random_uuid(), workspace_id, webhook_id, sequence, id, type, domain_now(), created_at, traceparent
      from found
      on conflict (webhook_id, sequence) do nothing)
    update webhooks w set position = case when f.count = ${eventsMax} then f.last else b.up_to end
    from behind b left join (
      select webhook_id, count(*) as count, max(sequence) as last from found group by webhook_id) f
      on f.webhook_id = b.id
    where w.id = b.id`)
}
