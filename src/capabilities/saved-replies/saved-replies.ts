/** Texts that a team uses in its answers. Every member of the workspace may use and change them. */
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid, newId } from '../../lib/ids.ts'
import { notFound } from '../../lib/names.ts'

/** One answer returns them all, so this bounds its size: 500 of the longest texts have at most 8 MB. */
const savedRepliesMax = 500

interface SavedReply {
  readonly id: string
  readonly title: string
  readonly text: string
  readonly updated_at: Date
}

interface SavedReplyRef {
  readonly workspace_id: string
  readonly id: string
}

const fields = sql`id, title, text, updated_at`

export function listSavedReplies(db: Db, workspace_id: string): Promise<SavedReply[]> {
  return db.rows<SavedReply>(sql`
    select ${fields} from saved_replies where workspace_id = ${workspace_id} order by title, id`)
}

export async function createSavedReply(
  tx: Tx,
  { workspace_id, title, text }: { workspace_id: string; title: string; text: string },
): Promise<SavedReply> {
  // The lock lets one request at a time create a reply in the workspace, so that the count is exact.
  // guard: saved replies counted one at a time
  await tx.one(sql`select id from workspaces where id = ${workspace_id} for no key update`)
  const { stored } = await tx.one<{ stored: number }>(sql`
    select count(*)::int as stored from saved_replies where workspace_id = ${workspace_id}`)
  if (stored >= savedRepliesMax) {
    throw new ApiError('conflict', {
      detail: `A workspace can have at most ${savedRepliesMax} saved replies. Delete one first.`,
    })
  }
  return tx.one<SavedReply>(sql`
    insert into saved_replies (id, workspace_id, title, text)
    values (${newId()}, ${workspace_id}, ${title}, ${text}) returning ${fields}`)
}

/** Another workspace's reply and a missing one get the same answer. */
export async function updateSavedReply(
  tx: Tx,
  { workspace_id, id }: SavedReplyRef,
  { title, text }: { title?: string | undefined; text?: string | undefined },
): Promise<SavedReply> {
  const changed =
    isUuid(id) &&
    (await tx.maybe<SavedReply>(sql`
      update saved_replies set title = coalesce(${title ?? null}, title), text = coalesce(${text ?? null}, text),
        updated_at = domain_now()
      where id = ${id}
        and workspace_id = ${workspace_id} -- guard: a saved reply of the workspace is changed
      returning ${fields}`))
  if (!changed) throw notFound('saved reply', id)
  return changed
}

export async function deleteSavedReply(tx: Tx, { workspace_id, id }: SavedReplyRef): Promise<void> {
  const gone =
    isUuid(id) &&
    (await tx.run(sql`
      delete from saved_replies where id = ${id}
        and workspace_id = ${workspace_id} -- guard: a saved reply of the workspace is deleted
    `))
  if (!gone) throw notFound('saved reply', id)
}
