/** Every path that stores an incoming message, and its effect on recipients that are pending or in flight. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertCampaign, type NewCampaign } from '../../test/harness/campaigns.ts'
import { openPickedRows, type PickedRows } from '../../test/harness/picked.ts'
import { listSuppressions } from '../capabilities/suppressions/suppressions.ts'
import { sql } from '../db/sql.ts'
import type { HeldLease } from '../ledger/leases.ts'
import { type Ending, settle } from '../ledger/settle.ts'
import type { Chat, Message, Platform, Session, Update } from '../platform/port.ts'
import { ingest } from './ingest.ts'
import { fetchWanted } from './sync.ts'

let place: PickedRows
beforeAll(async () => {
  place = await openPickedRows()
})
afterAll(() => place.close())

const platform = { paceMs: 0, ownCountUpTo: '-1000000000000' } as Platform
const begun = Date.now()
/** Minutes from the start of this test. */
const minute = (n: number) => new Date(begun + n * 60_000).toISOString()

function messageOf(id: number, text = 'Tell me more', at = minute(id)): Message {
  return {
    ...{ id: String(id), text, is_sender: false, sender_id: null, timestamp: at },
    ...{ edited_at: null, attachments: [], random_id: null },
  }
}

let people = 10_000
let positions = 0

/** A campaign with a follow-up whose first message is in flight. With a pool, its recipient is a contact. */
async function inFlight({ pool = [], ...given }: NewCampaign & { pool?: readonly string[] } = {}) {
  const { rows } = place
  const held = await rows.account()
  const { account_id } = held
  const person_id = people++
  const contact = { contact: `platform_id:${person_id}`, account_id }
  const campaign_id = await insertCampaign(rows.db, rows.tenant, {
    ...(pool.length > 0
      ? { kind: 'contacts', contacts: [contact], pool: [account_id, ...pool] }
      : { chats: [{ account_id, person_id }] }),
    steps: [{ wait_hours: 24 }],
    ...given,
  })
  await rows.db.run(
    sql`update campaign_recipients set chat_id = ${person_id}, found_id = ${person_id} where campaign_id = ${campaign_id}`,
  )
  const cross = await place.pick(held, campaign_id)
  expect(await cross()).toBe('crossed')
  const chat_id = `${person_id}` as Chat['id']
  return { held, chat_id, campaign_id }
}

type Flight = Awaited<ReturnType<typeof inFlight>>

/** The platform has answered. */
async function end({ campaign_id }: Flight, ending: Ending): Promise<void> {
  const { db, app } = place.rows
  const operation = await db.one<{ id: string; token: string }>(sql`
    select id, attempt_token as token from operations where campaign_id = ${campaign_id} and state = 'submitting'`)
  await db.transaction((tx) => settle(tx, app.operations, [{ ...operation, ending }]))
}

const accept = (flight: Flight, id: number, at = minute(id)) =>
  end(flight, { to: 'completed', reply: { message_id: String(id), timestamp: at } })

/** Its first message is number 5, and the second is due tomorrow. */
async function waiting(given: Parameters<typeof inFlight>[0] = {}): Promise<Flight> {
  const flight = await inFlight(given)
  await accept(flight, 5)
  return flight
}

function privateChat(id: Chat['id']): Chat {
  return { id, kind: 'private', name: 'Mara', username: null, unread_count: 0, participants: [] }
}

/** The updates of one batch. */
async function take(held: HeldLease, updates: readonly Update[]): Promise<void> {
  const batch = { updates, position: String(++positions), caught_up: true }
  expect(await ingest(place.rows.app, held, batch, platform)).toBe(true)
}

const update = (chat_id: Chat['id'], message: Message, live = true): Update => ({
  ...{ kind: 'message', chat: privateChat(chat_id), message, live },
})

/** A page of history, newest first. */
async function fetchPage(held: HeldLease, chat_id: Chat['id'], messages: readonly Message[]): Promise<void> {
  const { app, db } = place.rows
  const { account_id } = held
  await db.run(sql`
    insert into chat_sync (account_id, chat_id, workspace_id, wanted_at)
    select id, ${chat_id}::bigint, workspace_id, clock_timestamp() from accounts where id = ${account_id}
    on conflict (account_id, chat_id) do update set wanted_at = excluded.wanted_at`)
  const session = { history: async () => ({ kind: 'accepted', value: messages }) } as unknown as Session
  const signal = new AbortController().signal
  await fetchWanted(app, { held, session, platform, signal }, { account_id, chat_id, oldest_id: null })
}

