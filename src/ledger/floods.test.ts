/** Of two flood waits of an account, the later end applies. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { floodScopes } from '../platform/port.ts'
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
  for (const stops of floodScopes) {
    await noteFlood(rows.db, account_id, { stops, retry_after_seconds: first })
    await noteFlood(rows.db, account_id, { stops, retry_after_seconds: second })
    expect(await findFloodWait(rows.db, account_id, stops)).toBeGreaterThan(300)
  }
})

test.each(floodScopes)('a wait for %s stops nothing else', async (stops) => {
  const { account_id } = await rows.account()
  await noteFlood(rows.db, account_id, { stops, retry_after_seconds: 80_000 })
  const waits = await Promise.all(floodScopes.map((scope) => findFloodWait(rows.db, account_id, scope)))
  expect(floodScopes.filter((_, at) => waits[at] !== undefined)).toEqual([stops])
})
