/** Which operations may run now, fairly for each account and each chat. */
import { expect, test } from 'vitest'
import type { ChatNumber } from '../lib/shapes.ts'
import { Lanes } from './lanes.ts'
import type { QueuedOperation } from './queue.ts'

let count = 0
function operation(account_id: string, chat_id: ChatNumber | null, file = false): QueuedOperation {
  const id = `operation-${count++}`
  const row = {
    id,
    workspace_id: 'w',
    kind: 'send_message',
    idempotency_key: null,
    random_id: '1',
    payload: {},
  }
  const rest = { fingerprint: Buffer.alloc(32), queued_no: 1, attempt_token: null }
  const place = { campaign_id: null, recipient_id: null, step_no: null, quota_day: null, cold: false }
  return { ...row, ...rest, ...place, account_id, chat_id, file_id: file ? `file of ${id}` : null }
}

test('runs one at a time in each chat, and four at a time of each account', () => {
  const lanes = new Lanes()
  const first = lanes.take(operation('a', '1'))
  expect(first).toBeDefined()
  expect(lanes.take(operation('a', '1'))).toBeUndefined()
  for (const chat of ['2', '3', '4'] as const) expect(lanes.take(operation('a', chat))).toBeDefined()
  expect(lanes.take(operation('a', '5'))).toBeUndefined()
  expect(lanes.free(['a', 'b'])).toEqual(['b'])
  first?.()
  expect(lanes.free(['a', 'b'])).toEqual(['a', 'b'])
  expect(lanes.take(operation('a', '5'))).toBeDefined()
})

test('does not run the same operation twice, also if it has no chat', () => {
  const lanes = new Lanes()
  const one = operation('a', null)
  const release = lanes.take(one)
  expect(lanes.take(one)).toBeUndefined()
  expect(lanes.take(operation('a', null))).toBeDefined()
  release?.()
  expect(lanes.take(one)).toBeDefined()
})

test("one account's hanging files leave room for another account's, and for its own texts", () => {
  const lanes = new Lanes()
  const hanging = lanes.take(operation('a', '1', true))
  expect(hanging).toBeDefined()
  expect(lanes.take(operation('a', '2', true))).toBeUndefined()
  expect(lanes.take(operation('b', '1', true))).toBeDefined()
  expect(lanes.take(operation('a', '2'))).toBeDefined()
  hanging?.()
  expect(lanes.take(operation('a', '3', true))).toBeDefined()
})
