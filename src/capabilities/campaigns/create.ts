/** Creates a campaign, its steps and its recipients in one transaction. It sends nothing; the worker does that. */
import type { z } from 'zod'
import { requireMaker } from '../../access/makers.ts'
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { derivedId } from '../../lib/ids.ts'
import { quote } from '../../lib/text.ts'
import { tieOf } from '../people/people.ts'
import { isTimezone } from '../workspaces/workspaces.ts'
import { type CampaignBody, campaignBody } from './campaign-body.ts'
import { type CampaignRequest, readRequest } from './campaign-request.ts'
import { type FoundRecipient, findRecipients, requireAll } from './recipients.ts'

/** Checks that do not depend on the moment. They run before an idempotent repeat returns its first answer. */
export async function checkRequest(
  app: App,
  _caller: Caller,
  { body }: { readonly body: CampaignBody },
): Promise<CampaignRequest> {
  const { gates } = await app.settings.current()
  if (body.branching_enabled && !(gates.has('branching') && gates.has('read_receipts'))) {
    throw new ApiError('branching_disabled')
  }
  if (!(await isTimezone(app.db, body.schedule_timezone))) {
    throw new ApiError('invalid_request', {
      detail: `schedule_timezone ${quote(body.schedule_timezone)} is not an IANA time zone, such as Europe/Berlin.`,
    })
  }
  return readRequest(body)
}

/** A start in the past, or over a year ahead, must be a mistake. */
export function requireStart(now: Date, { scheduled_at }: CampaignRequest): void {
  if (scheduled_at === null) return
  if (scheduled_at < now) {
    throw new ApiError('invalid_request', { detail: 'scheduled_at is in the past.' })
  }
  const latest = new Date(now)
  latest.setUTCFullYear(now.getUTCFullYear() + 1)
  if (scheduled_at > latest) {
    throw new ApiError('invalid_request', { detail: 'scheduled_at is more than a year ahead.' })
  }
}

/** Checks what creation checks again in its transaction. */
export async function requireCreatable(
  { db, secrets }: App,
  { workspace_id }: Pick<Caller, 'workspace_id'>,
  request: CampaignRequest,
): Promise<void> {
  const { now } = await db.one<{ now: Date }>(sql`select domain_now() as now`)
  requireStart(now, request)
  requireAll(await findRecipients({ db, secrets }, workspace_id, request))
}

interface CreatedCampaign {
  readonly id: string
  readonly warnings: readonly string[]
}

export async function createCampaign(
  app: App,
  tx: Tx,
  caller: Pick<Caller, 'workspace_id' | 'user_id'>,
  { request, key }: { request: CampaignRequest; key: string | undefined },
): Promise<CreatedCampaign> {
  const { now } = await tx.one<{ now: Date }>(sql`select domain_now() as now`)
  requireStart(now, request)
  const found = requireAll(
    await findRecipients({ db: tx, secrets: app.secrets }, caller.workspace_id, request),
  )
  const warnings = [...request.warnings, ...(await findOverlap(tx, caller.workspace_id, found))]
  const id = await storeCampaign(app, tx, caller, { request, found, now, key })
  await requireMaker(tx, caller) // guard: campaigns of a member who leaves
  return { id, warnings }
}

async function storeCampaign(
  app: App,
  tx: Tx,
  caller: Pick<Caller, 'workspace_id' | 'user_id'>,
  given: { request: CampaignRequest; found: readonly FoundRecipient[]; now: Date; key: string | undefined },
): Promise<string> {
  const { request, found, now, key } = given
  const id = app.sources.newId()
  const starts = request.scheduled_at !== null && request.scheduled_at > now ? request.scheduled_at : now
  await insertCampaign(tx, { ...caller, id, request, scheduled: starts > now })
  await insertPool(tx, caller.workspace_id, id, request.pool)
  const named_by = key === undefined ? ['campaign', id] : ['key', key]
  const { pool } = request
  await insertRecipients(tx, {
    workspace_id: caller.workspace_id,
    campaign_id: id,
    found,
    pool,
    starts,
    named_by,
  })
  return id
}

/** The demo's campaign, for an account that no worker has connected yet. The worker looks its contacts up later. */
export async function seedCampaign(
  app: App,
  caller: Pick<Caller, 'workspace_id' | 'user_id'>,
  body: z.input<typeof campaignBody>,
): Promise<string> {
  const request = readRequest(campaignBody.parse(body))
  const found = request.wanted.map((one) => ({ ...one, username: null }))
  return app.db.transaction(async (tx) => {
    const { now } = await tx.one<{ now: Date }>(sql`select domain_now() as now`)
    return storeCampaign(app, tx, caller, { request, found, now, key: undefined })
  })
}

