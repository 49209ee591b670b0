/** Pages of contacts by name, from the store only. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { type Paging, type Position, readPaging } from '../../lib/cursor.ts'
import { pageText, type Row } from '../../lib/page.ts'
import { prefixPhrases, toTsquery } from '../../lib/tokens.ts'

interface ContactQuery {
  readonly account_id?: string | undefined
  readonly cursor?: string | undefined
  readonly limit: number
  readonly q?: string | undefined
}

/** A position before every contact. */
const start: Position = ['', '-9223372036854775808', '']

/** The page as JSON text. `q` matches the beginnings of words in names, whatever their case or accents. */
export async function listContacts(
  app: App,
  accounts: readonly Account[],
  { query: { limit, q }, paging: { after, next } }: { query: ContactQuery; paging: Paging },
): Promise<string> {
  const rows = await app.db.lists<Row>(contactPage(accounts, { after, limit: limit + 1, q }))
  return pageText('contacts', rows, { limit, next })
}

/** A cursor is valid only with the filters it was made for. */
export function readContactPaging(
  { secrets }: App,
  { workspace_id }: Caller,
  { account_id, q, cursor }: ContactQuery,
): Paging {
  return readPaging(secrets, { workspace_id, operation: 'list_contacts', filters: { account_id, q } }, cursor)
}

/** One statement and one plan for every page, the first included: see `chatPage`. */
export function contactPage(
  accounts: readonly Account[],
  { after = start, limit, q }: { after?: Position | undefined; limit: number; q?: string | undefined },
): Sql {
  const [name, provider_id, account_id] = after
  const words = q === undefined ? [] : prefixPhrases(q).map((phrase) => toTsquery(phrase))
  const matching = q === undefined ? sql`` : sql`and c.name_tokens @@ ${words.join(' & ')}::tsquery`
  return sql`
    select row_to_json(item)::text as item, p.sort_name, p.provider_id, p.account_id
    from (
      select page.*
      from (
        select ${accounts.map(({ id }) => id)}::text[] as ids, ${name}::text as sort_name,
          ${provider_id}::bigint as provider_id, ${account_id}::text as account_id offset 0) asked
      cross join unnest(asked.ids) as a (id)
      cross join lateral (
        select * from (
          select c.account_id, c.provider_id, c.name, c.username, c.sort_name from contacts c
          where c.account_id = a.id ${matching}
            and (c.sort_name, c.provider_id) >= (asked.sort_name, asked.provider_id)
            and (c.sort_name, c.provider_id, c.account_id) > (asked.sort_name, asked.provider_id, asked.account_id)
          order by c.sort_name, c.provider_id limit 201) longest
        order by sort_name, provider_id limit (select ${limit}::int)) page
      order by sort_name, provider_id, account_id limit (select ${limit}::int)) p
    cross join lateral (select p.account_id, p.provider_id::text, p.name, p.username) item`
}
