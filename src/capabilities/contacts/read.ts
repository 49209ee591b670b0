/** Pages of contacts, by name. From the store only. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { type CursorScope, makeCursor, type Position, readCursor } from '../../lib/cursor.ts'
import { pageText } from '../../lib/page.ts'
import { prefixTerms, toTsquery } from '../../lib/tokens.ts'

export interface ContactQuery {
  readonly account_id?: string | undefined
  readonly cursor?: string | undefined
  readonly limit: number
  readonly q?: string | undefined
}

interface Row {
  readonly item: string
  readonly sort_name: string
  readonly provider_id: string
  readonly account_id: string
}

/** The page as JSON text. `q` finds names with words that begin with its words, whatever their case or accents. */
export async function listContacts(
  app: App,
  caller: Caller,
  accounts: readonly Account[],
  query: ContactQuery,
): Promise<string> {
  const { limit, q } = query
  const after = readContactCursor(app, caller, query)
  const rows = await app.db.rows<Row>(contactPage(accounts, { after, limit: limit + 1, q }))
  return pageText('contacts', rows, {
    limit,
    cursor: ({ sort_name, provider_id, account_id }) =>
      makeCursor(app.secrets, scopeOf(caller, query), [sort_name, provider_id, account_id]),
  })
}

/** Where the page begins. Throws if the cursor was made for another query. */
export function readContactCursor(app: App, caller: Caller, query: ContactQuery): Position | undefined {
  if (query.cursor === undefined) return undefined
  return readCursor(app.secrets, scopeOf(caller, query), query.cursor)
}

function scopeOf({ workspace_id }: Caller, { account_id, q }: ContactQuery): CursorScope {
  return { workspace_id, operation: 'list_contacts', filters: { account_id, q } }
}

export function contactPage(
  accounts: readonly Account[],
  { after, limit, q }: { after?: Position | undefined; limit: number; q?: string | undefined },
): Sql {
  const [name, provider_id, account_id] = after ?? []
  const beyond = after
    ? sql`and (c.sort_name, c.provider_id) >= (${name}::text, ${provider_id}::bigint)
        and (c.sort_name, c.provider_id, c.account_id) > (${name}::text, ${provider_id}::bigint, ${account_id}::text)`
    : sql``
  const words = q === undefined ? [] : prefixTerms(q).map((term) => toTsquery(term))
  const matching = q === undefined ? sql`` : sql`and c.name_tokens @@ ${words.join(' & ')}::tsquery`
  return sql`
    select p.sort_name, p.provider_id, p.account_id, row_to_json(item)::text as item
    from (
      select page.* from unnest(${accounts.map(({ id }) => id)}::text[]) as a (id)
      cross join lateral (
        select c.account_id, c.provider_id, c.name, c.username, c.sort_name from contacts c
        where c.account_id = a.id ${matching} ${beyond}
        order by c.sort_name, c.provider_id limit ${limit}) page
      order by sort_name, provider_id, account_id limit ${limit}) p
    cross join lateral (select p.account_id, p.provider_id::text, p.name, p.username) item`
}
