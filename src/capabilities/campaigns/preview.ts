/** What a campaign would do, or will: who is left out, the texts, the timetable, and the load on its accounts. */
import { setImmediate } from 'node:timers/promises'
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { type Db, sql } from '../../db/sql.ts'
import type { Paging } from '../../lib/cursor.ts'
import { branches } from './campaign-body.ts'
import type { CampaignRequest } from './campaign-request.ts'
import { findOverlap, requireStart } from './create.ts'
import { type CampaignRow, campaignRow, readStanding, type Standing, toPlanned } from './facts.ts'
import { Forecast, type ForecastCampaign, type ForecastRecipient, type Foretold } from './forecast.ts'
import { formOf, render } from './personalize.ts'
import { trackOf } from './plan.ts'
import { codeOf, findRecipients } from './recipients.ts'

/** Of how many recipients the texts are shown. */
const textsMax = 20
/** What is played through at most: beyond it the end is not foretold. */
const messagesMax = 200_000

/** A recipient as the answer names it. */
interface Named extends ForecastRecipient {
  readonly identifier: string | null
}

interface Subject {
  readonly campaign: ForecastCampaign
  readonly recipients: readonly Named[]
}

interface Page {
  readonly limit: number
  readonly paging: Paging
}

/** Stores nothing, and answers where creation would refuse recipients: they are named, and the others are foretold. */
export async function previewCampaign(
  app: App,
  { workspace_id }: Caller,
  request: CampaignRequest,
  page: Page,
): Promise<object> {
  const { head, scene } = await app.db.snapshot(async (db) => {
    const standing = await readStanding(app, db, workspace_id)
    requireStart(standing.now, request)
    const { found, excluded } = await findRecipients(db, workspace_id, request)
    const subject = await subjectOf(db, request, found, standing.now)
    const overlap = await findOverlap(db, workspace_id, found)
    return {
      head: {
        creatable: excluded.length === 0,
        warnings: [...request.warnings, ...overlap],
        excluded: excluded.map((one) => ({ ...nameOf(one.wanted), code: codeOf(one) })),
      },
      scene: { subject, standing, others: await listOthers(app, db, { subject, workspace_id }) },
    }
  })
  return { ...head, ...(await foretell(app, scene, page)) }
}

/** The same answer for a campaign that is there. */
export async function forecastCampaign(app: App, row: CampaignRow, page: Page): Promise<object> {
  const settings = await app.settings.current()
  const { workspace_id } = row
  const scene = await app.db.snapshot(async (db) => {
    const standing = await readStanding(app, db, workspace_id)
    const pool = await db.rows<{ account_id: string }>(sql`
      select account_id from campaign_accounts where campaign_id = ${row.id} and pool`)
    const campaign = {
      ...toPlanned(settings, row),
      id: row.id,
      pool: pool.map(({ account_id }) => account_id),
    }
    const subject = { campaign, recipients: await listPending(db, [row.id]) }
    return { subject, standing, others: await listOthers(app, db, { subject, workspace_id }) }
  })
  return { creatable: true, warnings: [], excluded: [], ...(await foretell(app, scene, page)) }
}

async function subjectOf(
  db: Db,
  request: CampaignRequest,
  found: Awaited<ReturnType<typeof findRecipients>>['found'],
  now: Date,
): Promise<Subject> {
  const later = request.scheduled_at !== null && request.scheduled_at > now
  const campaign: ForecastCampaign = {
    ...request,
    id: 'preview',
    status: later ? 'scheduled' : 'queued',
    allowed: true,
  }
  const warm = await listWarm(db, found)
  const recipients = found.map((one, position) => ({
    ...one,
    id: one.contact,
    campaign_id: 'preview',
    position,
    status: 'queued' as const,
    step: 0,
    last_sent_at: null,
    next_action_at: later ? request.scheduled_at : now,
    read: false,
    unknown_since: null,
    cold: !warm.has(`${one.account_id}:${one.chat_id}`),
  }))
  return { campaign, recipients }
}

/** The chats in which somebody has written to the account. */
async function listWarm(
  db: Db,
  found: readonly { readonly account_id: string | null; readonly chat_id: string | null }[],
): Promise<ReadonlySet<string>> {
  const chats = found.filter(({ chat_id }) => chat_id !== null)
  const rows = await db.rows<{ key: string }>(sql`
    select g.account_id || ':' || g.chat_id as key
    from unnest(${chats.map(({ account_id }) => account_id)}::text[],
      ${chats.map(({ chat_id }) => chat_id)}::bigint[]) as g (account_id, chat_id)
    where exists (
      select from messages m where m.account_id = g.account_id and m.chat_id = g.chat_id and not m.is_sender)`)
  return new Set(rows.map(({ key }) => key))
}

/** Whoever still waits in these campaigns, as far as the forecast goes. */
function listPending(db: Db, campaign_ids: readonly string[]): Promise<Named[]> {
  return db.rows<Named>(sql`
    select r.id, r.campaign_id, r.position, r.account_id, r.chat_id::text, r.identifier, r.name, r.username, r.status,
      r.step, r.last_sent_at, r.next_action_at, r.unknown_since,
      coalesce(chat.read_by_them_id >= r.last_message_id, false) as read,
      r.step = 0 and not exists (
        select from messages m where m.account_id = r.account_id and m.chat_id = r.chat_id and not m.is_sender) as cold
    from campaign_recipients r left join chats chat on chat.account_id = r.account_id and chat.chat_id = r.chat_id
    where r.campaign_id = any(${campaign_ids}::uuid[]) and r.status in ('queued', 'waiting')
    order by r.campaign_id, r.position limit ${messagesMax}`)
}

