/** Writes events to the outbox in the transaction that stores what happened. */
import type { Topic } from '../app.ts'
import { given } from '../db/given.ts'
import { type Sql, sql, type Tx } from '../db/sql.ts'
import type { Traceparent } from '../lib/traceparent.ts'

/** There are new rows in the outbox. */
export const emitted: Topic = { topic: 'outbox' }

export const eventTypes = [
  'message.received',
  'message.edited',
  'message.deleted',
  'pipeline.moved',
  'campaign.replied',
] as const
type EventType = (typeof eventTypes)[number]

export interface NewEvent {
  readonly type: EventType
  /** When it happened; null means now, in domain time. */
  readonly occurred_at: string | null
  readonly data: unknown
}

/**
 * Adds the events to the outbox together with COMMIT. The caller signals `emitted` after the commit, never before.
 * `traceparent` is that of the request that causes them.
 */
export function emit(
  tx: Tx,
  workspace_id: string,
  events: readonly NewEvent[],
  traceparent?: Traceparent,
): void {
  if (events.length > 0) tx.atCommit(intoOutbox(workspace_id, events, traceparent))
}

function intoOutbox(workspace_id: string, events: readonly NewEvent[], traceparent?: Traceparent): Sql {
  const [first] = events
  // Most events have no caller: their statement has no parameter for one.
  const [column, trace] = traceparent ? [sql`, traceparent`, sql`, ${traceparent}`] : [sql``, sql``]
  // Most transactions have one event. An array of one would cost a fifth of the transactions per second.
  if (events.length === 1 && first) {
    return sql`
      insert into outbox (workspace_id, type, occurred_at, data${column})
      values (${workspace_id}, ${first.type}, coalesce(${first.occurred_at}, domain_now()),
        ${JSON.stringify(first.data)}${trace})`
  }
  return sql`
    insert into outbox (workspace_id, type, occurred_at, data${column})
    select ${workspace_id}, type, coalesce(occurred_at, domain_now()), data${trace}
    from ${given(events, { type: 'text', occurred_at: 'timestamptz', data: 'json' })} as event`
}
