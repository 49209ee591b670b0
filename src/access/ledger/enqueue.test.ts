/** The key of an operation belongs to its workspace, whoever of it asks. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../../test/harness/ledger-rows.ts'
import { sendMessage } from '../../capabilities/messages/send.ts'
import type { Caller } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import { enqueue, findOperation } from './enqueue.ts'
import type { Held } from './leases.ts'

let rows: LedgerRows
let held: Held
beforeAll(async () => {
  rows = await openLedgerRows()
  held = await rows.account()
})
afterAll(() => rows.close())

const asked = (key: string) => ({
  operation: sendMessage,
  key,
  fingerprint: Buffer.alloc(32),
})

/** Somebody of the workspace with an API key of their own. */
async function caller(): Promise<Caller> {
  const { workspace_id, user_id } = rows.tenant
  const { id } = await rows.service.key({ workspace_id, user_id })
  return { workspace_id, user_id, via: { kind: 'key', id } } as Caller
}

function queue(by: Caller, key: string, tx?: Tx) {
  const wanted = {
    account_id: held.account_id,
    chat_id: '42',
    payload: { text: 'Hello', file: null },
  } as const
  return enqueue(rows.app, by, { ...asked(key), wanted, ...(tx && { tx }) })
}

test('a second API key of the workspace meets the same operation', async () => {
  const key = newId()
  const first = await queue(await caller(), key)
  expect(first).toMatchObject({ queued_no: 1 })
  expect(await queue(await caller(), key)).toBeUndefined()
  const found = await findOperation(rows.db, rows.tenant.workspace_id, asked(key))
  expect(found).toMatchObject({ id: first?.id, state: 'queued' })
  const { stored } = await rows.db.one<{ stored: string }>(
    sql`select idempotency_key as stored from operations where id = ${first?.id}`,
  )
  expect(stored).toBe(key)
})

test('the same key has the same random id, also where its row was forgotten', async () => {
  const by = await caller()
  const key = newId()
  const random: string[] = []
  for (let n = 0; n < 2; n++) {
    await rows.db
      .transaction(async (tx) => {
        const queued = await queue(by, key, tx)
        const row = await tx.one<{ random_id: string }>(
          sql`select random_id::text from operations where id = ${queued?.id}`,
        )
        random.push(row.random_id)
        throw new Error('undone')
      })
      .catch(() => {})
  }
  expect(random).toHaveLength(2)
  expect(random[0]).toBe(random[1])
})

test('in a transaction of its caller it commits with that, or not at all', async () => {
  const key = newId()
  const by = await caller()
  await rows.db.transaction(async (tx) => void (await queue(by, key, tx)))
  expect(await findOperation(rows.db, rows.tenant.workspace_id, asked(key))).toMatchObject({
    state: 'queued',
  })
})
