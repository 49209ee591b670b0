/** Errors that no adapter lists: when they hold an account's campaign messages, and what ends a row of them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { setAccountEnabled } from '../capabilities/accounts/accounts.ts'
import { sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import type { Outcome } from '../platform/port.ts'
import type { HeldLease } from './leases.ts'
import { Recorder } from './recording.ts'

let rows: LedgerRows
let held: HeldLease
let recorder: Recorder
beforeAll(async () => {
  rows = await openLedgerRows()
  recorder = new Recorder(rows.app, { count: () => {}, noteTrouble: async () => {} })
})
beforeEach(async () => {
  held = await rows.account()
})
afterAll(() => rows.close())

const unlisted = (error: string): Outcome<never> => ({
  kind: 'unknown',
  reason: 'unlisted',
  error,
})
const accepted = (): Outcome<unknown> => ({
  kind: 'accepted',
  value: { message_id: String(message++), at: '2026-11-02T09:00:00Z' },
})
let message = 1_000

async function attemptOf({ kind = 'send_message', of = held } = {}) {
  const token = newId()
  const id = await rows.operation(of, { state: 'submitting', token, kind })
  return { operation: await rows.queued(id), public_id: id, token }
}

async function end(outcome: Outcome<unknown>, more: Parameters<typeof attemptOf>[0] = {}): Promise<void> {
  await recorder.record({ ...(await attemptOf(more)), outcome })
}

async function endAll(...outcomes: readonly Outcome<unknown>[]): Promise<void> {
  for (const outcome of outcomes) await end(outcome)
}

const times = (count: number, error = 'NEW_LIMIT') => Array.from({ length: count }, () => unlisted(error))

async function holdOf({ account_id }: HeldLease = held): Promise<string | null> {
  const { by, since } = await rows.db.one<{ by: string | null; since: Date | null }>(sql`
    select campaigns_held_by as by, campaigns_held_at as since from account_hosts where account_id = ${account_id}`)
  expect(since === null).toBe(by === null)
  return by
}

describe('an error that is not listed', () => {
  test('holds campaign messages at the fifth send in a row, and keeps the name', async () => {
    await endAll(...times(4))
    expect(await holdOf()).toBeNull()
    await endAll(...times(1))
    expect(await holdOf()).toBe('NEW_LIMIT')
    await endAll(...times(5, 'OTHER'), accepted())
    expect(await holdOf()).toBe('NEW_LIMIT')
  })

  test.each<[string, () => Outcome<unknown>]>([
    ['an accepted send', accepted],
    ['a refusal', () => ({ kind: 'refused', reason: 'blocked_by_person' })],
    ['a flood wait', () => ({ kind: 'flood_wait', retry_after_seconds: 1, stops: 'sends' })],
    ['another unlisted error', () => unlisted('OTHER')],
  ])('is forgotten after %s', async (_, other) => {
    await endAll(...times(4), other(), ...times(4))
    expect(await holdOf()).toBeNull()
    await endAll(...times(1))
    expect(await holdOf()).toBe('NEW_LIMIT')
  })

  test('is neither counted nor forgotten where no answer came', async () => {
    await endAll(...times(4), { kind: 'unknown', reason: 'timeout' }, { kind: 'not_written', reason: 'over' })
    expect(await holdOf()).toBeNull()
    await endAll(...times(1))
    expect(await holdOf()).toBe('NEW_LIMIT')
  })

  test('counts for its own account alone, and for sends alone', async () => {
    const other = await rows.account()
    await endAll(...times(4))
    await end(unlisted('NEW_LIMIT'), { of: other })
    for (const kind of ['start_chat', 'set_read_state']) await end(unlisted('NEW_LIMIT'), { kind })
    expect([await holdOf(), await holdOf(other)]).toEqual([null, null])
  })

  test('that is recorded twice counts once', async () => {
    for (const outcome of times(4)) {
      const attempt = { ...(await attemptOf()), outcome }
      await recorder.record(attempt)
      await recorder.record(attempt)
    }
    expect(await holdOf()).toBeNull()
  })

  test('counts in its order when many outcomes are recorded at once', async () => {
    const other = await rows.account()
    const attempts = []
    for (const outcome of [...times(5), unlisted('OTHER'), accepted()])
      attempts.push({ ...(await attemptOf()), outcome })
    for (const outcome of [...times(4), accepted(), ...times(4)])
      attempts.push({ ...(await attemptOf({ of: other })), outcome })
    await Promise.all(attempts.map((attempt) => recorder.record(attempt)))
    expect([await holdOf(), await holdOf(other)]).toEqual(['NEW_LIMIT', null])
  })

  test('is an accepted send if the platform has shown the message', async () => {
    await endAll(...times(4))
    const attempt = { ...(await attemptOf()), outcome: unlisted('NEW_LIMIT') }
    await rows.db.run(sql`
      update operations set proof_message_id = 77, proof_at = now() where id = ${attempt.public_id}`)
    await recorder.record(attempt)
    expect((await rows.row(attempt.public_id)).state).toBe('completed')
    await endAll(...times(4))
    expect(await holdOf()).toBeNull()
  })

  test.each([
    [`${'A'.repeat(70)}\u202e\0\n<b>`.repeat(1_000), 'A'.repeat(64)],
    ['\u202e\0\n<b>', '____b_'],
    ["'; drop table accounts", '___drop_table_accounts'],
    ['', 'UNNAMED'],
  ])('of any name and length is recorded', async (error, name) => {
    await endAll(...times(4, error))
    const attempt = { ...(await attemptOf()), outcome: unlisted(error) }
    await recorder.record(attempt)
    expect(await holdOf()).toBe(name)
    expect((await rows.row(attempt.public_id)).detail).toBe(name)
  })

  test('holds again only after five more, once a person has let campaigns go on', async () => {
    await endAll(...times(5))
    await setAccountEnabled(rows.app, 'system', { id: held.account_id, enabled: true })
    expect(await holdOf()).toBeNull()
    await endAll(...times(4))
    expect(await holdOf()).toBeNull()
    await endAll(...times(1))
    expect(await holdOf()).toBe('NEW_LIMIT')
    const { enabled } = await rows.db.one<{ enabled: number }>(sql`
      select count(*)::int as enabled from audit where target = ${held.account_id} and action = 'account.enabled'`)
    expect(enabled).toBe(1)
  })
})
