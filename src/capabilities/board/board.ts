/** The pipeline as a board: every stage with how many chats it has, and its newest ones. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import {
  type ChatFilters,
  chatsMatching,
  countedMax,
  inboxColumns,
  inboxItem,
  requireFilters,
  type ShownFields,
  shownBy,
} from '../chats/chats.ts'

/** The rest of a stage comes from `GET /inbox`. */
export const cardsMax = 20

interface BoardStage {
  readonly key: string
  readonly label: string
  readonly color: string | null
  readonly terminal: boolean
  readonly hidden: boolean
  readonly count: number
  readonly chats: readonly unknown[]
}

/** Only the cards with a value in a column. */
export type BoardFilter = Pick<ChatFilters, 'column_id' | 'column_value'>

export async function readBoard(
  app: App,
  caller: Caller,
  accounts: readonly Account[],
  { column_id, column_value }: BoardFilter,
): Promise<BoardStage[]> {
  const filter = { column_id, column_value }
  await requireFilters(app, caller, filter)
  const { workspace_id } = caller
  return app.db.rows<BoardStage>(boardOf(workspace_id, accounts, { shown: await shownBy(app), filter }))
}

interface BoardContent {
  readonly shown: ShownFields
  readonly filter?: BoardFilter
}

/**
 * Without a filter it reads a range of the index by stage for each stage and account, so its cost does not depend on the
 * number of chats.
 */
export function boardOf(
  workspace_id: string,
  accounts: readonly Account[],
  { shown, filter = {} }: BoardContent,
): Sql {
  const ofStage = sql`${chatsMatching(filter)} and c.stage_key = s.key`
  return sql`
    select s.key, s.label, s.color, s.terminal, s.hidden, counted.count, cards.chats
    from (
      select ${accounts.map(({ id }) => id)}::text[] as ids,
        ${accounts.map(({ provider }) => provider)}::text[] as providers offset 0) asked
    cross join stages s
    cross join lateral (
      select count(*)::int from (
        select from unnest(asked.ids) as a (id) cross join lateral (
          select from ${ofStage}
          order by c.last_message_at desc, c.chat_id desc limit ${countedMax}) own
        limit ${countedMax}) all_of_them) counted
    cross join lateral (
      select coalesce(json_agg(row_to_json(item)
        order by p.last_message_at desc, p.chat_id desc, p.account_id desc), '[]') as chats
      from (
        select page.*, a.provider
        from unnest(asked.ids, asked.providers) as a (id, provider)
        cross join lateral (
          select ${inboxColumns} from ${ofStage}
          order by c.last_message_at desc, c.chat_id desc limit ${cardsMax}) page
        order by last_message_at desc, chat_id desc, account_id desc limit ${cardsMax}) p
      cross join lateral (${inboxItem(shown)}) item) cards
    where s.workspace_id = ${workspace_id} order by s.position, s.key`
}
