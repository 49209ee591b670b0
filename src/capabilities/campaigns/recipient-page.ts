/** The recipients of a campaign as people read them: filtered, each with its sentence. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { type Db, sql } from '../../db/sql.ts'
import { readPaging } from '../../lib/cursor.ts'
import { memberName } from '../chats/chats.ts'
import { type ChosenRecipients, presentRecipients, requireCampaign } from './campaign-pages.ts'
import { readStanding } from './facts.ts'

interface RecipientQuery extends ChosenRecipients {
  readonly cursor?: string | undefined
  readonly limit: number
}

export async function listCampaignRecipients(
  app: App,
  { workspace_id }: Caller,
  { id, query }: { id: string; query: RecipientQuery },
): Promise<Record<string, unknown>> {
  const { status, name, limit, cursor } = query
  const filters = { campaign_id: id, status, name }
  const scope = { workspace_id, operation: 'list_recipients', filters }
  const { after, next } = readPaging(app.secrets, scope, cursor)
  const settings = await app.settings.current()
  return app.db.snapshot(async (db) => {
    const row = await requireCampaign(db, workspace_id, id)
    const standing = await readStanding(app, db, workspace_id)
    const place = { after: Number(after?.[0] ?? -1), limit }
    const page = { row, standing, ...place, sentences: true, chosen: { status, name } }
    const { people, last } = await presentRecipients(db, settings, page)
    return {
      created_by: await readCreator(db, row.user_id),
      recipients: people,
      next_cursor: last === undefined ? null : next([last]),
      has_more: last !== undefined,
    }
  })
}

export function readCreator(db: Db, user_id: string): Promise<{ user_id: string; name: string }> {
  return db.one(sql`select u.id as user_id, ${memberName} as name from users u where u.id = ${user_id}`)
}
