/** Removes old deliveries and those of deleted endpoints, in batches, so that no statement takes long. */
import { type Db, sql } from '../../db/sql.ts'
import { retention } from '../../events/sequencer.ts'

const lotMax = 2_000

/** Returns how many it removed; less than a batch means that there are no more. */
export async function forgetDeliveries(db: Db): Promise<{ removed: number; more: boolean }> {
  const removed = await db.run(sql`
    delete from webhook_deliveries where id in (
      select d.id from webhooks w cross join unnest(array['pending', 'delivered', 'failed']) as each (state)
      cross join lateral (
        select id from webhook_deliveries
        where webhook_id = w.id and state = each.state
          and (created_at <= domain_now() - ${retention}::interval or w.deleted_at is not null)
        order by created_at limit ${lotMax}) d
      limit ${lotMax})`)
  // The endpoint's row goes last, because its deliveries refer to it.
  await db.run(sql`
    delete from webhooks w where w.deleted_at is not null
      and not exists (select from webhook_deliveries d where d.webhook_id = w.id)`)
  return { removed, more: removed === lotMax }
}
