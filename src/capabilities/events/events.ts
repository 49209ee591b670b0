/** The events of a workspace, in order. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { contractVersion } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import { retention } from '../../events/sequencer.ts'

interface EventPage {
  readonly events: readonly unknown[]
  /** What to give as `after` for the next page; null at the end. */
  readonly next_cursor: string | null
  readonly has_more: boolean
}

interface Row {
  readonly sequence: number
}

export async function listEvents(
  app: App,
  caller: Caller,
  { after, limit }: { after: string; limit: number },
): Promise<EventPage> {
  const rows = await app.db.rows<Row>(sql`
    select id, type, ${contractVersion} as api_version, workspace_id, sequence::float8 as sequence, occurred_at,
      created_at, data
    from events
    where workspace_id = ${caller.workspace_id} and sequence > ${after}
      and created_at > domain_now() - ${retention}::interval
    order by sequence limit ${limit + 1}`)
  const events = rows.slice(0, limit)
  const has_more = rows.length > limit
  return { events, next_cursor: has_more ? String(events.at(-1)?.sequence) : null, has_more }
}
