/** Clears the texts of notes in the answers that earlier releases stored. Ends for good once all are read. */
import type { App } from '../../app.ts'
import { findSecretUse } from '../../db/secret-use.ts'
import { sql } from '../../db/sql.ts'
import { clearOperations } from '../../ledger/clearing.ts'
import type { Loop, MakeLoops } from '../../loop.ts'

/** Answers read in one transaction, so that none holds its locks for long. */
const readAtOnce = 500
const restMs = 60_000

export const loops: MakeLoops = () => [
  { name: 'clear-note-answers', restMs, step: (app) => clearNoteAnswers(app) } satisfies Loop,
]

interface Reached {
  /** Null: none yet. */
  readonly workspace_id: string | null
  readonly key: string
}

/** Reads the next answers, by workspace and key. Returns whether there are more. */
export async function clearNoteAnswers({ db }: Pick<App, 'db'>, limit = readAtOnce): Promise<boolean> {
  if (!(await findSecretUse(db))?.addresses_sealed) return false // guard: an older process still stores texts in answers
  return db.transaction(async (tx) => {
    const reached = await tx.maybe<Reached>(sql`
      select after_workspace_id as workspace_id, after_key as key from note_answers
      where done_at is null for update skip locked`)
    if (!reached) return false
    const { key, workspace_id } = reached
    const read = await tx.rows<{ id: string; key: string; has_text: boolean }>(sql`
      select id, idempotency_key as key, reply_body -> 'note' ->> 'text' <> '' as has_text from operations
      where workspace_id = ${workspace_id} and kind = 'create_note' and idempotency_key > ${key}
      order by idempotency_key limit ${limit}`)
    await clearOperations(
      tx,
      read.flatMap(({ id, has_text }) => (has_text ? [id] : [])),
    )
    const last = read.at(-1)
    if (last && read.length === limit) {
      await tx.run(sql`update note_answers set after_key = ${last.key}`)
      return true
    }
    const next = await tx.maybe<{ id: string }>(sql`
      select id from workspaces where ${workspace_id}::uuid is null or id > ${workspace_id}::uuid order by id limit 1`)
    await tx.run(sql`
      update note_answers set after_workspace_id = ${next?.id ?? workspace_id}, after_key = '',
        done_at = case when ${next === undefined} then domain_now() end`)
    return next !== undefined
  })
}