/** The recipient, and the events about it or its messages. */
async function stateOf({ campaign_id, chat_id }: Flight) {
  const { status, message_id } = await place.rows.db.one<{ status: string; message_id: string | null }>(sql`
    select status, reply_message_id::text as message_id from campaign_recipients where campaign_id = ${campaign_id}`)
  const events = await place.rows.db.rows<{ type: string }>(sql`
    select type from (
      select type, data from outbox union all select type, data from events) told
    where data ->> 'chat_id' = ${`platform:chat:${chat_id}`} order by type`)
  return { status, message_id, events: events.map(({ type }) => type) }
}

const replied = { status: 'replied', message_id: '7', events: ['campaign.replied'] }

async function isSuppressed({ chat_id }: Flight): Promise<boolean> {
  const all = await listSuppressions(place.rows.db, place.rows.tenant.workspace_id)
  return all.some(({ value }) => value === chat_id)
}

describe('a reply, and a request to stop', () => {
  const ways: [string, (flight: Flight, message: Message) => Promise<void>][] = [
    ['a page of history', ({ held, chat_id }, message) => fetchPage(held, chat_id, [message])],
    [
      'an update that is not live, as after a gap',
      ({ held, chat_id }, message) => take(held, [update(chat_id, message, false)]),
    ],
  ]
  test.each(ways)('in %s end the sequence, and nothing is announced', async (_, bring) => {
    const [one, other] = [await waiting(), await waiting()]
    await bring(one, messageOf(7))
    expect([await stateOf(one), await isSuppressed(one)]).toEqual([replied, false])
    await bring(one, messageOf(7))
    await bring(one, messageOf(8))
    expect(await stateOf(one)).toEqual(replied)
    await bring(other, messageOf(7, 'Stop!'))
    expect([await stateOf(other), await isSuppressed(other)]).toEqual([replied, true])
  })

  test.each(ways)('in %s do not count if they are older than our message', async (_, bring) => {
    const one = await waiting()
    await bring(one, messageOf(3, 'STOP'))
    expect([await stateOf(one), await isSuppressed(one)]).toEqual([
      { status: 'waiting', message_id: null, events: [] },
      false,
    ])
  })

  test('in an edit that also stores a message end the sequence', async () => {
    const one = await waiting()
    const message = { ...messageOf(7, 'STOP'), edited_at: minute(8) }
    await take(one.held, [{ kind: 'edited', chat_id: one.chat_id, message }])
    expect([await stateOf(one), await isSuppressed(one)]).toEqual([
      { ...replied, events: ['campaign.replied', 'message.edited'] },
      true,
    ])
  })

  test('include a message that is edited into an opt-out word', async () => {
    const one = await waiting()
    await take(one.held, [update(one.chat_id, messageOf(7, 'Stpo'))])
    expect(await isSuppressed(one)).toBe(false)
    const message = { ...messageOf(7, 'Stop'), edited_at: minute(8) }
    await take(one.held, [{ kind: 'edited', chat_id: one.chat_id, message }])
    expect(await isSuppressed(one)).toBe(true)
    expect((await stateOf(one)).events).toEqual(['campaign.replied', 'message.edited', 'message.received'])
  })

  test('in a batch that begins before our message count from after it', async () => {
    const one = await waiting()
    const { held, chat_id } = one
    await take(held, [
      update(chat_id, messageOf(3)),
      update(chat_id, messageOf(7)),
      update(chat_id, messageOf(8)),
    ])
    expect(await stateOf(one)).toMatchObject({ status: 'replied', message_id: '7' })
  })

  test('in one page answer each campaign that wrote with the first message after its own', async () => {
    const earlier = await waiting({ steps: [] })
    const { held, chat_id } = earlier
    const chats = [{ account_id: held.account_id, person_id: Number(chat_id) }]
    const campaign_id = await insertCampaign(place.rows.db, place.rows.tenant, { chats })
    await place.rows.host(held, sql`next_campaign_at = null`)
    await (await place.pick(held, campaign_id))()
    const later = { held, chat_id, campaign_id }
    await accept(later, 9)
    await fetchPage(held, chat_id, [messageOf(12), messageOf(11), messageOf(7)])
    expect([(await stateOf(earlier)).message_id, (await stateOf(later)).message_id]).toEqual(['7', '11'])
  })
})

