/** The re-check that a kind adds to the boundary, shown with the one that reads the suppression list. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { addSuppression, noteOptOuts } from '../capabilities/suppressions/suppressions.ts'
import { type Sql, sql, type Tx } from '../db/sql.ts'
import { type Crossing, type CrossingAnswer, cross } from './crossing.ts'
import type { HeldLease } from './leases.ts'

let rows: LedgerRows
let held: HeldLease
/** A person to whom no other test of this file writes. */
let person = 5_000
beforeAll(async () => {
  rows = await openLedgerRows()
  held = await rows.account()
})
afterAll(() => rows.close())
beforeEach(async () => {
  person++
  await rows.db.run(sql`
    insert into contacts (account_id, provider_id, workspace_id, username, phone)
    values (${held.account_id}, ${person}, ${held.workspace_id}, ${`Person_${person}`}, ${`0049 (0)170-100${person}`})`)
})

const first = () => rows.crossing(held, { kind: 'start_chat_text', chat_id: String(person) })

async function crossOne(crossing: Crossing, db: Tx | LedgerRows['db'] = rows.db): Promise<CrossingAnswer> {
  const [answer] = await cross({ ...rows.app, db }, await rows.instance(), [crossing])
  if (!answer) throw new Error('A crossing was not answered.')
  return answer
}

function suppress(kind: string, value: string, workspace_id = held.workspace_id): Promise<unknown> {
  return rows.db.run(sql`
    insert into suppressions (workspace_id, kind, value, source) values (${workspace_id}, ${kind}, ${value}, 'operator')`)
}

const no = { status: 'forbidden', forbidden: 'identity_suppressed', writes: null }

describe('a suppressed person gets no first message', () => {
  test.each([
    ['their id', 'platform_id', () => String(person)],
    ['their username', 'username', () => `person_${person}`],
    ['their phone number', 'phone', () => `49170100${person}`],
  ])('by %s', async (_, kind, value) => {
    const [one, other] = [await first(), await first()]
    expect(await crossOne(one)).toMatchObject({ status: 'crossed', forbidden: null })
    await suppress(kind, value())
    expect(await crossOne(other)).toMatchObject(no)
    expect(await rows.row(other.id)).toMatchObject({ state: 'queued', attempt_no: 0, attempt_token: null })
  })

  test('but others do, and an answer in a chat is not a first message', async () => {
    const { workspace_id } = await rows.service.tenant()
    await suppress('platform_id', String(person), workspace_id)
    await suppress('platform_id', '4999')
    expect(await crossOne(await first())).toMatchObject({ status: 'crossed' })
    await suppress('platform_id', String(person))
    expect(await crossOne(await rows.crossing(held, { chat_id: String(person) }))).toMatchObject({
      status: 'crossed',
    })
  })

  test('a message that the platform has shown was sent before the entry: it is proven', async () => {
    const crossing = await first()
    await rows.message(held, crossing.id, String(person))
    await suppress('platform_id', String(person))
    expect(await crossOne(crossing)).toMatchObject({ status: 'proven' })
  })
})

test('while first messages are stopped, a chat gets none before the person has written, whatever was sent there', async () => {
  const stopped = await rows.account()
  await rows.host(stopped, sql`cold_stopped_at = domain_now()`)
  const stored = (id: number, is_sender: boolean) =>
    rows.db.run(sql`
      insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
      values (${stopped.account_id}, ${person}, ${id}, ${stopped.workspace_id}, 'Hello', ${is_sender}, now())`)
  const send = async () => crossOne(await rows.crossing(stopped, { chat_id: String(person) }))
  await stored(1, true)
  expect(await send()).toMatchObject({ status: 'forbidden', forbidden: 'cold_stopped' })
  await stored(2, false)
  expect(await send()).toMatchObject({ status: 'crossed' })
})

/** Everything that adds to the list. */
const ways: [string, (tx: Tx) => Promise<unknown> | undefined][] = [
  ['an operator', () => addSuppression(rows.app, 'system', { ...held, platform_id: String(person) })],
  ['a message that asks to stop', (tx) => void noteOptOuts(rows.app, tx, held, [heard()])],
]

function heard(): Parameters<typeof noteOptOuts>[3][number] {
  const base = { sender_id: String(person), is_sender: false, random_id: null, edited_at: null }
  const message = { ...base, id: '1', text: 'stop', timestamp: new Date().toISOString(), attachments: [] }
  return { chat_id: `${person}`, message, announce: true }
}

describe('entries and crossings have one order:', () => {
  test.each(ways)('%s waits for a crossing in progress', async (_, add) => {
    const crossing = await first()
    let added: Promise<unknown> | undefined
    await rows.db.transaction(async (tx) => {
      expect(await crossOne(crossing, tx)).toMatchObject({ status: 'crossed' })
      added = rows.db.transaction(async (other) => void (await add(other)))
      await untilWaiting(added)
      expect(await listed()).toBe(false)
    })
    await added
    expect(await listed()).toBe(true)
    expect(await crossOne(await first())).toMatchObject(no)
  })

  test('a crossing checks again while an entry commits, and then finds it', async () => {
    const crossing = await first()
    await rows.db.transaction(async (tx) => {
      await tx.run(insertOf(person))
      await tx.run(sql`select pg_advisory_xact_lock(suppressions_lock(${held.workspace_id}))`)
      expect(await crossOne(crossing)).toMatchObject({ status: 'busy', writes: null })
    })
    expect(await crossOne(crossing)).toMatchObject(no)
  })
})

function insertOf(id: number): Sql {
  return sql`
    insert into suppressions (workspace_id, kind, value, source)
    values (${held.workspace_id}, 'platform_id', ${String(id)}, 'operator')`
}

async function listed(): Promise<boolean> {
  const row = await rows.db.maybe(sql`
    select 1 from suppressions where workspace_id = ${held.workspace_id} and value = ${String(person)}`)
  return row !== undefined
}

/** Until a transaction waits for the list's lock, or none does any more. */
async function untilWaiting(adding: Promise<unknown>): Promise<void> {
  let over = false
  void adding.finally(() => {
    over = true
  })
  while (!over) {
    const { waiting } = await rows.db.one<{ waiting: boolean }>(sql`
      select exists (select from pg_stat_activity
        where datname = current_database() and wait_event = 'advisory') as waiting`)
    if (waiting) return
  }
}
