/** What the team writes to a person by hand ends the sequences that ask for it, whichever account and device it comes from. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { identify } from '../../../../test/harness/agents.ts'
import { type CampaignPlace, openCampaigns } from '../../../../test/harness/campaigns.ts'
import { callTool } from '../../../../test/harness/mcp.ts'
import { askDashboard, signIn } from '../../../../test/harness/person.ts'
import { sql } from '../../../db/sql.ts'
import { enqueue, withdraw } from '../../../ledger/enqueue.ts'
import { type ChatNumber, chatIdOf } from '../../../lib/shapes.ts'
import type { Session, Update } from '../../../platform/port.ts'
import { writeFromPhone } from '../../../platform/sandbox/person-acts.ts'
import { ingest } from '../../../worker/ingest.ts'
import { approve } from '../../approvals/decisions.ts'
import { sendMessage, wantText } from '../../messages/send.ts'
import { closeOperation } from '../../operations/operations.ts'
import { decideNoted } from './hand-messages.ts'

let place: CampaignPlace
let a: string
let b: string
let person: { person_id: number; username: string }
/** What the platform does with the next message of a campaign. */
let during: (() => Promise<void>) | undefined
beforeAll(async () => {
  place = await openCampaigns({ PARLEY_PACING_SECONDS: '0' })
  const { platform } = place.work.sandbox
  const connect = platform.connect.bind(platform)
  platform.connect = async (account, listener) => {
    const connected = await connect(account, listener)
    if (connected.kind === 'accepted') interrupt(connected.value)
    return connected
  }
})
beforeEach(async () => {
  during = undefined
  await place.fresh()
  a = await place.account()
  b = await place.account()
  person = stranger()
})
afterEach(async () => {
  expect(await place.judge()).toEqual([])
  place.work.sandbox.world.clearFaults()
})
afterAll(() => place.close())

function interrupt(session: Session): void {
  const send = session.send.bind(session)
  Object.assign(session, {
    send: async (message: Parameters<Session['send']>[0]) => {
      const interrupted = during
      during = undefined
      await interrupted?.()
      return send(message)
    },
  })
}

const hour = 3_600
const day = 24 * hour
let made = 0

function stranger() {
  const username = `by_hand_${made++}`
  const { person_id } = place.work.sandbox.world.addPerson({ name: 'Mara', username })
  return { person_id, username }
}

const post = (path: string, body: object) =>
  place.work.service.call('POST', path, {
    key: place.tenant.key,
    headers: { 'idempotency-key': `hand-${made++}` },
    body,
  })

/** A campaign of contacts, created through the API. */
async function create(account_id: string, more: object = {}): Promise<string> {
  const steps = [24, 48].map((wait_hours, at) => ({
    branch: 'no_reply',
    wait_hours,
    variants: [`Step ${at + 1}`],
  }))
  const contacts = [{ identifier: `@${person.username}` }]
  const body = { message_text: 'First', account_id, contacts, steps, stop_on_own_message: true, ...more }
  const answer = await post('/campaigns', body)
  expect([answer.status, answer.body]).toEqual([201, expect.anything()])
  return (answer.body as { campaign: { id: string } }).campaign.id
}

/** A sequence that has written to the person once. */
async function begun(account_id: string, more: object = {}): Promise<string> {
  const id = await create(account_id, more)
  await place.advance(hour)
  expect(await place.statuses(id)).toEqual(['waiting'])
  return id
}

const phone = (account_id: string, text = 'As we agreed on the phone') =>
  writeFromPhone(place.work.sandbox.world, { account_id, person_id: person.person_id, text })

async function untilEnded(id: string): Promise<void> {
  await place.until('the sequence has ended', async () => (await place.statuses(id))[0] !== 'waiting')
  expect(await place.recipients(id)).toMatchObject([{ status: 'completed', reason: 'answered_by_hand' }])
}

/** Every message that this person got from campaigns. */
const texts = () =>
  place
    .sent()
    .filter((one) => one.person === person.person_id)
    .map(({ text }) => text)

