/** The worker processes of this database: which are alive, which may drive accounts, and which owe a put-back. */
import { type Db, type Sql, sql } from '../db/sql.ts'
import { version } from '../lib/version.ts'

/** A worker without a heartbeat for this long has ended: its journal will not grow any more. */
const silentSeconds = 30

/** With less room than this on its disk, a worker may soon be unable to write its journal. */
export const diskShortBytes = 1024 ** 3 // limit: short disk

interface Heartbeat {
  readonly worker_id: string
  readonly platforms: readonly string[]
  /** The loops whose last step failed. */
  readonly failing?: readonly string[]
  /** Free bytes on the disk of its data directory. */
  readonly disk_free?: number | null
}

/** Records that this process is alive. It also revives a process that was declared dead by mistake. */
export async function noteHeartbeat(
  db: Db,
  { worker_id, platforms, failing = [], disk_free = null }: Heartbeat,
): Promise<void> {
  await db.run(sql`
    insert into workers (id, platforms, version, failing, disk_free)
    values (${worker_id}, ${platforms}, ${version}, ${failing}, ${disk_free}::bigint)
    on conflict (id) do update set beat_at = real_now(), stopped_at = null, platforms = excluded.platforms,
      version = excluded.version, failing = excluded.failing, disk_free = excluded.disk_free`)
}

/** Whether the worker of row `w` had a recent heartbeat. One from the future comes from a clock that was set back since. */
const wasHeard: Sql = sql`w.beat_at between real_now() - make_interval(secs => ${silentSeconds})
  and real_now() + make_interval(secs => ${silentSeconds})`
const isAlive: Sql = sql`w.stopped_at is null and ${wasHeard}`

/**
 * Whether some worker could drive the account of row `a` of `accounts`: it writes its journal and reaches the platform. One
 * that signed off a moment ago counts too, because it is most likely being restarted.
 */
export const hasWorker: Sql = sql`exists (
  select from workers w where w.drives and a.platform = any(w.platforms) and ${wasHeard})`

/** The platforms that some worker can drive accounts of now. */
export async function listDrivenPlatforms(db: Db): Promise<string[]> {
  const rows = await db.rows<{ platform: string }>(sql`
    select distinct unnest(w.platforms) as platform from workers w where w.drives and ${isAlive} order by platform`)
  return rows.map(({ platform }) => platform)
}

export interface WorkerCounts {
  /** Alive and able to drive accounts. */
  readonly driving: number
  /** Alive, and its journal cannot be written. */
  readonly without_journal: number
  /** Still have to put their journals back into a restored database. Nothing is sent until they have. */
  readonly owing: number
}

export function countWorkers(db: Db): Promise<WorkerCounts> {
  return db.one<WorkerCounts>(sql`
    select (count(*) filter (where w.drives and ${isAlive}))::int as driving,
      (count(*) filter (where not w.drives and ${isAlive}))::int as without_journal,
      (count(*) filter (where w.owes))::int as owing
    from workers w`)
}

/** `owing`: it has to replay its journals first. `silent`: no heartbeat for a while, and it has not signed off. */
export const workerStates = ['driving', 'without_journal', 'owing', 'silent', 'stopped'] as const

interface WorkerView {
  readonly id: string
  readonly state: (typeof workerStates)[number]
  readonly version: string
  readonly started_at: Date
  readonly beat_at: Date
  readonly platforms: readonly string[]
  readonly accounts: number
  readonly failing: readonly string[]
  readonly disk_free: number | null
}

/** Those with a heartbeat in the last day, and those that sending waits for; those that are alive first. */
export function listWorkers(db: Db): Promise<WorkerView[]> {
  return db.rows<WorkerView>(sql`
    select w.id, case when w.owes then 'owing' when w.stopped_at is not null then 'stopped'
        when not ${wasHeard} then 'silent' when w.drives then 'driving' else 'without_journal' end as state,
      w.version, w.started_at, w.beat_at, w.platforms, w.failing, w.disk_free::float8 as disk_free,
      case when ${isAlive} then (
        select count(*)::int from account_hosts h where h.lease_owner = w.id) else 0 end as accounts
    from workers w where w.owes or w.beat_at > real_now() - interval '1 day'
    order by ${isAlive} desc, w.beat_at desc, w.id limit 100`)
}

export async function noteStopped(db: Db, worker_id: string): Promise<void> {
  await db.run(sql`update workers set stopped_at = real_now() where id = ${worker_id}`)
}

/** A worker that cannot write its journal does not count when accounts are shared out. True: this changed. */
export async function noteDrives(db: Db, worker_id: string, drives: boolean): Promise<boolean> {
  const changed = await db.run(sql`
    update workers set drives = ${drives} where id = ${worker_id} and drives <> ${drives}`)
  return changed > 0
}

/** Records whether the worker still has to put its journals back. Until then nothing crosses: they may have lost outcomes. */
export async function noteOwing(db: Db, worker_id: string, owes: boolean): Promise<void> {
  await db.run(sql`
    insert into workers (id, owes) values (${worker_id}, ${owes})
    on conflict (id) do update set owes = excluded.owes`)
}

/** Stops waiting for the worker's journals: another worker puts them back, or an operator decided so. False: none were due. */
export async function forgiveWorker(db: Db, worker_id: string): Promise<boolean> {
  return (await db.run(sql`update workers set owes = false where id = ${worker_id} and owes`)) === 1
}

export function listOwing(db: Db): Promise<{ id: string; beat_at: Date }[]> {
  return db.rows(sql`select id, beat_at from workers where owes order by id`)
}

/** Those of the given workers that have ended. Workers without a row ended long ago. */
export async function listEnded(db: Db, ids: readonly string[]): Promise<Set<string>> {
  const alive = await db.rows<{ id: string }>(sql`
    select w.id from workers w where w.id = any(${ids}::uuid[]) and ${isAlive}`)
  return new Set(ids.filter((id) => !alive.some((worker) => worker.id === id)))
}

export function forgetWorkers(db: Db): Promise<number> {
  return db.run(sql`
    delete from workers where beat_at < real_now() - interval '7 days'
      and not owes -- guard: an owing worker is not forgotten
    `)
}
