/** Every path that stores an incoming message, and its effect on recipients that are pending or in flight. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertCampaign, type NewCampaign } from '../../test/harness/campaigns.ts'
import { openPickedRows, type PickedRows } from '../../test/harness/picked.ts'
import { hangMs, until } from '../../test/harness/process.ts'
import { noteTrouble } from '../capabilities/accounts/accounts.ts'
import { decideNoted } from '../capabilities/campaigns/running/hand-messages.ts'
import { listSuppressions } from '../capabilities/suppressions/suppressions.ts'
import { sql } from '../db/sql.ts'
import type { HeldLease } from '../ledger/leases.ts'
import { type JournaledOperation, putBack } from '../ledger/put-back.ts'
import { Recorder } from '../ledger/recording.ts'
import { closeByPerson, type Ending, settle } from '../ledger/settle.ts'
import { newId } from '../lib/ids.ts'
import type { Chat, Message, Platform, Session, Update } from '../platform/port.ts'
import { ingest } from './ingest.ts'
import { fetchWanted } from './sync.ts'

let place: PickedRows
beforeAll(async () => {
  place = await openPickedRows()
})
afterAll(() => place.close())

const platform = { paceMs: 0 } as Platform
const begun = Date.now()
/** Minutes from the start of this test. */
const minute = (n: number) => new Date(begun + n * 60_000).toISOString()

function messageOf(id: number, text = 'Tell me more', at = minute(id)): Message {
  return {
    ...{ id: String(id), text, is_sender: false, sender_id: null, timestamp: at },
    ...{ edited_at: null, attachments: [], random_id: null },
  }
}

type Forgotten = JournaledOperation

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
    sql`update campaign_recipients set chat_id = ${person_id} where campaign_id = ${campaign_id}`,
  )
  await rows.db.run(sql`
    insert into contacts (account_id, provider_id, workspace_id)
    values (${account_id}, ${person_id}, ${rows.tenant.workspace_id}) on conflict do nothing`)
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

/** No answer of the platform came, and an operator knows that the message went out. */
async function closeAsSent(flight: Flight): Promise<void> {
  const { db, app } = place.rows
  await end(flight, { to: 'ambiguous', reason: 'timeout' })
  const { id } = await db.one<{ id: string }>(sql`
    select id from operations where campaign_id = ${flight.campaign_id}`)
  await db.transaction((tx) => closeByPerson(tx, app.operations, { id, closed_as: 'sent' }))
}