const undecided = async () => {
  const { count } = await place.db.one<{ count: number }>(sql`
    select count(*)::int as count from hand_messages where workspace_id = ${place.tenant.workspace_id}`)
  return count
}

async function untilStored(account_id: string, text: string): Promise<void> {
  await place.until('the message is stored', async () => {
    const rows = await place.work.messages(account_id)
    return rows.some((one) => one.text === text)
  })
}

/** A batch of updates that the platform might send. */
async function receive(account_id: string, updates: readonly Update[]): Promise<void> {
  // Its worker stores nothing meanwhile: the position that this batch keeps would be an older one.
  await place.advance(0)
  const row = await place.db.one<{ worker_id: string; epoch: string; position: string; seen: string }>(sql`
    select lease_owner as worker_id, lease_epoch::text as epoch, position, writes::text as seen
    from account_hosts where account_id = ${account_id}`)
  const { position, seen, ...lease } = row
  const held = { account_id, workspace_id: place.tenant.workspace_id, ...lease, writes: { seen } }
  const batch = { updates, position, caught_up: true }
  expect(await ingest(place.app, held, batch)).toBe(true)
}

function ownMessage(given: { id: string; text: string; live: boolean; at?: Date }): Update {
  const { id, text, live, at = new Date('2026-12-01T00:00:00Z') } = given
  return {
    kind: 'message',
    live,
    chat: {
      id: String(person.person_id),
      kind: 'private',
      name: 'Mara',
      username: person.username,
      unread_count: null,
      participants: null,
    } as Extract<Update, { kind: 'message' }>['chat'],
    message: {
      ...{ id, text, is_sender: true, sender_id: null, timestamp: at.toISOString(), edited_at: null },
      ...{ attachments: [], random_id: null },
    },
  }
}

async function inbox(account_id: string, text: string, key = `inbox-${made++}`) {
  const cookie = await signIn(place.work.service, place.tenant.user_id)
  const path = `/w/${place.tenant.workspace_id}/messages`
  const body = { account_id, chat_id: `platform:chat:${person.person_id}`, text }
  const headers = { 'idempotency-key': key }
  return askDashboard(place.work.service, 'POST', path, { cookie, body, headers })
}

/** A message that an agent sends over MCP, and the user of its key has approved. */
async function agent(message: object): Promise<void> {
  const { key, user_id } = place.tenant
  const call = { url: place.work.service.url, key }
  const asked = await callTool(call, 'service_send_message', message)
  const request_id = String(asked.structuredContent?.request_id)
  const { token } = await approve(place.app, await identify(place.db, user_id), request_id)
  const sent = await callTool(call, 'service_send_message', { ...message, approval_token: token })
  expect(sent.structuredContent).toMatchObject({ ok: true })
}

/** The account has a chat with the person. */
async function meets(account_id: string): Promise<void> {
  place.work.write(account_id, person.person_id, 'Hello, who is this?')
  await untilStored(account_id, 'Hello, who is this?')
}

async function operationIn(state: string, account_id = b): Promise<string> {
  let found: { id: string } | undefined
  await place.until(`the send is ${state}`, async () => {
    found = await place.db.maybe<{ id: string }>(sql`
      select id from operations where account_id = ${account_id} and state = ${state} and kind = 'send_message'`)
    return found !== undefined
  })
  return found?.id ?? ''
}

const lapse = (id: string) =>
  place.db.run(sql`update operations set lease_until = real_now() - interval '1 hour' where id = ${id}`)

