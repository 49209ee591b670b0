/** A connection that is open and silent is not a live session. Takes as long as a session may be silent. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listLiveness, liveSeconds } from '../src/access/ledger/liveness.ts'
import { openWorkplace, type Workplace } from './harness/worker.ts'

const tickMs = 1_000

let place: Workplace
beforeAll(async () => {
  place = await openWorkplace()
  await place.work()
})
afterAll(() => place.close())

test(
  'a frozen account is no longer live after 90 seconds, and a quiet one still is',
  async () => {
    const tenant = await place.service.tenant()
    const [frozen, quiet] = [await place.connected(tenant), await place.connected(tenant)]
    const account_id = frozen
    place.fault({ on: 'updates', fault: 'freeze', seconds: 3_600, account_id })
    place.fault({ on: 'connect', fault: 'freeze', seconds: 3_600, times: 0, account_id })
    const begun = performance.now()
    place.write(frozen, place.person(), 'nobody hears this')
    let leftMs: number | undefined
    while (leftMs === undefined) {
      const live = await listLiveness(place.db, [frozen, quiet])
      expect(live.get(quiet)).toBe(true)
      const silentMs = performance.now() - begun
      if (!live.get(frozen)) leftMs = silentMs
      else expect(silentMs).toBeLessThan(liveSeconds * 1000 + tickMs)
      await sleep(250)
    }
    process.stdout.write(`a frozen account was live for ${(leftMs / 1000).toFixed(1)} s\n`)
    // Not at the first doubt either: until then it may only be quiet.
    expect(leftMs).toBeGreaterThan(60_000)
    // Nothing was asked of a person: the platform never said no.
    expect(await place.status(frozen)).toBe('READY')
    expect(await place.messages(frozen)).toEqual([])
  },
  (liveSeconds + 30) * 1000,
)
