/** Messages per day, from the counters that analytics reads: never a scan of messages. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'

/** Counters are stored per quarter of an hour, so a longer range would read many rows of each account. */
export const daysMax = 92
const daysStandard = 30

interface DayRange {
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly account_id?: string | undefined
}

interface DayRow {
  readonly day: string
  readonly received: number
  readonly sent: number
}

/** Without `from` and `to`, the last 30 days including today. */
export async function listDays(
  { db }: App,
  { workspace_id }: Caller,
  { from, to, account_id }: DayRange,
): Promise<Record<string, unknown>> {
  const range = await db.one<{ timezone: string; from: string; to: string }>(sql`
    select timezone, coalesce(${from ?? null}::date, today - ${daysStandard - 1}::int)::text as from,
      coalesce(${to ?? null}::date, today)::text as to
    from workspaces, lateral (select (domain_now() at time zone timezone)::date as today) t
    where id = ${workspace_id}`)
  return { ...range, days: await db.rows<DayRow>(messageDays(workspace_id, { ...range, account_id })) }
}

/**
 * Each day from `from` to `to` in the time zone of the workspace. In every time zone midnight falls on a quarter of an hour,
 * so that a quarter belongs to one day.
 */
export function messageDays(
  workspace_id: string,
  {
    timezone,
    from,
    to,
    account_id,
  }: { timezone: string; from: string; to: string; account_id?: string | undefined },
): Sql {
  const ofAccount = account_id === undefined ? sql`` : sql`and c.account_id = ${account_id}`
  return sql`
    select day::text, coalesce(received, 0)::int as received, coalesce(sent, 0)::int as sent
    from (select generate_series(${from}::date, ${to}::date, interval '1 day')::date as day) days
    left join (
      select (c.at at time zone ${timezone})::date as day, sum(c.received) as received, sum(c.sent) as sent
      from message_counts c
      where c.workspace_id = ${workspace_id} and c.span = 'quarter'
        and c.at >= (${from}::date - 1)::timestamp at time zone 'UTC'
        and c.at < (${to}::date + 2)::timestamp at time zone 'UTC' ${ofAccount}
      group by 1) counted using (day)
    order by day`
}
