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
  /** Who becomes answerable for a campaign that goes on, if its creator no longer belongs to the workspace. */
  readonly taker_id?: string
}

/**
 * With a key, another user's campaign does not exist. At the dashboard, where the routes are for admins and owners, they change
 * every campaign of the workspace: its creator may be away when it has to stop.
 */
export function reachOf({ workspace_id, user_id, via }: Caller): Reach {
  return via.kind === 'session' ? { workspace_id, taker_id: user_id } : { workspace_id, user_id } // guard: a key changes campaigns of its user only
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
      started_at = case when ${to} = 'sending' then coalesce(started_at, domain_now()) else started_at end,
      user_id = case when ${control === 'resume'} and not exists ( -- guard: resuming takes over what a former member made
        select from memberships m join users u on u.id = m.user_id
        where m.workspace_id = campaigns.workspace_id and m.user_id = campaigns.user_id and m.ended_at is null
          and u.disabled_at is null) then coalesce(${reach.taker_id ?? null}::uuid, user_id) else user_id end
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

/** Identifies a member of a workspace. */
interface MemberKey {
  readonly workspace_id: string
  readonly user_id: string
}

/** A campaign or broadcast that would still send. */
interface OpenCampaign {
  readonly id: string
  readonly name: string | null
  readonly kind: 'scoped' | 'contacts' | 'broadcast'
  readonly status: CampaignStatus
  /** What stopping does: a campaign without steps cannot be paused, and a broadcast has no later message to pause for. */
  readonly stop: 'pause' | 'cancel'
}

const openOnes = sql`k.kind in ('scoped', 'contacts', 'broadcast')
  and k.status in ('scheduled', 'queued', 'sending', 'paused')`

/** Newest first. */
export function listOpenCampaigns(db: Db, { workspace_id, user_id }: MemberKey): Promise<OpenCampaign[]> {
  return db.rows<OpenCampaign>(sql`
    select k.id, k.name, k.kind, k.status, case when k.sequence then 'pause' else 'cancel' end as stop
    from campaigns k where k.workspace_id = ${workspace_id} and k.user_id = ${user_id} and ${openOnes}
    order by k.created_at desc, k.id desc`)
}

/** Gives campaigns of one member to another. Skips what is not the first one's, and what has ended. */
export async function takeOverCampaigns(
  tx: Tx,
  { workspace_id, user_id }: MemberKey,
  { to, ids }: { to: string; ids: readonly string[] },
): Promise<string[]> {
  const rows = await tx.rows<{ id: string }>(sql`
    with taken as materialized (
      select k.id from campaigns k
      where k.workspace_id = ${workspace_id} and k.user_id = ${user_id} -- guard: only campaigns of the member are taken over
        and k.id = any(${ids}::uuid[]) and ${openOnes}
      order by k.id for no key update)
    update campaigns k set user_id = ${to} from taken where k.id = taken.id returning k.id`)
  return rows.map(({ id }) => id)
}

/** Pauses what has steps and cancels the rest, in the order of their ids. */
export async function stopCampaigns(
  tx: Tx,
  member: MemberKey,
): Promise<{ readonly paused: readonly string[]; readonly cancelled: readonly string[] }> {
  const open = (await listOpenCampaigns(tx, member)).toSorted((one, other) => (one.id < other.id ? -1 : 1))
  const paused: string[] = []
  const cancelled: string[] = []
  for (const { id, kind, status, stop } of open) {
    if (stop === 'pause' && status !== 'paused') {
      await controlCampaign(tx, member, { id, control: 'pause' })
      paused.push(id)
    }
    if (stop === 'cancel') {
      // A broadcast without waiting recipients completes by itself.
      if (kind === 'broadcast') await stopRecipients(tx, id)
      else await controlCampaign(tx, member, { id, control: 'cancel' })
      cancelled.push(id)
    }
  }
  return { paused, cancelled }
}
