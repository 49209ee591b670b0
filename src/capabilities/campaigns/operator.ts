/** What operators do with campaigns: any campaign of the instance, with every change in the audit log. */
import { requireNeeds } from '../../access/needs.ts'
import type { App } from '../../app.ts'
import { type Caller, scopes } from '../../contract.ts'
import { type Db, sql } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { notFound } from '../../lib/names.ts'
import type { SkippedLine } from '../../rules/contact-table.ts'
import { type Actor, record } from '../audit/audit.ts'
import { memberName } from '../chats/chats.ts'
import { requireWorkspace } from '../workspaces/workspaces.ts'
import { campaignBody } from './campaign-body.ts'
import { presentRecipients, readCampaign } from './campaign-pages.ts'
import { type ContactTable, readContactTable } from './contact-table.ts'
import { type Control, controlCampaign } from './control.ts'
import { checkRequest, createCampaign } from './create.ts'
import { type CampaignRow, campaignRow, readStanding } from './facts.ts'
import { forecastCampaign } from './preview.ts'
import { readCreator } from './recipient-page.ts'
import { exclusionOf, findRecipients } from './recipients.ts'
import { readReporting } from './reporting.ts'
import { type Verification, verifyCampaign } from './verify.ts'
import { verifyOnPlatform } from './verify-platform.ts'

interface ListedCampaign {
  readonly id: string
  readonly workspace_id: string
  readonly name: string | null
  readonly kind: string
  readonly status: string
  readonly created_at: Date
  /** The name of its maker. */
  readonly created_by: string
  readonly recipients: number
  readonly open: number
  readonly replied: number
  readonly failed: number
}

/** Newest first, of one workspace or of all. */
export async function listAllCampaigns(db: Db, workspace_id: string | undefined): Promise<ListedCampaign[]> {
  if (workspace_id !== undefined) await requireWorkspace(db, workspace_id)
  return db.rows<ListedCampaign>(sql`
    select k.id, k.workspace_id, k.name, k.kind, k.status, k.created_at, ${memberName} as created_by,
      coalesce(t.everybody, 0)::int as recipients,
      coalesce(t.open, 0)::int as open, coalesce(t.replied, 0)::int as replied, coalesce(t.failed, 0)::int as failed
    from campaigns k join users u on u.id = k.user_id
    cross join lateral (
      select sum(queued + submitting + waiting + completed + replied + failed + ambiguous + cancelled + suppressed)
          as everybody, sum(queued + submitting + waiting) as open, sum(replied) as replied, sum(failed) as failed
      from campaign_accounts where campaign_id = k.id) t
    where k.kind in ('scoped', 'contacts') and k.workspace_id = coalesce(${workspace_id ?? null}, k.workspace_id)
    order by k.created_at desc, k.id desc limit 1000`)
}

async function requireAny(db: Db, id: string): Promise<CampaignRow> {
  const row =
    isUuid(id) &&
    (await db.maybe<CampaignRow>(sql`${campaignRow} where k.id = ${id} and k.kind in ('scoped', 'contacts')`))
  if (!row) throw notFound('campaign', id, 'campaign_not_found')
  return row
}

/** With its first recipients: enough to see its progress. */
export async function showCampaign(app: App, id: string): Promise<Record<string, unknown>> {
  const row = await requireAny(app.db, id)
  const settings = await app.settings.current()
  const standing = await readStanding(app, app.db, row.workspace_id)
  const { people } = await presentRecipients(app.db, settings, {
    ...{ row, standing, after: -1, limit: 100 },
    sentences: true,
  })
  return {
    ...(await readCampaign(app.db, id)),
    created_by: (await readCreator(app.db, row.user_id)).name,
    reporting: await readReporting(app.db, id),
    recipients: people,
  }
}

export async function showForecast(app: App, id: string): Promise<Record<string, unknown>> {
  const row = await requireAny(app.db, id)
  const paging = { after: undefined, next: () => '' }
  const { text } = await forecastCampaign(app, row, { limit: 1_000, paging })
  const { next_cursor: _, ...forecast } = JSON.parse(text) as Record<string, unknown>
  return forecast
}

/** With `platform` it also asks the sessions of the campaign's accounts, which takes as long as the platform does. */
export async function verifyAnyCampaign(
  app: App,
  { id, platform }: { id: string; platform: boolean },
): Promise<Verification> {
  await requireAny(app.db, id)
  const { checks } = await app.db.snapshot((one) => verifyCampaign(one, id))
  const all = platform ? [...checks, ...(await verifyOnPlatform(app, id))] : checks
  return { ok: all.every(({ ok }) => ok), checks: all }
}

