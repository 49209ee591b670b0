/** An operation's key belongs to its workspace, whichever caller uses it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { sendMessage } from '../capabilities/messages/send.ts'
import type { Caller } from '../contract.ts'
import { openDatabase } from '../db/pool.ts'
import { sql, type Tx } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import { enqueue, findOperation } from './enqueue.ts'
import type { HeldLease } from './leases.ts'
import { requestOperation } from './request.ts'

let rows: LedgerRows
let held: HeldLease
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

/** A user of the workspace with their own API key. */
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

test('a second API key of the workspace finds the same operation', async () => {
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

test('a new run keeps nothing of the attempt before it but its proof and its token', async () => {
  const key = newId()
  const token = newId()
  const id = await rows.operation(held, { state: 'released', token, key })
  await rows.db.run(sql`
    update operations set closed_as = 'sent', closed_at = now(), crossed_at = now(), hint_message_id = 3,
      looked_for_at = now(), proof_message_id = 4
    where id = ${id}`)
  expect(await queue(await caller(), key)).toEqual({ id, queued_no: 2 })
  const row = await rows.db.one(sql`
    select closed_as, closed_at, crossed_at, hint_message_id, looked_for_at, proof_message_id::int, attempt_token
    from operations where id = ${id}`)
  const none = {
    closed_as: null,
    closed_at: null,
    crossed_at: null,
    hint_message_id: null,
    looked_for_at: null,
  }
  expect(row).toEqual({ ...none, proof_message_id: 4, attempt_token: token })
})

test('without a connection for the row nothing was started, and the caller does not get outcome_ambiguous', async () => {
  const by = await caller()
  const full = openDatabase({ connectionString: rows.service.database.url }, { pool_size: 1 })
  const taken = await full.pool.connect()
  const db = { ...rows.db, maybe: rows.db.maybe }
  const want = async () => {
    db.maybe = full.maybe
    return { account_id: held.account_id, chat_id: '42' as const, payload: { text: 'Hello', file: null } }
  }
  const submitting = requestOperation({ ...rows.app, db }, by, { ...asked(newId()), overrides: {}, want })
  await expect(submitting).rejects.toMatchObject({ code: 'store_unavailable' })
  taken.release()
  await full.close()
})

test('the same key has the same random id, also when its row was deleted', async () => {
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

test("in its caller's transaction it commits with that, or not at all", async () => {
  const key = newId()
  const by = await caller()
  await rows.db.transaction(async (tx) => void (await queue(by, key, tx)))
  expect(await findOperation(rows.db, rows.tenant.workspace_id, asked(key))).toMatchObject({
    state: 'queued',
  })
})

test.each([
  { collision: 400, overrides: {} },
  { collision: 409, overrides: { collision: 409 } },
] as const)(
  '$collision a released key that another payload took since it was looked up',
  async ({ collision, overrides }) => {
    const by = await caller()
    const key = newId()
    let id = ''
    // The key is free at the look-up, and another caller uses it before this one enqueues.
    const want = async () => {
      id = await rows.operation(held, { state: 'released', key, fingerprint: Buffer.alloc(32, 1) })
      return { account_id: held.account_id, chat_id: '42' as const, payload: { text: 'Hello', file: null } }
    }
    const submitting = requestOperation(rows.app, by, { ...asked(key), overrides, want })
    await expect(submitting).rejects.toMatchObject({ status: collision, code: 'idempotency_collision' })
    expect(await rows.row(id)).toMatchObject({ state: 'released', queued_no: 1 })
  },
)
