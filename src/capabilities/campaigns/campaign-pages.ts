/** Campaigns as callers see them: the list, and one campaign with pages of its recipients. */
import { isCapable } from '../../access/needs.ts'
import type { App, Snapshot } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { type Db, sql } from '../../db/sql.ts'
import { type Paging, readPaging } from '../../lib/cursor.ts'
import { ApiError } from '../../lib/errors.ts'
import { pageText, type Row } from '../../lib/page.ts'
import { reachOf } from './control.ts'
import { type CampaignRow, campaignRow, findStop, readStanding, type Standing, toPlanned } from './facts.ts'
import { type PlannedCampaign, type PlannedRecipient, plan } from './planning/plan.ts'
import { askersOf, isUndecided, knownUntil } from './planning/recipient-facts.ts'
import { whyOf } from './planning/why.ts'
import { pickFromPool } from './pool.ts'
import { type OperationRow, type RecipientHistory, readReporting, timelineOf } from './reporting.ts'

/** Only campaigns that were created here; no broadcasts. */
export const internal = sql`k.kind in ('scoped', 'contacts')`

/** Counts the recipients of campaign `k` by status. */
export const totalsOf = sql`(
  select json_build_object('queued', coalesce(sum(queued), 0), 'submitting', coalesce(sum(submitting), 0),
    'waiting', coalesce(sum(waiting), 0), 'completed', coalesce(sum(completed), 0),
    'replied', coalesce(sum(replied), 0), 'failed', coalesce(sum(failed), 0),
    'ambiguous', coalesce(sum(ambiguous), 0), 'cancelled', coalesce(sum(cancelled), 0),
    'suppressed', coalesce(sum(suppressed), 0))
  from campaign_accounts where campaign_id = k.id)`

const campaignFields = sql`k.id, k.name, k.status, k.kind, k.message_text, k.branching_enabled,
  k.daily_quota_per_account, k.max_followups, wire_time(k.scheduled_at) as scheduled_at, k.schedule_timezone,
  wire_time(k.created_at) as created_at, wire_time(k.started_at) as started_at,
  wire_time(k.completed_at) as completed_at, wire_time(k.cancelled_at) as cancelled_at, k.pause_reason,
  ${totalsOf} as totals`

const limitations = [
  'Only campaigns that were created here are listed; legacy campaigns and broadcasts are not.',
  'Delivery is unknown; a read message is known only if the platform reports it.',
]

interface PageQuery {
  readonly cursor?: string | undefined
  readonly limit: number
}

export function readListPaging({ secrets }: App, { workspace_id }: Caller, { cursor }: PageQuery): Paging {
  return readPaging(secrets, { workspace_id, operation: 'list_campaigns', filters: {} }, cursor)
}

/** All campaigns of the workspace, newest first, as JSON text. */
export async function listCampaigns(
  { db }: App,
  { workspace_id }: Pick<Caller, 'workspace_id'>,
  { limit, paging: { after, next } }: { limit: number; paging: Paging },
): Promise<string> {
  const [created_at, id] = after ?? ['infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff']
  const rows = await db.lists<Row>(sql`
    select row_to_json(item)::text, k.created_at::text, k.id::text
    from (
      select * from campaigns k where k.workspace_id = ${workspace_id} and ${internal}
        and (k.created_at, k.id) < (${created_at}::timestamptz, ${id}::uuid)
      order by k.created_at desc, k.id desc limit ${limit + 1}) k
    cross join lateral (select ${campaignFields}) item
    order by k.created_at desc, k.id desc`)
  const page = pageText('campaigns', rows, { limit, next })
  const coverage = { scope: 'internal', legacy_excluded: true, limitations }
  return `${page.slice(0, -1)},"coverage":${JSON.stringify(coverage)}}`
}

/** A campaign as creation and every list return it. */
export async function readCampaign(db: Db, id: string): Promise<Record<string, unknown>> {
  return db.one(sql`select ${campaignFields} from campaigns k where k.id = ${id}`)
}

/** Any user's campaign of the workspace. Legacy campaigns and broadcasts are reported as not found. */
export async function requireCampaign(db: Db, workspace_id: string, id: string): Promise<CampaignRow> {
  const row = await db.maybe<CampaignRow>(sql`
    ${campaignRow} where k.id = ${id} and k.workspace_id = ${workspace_id} and ${internal}`)
  if (!row) throw new ApiError('campaign_not_found')
  return row
}

