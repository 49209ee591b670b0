/** What the accounts show of a person who is erased. */
import type { Tx } from '../../db/sql.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import { erasePeers } from '../accounts/accounts.ts'
import { eraseChats } from '../chats/chats.ts'
import { eraseContacts } from '../contacts/contacts.ts'
import { eraseHistory } from '../history/history.ts'
import { eraseFiles } from '../media/media.ts'

/** From the commit on no list has the person: chats, the inbox, the board, contacts. What is left, a worker removes. */
export async function hidePerson(tx: Tx, account_ids: readonly string[], number: ChatNumber): Promise<void> {
  await eraseChats(tx, account_ids, number)
  await eraseContacts(tx, account_ids, number)
}

/** Also how far chats were fetched, stored files, and what the adapters keep. */
export async function eraseShown(tx: Tx, account_ids: readonly string[], number: ChatNumber): Promise<void> {
  await hidePerson(tx, account_ids, number)
  await eraseHistory(tx, account_ids, number)
  await eraseFiles(tx, account_ids, number)
  await erasePeers(tx, account_ids, number)
}
