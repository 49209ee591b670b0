/** How long a workspace keeps texts, files and names. What is older is cleared by a loop; rows, counts and proofs stay. */
import type { App, Topic } from '../../app.ts'
import { type Db, sql } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { type Actor, record } from '../audit/audit.ts'
import { countOld, type OldContent, type Retention } from './old-content.ts'

export { type OldContent, oldMax, type Retention } from './old-content.ts'

/** A change may have made something old: the loop looks at once. */
export const retentionChanged: Topic = { topic: 'retention' }

export const daysMax = 3650
/** A report is read for a while after its campaign. */
export const recipientsDaysMin = 30

export const keepsEverything: Retention = {
  messages_days: null,
  operations_days: null,
  recipients_days: null,
  notes_days: null,
}

export async function readRetention(db: Db, workspace_id: string): Promise<Retention> {
  const row = await db.maybe<Retention>(sql`
    select messages_days, operations_days, recipients_days, notes_days from retention where workspace_id = ${workspace_id}`)
  return row ?? keepsEverything
}

/** What these settings would clear now, counted up to `oldMax` of each. Changes nothing. */
export async function previewRetention(
  db: Db,
  { workspace_id, retention }: { readonly workspace_id: string; readonly retention: Retention },
): Promise<OldContent> {
  requireDays(retention)
  return countOld(db, workspace_id, retention)
}

export async function setRetention(
  app: App,
  actor: Actor,
  { workspace_id, retention }: { readonly workspace_id: string; readonly retention: Retention },
): Promise<Retention> {
  requireDays(retention)
  const { messages_days, operations_days, recipients_days, notes_days } = retention
  const detail = { messages_days, operations_days, recipients_days, notes_days }
  await app.db.transaction(async (tx) => {
    await tx.run(sql`
      insert into retention (workspace_id, messages_days, operations_days, recipients_days, notes_days)
      values (${workspace_id}, ${messages_days}, ${operations_days}, ${recipients_days}, ${notes_days})
      on conflict (workspace_id) do update set messages_days = excluded.messages_days,
        operations_days = excluded.operations_days, recipients_days = excluded.recipients_days,
        notes_days = excluded.notes_days`)
    await record(app, tx, actor, { action: 'retention.changed', target: workspace_id, workspace_id, detail })
  })
  app.wake.signal(retentionChanged)
  return detail
}

function requireDays(retention: Retention): void {
  for (const [name, days] of Object.entries(retention)) {
    const least = name === 'recipients_days' ? recipientsDaysMin : 1 // guard: names are kept for a month
    if (days === null || (Number.isInteger(days) && days >= least && days <= daysMax)) continue
    throw new ApiError('invalid_request', {
      detail: `${name} must be null, which keeps everything, or a whole number from ${least} to ${daysMax}.`,
    })
  }
}
