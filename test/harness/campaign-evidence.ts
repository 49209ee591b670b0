/** Reads the campaign oracle's evidence from a database, and recipients as callers see them. */
import type { App } from '../../src/app.ts'
import { presentRecipients, requireCampaign } from '../../src/capabilities/campaigns/campaign-pages.ts'
import { readStanding } from '../../src/capabilities/campaigns/facts.ts'
import { type Database, type Db, sql } from '../../src/db/sql.ts'
import type {
  CampaignEvidence,
  CampaignFact,
  DayFact,
  MessageFact,
  RecipientFact,
  TotalFact,
} from '../faults/campaign-oracle.ts'

const statuses = [
  'queued',
  'submitting',
  'waiting',
  'completed',
  'replied',
  'failed',
  'ambiguous',
  'cancelled',
  'suppressed',
]

type Witness = Pick<CampaignEvidence, 'journal' | 'stops' | 'in_flight'>

/** In one snapshot: a change between two reads would look like a contradiction. */
export function readCampaignEvidence(
  db: Pick<Database, 'snapshot'>,
  witness: Witness,
): Promise<CampaignEvidence> {
  return db.snapshot((moment) => readAll(moment, witness))
}

async function readAll(db: Db, witness: Witness): Promise<CampaignEvidence> {
  const [campaigns, recipients, messages, days, totals] = await Promise.all([
    db.rows<CampaignFact>(sql`
      select id, kind, status, branching_enabled, daily_quota_per_account, scheduled_at, cancelled_at, (
        select coalesce(json_agg(json_build_object('branch', s.branch, 'wait_hours', s.wait_hours) order by s.position),
          '[]') from campaign_steps s where s.campaign_id = k.id) as steps
      from campaigns k`),
    db.rows<RecipientFact>(sql`
      select id, campaign_id, account_id, status, step, next_action_at, unknown_since, replied_at, ended_at
      from campaign_recipients`),
    db.rows<MessageFact>(sql`
      select id, campaign_id, recipient_id, step_no, account_id, random_id::text, state, closed_as, quota_day::text,
        payload ->> 'branch' as branch, crossed_at,
        coalesce((reply_body ->> 'timestamp')::timestamptz, proof_at) as sent_at
      from operations where campaign_id is not null`),
    db.rows<DayFact>(sql`select account_id, day::text, used from account_days where used > 0`),
    db.rows<TotalFact>(sql`
      select campaign_id, account_id, n.status, n.count from campaign_accounts c
      cross join lateral unnest(${statuses}::text[], array[queued, submitting, waiting, completed, replied, failed,
        ambiguous, cancelled, suppressed]) as n (status, count)
      where n.count > 0`),
  ])
  return { campaigns, recipients, messages, days, totals, ...witness }
}

interface ShownRecipient {
  readonly id: string
  readonly status: string
  readonly blocked_by: string | null
  readonly next_action_at: Date | null
}

/** The first thousand recipients of each of these campaigns, with why they have not moved, and the time of reading. */
export async function presentCampaigns(
  app: App,
  workspace_id: string,
  campaign_ids: readonly string[],
): Promise<{ shown: ShownRecipient[]; now: Date }> {
  const settings = await app.settings.refresh()
  return app.db.snapshot(async (db) => {
    const standing = await readStanding(app, db, workspace_id)
    const shown: ShownRecipient[] = []
    for (const id of campaign_ids) {
      const row = await requireCampaign(db, workspace_id, id)
      const { people } = await presentRecipients(db, settings, { row, standing, after: -1, limit: 1000 })
      shown.push(...(people as ShownRecipient[]))
    }
    return { shown, now: standing.now }
  })
}
