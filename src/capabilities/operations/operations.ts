/** The ledger for operators: listing operations, and closing ambiguous ones with a note. */
import { type AmbiguousRow, findShown, listOperations, noteClosed } from '../../access/ledger/proofs.ts'
import type { App } from '../../app.ts'
import type { Db } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { notFound } from '../../lib/names.ts'
import { quote } from '../../lib/text.ts'
import { type Actor, record } from '../audit/audit.ts'

export type ClosedAs = 'sent' | 'not_sent'

/** The newest first. `ambiguous`: those whose outcome is unknown and that nobody has closed. */
export async function listLedger(
  db: Db,
  wanted: { workspace_id?: string | undefined; ambiguous: boolean },
): Promise<AmbiguousRow[]> {
  const { workspace_id, ambiguous } = wanted
  if (workspace_id !== undefined && !isUuid(workspace_id)) {
    throw malformed('a workspace', workspace_id, 'workspace')
  }
  return listOperations(db, { workspace_id, ambiguous })
}

/** Records what a person found out. The operation stays ambiguous, and its key never runs again. */
export async function closeOperation(
  app: App,
  actor: Actor,
  { id, closed_as }: { id: string; closed_as: ClosedAs },
): Promise<AmbiguousRow> {
  if (!isUuid(id)) throw malformed('an operation', id, 'operation')
  return app.db.transaction(async (tx) => {
    const closed = await noteClosed(tx, { id, closed_as })
    if (!closed) {
      const known = await findShown(tx, id)
      if (!known) throw notFound('operation', id)
      throw new ApiError('conflict', {
        detail: `The operation is ${known.state}: only an ambiguous one needs a person's word.`,
      })
    }
    const { workspace_id } = closed
    await record(app, tx, actor, {
      action: 'operation.closed',
      target: id,
      workspace_id,
      detail: { closed_as },
    })
    return closed
  })
}

function malformed(what: string, id: string, missing: string): ApiError {
  return new ApiError('not_found', { detail: `${quote(id)} is not ${what}.`, missing })
}
