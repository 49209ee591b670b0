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

/**
 * Clears the next recipients of the campaign that ended first, of those that ended this long ago. Returns how many recipients were
 * looked at; 0: no campaign is left.
 */
export async function clearEndedCampaign(
  tx: Tx,
  { workspace_id, days, limit }: { workspace_id: string; days: number; limit: number },
): Promise<number> {
  const campaign = await tx.maybe<{ id: string; names_cleared_to: number | null }>(sql`
    select id, names_cleared_to from campaigns
    where workspace_id = ${workspace_id} and status in ('completed', 'cancelled') and names_cleared_at is null
      and coalesce(completed_at, cancelled_at) < domain_now() - make_interval(days => ${days}::int)
    order by coalesce(completed_at, cancelled_at) limit 1 for no key update`)
  if (!campaign) return 0
  const rows = await tx.rows<{ id: string; position: number }>(sql`
    select id, position from campaign_recipients
    where campaign_id = ${campaign.id} and position > ${campaign.names_cleared_to ?? -1}
    order by position limit ${limit}`)
  await clearRecipientNames(tx, rows)
  const last = rows.at(-1)
  await tx.run(sql`
    update campaigns set names_cleared_to = ${last?.position ?? campaign.names_cleared_to},
      names_cleared_at = case when ${rows.length < limit} then domain_now() end
    where id = ${campaign.id}`)
  return Math.max(1, rows.length)
}
