/** Picks what each account does next: follow-ups before first messages, one at a time. */

import type { App } from '../../../app.ts'
import { type Db, type Sql, sql } from '../../../db/sql.ts'
import { isLiveHost } from '../../../ledger/liveness.ts'
import { coldLimitOf } from '../planning/cold.ts'
import { type Plan, plan } from '../planning/plan.ts'
import {
  aboutCampaigns,
  type FactsRow,
  factColumns,
  factsOf,
  factTables,
  isUndecided,
  knownUntil,
  needsLookup,
  personTables,
  suppressedColumn,
} from '../planning/recipient-facts.ts'
import type { EndReason } from '../planning/why.ts'

export interface Head extends FactsRow {
  /** A contact that no account has taken yet. */
  readonly untaken: boolean
}

export interface Due {
  readonly row: FactsRow
  readonly plan: Extract<Decision, { do: 'send' | 'look_up' | 'end' }>
}

interface HeadsOptions {
  readonly account_ids: readonly string[]
  readonly avoid: readonly string[]
  readonly used_up?: readonly string[]
  readonly due: boolean
}

/**
 * Whether recipient `r` is on the suppression list, so that the platform is not asked about them. A message that crosses next asks
 * the list itself, under its lock.
 */
const listedBeforeAsking: Sql = sql`
  case when r.chat_id is null or ${knownUntil(sql`g.account_id`)} <= t.now then ${suppressedColumn} else false end`

/**
 * For each account, the first recipient of each running campaign: of those that wait for a follow-up, of those that wait for
 * their first message, and of contacts that no account has taken. A paused or exhausted campaign hides no other. `avoid`:
 * recipients that just failed for an internal reason. `used_up`: accounts that have had their look-ups of this minute. `due`: only
 * recipients that are due; campaigns without any are not read at all.
 */
export function listHeads(
  { config }: Pick<App, 'config'>,
  db: Db,
  { account_ids, avoid, used_up = [], due }: HeadsOptions,
): Promise<Head[]> {
  const isDue = (at: Sql) => (due ? sql`and ${at} <= (select domain_now())` : sql``)
  const hasDue = isDue(sql`c.due_at`)
  const come = isDue(sql`r.next_action_at`)
  const running = sql`campaigns k where k.status in ('queued', 'sending') and k.id in (
    select c.campaign_id from campaign_accounts c where c.account_id = any(${account_ids}) and c.has_open ${hasDue}
    union select c.campaign_id from campaign_accounts c where c.account_id = any(${account_ids}) and c.pool)`
  return db.rows<Head>(sql`
    with ${aboutCampaigns(running)}
    select ${factColumns},
      ${listedBeforeAsking} as suppressed, -- guard: suppression at the pick
      r.account_id is null as untaken
    from unnest(${account_ids}::text[]) as g (account_id)
    ${factTables}
    cross join lateral (
      select r.id from campaign_accounts c join campaigns k on k.id = c.campaign_id
      cross join lateral (
        (select r.id from campaign_recipients r
          where r.account_id = g.account_id and r.campaign_id = c.campaign_id and r.status = 'waiting'
            ${come} and r.id <> all(${avoid}::uuid[])
            and not ${isUndecided} -- guard: who waits for a decision hides nobody
          order by r.next_action_at, r.position limit 1)
        union all
        (select r.id from campaign_recipients r
          where r.account_id = g.account_id and r.campaign_id = c.campaign_id and r.status = 'queued'
            ${come} and r.id <> all(${avoid}::uuid[])
          order by r.next_action_at, r.position limit 1)
        union all
        -- People who never wrote must wait for another day, so the first person who did write is next.
        (select r.id from campaign_recipients r
          where coalesce(d.used_cold, 0) >= ${coldLimitOf(sql`account`, sql`h`, sql`t.day`)}
            and r.account_id = g.account_id and r.campaign_id = c.campaign_id and r.status = 'queued'
            ${come} and r.id <> all(${avoid}::uuid[]) and exists (
              select from messages m where m.account_id = r.account_id and m.chat_id = r.chat_id and not m.is_sender)
          order by r.next_action_at, r.position limit 1)
        union all
        -- Contacts who must be looked up wait, so the first of the others is next.
        (select r.id from campaign_recipients r
          where (h.lookup_flood_until > t.now or coalesce(d.lookups, 0) >= ${config.start_chat_day}
              or g.account_id = any(${used_up}::text[])) -- guard: look ups of a minute hide nobody
            and r.account_id = g.account_id and r.campaign_id = c.campaign_id and r.status = 'queued'
            ${come} and r.id <> all(${avoid}::uuid[])
            and (k.kind <> 'contacts' or not ${needsLookup(sql`r.account_id`)}) -- guard: known chats pass those to be looked up
          order by r.next_action_at, r.position limit 1)) r
      where c.account_id = g.account_id and c.has_open ${hasDue} and k.status in ('queued', 'sending')
      union
      select r.id from campaign_accounts c join campaigns k on k.id = c.campaign_id
      join campaign_accounts untaken on untaken.campaign_id = c.campaign_id and untaken.account_id = ''
        and untaken.has_open
      -- Accounts that could take one as well get a different contact each, so that they do not all pick the same.
      cross join lateral (
        select count(*) as rank from campaign_accounts q join account_hosts qh on qh.account_id = q.account_id
        join accounts qa on qa.id = q.account_id
        left join account_days qd on qd.account_id = q.account_id and qd.day = t.day
        where q.campaign_id = c.campaign_id and q.pool and q.account_id = any(${account_ids}::text[])
          and q.account_id < g.account_id and coalesce(qd.used, 0) = coalesce(d.used, 0)
          and coalesce(coalesce(qd.used_cold, 0) < ${coldLimitOf(sql`qa`, sql`qh`, sql`t.day`)}, true)
          and coalesce(qd.lookups, 0) < ${config.start_chat_day}
          and qh.campaigns_held_at is null -- guard: held accounts leave no contact aside
          and q.account_id <> all(${used_up}::text[]) -- guard: look ups of a minute leave no contact aside
          and coalesce(greatest(qh.flood_until, qh.lookup_flood_until) <= t.now, true)
          and (qh.next_campaign_at is null or qh.next_campaign_at <= t.now)) others
      cross join lateral (
        select r.id from campaign_recipients r
        where r.campaign_id = c.campaign_id and r.account_id is null and r.status = 'queued'
          and r.id <> all(${avoid}::uuid[])
        order by r.next_action_at, r.position offset others.rank limit 1) r
      where c.account_id = g.account_id and c.pool and k.status in ('queued', 'sending') and not exists (
        select from campaign_accounts q join accounts b on b.id = q.account_id
        join account_hosts bh on bh.account_id = b.id
        left join account_days bd on bd.account_id = b.id and bd.day = t.day
        where q.campaign_id = c.campaign_id and q.pool and q.account_id <> g.account_id and b.status = 'READY'
          -- An account whose worker has died makes no other account wait.
          and bh.lease_until > (select real_now()) -- guard: pool accounts that are driven
          and ${isLiveHost(sql`bh`)} and bh.gap_since is null
          and bh.campaigns_held_at is null -- guard: held accounts make no other wait
          and q.account_id <> all(${used_up}::text[]) -- guard: look ups of a minute make no other wait
          and coalesce(greatest(bh.flood_until, bh.lookup_flood_until) <= t.now, true)
          -- Nor does an account that has no first message or look-up left today.
          and coalesce(coalesce(bd.used_cold, 0) < ${coldLimitOf(sql`b`, sql`bh`, sql`t.day`)}, true)
          and coalesce(bd.lookups, 0) < ${config.start_chat_day}
          and coalesce(bd.used, 0) < coalesce(d.used, 0))) head
    join campaign_recipients r on r.id = head.id join campaigns k on k.id = r.campaign_id
    join about on about.campaign_id = k.id
    ${personTables}
    where not exists (
      select from operations q where q.account_id = g.account_id and q.state = 'queued') -- guard: single sends go first
    order by g.account_id, (r.status = 'waiting') desc, r.next_action_at, k.id, r.position`)
}

