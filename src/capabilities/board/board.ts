/** The pipeline as a board: every stage with how many chats it has, and its newest ones. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { countedMax, inboxColumns, inboxItem, type ShownFields, shownBy } from '../chats/chats.ts'

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

export async function readBoard(
  app: App,
  { workspace_id }: Caller,
  accounts: readonly Account[],
): Promise<BoardStage[]> {
  return app.db.rows<BoardStage>(boardOf(workspace_id, accounts, await shownBy(app)))
}

/** Reads a range of the index by stage for each stage and account, so its cost does not depend on the number of chats. */
export function boardOf(workspace_id: string, accounts: readonly Account[], shown: ShownFields): Sql {
  return sql`
    select s.key, s.label, s.color, s.terminal, s.hidden, counted.count, cards.chats
    from (
      select ${accounts.map(({ id }) => id)}::text[] as ids,
        ${accounts.map(({ provider }) => provider)}::text[] as providers offset 0) asked
    cross join stages s
    cross join lateral (
      select count(*)::int from (
        select from unnest(asked.ids) as a (id) cross join lateral (
          select from chats c where c.account_id = a.id and c.stage_key = s.key
          order by c.last_message_at desc, c.chat_id desc limit ${countedMax}) own
        limit ${countedMax}) all_of_them) counted
    cross join lateral (
      select coalesce(json_agg(row_to_json(item)
        order by p.last_message_at desc, p.chat_id desc, p.account_id desc), '[]') as chats
      from (
        select page.*, a.provider
        from unnest(asked.ids, asked.providers) as a (id, provider)
        cross join lateral (
          select ${inboxColumns} from chats c where c.account_id = a.id and c.stage_key = s.key
          order by c.last_message_at desc, c.chat_id desc limit ${cardsMax}) page
        order by last_message_at desc, chat_id desc, account_id desc limit ${cardsMax}) p
      cross join lateral (${inboxItem(shown)}) item) cards
    where s.workspace_id = ${workspace_id} order by s.position, s.key`
}