interface RecipientRow extends PlannedRecipient, RecipientHistory {
  readonly status: PlannedRecipient['status']
  readonly position: number
  readonly account_id: string | null
  readonly identifier: string | null
  readonly opted_out: boolean
  /** Accounts for which asking who has the name is no look-up. */
  readonly asked_by: readonly string[]
}

export async function describeCampaign(
  app: App,
  caller: Caller,
  { id, query: { limit, cursor } }: { id: string; query: PageQuery },
): Promise<Record<string, unknown>> {
  const scope = {
    workspace_id: caller.workspace_id,
    operation: 'get_campaign',
    filters: { campaign_id: id },
  }
  const { after, next } = readPaging(app.secrets, scope, cursor)
  const settings = await app.settings.current()
  return app.db.snapshot(async (db) => {
    const row = await requireCampaign(db, caller.workspace_id, id)
    const standing = await readStanding(app, db, caller.workspace_id)
    const page = { row, standing, after: Number(after?.[0] ?? -1), limit }
    const { people, operations, last } = await presentRecipients(db, settings, page)
    return {
      campaign: {
        ...(await readCampaign(db, id)),
        recipients: people,
        steps: row.steps,
        operations,
        reporting: await readReporting(db, id),
        can: abilities(app, settings, caller, row),
      },
      next_cursor: last === undefined ? null : next([last]),
      has_more: last !== undefined,
    }
  })
}

export interface ChosenRecipients {
  readonly status?: PlannedRecipient['status'] | undefined
  /** Part of a name, username or identifier, in any letter case. */
  readonly name?: string | undefined
  /** Only these. */
  readonly ids?: readonly string[] | undefined
}

interface PeoplePage {
  readonly row: CampaignRow
  readonly standing: Standing
  readonly after: number
  readonly limit: number
  /** With what only people read, so never on `/api/v1`: why each gets no message now, and who asked to stop. */
  readonly sentences?: boolean
  readonly chosen?: ChosenRecipients
}

/** Recipients as callers see them, with their messages. `last`: the position the next page starts after, if there is one. */
export async function presentRecipients(
  db: Db,
  settings: Snapshot,
  { row, standing, after, limit, sentences = false, chosen = {} }: PeoplePage,
): Promise<{ people: object[]; operations: OperationRow[]; last: number | undefined }> {
  const rows = await listRecipients(db, row.id, { after, limit: limit + 1, chosen })
  const shown = rows.slice(0, limit)
  const operations = await listOperations(db, shown)
  const show = await recipientPresenter(db, settings, { row, standing, operations, sentences })
  return {
    people: shown.map(show),
    operations,
    last: rows.length > limit ? shown.at(-1)?.position : undefined,
  }
}

function listRecipients(
  db: Db,
  campaign_id: string,
  { after, limit, chosen: { status, name, ids } }: Required<Pick<PeoplePage, 'after' | 'limit' | 'chosen'>>,
): Promise<RecipientRow[]> {
  const known = ids === undefined ? sql`` : sql`and r.id = any(${ids}::uuid[])`
  const ofStatus = status === undefined ? sql`` : sql`and r.status = ${status}`
  // Compares one recipient after the other: a campaign has at most 5,000.
  const named =
    name === undefined
      ? sql``
      : sql`and strpos(lower(concat_ws(E'\n', r.name, r.told_name, r.username, r.identifier)), lower(${name})) > 0`
  return db.rows<RecipientRow>(sql`
    select r.id, r.position, r.account_id, r.chat_id::text, r.identifier, coalesce(r.name, r.told_name) as name, r.username, r.status, r.reason, r.step,
      r.last_sent_at, r.next_action_at, r.unknown_since, r.reads, r.replied_at, r.reply_step,
      -- A message id means nothing without its account, and the only account in this row is the recipient's.
      case when coalesce(r.reply_account_id, r.account_id) = r.account_id then r.reply_message_id::text end
        as reply_message_id,
      r.reply_variant, r.opted_out, r.ended_at, coalesce(chat.read_by_them_id >= r.last_message_id, false) as read,
      r.step = 0 and not exists (
        select from messages m where m.account_id = r.account_id and m.chat_id = r.chat_id and not m.is_sender) as cold,
      ${isUndecided} as undecided, ${knownUntil(sql`r.account_id`)} as known_until, r.unfound_at is not null as unfound,
      case when r.step = 0 and r.status = 'queued' then ${askersOf(sql`writers.ids`)} else '{}' end as asked_by
    from campaign_recipients r join campaigns k on k.id = r.campaign_id
    cross join lateral (
      select case when r.account_id is not null then array[r.account_id] else array(
        select c.account_id from campaign_accounts c where c.campaign_id = k.id and c.pool) end as ids) writers
    left join accounts account on account.id = r.account_id
    left join chats chat on chat.account_id = r.account_id and chat.chat_id = r.chat_id
    where r.campaign_id = ${campaign_id} and r.position > ${after} ${ofStatus} ${named} ${known}
    order by r.position limit ${limit}`)
}

