/** Of two flood waits of an account, the later end applies. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { findFloodWait, noteFlood } from './floods.ts'

let rows: LedgerRows
beforeAll(async () => {
  rows = await openLedgerRows()
})
afterAll(() => rows.close())

test.each([
  [600, 5],
  [5, 600],
])('of %s s and then %s s the longer one applies', async (first, second) => {
  const { account_id } = await rows.account()
  await noteFlood(rows.db, account_id, first)
  await noteFlood(rows.db, account_id, second)
  expect(await findFloodWait(rows.db, account_id)).toBeGreaterThan(300)
})
