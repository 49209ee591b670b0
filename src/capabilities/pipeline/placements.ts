/** Placements: all of them in one stream, or a page at a time. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { type Paging, type Position, readPaging } from '../../lib/cursor.ts'
import { type LongList, type LongListCall, streamOrPage } from '../../long-list.ts'
import type { Json, Stream } from '../../route.ts'
import { listStages } from './pipeline.ts'

interface PipelineQuery {
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

export const placementsMax = 1_000

const placements: LongList = {
  name: 'placements',
  pageSize: placementsMax,
  page: placementPage,
  // Larger batches cost megabytes of the server's memory and gain nothing.
  batchSize: 500,
  batch: placementBatch,
}

export async function readPipeline(
  app: App,
  caller: Caller,
  accounts: readonly Account[],
  call: LongListCall,
): Promise<Json | Stream> {
  const stages = JSON.stringify(
    (await listStages(app.db, caller.workspace_id)).map(({ color: _, ...stage }) => stage),
  )
  return streamOrPage(app, caller, accounts, placements, { before: `"stages":${stages},`, ...call })
}

export function readPipelinePaging(
  { secrets }: App,
  { workspace_id }: Caller,
  { cursor }: PipelineQuery,
): Paging {
  return readPaging(secrets, { workspace_id, operation: 'get_pipeline', filters: {} }, cursor)
}

/** JSON by concatenation: neither account ids nor stage keys contain a character that JSON escapes. */
const placement = sql`'{"account_id":"' || c.account_id || '","chat_id":"platform:chat:' || c.chat_id
  || '","stage_key":"' || c.stage_key || '"}'`

export function placementBatch(account_id: string, after: readonly string[] | undefined, size: number): Sql {
  const beyond = after ? sql`and c.chat_id > ${after[0]}` : sql``
  return sql`
    select string_agg(item, ',') as items, count(*)::int as count, array[max(chat_id)::text] as last
    from (
      select c.chat_id, ${placement} as item from chats c
      where c.account_id = ${account_id} and c.placed_at is not null ${beyond}
      order by c.chat_id limit ${size}) batch
    having count(*) > 0`
}

export function placementPage(
  accounts: readonly Account[],
  { after, limit }: { after: Position | undefined; limit: number },
): Sql {
  const [account_id, chat_id] = after ?? []
  const beyond = after
    ? sql`and (c.account_id, c.chat_id) > (${account_id}::text, ${chat_id}::bigint)`
    : sql``
  return sql`
    select page.* from unnest(${accounts.map(({ id }) => id)}::text[]) as a (id)
    cross join lateral (
      select ${placement} as item, c.account_id, c.chat_id from chats c
      where c.account_id = a.id and c.placed_at is not null ${beyond}
      order by c.account_id, c.chat_id limit ${limit}) page
    order by account_id, chat_id limit ${limit}`
}