describe('while a message is in flight', () => {
  test('keeps the newest of a page, which decides once the message is accepted', async () => {
    const one = await inFlight()
    await fetchPage(one.held, one.chat_id, [messageOf(7), messageOf(3)])
    expect(await stateOf(one)).toEqual({ status: 'submitting', message_id: '7', events: [] })
    await fetchPage(one.held, one.chat_id, [messageOf(4)])
    await accept(one, 5)
    expect(await stateOf(one)).toEqual(replied)
  })

  test('a page of earlier messages is no reply', async () => {
    const one = await inFlight()
    await fetchPage(one.held, one.chat_id, [messageOf(4), messageOf(3)])
    await accept(one, 5)
    expect(await stateOf(one)).toEqual({ status: 'waiting', message_id: null, events: [] })
  })

  test('does not even record what is older than the campaign', async () => {
    const one = await inFlight()
    await fetchPage(one.held, one.chat_id, [messageOf(3, 'STOP', minute(-120))])
    expect([await stateOf(one), await isSuppressed(one)]).toEqual([
      { status: 'submitting', message_id: null, events: [] },
      false,
    ])
  })

  test('counts a stored reply to a message that a restore has lost, once the message is known', async () => {
    const one = await inFlight()
    const set = (status: string, due: string | null) =>
      place.rows.db.run(sql`
        update campaign_recipients set status = ${status}, next_action_at = ${due}::timestamptz
        where campaign_id = ${one.campaign_id}`)
    await set('queued', minute(0))
    await take(one.held, [update(one.chat_id, messageOf(4)), update(one.chat_id, messageOf(7))])
    expect(await stateOf(one)).toMatchObject({ status: 'queued', message_id: null })
    await set('submitting', null)
    await accept(one, 5)
    expect(await stateOf(one)).toMatchObject({ status: 'replied', message_id: '7' })
  })

  test('counts an opt-out that came after the crossing', async () => {
    const one = await inFlight()
    await fetchPage(one.held, one.chat_id, [messageOf(7, 'STOP')])
    expect(await isSuppressed(one)).toBe(true)
    await accept(one, 5)
    expect(await stateOf(one)).toEqual(replied)
  })
})

describe('another account of the pool', () => {
  test('receives the reply: the sequence ends, and the event names the account that has the message', async () => {
    const other = await place.rows.account()
    const one = await waiting({ pool: [other.account_id] })
    await take(other, [update(one.chat_id, messageOf(1, 'Who are you?', minute(4)))])
    expect(await stateOf(one)).toMatchObject({ status: 'waiting' })
    await take(other, [update(one.chat_id, messageOf(2, 'Tell me more', minute(6)))])
    expect(await stateOf(one)).toMatchObject({ status: 'replied', message_id: '2' })
    const event = await place.rows.db.one<{ data: unknown }>(sql`
      select data from (select type, data from outbox union all select type, data from events) told
      where type = 'campaign.replied' and data ->> 'campaign_id' = ${one.campaign_id}`)
    expect(event.data).toMatchObject({ account_id: other.account_id, message_id: '2', step: 0 })
    const counts = await place.rows.db.rows(sql`
      select account_id, replied::int from campaign_counts
      where campaign_id = ${one.campaign_id} and at = '-infinity' and replied > 0`)
    expect(counts, 'counted where it was written').toEqual([{ account_id: one.held.account_id, replied: 1 }])
  })

  test('stores the reply and an opt-out from its history', async () => {
    const other = await place.rows.account()
    const one = await waiting({ pool: [other.account_id] })
    await fetchPage(other, one.chat_id, [messageOf(2, 'STOP', minute(6)), messageOf(1, 'Hello', minute(4))])
    expect([await stateOf(one), await isSuppressed(one)]).toMatchObject([{ status: 'replied' }, true])
  })

  test('does not end a campaign whose sequence is over, nor one of another pool', async () => {
    const [other, foreign] = [await place.rows.account(), await place.rows.account()]
    const done = await waiting({ pool: [other.account_id], steps: [] })
    await take(other, [update(done.chat_id, messageOf(2, 'Hello', minute(6)))])
    expect(await stateOf(done)).toMatchObject({ status: 'completed' })
    const one = await waiting({ pool: [other.account_id] })
    await take(foreign, [update(one.chat_id, messageOf(2, 'Hello', minute(6)))])
    expect(await stateOf(one)).toMatchObject({ status: 'waiting' })
  })

  test.each([
    ['after the crossing is a reply, whatever its number', 2, 3, 'replied'],
    ['before the crossing is not a reply, whatever its number', 900, -3, 'waiting'],
  ])('while one is in flight, a message from %s', async (_, id, at, status) => {
    const other = await place.rows.account()
    const one = await inFlight({ pool: [other.account_id] })
    await take(other, [update(one.chat_id, messageOf(id, 'Hello', minute(at)))])
    await accept(one, 5)
    expect(await stateOf(one)).toMatchObject({ status })
  })
})
