/** Operations that were to send a message and have none, or none yet: what a team sees among the messages of a chat. */
import { type Sql, sql } from '../db/sql.ts'
import type { OperationKinds } from '../operation.ts'

/** The kinds of operation that become a message. */
export function messageKinds(kinds: OperationKinds): string[] {
  return [...kinds.values()].filter((one) => one.found_in_history).map(({ kind }) => kind)
}

/**
 * Of an operation `o`. A released one has sent nothing, and its caller may repeat it; a stored message that carries the
 * random id stands for its operation, also before the ledger knows.
 */
export function unsent(kinds: readonly string[]): Sql {
  return sql`o.state in ('queued', 'submitting', 'refused', 'ambiguous') and o.kind = any(${kinds})
    and not exists (
      select from messages sent where sent.account_id = o.account_id
        and sent.random_id = o.random_id -- guard: a message stands for its operation
      )`
}
