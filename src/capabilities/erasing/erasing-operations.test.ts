/** The ledger's part of an erasure: what is queued ends, what has crossed settles first, what is unknown can still be proven. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../../test/harness/ledger-rows.ts'
import { sql } from '../../db/sql.ts'
import { cross } from '../../ledger/crossing.ts'
import type { HeldLease } from '../../ledger/leases.ts'
import { sweepLoop } from '../../ledger/recovery.ts'
import { complete } from '../../ledger/settle.ts'
import { newId } from '../../lib/ids.ts'
import type { Message } from '../../platform/port.ts'
import { withoutErased } from '../../worker/erased.ts'
import { eraseNext, previewErasure, requestErasure } from './erasing.ts'

let rows: LedgerRows
let held: HeldLease
let person_id: string
let number = 4200
let chat_id: string

beforeAll(async () => {
  rows = await openLedgerRows()
})
afterAll(() => rows.close())
beforeEach(async () => {
  held = await rows.account()
  person_id = newId()
  chat_id = String(++number)
  await rows.db.run(sql`
    insert into people (id, workspace_id, platform, number)
    values (${person_id}, ${held.workspace_id}, 'sandbox', ${chat_id}::bigint)`)
})

const payload = { text: 'canary text', file: null }
const operation = (row: Parameters<LedgerRows['operation']>[1] = {}) =>
  rows.operation(held, { chat_id, payload, ...row })

async function begin(): Promise<string> {
  const { app } = rows
  const { workspace_id } = held
  const { preview } = await previewErasure(app.db, workspace_id, person_id)
  const wanted = { workspace_id, person_id, preview, contact_allowed: false }
  const { id } = await app.db.transaction((tx) => requestErasure(app, tx, 'cli:ana', wanted))
  return id
}

/** As a worker does it, until the job is done or has to wait. Returns what it is doing then. */
async function run(id: string): Promise<string> {
  while (await eraseNext(rows.app, new Set([id]))) {}
  return (await rows.db.one<{ step: string }>(sql`select step from erasures where id = ${id}`)).step
}

const textOf = async (id: string) =>
  JSON.stringify(await rows.db.one(sql`select payload, random_id from operations where id = ${id}`))

test('what is queued ends as released, and what is queued for others stays', async () => {
  const own = await operation()
  const other = await operation({ chat_id: '77' })
  expect(await run(await begin())).toBe('done')
  expect(await rows.row(own)).toMatchObject({ state: 'released', reason: 'erased', attempt_no: 0 })
  expect(await textOf(own)).not.toContain('canary')
  expect((await rows.row(other)).state).toBe('queued')
  expect(await textOf(other)).toContain('canary')
})

test('what is queued while the erasure begins does not cross', async () => {
  await begin()
  const late = await rows.crossing(held, { chat_id, payload })
  const other = await rows.crossing(held, { chat_id: '77', payload })
  const answers = await cross(rows.app, await rows.instance(), [late, other])
  expect(new Map(answers.map(({ id, status, forbidden }) => [id, [status, forbidden]]))).toEqual(
    new Map([
      [late.id, ['forbidden', 'erased']],
      [other.id, ['crossed', null]],
    ]),
  )
})

test('what has crossed is waited for, and cleared once it has settled', async () => {
  const token = newId()
  const id = await operation({ state: 'submitting', token })
  const erasure = await begin()
  expect(await run(erasure)).toBe('settling')
  expect(await textOf(id)).toContain('canary')
  const queued = await rows.queued(id)
  const value = { message_id: '9', at: new Date().toISOString() }
  await rows.db.transaction((tx) =>
    complete(tx, rows.app.operations, [
      { operation: queued, public_id: id, token, value, reconciled: false },
    ]),
  )
  expect(await run(erasure)).toBe('done')
  expect(await rows.row(id)).toMatchObject({ state: 'completed', reply_body: { message_id: '9' } })
  expect(await textOf(id)).not.toContain('canary')
  const stored = await rows.db.rows(sql`
    select id::text, text, random_id::text from messages where account_id = ${held.account_id}`)
  expect(stored).toEqual([{ id: '9', text: '', random_id: queued.random_id }])
})

test('an unknown outcome keeps its random id, and is proven by the message that the platform shows', async () => {
  const id = await operation({ state: 'ambiguous', token: newId() })
  await rows.db.run(sql`update operations set finished_at = domain_now() where id = ${id}`)
  const { random_id } = await rows.queued(id)
  expect(await run(await begin())).toBe('done')
  expect(await textOf(id)).not.toContain('canary')
  expect((await rows.row(id)).state).toBe('ambiguous')
  const message: Message = {
    ...{
      id: '70',
      text: 'canary text',
      is_sender: true,
      sender_id: null,
      timestamp: new Date().toISOString(),
    },
    ...{ edited_at: null, attachments: [], random_id },
  }
  const chat = { id: chat_id, kind: 'private', name: 'Canary', username: null } as const
  const update = {
    ...{ kind: 'message', live: true, message },
    chat: { ...chat, unread_count: null, participants: null },
  } as const
  const left = await rows.db.transaction((tx) => withoutErased(tx, held, [update as never]))
  expect(left).toEqual([])
  await sweepLoop().step(rows.app, new AbortController().signal)
  expect(await rows.row(id)).toMatchObject({ state: 'completed', reply_body: { message_id: '70' } })
})
