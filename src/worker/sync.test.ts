/** Pages of chats and of history: which are asked for, and what they prove to the ledger. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { sql } from '../db/sql.ts'
import { sweepLoop } from '../ledger/recovery.ts'
import { newId } from '../lib/ids.ts'
import type { Message, Platform, Session } from '../platform/port.ts'
import { fetchWanted, syncAccount } from './sync.ts'

let rows: LedgerRows
beforeAll(async () => {
  rows = await openLedgerRows()
})
afterAll(() => rows.close())

test('an older page that carries the random id of an unknown outcome proves it', async () => {
  const held = await rows.account()
  const id = await rows.operation(held, { state: 'ambiguous', token: newId() })
  const { random_id } = await rows.queued(id)
  const message: Message = {
    id: '81',
    text: 'Hello',
    is_sender: true,
    sender_id: null,
    timestamp: new Date().toISOString(),
    edited_at: null,
    attachments: [],
    random_id,
  }
  const session = { history: async () => ({ kind: 'accepted', value: [message] }) } as unknown as Session
  const platform = { paceMs: 0 } as Platform
  const signal = new AbortController().signal
  const { account_id } = held
  const wanted = { account_id, chat_id: '42', oldest_id: '500' } as const
  await want(account_id)
  await fetchWanted(rows.app, { held, session, platform, signal }, wanted)
  await sweepLoop().step(rows.app, signal)
  expect(await rows.row(id)).toMatchObject({ state: 'completed', reply_body: { message_id: '81' } })
})

test('does not request a page that was answered after it was listed', async () => {
  const held = await rows.account()
  let calls = 0
  const history = async () => {
    calls++
    return { kind: 'flood_wait', retry_after_seconds: 60, stops: 'reading' }
  }
  const session = { history } as unknown as Session
  const platform = { paceMs: 0 } as Platform
  const syncing = { held, session, platform, signal: new AbortController().signal }
  const wanted = { account_id: held.account_id, chat_id: '42', oldest_id: '500' } as const
  await want(held.account_id)
  await fetchWanted(rows.app, syncing, wanted)
  await fetchWanted(rows.app, syncing, wanted)
  expect(calls).toBe(1)
})

test('the list of chats continues at its page after a wait, and in the next session', async () => {
  const held = await rows.account()
  const platform = { paceMs: 0 } as Platform
  const nexts = new Map([
    [null, 'b'],
    ['b', 'c'],
    ['c', 'd'],
  ])
  const asked: (string | null)[] = []
  const connect = async (callsMax: number) => {
    const session = new AbortController()
    let calls = 0
    const chats = async ({ after }: { after: string | null }) => {
      asked.push(after)
      if (++calls === callsMax) session.abort()
      if (asked.length === 2) return { kind: 'flood_wait', retry_after_seconds: 0, stops: 'reading' }
      return { kind: 'accepted', value: { chats: [], next: nexts.get(after) ?? null, total: null } }
    }
    const contacts = async () => ({ kind: 'accepted', value: [] })
    const syncing = { held, session: { chats, contacts } as unknown as Session, platform }
    await syncAccount(rows.app, { ...syncing, signal: session.signal })
  }
  await connect(4)
  await connect(10)
  expect(asked).toEqual([null, 'b', 'b', 'c', 'c', 'd'])
})

/** A caller waits for older messages of the chat. */
async function want(account_id: string): Promise<void> {
  await rows.app.db.run(sql`
    insert into chat_sync (account_id, chat_id, workspace_id, wanted_at)
    select id, 42, workspace_id, clock_timestamp() from accounts where id = ${account_id}`)
}