function listOperations(db: Db, recipients: readonly { readonly id: string }[]): Promise<OperationRow[]> {
  return db.rows<OperationRow>(sql`
    select coalesce(o.public_id, o.id) as id, o.recipient_id, o.step_no as step, o.kind, o.state, o.account_id,
      'platform:chat:' || o.chat_id as chat_id, (o.payload ->> 'variant')::int as variant, o.created_at, o.crossed_at,
      o.finished_at, o.reconciled, o.reason, o.detail,
      coalesce(o.reply_body ->> 'message_id', o.proof_message_id::text) as message_id
    from operations o where o.recipient_id = any(${recipients.map(({ id }) => id)}::uuid[])
    order by o.created_at, o.id`)
}

/** Shows a recipient with what the planner says blocks it, and its timeline. */
async function recipientPresenter(
  db: Db,
  settings: Snapshot,
  given: Pick<PeoplePage, 'row' | 'standing'> & {
    readonly operations: readonly OperationRow[]
    readonly sentences: boolean
  },
): Promise<(recipient: RecipientRow) => object> {
  const { row, standing, operations, sentences } = given
  const campaign: PlannedCampaign = toPlanned(settings, row)
  const pool = await db.rows<{ account_id: string }>(sql`
    select account_id from campaign_accounts where campaign_id = ${row.id} and pool`)
  const ids = pool.map(({ account_id }) => account_id)
  const held = ids.some((id) => standing.accounts.get(id)?.holds_pools)
  const taker = held ? null : pickFromPool(standing, ids)
  const byRecipient = Map.groupBy(operations, ({ recipient_id }) => recipient_id)
  const reads = settings.gates.has('read_receipts')
  const shared = { stop: findStop(settings, row), pause_reason: row.pause_reason, pool_unconfirmed: held }
  return (recipient) => {
    const { id, account_id, chat_id, identifier, name, status, reason, step } = recipient
    const untaken = account_id === null || (held && step === 0)
    const account = untaken ? taker : (standing.accounts.get(account_id) ?? null)
    const writer = untaken ? ids.find((one) => standing.accounts.get(one) === taker) : account_id
    const asked = { ...recipient, needs_lookup: !recipient.asked_by.includes(writer ?? '') }
    const facts = { campaign, recipient: asked, account, hours: standing.hours, now: standing.now }
    const planned = plan(facts)
    const now = planned.do === 'send' || planned.do === 'look_up' || planned.do === 'end'
    return {
      id,
      account_id,
      chat_id: chat_id === null ? null : `platform:chat:${chat_id}`,
      identifier,
      name,
      status,
      reason,
      step,
      next_action_at: planned.do === 'wait' ? planned.until : now ? standing.now : null,
      blocked_by: planned.do === 'wait' ? planned.blocked_by : null,
      timeline: timelineOf(recipient, byRecipient.get(id) ?? [], reads),
      ...(sentences && {
        opted_out: recipient.opted_out,
        sentence: whyOf(recipient, planned, { ...facts, ...shared }),
      }),
    }
  }
}

/** What the caller could do with the campaign now. */
function abilities(app: App, settings: Snapshot, caller: Caller, row: CampaignRow): Record<string, boolean> {
  const able = (name: string) => {
    const needs = app.routes.find((route) => route.name === name)
    return needs !== undefined && isCapable(settings, caller, needs)
  }
  const { user_id = row.user_id } = reachOf(caller)
  const own = row.user_id === user_id
  const active = ['scheduled', 'queued', 'sending'].includes(row.status)
  const paused = row.status === 'paused'
  return {
    create: able('create_campaign'),
    cancel: own && (active || paused) && able('cancel_campaign'),
    pause: own && row.sequence && active && able('pause_campaign'),
    resume: own && row.sequence && paused && able('resume_campaign'),
  }
}
