/** Ends abandoned work: attempts whose worker is gone or silent, and operations that no worker took in time. */
import type { App } from '../app.ts'
import { type Db, sql } from '../db/sql.ts'
import { attemptSeconds } from './crossing.ts'
import { markOperations } from './operation-marks.ts'
import { type Settlement, settle } from './settle.ts'

const sweptMax = 500
/** No lease lasts longer. One that seems to was written before the clock was set back, and counts as expired. */
const leaseSecondsMax = attemptSeconds.file + 30

/** Any number of processes may run it: each skips rows that another has locked. */
export async function sweep(app: Pick<App, 'db' | 'operations' | 'wake'>): Promise<number> {
  const swept = await app.db.transaction(async (tx) => {
    const lost = await tx.rows<{ id: string; token: string }>(sql`
      select o.id, o.attempt_token as token from operations o
      where o.effect = 'platform' and o.state = 'submitting' and (o.lease_until < real_now()
        or o.lease_until > real_now() + make_interval(secs => ${leaseSecondsMax}) -- guard: lease too far ahead
        or exists (select from workers w where w.id = o.owner and w.stopped_at is not null) -- guard: swept with its worker
        )
      order by o.id limit ${sweptMax}
      for update of o skip locked -- guard: sweep skips locked rows
      `)
    const expired = await tx.rows<{ id: string; queued_no: number }>(sql`
      select o.id, o.queued_no from operations o
      where o.state = 'queued' and o.effect = 'platform' and o.expires_at < real_now()
      order by o.id limit ${sweptMax} for update skip locked`)
    return settle(tx, app.operations, [
      ...lost.map(({ id, token }): Settlement => {
        return { id, token, ending: { to: 'ambiguous', reason: 'lease' } } // guard: swept is ambiguous
      }),
      ...expired.map(({ id, queued_no }): Settlement => {
        return { id, token: null, queued_no, ending: { to: 'released', reason: 'expired' } }
      }),
    ])
  })
  markOperations(app, swept)
  return swept.length
}

/** Deletes rows of forgettable kinds 30 days after their end. The trigger lets no others go. */
export function forgetOperations(db: Db): Promise<number> {
  return db.run(sql`
    with removed as (
      delete from operations where id in (
        select id from operations where forgettable and state in ('completed', 'refused', 'released')
          and finished_at < domain_now() - interval '30 days' limit 1000)
      returning id)
    update instance i set removed_id = newest.id from (select id from removed order by id desc limit 1) newest
    where i.removed_id is null or i.removed_id < newest.id`)
}
