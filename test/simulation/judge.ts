/** Checks all promises of campaigns over a whole story. */
import { verifyAudit } from '../../src/capabilities/audit/audit.ts'
import { readCampaign } from '../../src/capabilities/campaigns/campaign-pages.ts'
import { readReporting } from '../../src/capabilities/campaigns/reporting.ts'
import { verifyCampaign } from '../../src/capabilities/campaigns/verify.ts'
import { type Database, sql } from '../../src/db/sql.ts'
import { partsOf } from '../../web/src/pages/campaigns/recipient-parts.ts'
import { judgeCampaigns } from '../faults/campaign-oracle.ts'
import { presentCampaigns, readCampaignEvidence } from '../harness/campaign-evidence.ts'
import type { Place } from './place.ts'

interface Judgement {
  readonly wrong: readonly string[]
  /** What holds the recipients that wait. */
  readonly reasons: readonly string[]
}

export async function judgeAll(
  place: Place,
  { in_flight, over }: { in_flight: readonly string[]; over: boolean },
): Promise<Judgement> {
  const { journal } = place.sandbox.world.state
  const found = judgeCampaigns(await readCampaignEvidence(place.db, { journal, in_flight }))
  const { wrong, reasons } = await judgeReasons(place)
  const books = over ? [...(await judgeBooks(place.db)), ...(await judgeAudit(place))] : []
  return { wrong: [...found.map(({ promise, what }) => `${promise}: ${what}`), ...wrong, ...books], reasons }
}

/** Every pending recipient is due, in flight, or held for exactly one reason. */
async function judgeReasons({ app, tenant: { workspace_id } }: Place): Promise<Judgement> {
  const campaigns = await app.db.rows<{ id: string }>(
    sql`select id from campaigns where kind <> 'broadcast' order by id`,
  )
  const wrong: string[] = []
  const reasons: string[] = []
  const ids = campaigns.map(({ id }) => id)
  const { shown, now } = await presentCampaigns(app, workspace_id, ids)
  for (const { status, blocked_by, next_action_at } of shown) {
    const pending = status === 'queued' || status === 'waiting'
    const due = next_action_at !== null && next_action_at <= now
    if (blocked_by !== null) reasons.push(blocked_by)
    if (pending && blocked_by === null && !due) wrong.push(`reason: ${status}, neither due nor held`)
    if (!pending && status !== 'submitting' && blocked_by !== null) wrong.push(`reason: ${status} is held`)
  }
  return { wrong, reasons }
}

/** The findings of `verify` for each campaign, and figures of the dashboard that are not the number of their rows. */
async function judgeBooks(db: Database): Promise<string[]> {
  const campaigns = await db.rows<{ id: string; kind: string }>(
    sql`select id, kind from campaigns order by id`,
  )
  const wrong: string[] = []
  for (const { id, kind } of campaigns) {
    const { checks } = await verifyCampaign(db, id)
    wrong.push(...checks.filter(({ ok }) => !ok).map(({ name }) => `verify: ${name}`))
    if (kind !== 'broadcast') wrong.push(...(await judgeFigures(db, id)))
  }
  return wrong
}

async function judgeAudit({ app }: Place): Promise<string[]> {
  const { ok, seq, problem } = await verifyAudit(app)
  return ok ? [] : [`audit: ${problem} ${seq ?? ''}`]
}

/** What the page of a campaign shows, from what `GET /campaigns/{campaign_id}` answers. */
async function judgeFigures(db: Database, id: string): Promise<string[]> {
  const { totals } = (await readCampaign(db, id)) as { totals: Parameters<typeof partsOf>[0] }
  const parts = partsOf(totals, await readReporting(db, id))
  const shown = new Map(parts.map(({ label, count }) => [label, count]))
  const rows = await db.rows<{ label: string; count: number }>(sql`
    select case when opted_out and status = 'replied' then 'Asked to stop' else status end as label, count(*)::int as count
    from campaign_recipients where campaign_id = ${id} group by 1`)
  const everybody = rows.reduce((sum, { count }) => sum + count, 0)
  const added = parts.reduce((sum, { count }) => sum + count, 0)
  const wrong = added === everybody ? [] : [`figures: ${added} of ${everybody} recipients`]
  for (const label of ['Asked to stop', 'Replied']) {
    const counted = rows.find((row) => row.label.toLowerCase() === label.toLowerCase())?.count ?? 0
    if (shown.get(label) !== counted)
      wrong.push(`figures: ${label} ${shown.get(label)} instead of ${counted}`)
  }
  return wrong
}

/** The recipients that are not final, without those that are known to wait for a person, and the campaigns that have none. */
export async function listOpen(db: Database, held: ReadonlySet<string> = new Set()): Promise<string> {
  const rows = await db.rows<{ what: string }>(sql`
    select k.kind || ' ' || k.status || ' ' || coalesce(r.status, '') as what from campaigns k
    left join campaign_recipients r on r.campaign_id = k.id and r.status in ('queued', 'submitting', 'waiting')
    where (r.id is not null and r.id <> all(${[...held]}::uuid[]))
      or (r.id is null and k.status not in ('completed', 'cancelled')) order by 1`)
  return rows.map(({ what }) => what).join(', ')
}

/** How attempts that are no longer in flight ended. */
export function listEndings(db: Database, ids: readonly string[]): Promise<{ what: string }[]> {
  return db.rows<{ what: string }>(sql`
    select concat_ws(' ', 'became', state, reason, case when reason = 'never_written' then detail end) as what
    from operations where id = any(${ids}::uuid[]) order by id`)
}

export async function readReached(db: Database): Promise<Record<string, number>> {
  const rows = await db.rows<{ what: string; count: number }>(sql`
    select 'recipient ' || status as what, count(*)::int as count from campaign_recipients group by 1
    union all
    select 'proven later', count(*)::int from operations where campaign_id is not null and reconciled
    union all
    select 'taken up again', count(*)::int from operations where campaign_id is not null and attempt_no > 1
    union all
    select 'a flood wait', count(*)::int from account_strikes where kind = 'flood_wait'
    union all
    select 'opted out', count(*)::int from campaign_recipients where opted_out
    union all
    select 'erased', count(*)::int from erasures where done_at is not null
    union all
    select 'answered by hand', count(*)::int from campaign_recipients where reason = 'answered_by_hand'
    union all
    select 'closed by an operator', count(*)::int from operations where closed_as is not null`)
  return Object.fromEntries(rows.map(({ what, count }) => [what, count]))
}
