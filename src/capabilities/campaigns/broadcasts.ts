/** A broadcast is a campaign of one message, without steps or quota, that no list shows. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import type { Paging } from '../../lib/cursor.ts'
import { ApiError } from '../../lib/errors.ts'
import { pageText, type Row } from '../../lib/page.ts'
import { memberName } from '../chats/chats.ts'
import { presentRecipients, totalsOf } from './campaign-pages.ts'
import { insertRecipients } from './create.ts'
import { type CampaignRow, campaignRow, readStanding } from './facts.ts'
import type { FoundRecipient } from './recipients.ts'

interface NewBroadcast {
  readonly message_text: string
  readonly audience_total: number
  readonly found: readonly FoundRecipient[]
  readonly key: string | undefined
}

export async function insertBroadcast(
  app: App,
  tx: Tx,
  { workspace_id, user_id }: Caller,
  { message_text, audience_total, found, key }: NewBroadcast,
): Promise<string> {
  const id = app.sources.newId()
  const { now } = await tx.one<{ now: Date }>(sql`
    insert into campaigns (id, workspace_id, user_id, kind, status, message_text, daily_quota_per_account,
      max_followups, audience_total, completed_at)
    values (${id}, ${workspace_id}, ${user_id}, 'broadcast', ${found.length === 0 ? 'completed' : 'queued'},
      ${message_text}, null, 0, ${audience_total}, case when ${found.length === 0} then domain_now() end)
    returning created_at as now`)
  // A campaign created with the same key must not derive the same recipient ids.
  const named_by = key === undefined ? ['campaign', id] : ['broadcast', key]
  await insertRecipients(tx, { workspace_id, campaign_id: id, found, pool: [], starts: now, named_by })
  return id
}

/** All broadcasts of the workspace, newest first, as JSON text. */
export async function listBroadcasts(
  { db }: App,
  { workspace_id }: Caller,
  { limit, paging: { after, next } }: { limit: number; paging: Paging },
): Promise<string> {
  const [created_at, id] = after ?? ['infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff']
  const rows = await db.lists<Row>(sql`
    select row_to_json(item)::text, k.created_at::text, k.id::text
    from (
      select * from campaigns k where k.workspace_id = ${workspace_id} and k.kind = 'broadcast'
        and (k.created_at, k.id) < (${created_at}::timestamptz, ${id}::uuid)
      order by k.created_at desc, k.id desc limit ${limit + 1}) k
    join users u on u.id = k.user_id
    cross join lateral (
      select sum(queued + submitting + waiting + completed + replied + failed + ambiguous + cancelled + suppressed)::int
        as recipients
      from campaign_accounts where campaign_id = k.id) n
    cross join lateral (
      select k.id as broadcast_id, k.status, k.message_text, k.audience_total, coalesce(n.recipients, 0) as recipients,
        k.audience_total > coalesce(n.recipients, 0) as capped, wire_time(k.created_at) as created_at,
        wire_time(k.started_at) as started_at, wire_time(k.completed_at) as completed_at, ${totalsOf} as totals,
        json_build_object('user_id', u.id, 'name', ${memberName}) as created_by) item
    order by k.created_at desc, k.id desc`)
  return pageText('broadcasts', rows, { limit, next })
}

/** Its progress recipient by recipient: there are at most thirty. */
export async function describeBroadcast(
  app: App,
  { workspace_id, via }: Caller,
  id: string,
): Promise<Record<string, unknown>> {
  const settings = await app.settings.current()
  return app.db.snapshot(async (db) => {
    const row = await db.maybe<CampaignRow>(sql`
      ${campaignRow} where k.id = ${id} and k.workspace_id = ${workspace_id} and k.kind = 'broadcast'`)
    if (!row) throw new ApiError('not_found', { detail: 'This workspace has no such broadcast.' })
    const standing = await readStanding(app, db, workspace_id)
    const sentences = via.kind === 'session' // guard: sentences of a broadcast are for people
    const page = { row, standing, after: -1, limit: 1_000, sentences }
    const { people } = await presentRecipients(db, settings, page)
    const shown = await db.one<Record<string, unknown> & { audience_total: number }>(sql`
      select k.id as broadcast_id, k.status, k.message_text, k.audience_total, k.created_at, k.started_at,
        k.completed_at, ${totalsOf} as totals
      from campaigns k where k.id = ${id}`)
    const recipients = people.length
    return { ...shown, recipients, capped: shown.audience_total > recipients, people }
  })
}
