/** The events of a workspace, in order. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { contractVersion } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import { retention } from '../../events/sequencer.ts'
import { pageText } from '../../lib/page.ts'

/** A stored event. `data` is byte for byte the JSON that was emitted. */
interface StoredEvent {
  readonly id: string
  readonly type: string
  readonly workspace_id: string
  /** Null for an event that only one endpoint gets. */
  readonly sequence: number | null
  readonly occurred_at: Date
  readonly created_at: Date
  readonly data: string
}

/** The canonical text of an event: `GET /events` and every attempt of every webhook return these bytes. */
export function textOfEvent(event: StoredEvent): string {
  const { id, type, workspace_id, sequence, occurred_at, created_at, data } = event
  const api_version = contractVersion
  const head = JSON.stringify({ id, type, api_version, workspace_id, sequence, occurred_at, created_at })
  return `${head.slice(0, -1)},"data":${data}}`
}

/** A page as JSON text. `next_cursor` is the `after` of the next page; null at the end. */
export async function listEvents(
  app: App,
  caller: Caller,
  { after, limit }: { after: string; limit: number },
): Promise<{ text: string; found: number }> {
  const rows = await app.db.rows<StoredEvent>(sql`
    select id, type, workspace_id, sequence::float8 as sequence, occurred_at, created_at, data::text as data
    from events
    where workspace_id = ${caller.workspace_id} and sequence > ${after}
      and created_at > domain_now() - ${retention}::interval
    order by sequence limit ${limit + 1}`)
  const items = rows.map((row) => [textOfEvent(row), String(row.sequence)] as const)
  return { text: pageText('events', items, { limit, next: ([place]) => place ?? '' }), found: rows.length }
}
