/** Batches that only repeat what this process has recorded: the position moves, and no known count goes back. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import type { Message, Update } from '../platform/port.ts'
import { Echoes } from './echoes.ts'

let rows: LedgerRows
beforeAll(async () => {
  rows = await openLedgerRows()
})
afterAll(() => rows.close())

const sent: Update = { kind: 'sent', random_id: '5', message_id: '9', at: new Date().toISOString() } as Update

test('a late answer does not lower the known count of writes', async () => {
  const held = await rows.account()
  // While this answer was in transit, a crossing returned a higher count.
  const db = new Proxy(rows.db, {
    get(target, name) {
      if (name !== 'rows') return target[name as keyof typeof target]
      return async (statement: Parameters<typeof target.rows>[0]) => {
        const found = await target.rows(statement)
        held.writes.seen = '7'
        return found
      }
    },
  })
  const echoes = new Echoes({ ...rows.app, db })
  const expected = echoes.expect(held.account_id, '5')
  expected.resolve({ chat_id: '42', message_id: '9', text: 'Hello' })
  const advance = { held, position: '3', caught_up: true }
  expect(await echoes.take(advance, { position: '3', updates: [sent], caught_up: true })).toBe(true)
  expect(await rows.writes(held)).toBe('1')
  expect(held.writes.seen).toBe('7')
})

test('an echo waits for an answer to be recorded, but not for an answer that never comes', async () => {
  const held = await rows.account()
  // Every limit shorter than a second expires immediately, a longer one never.
  const timer = (ms: number, done: () => void) => {
    if (ms < 1_000) setImmediate(done)
    return () => {}
  }
  const echoes = new Echoes({ ...rows.app, sources: { ...rows.app.sources, timer } })
  const advance = { held, position: '3', caught_up: true }
  const batch = { position: '3', updates: [sent], caught_up: true }
  const expected = echoes.expect(held.account_id, '5')
  expect(await echoes.take(advance, batch)).toBeUndefined()
  expected.answered()
  const taken = echoes.take(advance, batch)
  await new Promise<void>((turn) => setTimeout(turn, 20))
  expected.resolve({ chat_id: '42', message_id: '9', text: 'Hello' })
  expect(await taken).toBe(true)
})

test('an echo whose recording failed is stored like any other update: the position stays where it is', async () => {
  const held = await rows.account()
  const echoes = new Echoes(rows.app)
  echoes.expect(held.account_id, '5').resolve(undefined)
  const before = await rows.writes(held)
  const advance = { held, position: '3', caught_up: true }
  expect(await echoes.take(advance, { position: '3', updates: [sent], caught_up: true })).toBeUndefined()
  expect(await rows.writes(held)).toBe(before)
})

test('a batch without updates is stored like any other: it may report a gap', async () => {
  const held = await rows.account()
  const batch = { position: '3', updates: [], caught_up: true }
  expect(await new Echoes(rows.app).take({ held, position: '3', caught_up: true }, batch)).toBeUndefined()
})

test.each<[string, Partial<Message>]>([
  ['another text', { text: 'Hello!' }],
  ['an edit', { edited_at: new Date().toISOString() }],
])('an echo that shows %s than was recorded is stored', async (_, change) => {
  const held = await rows.account()
  const echoes = new Echoes(rows.app)
  echoes.expect(held.account_id, '5').resolve({ chat_id: '42', message_id: '9', text: 'Hello' })
  const message: Message = {
    ...{ id: '9', text: 'Hello', is_sender: true, sender_id: null, timestamp: new Date().toISOString() },
    ...{ edited_at: null, attachments: [], random_id: '5' },
  }
  const shown = (one: Message): Update => ({
    kind: 'message',
    chat: { id: '42', kind: 'private', name: 'Mara', username: null, unread_count: 0, participants: [] },
    message: one,
    live: true,
  })
  const take = (one: Message) =>
    echoes.take(
      { held, position: '3', caught_up: true },
      { position: '3', updates: [shown(one)], caught_up: true },
    )
  expect(await take({ ...message, ...change })).toBeUndefined()
  expect(await take(message)).toBe(true)
})
