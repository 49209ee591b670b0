/** Pausing, resuming and cancelling change the status under the campaign's row lock. They send and recall nothing. */
import type { Caller } from '../../contract.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import type { CampaignRow } from './facts.ts'
import type { CampaignStatus } from './planning/plan.ts'
import { hasBegun } from './running/running.ts'

export type Control = 'pause' | 'resume' | 'cancel'

interface ControlResult {
  readonly campaign: {
    readonly id: string
    readonly status: CampaignStatus
    readonly cancelled_at: Date | null
  }
  readonly changed: boolean
}

interface ControlRow extends Pick<CampaignRow, 'id' | 'workspace_id' | 'status' | 'sequence'> {
  readonly cancelled_at: Date | null
  /** The status after resuming. */
  readonly resumed: CampaignStatus
}

/** Which campaigns may be changed. An operator at the terminal may change all of them. */
interface Reach {
  readonly workspace_id?: string
  readonly user_id?: string
}

/**
 * With a key, another user's campaign does not exist. At the dashboard, where the routes are for admins and owners, they change
 * every campaign of the workspace: its creator may be away when it has to stop.
 */
export function reachOf({ workspace_id, user_id, via }: Caller): Reach {
  return via.kind === 'session' ? { workspace_id } : { workspace_id, user_id } // guard: a key changes campaigns of its user only
}

/** Throws if the change would be refused. */
export async function requireControl(
  db: Db,
  reach: Reach,
  { id, control }: { id: string; control: Control },
): Promise<void> {
  nextStatus(await requireRow(db, reach, id), control)
}

async function requireRow(
  db: Db,
  { workspace_id, user_id }: Reach,
  id: string,
  lock = sql``,
): Promise<ControlRow> {
  const row = await db.maybe<ControlRow>(sql`
    select id, workspace_id, status, sequence, cancelled_at, case when scheduled_at > domain_now() then 'scheduled'
      when started_at is not null or ${hasBegun} then 'sending' else 'queued' end as resumed
    from campaigns k
    where id = ${id} and kind in ('scoped', 'contacts')
      and workspace_id = coalesce(${workspace_id ?? null}, workspace_id)
      and user_id = coalesce(${user_id ?? null}, user_id)
    ${lock}`)
  if (!row) throw new ApiError('campaign_not_found')
  return row
}

/** The lock waits for every boundary that saw the campaign active. Boundaries that start later see the new status. */
export async function controlCampaign(
  tx: Tx,
  reach: Reach,
  { id, control }: { id: string; control: Control },
): Promise<ControlResult & { readonly workspace_id: string }> {
  const row = await requireRow(tx, reach, id, sql`for no key update`)
  const to = nextStatus(row, control)
  if (to === row.status) {
    const { status, cancelled_at } = row
    return { campaign: { id, status, cancelled_at }, changed: false, workspace_id: row.workspace_id }
  }
  const campaign = await tx.one<ControlResult['campaign']>(sql`
    update campaigns set status = ${to}, pause_reason = case when ${to} = 'paused' then 'requested' end,
      cancelled_at = case when ${to} = 'cancelled' then domain_now() end,
      started_at = case when ${to} = 'sending' then coalesce(started_at, domain_now()) else started_at end
    where id = ${id} returning id, status, cancelled_at`)
  if (to === 'cancelled') await stopRecipients(tx, id)
  // crash point 11a: the campaign has another status and its recipients know, nothing is committed
  return { campaign, changed: true, workspace_id: row.workspace_id }
}

function nextStatus({ status, sequence, resumed }: ControlRow, control: Control): CampaignStatus {
  if (control === 'cancel') {
    if (status === 'completed') throw new ApiError('campaign_completed')
    return 'cancelled'
  }
  if (!sequence) throw new ApiError('not_a_sequence')
  if (control === 'resume') {
    if (status !== 'paused') throw new ApiError('campaign_not_paused')
    return resumed
  }
  if (status === 'cancelled' || status === 'completed') {
    throw new ApiError('invalid_sequence_status', {
      detail: `The campaign is ${status}, so it cannot be paused.`,
    })
  }
  return 'paused'
}

/** Cancels waiting recipients, locked in the common order. A message that has crossed the boundary may still arrive. */
async function stopRecipients(tx: Tx, campaign_id: string): Promise<void> {
  await tx.run(sql`
    with waiting as materialized (
      select id from campaign_recipients where campaign_id = ${campaign_id} and status in ('queued', 'waiting')
      order by id for update)
    update campaign_recipients r set status = 'cancelled', next_action_at = null, ended_at = (select domain_now())
    from waiting where r.id = waiting.id`)
}
