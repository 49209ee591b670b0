/** What the platform's history says about unknown outcomes: only the operation's own random id proves its message. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import type { Message, Session } from '../platform/port.ts'
import { observeLoop, sweepLoop } from './recovery.ts'

let rows: LedgerRows
beforeAll(async () => {
  rows = await openLedgerRows()
})
afterAll(() => rows.close())

const text = 'The offer'

/** An unknown outcome, after the chat's history was read, which has this message of ours. */
async function observed(shown: (random_id: string) => string | null) {
  const held = await rows.account()
  const id = await rows.operation(held, {
    ...{ state: 'ambiguous', token: newId() },
    payload: { text, file: null },
  })
  await rows.db.run(sql`update operations set finished_at = domain_now() where id = ${id}`)
  const message: Message = {
    ...{ id: '70', text, is_sender: true, sender_id: null, timestamp: new Date().toISOString() },
    ...{ edited_at: null, attachments: [], random_id: shown((await rows.queued(id)).random_id) },
  }
  const session = { history: async () => ({ kind: 'accepted', value: [message] }) } as unknown as Session
  const account = { held, session, awaits: () => {}, gapJitter: 0, paceMs: 0 }
  const { signal } = new AbortController()
  await observeLoop(rows.app, () => new Map([[held.account_id, account]])).step(rows.app, signal)
  await sweepLoop().step(rows.app, signal)
  return rows.db.one<{ state: string; hint: string | null; message_id: string | null }>(sql`
    select state, hint_message_id::text as hint, reply_body ->> 'message_id' as message_id
    from operations where id = ${id}`)
}

test('a message with its random id proves that it was sent', async () => {
  expect(await observed((random_id) => random_id)).toEqual({
    state: 'completed',
    hint: null,
    message_id: '70',
  })
})

test('a message of ours with another random id proves nothing, whatever its text', async () => {
  expect(await observed(() => '4711')).toEqual({ state: 'ambiguous', hint: null, message_id: null })
})

test('a message with its text and without a random id is a hint for a person', async () => {
  expect(await observed(() => null)).toEqual({ state: 'ambiguous', hint: '70', message_id: null })
})
