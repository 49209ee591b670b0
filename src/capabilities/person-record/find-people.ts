/** Finds people by a name, a username, a phone number, an address or an id, over all accounts of a workspace. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { type Paging, type Position, readPaging } from '../../lib/cursor.ts'
import { pageText, type Row } from '../../lib/page.ts'
import { chatPrefix } from '../../lib/shapes.ts'
import { prefixPhrases, toTsquery } from '../../lib/tokens.ts'
import { listedDigits, readIdentity } from '../../rules/identifier.ts'
import { calledOf, currentNamesOf, isPersonListed, peopleNamed } from '../people/people.ts'

interface PersonQuery {
  readonly q: string
  readonly cursor?: string | undefined
  readonly limit: number
}

/** The page as JSON text: people whom `q` names exactly come first, then those with its words in a name. */
export async function findPeople(
  app: App,
  { workspace_id }: Pick<Caller, 'workspace_id'>,
  { query: { q, limit }, paging: { after, next } }: { query: PersonQuery; paging: Paging },
): Promise<string> {
  const rows = await app.db.lists<Row>(foundPage(workspace_id, { q, after, limit: limit + 1 }))
  return pageText('people', rows, { limit, next })
}

/** A cursor is valid only for its question. */
export function readPersonPaging(
  { secrets }: App,
  { workspace_id }: Caller,
  { q, cursor }: PersonQuery,
): Paging {
  return readPaging(secrets, { workspace_id, operation: 'find_people', filters: { q } }, cursor)
}

/** Before everybody: a rank, a platform, a number. */
const start: Position = [-1, '', '0']

/**
 * In the order of rank, platform and number. Each branch reads by a key: numbers and names of people, or the words of one
 * account's contacts and chats from a number on.
 */
export function foundPage(
  workspace_id: string,
  { q, after = start, limit }: { q: string; after?: Position | undefined; limit: number },
): Sql {
  const [rank, platform, number] = after
  const { numbers, names } = identitiesIn(q)
  const words = prefixPhrases(q).map((phrase) => toTsquery(phrase))
  // Where the page of one account begins, of those who have the words.
  const from = sql`case when ${rank}::int < 1 or a.platform > ${platform}::text then 0
    when a.platform = ${platform}::text then ${number}::bigint else 9223372036854775807 end`
  const wordMatches =
    words.length === 0
      ? sql``
      : sql`
      union all
      select 1, a.platform, named.number, a.id from own a cross join lateral (
        (select c.provider_id as number from contacts c
        where c.account_id = a.id and c.name_tokens @@ ${words.join(' & ')}::tsquery and c.provider_id > ${from}
        order by c.provider_id limit ${limit})
        union
        (select c.chat_id from chats c
        where c.account_id = a.id and c.name_tokens @@ ${words.join(' & ')}::tsquery and c.kind = 'private'
          and c.chat_id > ${from}
        order by c.chat_id limit ${limit})) named
      where not exists (select from exact e where e.platform = a.platform and e.number = named.number)`
  return sql`
    with own as materialized (
      select a.id, a.platform from accounts a where a.workspace_id = ${workspace_id}), -- guard: people of own accounts
    exact as materialized (
      select a.platform, asked.number, a.id as account_id
      from own a cross join unnest(${numbers}::bigint[]) as asked (number)
      -- Scalars with a limit: PostgreSQL would read a whole table for several tests of existence.
      where coalesce(
        (select true from people p
          where p.workspace_id = ${workspace_id} and p.platform = a.platform and p.number = asked.number limit 1),
        (select true from contacts c where c.account_id = a.id and c.provider_id = asked.number limit 1),
        (select true from chats c where c.account_id = a.id and c.chat_id = asked.number and c.kind = 'private' limit 1))
      union all
      ${peopleNamed(workspace_id, names)}),
    found as materialized (
      select min(rank) as rank, platform, number, min(account_id) as account_id
      from (
        select 0 as rank, platform, number, account_id from exact
        ${wordMatches}) every
      where (rank, platform, number) > (${rank}::int, ${platform}::text, ${number}::bigint)
      group by platform, number order by 1, 2, 3 limit ${limit}),
    -- Until every contact of before was read, and for a chat whose person no account has as a contact, there is no row yet.
    known as materialized (
      select f.rank, coalesce((
        select p.id from people p
        where p.workspace_id = ${workspace_id} and p.platform = f.platform and p.number = f.number),
        person_of(${workspace_id}, f.account_id, f.number)) as id, f.platform, f.number
      from found f)
    select row_to_json(item)::text, k.rank::text, k.platform, k.number::text
    from known k cross join lateral (
      select k.id, k.platform, k.number::text as platform_id,
        ${calledOf({ workspace_id: sql`${workspace_id}::uuid`, platform: sql`k.platform`, number: sql`k.number` })} as name,
        ${currentNamesOf(sql`k.id`, shownMax)} as names,
        ${isPersonListed({ workspace_id: sql`${workspace_id}::uuid`, id: sql`k.id`, number: sql`k.number` })} as suppressed) item
    order by k.rank, k.platform, k.number`
}

/** How many names of each person a page shows. */
const shownMax = 20

/** Every identity that the text can mean: digits can be an id and a phone number. In the form of the suppression list. */
export function identitiesIn(text: string): {
  readonly numbers: readonly string[]
  readonly names: readonly { readonly kind: 'username' | 'phone'; readonly value: string }[]
} {
  const given = text.trim()
  const isChat = given.startsWith(chatPrefix)
  const id = readIdentity('platform_id', isChat ? given.slice(chatPrefix.length) : given)
  const numbers = typeof id === 'string' ? [] : [id.value]
  if (isChat) return { numbers, names: [] }
  const columns = ['username', 'phone', 'identifier'] as const
  const names = columns.flatMap((column) => {
    const read = readIdentity(column, given)
    if (typeof read === 'string' || read.kind === 'id') return []
    const value = read.kind === 'phone' ? listedDigits(read.value) : read.value.toLowerCase()
    return value === undefined ? [] : [{ kind: read.kind, value }]
  })
  const distinct = new Map(names.map((name) => [`${name.kind}:${name.value}`, name]))
  return { numbers, names: [...distinct.values()] }
}
