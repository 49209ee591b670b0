/**
 * Flood waits: how long the platform wants an account to stop sending, looking people up, or reading. Each stops only its own
 * calls, on every path. They use domain time.
 */
import { type Db, type Sql, sql } from '../db/sql.ts'
import type { OperationKinds } from '../operation.ts'
import type { FloodScope, Outcome } from '../platform/port.ts'

export type FloodWait = Pick<Extract<Outcome<never>, { kind: 'flood_wait' }>, 'retry_after_seconds' | 'stops'>

const ends: Readonly<Record<FloodScope, Sql>> = {
  sends: sql`flood_until`,
  lookups: sql`lookup_flood_until`,
  reading: sql`reading_flood_until`,
}

/** When the wait of row `h` that stops an operation of row `o` ends; null if there is none. */
export function floodEndOf(kinds: OperationKinds): Sql {
  let end = sql`h.${ends.sends}`
  for (const { kind, stopped_by } of kinds.values()) {
    if (stopped_by !== 'sends')
      end = sql`case when o.kind = ${kind} then h.${ends[stopped_by]} else ${end} end`
  }
  return end
}

/** Records a flood wait. Of two of one scope, the one that ends later counts. */
export async function noteFlood(
  db: Db,
  account_id: string,
  { retry_after_seconds, stops }: FloodWait,
): Promise<void> {
  const end = ends[stops]
  await db.run(sql`
    update account_hosts
    set ${end} = greatest(${end}, domain_now() + make_interval(secs => ${retry_after_seconds})) -- guard: the longer flood wait holds
    where account_id = ${account_id}`)
}

/** Seconds until the account may make such calls again; undefined when it may now. */
export async function findFloodWait(
  db: Db,
  account_id: string,
  scope: FloodScope,
): Promise<number | undefined> {
  const row = await db.maybe<{ seconds: number | null }>(sql`
    select ${waitSeconds(scope)} as seconds from account_hosts h where account_id = ${account_id}`)
  return row?.seconds ?? undefined
}

/** What stops accounts of the whole instance. */
export interface StopFigures {
  /** How many accounts wait, and how many seconds the longest wait still lasts. */
  readonly waits: Readonly<Record<FloodScope, { readonly accounts: number; readonly seconds: number }>>
  /** Accounts whose first messages the platform has stopped. */
  readonly cold_stopped: number
  /** Accounts whose campaign messages hold (`holds.ts`). */
  readonly campaigns_held: number
}

export function readStopFigures(db: Db): Promise<StopFigures> {
  const wait = (scope: FloodScope) => sql`
    jsonb_build_object('accounts', count(${waitSeconds(scope)}), 'seconds', coalesce(max(${waitSeconds(scope)}), 0))`
  return db.one<StopFigures>(sql`
    select jsonb_build_object('sends', ${wait('sends')}, 'lookups', ${wait('lookups')}, 'reading', ${wait('reading')}) as waits,
      (count(*) filter (where h.cold_stopped_at is not null))::int as cold_stopped,
      (count(*) filter (where h.campaigns_held_at is not null))::int as campaigns_held
    from account_hosts h`)
}

/** The same for row `h` of `account_hosts`; null when it may now. */
export function waitSeconds(scope: FloodScope): Sql {
  const end = sql`h.${ends[scope]}`
  return sql`case when ${end} > domain_now() then ceil(extract(epoch from ${end} - domain_now()))::int end`
}
