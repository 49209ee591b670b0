/** What a campaign would or will do: who is excluded, the texts, the timetable, and the load on its accounts. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { type Db, type Sql, sql } from '../../db/sql.ts'
import type { Json } from '../../route.ts'
import { listAskers } from '../people/people.ts'
import type { CampaignRequest } from './campaign-request.ts'
import { findOverlap, requireStart } from './create.ts'
import {
  type CampaignRow,
  readStanding,
  type Standing,
  type StandingAccount,
  textlessRow,
  toPlanned,
} from './facts.ts'
import type { ForecastCampaign } from './forecast.ts'
import type { PlannedAccount } from './planning/plan.ts'
import { askersOf, knownUntil } from './planning/recipient-facts.ts'
import { messagesMax, nameOf, type PlayRow } from './play.ts'
import { type PlayFacts, type PlayPage, playInTurn } from './play-turns.ts'
import { codeOf, exclusionOf, findRecipients } from './recipients.ts'

interface Subject {
  readonly campaign: ForecastCampaign
  /** Accounts that write for it, or might. */
  readonly accounts: readonly string[]
  /** Its recipients: lists of `PlayRow` as JSON. */
  readonly rows: readonly string[]
}

/** Stores nothing. It lists recipients that creation would refuse, and forecasts the others. */
export async function previewCampaign(
  app: App,
  { workspace_id, via }: Caller,
  request: CampaignRequest,
  page: PlayPage,
): Promise<Json> {
  const read = async (db: Db) => {
    const standing = await readStanding(app, db, workspace_id)
    requireStart(standing.now, request)
    const { found, excluded } = await findRecipients({ db, secrets: app.secrets }, workspace_id, request)
    const subject = await subjectOf(db, workspace_id, request, found, standing.now)
    const overlap = await findOverlap(db, workspace_id, found)
    const only = request.pool.length === 1 ? request.pool[0] : undefined
    const nameAccount = (id: string | null) => standing.accounts.get(id ?? only ?? '')?.name
    // The contract has the code alone; people get a sentence too.
    const sentences = via.kind === 'session' // guard: sentences of a preview are for people
    return {
      head: {
        creatable: excluded.length === 0,
        warnings: [...request.warnings, ...overlap],
        excluded: excluded.map((one) => ({
          ...nameOf(one.wanted),
          code: codeOf(one),
          ...(sentences && { sentence: exclusionOf(one, nameAccount(one.wanted.account_id)) }),
        })),
      },
      facts: await factsOf(app, db, { subject, standing, workspace_id }),
    }
  }
  return playInTurn(app, workspace_id, page, () => app.db.snapshot(read))
}

/** The same answer for an existing campaign. */
export async function forecastCampaign(app: App, row: CampaignRow, page: PlayPage): Promise<Json> {
  const settings = await app.settings.current()
  const { workspace_id } = row
  const read = async (db: Db) => {
    const standing = await readStanding(app, db, workspace_id)
    const accounts = await db.rows<{ account_id: string; pool: boolean }>(sql`
      select account_id, pool from campaign_accounts where campaign_id = ${row.id} and (pool or has_open)`)
    const pool = accounts.filter((one) => one.pool).map(({ account_id }) => account_id)
    const subject = {
      campaign: { ...toPlanned(settings, row), id: row.id, pool },
      accounts: accounts.map(({ account_id }) => account_id),
      rows: await listPending(db, [row.id]),
    }
    const head = { creatable: true, warnings: [], excluded: [] }
    return { head, facts: await factsOf(app, db, { subject, standing, workspace_id }) }
  }
  return playInTurn(app, workspace_id, page, () => app.db.snapshot(read))
}

async function subjectOf(
  db: Db,
  workspace_id: string,
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
  const askers = await listAskersOf(db, workspace_id, found, request.pool)
  const due = later ? (request.scheduled_at?.getTime() ?? null) : 'now'
  const rows = found.map((one, position): PlayRow => {
    const { contact, account_id, chat_id, identifier, name, username } = one
    const cold = !warm.has(`${account_id}:${chat_id}`)
    return [
      ...([contact, campaign.id, position, account_id, chat_id, identifier, name, username] as const),
      ...(['queued', 0, null, due, null, false, cold] as const),
      // A chat that came with the name is asked about as well.
      ...([request.kind === 'contacts' && chat_id !== null ? 0 : null, askers.get(contact) ?? []] as const),
    ]
  })
  const accounts = [...new Set([...request.pool, ...found.flatMap(({ account_id }) => account_id ?? [])])]
  return { campaign, accounts, rows: [JSON.stringify(rows)] }
}

/** For each contact, the accounts of the pool that can ask who it is without a look-up. */
async function listAskersOf(
  db: Db,
  workspace_id: string,
  found: readonly { readonly contact: string }[],
  pool: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (pool.length === 0) return new Map()
  const given = {
    workspace_id: sql`${workspace_id}::uuid`,
    contact: sql`g.contact`,
    person_id: sql`null::uuid`,
  }
  const rows = await db.rows<{ contact: string; askers: readonly string[] }>(sql`
    select g.contact, askers from unnest(${found.map(({ contact }) => contact)}::text[]) as g (contact)
    cross join lateral (select ${listAskers(given, sql`${pool}::text[]`)} as askers) a where askers <> '{}'`)
  return new Map(rows.map(({ contact, askers }) => [contact, askers]))
}

