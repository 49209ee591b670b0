/** What a campaign message counts when it crosses, and which rows it leaves to other transactions. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPickedRows, type PickedRecipient, type PickedRows } from '../../test/harness/picked.ts'
import { hangMs, until } from '../../test/harness/process.ts'
import { lockPeople, tieRecipient } from '../capabilities/campaigns/running/locked-recipients.ts'
import { chooseDue, listHeads } from '../capabilities/campaigns/running/pick.ts'
import { sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import type { CampaignPlace } from '../operation.ts'
import type { Person } from '../platform/port.ts'
import { insertAttempts, type NewAttempt } from './direct-crossing.ts'
import type { HeldLease } from './leases.ts'
import { settle } from './settle.ts'

let place: PickedRows
beforeAll(async () => {
  place = await openPickedRows()
})
afterAll(() => place.close())

const readDay = ({ account_id }: HeldLease) =>
  place.rows.db.one(sql`select used, used_cold from account_days where account_id = ${account_id}`)

/** Ends the message in flight, so that the account may send its next one immediately. */
async function complete(one: PickedRecipient, message_id: string): Promise<void> {
  const { id, attempt_token: token } = await place.operation(one)
  const reply = { message_id, timestamp: new Date().toISOString() }
  await place.rows.db.transaction((tx) =>
    settle(tx, place.rows.app.operations, [{ id, token, ending: { to: 'completed', reply } }]),
  )
  await place.rows.host(one.held, sql`next_campaign_at = null`)
}

describe('a message that crosses', () => {
  test('increments used_cold, also for the second one of a day', async () => {
    const first = await place.picked()
    expect(await first.cross()).toBe('crossed')
    expect(await readDay(first.held)).toEqual({ used: 1, used_cold: 1 })
    await complete(first, '5')
    const second = await place.picked({}, first.held)
    expect(await second.cross()).toBe('crossed')
    expect(await readDay(first.held)).toEqual({ used: 2, used_cold: 2 })
  })

  test("increments its account's writes, and its worker remembers them", async () => {
    const one = await place.picked()
    const before = await place.rows.writes(one.held)
    expect(await one.cross()).toBe('crossed')
    const after = await place.rows.writes(one.held)
    expect(BigInt(after)).toBe(BigInt(before) + 1n)
    expect(one.held.writes.seen).toBe(after)
  })

  test('does not cross again in another attempt while it is in flight', async () => {
    const one = await place.picked()
    expect(await one.cross()).toBe('crossed')
    const { id, attempt_token } = await place.operation(one)
    const { user_id, ...known } = await place.rows.db.one<
      { user_id: string; random_id: string } & CampaignPlace
    >(sql`
      select user_id, random_id::text, campaign_id, recipient_id, step_no, quota_day::text, cold from operations
      where id = ${id}`)
    const { account_id, workspace_id } = one.held
    const attempt: NewAttempt = {
      ...{
        ...known,
        user_id,
        account_id,
        acting_account_id: account_id,
        workspace_id,
        id: newId(),
        token: newId(),
        kind: 'campaign_message',
      },
      ...{ chat_id: `${one.person_id}`, payload: {}, fingerprint: Buffer.alloc(32), proof: null },
      next_campaign_at: new Date(),
    }
    const inserted = await place.rows.db.transaction((tx) => insertAttempts(tx, newId(), [attempt]))
    expect(inserted).toEqual([])
    expect(await place.operation(one)).toMatchObject({ id, attempt_token })
  })

  test('without its operation does not cross: the whole batch is rolled back', async () => {
    const one = await place.picked({ message_text: 'lost on the way' })
    await place.rows.db.run(sql`
      create function lose_operation() returns trigger language plpgsql as $$
      begin
        return case when new.payload ->> 'text' = 'lost on the way' then null else new end;
      end $$`)
    await place.rows.db.run(sql`
      create trigger lose before insert on operations for each row execute function lose_operation()`)
    try {
      expect(await one.cross()).toBe('failed')
    } finally {
      await place.rows.db.run(sql`drop trigger lose on operations`)
    }
    expect(await place.stateOf(one)).toEqual({ status: 'queued', operations: 0, used: 0 })
  })

  test.each(['scoped', 'broadcast'] as const)(
    'shares no batch with another of its account: %s',
    async (kind) => {
      const one = await place.picked({ kind })
      const other = await place.picked({ kind }, one.held)
      const { app, db } = place.rows
      const options = { account_ids: [one.held.account_id], avoid: [], due: true }
      const messages = await place.boundary()
      const rows = (await listHeads(app, db, options)).map((head) => chooseDue(app, [head])[0]?.row)
      expect(rows).toHaveLength(2)
      const answers = await Promise.all(
        rows.flatMap((row) =>
          row
            ? [messages.cross({ id: newId(), wanted: { row, found: null, gapMs: 15_000 }, held: one.held })]
            : [],
        ),
      )
      expect(answers.map(({ status }) => status).toSorted()).toEqual(['crossed', 'no'])
      const operations = [await place.stateOf(one), await place.stateOf(other)].map((row) => row.operations)
      expect(operations.toSorted()).toEqual([0, 1])
    },
  )
})

describe('skips what another transaction has locked', () => {
  /** The result of the crossing, or that it waits for a lock, which would delay every message of its batch. */
  async function answerOrWait(crossing: Promise<string>): Promise<string> {
    let answer: string | undefined
    void crossing.then((status) => {
      answer = status
    })
    return until('it is answered, or waits', hangMs, async () => {
      const waits = await place.rows.db.maybe(sql`
        select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
      return answer ?? (waits ? 'waits for a lock' : undefined)
    })
  }

  test("the account's day", async () => {
    const one = await place.picked()
    const { account_id, workspace_id } = one.held
    await place.rows.db.run(sql`
      insert into account_days (account_id, workspace_id, day, used)
      values (${account_id}, ${workspace_id}, (domain_now() at time zone 'UTC')::date, 1)`)
    await place.rows.db.transaction(async (tx) => {
      await tx.run(sql`select 1 from account_days where account_id = ${account_id} for update`)
      expect(await answerOrWait(one.cross())).toBe('busy')
    })
    expect(await one.cross()).toBe('crossed')
  })

  test('the person that a contact resolved to', async () => {
    const held = await place.rows.account()
    const contacts = [{ contact: `username:${newId()}` }]
    await place.picked({ kind: 'contacts', pool: [held.account_id], chats: [], contacts }, held)
    const { app, db } = place.rows
    const heads = await listHeads(app, db, { account_ids: [held.account_id], avoid: [], due: true })
    const [due] = chooseDue(app, heads)
    if (!due) throw new Error('Nothing is due.')
    const found: Person = { id: '9001', name: 'Ines', username: null, phone: null, kind: 'person' }
    const tied = await tieRecipient(app, due.row, found)
    if (!tied) throw new Error('The recipient has changed.')
    const wanted = { row: { ...due.row, version: tied.version }, found, gapMs: 0 }
    const messages = await place.boundary()
    const cross = async () => (await messages.cross({ id: newId(), wanted, held })).status
    await db.transaction(async (tx) => {
      expect([...(await lockPeople(tx, [{ ...wanted, id: newId(), token: newId() }]))]).toEqual([])
      expect(await answerOrWait(cross())).toBe('busy')
    })
    expect(await cross()).toBe('crossed')
  })
})
