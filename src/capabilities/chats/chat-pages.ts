/** Pages of chats, newest first. A page costs the same however many chats there are. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { type Paging, type Position, readPaging } from '../../lib/cursor.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { pageText, type Row } from '../../lib/page.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import { quote } from '../../lib/text.ts'
import { columnNotFound, invalidStage } from './unknown-names.ts'

export interface ChatFilters {
  readonly stage_key?: string | undefined
  readonly column_id?: string | undefined
  readonly column_value?: string | undefined
}

interface ChatQuery extends ChatFilters {
  readonly account_id?: string | undefined
  readonly cursor?: string | undefined
  readonly limit: number
}

/** A position before every chat. */
export const startOfChats: Position = ['infinity', '9223372036854775807', '']

/** The page as JSON text. */
export async function listChats(
  app: App,
  caller: Caller,
  accounts: readonly Account[],
  { query, paging: { after, next } }: { query: ChatQuery; paging: Paging },
): Promise<string> {
  const { account_id: _, cursor: __, limit, ...filters } = query
  await requireFilters(app, caller, filters)
  const rows = await app.db.lists<Row>(chatPage(accounts, { filters, after, limit: limit + 1 }))
  return pageText('chats', rows, { limit, next })
}

/** A cursor is valid only with the filters it was made for. */
export function readChatPaging(
  { secrets }: App,
  { workspace_id }: Caller,
  { cursor, limit: _, ...filters }: ChatQuery,
): Paging {
  return readPaging(secrets, { workspace_id, operation: 'list_chats', filters: { ...filters } }, cursor)
}

/**
 * Merges the newest chats of each account. The index begins with the account, so other tenants cost nothing.
 *
 * One statement serves every page, the first included, with one generic plan. The values stand in sub-selects to hide
 * them from the planner: if it saw them it would plan again for each page, which costs as much as the page itself. The
 * inner limit of 101, one more than the largest page, tells it how few rows to expect.
 */
export function chatPage(
  accounts: readonly Account[],
  {
    filters,
    after = startOfChats,
    limit,
  }: { filters: ChatFilters; after: Position | undefined; limit: number },
): Sql {
  const [at, chat_id, account_id] = after
  return sql`
    select row_to_json(item)::text as item, p.last_message_at::text as at, p.chat_id, p.account_id
    from (
      select page.*, a.provider
      from (
        select ${accounts.map(({ id }) => id)}::text[] as ids,
          ${accounts.map(({ provider }) => provider)}::text[] as providers,
          ${at}::timestamptz as at, ${chat_id}::bigint as chat_id, ${account_id}::text as account_id offset 0) asked
      cross join unnest(asked.ids, asked.providers) as a (id, provider)
      cross join lateral (
        select * from (
          select c.account_id, c.chat_id, c.name, c.kind, c.last_message_text, c.last_message_at, c.unread_count
          from ${chatsMatching(filters)}
            and (c.last_message_at, c.chat_id) <= (asked.at, asked.chat_id)
            and (c.last_message_at, c.chat_id, c.account_id) < (asked.at, asked.chat_id, asked.account_id)
          order by c.last_message_at desc, c.chat_id desc limit 101) longest
        order by last_message_at desc, chat_id desc limit (select ${limit}::int)) page
      order by last_message_at desc, chat_id desc, account_id desc limit (select ${limit}::int)) p
    cross join lateral (
      select p.account_id, 'platform:chat:' || p.chat_id as id, p.name, p.provider, p.kind, p.last_message_text,
        wire_time(p.last_message_at) as last_message_at, p.unread_count) item`
}

/** The chats `c` of an account `a` that match. */
export function chatsMatching({ stage_key, column_id, column_value }: ChatFilters): Sql {
  const stage = stage_key === undefined ? sql`` : sql`and c.stage_key = ${stage_key}`
  if (column_id === undefined) return sql`chats c where c.account_id = a.id ${stage}`
  return sql`column_values v join chats c on c.account_id = v.account_id and c.chat_id = v.chat_id
    where v.column_id = ${column_id} and v.account_id = a.id and v.value @> array[${column_value}::text] ${stage}`
}

export async function requireFilters(app: App, caller: Caller, filters: ChatFilters): Promise<void> {
  const { stage_key, column_id } = filters
  if (stage_key !== undefined) {
    const known = await app.db.maybe(sql`
      select 1 from stages where workspace_id = ${caller.workspace_id} and key = ${stage_key}`)
    if (!known) throw await invalidStage(app.db, caller, `There is no stage ${quote(stage_key)}.`)
  }
  if (column_id !== undefined) {
    const known =
      isUuid(column_id) &&
      (await app.db.maybe(sql`
        select 1 from columns where workspace_id = ${caller.workspace_id} and id = ${column_id}`))
    if (!known) throw await columnNotFound(app.db, caller, column_id)
  }
}

/** The CRM fields of one chat that open gates allow. */
interface ChatExtras {
  readonly stage: boolean
  readonly columns: boolean
}

/** The chat as JSON text. If the column tables are missing, returns it without columns, as with a closed gate. */
export async function describeChat(
  app: App,
  account: Account,
  { chat_id, extras }: { chat_id: ChatNumber; extras: ChatExtras },
): Promise<string> {
  return readChat(app, account, { chat_id, extras }).catch((error) => {
    if (!extras.columns || !(error instanceof ApiError) || error.code !== 'schema_unavailable') throw error
    return readChat(app, account, { chat_id, extras: { ...extras, columns: false } })
  })
}

async function readChat(
  app: App,
  account: Account,
  { chat_id, extras }: { chat_id: ChatNumber; extras: ChatExtras },
): Promise<string> {
  const { item } = await app.db.one<{ item: string }>(sql`
    select row_to_json(item)::text as item
    from chats c cross join lateral (
      select c.account_id, 'platform:chat:' || c.chat_id as id, c.name, ${account.provider}::text as provider, c.kind,
        c.last_message_text, wire_time(c.last_message_at) as last_message_at, c.unread_count, c.username,
        c.participants, case when ${extras.stage}::boolean then c.stage_key end as stage_key,
        ${extras.columns ? columnsOf : sql`'[]'::json`} as columns) item
    where c.account_id = ${account.id} and c.chat_id = ${chat_id}`)
  return `{"chat":${item}}`
}

const columnsOf = sql`coalesce((
  select json_agg(json_build_object('column_id', v.column_id, 'value', v.value) order by k.position, v.column_id)
  from column_values v join columns k on k.id = v.column_id
  where v.account_id = c.account_id and v.chat_id = c.chat_id), '[]')`
