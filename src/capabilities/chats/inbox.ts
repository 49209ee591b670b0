/** The inbox of a team: the chats of all its accounts, newest first, in four views. A page costs the same in each. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { messageKinds, unsent } from '../../ledger/unsent.ts'
import { type Paging, type Position, readPaging } from '../../lib/cursor.ts'
import { pageText, type Row } from '../../lib/page.ts'
import { hasAskedToStop, isChatListed } from '../suppressions/suppressions.ts'
import { memberName } from './assignees.ts'
import { type ChatFilters, chatsMatching, requireFilters, startOfChats } from './chat-pages.ts'

export const views = ['all', 'unread', 'unanswered', 'mine'] as const
export type View = (typeof views)[number]

interface InboxQuery extends ChatFilters {
  readonly view: View
  readonly account_id?: string | undefined
  readonly cursor?: string | undefined
  readonly limit: number
}

/** How far views and stages are counted: a team needs to know whether there is much to do, not how much exactly. */
export const countedMax = 1_000

/** The page as JSON text. */
export async function listInbox(
  app: App,
  caller: Caller,
  accounts: readonly Account[],
  { query, paging: { after, next } }: { query: InboxQuery; paging: Paging },
): Promise<string> {
  const { view, limit, stage_key, column_id, column_value } = query
  const filters = { stage_key, column_id, column_value }
  await requireFilters(app, caller, filters)
  const rows = await app.db.lists<Row>(
    inboxPage(accounts, {
      chosen: { view, user_id: caller.user_id, filters },
      shown: await shownBy(app),
      after,
      limit: limit + 1,
    }),
  )
  return pageText('chats', rows, { limit, next })
}

/** A cursor is valid only for its user, view and filters. */
export function readInboxPaging(
  { secrets }: App,
  { workspace_id, user_id }: Caller,
  { cursor, limit: _, ...filters }: InboxQuery,
): Paging {
  return readPaging(
    secrets,
    { workspace_id, operation: 'list_inbox', filters: { ...filters, user_id } },
    cursor,
  )
}

/** What the rows of the inbox need to know about this instance. */
export interface ShownFields {
  /** Whether the gate `pipeline` lets stages show. */
  readonly stages: boolean
  /** Whether the gate `crm` lets column values show. */
  readonly columns: boolean
  /** Kinds of operation that send a message. */
  readonly kinds: readonly string[]
}

export async function shownBy({ settings, operations }: App): Promise<ShownFields> {
  const { gates } = await settings.current()
  return { stages: gates.has('pipeline'), columns: gates.has('crm'), kinds: messageKinds(operations) }
}

interface ChosenChats {
  readonly view: View
  readonly user_id: string
  readonly filters: ChatFilters
}

/** Merges the newest chats of each account, as `chatPage` does, and for the same reasons. */
export function inboxPage(
  accounts: readonly Account[],
  {
    chosen,
    shown,
    after = startOfChats,
    limit,
  }: { chosen: ChosenChats; shown: ShownFields; after: Position | undefined; limit: number },
): Sql {
  const [at, chat_id, account_id] = after
  return sql`
    select row_to_json(item)::text as item, p.last_message_at::text as at, p.chat_id, p.account_id
    from (
      select page.*, a.provider
      from (
        select ${accounts.map(({ id }) => id)}::text[] as ids,
          ${accounts.map(({ provider }) => provider)}::text[] as providers,
          ${at}::timestamptz as at, ${chat_id}::bigint as chat_id, ${account_id}::text as account_id,
          ${chosen.user_id}::uuid as user_id offset 0) asked
      cross join unnest(asked.ids, asked.providers) as a (id, provider)
      cross join lateral (
        select * from (
          select ${inboxColumns}
          from ${sourceOf(chosen)}
            and (c.last_message_at, c.chat_id) <= (asked.at, asked.chat_id)
            and (c.last_message_at, c.chat_id, c.account_id) < (asked.at, asked.chat_id, asked.account_id)
          order by c.last_message_at desc, c.chat_id desc limit 101) longest
        order by last_message_at desc, chat_id desc limit (select ${limit}::int)) page
      order by last_message_at desc, chat_id desc, account_id desc limit (select ${limit}::int)) p
    cross join lateral (${inboxItem(shown)}) item`
}

/** Of a chat `c`: what `inboxItem` needs of it. */
export const inboxColumns: Sql = sql`c.account_id, c.workspace_id, c.chat_id, c.name, c.username, c.kind, c.last_message_text, c.last_message_at,
  c.last_is_sender, c.unread_count, c.stage_key, c.assignee_id`

