/** What happened, told in the transaction that stores it. */
import { sql, type Tx } from '../db/sql.ts'

export const eventTypes = [
  'message.received',
  'message.edited',
  'message.deleted',
  'pipeline.moved',
  'campaign.replied',
] as const
export type EventType = (typeof eventTypes)[number]

export interface NewEvent {
  readonly type: EventType
  /** When it happened; null means now, in domain time. */
  readonly occurred_at: string | null
  readonly data: unknown
}

/** Into the outbox. Who calls it wakes the sequencer after the commit, never inside. */
export async function emit(tx: Tx, workspace_id: string, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return
  await tx.run(sql`
    insert into outbox (workspace_id, type, occurred_at, data)
    select ${workspace_id}, type, coalesce(occurred_at, domain_now()), data
    from unnest(${events.map(({ type }) => type)}::text[],
      ${events.map(({ occurred_at }) => occurred_at)}::timestamptz[],
      ${events.map(({ data }) => JSON.stringify(data))}::json[]) as event (type, occurred_at, data)`)
}
