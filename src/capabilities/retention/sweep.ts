/** Clears what is older than its workspace keeps it: a small batch of one workspace after the other. */
import type { App } from '../../app.ts'
import { type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import { clearOperations } from '../../ledger/clearing.ts'
import { clearEndedCampaign } from '../campaigns/campaigns.ts'
import { clearMessages, type MessageKey } from '../messages/messages.ts'
import { clearNotes } from '../notes/notes.ts'
import { oldMessages, oldNotes, oldOperations, type Retention } from './old-content.ts'

/** Rows of one transaction. It locks their chats, whose sends and updates wait meanwhile. */
const batchMax = 100
/** Search finds none of them at once. Their words leave its lists within a day, because that rewrites all lists of an account. */
const wordsSeconds = 86_400

/** Where the walk of each workspace and kind of content has come to in this round. */
export type Reached = Map<string, Date>

export interface KeepingWorkspace extends Retention {
  readonly workspace_id: string
}

/** The next workspace that does not keep everything. */
export function nextKeeping(db: Db, after: string | null): Promise<KeepingWorkspace | undefined> {
  return db.maybe<KeepingWorkspace>(sql`
    select * from retention where (${after}::uuid is null or workspace_id > ${after}::uuid)
    order by workspace_id limit 1`)
}

interface OldRow {
  readonly id: string
  readonly at: Date
}

/** Clears one batch of each kind. Returns how many rows were cleared. */
export async function clearOld(app: App, keeping: KeepingWorkspace, reached: Reached): Promise<number> {
  const { workspace_id, messages_days, operations_days, recipients_days, notes_days } = keeping
  const each = [
    messages_days !== null &&
      walk<OldRow & MessageKey>(app, keeping, {
        ...{ kind: 'messages', days: messages_days, reached, old: oldMessages },
        clear: async (tx, rows) => {
          const cleared = await clearMessages(tx, rows, { words_within_seconds: wordsSeconds })
          return { cleared, accounts: [...new Set(rows.map(({ account_id }) => account_id))] }
        },
      }),
    operations_days !== null &&
      walk<OldRow>(app, keeping, {
        ...{ kind: 'operations', days: operations_days, reached, old: oldOperations },
        clear: async (tx, rows) => ({ cleared: await clearOperations(tx, rows.map(idOf)) }),
      }),
    notes_days !== null &&
      walk<OldRow>(app, keeping, {
        ...{ kind: 'notes', days: notes_days, reached, old: oldNotes },
        clear: async (tx, rows) => ({ cleared: await clearNotes(tx, rows.map(idOf)) }),
      }),
    recipients_days !== null &&
      inTurn(app, workspace_id, (tx) =>
        clearEndedCampaign(tx, { workspace_id, days: recipients_days, limit: batchMax }),
      ),
  ]
  let cleared = 0
  for (const one of each) if (one) cleared += await one()
  return cleared
}

const idOf = ({ id }: OldRow): string => id

interface KindOfContent<Row> {
  readonly kind: string
  readonly days: number
  readonly reached: Reached
  readonly old: (walk: {
    readonly workspace_id: string
    readonly days: number
    readonly limit: number
    readonly after: Date | null
  }) => Sql
  readonly clear: (
    tx: Tx,
    rows: readonly Row[],
  ) => Promise<{ readonly cleared: number; readonly accounts?: readonly string[] }>
}

function walk<Row extends OldRow>(
  app: App,
  { workspace_id }: KeepingWorkspace,
  { kind, days, reached, old, clear }: KindOfContent<Row>,
): () => Promise<number> {
  const place = `${kind}:${workspace_id}`
  return inTurn(app, workspace_id, async (tx) => {
    const after = reached.get(place) ?? null
    const rows = await tx.rows<Row>(old({ workspace_id, days, limit: batchMax, after }))
    const last = rows.at(-1)
    if (!last) return 0
    const { cleared, accounts = [] } = await clear(tx, rows)
    reached.set(place, last.at)
    for (const account_id of accounts) app.wake.mark({ workspace_id, kind: 'messages', account_id })
    return cleared
  })
}

/** Of several processes, one at a time clears for a workspace; a change of its settings waits for a batch at most. */
function inTurn(app: App, workspace_id: string, work: (tx: Tx) => Promise<number>): () => Promise<number> {
  return () =>
    app.db.transaction(async (tx) => {
      const mine = await tx.maybe(sql`
        select 1 from retention where workspace_id = ${workspace_id} for no key update skip locked`)
      return mine ? work(tx) : 0 // guard: one process clears for a workspace
    })
}