/** A row of the inbox, from `p`: a chat's `inboxColumns` and its provider. */
export function inboxItem({ stages, columns, kinds }: ShownFields): Sql {
  return sql`
    select p.account_id, 'platform:chat:' || p.chat_id as id, p.name, p.username, p.provider, p.kind, p.last_message_text,
      wire_time(p.last_message_at) as last_message_at, p.last_is_sender,
      ${lastAttempt(kinds)} as last_attempt, p.unread_count, ${isSuppressed} as suppressed,
      ${asksToStop} as asked_to_stop,
      case when ${stages}::boolean then p.stage_key end as stage_key, -- guard: stages behind their gate
      (select json_build_object('user_id', u.id, 'name', ${memberName}) from users u where u.id = p.assignee_id) as assignee,
      ${columnValues(columns)} as columns`
}

/** Whether the person of private chat `p` is on the suppression list. */
const isSuppressed: Sql = sql`(p.kind = 'private' -- guard: only people are on the suppression list
  and ${isChatListed({
    workspace_id: sql`p.workspace_id`,
    platform: sql`p.provider`,
    number: sql`p.chat_id`,
    username: sql`p.username`,
  })})`

const asksToStop: Sql = sql`(p.kind = 'private' and ${hasAskedToStop({ workspace_id: sql`p.workspace_id`, number: sql`p.chat_id` })})`

/** How much a card has room for: a chat can have 100 columns with texts of 2,000 characters. */
export const shownColumnsMax = 3
export const shownOptionsMax = 4
export const shownTextMax = 80

/** The chat's first columns that have a value. */
function columnValues(shown: boolean): Sql {
  return sql`(
    select coalesce(json_agg(json_build_object('column_id', v.column_id, 'value', v.value) order by v.position, v.column_id), '[]')
    from (
      select own.column_id, k.position,
        array(select left(each, ${shownTextMax}) from unnest(own.value[1:${shownOptionsMax}::int]) each) as value
      from column_values own join columns k on k.id = own.column_id
      where own.account_id = p.account_id and own.chat_id = p.chat_id
        and ${shown}::boolean -- guard: column values behind their gate
      order by k.position, k.id limit ${shownColumnsMax}) v)`
}

/** An operation that is newer than the chat's last message and has none itself. Its state is about its own text, not the message's. */
function lastAttempt(kinds: readonly string[]): Sql {
  return sql`(
    select json_build_object('state', case when o.state in ('queued', 'submitting') then 'sending'
        when o.closed_as = 'sent' then 'accepted' when o.closed_as = 'not_sent' then 'refused' else o.state end,
      'text', coalesce(o.payload ->> 'text', ''), 'at', wire_time(o.created_at))
    from operations o
    where o.account_id = p.account_id and o.chat_id = p.chat_id and o.created_at > p.last_message_at and ${unsent(kinds)}
    order by o.created_at desc, o.id desc limit 1)`
}

const sourceOf = ({ view, filters }: ChosenChats): Sql => sql`${chatsMatching(filters)} ${conditions[view]}`

/** Each is the condition of a partial index. */
const conditions: Readonly<Record<View, Sql>> = {
  all: sql``,
  unread: sql`and c.unread_count > 0`,
  unanswered: sql`and not c.last_is_sender`,
  mine: sql`and c.assignee_id = asked.user_id`,
}

/** How many chats each view has, up to `countedMax`. */
export function countInbox(
  { db }: App,
  { user_id }: Caller,
  accounts: readonly Account[],
): Promise<Record<View, number>> {
  return db.one<Record<View, number>>(inboxCounts(accounts, user_id))
}

export function inboxCounts(accounts: readonly Account[], user_id: string): Sql {
  return sql`
    select ${countOf('all')} as all, ${countOf('unread')} as unread, ${countOf('unanswered')} as unanswered,
      ${countOf('mine')} as mine
    from (select ${accounts.map(({ id }) => id)}::text[] as ids, ${user_id}::uuid as user_id offset 0) asked`
}

/** In the order of the index of the view, so that it is read whatever the statistics say. */
function countOf(view: View): Sql {
  return sql`(
    select count(*)::int from (
      select from unnest(asked.ids) as a (id) cross join lateral (
        select from chats c where c.account_id = a.id ${conditions[view]}
        order by c.last_message_at desc, c.chat_id desc limit ${countedMax}) counted
      limit ${countedMax}) counted)`
}
