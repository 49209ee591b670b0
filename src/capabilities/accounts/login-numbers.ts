/** Counts logins by phone number, whichever account they are for: the platform sends a code for each to the number's owner. */
import type { App } from '../../app.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'

/** Of one number in any hour. One workspace alone cannot use up the number for all others. */
const loginsMax = { workspace: 3, instance: 6 }

interface NumberUse {
  /** When the workspace, and the instance, may log in again; null: now. */
  readonly workspace_seconds: number | null
  readonly instance_seconds: number | null
}

/** Refuses with 429, or counts this login. Holds the number's lock until the caller commits. */
export async function countLogin(
  { secrets, sources }: Pick<App, 'secrets' | 'sources'>,
  tx: Tx,
  { workspace_id, phone }: { readonly workspace_id: string; readonly phone: string },
): Promise<void> {
  const hash = secrets.sign('login_number', phone)
  await tx.run(sql`
    select pg_advisory_xact_lock(hashtextextended('login of ' || ${hash.toString('hex')}, 0))`)
  await tx.run(sql`
    delete from login_numbers where id in (
      select id from login_numbers where begun_at <= domain_now() - interval '1 hour' limit 1000 for update skip locked)`)
  const { workspace_seconds, instance_seconds } = await tx.one<NumberUse>(sql`
    with recent as (
      select workspace_id, extract(epoch from begun_at + interval '1 hour' - domain_now()) as seconds
      from login_numbers where number_hash = ${hash} and begun_at > domain_now() - interval '1 hour')
    select
      ceil((select seconds from recent where workspace_id = ${workspace_id}
        order by seconds desc offset ${loginsMax.workspace - 1} limit 1))::int as workspace_seconds,
      ceil((select seconds from recent order by seconds desc offset ${loginsMax.instance - 1} limit 1))::int
        as instance_seconds`)
  if (workspace_seconds !== null) throw tooMany(workspace_seconds) // guard: logins of a number in a workspace
  if (instance_seconds !== null) throw tooMany(instance_seconds) // guard: logins of a number in the instance
  await tx.run(sql`
    insert into login_numbers (id, workspace_id, number_hash) values (${sources.newId()}, ${workspace_id}, ${hash})`)
}

function tooMany(seconds: number): ApiError {
  return new ApiError('rate_limited', {
    detail:
      'This phone number has had too many logins in an hour, and the platform counts them. Retry after the seconds in Retry-After.',
    retry_after: Math.max(1, seconds),
  })
}
