/** Placements: all of them in one stream, or a page at a time. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { type CursorScope, makeCursor, type Position, readCursor } from '../../lib/cursor.ts'
import { type Batch, pageText, type Row, streamText } from '../../lib/page.ts'
import { Json, Stream } from '../../route.ts'
import { listStages } from './pipeline.ts'

export interface PipelineQuery {
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

export const placementsMax = 1_000
/** So much of a text is taken back at once; several times as much and the server grows by megabytes it need not have. */
const batchSize = 500

export async function readPipeline(
  app: App,
  caller: Caller,
  accounts: readonly Account[],
  { cursor, limit = cursor === undefined ? undefined : placementsMax }: PipelineQuery,
): Promise<Json | Stream> {
  const stages = JSON.stringify(await listStages(app.db, caller.workspace_id))
  if (limit === undefined) {
    const read = (account_id: string, after: readonly string[] | undefined) =>
      app.db.maybe<Batch>(placementBatch(account_id, after, batchSize))
    return Stream.begin(
      streamText(`{"stages":${stages},"placements":[`, accounts, {
        size: batchSize,
        read,
        tail: '],"next_cursor":null,"has_more":false}',
      }),
    )
  }
  const after = readPipelineCursor(app, caller, { cursor })
  const rows = await app.db.lists<Row>(placementPage(accounts, { after, limit: limit + 1 }))
  const page = pageText('placements', rows, {
    limit,
    cursor: (position) => makeCursor(app.secrets, scopeOf(caller), position),
  })
  return new Json(`{"stages":${stages},${page.slice(1)}`)
}

export function readPipelineCursor(
  app: App,
  caller: Caller,
  { cursor }: PipelineQuery,
): Position | undefined {
  return cursor === undefined ? undefined : readCursor(app.secrets, scopeOf(caller), cursor)
}

function scopeOf({ workspace_id }: Caller): CursorScope {
  return { workspace_id, operation: 'get_pipeline', filters: {} }
}

/** Neither an account's id nor a stage's key has a character that JSON would write otherwise. */
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
