/** The boundary of campaign messages: what it requires, what it writes, and that nobody slips through beside it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NewCampaign } from '../../test/harness/campaigns.ts'
import type { LedgerRows } from '../../test/harness/ledger-rows.ts'
import { openPickedRows, type Picked, type PickedRows, type Standing } from '../../test/harness/picked.ts'
import type { Held } from '../access/ledger/leases.ts'
import { settle } from '../access/ledger/settle.ts'
import { chooseDue, listHeads } from '../capabilities/campaigns/campaigns.ts'
import { addSuppression } from '../capabilities/suppressions/suppressions.ts'
import { sql } from '../db/sql.ts'

let place: PickedRows
let rows: LedgerRows
beforeAll(async () => {
  place = await openPickedRows()
  rows = place.rows
})
afterAll(() => place.close())

const picked = (given?: NewCampaign, held?: Held) => place.picked(given, held)
const pick = (held: Held, campaign_id: string) => place.pick(held, campaign_id)
const stateOf = (one: Picked) => place.stateOf(one)
const operation = (one: Picked) => place.operation(one)
const control = (id: string, how: 'pause' | 'cancel') => place.control(id, how)
const boundary = () => place.boundary()

describe('a message', () => {
  test('crosses with its operation, its recipient and the use of its day', async () => {
    const one = await picked()
    expect(await one.cross()).toBe('crossed')
    expect(await stateOf(one)).toEqual({ status: 'submitting', operations: 1, used: 1 })
  })

  const steps = [{ wait_hours: 24 }]
  test.each<[string, (one: Picked) => Promise<unknown>, Partial<Standing>]>([
    [
      'of a campaign that is paused',
      ({ campaign_id }) => control(campaign_id, 'pause'),
      { status: 'queued' },
    ],
    [
      'of one that was cancelled',
      ({ campaign_id }) => control(campaign_id, 'cancel'),
      { status: 'cancelled' },
    ],
    [
      'to somebody who is suppressed by now',
      ({ person_id }) =>
        addSuppression(rows.app, 'system', {
          workspace_id: rows.tenant.workspace_id,
          platform_id: String(person_id),
        }),
      { status: 'suppressed' },
    ],
    [
      'of an account whose day is used up',
      ({ held }) =>
        rows.db.run(sql`
          insert into account_days (account_id, workspace_id, day, used)
          values (${held.account_id}, ${held.workspace_id}, (domain_now() at time zone 'UTC')::date, 30)`),
      { status: 'queued', used: 30 },
    ],
    [
      'of an account that must wait',
      ({ held }) => rows.host(held, sql`flood_until = domain_now() + interval '1 minute'`),
      {},
    ],
    [
      'of an account that keeps a gap',
      ({ held }) => rows.host(held, sql`next_campaign_at = domain_now() + interval '1 minute'`),
      {},
    ],
    ['of an account of another', ({ held }) => rows.host(held, sql`lease_epoch = lease_epoch + 1`), {}],
    [
      'to a recipient that has changed',
      ({ campaign_id }) =>
        rows.db.run(sql`update campaign_recipients set name = 'Other' where campaign_id = ${campaign_id}`),
      {},
    ],
    ['while the gate is closed', () => rows.service.shut('campaigns'), {}],
  ])('does not cross %s', async (_, change, expected) => {
    const one = await picked({ steps })
    await change(one)
    expect(await one.cross()).not.toBe('crossed')
    await rows.service.open('campaigns')
    expect(await stateOf(one)).toEqual({ status: 'queued', operations: 0, used: 0, ...expected })
  })

  test('to somebody whose name alone is on the list ends the recipient', async () => {
    const one = await picked({ steps })
    const { campaign_id, held } = one
    const username = `name_of_${one.person_id}`
    await rows.db.run(sql`
      update campaign_recipients set username = ${username} where campaign_id = ${campaign_id}`)
    const cross = await pick(held, campaign_id)
    const { workspace_id } = rows.tenant
    await addSuppression(rows.app, 'system', { workspace_id, username })
    // Nobody whom we know has this name, so the new entry itself has ended nothing.
    expect(await stateOf(one)).toMatchObject({ status: 'queued' })
    expect(await cross()).toBe('ended')
    expect(await stateOf(one)).toEqual({ status: 'suppressed', operations: 0, used: 0 })
  })

  test('of an account that has one in flight waits', async () => {
    const one = await picked()
    const other = await picked({}, one.held)
    expect(await one.cross()).toBe('crossed')
    await rows.host(one.held, sql`next_campaign_at = null`)
    expect(await other.cross()).toBe('no')
  })

  test('that was released is taken up again under its id, and uses the day once', async () => {
    const one = await picked()
    await one.cross()
    const first = await operation(one)
    await rows.db.transaction((tx) =>
      settle(tx, rows.app.operations, [
        { id: first.id, token: first.attempt_token, ending: { to: 'released', reason: 'never_written' } },
      ]),
    )
    expect(await stateOf(one)).toEqual({ status: 'queued', operations: 1, used: 0 })
    await rows.host(one.held, sql`next_campaign_at = null`)
    const again = await pick(one.held, one.campaign_id)
    expect(await again()).toBe('crossed')
    expect(await stateOf(one)).toEqual({ status: 'submitting', operations: 1, used: 1 })
    expect(await operation(one)).toMatchObject({ id: first.id, attempt_no: 2 })
  })

  test('that the ledger knows more of than its recipient is not sent: the recipient learns of it', async () => {
    const one = await picked({ steps })
    await one.cross()
    const { id, attempt_token: token } = await operation(one)
    await rows.db.transaction((tx) =>
      settle(tx, rows.app.operations, [{ id, token, ending: { to: 'ambiguous', reason: 'lease' } }]),
    )
    // As after a restore: the recipient was made again, the operation came back from a journal.
    await rows.db.run(sql`alter table campaign_recipients disable trigger recipients_guard`)
    await rows.db.run(sql`
      update campaign_recipients set status = 'queued', unknown_since = null, next_action_at = domain_now()
      where campaign_id = ${one.campaign_id}`)
    await rows.db.run(sql`alter table campaign_recipients enable trigger recipients_guard`)
    await rows.host(one.held, sql`next_campaign_at = null`)
    const again = await pick(one.held, one.campaign_id)
    expect(await again()).toBe('ended')
    expect(await stateOf(one)).toMatchObject({ status: 'submitting', operations: 1 })
  })

  test('is not picked while somebody waits for a single send of the account', async () => {
    const one = await picked()
    const id = await rows.operation(one.held)
    const options = { account_ids: [one.held.account_id], avoid: [] }
    expect(await listHeads(rows.db, options)).toEqual([])
    await rows.db.run(sql`update operations set state = 'released', reason = 'withdrawn' where id = ${id}`)
    expect(await listHeads(rows.db, options)).toHaveLength(1)
  })
})

describe('a batch of a hundred', () => {
  test('of which the database refuses one: the other 99 cross', async () => {
    await rows.db.run(sql`
      create function refuse_poison() returns trigger language plpgsql as $$
      begin
        if new.payload ->> 'text' = 'poison' then raise exception 'poison'; end if;
        return new;
      end $$`)
    await rows.db.run(sql`
      create trigger poison before insert on operations for each row execute function refuse_poison()`)
    const all: Picked[] = []
    for (let n = 0; n < 100; n++) all.push(await picked({ message_text: n === 41 ? 'poison' : 'Hello' }))
    const messages = await boundary()
    const heads = await listHeads(rows.db, { account_ids: all.map(({ held }) => held.account_id), avoid: [] })
    const held = new Map(all.map((one) => [one.held.account_id, one.held]))
    const answers = await Promise.all(
      chooseDue(rows.app, heads).map(({ row }) =>
        messages.cross({ wanted: { row, found: null }, held: held.get(row.account_id) as Held }),
      ),
    )
    await rows.db.run(sql`drop trigger poison on operations`)
    expect(Object.groupBy(answers, ({ status }) => status)).toMatchObject({ failed: [{}] })
    expect(answers.filter(({ status }) => status === 'crossed')).toHaveLength(99)
  })
})
