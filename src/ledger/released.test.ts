/** What a caller hears about an operation that provably did not happen: for each cause a true sentence. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { sql } from '../db/sql.ts'
import { findById } from './enqueue.ts'
import type { HeldLease } from './leases.ts'
import { releasedError } from './released.ts'
import { type Ending, settle } from './settle.ts'

let rows: LedgerRows
let held: HeldLease
beforeAll(async () => {
  rows = await openLedgerRows()
  held = await rows.account()
})
afterAll(() => rows.close())

async function answerFor(ending: Ending): Promise<string> {
  const id = await rows.operation(held)
  await rows.db.transaction((tx) =>
    settle(tx, rows.app.operations, [{ id, token: null, queued_no: 1, ending }]),
  )
  const row = await findById(rows.db, id)
  if (!row) throw new Error('The row is gone.')
  const { status, code, message } = await releasedError(rows.app, row, { flood: 503 })
  return `${status} ${code}: ${message}`
}

const released = (reason: string, detail?: string): Ending => ({
  to: 'released',
  reason,
  ...(detail && { detail }),
})
const again = 'Nothing was sent; you can retry with the same key.'

describe('a released operation says why', () => {
  test.each<[Ending, string]>([
    [
      released('dispatch_off'),
      `503 provider_unavailable: Sending is switched off on this instance. ${again}`,
    ],
    [released('withdrawn'), `503 provider_unavailable: The account did not reach it in time. ${again}`],
    [released('expired'), `503 provider_unavailable: The account did not reach it in time. ${again}`],
    [released('not_live'), `503 session_unavailable: The account's session is not live right now. ${again}`],
    [
      released('never_written', 'deadline'),
      `503 provider_unavailable: The worker of the account was stalled for too long. ${again}`,
    ],
    [
      released('never_written', 'journal'),
      `503 provider_unavailable: The worker of the account cannot write its journal. ${again}`,
    ],
    [
      released('never_written', 'lost_commit'),
      `503 store_unavailable: The database did not respond just before submission. ${again}`,
    ],
    [
      released('never_written', 'The session is closed.'),
      `503 session_unavailable: The account's session ended before submission. ${again}`,
    ],
    [
      released('not_prepared', 'timeout'),
      `503 provider_unavailable: The platform did not respond during preparation. ${again}`,
    ],
    [
      released('not_prepared', 'unknown'),
      `503 provider_unavailable: The platform failed during preparation. ${again}`,
    ],
    [
      released('not_prepared', 'not_written'),
      `503 session_unavailable: The account's session ended before submission. ${again}`,
    ],
    [
      released('not_prepared', 'preparation_failed'),
      `503 provider_unavailable: Preparation failed; the log of the service says why. ${again}`,
    ],
    [
      released('unknown_kind'),
      `503 provider_unavailable: The worker of the account does not support this operation. ${again}`,
    ],
    [
      released('forbidden', 'identity_suppressed'),
      '409 identity_suppressed: This identity is on the suppression list.',
    ],
    [
      released('platform_refused', 'needs_login'),
      "403 account_unavailable: The platform no longer accepts this account's login. Connect the account again.",
    ],
  ])('%o', async (ending, sentence) => {
    expect(await answerFor(ending)).toBe(sentence)
  })

  test("with the route's code for a flood wait that is still running", async () => {
    await rows.host(held, sql`flood_until = domain_now() + interval '1 minute'`)
    expect(await answerFor(released('platform_refused', 'flood_wait'))).toMatch(/^503 flood_wait: /)
    await rows.host(held, sql`flood_until = null`)
  })

  test("with the platform's answer for a refusal that arrived after the operation was given up", async () => {
    expect(await answerFor(released('platform_refused', 'blocked_by_person'))).toMatch(
      /^403 blocked_by_person: /,
    )
  })
})
