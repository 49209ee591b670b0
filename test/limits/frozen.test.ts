/** A connection that is open and silent is not a live session. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { listLiveness, liveSeconds } from '../../src/ledger/liveness.ts'
import { openWorkplace, type Workplace } from '../harness/worker.ts'

const tickMs = 1_000
/** As shortened for these tests: how long it is quiet before a ping, and how long the answer may take. */
const quietAndPingMs = 3_000 + 1_500

let place: Workplace
beforeAll(async () => {
  expect(liveSeconds).toBe(9)
  place = await openWorkplace()
  await place.work()
})
afterAll(() => place.close())

/** How long before the database's now this account was last heard, and the time there. */
function heard(account_id: string) {
  return place.db.one<{ now_ms: number; observed_ms: number | null }>(sql`
    select extract(epoch from clock_timestamp())::float8 * 1000 as now_ms,
      extract(epoch from observed_at)::float8 * 1000 as observed_ms
    from account_hosts where account_id = ${account_id}`)
}

test(
  'a frozen account is no longer live after too long a silence, and a quiet one still is',
  async () => {
    const tenant = await place.service.tenant()
    const [frozen, quiet] = [await place.connected(tenant), await place.connected(tenant)]
    const account_id = frozen
    place.fault({ on: 'updates', fault: 'freeze', seconds: 3_600, account_id })
    place.fault({ on: 'connect', fault: 'freeze', seconds: 3_600, times: 0, account_id })
    const { now_ms: begun } = await heard(frozen)
    place.write(frozen, place.person(), 'nobody hears this')
    let leftMs: number | undefined
    while (leftMs === undefined) {
      const live = await listLiveness(place.db, [frozen, quiet])
      expect(live.get(quiet)).toBe(true)
      const { now_ms, observed_ms } = await heard(frozen)
      // However late this process looks: no process has recorded a sign of the account since.
      expect(observed_ms ?? 0).toBeLessThan(begun + tickMs)
      if (!live.get(frozen)) leftMs = now_ms - begun
      await sleep(100)
    }
    process.stdout.write(`a frozen account was live for ${(leftMs / 1000).toFixed(1)} s\n`)
    // Nor at the first doubt: until a ping stays unanswered the account may only be quiet. Then it ends immediately.
    expect(leftMs).toBeGreaterThan(quietAndPingMs - tickMs)
    // No operator has to act: the platform never refused.
    expect(await place.status(frozen)).toBe('READY')
    expect(await place.messages(frozen)).toEqual([])
  },
  (liveSeconds + 30) * 1000,
)
