/** The recipients of campaigns that an erased person is or was. */
import { type Sql, sql, type Tx } from '../../db/sql.ts'
import { namesOf } from '../people/people.ts'
import { clearRecipientNames } from './recipient-names.ts'

interface ErasedPerson {
  readonly id: string
  readonly workspace_id: string
  readonly number: string
}

/** Recipient `r`: tied to the person, in their chat, or given by a name that they have or had. */
const isRecipientOf = ({ id, number }: ErasedPerson, platform: Sql): Sql => sql`(
  r.person_id = ${id} or r.contact = ${`platform_id:${number}`}
  or (r.chat_id = ${number}::bigint and exists (
    select from accounts a where a.id = r.account_id and a.platform = ${platform}))
  or exists (
    select from (${namesOf(id)}) own
    where own.kind = split_part(r.contact, ':', 1)
      and own.value = case own.kind when 'phone' then phone_digits(split_part(r.contact, ':', 2)) else split_part(r.contact, ':', 2) end))`

/** The next campaign of the workspace after this one, by id; undefined: there is none. */
function nextCampaign(
  tx: Tx,
  workspace_id: string,
  after: string | null,
): Promise<{ id: string } | undefined> {
  return tx.maybe<{ id: string }>(sql`
    select id from campaigns where workspace_id = ${workspace_id} and (${after}::uuid is null or id > ${after}::uuid)
    order by id limit 1`)
}

/**
 * Ends what waits for the person in the next campaign, and clears what their recipients there were named and addressed as.
 * `standIn` is put in the place of the address, with the recipient's id. Returns the campaign, and whether one of them is still in
 * flight; undefined: all are done.
 */
export async function eraseRecipients(
  tx: Tx,
  person: ErasedPerson & { readonly platform: string },
  { after, standIn }: { readonly after: string | null; readonly standIn: string },
): Promise<{ readonly campaign_id: string; readonly in_flight: boolean } | undefined> {
  const campaign = await nextCampaign(tx, person.workspace_id, after)
  if (!campaign) return undefined
  const rows = await tx.rows<{ id: string; status: string }>(sql`
    select r.id, r.status from campaign_recipients r
    where r.campaign_id = ${campaign.id} and ${isRecipientOf(person, sql`${person.platform}`)}
    order by r.id for update`)
  const ids = rows.map(({ id }) => id)
  if (ids.length > 0) {
    await tx.run(sql`
      update campaign_recipients set status = 'suppressed', reason = 'suppressed', next_action_at = null,
        ended_at = (select domain_now())
      where id = any(${ids}::uuid[]) and status in ('queued', 'waiting')`)
  }
  await clearRecipientNames(
    tx,
    // Several recipients of a campaign may be the person, each under another address.
    ids.map((id) => ({ id, contact: `cleared:${standIn}:${id}` })),
  )
  return { campaign_id: campaign.id, in_flight: rows.some(({ status }) => status === 'submitting') }
}
