/** The campaigns of a workspace as people read them: how far each is, what it sends next and when, who created it. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { type Db, sql } from '../../db/sql.ts'
import { type Paging, readPaging } from '../../lib/cursor.ts'
import { memberName } from '../chats/chats.ts'
import { internal, presentRecipients, totalsOf } from './campaign-pages.ts'
import { type CampaignRow, readStanding, textlessRow } from './facts.ts'

interface ProgressRow {
  readonly id: string
  readonly status: CampaignRow['status']
  /** The exact time, for the cursor. */
  readonly position: string
}

interface NextMessage {
  /** Null if a person has to act first. */
  readonly next_action_at: Date | null
  readonly sentence: string
}

/** Newest first. */
export async function listProgress(
  app: App,
  { workspace_id }: Caller,
  { cursor, limit }: { cursor?: string | undefined; limit: number },
): Promise<Record<string, unknown>> {
  const scope = { workspace_id, operation: 'list_campaign_progress', filters: {} }
  const { after, next } = readPaging(app.secrets, scope, cursor)
  const settings = await app.settings.current()
  return app.db.snapshot(async (db) => {
    const rows = await listPage(db, workspace_id, { after, limit: limit + 1 })
    const shown = rows.slice(0, limit)
    const last = rows.length > limit ? shown.at(-1) : undefined
    const standing = await readStanding(app, db, workspace_id)
    const nextOf = new Map<string, NextMessage>()
    for (const { row, ids } of await listFirstInLine(db, shown)) {
      const page = { row, standing, after: -1, limit: ids.length, sentences: true, chosen: { ids } }
      const { people } = await presentRecipients(db, settings, page)
      const [first] = (people as NextMessage[]).toSorted((one, other) => timeOf(one) - timeOf(other))
      if (first) nextOf.set(row.id, first)
    }
    return {
      campaigns: shown.map(({ position: _, ...campaign }) => {
        const first = nextOf.get(campaign.id)
        return { ...campaign, next: first ? { at: first.next_action_at, sentence: first.sentence } : null }
      }),
      next_cursor: last ? next([last.position, last.id]) : null,
      has_more: last !== undefined,
    }
  })
}

const timeOf = ({ next_action_at: at }: NextMessage) => at?.getTime() ?? Number.POSITIVE_INFINITY

function listPage(
  db: Db,
  workspace_id: string,
  { after, limit }: Pick<Paging, 'after'> & { readonly limit: number },
): Promise<ProgressRow[]> {
  const [created_at, id] = after ?? ['infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff']
  return db.rows<ProgressRow>(sql`
    select k.id, k.name, k.status, k.kind, k.pause_reason, k.created_at, k.scheduled_at, k.started_at, k.completed_at,
      k.cancelled_at, ${totalsOf} as totals, ${optOutsOf} as opt_outs, k.created_at::text as position,
      json_build_object('user_id', u.id, 'name', ${memberName}) as created_by
    from campaigns k join users u on u.id = k.user_id
    where k.workspace_id = ${workspace_id} and ${internal}
      and (k.created_at, k.id) < (${created_at}::timestamptz, ${id}::uuid)
    order by k.created_at desc, k.id desc limit ${limit}`)
}

/** How many people of campaign `k` asked to stop. The counter is of its whole life. */
const optOutsOf = sql`(
  select coalesce(sum(n.opted_out), 0)::int from campaign_counts n where n.campaign_id = k.id and n.at = '-infinity')`

/**
 * Of each campaign that is under way, the recipients who can be next: the first of each account that waits, and the first
 * that no account has taken. Two indexes find them, however many recipients there are.
 */
async function listFirstInLine(
  db: Db,
  campaigns: readonly ProgressRow[],
): Promise<{ row: CampaignRow; ids: string[] }[]> {
  const open = campaigns.filter(({ status }) => status !== 'completed' && status !== 'cancelled')
  const campaign_ids = open.map(({ id }) => id)
  const found = await db.rows<{ id: string; campaign_id: string }>(sql`
    select first.id, a.campaign_id from campaign_accounts a
    cross join (values ('queued'), ('waiting')) as s (status)
    cross join lateral (
      select r.id from campaign_recipients r
      where r.account_id = a.account_id and r.campaign_id = a.campaign_id and r.status = s.status
        and r.status in ('queued', 'waiting')
      order by r.next_action_at, r.position limit 1) first
    where a.campaign_id = any(${campaign_ids}::uuid[])
    union all
    select first.id, k.id from unnest(${campaign_ids}::uuid[]) as k (id)
    cross join lateral (
      select r.id from campaign_recipients r
      where r.campaign_id = k.id and r.account_id is null and r.status = 'queued'
      order by r.next_action_at, r.position limit 1) first`)
  const byCampaign = Map.groupBy(found, ({ campaign_id }) => campaign_id)
  const rows = await db.rows<CampaignRow>(
    sql`${textlessRow} where k.id = any(${[...byCampaign.keys()]}::uuid[])`,
  )
  return rows.map((row) => ({ row, ids: (byCampaign.get(row.id) ?? []).map(({ id }) => id) }))
}
