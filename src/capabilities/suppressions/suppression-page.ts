/** The suppression list page by page, by its key: a page costs the same wherever it is. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { type Paging, type Position, readPaging } from '../../lib/cursor.ts'
import { pageText, type Row } from '../../lib/page.ts'
import { calledUnder, peopleUnder } from '../people/people.ts'
import { type Kind, kinds, toEntry } from './entries.ts'
import { entryColumns } from './stored-entries.ts'

export interface SuppressionQuery {
  readonly kind?: Kind | undefined
  /** A username, phone number or platform id in any spelling. */
  readonly search?: string | undefined
  readonly cursor?: string | undefined
  readonly limit: number
}

/** A cursor is valid only for its filters. */
export function readSuppressionPaging(
  { secrets }: App,
  { workspace_id }: Caller,
  { cursor, kind, search }: SuppressionQuery,
): Paging {
  return readPaging(
    secrets,
    { workspace_id, operation: 'list_suppressions', filters: { kind, search } },
    cursor,
  )
}

/** The page as JSON text. */
export async function listSuppressionPage(
  { db }: App,
  { workspace_id }: Caller,
  { query, paging: { after, next } }: { query: SuppressionQuery; paging: Paging },
): Promise<string> {
  const { limit } = query
  const rows = await db.lists<Row>(suppressionPage(workspace_id, { query, after, limit: limit + 1 }))
  return pageText('suppressions', rows, { limit, next })
}

/** `after`: kind and value. */
export function entriesPage(
  workspace_id: string,
  { query: { kind, search }, after, limit }: PageWanted,
): Sql {
  const [afterKind, afterValue] = after ?? ['', '']
  const ofKind = kind === undefined ? sql`` : sql`and s.kind = ${kind}`
  const entries = search === undefined ? [] : entriesNamed(search)
  const named =
    search === undefined
      ? sql``
      : sql`and (s.kind, s.value) in (select e.kind, e.value from ${given(entries, { kind: 'text', value: 'text' })} as e)`
  return sql`
    select * from suppressions s
    where s.workspace_id = ${workspace_id} and (s.kind, s.value) > (${afterKind}, ${afterValue}) ${ofKind} ${named}
    order by s.kind, s.value limit ${limit}`
}

/** Each entry with the people whom it stops. */
function suppressionPage(workspace_id: string, wanted: PageWanted): Sql {
  return sql`
    select row_to_json(item)::text, s.kind, s.value
    from (${entriesPage(workspace_id, wanted)}) s
    cross join lateral (
      select s.kind, s.value, s.source, s.evidence, wire_time(s.created_at) as created_at,
        ${calledUnder(entryColumns)} as name, ${peopleUnder(entryColumns)} as people) item
    order by s.kind, s.value`
}

interface PageWanted {
  readonly query: Pick<SuppressionQuery, 'kind' | 'search'>
  readonly after: Position | undefined
  readonly limit: number
}

/** Every entry that the text can mean: a number can be a platform id and a phone number. */
function entriesNamed(text: string) {
  return kinds.map((kind) => toEntry(kind, text)).filter((entry) => typeof entry === 'object')
}
