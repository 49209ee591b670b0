/** Lists of any length: a single stream of the whole list without a limit, otherwise a page at a time. */
import type { App } from './app.ts'
import type { Account, Caller } from './contract.ts'
import type { Sql } from './db/sql.ts'
import type { Paging, Position } from './lib/cursor.ts'
import { type Batch, pageText, type Row, streamText } from './lib/page.ts'
import { Json, Stream } from './route.ts'

export interface LongList {
  /** The property that holds the items. */
  readonly name: string
  /** The size of a page with a cursor but without a limit. */
  readonly pageSize: number
  readonly page: (
    accounts: readonly Account[],
    { after, limit }: { after: Position | undefined; limit: number },
  ) => Sql
  /** How many rows a stream reads at a time: each batch is held as one text. */
  readonly batchSize: number
  readonly batch: (account_id: string, after: readonly string[] | undefined, size: number) => Sql
}

export interface LongListCall {
  readonly limit: number | undefined
  readonly paging: Paging
  /** Aborted once the caller has left: it waits for no turn. */
  readonly left: (() => AbortSignal) | undefined
}

/**
 * `before` is the JSON in front of the items: `"stages":[…],`. Every batch takes a turn of its own, so that a client that
 * reads slowly holds none.
 */
export async function streamOrPage(
  app: App,
  { workspace_id }: Pick<Caller, 'workspace_id'>,
  accounts: readonly Account[],
  list: LongList,
  { before, limit, paging, left }: LongListCall & { readonly before: string },
): Promise<Json | Stream> {
  const { name, pageSize, batchSize } = list
  const { after, next } = paging
  const turn = { workspace_id, left: left?.() } // guard: a reader of a long list who leaves waits no longer
  const inTurn = <T>(read: () => Promise<T>) => app.costly(turn, read) // guard: long lists take turns
  if (limit === undefined && after === undefined) {
    const read = (account_id: string, last: readonly string[] | undefined) =>
      inTurn(() => app.db.maybe<Batch>(list.batch(account_id, last, batchSize)))
    const tail = '],"next_cursor":null,"has_more":false}'
    return Stream.begin(streamText(`{${before}"${name}":[`, accounts, { size: batchSize, read, tail }))
  }
  const size = limit ?? pageSize
  const rows = await inTurn(() => app.db.lists<Row>(list.page(accounts, { after, limit: size + 1 })))
  const page = pageText(name, rows, { limit: size, next })
  return new Json(`{${before}${page.slice(1)}`)
}