describe('stop_on_own_message', () => {
  test("a message from the other account's phone ends the sequence", async () => {
    await meets(b)
    const id = await begun(a)
    phone(b)
    await untilEnded(id)
    await place.advance(5 * day)
    expect(texts()).toEqual(['First'])
    expect(await undecided()).toBe(0)
    const { body } = await place.work.service.call('GET', `/campaigns/${id}`, { key: place.tenant.key })
    expect(body).toMatchObject({
      campaign: {
        status: 'completed',
        totals: { completed: 1, replied: 0 },
        recipients: [{ status: 'completed', reason: 'answered_by_hand', blocked_by: null }],
      },
    })
    const cookie = await signIn(place.work.service, place.tenant.user_id)
    const shown = await askDashboard(
      place.work.service,
      'GET',
      `/w/${place.tenant.workspace_id}/campaigns/${id}/recipients`,
      { cookie },
    )
    expect(shown.body).toMatchObject({
      recipients: [{ sentence: 'A member of the team wrote to this person by hand.' }],
    })
  })

  test('a message from the phone of the same account ends the sequence', async () => {
    const id = await begun(a)
    phone(a)
    await untilEnded(id)
    await place.advance(5 * day)
    expect(texts()).toEqual(['First'])
  })

  test('a send of a member at the inbox of another account ends the sequence', async () => {
    await meets(b)
    const id = await begun(a)
    expect(await inbox(b, 'We agreed on the phone')).toMatchObject({ status: 200 })
    await untilEnded(id)
    await place.advance(5 * day)
    expect(texts()).toEqual(['First', 'We agreed on the phone'])
  })

  test('a send of a key, one of an agent, a broadcast and a message of another campaign end nothing', async () => {
    await meets(a)
    await meets(b)
    const id = await begun(b)
    const chat_id = `platform:chat:${person.person_id}`
    const sent = await post('/messages', { account_id: a, chat_id, text: 'From a program' })
    expect(sent.status).toBe(200)
    await agent({ account_id: a, chat_id, text: 'From an agent' })
    const other = { account_id: a, person_id: person.person_id }
    await place.campaign({ chats: [other], message_text: 'Another campaign' })
    await place.campaign({ kind: 'broadcast', chats: [other], message_text: 'A broadcast' })
    await place.advance(hour)
    expect(texts()).toEqual(['First', 'From a program', 'From an agent', 'Another campaign', 'A broadcast'])
    expect(await place.statuses(id)).toEqual(['waiting'])
    await place.advance(day)
    expect(texts().at(-1)).toBe('Step 1')
  })

  test('without it a message by hand ends nothing', async () => {
    const id = await begun(a, { stop_on_own_message: undefined })
    const told = await begun(b, { contacts: [{ identifier: String(person.person_id) }] })
    phone(a)
    await untilEnded(told)
    expect(await place.statuses(id)).toEqual(['waiting'])
    await place.advance(day)
    expect(texts()).toEqual(['First', 'First', 'Step 1'])
  })

  test('ends nobody whose first message is still to come', async () => {
    await meets(a)
    const { now } = await place.db.one<{ now: Date }>(sql`select domain_now() as now`)
    const scheduled_at = new Date(now.getTime() + 2 * day * 1_000).toISOString()
    const later = await create(a, { scheduled_at })
    const first = await begun(b, { contacts: [{ identifier: String(person.person_id) }] })
    phone(a)
    await untilEnded(first)
    expect(await place.statuses(later)).toEqual(['queued'])
    await place.advance(2 * day)
    expect(await place.statuses(later)).toEqual(['waiting'])
    expect(texts()).toEqual(['First', 'First'])
  })

  test('ends only what was written before the message, by the clock of the platform', async () => {
    const id = await begun(a)
    const { last } = await place.db.one<{ last: Date }>(sql`
      select last_sent_at as last from campaign_recipients where campaign_id = ${id}`)
    const at = new Date(last.getTime() - 60_000)
    await receive(b, [ownMessage({ id: '900', text: 'An hour ago', live: true, at })])
    await place.until('it is decided', async () => (await undecided()) === 0)
    expect(await place.statuses(id)).toEqual(['waiting'])
  })

  test('ignores a message from history', async () => {
    const id = await begun(a)
    await receive(b, [ownMessage({ id: '900', text: 'From history', live: false })])
    await untilStored(b, 'From history')
    expect(await undecided()).toBe(0)
    await place.advance(day)
    expect(texts()).toEqual(['First', 'Step 1'])
    expect(await place.statuses(id)).toEqual(['waiting'])
  })

  test("ignores an operation's message that the platform shows without its random id", async () => {
    await meets(b)
    const id = await begun(a)
    const chat_id = `platform:chat:${person.person_id}`
    const { body } = await post('/messages', { account_id: b, chat_id, text: 'From a program' })
    const { message_id } = body as { message_id: string }
    await receive(b, [ownMessage({ id: message_id, text: 'From a program', live: true })])
    await place.until('it is decided', async () => (await undecided()) === 0)
    expect(await place.statuses(id)).toEqual(['waiting'])
  })

  test('ends nothing in another workspace, and holds nothing there while it is undecided', async () => {
    const id = await begun(a)
    await place.fresh()
    const other = await place.account()
    const own = await begun(other)
    // Nobody decides this one: an operation of the account is unknown.
    place.work.fault({ on: 'send', fault: 'timeout_before', account_id: other })
    const chat_id = `platform:chat:${person.person_id}`
    void post('/messages', { account_id: other, chat_id, text: 'From a program' })
    const operation_id = await operationIn('submitting', other)
    phone(other)
    await place.until('the message is noted', async () => (await undecided()) === 1)
    await place.advance(2 * day)
    expect([await place.statuses(own), (await place.recipients(id))[0]?.step]).toEqual([['waiting'], 2])
    await lapse(operation_id)
    await operationIn('ambiguous', other)
    await closeOperation(place.app, 'cli:ana', { id: operation_id, closed_as: 'not_sent' })
    await untilEnded(own)
    expect(await place.statuses(id)).toEqual(['waiting'])
  })

  test('ends a sequence whose first message is in flight, once that is accepted', async () => {
    await meets(b)
    during = async () => {
      phone(b)
      await untilStored(b, 'As we agreed on the phone')
    }
    const id = await create(a)
    await place.advance(hour)
    await untilEnded(id)
    await place.advance(5 * day)
    expect(texts()).toEqual(['First'])
  })

  test('a send of a member that no worker has taken yet holds the follow-up', async () => {
    const id = await begun(a)
    const away = await place.work.service.account(place.tenant.workspace_id, 'NEEDS_LOGIN')
    const queued = await enqueue(
      place.app,
      { ...place.tenant, scopes: [], via: { kind: 'terminal' } },
      {
        ...{ operation: sendMessage, key: undefined, fingerprint: Buffer.alloc(32) },
        wanted: wantText(away, chatIdOf(String(person.person_id) as ChatNumber), 'We agreed on the phone'),
      },
    )
    await decideNoted(place.app)
    expect(await undecided()).toBe(1)
    await place.advance(day)
    expect(texts()).toEqual(['First'])
    if (queued) await withdraw(place.app, queued)
    await place.until('it is decided', async () => (await undecided()) === 0)
    await place.advance(day)
    expect([texts(), await place.statuses(id)]).toEqual([['First', 'Step 1'], ['waiting']])
  })

  test('ends nothing of a person with the same number on another platform', async () => {
    const id = await begun(a)
    await place.db.run(sql`update accounts set platform = 'telegram' where id = ${b}`)
    await receive(b, [ownMessage({ id: '900', text: 'To another person', live: true })])
    await place.until('it is decided', async () => (await undecided()) === 0)
    await place.db.run(sql`update accounts set platform = 'sandbox' where id = ${b}`)
    expect(await place.statuses(id)).toEqual(['waiting'])
  })
})

