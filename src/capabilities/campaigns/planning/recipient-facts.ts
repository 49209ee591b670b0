/** All facts that decide about one recipient, as one row: read when picking, and again under locks at the boundary. */

import type { App } from '../../../app.ts'
import { type Sql, sql } from '../../../db/sql.ts'
import { hasWritten } from '../../../ledger/account-usage.ts'
import { isLive } from '../../../ledger/liveness.ts'
import { holdsPools } from '../../../ledger/runs.ts'
import { parseWindow } from '../../../lib/sending-window.ts'
import type { ChatNumber } from '../../../lib/shapes.ts'
import { isListed, listedPhone } from '../../suppressions/suppressions.ts'
import { coldColumns } from './cold.ts'
import type { CampaignStatus, Facts, PlannedAccount, PlannedCampaign, PlannedRecipient } from './plan.ts'

export interface FactsRow
  extends Omit<PlannedCampaign, 'status'>,
    Omit<PlannedRecipient, 'id' | 'chat_id'>,
    Omit<PlannedAccount, 'lookups_per_day'> {
  readonly recipient_id: string
  readonly campaign_id: string
  readonly workspace_id: string
  readonly user_id: string
  /** The account that would write. */
  readonly account_id: string
  readonly campaign_status: CampaignStatus
  readonly version: number
  readonly chat_id: ChatNumber | null
  /** False for a contact of which only the chat is known: another look-up finds the names that the list may have. */
  readonly identified: boolean
  readonly contact: string
  readonly suppressed: boolean
  readonly timezone: string
  readonly sending_window: string | null
  readonly now: Date
}

/** The identifier that recipient `r` was created with, in the suppression list's form. */
const givenName: Sql = sql`case split_part(r.contact, ':', 1) when 'phone'
  then ${listedPhone(sql`split_part(r.contact, ':', 2)`)} else split_part(r.contact, ':', 2) end`

/**
 * Whether the person behind recipient `r` is on the suppression list: by the given chat, by their known names (`person`, a
 * row of `contacts`), by the identity that a look-up found, or by the identifier that `r` was created with.
 */
export const isSuppressed = (chat_id: Sql): Sql =>
  isListed(
    sql`r.workspace_id`,
    sql`('platform_id', ${chat_id}::text), ('username', lower(r.username)), ('username', lower(person.username)),
      ('phone', ${listedPhone(sql`person.phone`)}), (split_part(r.contact, ':', 1), ${givenName}),
      ('platform_id', r.found_id::text), ('username', r.found_username), ('phone', r.found_phone)`,
  )

/** The other known names of recipient `r`, in the form `recipient_forbidden` takes. */
export const knownNames: Sql = sql`array_remove(array[split_part(r.contact, ':', 1) || ':' || ${givenName},
  'username:' || lower(r.username), 'platform_id:' || r.found_id, 'username:' || r.found_username,
  'phone:' || r.found_phone], null)`

/** The steps of campaign `k`. `variants` selects those of step `s`. */
export const stepsWith = (variants: Sql): Sql => sql`(
  select coalesce(json_agg(json_build_object('branch', s.branch, 'wait_hours', s.wait_hours, 'variants', ${variants})
    order by s.position), '[]') from campaign_steps s where s.campaign_id = k.id)`

export const stepsOf: Sql = stepsWith(sql`s.variants`)

/** Facts about campaigns `k`, read once per campaign and not per recipient: a `with` query named `about`. */
export const aboutCampaigns = (campaigns: Sql): Sql => sql`
  about as materialized (
    select k.id as campaign_id, ${stepsOf} as steps,
      k.kind = 'contacts' and exists (
        select from campaign_accounts q join account_hosts qh on qh.account_id = q.account_id
        where q.campaign_id = k.id and q.pool and ${holdsPools(sql`qh`)}) as pool_unconfirmed,
      exists (select from settings where name = 'dispatch' and value = 'true'::jsonb)
        and not exists (select from users u where u.id = k.user_id and u.disabled_at is not null)
        and not exists (
          select from unnest(case k.kind when 'broadcast' then '{broadcast}' when 'contacts' then '{campaigns,extended}'
              else '{campaigns}' end::text[]
            || case when k.branching_enabled then '{branching,read_receipts}' else '{}' end::text[]) as needed (name)
          where not exists (select from gates where gates.name = needed.name and enabled))
        and (k.kind = 'broadcast' or (
          exists (select from allowlists l where l.list = 'campaign_user' and l.id = k.user_id)
          and exists (select from allowlists l where l.list = 'campaign_workspace' and l.id = k.workspace_id))) as allowed
    from ${campaigns})`

