/** Clears the content of messages as if the platform had deleted them: each row keeps its ids, sender, times and random id. */
import type { AccountKey } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { sql, type Tx } from '../../db/sql.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import { clearLastTexts } from '../chats/chats.ts'
import { forgetWords } from '../search/search.ts'

export interface MessageKey {
  readonly account_id: string
  readonly chat_id: ChatNumber
  readonly id: string
}

/**
 * A trigger removes stored files with the attachments, and others what search has pending. `words_within_seconds`: how long the
 * words may stay in the search lists, where they are not found; taking them out rewrites an account's lists. What the platform shows
 * of these messages later changes nothing, because deleted rows never change. No event, because nothing was deleted there. Returns
 * how many were cleared.
 */
export async function clearMessages(
  tx: Tx,
  messages: readonly MessageKey[],
  { words_within_seconds }: { readonly words_within_seconds: number },
): Promise<number> {
  if (messages.length === 0) return 0
  const cleared = await tx.rows<AccountKey & MessageKey>(sql`
    with locked as materialized (
      select m.account_id, m.chat_id, m.id
      from (select * from ${given(messages, { account_id: 'text', chat_id: 'bigint', id: 'bigint' })} as g
        order by account_id, chat_id, id) g
      cross join lateral (
        select m.account_id, m.chat_id, m.id from messages m
        where m.account_id = g.account_id and m.chat_id = g.chat_id and m.id = g.id and m.deleted_at is null
        for update) m)
    update messages m set deleted_at = domain_now(), text = '', attachments = '[]' from locked l
    where m.account_id = l.account_id and m.chat_id = l.chat_id and m.id = l.id
    returning m.account_id, m.workspace_id, m.chat_id, m.id`)
  if (cleared.length === 0) return 0
  await clearLastTexts(tx, cleared)
  await forgetWords(tx, cleared, words_within_seconds)
  return cleared.length
}