/** The other campaigns and broadcasts that write from the same accounts. */
async function listOthers(
  app: App,
  db: Db,
  { subject, workspace_id }: { subject: Subject; workspace_id: string },
): Promise<{ campaigns: ForecastCampaign[]; recipients: Named[] }> {
  const { campaign, recipients } = subject
  const used = [...new Set([...campaign.pool, ...recipients.flatMap(({ account_id }) => account_id ?? [])])]
  const settings = await app.settings.current()
  const rows = await db.rows<CampaignRow & { pool: string[] }>(sql`
    select k.*, coalesce((
      select array_agg(c.account_id) from campaign_accounts c where c.campaign_id = k.id and c.pool), '{}') as pool
    from (${campaignRow}) k
    where k.workspace_id = ${workspace_id} and k.status in ('scheduled', 'queued', 'sending')
      and k.id::text <> ${campaign.id} and exists (
        select from campaign_accounts c where c.campaign_id = k.id and c.account_id = any(${used})
          and (c.has_open or c.pool))`)
  const campaigns = rows.map((row) => ({ ...toPlanned(settings, row), id: row.id, pool: row.pool }))
  return {
    campaigns,
    recipients: await listPending(
      db,
      rows.map(({ id }) => id),
    ),
  }
}

interface Scene {
  readonly subject: Subject
  readonly standing: Standing
  readonly others: { readonly campaigns: readonly ForecastCampaign[]; readonly recipients: readonly Named[] }
}

/** Played through without a connection to the database, which others need meanwhile. */
async function foretell(app: App, { subject, standing, others }: Scene, page: Page): Promise<object> {
  const { campaign, recipients } = subject
  const accounts = new Map([...standing.accounts].map(([id, one]) => [id, { ...one, ready: one.enabled }]))
  const forecast = new Forecast({
    campaigns: [campaign, ...others.campaigns],
    recipients: [...recipients, ...others.recipients],
    accounts,
    hours: standing.hours,
    now: standing.now,
    pacing_ms: app.config.pacing_seconds * 1_000,
  })
  const { told, whole } = await play(forecast)
  const own = told.filter(({ campaign_id }) => campaign_id === campaign.id)
  return {
    texts: recipients.slice(0, textsMax).map((one) => ({ ...nameOf(one), messages: textsOf(campaign, one) })),
    ...timetableOf(recipients, own, page),
    load: loadOf(told, campaign.id),
    end: whole ? (own.at(-1)?.at ?? null) : null,
  }
}

/** Others are served in between: a long campaign takes a while. */
async function play(forecast: Forecast): Promise<{ told: Foretold[]; whole: boolean }> {
  const told: Foretold[] = []
  for (const one of forecast.steps()) {
    if (!one) continue
    told.push(one)
    if (told.length === messagesMax) return { told, whole: false }
    if (told.length % 1_000 === 0) await setImmediate()
  }
  return { told, whole: true }
}

interface Person {
  readonly account_id: string | null
  readonly chat_id: string | null
  readonly identifier: string | null
}

function nameOf({ account_id, chat_id, identifier }: Person) {
  return { account_id, chat_id: chat_id === null ? null : `platform:chat:${chat_id}`, identifier }
}

/** Every text that could reach them; null where a contact's name is not known yet. */
function textsOf(campaign: ForecastCampaign, recipient: Named): object[] {
  const form = formOf(campaign.kind)
  const show = (text: string) => {
    const shown = render(text, form, recipient)
    return 'text' in shown ? shown.text : null
  }
  const first = { step: 0, branch: null, variants: [show(campaign.message_text)] }
  const steps = branches.flatMap((branch) =>
    trackOf(campaign, branch).map(({ variants }, at) => ({
      step: at + 1,
      branch,
      variants: variants.map(show),
    })),
  )
  return [first, ...steps]
}

function timetableOf(recipients: readonly Named[], told: readonly Foretold[], { limit, paging }: Page) {
  const after = Number(paging.after?.[0] ?? -1)
  const beyond = recipients.filter(({ position }) => position > after)
  const shown = beyond.slice(0, limit)
  const messages = Map.groupBy(told, ({ recipient_id }) => recipient_id)
  const more = beyond.length > limit
  return {
    timetable: shown.map((one) => ({
      ...nameOf(one),
      messages: (messages.get(one.id) ?? []).map(({ step_no, branch, account_id, at }) => ({
        step: step_no,
        branch,
        account_id,
        at,
      })),
    })),
    next_cursor: more ? paging.next([shown.at(-1)?.position ?? 0]) : null,
    has_more: more,
  }
}

/** How much each account sends on each day: of this campaign, and of all. */
function loadOf(told: readonly Foretold[], campaign_id: string): object[] {
  const days = Map.groupBy(told, ({ account_id, day }) => `${day} ${account_id}`)
  return [...days.entries()]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([, all]) => {
      const [{ account_id, day } = { account_id: '', day: '' }] = all
      const messages = all.filter((one) => one.campaign_id === campaign_id).length
      return messages === 0 ? [] : [{ account_id, day, messages, total: all.length }]
    })
}
