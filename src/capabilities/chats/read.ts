/** Pages of chats, newest first, at the cost of one page whatever the number of chats. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { type CursorScope, makeCursor, type Position, readCursor } from '../../lib/cursor.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { pageText } from '../../lib/page.ts'
import { quote } from '../../lib/text.ts'

export interface ChatFilters {
  readonly stage_key?: string | undefined
  readonly column_id?: string | undefined
  readonly column_value?: string | undefined
}

export interface ChatQuery extends ChatFilters {
  readonly account_id?: string | undefined
  readonly cursor?: string | undefined
  readonly limit: number
}

interface Row {
  readonly item: string
  readonly at: string
  readonly chat_id: string
  readonly account_id: string
}

/** The page as JSON text. */
export async function listChats(
  app: App,
  caller: Caller,
  accounts: readonly Account[],
  query: ChatQuery,
): Promise<string> {
  const { account_id: _, cursor: __, limit, ...filters } = query
  const after = readChatCursor(app, caller, query)
  await requireFilters(app, caller, filters)
  const rows = await app.db.rows<Row>(chatPage(accounts, { filters, after, limit: limit + 1 }))
  return pageText('chats', rows, {
    limit,
    cursor: ({ at, chat_id, account_id }) =>
      makeCursor(app.secrets, scopeOf(caller, query), [at, chat_id, account_id]),
  })
}

/** Where the page begins. Throws if the cursor was made for another query. */
export function readChatCursor(app: App, caller: Caller, query: ChatQuery): Position | undefined {
  if (query.cursor === undefined) return undefined
  return readCursor(app.secrets, scopeOf(caller, query), query.cursor)
}

function scopeOf({ workspace_id }: Caller, { cursor: _, limit: __, ...filters }: ChatQuery): CursorScope {
  return { workspace_id, operation: 'list_chats', filters: { ...filters } }
}

/** Each account's newest, merged. The index of each begins with the account, so other tenants cost nothing. */
export function chatPage(
  accounts: readonly Account[],
  { filters, after, limit }: { filters: ChatFilters; after: Position | undefined; limit: number },
): Sql {
  const [at, chat_id, account_id] = after ?? []
  const beyond = after
    ? sql`and (c.last_message_at, c.chat_id) <= (${at}::timestamptz, ${chat_id}::bigint)
        and (c.last_message_at, c.chat_id, c.account_id) < (${at}::timestamptz, ${chat_id}::bigint, ${account_id}::text)`
    : sql``
  return sql`
    select p.account_id, p.chat_id, p.last_message_at::text as at, row_to_json(item)::text as item
    from (
      select page.*, a.provider
      from unnest(${accounts.map(({ id }) => id)}::text[], ${accounts.map(({ provider }) => provider)}::text[])
        as a (id, provider)
      cross join lateral (
        select c.account_id, c.chat_id, c.name, c.kind, c.last_message_text, c.last_message_at, c.unread_count
        from ${sourceOf(filters)} ${beyond}
        order by c.last_message_at desc, c.chat_id desc limit ${limit}) page
      order by last_message_at desc, chat_id desc, account_id desc limit ${limit}) p
    cross join lateral (
      select p.account_id, 'platform:chat:' || p.chat_id as id, p.name, p.provider, p.kind, p.last_message_text,
        wire_time(p.last_message_at) as last_message_at, p.unread_count) item`
}

function sourceOf({ stage_key, column_id, column_value }: ChatFilters): Sql {
  const stage = stage_key === undefined ? sql`` : sql`and c.stage_key = ${stage_key}`
  if (column_id === undefined) return sql`chats c where c.account_id = a.id ${stage}`
  return sql`column_values v join chats c on c.account_id = v.account_id and c.chat_id = v.chat_id
    where v.column_id = ${column_id} and v.account_id = a.id and v.value @> array[${column_value}::text] ${stage}`
}

async function requireFilters(app: App, caller: Caller, filters: ChatFilters): Promise<void> {
  const { stage_key, column_id } = filters
  if (stage_key !== undefined) {
    const known = await app.db.maybe(sql`
      select 1 from stages where workspace_id = ${caller.workspace_id} and key = ${stage_key}`)
    if (!known) throw new ApiError('invalid_stage', { detail: `There is no stage ${quote(stage_key)}.` })
  }
  if (column_id !== undefined) {
    const known =
      isUuid(column_id) &&
      (await app.db.maybe(sql`
        select 1 from columns where workspace_id = ${caller.workspace_id} and id = ${column_id}`))
    if (!known) throw new ApiError('column_not_found')
  }
}

/** What the CRM knows of one chat, as far as its gates are open. */
export interface ChatExtras {
  readonly stage: boolean
  readonly columns: boolean
}

/** The chat as JSON text. */
export async function describeChat(
  app: App,
  account: Account,
  { chat_id, extras }: { chat_id: string; extras: ChatExtras },
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