/** Warns about a person who is still waiting for another campaign's message: they would get both. */
export async function findOverlap(
  db: Db,
  workspace_id: string,
  found: readonly FoundRecipient[],
): Promise<string[]> {
  const { overlaps } = await db.one<{ overlaps: boolean }>(overlapOf(workspace_id, found))
  return overlaps ? ['already_in_campaign'] : []
}

/** Looks each recipient up by its key: a plan cached while few waited would scan all of them for each one. */
export function overlapOf(
  workspace_id: string,
  found: readonly Pick<FoundRecipient, 'contact' | 'account_id' | 'chat_id'>[],
): Sql {
  const chats = found.filter(({ chat_id }) => chat_id !== null)
  return sql`
    select exists (
      select from unnest(${found.map(({ contact }) => contact)}::text[]) as g (contact)
      cross join lateral (
        select 1 from campaign_recipients r where r.workspace_id = ${workspace_id} and r.contact = g.contact
          and r.ended_at is null and r.status in ('queued', 'submitting', 'waiting') limit 1) r)
    or exists (
      select from ${given(chats, { account_id: 'text', chat_id: 'bigint' })} as g
      cross join lateral (
        select 1 from campaign_recipients r where r.account_id = g.account_id and r.chat_id = g.chat_id
          and r.status in ('queued', 'submitting', 'waiting') limit 1) r) as overlaps`
}

async function insertCampaign(
  tx: Tx,
  {
    id,
    workspace_id,
    user_id,
    request,
    scheduled,
  }: { id: string; workspace_id: string; user_id: string; request: CampaignRequest; scheduled: boolean },
): Promise<void> {
  const { steps } = request
  await tx.run(sql`
    insert into campaigns (id, workspace_id, user_id, kind, name, status, message_text, branching_enabled,
      daily_quota_per_account, max_followups, scheduled_at, schedule_timezone, sequence, stop_on_own_message)
    values (${id}, ${workspace_id}, ${user_id}, ${request.kind}, ${request.name}, ${scheduled ? 'scheduled' : 'queued'},
      ${request.message_text}, ${request.branching_enabled}, ${request.daily_quota_per_account},
      ${request.max_followups}, ${request.scheduled_at}, ${request.schedule_timezone}, ${steps.length > 0},
      ${request.stop_on_own_message})`)
  for (const [position, { branch, wait_hours, variants }] of steps.entries()) {
    await tx.run(sql`
      insert into campaign_steps (campaign_id, workspace_id, position, branch, wait_hours, variants)
      values (${id}, ${workspace_id}, ${position}, ${branch}, ${wait_hours}, ${variants})`)
  }
}

/** Gives every account of the pool its row at creation. */
async function insertPool(tx: Tx, workspace_id: string, id: string, pool: readonly string[]): Promise<void> {
  if (pool.length === 0) return
  await tx.run(sql`
    insert into campaign_accounts (campaign_id, account_id, workspace_id, pool)
    select ${id}, one, ${workspace_id}, true from unnest(${pool}::text[]) as one order by one`)
}

/**
 * Derives recipient ids from workspace, key and contact. If a restored database lost the campaign, repeating its creation
 * makes the same recipients again, and they match the messages that journals restored.
 */
export async function insertRecipients(
  tx: Tx,
  {
    workspace_id,
    campaign_id,
    found,
    pool,
    starts,
    named_by,
  }: {
    workspace_id: string
    campaign_id: string
    found: readonly FoundRecipient[]
    /** Accounts that may take contacts. */
    pool: readonly string[]
    starts: Date
    /** The creation's key, or the campaign. For a broadcast it starts with another word, because callers may reuse a key. */
    named_by: readonly string[]
  },
): Promise<void> {
  const tie = tieOf(
    { workspace_id: sql`${workspace_id}::uuid`, contact: sql`g.contact` },
    sql`${pool}::text[]`,
  )
  await tx.run(sql`
    insert into campaign_recipients (id, campaign_id, workspace_id, position, contact, account_id, chat_id, identifier,
      name, username, next_action_at, person_id)
    select g.id, ${campaign_id}, ${workspace_id}, g.position - 1, g.contact, g.account_id, g.chat_id, g.identifier,
      g.name, g.username, ${starts},
      case when g.chat_id is null then ${tie} end -- guard: a stored name ties at creation
    from ${given(found, {
      id: ['uuid', ({ contact }) => derivedId('recipient', workspace_id, ...named_by, contact)],
      contact: 'text',
      account_id: 'text',
      chat_id: 'bigint',
      identifier: 'text',
      name: 'text',
      username: 'text',
      position: 'ordinality',
    })} as g`)
}
