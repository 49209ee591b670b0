/** The days of workspaces in statements: whose quota an instant uses, and the change of zone that decides about it. */
import { type Sql, sql } from '../db/sql.ts'
import type { ZoneChange } from '../rules/zones.ts'

/** The day of workspace `w`, a row of `workspaces`, at an instant. */
export const dayOf = (w: Sql, at: Sql): Sql =>
  sql`workspace_day(${w}.timezone, ${w}.timezone_before, ${w}.timezone_from, ${w}.day_floor, ${at})`

/** A `ZoneChange` as JSON has it. */
export type StoredChange = Omit<ZoneChange, 'from'> & { readonly from: string }

/** The last change of the zone of workspace `w`, as JSON; null if it never changed. */
export const zoneChange = (
  w: Sql,
): Sql => sql`case when ${w}.timezone_from is not null then json_build_object(
  'before', ${w}.timezone_before, 'from', wire_time(${w}.timezone_from), 'floor', ${w}.day_floor) end`

export function readChange(stored: StoredChange | null): ZoneChange | null {
  return stored && { ...stored, from: new Date(stored.from) }
}
