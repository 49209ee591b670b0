/** Limits how many requests wait for events, over all processes. Each has a row that expires if its process dies. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { newId } from '../../lib/ids.ts'

const waitsOfCallerMax = 3
const waitsOfWorkspaceMax = 20
/** How long a request may take on top of its wait: rows of a dead process count until then. */
const spareSeconds = 10

/** Runs the wait within the limits of the caller and of the workspace, or throws. */
export async function waitInPlace(
  app: App,
  caller: Caller,
  { seconds, wait }: { seconds: number; wait: () => Promise<void> },
): Promise<void> {
  const id = newId()
  await takePlace(app, caller, { id, seconds: seconds + spareSeconds })
  try {
    await wait()
  } finally {
    // If the database is unavailable, the row expires by itself.
    await app.db.run(sql`delete from event_waits where id = ${id}`).catch(() => {}) // guard: a wait that is over gives its place back
  }
}

interface TakenPlaces {
  readonly of_caller: number
  readonly of_workspace: number
  /** Until the first of them expires. */
  readonly seconds: number
}

async function takePlace(
  app: App,
  { workspace_id, user_id, via }: Caller,
  { id, seconds }: { id: string; seconds: number },
): Promise<void> {
  const caller = via.kind === 'terminal' ? `user:${user_id}` : `${via.kind}:${via.id}`
  await app.db.transaction(async (tx) => {
    // The lock makes waits of one workspace start one after the other, so the counts below are exact.
    await tx.run(sql`select pg_advisory_xact_lock(hashtextextended('event_waits:' || ${workspace_id}, 0))`) // guard: waits are counted in turn
    await tx.run(sql`
      delete from event_waits where workspace_id = ${workspace_id} and expires_at <= clock_timestamp()`)
    const taken = await tx.one<TakenPlaces>(sql`
      select count(*) filter (where caller = ${caller})::int as of_caller, count(*)::int as of_workspace,
        coalesce(ceil(extract(epoch from min(expires_at) - clock_timestamp()))::int, 1) as seconds
      from event_waits where workspace_id = ${workspace_id}`)
    if (taken.of_caller >= waitsOfCallerMax) throw tooMany(`this ${via.kind}`, waitsOfCallerMax, taken) // guard: waits of a key
    if (taken.of_workspace >= waitsOfWorkspaceMax) throw tooMany('this workspace', waitsOfWorkspaceMax, taken) // guard: waits of a workspace
    await tx.run(sql`
      insert into event_waits (id, workspace_id, caller, expires_at)
      values (${id}, ${workspace_id}, ${caller}, clock_timestamp() + make_interval(secs => ${seconds}))`)
  })
}

function tooMany(whose: string, most: number, { seconds }: TakenPlaces): ApiError {
  return new ApiError('rate_limited', {
    detail: `${most} requests of ${whose} are already waiting for events. Wait for one of them, or leave out wait.`,
    // Most end long before they expire.
    retry_after: Math.max(1, Math.min(5, seconds)),
  })
}
