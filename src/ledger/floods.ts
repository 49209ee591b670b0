/** Flood waits: how long the platform wants an account to slow down, on every path. They use domain time. */
import { type Db, sql } from '../db/sql.ts'

/** Records a flood wait. Of two, the one that ends later counts. */
export async function noteFlood(db: Db, account_id: string, seconds: number): Promise<void> {
  await db.run(sql`
    update account_hosts
    set flood_until = greatest(flood_until, domain_now() + make_interval(secs => ${seconds})) -- guard: the longer flood wait holds
    where account_id = ${account_id}`)
}

/** Seconds until the account may call the platform again; undefined when it may now. */
export async function findFloodWait(db: Db, account_id: string): Promise<number | undefined> {
  const row = await db.maybe<{ seconds: number }>(sql`
    select ceil(extract(epoch from flood_until - domain_now()))::int as seconds
    from account_hosts where account_id = ${account_id} and flood_until > domain_now()`)
  return row?.seconds
}
