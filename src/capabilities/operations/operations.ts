/** The ledger as a person sees it: what nobody knows, and their note on it. */
import { type AmbiguousRow, findShown, listOperations } from '../../access/ledger/proofs.ts'
import { closeByPerson } from '../../access/ledger/settle.ts'
import type { App } from '../../app.ts'
import type { Db } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { notFound } from '../../lib/names.ts'
import { quote } from '../../lib/text.ts'
import { type Actor, record } from '../audit/audit.ts'

export type ClosedAs = 'sent' | 'not_sent'

/** The newest first. `ambiguous`: those that nobody knows of and nobody has noted anything on. */
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

/** A note for people: the operation stays unknown, and its key is never used again. */
export async function closeOperation(
  app: App,
  actor: Actor,
  { id, closed_as }: { id: string; closed_as: ClosedAs },
): Promise<AmbiguousRow> {
  if (!isUuid(id)) throw malformed('an operation', id, 'operation')
  return app.db.transaction(async (tx) => {
    const noted = await closeByPerson(tx, app.operations, { id, closed_as })
    const known = await findShown(tx, id)
    if (!noted || !known) {
      if (!known) throw notFound('operation', id)
      throw new ApiError('conflict', {
        detail: `The operation is ${known.state}: only an ambiguous one needs a person's word.`,
      })
    }
    const { workspace_id } = known
    await record(app, tx, actor, {
      action: 'operation.closed',
      target: id,
      workspace_id,
      detail: { closed_as },
    })
    return known
  })
}

function malformed(what: string, id: string, missing: string): ApiError {
  return new ApiError('not_found', { detail: `${quote(id)} is not ${what}.`, missing })
}
