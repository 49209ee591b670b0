/** Several workers of one process share their metrics. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openWorkplace, type Workplace } from '../../test/harness/worker.ts'

let place: Workplace
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-second-'))
  place = await openWorkplace()
})
afterAll(async () => {
  await place.close()
  await rm(directory, { recursive: true, force: true })
})

test('two workers on one App run at the same time, and the accounts of both are counted', async () => {
  await place.work()
  await place.work(place.service.app, directory)
  const tenant = await place.service.tenant()
  await place.connected(tenant)
  await place.connected(tenant)
  const shown = await place.service.app.metrics.getSingleMetricAsString('parley_accounts')
  expect(shown).toContain('parley_accounts{state="connected"} 2')
})