/**
 * Needs `r` (recipient), `k` (campaign), `about` (of the campaign), `g.account_id` (the account that would write), and the
 * rows that `factTables` and `personTables` join.
 */
export const factColumns: Sql = sql`r.id as recipient_id, k.id as campaign_id, k.workspace_id, k.user_id, g.account_id, k.kind,
  k.status as campaign_status, k.message_text, k.branching_enabled, k.daily_quota_per_account, k.max_followups,
  k.scheduled_at, about.steps, about.allowed,
  r.status, r.step, r.version, r.chat_id::text,
  k.kind <> 'contacts' or r.chat_id is null or r.found_id is not null or person.provider_id is not null as identified, r.contact, r.name, r.username, r.last_sent_at, r.next_action_at,
  coalesce(chat.read_by_them_id >= r.last_message_id, false) as read, r.unknown_since,
  r.step = 0 and not ${hasWritten(sql`g.account_id`, sql`r.chat_id`)} as cold,
  ${isSuppressed(sql`r.chat_id`)} as suppressed, -- guard: suppression at the boundary
  account.status = 'READY' and ${isLive}
    -- A reply may be among the updates that are missing.
    and h.gap_since is null -- guard: campaigns wait for a gap
    -- After a restore, the account that has a contact here need not be the one that wrote to them.
    and not (r.step = 0 and about.pool_unconfirmed) as ready, -- guard: a pool is confirmed
  h.flood_until, h.lookup_flood_until, h.next_campaign_at, ${coldColumns(sql`account`, sql`h`)},
  coalesce(d.used, 0) as used, coalesce(d.used_cold, 0) as used_cold, coalesce(d.lookups, 0) as lookups,
  w.timezone, w.sending_window, t.now`

export const factTables: Sql = sql`
  join account_hosts h on h.account_id = g.account_id
  join accounts account on account.id = g.account_id
  join workspaces w on w.id = h.workspace_id
  cross join lateral (
    select (select domain_now()) as now, ((select domain_now()) at time zone w.timezone)::date as day) t
  left join account_days d on d.account_id = g.account_id and d.day = t.day`

export const personTables: Sql = sql`
  left join chats chat on chat.account_id = g.account_id and chat.chat_id = r.chat_id
  left join contacts person on person.account_id = g.account_id and person.provider_id = r.chat_id`

/** The facts in the planner's form. */
export function factsOf({ config }: App, row: FactsRow): Facts {
  return {
    campaign: campaignOf(row),
    recipient: {
      ...row,
      id: row.recipient_id,
      chat_id: row.identified ? row.chat_id : null, // guard: a contact of whom only the chat is known
    },
    account: { ...row, lookups_per_day: config.start_chat_day },
    hours: { timezone: row.timezone, window: windowOf(row.sending_window) },
    now: row.now,
  }
}

function campaignOf(
  row: Omit<PlannedCampaign, 'status'> & Pick<FactsRow, 'campaign_status'>,
): PlannedCampaign {
  const { kind, message_text, branching_enabled, daily_quota_per_account, max_followups, scheduled_at } = row
  const { steps, allowed, campaign_status: status } = row
  return {
    ...{
      kind,
      status,
      message_text,
      branching_enabled,
      daily_quota_per_account,
      max_followups,
      scheduled_at,
    },
    ...{ steps, allowed },
  }
}

function windowOf(text: string | null) {
  return text === null ? null : (parseWindow(text) ?? null)
}
