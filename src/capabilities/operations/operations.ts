/** The ledger as a person sees it: what nobody knows, and their note on it. */
import { type AmbiguousRow, findShown, listOperations, noteClosed } from '../../access/ledger/proofs.ts'
import type { App } from '../../app.ts'
import type { Db } from '../../db/sql.ts'
import { Refusal } from '../../lib/errors.ts'
import { quote } from '../../lib/text.ts'
import { type Actor, record } from '../audit/audit.ts'

export type ClosedAs = 'sent' | 'not_sent'
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The newest first. `ambiguous`: those that nobody knows of and nobody has noted anything on. */
export function listLedger(
  db: Db,
  wanted: { workspace_id?: string | undefined; ambiguous: boolean },
): Promise<AmbiguousRow[]> {
  const { workspace_id, ambiguous } = wanted
  if (workspace_id !== undefined && !uuid.test(workspace_id)) {
    throw new Refusal(`${quote(workspace_id)} is not a workspace. \`parley workspace list\` names them.`)
  }
  return listOperations(db, { workspace_id, ambiguous })
}

/** A note for people: the operation stays unknown, and its key is never used again. */
export async function closeOperation(
  app: App,
  actor: Actor,
  { id, closed_as }: { id: string; closed_as: ClosedAs },
): Promise<AmbiguousRow> {
  if (!uuid.test(id))
    throw new Refusal(`${quote(id)} is not an operation. \`parley operation list\` names them.`)
  return app.db.transaction(async (tx) => {
    const closed = await noteClosed(tx, { id, closed_as })
    if (!closed) {
      const known = await findShown(tx, id)
      if (!known)
        throw new Refusal(`There is no operation ${quote(id)}. \`parley operation list\` names them.`)
      throw new Refusal(`The operation is ${known.state}: only an ambiguous one needs a person's word.`)
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
