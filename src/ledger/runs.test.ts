/** Which accounts are confirmed in the server's present run, and which block the contacts of their pools. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { restartServer } from '../../test/harness/picture.ts'
import { setAccountEnabled } from '../capabilities/accounts/accounts.ts'
import { type Sql, sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import type { HeldLease } from './leases.ts'
import { renewGeneration } from './restore-counter.ts'
import { beginRun, confirmAccounts, holdsPools, isConfirmed, listBehind } from './runs.ts'

let rows: LedgerRows
let held: HeldLease
beforeAll(async () => {
  rows = await openLedgerRows()
})
afterAll(() => rows.close())
/** A new run of the server, at whose start the account was READY. */
beforeEach(async () => {
  held = await rows.account()
  await restartServer(rows.db)
  await beginRun(rows.db)
})

const state = ({ account_id }: HeldLease) =>
  rows.db.one<{ holds: boolean; confirmed: boolean }>(sql`
    select ${holdsPools(sql`h`)} as holds, ${isConfirmed(sql`h`)} as confirmed
    from account_hosts h where h.account_id = ${account_id}`)
const confirm = async (account = held, more: object = {}) =>
  confirmAccounts(rows.db, { ...(await rows.instance()), ...more }, [account])
const setStatus = (status: string) =>
  rows.db.run(sql`update accounts set status = ${status} where id = ${held.account_id}`)

describe('confirmAccounts', () => {
  test('confirms an account that is ours and caught up', async () => {
    expect(await state(held)).toEqual({ holds: true, confirmed: false })
    expect(await confirm()).toEqual([held.account_id])
    expect(await state(held)).toEqual({ holds: false, confirmed: true })
  })

  test.each<{ what: string; set?: Sql; account?: Partial<HeldLease>; more?: object }>([
    { what: 'it is not caught up', set: sql`observed_at = null` },
    { what: 'another worker has its lease', set: sql`lease_owner = ${newId()}` },
    { what: 'its lease is an earlier one', set: sql`lease_epoch = lease_epoch + 1` },
    { what: 'the database has forgotten writes of it', account: { writes: { seen: '1' } } },
    { what: 'this worker compared in an earlier run', more: { server_run: 'an earlier one' } },
    { what: 'this worker compared in another generation', more: { generation: newId() } },
  ])('skips it where $what', async ({ set, account, more }) => {
    if (set) await rows.host(held, set)
    expect(await confirm({ ...held, ...account }, more)).toEqual([])
    expect(await state(held)).toEqual({ holds: true, confirmed: false })
  })

  test.each(['run', 'generation'])('is valid for one %s', async (what) => {
    await confirm()
    if (what === 'run') await restartServer(rows.db)
    else await renewGeneration(rows.db)
    await beginRun(rows.db)
    expect(await state(held)).toEqual({ holds: true, confirmed: false })
  })
})

describe('an account that is not confirmed', () => {
  test.each(['NEEDS_LOGIN', 'RESTRICTED'])(
    'blocks its pools also when it becomes %s in this run',
    async (status) => {
      await setStatus(status)
      expect(await state(held)).toEqual({ holds: true, confirmed: false })
    },
  )

  test('blocks them also when it stopped being READY before any worker noticed the new run', async () => {
    await restartServer(rows.db)
    await setStatus('RESTRICTED')
    await beginRun(rows.db)
    expect(await state(held)).toEqual({ holds: true, confirmed: false })
  })

  test('blocks nothing if it was not READY when the run began', async () => {
    await setStatus('RESTRICTED')
    await restartServer(rows.db)
    await beginRun(rows.db)
    expect(await state(held)).toEqual({ holds: false, confirmed: false })
  })

  test.each(['READY', 'NEEDS_LOGIN', 'DISABLED'])(
    'blocks nothing once an operator disables it: %s before',
    async (status) => {
      await setStatus(status)
      await setAccountEnabled(rows.app, 'system', { id: held.account_id, enabled: false })
      expect(await state(held)).toEqual({ holds: false, confirmed: true })
    },
  )
})

test('a dump loaded into the running server starts a new run', async () => {
  const own = await openLedgerRows()
  try {
    await beginRun(own.db)
    const before = await own.instance()
    await own.db.pool.query(`begin; create temp table dump on commit drop as select * from instance;
      truncate instance; insert into instance select * from dump; commit`)
    expect(await own.instance()).toEqual({ ...before, server_run: expect.any(String) })
    expect((await own.instance()).server_run).not.toBe(before.server_run)
  } finally {
    await own.close()
  }
})

test('listBehind names accounts of which the database has fewer writes, or none at all', async () => {
  const other = await rows.account()
  await rows.host(held, sql`writes = 4`)
  await rows.host(other, sql`writes = 4`)
  const marks = new Map([
    [held.account_id, '4'],
    [other.account_id, '5'],
    ['acc_gone', '1'],
  ])
  expect(await listBehind(rows.db, marks)).toEqual(['acc_gone', other.account_id].toSorted())
})
