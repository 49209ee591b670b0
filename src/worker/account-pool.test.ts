/** A process that cannot write its journal leaves its accounts to one that can. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../test/harness/process.ts'
import { openWorkplace, type Workplace } from '../../test/harness/worker.ts'
import { noteHeartbeat } from '../access/ledger/workers.ts'
import { sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import { AccountPool } from './account-pool.ts'
import { Echoes } from './echoes.ts'

let place: Workplace
beforeAll(async () => {
  place = await openWorkplace()
})
afterAll(() => place.close())

test('accounts are taken, and given up while the journal cannot be written', async () => {
  const { app } = place.service
  const account_id = await place.account(await place.service.tenant())
  const worker_id = newId()
  let writable = true
  const pool = new AccountPool(app, {
    worker_id,
    platforms: new Map([['sandbox', place.sandbox.platform]]),
    echoes: new Echoes(app),
    behind: () => {},
    mayDrive: async () => writable,
  })
  const step = () => pool.loops[0]?.step(app, new AbortController().signal)
  const owner = async () => {
    const { lease_owner } = await place.db.one<{ lease_owner: string | null }>(
      sql`select lease_owner from account_hosts where account_id = ${account_id}`,
    )
    return lease_owner
  }
  await noteHeartbeat(app.db, worker_id)
  await step()
  expect(await owner()).toBe(worker_id)
  writable = false
  await step()
  expect(pool.driven()).toEqual(new Map())
  await until('the lease is given back', 5_000, async () => (await owner()) === null)
  await step()
  expect(await owner()).toBe(null)
  await pool.stop()
})