/** The chats in which the person has written to the account. */
async function listWarm(
  db: Db,
  found: readonly { readonly account_id: string | null; readonly chat_id: string | null }[],
): Promise<ReadonlySet<string>> {
  const chats = found.filter(({ chat_id }) => chat_id !== null)
  const rows = await db.rows<{ key: string }>(sql`
    select g.account_id || ':' || g.chat_id as key
    from ${given(chats, { account_id: 'text', chat_id: 'bigint' })} as g
    where exists (
      select from messages m where m.account_id = g.account_id and m.chat_id = g.chat_id and not m.is_sender)`)
  return new Set(rows.map(({ key }) => key))
}

/** How many recipients are read at a time: each batch is one text, and the thread serves requests in between. */
const batchSize = 5_000

interface PendingBatch {
  readonly rows: string
  readonly count: number
  readonly campaign_id: string
  readonly position: number
}

/** Recipients that still wait in these campaigns, up to the limit of a play: lists of `PlayRow` as JSON. */
async function listPending(db: Db, campaign_ids: readonly string[]): Promise<string[]> {
  const texts: string[] = []
  let last: Pick<PendingBatch, 'campaign_id' | 'position'> | undefined
  for (let left = messagesMax; left > 0; left -= batchSize) {
    const batch = await db.maybe<PendingBatch>(pendingBatch(campaign_ids, last))
    if (batch) texts.push(batch.rows)
    if (!batch || batch.count < batchSize) break
    last = batch
  }
  return texts
}

function pendingBatch(
  campaign_ids: readonly string[],
  after: Pick<PendingBatch, 'campaign_id' | 'position'> | undefined,
): Sql {
  const beyond = after
    ? sql`and (r.campaign_id, r.position) > (${after.campaign_id}::uuid, ${after.position}::int)`
    : sql``
  return sql`
    with batch as (
      select r.*, coalesce(chat.read_by_them_id >= r.last_message_id, false) as read,
        r.step = 0 and not exists (
          select from messages m where m.account_id = r.account_id and m.chat_id = r.chat_id and not m.is_sender) as cold,
        ${knownUntil(sql`r.account_id`)} as known_until,
        case when r.step = 0 then ${askersOf(sql`writers.ids`)} else '{}' end as asked_by
      from campaign_recipients r join campaigns k on k.id = r.campaign_id
      cross join lateral (
        select case when r.account_id is not null then array[r.account_id] else array(
          select c.account_id from campaign_accounts c where c.campaign_id = r.campaign_id and c.pool) end as ids) writers
      left join chats chat on chat.account_id = r.account_id and chat.chat_id = r.chat_id
      where r.campaign_id = any(${campaign_ids}::uuid[]) and r.status in ('queued', 'waiting') ${beyond}
      order by r.campaign_id, r.position limit ${batchSize})
    select (
        select json_agg(json_build_array(b.id, b.campaign_id, b.position, b.account_id, b.chat_id::text, b.identifier,
          coalesce(b.name, b.told_name), b.username, b.status, b.step, ${ms(sql`b.last_sent_at`)}, ${ms(sql`b.next_action_at`)},
          ${ms(sql`b.unknown_since`)}, b.read, b.cold, ${ms(sql`b.known_until`)}, b.asked_by) order by b.campaign_id, b.position)::text
        from batch b) as rows,
      (select count(*)::int from batch) as count, l.campaign_id, l.position
    from batch l order by l.campaign_id desc, l.position desc limit 1`
}

/** Whole milliseconds, as a Date has them. */
function ms(time: Sql): Sql {
  return sql`floor(extract(epoch from ${time}) * 1000)`
}

interface PreviewFacts {
  readonly subject: Subject
  readonly standing: Standing
  readonly workspace_id: string
}

/** Includes the other campaigns and broadcasts that write from the same accounts. */
async function factsOf(
  app: App,
  db: Db,
  { subject, standing, workspace_id }: PreviewFacts,
): Promise<PlayFacts> {
  const { campaign, accounts, rows } = subject
  const settings = await app.settings.current()
  const found = await db.rows<CampaignRow & { pool: string[]; accounts: string[] }>(sql`
    select k.*, coalesce((
        select array_agg(c.account_id) from campaign_accounts c where c.campaign_id = k.id and c.pool), '{}') as pool,
      (select array_agg(c.account_id) from campaign_accounts c
        where c.campaign_id = k.id and (c.has_open or c.pool)) as accounts
    from (${textlessRow}) k
    where k.workspace_id = ${workspace_id} and k.status in ('scheduled', 'queued', 'sending')
      and k.id::text <> ${campaign.id} and exists (
        select from campaign_accounts c where c.campaign_id = k.id and c.account_id = any(${accounts})
          and (c.has_open or c.pool))`)
  const others = found.map((row) => ({ ...toPlanned(settings, row), id: row.id, pool: row.pool }))
  // Only accounts of this play: a change in any other account must not cause a new play.
  const used = new Set([...accounts, ...found.flatMap((row) => row.accounts)])
  return {
    head: {
      ...{ campaign, others, hours: standing.hours, pacing_ms: app.config.pacing_seconds * 1_000 },
      accounts: [...standing.accounts].flatMap(([id, one]) => (used.has(id) ? [[id, plannedOf(one)]] : [])),
    },
    rows: [
      ...rows,
      ...(await listPending(
        db,
        others.map(({ id }) => id),
      )),
    ],
    now: standing.now,
  }
}

/** Takes enabled for ready: whether a session is live now says nothing about the coming days. */
function plannedOf(account: StandingAccount): PlannedAccount {
  const { enabled, holds_pools: _, ...planned } = account
  return { ...planned, ready: enabled }
}
