/** Stores our own messages that the platform has just accepted, of many accounts at once. */
import type { AccountKey } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { sql, type Tx } from '../../db/sql.ts'
import type { Attachment } from '../../platform/port.ts'
import type { LastMessage } from '../chats/chats.ts'
import { isErased } from '../people/people.ts'
import { wasDeleted } from './messages.ts'

export interface SentRow extends LastMessage {
  readonly attachments: readonly Attachment[]
  readonly random_id: string
  /** A row of the ledger that was restored from a journal has none. */
  readonly has_content: boolean
}

/**
 * A message that its echo has already stored only gets its random id. New ones are counted. What the platform said is deleted,
 * before we stored it, is stored without its content, as any deleted message. One whose content we have lost is left to the platform's update
 * about it, unless nothing of that update will be stored.
 */
export async function storeSentMessages(tx: Tx, rows: readonly SentRow[]): Promise<void> {
  if (rows.length === 0) return
  const fresh = await tx.rows<AccountKey & { sent_at: string }>(sql`
    with stored as (
      insert into messages as m (account_id, workspace_id, chat_id, id, text, is_sender, sent_at, attachments, random_id,
        deleted_at)
      select account_id, workspace_id, chat_id, id, case when is_deleted then '' else text end, true, sent_at,
        case when is_deleted then '[]' else attachments end, random_id, case when is_deleted then domain_now() end
      from ${given(rows, {
        account_id: 'text',
        workspace_id: 'uuid',
        chat_id: 'bigint',
        id: 'bigint',
        text: 'text',
        sent_at: 'timestamptz',
        attachments: 'jsonb',
        random_id: 'bigint',
        has_content: 'boolean',
      })} as given cross join lateral (select ${wasDeleted(sql`given`)} -- guard: deleted before it was recorded
        or ${isErased(sql`given`)} -- guard: what settles after an erasure has no text
        as is_deleted) d
      where has_content or is_deleted -- guard: what is restored for an erased person leaves its message
      order by account_id, chat_id, id
      on conflict (account_id, chat_id, id) do update set random_id = excluded.random_id
        where m.random_id is null
      returning m.account_id, m.workspace_id, m.sent_at, m.xmax = 0 as fresh)
    select account_id, workspace_id, sent_at::text from stored where fresh`)
  if (fresh.length > 0) countSentMessages(tx, fresh)
}

/** Like `countFresh` for one account: runs with COMMIT, in the order that every transaction keeps. */
function countSentMessages(tx: Tx, rows: readonly (AccountKey & { sent_at: string })[]): void {
  tx.atCommit(sql`
    insert into message_counts as c (workspace_id, span, at, account_id, received, sent)
    select workspace_id, case when grouping(day) = 0 then 'day' when grouping(quarter) = 0 then 'quarter' else 'all' end,
      coalesce(day, quarter, '-infinity'), account_id, 0, count(*)
    from (
      select workspace_id, account_id, date_bin('1 day', sent_at, '2000-01-01 00:00Z') as day,
        date_bin('15 minutes', sent_at, '2000-01-01 00:00Z') as quarter
      from ${given(rows, { workspace_id: 'uuid', account_id: 'text', sent_at: 'timestamptz' })} as given) stored
    group by grouping sets ((workspace_id, account_id), (workspace_id, account_id, day), (workspace_id, account_id, quarter))
    order by account_id, 2, 3
    on conflict (workspace_id, span, at, account_id) do update set sent = c.sent + excluded.sent`)
}
