/** Whether the person of a chat is on the suppression list, and what put them there. */
import type { Caller } from '../../contract.ts'
import { type Db, type Sql, sql } from '../../db/sql.ts'
import { notFound } from '../../lib/names.ts'
import { type ChatId, chatNumber } from '../../lib/shapes.ts'
import { type ChatColumns, learntNamesOfChat, namesOfChat } from '../people/people.ts'
import type { Suppression } from './stored-entries.ts'

/**
 * Whether the person of a chat is on the list, as `is_listed` says. Part of the statement: calling the function for each of many
 * chats took ten times as long as reading them. What the chat shows is asked for apart: one union of all names took a half longer.
 */
export function isChatListed(chat: ChatColumns): Sql {
  const shown = (kind: Sql, value: Sql) => sql`exists (
    select from suppressions s
    where s.workspace_id = ${chat.workspace_id} and s.kind = ${kind} and s.value = ${value})`
  return sql`(${shown(sql`'platform_id'`, sql`${chat.number}::text`)} or ${shown(sql`'username'`, sql`lower(${chat.username})`)} or exists (
    select from (${learntNamesOfChat(chat)}) named
    cross join lateral (
      select from suppressions s
      where s.workspace_id = ${chat.workspace_id} and s.kind = named.kind and s.value = named.value
        and (named.until is null or named.until >= s.created_at) -- guard: marked by a name while it was listed
      limit 1) listed))`
}

/** Whether the entry is their own request to stop, which is always by number: it says what one person wants, whatever their names. */
export function hasAskedToStop({ workspace_id, number }: Pick<ChatColumns, 'workspace_id' | 'number'>): Sql {
  return sql`exists (
    select from suppressions s
    where s.workspace_id = ${workspace_id} and s.kind = 'platform_id' and s.value = ${number}::text
      and s.source = 'opt_out' -- guard: only their own message says that they asked to stop
    )`
}

/** Requests to stop first, then the newest: the first one says why. Empty: the person is not on the list. */
export async function listChatEntries(
  db: Db,
  { workspace_id }: Caller,
  { account_id, chat_id }: { account_id: string; chat_id: ChatId },
): Promise<readonly Suppression[]> {
  const names = namesOfChat({
    workspace_id: sql`c.workspace_id`,
    platform: sql`(select a.platform from accounts a where a.id = c.account_id)`,
    number: sql`c.chat_id`,
    username: sql`c.username`,
  })
  const found = await db.maybe<{ entries: readonly Suppression[] }>(sql`
    select coalesce((
      select json_agg(json_build_object('kind', s.kind, 'value', s.value, 'source', s.source, 'evidence', s.evidence,
        'created_at', wire_time(s.created_at)) order by s.source <> 'opt_out', s.created_at desc, s.kind, s.value)
      from (
        select kind, value,
          case when bool_or(until is null) then null else max(until) end as until -- guard: a name that one account still sees
        from (${names}) own where c.kind = 'private' group by 1, 2) named
      join suppressions s on s.workspace_id = c.workspace_id and s.kind = named.kind and s.value = named.value
        and (named.until is null or named.until >= s.created_at) -- guard: a name that passed on before the entry
      ), '[]') as entries
    from chats c
    where c.account_id = ${account_id} and c.chat_id = ${chatNumber(chat_id)} and c.workspace_id = ${workspace_id}`)
  if (!found) throw notFound('chat', chat_id, 'chat_not_found')
  return found.entries
}
