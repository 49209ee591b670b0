/** Stored messages and people. Every statement starts from an account, in an index. */
import { given } from '../../db/given.ts'
import { type Db, sql } from '../../db/sql.ts'
import { isErased } from '../people/people.ts'
import type { MessageKey } from './index/search-index.ts'

/** Where to search: whole accounts, or one chat of one account. */
export interface SearchPlace {
  readonly account_ids: readonly string[]
  /** The chat's number. */
  readonly chat_id: string | undefined
}

/** The fields of a message that are shown. */
export interface Message {
  readonly account_id: string
  readonly chat_id: string
  readonly id: string
  readonly is_sender: boolean
  readonly sent_at: Date
  readonly text: string
  readonly chat_name: string
  /** Of an erased person: a worker has still to clear it, and it is not shown. */
  readonly erased: boolean
}

const message = sql`m.account_id, m.chat_id, m.id, m.is_sender, m.sent_at, m.text, coalesce(
  (select c.name from chats c where c.account_id = m.account_id and c.chat_id = m.chat_id), '') as chat_name,
  ${isErased(sql`m`)} as erased`

/** The messages with these keys, in any order. */
export function readMessages(db: Db, keys: readonly MessageKey[]): Promise<Message[]> {
  if (keys.length === 0) return Promise.resolve([])
  return db.rows<Message>(sql`
    select ${message} from ${given(keys, { account_id: 'text', chat_id: 'bigint', id: 'bigint' })} as k
    cross join lateral (
      select * from messages m where m.account_id = k.account_id and m.chat_id = k.chat_id and m.id = k.id
        and m.deleted_at is null offset 0) m`)
}

interface TimeRange {
  /** From `from` until before `until`, in milliseconds since 1970. */
  readonly from: number
  readonly until: number
  readonly limit: number
  readonly count: number
}

/** The newest messages in this range, and how many there are, at most `count`. */
export async function readTimeRange(
  db: Db,
  { account_ids, chat_id }: SearchPlace,
  { from, until, count, limit }: TimeRange,
): Promise<{ page: Message[]; total: number }> {
  const here = sql`m.account_id = a.id and m.deleted_at is null ${chat_id === undefined ? sql`` : sql`and m.chat_id = ${chat_id}`}
    and m.sent_at >= ${new Date(from)} and m.sent_at < ${new Date(until)}`
  const [page, { total }] = await Promise.all([
    db.rows<Message>(sql`
      select ${message} from unnest(${account_ids}::text[]) as a (id)
      cross join lateral (
        select * from messages m where ${here} order by m.sent_at desc, m.id desc limit ${limit}) m
      order by m.sent_at desc, m.id desc, m.chat_id desc, m.account_id limit ${limit}`),
    db.one<{ total: number }>(sql`
      select count(*)::int as total from (
        select from unnest(${account_ids}::text[]) as a (id)
        cross join lateral (
          select from messages m where ${here} order by m.sent_at desc, m.id desc limit ${count}) m
        limit ${count}) m`),
  ])
  return { page, total }
}

/** People, and chats that are not with a person, by the words of their names: most recently active first. */
export function findNamed(
  db: Db,
  account_ids: readonly string[],
  { query, each }: { query: string; each: number },
): Promise<{ account_id: string; id: string }[]> {
  return db.rows(sql`
    select a.id as account_id, n.id from unnest(${account_ids}::text[]) as a (id)
    cross join lateral (
      select k.id from (
        select k.provider_id as id from contacts k
        where k.account_id = a.id and k.name_tokens @@ ${query}::tsquery
        union
        select c.chat_id from chats c where c.account_id = a.id and c.name_tokens @@ ${query}::tsquery) k
      left join chats c on c.account_id = a.id and c.chat_id = k.id
      order by c.last_message_at desc nulls last, k.id limit ${each}) n`)
}
