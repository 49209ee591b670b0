/** All facts that decide about one recipient, as one row: read when picking, and again under locks at the boundary. */

import type { App } from '../../../app.ts'
import { type Sql, sql } from '../../../db/sql.ts'
import { hasWritten } from '../../../ledger/account-usage.ts'
import { isLive } from '../../../ledger/liveness.ts'
import { holdsPools } from '../../../ledger/runs.ts'
import { dayOf, readChange, type StoredChange, zoneChange } from '../../../ledger/workspace-days.ts'
import type { ChatNumber } from '../../../lib/shapes.ts'
import { parseWindow } from '../../../rules/sending-window.ts'
import { isByName, listAskers } from '../../people/people.ts'
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
  readonly person_id: string | null
  /** The number of the person whom the recipient is tied to, whichever account looked them up. */
  readonly tied_to: ChatNumber | null
  readonly known_until: Date | null
  readonly needs_lookup: boolean
  readonly unfound: boolean
  readonly contact: string
  readonly suppressed: boolean
  readonly timezone: string
  readonly zone_change: StoredChange | null
  readonly sending_window: string | null
  readonly now: Date
}

/** The identifier that recipient `r` was created with, in the suppression list's form. */
const givenName: Sql = sql`case split_part(r.contact, ':', 1) when 'phone'
  then ${listedPhone(sql`split_part(r.contact, ':', 2)`)} else split_part(r.contact, ':', 2) end`

/** The names of recipient `r` that the suppression list is asked about besides those of the person. */
export const knownNames: Sql = sql`array_remove(array[
  'username:' || lower(r.username), -- guard: a username that the platform writes in capitals
  split_part(r.contact, ':', 1) || ':' || ${givenName} -- guard: a number of the list however it is spelled
  ], null)`

/** The number of the person of recipient `r`, also while no account has taken it over. */
const tiedTo: Sql = sql`case when r.chat_id is not null then r.chat_id when r.person_id is not null then (
  select p.number from people p where p.id = r.person_id) end`

/** What the platform says of a name is believed for this long before a first message. */
const believedHours = 1

const believedUntil: Sql = sql`coalesce(r.asked_at + make_interval(hours => ${believedHours}), to_timestamp(0))`

/**
 * Until when recipient `r` of campaign `k` may be written to in its chat without asking the platform who has the name. Null: it was
 * not given by name, or has got a message. But a contact of which only the chat is known is asked about: that finds the names that the
 * list may have.
 */
export const knownUntil = (account_id: Sql): Sql => sql`(
  case when k.kind <> 'contacts' or r.chat_id is null then null
    when r.step = 0 and ${isByName(sql`r.contact`)} then ${believedUntil} -- guard: a name is believed for an hour
    when not exists (
      select from contacts person where person.account_id = ${account_id}
        and person.provider_id = r.chat_id -- guard: a contact is known by its own number
      )
      and not knows_names(r.person_id, ${account_id}) then ${believedUntil} end)`

/** Those of the accounts for which asking about recipient `r` of campaign `k` is no look-up. */
export const askersOf = (accounts: Sql): Sql => sql`(
  case when k.kind <> 'contacts' or r.must_look_up then '{}'::text[]
    else ${listAskers({ workspace_id: sql`r.workspace_id`, contact: sql`r.contact`, person_id: sql`r.person_id` }, accounts)} end)`

/** Whether asking about recipient `r` before its first message takes the account a look-up. */
export const needsLookup = (account_id: Sql): Sql => sql`(
  case when k.kind <> 'contacts' then false
    when r.step > 0 then true
    when r.chat_id is not null and ${believedUntil} > (select domain_now()) then false
    else not ${account_id} = any(${askersOf(sql`array[${account_id}]`)}) end)`

/** Whether the person behind recipient `r`, whom the account would write to in this chat, is on the suppression list. */
export const isSuppressed = (account_id: Sql, chat_id: Sql): Sql =>
  isListed(sql`r.workspace_id`, { account_id, number: chat_id, names: knownNames })

/** The same for the facts of `factColumns`. Where there is a chat, the boundary asks under the list's lock instead. */
export const suppressedColumn: Sql = isSuppressed(sql`g.account_id`, tiedTo)

/**
 * Whether it is undecided if a member has written to recipient `r` of campaign `k` by hand (`running/hand-messages.ts`). Needs
 * `account`, the one that would write.
 */
export const isUndecided: Sql = sql`(k.stop_on_own_message and r.step > 0 and exists (
  select from hand_messages undecided
  where undecided.workspace_id = k.workspace_id -- guard: an undecided message holds its workspace
    and undecided.chat_id = r.chat_id
    and undecided.platform = account.platform))`

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
            || case when k.branching_enabled then '{branching,read_receipts}' else '{}' end::text[] -- guard: gates of branches
            ) as needed (name)
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
  r.status, r.step, r.version, r.chat_id::text, r.person_id, (${tiedTo})::text as tied_to,
  ${knownUntil(sql`g.account_id`)} as known_until, ${needsLookup(sql`g.account_id`)} as needs_lookup,
  r.unfound_at is not null as unfound, r.contact, coalesce(r.name, r.told_name) as name, r.username, r.last_sent_at, r.next_action_at,
  coalesce(chat.read_by_them_id >= r.last_message_id, false) as read, r.unknown_since,
  r.step = 0 and not ${hasWritten(sql`g.account_id`, sql`r.chat_id`)} as cold,
  ${isUndecided} as undecided, -- guard: an undecided message at the boundary
  account.status = 'READY' and ${isLive}
    -- A reply may be among the updates that are missing.
    and h.gap_since is null -- guard: campaigns wait for a gap
    and h.campaigns_held_at is null -- guard: campaigns that hold
    -- After a restore, the account that has a contact here need not be the one that wrote to them.
    and not (r.step = 0 and about.pool_unconfirmed) as ready, -- guard: a pool is confirmed
  h.flood_until, h.lookup_flood_until, h.next_campaign_at, ${coldColumns(sql`account`, sql`h`)},
  coalesce(d.used, 0) as used, coalesce(d.used_cold, 0) as used_cold, coalesce(d.lookups, 0) as lookups,
  w.timezone, ${zoneChange(sql`w`)} as zone_change, w.sending_window, t.now`

export const factTables: Sql = sql`
  join account_hosts h on h.account_id = g.account_id
  join accounts account on account.id = g.account_id
  join workspaces w on w.id = h.workspace_id
  cross join lateral (
    select (select domain_now()) as now, ${dayOf(sql`w`, sql`(select domain_now())`)} as day) t
  left join account_days d on d.account_id = g.account_id and d.day = t.day`

export const personTables: Sql = sql`
  left join chats chat on chat.account_id = g.account_id and chat.chat_id = r.chat_id`

/** The facts in the planner's form. */
export function factsOf({ config }: App, row: FactsRow): Facts {
  return {
    campaign: campaignOf(row),
    recipient: { ...row, id: row.recipient_id },
    account: { ...row, lookups_per_day: config.start_chat_day },
    hours: {
      timezone: row.timezone,
      change: readChange(row.zone_change),
      window: windowOf(row.sending_window),
    },
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
