/** What a journal restores to a database that may have lost it: for each state that the row can have. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertCampaign } from '../../test/harness/campaigns.ts'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { hangMs, until } from '../../test/harness/process.ts'
import { sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import type { State } from '../operation.ts'
import type { HeldLease } from './leases.ts'
import { type JournaledOperation, listUnknown, putBack } from './put-back.ts'
import { forgetOperations } from './sweep.ts'

let rows: LedgerRows
let held: HeldLease
beforeAll(async () => {
  rows = await openLedgerRows()
  held = await rows.account()
})
afterAll(() => rows.close())

function remembered(more: Partial<JournaledOperation> = {}): JournaledOperation {
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

const putBackOne = (entry: JournaledOperation) =>
  rows.db.transaction((tx) => putBack(tx, rows.app.operations, entry))

describe('listUnknown', () => {
  const isUnknown = async (entry: JournaledOperation) => (await listUnknown(rows.app, [entry])).length === 1

  test('omits an attempt whose token or whose end the database knows', async () => {
    const token = newId()
    const known = await rows.operation(held, { state: 'submitting', token })
    expect(await isUnknown(remembered({ id: known, token }))).toBe(false)
    expect(await isUnknown(remembered({ id: known }))).toBe(true)
    const completed = await rows.operation(held, { state: 'completed', token: newId() })
    expect(await isUnknown(remembered({ id: completed }))).toBe(false)
    expect(await isUnknown(remembered())).toBe(true)
  })

  test.each<State>(['released', 'queued', 'ambiguous'])(
    'reports an attempt of which the database knows only an earlier one: %s',
    async (state) => {
      const id = await rows.operation(held, { state, token: newId() })
      expect(await isUnknown(remembered({ id }))).toBe(true)
    },
  )

  test('does not report an operation as lost that the release before may have deleted', async () => {
    const madeDaysAgo = (days: number) => {
      const time = (Date.now() - days * 86_400_000).toString(16).padStart(12, '0')
      return `${time.slice(0, 8)}-${time.slice(8)}${newId().slice(13)}`
    }
    expect(await isUnknown(remembered({ id: madeDaysAgo(30), kind: 'start_chat' }))).toBe(false)
    expect(await isUnknown(remembered({ id: madeDaysAgo(29), kind: 'start_chat' }))).toBe(true)
    expect(await isUnknown(remembered({ id: madeDaysAgo(30) }))).toBe(true)
  })

  test('does not report an operation as lost that was deleted after its 30 days, but reports a later one', async () => {
    const id = await rows.operation(held, { state: 'completed', token: newId(), kind: 'start_chat' })
    await rows.db.transaction(async (tx) => {
      await tx.run(sql`alter table operations disable trigger operations_guard`)
      await tx.run(sql`
        update operations set forgettable = true, finished_at = domain_now() - interval '31 days' where id = ${id}`)
      await tx.run(sql`alter table operations enable trigger operations_guard`)
    })
    await forgetOperations(rows.db)
    expect(await rows.db.rows(sql`select 1 from operations where id = ${id}`)).toEqual([])
    expect(await isUnknown(remembered({ id, kind: 'start_chat' }))).toBe(false)
    expect(await isUnknown(remembered({ id }))).toBe(true)
    expect(await isUnknown(remembered({ kind: 'start_chat' }))).toBe(true)
  })
})

describe('putBack', () => {
  test('restores a lost row as unknown, with its key and its token', async () => {
    const entry = remembered()
    expect(await putBackOne(entry)).toBe(true)
    expect(await rows.row(entry.id)).toMatchObject({
      state: 'ambiguous',
      reason: 'restored',
      attempt_token: entry.token,
    })
    expect(await putBackOne(entry)).toBe(false)
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
    expect(await putBackOne(remembered({ id, token }))).toBe(changed)
    const row = await rows.row(id)
    expect([row.state, row.attempt_token]).toEqual([after, changed ? token : earlier])
  })

  // Released or queued again with this token: this very attempt provably sent nothing.
  const knowing = ['submitting', 'ambiguous', 'released', 'queued'] as const
  test.each(knowing)('%s, and this very attempt is known', async (state) => {
    const token = newId()
    const id = await rows.operation(held, { state, token })
    expect(await putBackOne(remembered({ id, token }))).toBe(false)
    expect((await rows.row(id)).state).toBe(state)
  })

  test('blocks the row that a repeat has made for the key, and keeps its public name', async () => {
    const key = newId()
    const id = await rows.operation(held, { key })
    const entry = remembered({ key })
    expect(await putBackOne(entry)).toBe(true)
    expect((await rows.row(id)).state).toBe('ambiguous')
    const found = await rows.db.one(sql`select public_id from operations where id = ${id}`)
    expect(found).toEqual({ public_id: entry.id })
  })

  test('also blocks a repeat that is being queued at this moment', async () => {
    const key = newId()
    let restored: Promise<boolean> | undefined
    await rows.db.transaction(async (tx) => {
      const inside = Object.create(rows, { db: { value: tx } }) as LedgerRows
      await inside.operation(held, { key })
      restored = putBackOne(remembered({ key }))
      await untilLocked()
    })
    expect(await restored).toBe(true)
    const row = await rows.db.one(sql`select state, reason from operations where idempotency_key = ${key}`)
    expect(row).toEqual({ state: 'ambiguous', reason: 'restored' })
  })

  test('restores nothing for an account that this database does not have', async () => {
    const entry = remembered({ account_id: 'acc_unknown' })
    expect(await putBackOne(entry)).toBe(false)
  })
})

describe('a campaign message that another account of its pool sent, according to the journal', () => {
  const [before, after] = ['2026-03-01', '2026-03-02']

  async function useOf({ account_id }: HeldLease): Promise<unknown> {
    return rows.db.rows(sql`
      select day::text, used, used_cold from account_days where account_id = ${account_id} and used <> 0`)
  }

  test.each(['submitting', 'ambiguous', 'released'] as const)(
    'known as %s: account, chat and day are restored, and each day has its use',
    async (state) => {
      const [known, sender] = [await rows.account(), await rows.account()]
      const { tenant } = rows
      const pool = [known.account_id, sender.account_id]
      const contacts = [{ contact: `username:${newId()}` }]
      const campaign_id = await insertCampaign(rows.db, tenant, { kind: 'contacts', pool, contacts })
      const { id: recipient_id } = await rows.db.one<{ id: string }>(
        sql`select id from campaign_recipients where campaign_id = ${campaign_id}`,
      )
      const place = { campaign_id, recipient_id, step_no: 0, cold: true }
      const row = { state, token: newId(), key: null, kind: 'campaign_message' }
      const id = await rows.operation(known, { ...row, place: { ...place, quota_day: before } })
      // The quota of an attempt that provably sent nothing was refunded then.
      const counted = state === 'released' ? 0 : 1
      await rows.db.run(sql`
        insert into account_days (account_id, workspace_id, day, used, used_cold)
        values (${known.account_id}, ${known.workspace_id}, ${before}, ${counted}, ${counted})`)
      const sent = { account_id: sender.account_id, chat_id: '77', quota_day: after } as const
      expect(
        await putBackOne(remembered({ id, kind: 'campaign_message', key: null, ...place, ...sent })),
      ).toBe(true)
      const put = await rows.db.one(sql`
        select account_id, chat_id::text, quota_day::text, cold from operations where id = ${id}`)
      expect(put).toEqual({ ...sent, cold: true })
      const recipient = await rows.db.one(sql`
        select account_id, chat_id::text from campaign_recipients where id = ${recipient_id}`)
      expect(recipient).toEqual({ account_id: sender.account_id, chat_id: '77' })
      expect(await useOf(known)).toEqual([])
      expect(await useOf(sender)).toEqual([{ day: after, used: 1, used_cold: 1 }])
    },
  )
})

test('a campaign message that was attempted again under another id is put back in that row', async () => {
  const sender = await rows.account()
  const contacts = [{ contact: `username:${newId()}` }]
  const pool = [sender.account_id]
  const campaign_id = await insertCampaign(rows.db, rows.tenant, { kind: 'contacts', pool, contacts })
  const { id: recipient_id } = await rows.db.one<{ id: string }>(
    sql`select id from campaign_recipients where campaign_id = ${campaign_id}`,
  )
  const place = { campaign_id, recipient_id, step_no: 0, cold: true, quota_day: '2026-03-01' }
  const row = { state: 'released' as const, token: newId(), key: null, kind: 'campaign_message' }
  const id = await rows.operation(sender, { ...row, place })
  const sent = remembered({ kind: 'campaign_message', key: null, ...place, account_id: sender.account_id })
  expect(await putBackOne(sent)).toBe(true)
  expect(await rows.row(id)).toMatchObject({ state: 'ambiguous', attempt_token: sent.token })
})

/** Until a statement waits for a lock of this database. */
async function untilLocked(): Promise<void> {
  await until('a statement waits', hangMs, () =>
    rows.db.maybe(sql`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`),
  )
}
