/** A connection that is open and silent is not a live session. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { listLiveness, liveSeconds } from '../../src/ledger/liveness.ts'
import { openWorkplace, type Workplace } from '../harness/worker.ts'

const tickMs = 1_000
/** As made small for these tests: how long it is quiet before it is asked, and how long it may take to answer. */
const quietAndPingMs = 3_000 + 1_500

let place: Workplace
beforeAll(async () => {
  expect(liveSeconds).toBe(9)
  place = await openWorkplace()
  await place.work()
})
afterAll(() => place.close())

/** How long before the database's present this account was last heard of, and what time it is there. */
function heard(account_id: string) {
  return place.db.one<{ now_ms: number; observed_ms: number | null }>(sql`
    select extract(epoch from clock_timestamp())::float8 * 1000 as now_ms,
      extract(epoch from observed_at)::float8 * 1000 as observed_ms
    from account_hosts where account_id = ${account_id}`)
}

test(
  'a frozen account is no longer live when it was silent for too long, and a quiet one still is',
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
      // However late this process looks: nobody has said since that the account was heard of.
      expect(observed_ms ?? 0).toBeLessThan(begun + tickMs)
      if (!live.get(frozen)) leftMs = now_ms - begun
      await sleep(100)
    }
    process.stdout.write(`a frozen account was live for ${(leftMs / 1000).toFixed(1)} s\n`)
    // Not at the first doubt either: until a ping was not answered it may only be quiet. Then it is over at once.
    expect(leftMs).toBeGreaterThan(quietAndPingMs - tickMs)
    // Nothing was asked of a person: the platform never said no.
    expect(await place.status(frozen)).toBe('READY')
    expect(await place.messages(frozen)).toEqual([])
  },
  (liveSeconds + 30) * 1000,
)
