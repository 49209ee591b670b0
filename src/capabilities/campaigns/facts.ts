/** The planner's input, read without locks: for pages and forecasts. */

import type { App, Snapshot } from '../../app.ts'
import type { Gate } from '../../contract.ts'
import { type Db, type Sql, sql } from '../../db/sql.ts'
import { isLive } from '../../ledger/liveness.ts'
import { holdsPools } from '../../ledger/runs.ts'
import { dayOf, readChange, type StoredChange, zoneChange } from '../../ledger/workspace-days.ts'
import { parseWindow } from '../../rules/sending-window.ts'
import { coldColumns } from './planning/cold.ts'
import type { Hours, PlannedCampaign } from './planning/plan.ts'
import { stepsOf, stepsWith } from './planning/recipient-facts.ts'
import type { CampaignStop, NamedAccount } from './planning/why.ts'

export interface CampaignRow extends Omit<PlannedCampaign, 'allowed'> {
  readonly id: string
  readonly workspace_id: string
  readonly user_id: string
  readonly user_disabled: boolean
  readonly sequence: boolean
  readonly pause_reason: 'requested' | 'late' | null
}

const rowWith = (message_text: Sql, steps: Sql): Sql => sql`
  select k.id, k.workspace_id, k.user_id, u.disabled_at is not null as user_disabled, k.kind, k.status,
    ${message_text} as message_text, k.branching_enabled, k.daily_quota_per_account, k.max_followups, k.scheduled_at,
    k.sequence, k.pause_reason, ${steps} as steps
  from campaigns k join users u on u.id = k.user_id`

/** With its steps, of which there are few. */
export const campaignRow = rowWith(sql`k.message_text`, stepsOf)

/**
 * A short text that can be filled for a recipient if this one can: `x`, and its placeholders without a fallback. Most texts
 * have no brackets, and looking for those first takes a third of the time.
 */
const shortened = (text: Sql): Sql => sql`concat('x',
  case when strpos(${text}, '[[') > 0 and ${text} ~* '[[][[][[:space:]]*name[[:space:]]*[]][]]' then '[[name]]' end,
  case when strpos(${text}, '[[') > 0 and ${text} ~* '[[][[][[:space:]]*username[[:space:]]*[]][]]' then '[[username]]' end,
  case when strpos(${text}, '{{') > 0 and ${text} ~* '[{][{][[:space:]]*name[[:space:]]*[}][}]' then '{{name}}' end)`

const shortSteps = stepsWith(sql`(
  select array_agg(${shortened(sql`v.variant`)} order by v.place)
  from unnest(s.variants) with ordinality as v (variant, place))`)

/**
 * For forecasts that do not show the texts. One campaign can have 800 kB of texts, and a workspace any number of campaigns:
 * whole texts would keep the thread that serves requests busy.
 */
export const textlessRow = rowWith(
  shortened(sql`k.message_text`), // guard: first messages of other campaigns
  shortSteps, // guard: follow_ups of other campaigns
)

type DispatchFields = Pick<
  CampaignRow,
  'kind' | 'branching_enabled' | 'user_id' | 'user_disabled' | 'workspace_id'
>

/** The first closed switch that dispatch depends on; null if all are open. */
export function findStop(
  { gates, allowlists, dispatch }: Snapshot,
  campaign: DispatchFields,
): CampaignStop | null {
  const { kind, branching_enabled, user_id, user_disabled, workspace_id } = campaign
  if (!dispatch) return { by: 'dispatch' }
  if (user_disabled) return { by: 'user' }
  const needed: readonly Gate[] = [
    kind === 'broadcast' ? 'broadcast' : 'campaigns',
    ...(kind === 'contacts' ? (['extended'] as const) : []),
    ...(branching_enabled ? (['branching', 'read_receipts'] as const) : []),
  ]
  const gate = needed.find((one) => !gates.has(one))
  if (gate) return { by: 'gate', gate }
  if (kind === 'broadcast') return null
  if (!allowlists) return { by: 'allowlists' }
  if (!allowlists.campaign_user.has(user_id)) return { by: 'campaign_user' }
  return allowlists.campaign_workspace.has(workspace_id) ? null : { by: 'campaign_workspace' }
}

export function toPlanned(settings: Snapshot, row: CampaignRow): PlannedCampaign {
  return { ...row, allowed: findStop(settings, row) === null }
}

/**
 * `enabled`: READY and not held, whether or not its session is live at this moment. `holds_pools`: until this account has connected, no
 * account may write the first message to a contact of its pools.
 */
export type StandingAccount = NamedAccount & { readonly enabled: boolean; readonly holds_pools: boolean }

export interface Standing {
  readonly now: Date
  readonly hours: Hours
  readonly accounts: ReadonlyMap<string, StandingAccount>
}

/** The workspace's hours, and its accounts with what they have used today. */
export async function readStanding({ config }: App, db: Db, workspace_id: string): Promise<Standing> {
  const { now, day, timezone, zone_change, sending_window } = await db.one<{
    now: Date
    day: string
    timezone: string
    zone_change: StoredChange | null
    sending_window: string | null
  }>(sql`
    select t.now, ${dayOf(sql`w`, sql`t.now`)}::text as day, w.timezone, ${zoneChange(sql`w`)} as zone_change,
      w.sending_window
    from workspaces w cross join (select domain_now() as now) t where w.id = ${workspace_id}`)
  const rows = await db.rows<StandingAccount & { id: string }>(sql`
    select a.id, a.name, a.status, h.gap_since is not null as gap, h.campaigns_held_by as held_by,
      a.status = 'READY' and h.campaigns_held_at is null as enabled, -- guard: a forecast without held campaigns
      a.status = 'READY' and ${isLive} and h.gap_since is null
        and h.campaigns_held_at is null as ready, -- guard: pages say that campaigns hold
      ${holdsPools(sql`h`)} as holds_pools, h.flood_until, h.lookup_flood_until,
      h.next_campaign_at, ${coldColumns(sql`a`, sql`h`)},
      ${config.start_chat_day}::int as lookups_per_day, coalesce(d.used, 0) as used,
      coalesce(d.used_cold, 0) as used_cold, coalesce(d.lookups, 0) as lookups
    from accounts a left join account_hosts h on h.account_id = a.id
      left join account_days d on d.account_id = a.id and d.day = ${day}::date
    where a.workspace_id = ${workspace_id}
    order by a.id -- The worker's order: the first of equals acts first.`)
  const window = sending_window === null ? null : (parseWindow(sending_window) ?? null)
  const hours = { timezone, change: readChange(zone_change), window }
  return { now, hours, accounts: new Map(rows.map((row) => [row.id, row])) }
}
