/** Whom a workspace never writes to first. */
import { type Db, sql } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'

/** As much of a person as is known. */
export interface Identity {
  readonly id?: string | null
  readonly username?: string | null
  readonly phone?: string | null
}

/** Whether any of what is known of this person is on the list. A list that cannot be read says yes to nobody. */
export async function findSuppressed(
  db: Db,
  workspace_id: string,
  { id, username, phone }: Identity,
): Promise<boolean> {
  try {
    const row = await db.maybe(sql`
      select 1 from suppressions where workspace_id = ${workspace_id} and (
        (kind = 'platform_id' and value = ${id ?? null})
        or (kind = 'username' and value = ${username?.toLowerCase() ?? null})
        or (kind = 'phone' and value = ${phone === null || phone === undefined ? null : phoneDigits(phone)}))
      limit 1`)
    return row !== undefined
  } catch (cause) {
    throw new ApiError('suppression_unavailable', { cause })
  }
}

/** A phone number is its digits, however it is written. */
export function phoneDigits(phone: string): string {
  return phone.replaceAll(/\D/g, '')
}
