/** How a session answers callers that wait for what the platform has. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { hangMs, until } from '../../test/harness/process.ts'
import { sql } from '../db/sql.ts'
import type { HeldLease } from '../ledger/leases.ts'
import { newId } from '../lib/ids.ts'
import type { HistoryPage, Message, Outcome, Session } from '../platform/port.ts'
import { answerQuestions } from './history-answers.ts'

let rows: LedgerRows
beforeAll(async () => {
  rows = await openLedgerRows()
})
afterAll(() => rows.close())

type History = (page: HistoryPage) => Promise<Outcome<readonly Message[]>>

/** Requests two chats, and lets the session answer to the end. */
async function answer(held: HeldLease, history: History): Promise<{ shown: unknown; answered: boolean }[]> {
  const { account_id } = held
  await rows.app.db.run(sql`
    insert into history_questions (id, account_id, chat_id, workspace_id, since)
    select g.id, a.id, g.chat_id, a.workspace_id, now() - interval '1 day'
    from accounts a, unnest(${[newId(), newId()]}::uuid[], '{41,42}'::bigint[]) as g (id, chat_id) where a.id = ${account_id}`)
  const session = { history } as unknown as Session
  const driven = new Map([[account_id, { held, session, awaits: () => {}, gapJitter: 0, paceMs: 0 }]])
  const answering = new Set<string>()
  await answerQuestions(rows.app, driven, answering)
  expect(answering).toEqual(new Set([account_id]))
  // Skips a request that another pass is already answering.
  await answerQuestions(rows.app, driven, answering)
  await until('it has answered', hangMs, async () => answering.size === 0 || undefined)
  return rows.app.db.rows(sql`
    select shown, answered_at is not null as answered from history_questions where account_id = ${account_id} order by id`)
}

function message(id: number): Message {
  const timestamp = new Date().toISOString()
  const told = { timestamp, edited_at: null, attachments: [], random_id: String(id * 7) }
  return { id: String(id), text: 'Hello', is_sender: true, sender_id: null, ...told }
}

const page = (...ids: number[]) => ({ kind: 'accepted', value: ids.map(message) }) as const

test('requests each chat once, and omits what is older than requested', async () => {
  const asked: unknown[] = []
  const old = { ...message(1), timestamp: new Date(Date.now() - 3 * 86_400_000).toISOString() }
  const told = await answer(await rows.account(), async (wanted) => {
    asked.push(wanted.chat_id)
    return { kind: 'accepted', value: [{ ...message(3), is_sender: false }, message(2), old] }
  })
  expect(asked).toEqual(['41', '42'])
  const one = { shown: [{ id: '2', random_id: '14' }], answered: true }
  expect(told).toEqual([one, one])
})

test('records a flood wait, answers that nothing was fetched, and skips the next chat', async () => {
  const held = await rows.account()
  let calls = 0
  const told = await answer(held, async () => {
    calls++
    return { kind: 'flood_wait', retry_after_seconds: 60, stops: 'reading' }
  })
  const untold = { shown: null, answered: true }
  expect(told).toEqual([untold, untold])
  expect(calls).toBe(1)
  const { waits } = await rows.app.db.one<{ waits: boolean }>(
    sql`select reading_flood_until > domain_now() as waits from account_hosts where account_id = ${held.account_id}`,
  )
  expect(waits).toBe(true)
})

test('does not call the platform when no caller waits any more', async () => {
  const held = await rows.account()
  let calls = 0
  await answer(held, async () => {
    calls++
    await rows.app.db.run(sql`delete from history_questions where account_id = ${held.account_id}`)
    return page(1)
  })
  expect(calls).toBe(1)
})

test('does not answer a chat that was not read to the end', async () => {
  let last = 1_000_000
  const told = await answer(await rows.account(), async ({ limit }) => {
    last -= limit
    return page(...Array.from({ length: limit }, (_, n) => last + limit - n))
  })
  expect(told).toEqual([
    { shown: null, answered: true },
    { shown: null, answered: true },
  ])
})
