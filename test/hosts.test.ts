import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openWorkplace, type Workplace } from './harness/worker.ts'

let place: Workplace
beforeAll(async () => {
  place = await openWorkplace()
  await place.work()
})
afterAll(() => place.close())

test('probe: leases are renewed', async () => {
  const tenant = await place.service.tenant()
  await place.connected(tenant)
  await sleep(8000)
  console.log(place.service.log.filter((l) => !l.includes('"request"')).slice(-5).join(''))
  expect(1).toBe(1)
})