/** The whole second in which its message crossed: platforms report no other times. */
async function crossedIn({ campaign_id }: Flight): Promise<string> {
  const { at } = await place.rows.db.one<{ at: Date }>(sql`
    select date_trunc('second', crossed_at) as at from operations where campaign_id = ${campaign_id}`)
  return at.toISOString()
}

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
  expect(await ingest(place.rows.app, held, batch)).toBe(true)
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

  test('counts a reply within the second of the crossing, of which the platform reports only the second', async () => {
    const one = await inFlight()
    await take(one.held, [update(one.chat_id, messageOf(7, 'Tell me more', await crossedIn(one)))])
    await closeAsSent(one)
    expect(await stateOf(one)).toMatchObject({ status: 'replied', message_id: '7' })
  })

  test('what the person wrote within the second before it is neither a reply nor written by hand', async () => {
    const { db } = place.rows
    const one = await inFlight({ stop_on_own_message: true })
    await db.run(sql`
      insert into chats (account_id, workspace_id, chat_id, kind)
      values (${one.held.account_id}, ${one.held.workspace_id}, ${one.chat_id}, 'private') on conflict do nothing`)
    await db.run(sql`
      insert into messages (account_id, workspace_id, chat_id, id, text, is_sender, sent_at)
      values (${one.held.account_id}, ${one.held.workspace_id}, ${one.chat_id}, 4, 'Hello', false, ${await crossedIn(one)})`)
    await closeAsSent(one)
    await decideNoted(place.rows.app)
    expect(await stateOf(one)).toMatchObject({ status: 'waiting', message_id: null })
  })

  test('what the person wrote before a message that an operator closed as sent is no reply', async () => {
    const one = await inFlight()
    await closeAsSent(one)
    await fetchPage(one.held, one.chat_id, [messageOf(3, 'Hello', minute(-1))])
    expect(await stateOf(one)).toMatchObject({ status: 'waiting', message_id: null })
    await fetchPage(one.held, one.chat_id, [messageOf(7)])
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

describe('what a restore has lost', () => {
  /** As in an older copy: the message has no operation, and nobody was looked up for its recipient. Returns its operation. */
  async function forget({ campaign_id }: Flight): Promise<Forgotten> {
    const { db } = place.rows
    const entry = await db.one<Forgotten>(sql`
      select id, attempt_token as token, workspace_id, kind, account_id, chat_id::text, random_id::text,
        encode(fingerprint, 'hex') as fingerprint, null as key, campaign_id, recipient_id, step_no, quota_day::text, cold
      from operations where campaign_id = ${campaign_id}`)
    await db.transaction(async (tx) => {
      await tx.run(sql`alter table operations disable trigger operations_guard`)
      await tx.run(sql`delete from operations where campaign_id = ${campaign_id}`)
      await tx.run(sql`alter table operations enable trigger operations_guard`)
      await tx.run(sql`
        update campaign_recipients set status = 'queued', next_action_at = ${minute(0)}::timestamptz, person_id = null,
          chat_id = null, account_id = null where campaign_id = ${campaign_id}`)
    })
    return entry
  }

  /** The journal has the message, and then that the platform accepted it. */
  async function putBackAs(entry: Forgotten, id: number, at = minute(id)): Promise<void> {
    const { db, app } = place.rows
    expect(await db.transaction((tx) => putBack(tx, app.operations, entry))).toBe(true)
    const ending: Ending = { to: 'completed', reply: { message_id: String(id), timestamp: at } }
    await db.transaction((tx) => settle(tx, app.operations, [{ id: entry.id, token: entry.token, ending }]))
  }

  const lost = async (given: Parameters<typeof inFlight>[0] = {}) => {
    const other = await place.rows.account()
    const one = await inFlight({ pool: [other.account_id], ...given })
    return { other, one, entry: await forget(one) }
  }

  test('is answered in another account before it is put back: no follow-up goes out', async () => {
    const { other, one, entry } = await lost()
    // The number is lower: every account numbers its messages itself. Both were written before the message is put back.
    await take(other, [update(one.chat_id, messageOf(2, 'Yes please, call me', minute(-3)))])
    expect(await stateOf(one)).toMatchObject({ status: 'queued' })
    await putBackAs(entry, 5, minute(-5))
    expect(await stateOf(one)).toMatchObject({ status: 'replied', message_id: '2' })
    const row = await place.rows.db.one(sql`
      select reply_account_id from campaign_recipients where campaign_id = ${one.campaign_id}`)
    expect(row).toEqual({ reply_account_id: other.account_id })
  })

  test('was not answered by what another account got before it', async () => {
    const { other, one, entry } = await lost()
    await take(other, [update(one.chat_id, messageOf(9, 'Hello', minute(4)))])
    await putBackAs(entry, 5)
    expect(await stateOf(one)).toMatchObject({ status: 'waiting', message_id: null })
  })

  test('is not answered by a person with the same number on another platform', async () => {
    const { one, entry } = await lost()
    const telegram = await place.rows.account()
    await place.rows.db.run(sql`update accounts set platform = 'telegram' where id = ${telegram.account_id}`)
    await take(telegram, [update(one.chat_id, messageOf(9, 'Hello', minute(7)))])
    await putBackAs(entry, 5)
    expect(await stateOf(one)).toMatchObject({ status: 'waiting', message_id: null })
  })

  /** A message of ours, from a phone. */
  const byHand = (id: number, at: string): Message => ({ ...messageOf(id, 'As agreed', at), is_sender: true })
  const decide = async ({ campaign_id }: Flight) => {
    await decideNoted(place.rows.app)
    return place.rows.db.one<{ status: string; reason: string | null }>(sql`
      select status, reason from campaign_recipients where campaign_id = ${campaign_id}`)
  }
  const endedByHand = { status: 'completed', reason: 'answered_by_hand' }

  test.each(['its own account', 'another account'])(
    'and was followed by a message by hand from %s ends once it is put back',
    async (which) => {
      const { other, one, entry } = await lost({ stop_on_own_message: true })
      const writer = which === 'another account' ? other : one.held
      await take(writer, [update(one.chat_id, byHand(9, minute(7)))])
      await putBackAs(entry, 5)
      expect(await decide(one)).toEqual(endedByHand)
    },
  )

  test('and came after what was written by hand goes on', async () => {
    const { other, one, entry } = await lost({ stop_on_own_message: true })
    await take(other, [update(one.chat_id, byHand(9, minute(4)))])
    await putBackAs(entry, 5)
    expect(await decide(one)).toEqual({ status: 'waiting', reason: null })
  })

  test('goes on after what another platform sent by hand to the same number', async () => {
    const { one, entry } = await lost({ stop_on_own_message: true })
    const telegram = await place.rows.account()
    await place.rows.db.run(sql`update accounts set platform = 'telegram' where id = ${telegram.account_id}`)
    await take(telegram, [update(one.chat_id, byHand(9, minute(7)))])
    await putBackAs(entry, 5)
    const { noted } = await place.rows.db.one<{ noted: number }>(sql`
      select count(*)::int as noted from hand_messages where chat_id = ${one.chat_id}::bigint`)
    expect([await decide(one), noted]).toEqual([{ status: 'waiting', reason: null }, 0])
  })

  test('and may be in a journal is not taken for written by hand until every journal is put back', async () => {
    const { db } = place.rows
    const other = await place.rows.account()
    const one = await waiting({ pool: [other.account_id], stop_on_own_message: true })
    const worker_id = newId()
    await db.run(sql`insert into workers (id, owes) values (${worker_id}, true)`)
    await take(other, [update(one.chat_id, byHand(9, minute(7)))])
    expect(await decide(one)).toEqual({ status: 'waiting', reason: null })
    await db.run(sql`update workers set owes = false where id = ${worker_id}`)
    expect(await decide(one)).toEqual(endedByHand)
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

  test('does not receive it on another platform, where the number is another person', async () => {
    const telegram = await place.rows.account()
    await place.rows.db.run(sql`update accounts set platform = 'telegram' where id = ${telegram.account_id}`)
    const one = await waiting()
    await take(telegram, [update(one.chat_id, messageOf(7))])
    expect(await stateOf(one)).toMatchObject({ status: 'waiting', message_id: null })
  })

  test('stores the reply and an opt-out from its history', async () => {
    const other = await place.rows.account()
    const one = await waiting({ pool: [other.account_id] })
    await fetchPage(other, one.chat_id, [messageOf(2, 'STOP', minute(6)), messageOf(1, 'Hello', minute(4))])
    expect([await stateOf(one), await isSuppressed(one)]).toMatchObject([{ status: 'replied' }, true])
  })

  test('does not end a campaign whose sequence is over; an account of no pool of a campaign ends one', async () => {
    const [other, outside] = [await place.rows.account(), await place.rows.account()]
    const done = await waiting({ pool: [other.account_id], steps: [] })
    await take(other, [update(done.chat_id, messageOf(2, 'Hello', minute(6)))])
    expect(await stateOf(done)).toMatchObject({ status: 'completed' })
    const one = await waiting({ pool: [other.account_id] })
    await take(outside, [update(one.chat_id, messageOf(2, 'Hello', minute(6)))])
    expect(await stateOf(one)).toMatchObject({ status: 'replied', message_id: '2' })
  })

  test('ends a sequence whose campaign is paused: resumed, it would go on', async () => {
    const other = await place.rows.account()
    const one = await waiting({ pool: [other.account_id] })
    await place.control(one.campaign_id, 'pause')
    await take(other, [update(one.chat_id, messageOf(2, 'Tell me more', minute(6)))])
    expect(await stateOf(one)).toMatchObject({ status: 'replied', message_id: '2' })
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

describe('a deletion of a message whose outcome is not recorded yet', () => {
  const deleted: Update = { kind: 'deleted', chat_id: null, message_ids: ['5'] }

  /** A message in flight, and how its outcome is recorded. */
  async function sent(chat_id = String(people++)) {
    const { rows } = place
    const held = await rows.account()
    await rows.db.run(sql`
      insert into chats (account_id, workspace_id, chat_id, kind)
      values (${held.account_id}, ${held.workspace_id}, ${chat_id}, 'private')`)
    const token = newId()
    const id = await rows.operation(held, { state: 'submitting', token, chat_id })
    const operation = await rows.queued(id)
    const value = { message_id: '5', at: minute(5) }
    const recorder = new Recorder(rows.app, { count: () => {}, noteTrouble })
    const record = () =>
      recorder.record({ operation, public_id: id, token, outcome: { kind: 'accepted', value } })
    return { held, chat_id, record }
  }

  type SentFlight = Awaited<ReturnType<typeof sent>>

  const shown = ({ held: { account_id }, chat_id }: SentFlight) =>
    place.rows.db.one(sql`
      select m.deleted_at is not null as deleted, m.text, m.random_id is not null as proof,
        c.last_message_id::text as last
      from chats c join messages m using (account_id, chat_id)
      where c.account_id = ${account_id} and c.chat_id = ${chat_id}`)
  const gone = { deleted: true, text: '', proof: true, last: null }

  const isWaiting = () =>
    place.rows.db.maybe(sql`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)

  const bothWait = () =>
    place.rows.db.maybe(sql`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      having count(*) > 1`)

  test('holds for the message, which is stored without its text and is not the last of its chat', async () => {
    const one = await sent()
    await take(one.held, [deleted])
    await one.record()
    expect(await shown(one)).toEqual(gone)
  })

  test('does not concern a channel, which numbers its own messages', async () => {
    const one = await sent('-1000000000007')
    await take(one.held, [deleted])
    await one.record()
    expect(await shown(one)).toMatchObject({ deleted: false, last: '5' })
    const other = await sent('-1000000000008')
    await take(other.held, [{ ...deleted, chat_id: '-1000000000008' as Chat['id'] }])
    await other.record()
    expect(await shown(other)).toEqual(gone)
  })

  test('waits while the outcome is being recorded', async () => {
    const one = await sent()
    let both: Promise<unknown> | undefined
    await place.rows.db.transaction(async (tx) => {
      await tx.run(sql`select 1 from chats where account_id = ${one.held.account_id} for update`)
      const recorded = one.record()
      await until('the recorder waits for the chat', hangMs, isWaiting)
      const ingested = take(one.held, [deleted])
      both = Promise.all([recorded, ingested])
      await Promise.race([ingested, until('the deletion waits for the recorder', hangMs, bothWait)])
    })
    await both
    expect(await shown(one)).toEqual(gone)
  })

  test('is waited for by the recorder', async () => {
    const one = await sent()
    let both: Promise<unknown> | undefined
    await place.rows.db.transaction(async (tx) => {
      // An update about the last message of another chat is in the same batch.
      await tx.run(sql`
        insert into chats (account_id, workspace_id, chat_id, kind)
        values (${one.held.account_id}, ${one.held.workspace_id}, 1, 'private')`)
      const ingested = take(one.held, [deleted, update('1' as Chat['id'], messageOf(4))])
      await until('the batch waits for its chat', hangMs, isWaiting)
      const recorded = one.record()
      both = Promise.all([ingested, recorded])
      await Promise.race([recorded, until('the recorder waits for the batch', hangMs, bothWait)])
    })
    await both
    expect(await shown(one)).toEqual(gone)
  })
})
