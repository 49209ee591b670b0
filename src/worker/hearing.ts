/** What people write to us: it ends their sequences, and it may ask us to stop. */
import type { App } from '../app.ts'
import { noteReplies } from '../capabilities/campaigns/running/running.ts'
import type { Seen } from '../capabilities/messages/messages.ts'
import { noteOptOuts } from '../capabilities/suppressions/suppressions.ts'
import type { AccountKey } from '../contract.ts'
import type { Tx } from '../db/sql.ts'
import type { NewEvent } from '../events/emit.ts'

/**
 * Hears messages in the transaction that stores them, whether an update, an edit or a page of history brought them: whatever
 * stores messages of the other side calls this. A message that history stored is heard again when its update comes. By then
 * it changes nothing, except for an opt-out that counts only because it is live. Returns the events.
 */
export async function hear(
  app: App,
  tx: Tx,
  account: AccountKey,
  stored: readonly Seen[],
): Promise<NewEvent[]> {
  const heard = stored.filter(({ chat_id, message }) => !message.is_sender && isPrivate(chat_id)) // guard: only people are heard
  const replied = await noteReplies(app, tx, account, heard) // guard: a reply ends what waits
  noteOptOuts(app, tx, account, heard)
  return replied
}

/** Only a private chat has the number of a person, which is positive. */
function isPrivate(chat_id: string): boolean {
  return !chat_id.startsWith('-')
}
