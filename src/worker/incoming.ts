/** What people write to us: a reply ends their sequences, and may opt them out. */
import type { App } from '../app.ts'
import { noteReplies } from '../capabilities/campaigns/running/running.ts'
import type { ReceivedMessage } from '../capabilities/messages/messages.ts'
import { noteOptOuts } from '../capabilities/suppressions/suppressions.ts'
import type { AccountKey } from '../contract.ts'
import type { Tx } from '../db/sql.ts'
import type { NewEvent } from '../events/emit.ts'

/**
 * Handles incoming messages in the transaction that stores them, whether from an update, an edit or a page of history:
 * whatever stores messages of the other side calls this. A message from history is handled again when its update arrives.
 * By then it changes nothing, except an opt-out that counts only because it is live. Returns the events.
 */
export async function handleIncoming(
  app: App,
  tx: Tx,
  account: AccountKey,
  stored: readonly ReceivedMessage[],
): Promise<NewEvent[]> {
  const fromPeople = stored.filter(({ chat_id, message }) => !message.is_sender && isPrivate(chat_id)) // guard: only messages of people are handled
  const replied = await noteReplies(app, tx, account, fromPeople) // guard: a reply ends what waits
  noteOptOuts(app, tx, account, fromPeople)
  return replied
}

/** Only a private chat has a person's number, which is positive. */
function isPrivate(chat_id: string): boolean {
  return !chat_id.startsWith('-')
}