describe('while an operation to the chat is unknown', () => {
  const unknown = async (): Promise<{ id: string; operation_id: string }> => {
    await meets(b)
    const id = await begun(a)
    place.work.fault({ on: 'send', fault: 'timeout_before', account_id: b })
    const chat_id = `platform:chat:${person.person_id}`
    void post('/messages', { account_id: b, chat_id, text: 'From a program' })
    const operation_id = await operationIn('submitting')
    return { id, operation_id }
  }

  test('the follow-up waits for the decision, and says so', async () => {
    const { id, operation_id } = await unknown()
    phone(b)
    await place.until('the message is noted', async () => (await undecided()) === 1)
    await lapse(operation_id)
    await operationIn('ambiguous')
    await place.advance(2 * day)
    expect(texts()).toEqual(['First'])
    const { body } = await place.work.service.call('GET', `/campaigns/${id}`, { key: place.tenant.key })
    expect(body).toMatchObject({ campaign: { recipients: [{ status: 'waiting', blocked_by: 'ambiguous' }] } })
    await closeOperation(place.app, 'cli:ana', { id: operation_id, closed_as: 'not_sent' })
    await untilEnded(id)
    await place.advance(5 * day)
    expect(texts()).toEqual(['First'])
  })

  test('a recipient that waits for the decision hides no other of its campaign', async () => {
    const [first, second] = [person, stranger()]
    await meets(b)
    const id = await create(a, {
      contacts: [{ identifier: `@${first.username}` }, { identifier: `@${second.username}` }],
    })
    await place.advance(hour)
    place.work.fault({ on: 'send', fault: 'timeout_before', account_id: b })
    void post('/messages', { account_id: b, chat_id: `platform:chat:${first.person_id}`, text: 'Hm' })
    const operation_id = await operationIn('submitting')
    phone(b)
    await place.until('the message is noted', async () => (await undecided()) === 1)
    await lapse(operation_id)
    await operationIn('ambiguous')
    await place.advance(day)
    const all = place
      .sent()
      .map((one) => `${one.person === first.person_id ? 'first' : 'second'} ${one.text}`)
    expect(all).toEqual(['first First', 'second First', 'second Step 1'])
    await closeOperation(place.app, 'cli:ana', { id: operation_id, closed_as: 'not_sent' })
    await place.until('the first has ended', async () => (await place.statuses(id))[0] === 'completed')
  })

  test('an operation that an operator closes as sent is taken for the message with its text', async () => {
    const { id, operation_id } = await unknown()
    phone(b, 'From a program')
    await place.until('the message is noted', async () => (await undecided()) === 1)
    await lapse(operation_id)
    await operationIn('ambiguous')
    await closeOperation(place.app, 'cli:ana', { id: operation_id, closed_as: 'sent' })
    await place.until('it is decided', async () => (await undecided()) === 0)
    expect(await place.statuses(id)).toEqual(['waiting'])
  })

  test('an operation that an operator closes as sent is not taken for a message with another text', async () => {
    const { id, operation_id } = await unknown()
    phone(b)
    await place.until('the message is noted', async () => (await undecided()) === 1)
    await lapse(operation_id)
    await operationIn('ambiguous')
    await closeOperation(place.app, 'cli:ana', { id: operation_id, closed_as: 'sent' })
    await untilEnded(id)
  })

  test("a member's send whose outcome is unknown holds the follow-up, and ends it once it is noted as sent", async () => {
    await meets(b)
    const id = await begun(a)
    place.work.fault({ on: 'send', fault: 'timeout_before', account_id: b })
    void inbox(b, 'We agreed on the phone')
    const operation_id = await operationIn('submitting')
    expect(await undecided()).toBe(1)
    await lapse(operation_id)
    await operationIn('ambiguous')
    await place.advance(2 * day)
    expect(texts()).toEqual(['First'])
    await closeOperation(place.app, 'cli:ana', { id: operation_id, closed_as: 'sent' })
    await untilEnded(id)
  })

  test("a member's send that was released ends nothing, and the sequence once it is repeated", async () => {
    await meets(b)
    const id = await begun(a)
    place.work.fault({ on: 'send', fault: 'flood_wait', seconds: 60, account_id: b })
    const key = `inbox-${made++}`
    expect((await inbox(b, 'We agreed on the phone', key)).status).not.toBe(200)
    await place.until('it is decided', async () => (await undecided()) === 0)
    expect(await place.statuses(id)).toEqual(['waiting'])
    await place.advance(120)
    expect(await inbox(b, 'We agreed on the phone', key)).toMatchObject({ status: 200 })
    await untilEnded(id)
  })

  test("a member's send that the platform refused ends nothing", async () => {
    await meets(b)
    const id = await begun(a)
    place.work.fault({ on: 'send', fault: 'refuse', error: 'blocked_by_person', account_id: b })
    expect((await inbox(b, 'Hello?')).status).not.toBe(200)
    await place.until('it is decided', async () => (await undecided()) === 0)
    expect(await place.statuses(id)).toEqual(['waiting'])
  })
})

