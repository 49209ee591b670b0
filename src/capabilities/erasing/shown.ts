/** What the accounts show of a person who is erased: chats, contacts, history, files and what the adapters keep. */
import { sql, type Tx } from '../../db/sql.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import type { Person } from '../../platform/port.ts'
import { erasePeers } from '../accounts/accounts.ts'
import { eraseChats, refreshLastMessages, storeChats } from '../chats/chats.ts'
import { eraseContacts, storeContacts } from '../contacts/contacts.ts'
import { eraseHistory } from '../history/history.ts'
import { eraseFiles } from '../media/media.ts'

/** Where they have not written again. */
export async function eraseShown(tx: Tx, account_ids: readonly string[], number: ChatNumber): Promise<void> {
  await eraseChats(tx, account_ids, number)
  await eraseContacts(tx, account_ids, number)
  await eraseHistory(tx, account_ids, number)
  await eraseFiles(tx, account_ids, number)
  await erasePeers(tx, account_ids, number)
}

interface ShownChat {
  readonly account_id: string
  readonly kind: 'private'
  readonly name: string
  readonly username: string | null
  readonly unread_count: number
  readonly participants: readonly Omit<Person, 'phone'>[]
}

/** Where they have: what the team noted goes, and what the account has shown since stays. */
export async function renewShown(
  tx: Tx,
  workspace_id: string,
  { account_ids, number }: { readonly account_ids: readonly string[]; readonly number: ChatNumber },
): Promise<void> {
  const chats = await tx.rows<ShownChat>(sql`
    select account_id, kind, name, username, unread_count, participants from chats
    where account_id = any(${account_ids}) and chat_id = ${number} order by account_id for update`)
  await eraseShown(tx, account_ids, number)
  for (const { account_id, kind, name, username, unread_count, participants: before } of chats) {
    const account = { account_id, workspace_id }
    // A message always comes with the name of its chat, and not always with its people.
    const participants = before.map((one) => ({
      ...one,
      ...(one.id === number && { name, username }),
      phone: null,
    }))
    const chat = { id: number, kind, name, username, unread_count, participants }
    await storeChats(tx, account, [{ chat, last: null }])
    await storeContacts(
      tx,
      account,
      participants.filter((one) => one.kind === 'person'),
    )
    await refreshLastMessages(tx, account, [number])
  }
}
