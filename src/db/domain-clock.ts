/** Domain time is the database's: a manual clock is a row, so it applies to every process. */
import { Refusal } from '../lib/errors.ts'
import { type Db, sql } from './sql.ts'

/** Sets the clock as configured. A database with a manual clock refuses to go back to real time. */
export async function ensureClock(db: Db, clock: 'system' | 'manual'): Promise<void> {
  if (clock === 'manual') {
    await db.run(
      sql`insert into manual_clock (at) values (date_trunc('milliseconds', clock_timestamp())) on conflict do nothing`,
    )
    return
  }
  if (await db.maybe(sql`select at from manual_clock`)) {
    throw new Refusal(
      'This database runs on a manual clock. Set PARLEY_CLOCK=manual, or use another database for real time.',
    )
  }
}

/** Moves a manual clock forward, never back. */
export async function moveClock(db: Db, to: Date): Promise<Date> {
  const row = await db.maybe<{ at: Date }>(sql`
    update manual_clock set at = greatest(at, ${to}) returning at`)
  if (!row) throw new Refusal('This instance has no manual clock. Start it with PARLEY_CLOCK=manual.')
  return row.at
}
