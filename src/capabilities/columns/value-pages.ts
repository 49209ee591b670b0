/** The values of columns: all of them in one stream, or a page at a time. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { type Paging, type Position, readPaging } from '../../lib/cursor.ts'
import { type LongList, type LongListCall, streamOrPage } from '../../long-list.ts'
import type { Json, Stream } from '../../route.ts'
import { listColumns } from './columns.ts'

interface ColumnQuery {
  readonly account_id?: string | undefined
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

export const valuesMax = 1_000

const values: LongList = {
  name: 'values',
  pageSize: valuesMax,
  page: valuePage,
  // Half as many as placements, because a value may be long.
  batchSize: 250,
  batch: valueBatch,
}

export async function readColumns(
  app: App,
  caller: Caller,
  accounts: readonly Account[],
  call: LongListCall,
): Promise<Json | Stream> {
  const columns = JSON.stringify(await listColumns(app.db, caller.workspace_id))
  return streamOrPage(app, caller, accounts, values, { before: `"columns":${columns},`, ...call })
}

export function readColumnPaging(
  { secrets }: App,
  { workspace_id }: Caller,
  { account_id, cursor }: ColumnQuery,
): Paging {
  return readPaging(secrets, { workspace_id, operation: 'get_columns', filters: { account_id } }, cursor)
}

const item = sql`cross join lateral (
  select v.account_id, 'platform:chat:' || v.chat_id as chat_id, v.column_id, v.value) item`

function valueBatch(account_id: string, after: readonly string[] | undefined, size: number): Sql {
  const beyond = after ? sql`and (v.chat_id, v.column_id) > (${after[0]}::bigint, ${after[1]}::uuid)` : sql``
  return sql`
    with batch as materialized (
      select v.chat_id, v.column_id, row_to_json(item)::text as item
      from column_values v ${item}
      where v.account_id = ${account_id} ${beyond}
      order by v.chat_id, v.column_id limit ${size})
    select (select string_agg(item, ',') from batch) as items, (select count(*)::int from batch) as count,
      array[chat_id::text, column_id::text] as last
    from batch order by chat_id desc, column_id desc limit 1`
}

function valuePage(
  accounts: readonly Account[],
  { after, limit }: { after: Position | undefined; limit: number },
): Sql {
  const [account_id, chat_id, column_id] = after ?? []
  const beyond = after
    ? sql`and (v.account_id, v.chat_id, v.column_id) > (${account_id}::text, ${chat_id}::bigint, ${column_id}::uuid)`
    : sql``
  return sql`
    select page.* from unnest(${accounts.map(({ id }) => id)}::text[]) as a (id)
    cross join lateral (
      select row_to_json(item)::text as item, v.account_id, v.chat_id, v.column_id
      from column_values v ${item}
      where v.account_id = a.id ${beyond}
      order by v.account_id, v.chat_id, v.column_id limit ${limit}) page
    order by account_id, chat_id, column_id limit ${limit}`
}