/** Of each account's heads, the first that can be acted on now. */
export function chooseDue(app: App, heads: readonly Head[], used_up: readonly string[] = []): Due[] {
  const taken = new Set<string>()
  const chosen: Due[] = []
  const untaken = Map.groupBy(
    heads.filter((row) => row.untaken),
    ({ campaign_id }) => campaign_id,
  )
  for (const own of Map.groupBy(heads, ({ account_id }) => account_id).values()) {
    for (const head of own) {
      // The account that looked at an earlier contact may have had something else to do first.
      const left = head.untaken && untaken.get(head.campaign_id)?.find((row) => !taken.has(row.recipient_id))
      const row = left ? takenBy(head, left) : head // guard: the first contact is taken first
      if (taken.has(row.recipient_id)) continue
      const decided = decide(app, row)
      if (decided.do === 'wait' || decided.do === 'nothing') continue
      if (decided.do === 'look_up' && used_up.includes(row.account_id)) continue // guard: look ups of a minute are waited for
      taken.add(row.recipient_id)
      chosen.push({ row, plan: decided })
      break
    }
  }
  return chosen
}

/**
 * Assigns a contact to the account of another row. Without a chat, no other field depends on the account, except whether it can ask
 * without a look-up, which it tries first.
 */
function takenBy(by: FactsRow, contact: FactsRow): FactsRow {
  const { account_id, ready, flood_until, lookup_flood_until, next_campaign_at } = by
  const { cold_per_day, cold_stopped, cold_ramp_from, used, used_cold, lookups } = by
  return {
    ...contact,
    needs_lookup: contact.needs_lookup || account_id !== contact.account_id,
    ...{ account_id, ready, flood_until, lookup_flood_until, next_campaign_at },
    ...{ cold_per_day, cold_stopped, cold_ramp_from, used, used_cold, lookups },
  }
}

type Decision =
  | Plan
  | { readonly do: 'end'; readonly status: 'suppressed' | 'failed'; readonly reason: EndReason }

/** Never writes to a suppressed person, whatever the plan says. */
export function decide(app: App, row: FactsRow): Decision {
  const planned = plan(factsOf(app, row))
  const acts = planned.do === 'send' || planned.do === 'look_up'
  if (acts && row.suppressed) return { do: 'end', status: 'suppressed', reason: 'suppressed' }
  return planned
}
