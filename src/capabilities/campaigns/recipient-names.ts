/** Clears what recipients were named and addressed as. Their place, status, counts, chat and person stay. */
import { given } from '../../db/given.ts'
import { sql, type Tx } from '../../db/sql.ts'

interface ClearedRecipient {
  readonly id: string
  /** Stands for the name that it was given as: `cleared:` and something that names nobody. By default the recipient's id. */
  readonly contact?: string
}

/** Skips recipients that are still to be written to. Returns how many were cleared. */
export async function clearRecipientNames(tx: Tx, recipients: readonly ClearedRecipient[]): Promise<number> {
  if (recipients.length === 0) return 0
  const rows = recipients.map(({ id, contact = `cleared:${id}` }) => ({ id, contact }))
  return tx.run(sql`
    with locked as materialized (
      select r.id, g.contact
      from (select * from ${given(rows, { id: 'uuid', contact: 'text' })} as g order by id) g
      cross join lateral (
        select r.id from campaign_recipients r where r.id = g.id and r.contact not like 'cleared:%'
          and r.status not in ('queued', 'submitting', 'waiting') -- guard: who is still to be written to keeps their name
        for update) r)
    update campaign_recipients r set contact = l.contact, identifier = null, name = null, username = null,
      told_name = null, found_id = null, found_username = null, found_phone = null
    from locked l where r.id = l.id`)
}
