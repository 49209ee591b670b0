/** What a journal tells a database that may have forgotten it: for each state that the row can be in. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../../test/harness/ledger-rows.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import type { State } from '../../operation.ts'
import type { Held } from './leases.ts'
import { putBack, type Remembered } from './put-back.ts'

let rows: LedgerRows
let held: Held
beforeAll(async () => {
  rows = await openLedgerRows()
  held = await rows.account()
})
afterAll(() => rows.close())

function remembered(more: Partial<Remembered> = {}): Remembered {
  const { account_id, workspace_id } = held
  return {
    id: newId(),
    token: newId(),
    workspace_id,
    kind: 'send_message',
    account_id,
    chat_id: '42',
    random_id: String(Math.floor(Math.random() * 1e15)),
    key: newId(),
    fingerprint: '00'.repeat(32),
    ...more,
  }
}

const tell = (entry: Remembered) => rows.db.transaction((tx) => putBack(tx, rows.app.operations, entry))

describe('putBack', () => {
  test('a forgotten row is there again as unknown, with its key and its token', async () => {
    const entry = remembered()
    expect(await tell(entry)).toBe(true)
    expect(await rows.row(entry.id)).toMatchObject({
      state: 'ambiguous',
      reason: 'restored',
      attempt_token: entry.token,
    })
    expect(await tell(entry)).toBe(false)
  })

  test.each<[State, boolean, State]>([
    ['queued', true, 'ambiguous'],
    ['released', true, 'ambiguous'],
    ['submitting', true, 'ambiguous'],
    ['ambiguous', true, 'ambiguous'],
    ['completed', false, 'completed'],
    ['refused', false, 'refused'],
  ])('%s, as an earlier attempt left it', async (state, changed, after) => {
    const earlier = newId()
    const id = await rows.operation(held, { state, token: earlier })
    const token = newId()
    expect(await tell(remembered({ id, token }))).toBe(changed)
    const row = await rows.row(id)
    expect([row.state, row.attempt_token]).toEqual([after, changed ? token : earlier])
  })

  test.each(['submitting', 'ambiguous'] as const)('%s, and the very attempt is known', async (state) => {
    const token = newId()
    const id = await rows.operation(held, { state, token })
    expect(await tell(remembered({ id, token }))).toBe(false)
    expect((await rows.row(id)).state).toBe(state)
  })

  test('a repeat has made another row for the key: it must not run, and keeps its public name', async () => {
    const key = newId()
    const id = await rows.operation(held, { key })
    const entry = remembered({ key })
    expect(await tell(entry)).toBe(true)
    expect((await rows.row(id)).state).toBe('ambiguous')
    const found = await rows.db.one(sql`select public_id from operations where id = ${id}`)
    expect(found).toEqual({ public_id: entry.id })
  })

  test('an account that is not of this database leaves nothing', async () => {
    const entry = remembered({ account_id: 'acc_unknown' })
    expect(await tell(entry)).toBe(false)
  })
})