describe('a message by hand that arrives while the follow-up crosses', () => {
  /** A follow-up stops after its locks, before its commit, while this table has its campaign. No lock: that would have a limit. */
  beforeAll(async () => {
    await place.db.run(sql`create table held_crossings (campaign_id uuid)`)
    await place.db.run(sql`
      create function hold_crossing() returns trigger language plpgsql as $$
      begin
        while exists (select from held_crossings h where h.campaign_id = new.campaign_id) loop
          perform pg_advisory_xact_lock_shared(4711);
          perform pg_sleep(0.05);
        end loop;
        return new;
      end $$`)
    await place.db.run(sql`
      create trigger hold_crossing before insert on operations for each row when (new.step_no > 0)
      execute function hold_crossing()`)
  })
  afterAll(async () => {
    await place.db.run(sql`drop function hold_crossing cascade`)
    await place.db.run(sql`drop table held_crossings`)
  })

  test('the follow-up that has its locks goes out, and is the last', async () => {
    const id = await begun(a)
    await place.db.run(sql`insert into held_crossings values (${id})`)
    const advanced = place.advance(day)
    await place.until('the crossing is held', async () => {
      const row = await place.db.maybe(sql`
        select 1 from pg_locks where locktype = 'advisory' and objid = 4711`)
      return row !== undefined
    })
    // The updates of the account that crosses wait for its commit, those of another do not.
    phone(b)
    await place.until('the message is noted', async () => (await undecided()) === 1)
    expect(texts()).toEqual(['First'])
    await place.db.run(sql`delete from held_crossings`)
    await advanced
    await untilEnded(id)
    await place.advance(5 * day)
    expect(texts()).toEqual(['First', 'Step 1'])
  })

  test('ends the others at once, and the one in flight when its message is proven', async () => {
    const id = await begun(a)
    const other = await begun(b, { contacts: [{ identifier: String(person.person_id) }] })
    await place.db.run(sql`
      update campaign_recipients set next_action_at = next_action_at + interval '100 days' where campaign_id = ${other}`)
    during = async () => {
      expect(await place.statuses(id)).toEqual(['submitting'])
      phone(b)
      await untilEnded(other)
    }
    await place.advance(day)
    await place.advance(5 * day)
    await untilEnded(id)
    expect(texts()).toEqual(['First', 'First', 'Step 1'])
    expect(await undecided()).toBe(0)
  })
})

describe('400', () => {
  test('with recipients, and for what is not a boolean', async () => {
    await meets(a)
    const recipients = [{ account_id: a, chat_id: `platform:chat:${person.person_id}` }]
    const scoped = await post('/campaigns', { message_text: 'Hi', recipients, stop_on_own_message: true })
    expect([scoped.status, scoped.body.code]).toEqual([400, 'invalid_request'])
    const contacts = [{ identifier: `@${person.username}` }]
    const odd = await post('/campaigns', {
      ...{ message_text: 'Hi', account_id: a, contacts, stop_on_own_message: 'yes' },
    })
    expect([odd.status, odd.body.code]).toEqual([400, 'invalid_request'])
  })

  test('while the gate extended is closed', async () => {
    await place.work.service.shut('extended')
    try {
      const contacts = [{ identifier: `@${person.username}` }]
      const body = { message_text: 'Hi', account_id: a, contacts, stop_on_own_message: true }
      const closed = await post('/campaigns', body)
      expect([closed.status, closed.body.code]).toEqual([400, 'invalid_request'])
    } finally {
      await place.work.service.open('extended')
    }
  })
})
