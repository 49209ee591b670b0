/** Logins and logouts of an account, one at a time. */
import type { App } from '../../app.ts'
import { ApiError } from '../../lib/errors.ts'

/** The lock ends with its connection, so a process that is killed leaves none behind. */
export async function withLoginLock<T>(
  { db }: Pick<App, 'db'>,
  account_id: string,
  work: () => Promise<T>,
): Promise<T> {
  const client = await db.client()
  try {
    const { rows } = await client.query<{ mine: boolean }>(
      "select pg_try_advisory_lock(hashtextextended('account login:' || $1, 0)) as mine",
      [account_id],
    )
    // guard: one login of an account at a time
    if (!rows[0]?.mine) throw refused('Another login or logout of this account is in progress.')
    return await work()
  } finally {
    await client.end()
  }
}

/** The sentence says what prevents the login or logout. */
export function refused(detail: string): ApiError {
  return new ApiError('conflict', { detail })
}
