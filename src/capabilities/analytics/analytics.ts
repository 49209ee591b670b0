/** How much was written and how campaigns did, from counters kept as messages are stored: never a scan. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'

export const periods = ['7d', '30d', 'all'] as const
type Period = (typeof periods)[number]

/** The number of days, including today; null: all time. */
const days: Record<Period, number | null> = { '7d': 7, '30d': 30, all: null }
const campaignsMax = 50

export async function readAnalytics(app: App, caller: Caller, period: Period): Promise<object> {
  const { figures } = await app.db.one<{ figures: object }>(analytics(caller.workspace_id, period))
  return figures
}

/**
 * Days begin at midnight in the workspace's time zone. Counts are stored per quarter of an hour and per UTC day, and in
 * every time zone midnight falls on a quarter. So this adds up quarters until the next UTC midnight, then UTC days.
 */
function analytics(workspace_id: string, period: Period): Sql {
  const back = days[period]
  const since =
    back === null
      ? sql`null::timestamptz`
      : beginningOf(
          sql`date_trunc('day', domain_now() at time zone w.timezone) - make_interval(days => ${back - 1})`,
          sql`w.timezone`,
        )
  const written =
    back === null
      ? sql`select received, sent from message_counts where workspace_id = ${workspace_id} and span = 'all'`
      : sql`select c.received, c.sent from period p, message_counts c
          where c.workspace_id = ${workspace_id} and c.span = 'day' and c.at >= p.midnight
        union all
        select c.received, c.sent from period p, message_counts c
          where c.workspace_id = ${workspace_id} and c.span = 'quarter' and c.at >= p.since and c.at < p.midnight`
  const counted = back === null ? sql`c.at = '-infinity'` : sql`c.at >= p.since`
  const created = back === null ? sql`` : sql`and created_at >= p.since`
  return sql`
    with period as materialized (
      select since, until, date_bin('1 day', since + interval '1 day' - interval '1 microsecond', '2000-01-01 00:00Z')
        as midnight
      from (
        select ${since} as since, domain_now() as until from workspaces w where w.id = ${workspace_id}) p),
    written as (
      select coalesce(sum(received), 0) as received, coalesce(sum(sent), 0) as sent from (${written}) c),
    submitted as (
      select coalesce(sum(sent), 0) as sent, coalesce(sum(failed), 0) as failed,
        coalesce(sum(ambiguous), 0) as ambiguous, coalesce(sum(reached), 0) as reached,
        coalesce(sum(replied), 0) as replied, coalesce(sum(opted_out), 0) as opted_out
      from period p, campaign_counts c where c.workspace_id = ${workspace_id} and ${counted}),
    started as (
      select count(*) as campaigns from period p, campaigns
      where workspace_id = ${workspace_id} and kind in ('scoped', 'contacts') ${created})
    select json_build_object('period', ${period}::text, 'from', wire_time(p.since), 'to', wire_time(p.until),
      'messages', json_build_object('received', written.received, 'sent', written.sent),
      'campaign_sends', json_build_object('sent', submitted.sent, 'failed', submitted.failed,
        'ambiguous', submitted.ambiguous),
      'totals', json_build_object('campaigns', started.campaigns, 'sent', submitted.sent, 'failed', submitted.failed,
        'replies', submitted.replied, 'opt_outs', submitted.opted_out, 'reply_rate', ${rate(sql`submitted`)}),
      'campaigns', ${recentCampaigns(workspace_id)}) as figures
    from period p, written, submitted, started`
}

/** When a day begins. Where a clock change repeats midnight, PostgreSQL picks the second one; this picks the first. */
function beginningOf(day: Sql, timezone: Sql): Sql {
  return sql`(
    select case when earlier at time zone ${timezone} >= day then earlier else midnight end
    from (select ${day} as day) d
    cross join lateral (select day at time zone ${timezone} as midnight) m
    cross join lateral (select midnight - interval '1 hour' as earlier) e)`
}

/** The share of people reached who replied. */
function rate(counts: Sql): Sql {
  return sql`coalesce(round(${counts}.replied::numeric / nullif(${counts}.reached, 0), 4), 0)`
}

/** The figures of each campaign cover its whole life, whatever the period. */
function recentCampaigns(workspace_id: string): Sql {
  return sql`coalesce((
    select json_agg(json_build_object('id', k.id, 'name', k.name, 'status', k.status, 'kind', k.kind,
      'created_at', wire_time(k.created_at), 'sent', n.sent, 'failed', n.failed, 'ambiguous', n.ambiguous,
      'replies', n.replied, 'opt_outs', n.opted_out, 'reply_rate', ${rate(sql`n`)}) order by k.created_at desc, k.id desc)
    from (
      select id, name, status, kind, created_at from campaigns
      where workspace_id = ${workspace_id} and kind in ('scoped', 'contacts')
      order by created_at desc, id desc limit ${campaignsMax}) k
    cross join lateral (
      select coalesce(sum(sent), 0) as sent, coalesce(sum(failed), 0) as failed,
        coalesce(sum(ambiguous), 0) as ambiguous, coalesce(sum(reached), 0) as reached,
        coalesce(sum(replied), 0) as replied, coalesce(sum(opted_out), 0) as opted_out
      from campaign_counts where campaign_id = k.id and at = '-infinity') n), '[]')`
}