export async function controlAnyCampaign(
  app: App,
  actor: Actor,
  { id, control }: { id: string; control: Control },
): Promise<{ id: string; status: string; changed: boolean }> {
  await requireAny(app.db, id)
  return app.db.transaction(async (tx) => {
    const { campaign, changed, workspace_id } = await controlCampaign(tx, {}, { id, control })
    const action = { pause: 'campaign.paused', resume: 'campaign.resumed', cancel: 'campaign.cancelled' }[
      control
    ]
    if (changed) await record(app, tx, actor, { action, target: id, workspace_id })
    return { id, status: campaign.status, changed }
  })
}

interface FromFile {
  readonly workspace_id: string
  readonly user_id: string
  readonly accounts: readonly string[]
  readonly message_text: string
  readonly name?: string | undefined
  readonly daily_quota_per_account?: number | undefined
  readonly text: AsyncIterable<string> | Iterable<string>
}

export interface FromFileReport {
  readonly campaign_id: string
  readonly status: string
  readonly recipients: number
  readonly warnings: readonly string[]
  /** Every row that got no message, and why. */
  readonly skipped: readonly SkippedLine[]
}

/** Acts for a user who may run campaigns: gates, allowlists and the suppression list apply as over HTTP. */
export async function createFromFile(app: App, actor: Actor, wanted: FromFile): Promise<FromFileReport> {
  const caller = await requireUser(app, wanted)
  const table = await readContactTable(wanted.text)
  const left = await leaveOut(app, caller, wanted, table)
  if (left.contacts.length === 0) {
    throw new ApiError('invalid_request', {
      detail: 'No row of the file is a valid contact. Nothing was created.',
    })
  }
  const request = await checkRequest(app, caller, { body: bodyOf(wanted, left.contacts) })
  return app.db.transaction(async (tx) => {
    const { id, warnings } = await createCampaign(app, tx, caller, { request, key: undefined })
    const recipients = request.wanted.length
    const { workspace_id, user_id } = caller
    const detail = { user_id, recipients, accounts: wanted.accounts }
    await record(app, tx, actor, { action: 'campaign.created', target: id, workspace_id, detail })
    return { campaign_id: id, status: 'queued', recipients, warnings, skipped: left.skipped }
  })
}

function bodyOf(wanted: FromFile, contacts: ContactTable['contacts']) {
  const { name, message_text, accounts, daily_quota_per_account } = wanted
  const parsed = campaignBody.safeParse({
    message_text,
    contacts: contacts.map((each) => ({
      identifier: each.identifier,
      ...(each.name !== null && { name: each.name }),
    })),
    account_pool: accounts,
    ...(name !== undefined && { name }),
    ...(daily_quota_per_account !== undefined && { daily_quota_per_account }),
  })
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new ApiError('invalid_request', { detail: `${issue?.path.join('.')} ${issue?.message}.` })
}

/** The file's contacts without those that creation would refuse; each refused one is reported with its line. */
async function leaveOut(
  app: App,
  caller: Caller,
  wanted: FromFile,
  { contacts, lines, skipped }: ContactTable,
): Promise<Pick<ContactTable, 'contacts' | 'skipped'>> {
  if (contacts.length === 0) return { contacts, skipped }
  const request = await checkRequest(app, caller, { body: bodyOf(wanted, contacts) })
  const { excluded } = await findRecipients(app, caller.workspace_id, request)
  const out = new Map(excluded.map((one) => [one.wanted.identifier, one]))
  const more = excluded.map((one) => ({ line: lines.get(one.wanted.contact) ?? 0, reason: exclusionOf(one) }))
  return {
    contacts: contacts.filter(({ identifier }) => !out.has(identifier)),
    skipped: [...skipped, ...more].sort((one, other) => one.line - other.line),
  }
}

/** A user of the workspace, with every scope. All other rules for API callers apply here too. */
async function requireUser(app: App, { workspace_id, user_id }: FromFile): Promise<Caller> {
  await requireWorkspace(app.db, workspace_id)
  const member =
    isUuid(user_id) &&
    (await app.db.maybe(sql`
      select 1 from memberships m join users u on u.id = m.user_id
      where m.workspace_id = ${workspace_id} and m.user_id = ${user_id}
        and m.ended_at is null and u.disabled_at is null`))
  if (!member) throw notFound('user', user_id)
  const caller: Caller = { workspace_id, user_id, scopes, via: { kind: 'terminal' } }
  requireNeeds(await app.settings.current(), caller, {
    scopes: ['send'],
    gates: ['campaigns', 'scoped_routing', 'campaign_mutation', 'extended'],
    allowlists: ['campaign_user', 'campaign_workspace'],
  })
  return caller
}
