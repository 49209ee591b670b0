/** The processes that work on this database: which live, which may drive accounts, and which owe it something. */
import { type Db, sql } from '../../db/sql.ts'

/** A worker that has not been heard of for this long has ended: its journal will not grow any more. */
const silentSeconds = 30

/** Says that this process lives. A process that was declared dead by mistake comes back with it. */
export async function noteHeartbeat(db: Db, worker_id: string): Promise<void> {
  await db.run(sql`
    insert into workers (id) values (${worker_id})
    on conflict (id) do update set beat_at = real_now(), stopped_at = null`)
}

export async function noteStopped(db: Db, worker_id: string): Promise<void> {
  await db.run(sql`update workers set stopped_at = real_now() where id = ${worker_id}`)
}

/** A worker that cannot write its journal is not counted on for a share of the accounts. True: that is news. */
export async function noteDrives(db: Db, worker_id: string, drives: boolean): Promise<boolean> {
  const changed = await db.run(sql`
    update workers set drives = ${drives} where id = ${worker_id} and drives <> ${drives}`)
  return changed > 0
}

/** While a worker owes, nobody crosses anything: its journals may know what the database has forgotten. */
export async function noteOwing(db: Db, worker_id: string, owes: boolean): Promise<void> {
  await db.run(sql`
    insert into workers (id, owes) values (${worker_id}, ${owes})
    on conflict (id) do update set owes = excluded.owes`)
}

/** Its debt is another's by now, or a person has said that it is not waited for. False: it owes nothing. */
export async function forgiveWorker(db: Db, worker_id: string): Promise<boolean> {
  return (await db.run(sql`update workers set owes = false where id = ${worker_id} and owes`)) === 1
}

export function listOwing(db: Db): Promise<{ id: string; beat_at: Date }[]> {
  return db.rows(sql`select id, beat_at from workers where owes order by id`)
}

/**
 * Those of the given workers that have ended. Workers that are not known any more have ended long ago. A heartbeat from the
 * future is of a clock that was set back since.
 */
export async function listEnded(db: Db, ids: readonly string[]): Promise<Set<string>> {
  const alive = await db.rows<{ id: string }>(sql`
    select id from workers where id = any(${ids}::uuid[]) and stopped_at is null
      and beat_at between real_now() - make_interval(secs => ${silentSeconds})
        and real_now() + make_interval(secs => ${silentSeconds})`)
  return new Set(ids.filter((id) => !alive.some((worker) => worker.id === id)))
}

export function forgetWorkers(db: Db): Promise<number> {
  return db.run(sql`delete from workers where beat_at < real_now() - interval '7 days' and not owes`)
}
