/** How many first messages to people who never wrote an account may send on a day, over all campaigns. */
import { type Sql, sql } from '../../../db/sql.ts'
import { dayAt, type Zone } from '../../../rules/zones.ts'

export interface ColdAllowance {
  /** What an operator set; null: the ramp, or no limit where there is none. */
  readonly cold_per_day: number | null
  /** The platform refuses the account's first messages until an operator enables it again. */
  readonly cold_stopped: boolean
  /** The first day of an account whose platform allows new accounts only a few, as 2026-11-02; null: no ramp. */
  readonly cold_ramp_from: string | null
}

/** A new account may send `step` on its first day, and `step` more on each later day, up to `most`. */
const ramp = { step: 5, most: 20 }
const dayMs = 86_400_000

export function coldLimit(allowance: ColdAllowance, now: Date, zone: Zone): number {
  const { cold_per_day, cold_stopped, cold_ramp_from } = allowance
  if (cold_stopped) return 0 // guard: stopped first messages
  if (cold_per_day !== null) return cold_per_day
  if (cold_ramp_from === null) return Number.POSITIVE_INFINITY
  const days = (Date.parse(dayAt(zone, now)) - Date.parse(cold_ramp_from)) / dayMs
  return Math.min(ramp.most, ramp.step * (1 + Math.max(0, days)))
}

/** The same for rows of `accounts` and `account_hosts`; null: no limit. */
export function coldLimitOf(account: Sql, host: Sql, day: Sql): Sql {
  return sql`case when ${host}.cold_stopped_at is not null then 0 -- guard: stopped first messages hide nobody
    when ${account}.cold_per_day is not null then ${account}.cold_per_day
    when ${account}.cold_ramp_from is not null
      then least(${ramp.most}, ${ramp.step} * (1 + greatest(0, ${day} - ${account}.cold_ramp_from))) end`
}

export function coldColumns(account: Sql, host: Sql): Sql {
  return sql`${account}.cold_per_day, ${account}.cold_ramp_from::text, ${host}.cold_stopped_at is not null as cold_stopped`
}
