/** Attempts that no worker holds any more end as unknown; the others stay with their worker. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LedgerRows, type NewRow, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { type Sql, sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import type { HeldLease } from './leases.ts'
import { listQueued, settleUncrossed } from './queue.ts'
import { sweep } from './sweep.ts'
import { forgetWorkers, noteOwing } from './workers.ts'

let rows: LedgerRows
let held: HeldLease
beforeAll(async () => {
  rows = await openLedgerRows()
  held = await rows.account()
})
afterAll(() => rows.close())

const submitting = (row: NewRow) => rows.operation(held, { state: 'submitting', token: newId(), ...row })

async function worker(stopped: boolean): Promise<string> {
  const id = newId()
  await rows.db.run(
    sql`insert into workers (id, stopped_at) values (${id}, case when ${stopped}::boolean then real_now() end)`,
  )
  return id
}

describe('sweep', () => {
  test('keeps an attempt whose lease is valid', async () => {
    const id = await submitting({ lease: 60, owner: await worker(false) })
    await sweep(rows.app)
    expect(await rows.row(id)).toMatchObject({ state: 'submitting' })
  })

  test('makes an attempt whose lease has expired unknown, never queued', async () => {
    const id = await submitting({ lease: -1 })
    await sweep(rows.app)
    expect(await rows.row(id)).toMatchObject({ state: 'ambiguous', reason: 'lease' })
  })

  test('treats a lease further ahead than possible as expired', async () => {
    const id = await submitting({ lease: 3_600 })
    await sweep(rows.app)
    expect(await rows.row(id)).toMatchObject({ state: 'ambiguous', reason: 'lease' })
  })

  test('makes an attempt whose owner has stopped unknown immediately', async () => {
    const id = await submitting({ lease: 60, owner: await worker(true) })
    await sweep(rows.app)
    expect(await rows.row(id)).toMatchObject({ state: 'ambiguous', reason: 'lease' })
  })

  test('releases what no worker took in time', async () => {
    const [late, waiting] = [await rows.operation(held, { expires: -1 }), await rows.operation(held)]
    await sweep(rows.app)
    expect(await rows.row(late)).toMatchObject({ state: 'released', reason: 'expired' })
    expect(await rows.row(waiting)).toMatchObject({ state: 'queued' })
  })

  test('skips a row that another transaction has locked, and not the others', async () => {
    const [locked, free] = [await submitting({ lease: -1 }), await submitting({ lease: -1 })]
    await rows.db.transaction(async (tx) => {
      await tx.run(sql`select 1 from operations where id = ${locked} for update`)
      await sweep(rows.app)
    })
    expect((await rows.row(locked)).state).toBe('submitting')
    expect((await rows.row(free)).state).toBe('ambiguous')
  })
})

describe('listQueued', () => {
  test('many waiting in one chat do not hide another chat', async () => {
    const account = await rows.account()
    const crowd = []
    for (let n = 0; n < 44; n++) crowd.push(await rows.operation(account, { chat_id: '1' }))
    const other = await rows.operation(account, { chat_id: '2' })
    const started = await rows.operation(account, { chat_id: null, kind: 'start_chat' })
    const listed = await listQueued(rows.db, [account.account_id])
    expect(listed.map(({ id }) => id)).toEqual([crowd[0], other, started])
  })

  test('many of one account do not hide another account', async () => {
    const [one, other] = [await rows.account(), await rows.account()]
    for (let n = 0; n < 40; n++) await rows.operation(one, { chat_id: String(n + 1) })
    const last = await rows.operation(other)
    const listed = await listQueued(rows.db, [one.account_id, other.account_id])
    expect(listed.filter(({ account_id }) => account_id === one.account_id)).toHaveLength(32)
    expect(listed.map(({ id }) => id)).toContain(last)
  })
})

describe('settleUncrossed', () => {
  test.each<[string, Sql]>([
    ['another worker holds the lease', sql`lease_owner = ${newId()}, observed_at = null`],
    ['the lease has a later epoch', sql`lease_epoch = lease_epoch + 1, observed_at = null`],
  ])('leaves an operation to the next holder of the account where %s', async (_, set) => {
    const account = await rows.account()
    const id = await rows.operation(account)
    await rows.host(account, set)
    expect(await settleUncrossed(rows.app, account, await rows.queued(id))).toBe(false)
    expect(await rows.row(id)).toMatchObject({ state: 'queued' })
  })

  test('releases it when the account is ours and not live', async () => {
    const account = await rows.account()
    const id = await rows.operation(account)
    await rows.host(account, sql`observed_at = null`)
    expect(await settleUncrossed(rows.app, account, await rows.queued(id))).toBe(true)
    expect(await rows.row(id)).toMatchObject({ state: 'released', reason: 'not_live' })
  })

  test('leaves it queued while its account changes hands, until it expires', async () => {
    const account = await rows.account()
    const [waiting, expired] = [await rows.operation(account), await rows.operation(account, { expires: -1 })]
    await rows.host(account, sql`observed_at = null, handed_over_at = real_now()`)
    expect(await settleUncrossed(rows.app, account, await rows.queued(waiting))).toBe(false)
    expect(await rows.row(waiting)).toMatchObject({ state: 'queued' })
    expect(await settleUncrossed(rows.app, account, await rows.queued(expired))).toBe(true)
    expect(await rows.row(expired)).toMatchObject({ state: 'released', reason: 'expired' })
  })
})

describe('forgetWorkers', () => {
  test('keeps one that has not put its journals back, however long ago it ended: they may know what the database has lost', async () => {
    const [owing, other] = [await worker(true), await worker(true)]
    await noteOwing(rows.db, owing, true)
    await rows.db.run(sql`
      update workers set beat_at = real_now() - interval '8 days' where id in (${owing}, ${other})`)
    await forgetWorkers(rows.db)
    const left = await rows.db.rows<{ id: string }>(
      sql`select id from workers where id in (${owing}, ${other})`,
    )
    expect(left).toEqual([{ id: owing }])
    await noteOwing(rows.db, owing, false)
  })
})
