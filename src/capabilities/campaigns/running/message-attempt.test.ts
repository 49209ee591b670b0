/** A campaign message from before its boundary to its outcome: what is recorded, and what happens in the meantime. */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPickedRows, type PickedRecipient, type PickedRows } from '../../../../test/harness/picked.ts'
import { makeScratch } from '../../../../test/harness/scratch.ts'
import type { App } from '../../../app.ts'
import { sql } from '../../../db/sql.ts'
import { Echoes } from '../../../ledger/echoes.ts'
import { findFloodWait } from '../../../ledger/floods.ts'
import { listJournals, openJournal, readJournal } from '../../../ledger/journal.ts'
import { Recorder } from '../../../ledger/recording.ts'
import { closeByPerson, type Ending, settle } from '../../../ledger/settle.ts'
import { newId } from '../../../lib/ids.ts'
import type { Outcome, Person, Sent, Session } from '../../../platform/port.ts'
import { noteTrouble } from '../../accounts/accounts.ts'
import { learnPeople } from '../../people/people.ts'
import { addSuppression } from '../../suppressions/suppressions.ts'
import { type MessageBoundary, messageBoundary } from './crossing.ts'
import { identityOf } from './message.ts'
import { attemptMessage } from './message-attempt.ts'
import { chooseDue, listHeads } from './pick.ts'

let place: PickedRows
let directory: string
beforeAll(async () => {
  directory = await makeScratch('parley-journal-')
  place = await openPickedRows()
})
afterAll(async () => {
  await place.close()
  await rm(directory, { recursive: true, force: true })
})

const accepted = (): Outcome<Sent> => ({
  kind: 'accepted',
  value: { message_id: '71', at: new Date().toISOString() },
})

/** Sends the one message that is due; `send` is what the platform does with it. */
async function attempt({ held }: PickedRecipient, given: Given = {}) {
  const { send = async () => accepted(), resolve, gapJitter = 0, sources = place.rows.app.sources } = given
  const { askPerson = async () => ({ kind: 'accepted', value: null }) } = given
  const app = { ...place.rows.app, sources }
  const heads = await listHeads(app, app.db, { account_ids: [held.account_id], avoid: [], due: true })
  const [due] = chooseDue(app, heads)
  if (!due) throw new Error('Nothing is due.')
  const journal = await openJournal(directory, newId())
  const recorder = new Recorder(app, { count: () => {}, noteTrouble })
  const boundary = { cross: () => Promise.reject(new Error('It has another boundary.')) } as never
  const messages = given.messages ?? (await place.boundary())
  const ways = { messages, boundary, recorder, journal, echoes: new Echoes(app) }
  const session = { send, resolve, askPerson } as unknown as Session
  const result = await attemptMessage(app, ways, due, {
    held,
    session,
    awaits: () => {},
    gapJitter,
    paceMs: 0,
  })
  await journal.close()
  return result
}

interface Given {
  readonly send?: () => Promise<Outcome<Sent>>
  readonly resolve?: () => Promise<Outcome<Person>>
  readonly askPerson?: Session['askPerson']
  readonly messages?: MessageBoundary
  readonly gapJitter?: number
  readonly sources?: App['sources']
}

test("the account then waits for the gap, and for its platform's random share of it", async () => {
  const sources = { ...place.rows.app.sources, random: () => 0.5 }
  for (const [gapJitter, expected] of [
    [0, 15],
    [0.4, 18],
  ] as const) {
    const one = await place.picked()
    await attempt(one, { gapJitter, sources })
    const { seconds } = await place.rows.db.one<{ seconds: number }>(sql`
      select extract(epoch from h.next_campaign_at - o.crossed_at)::float8 as seconds from account_hosts h
      join operations o on o.account_id = h.account_id where h.account_id = ${one.held.account_id}`)
    expect(Math.round(seconds)).toBe(expected)
  }
})

describe('a person who is suppressed while their message is in flight', () => {
  const notWritten = { kind: 'not_written', reason: 'no connection' } as const
  const listed = (one: PickedRecipient) => `+49170${one.person_id}0000`

  /** The entry finds no pending recipient: the recipient must learn it from the message's outcome. */
  async function suppress(one: PickedRecipient, identity: object): Promise<void> {
    const { workspace_id } = place.rows.tenant
    expect(await place.stateOf(one)).toMatchObject({ status: 'submitting' })
    await addSuppression(place.rows.app, 'system', { workspace_id, ...identity })
    expect(await place.stateOf(one)).toMatchObject({ status: 'submitting' })
  }

  async function known(one: PickedRecipient, { phone = null, username = null }: Known): Promise<void> {
    const { held, person_id } = one
    await place.rows.db.run(sql`
      insert into contacts (account_id, provider_id, workspace_id, name, sort_name, phone, username)
      values (${held.account_id}, ${person_id}, ${held.workspace_id}, 'Ines', 'ines', ${phone}, ${username})`)
  }

  interface Known {
    readonly phone?: string | null
    readonly username?: string | null
  }

  test.each<[string, (one: PickedRecipient) => { known: Known; identity: object }]>([
    [
      'a number with a zero in brackets',
      (one) => ({
        known: { phone: `+49 (0)170 ${one.person_id}-0000` },
        identity: { phone: listed(one) },
      }),
    ],
    [
      'a number with 00',
      (one) => ({ known: { phone: `0049 170/${one.person_id} 0000` }, identity: { phone: listed(one) } }),
    ],
    [
      'a username',
      (one) => ({
        known: { username: `Ines_${one.person_id}` },
        identity: { username: `ines_${one.person_id}` },
      }),
    ],
    ['an id', (one) => ({ known: {}, identity: { platform_id: String(one.person_id) } })],
  ])('%s: accepted or not, nothing follows', async (_, make) => {
    const steps = [{ wait_hours: 24 }]
    for (const [outcome, followups] of [
      [accepted(), { steps }],
      [notWritten, { steps }],
      [notWritten, {}],
    ] as const) {
      const one = await place.picked(followups)
      const made = make(one)
      await known(one, made.known)
      const send = async () => {
        await suppress(one, made.identity)
        return outcome
      }
      await attempt(one, { send })
      expect(await place.stateOf(one)).toMatchObject({ status: 'suppressed', operations: 1 })
    }
  })

  test('does not hold up another person', async () => {
    const one = await place.picked({ steps: [{ wait_hours: 24 }] })
    await known(one, { phone: '+49 (0)170 999-0000' })
    const send = async () => {
      await suppress(one, { phone: '+49170999000' })
      return accepted()
    }
    await attempt(one, { send })
    expect(await place.stateOf(one)).toMatchObject({ status: 'waiting' })
  })
})

test('a proof found at the boundary completes the message as shown, without a call', async () => {
  const one = await place.picked()
  const { app, db } = place.rows
  const { account_id, workspace_id } = one.held
  const [head] = await listHeads(app, db, { account_ids: [account_id], avoid: [], due: true })
  if (!head) throw new Error('Nothing is due.')
  await db.run(sql`
    insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at, random_id)
    values (${account_id}, ${one.person_id}, 7, ${workspace_id}, 'sent before', true, now(),
      ${identityOf(app, head).random_id}::bigint)`)
  let sent = 0
  const send = async () => {
    sent++
    return accepted()
  }
  await attempt(one, { send })
  expect(sent).toBe(0)
  expect(await place.stateOf(one)).toEqual({ status: 'completed', operations: 1, used: 1 })
  const { id } = await place.operation(one)
  expect(await place.rows.row(id)).toMatchObject({ state: 'completed', reply_body: { message_id: '7' } })
  // If the database is restored once more, the journal has the outcome.
  const texts = await Promise.all((await listJournals(directory)).map((file) => readJournal(directory, file)))
  const own = texts.flatMap(({ entries }) => entries).filter((entry) => entry.id === id)
  expect(own).toMatchObject([
    { entry: 'intent', recipient_id: head.recipient_id, step_no: 0 },
    { entry: 'outcome', outcome: { kind: 'accepted' } },
  ])
})

describe('a contact found by name, whose phone is suppressed at the look-up', () => {
  /** A campaign's contact, and the person whom the platform finds by it. */
  async function contact(phone: string | null) {
    const held = await place.rows.account()
    const contacts = [{ contact: `username:ines_${names++}` }]
    const one = await place.picked({ kind: 'contacts', pool: [held.account_id], chats: [], contacts }, held)
    const { person_id } = one
    const person = { id: String(person_id), name: 'Ines', username: null, phone, kind: 'person' } as const
    const crossed: string[] = []
    const instance = await place.rows.instance()
    const messages = messageBoundary(place.rows.app, { instance: () => instance, behind: () => {} })
    const cross = messages.cross.bind(messages)
    messages.cross = (message) => {
      crossed.push(message.wanted.row.recipient_id)
      return cross(message)
    }
    const resolve = async () => ({ kind: 'accepted', value: person }) as Outcome<Person>
    return { one, crossed, attempt: () => attempt(one, { resolve, messages }) }
  }
  let names = 0
  const phone = '+49 170 7770001'

  test('gets nothing when the platform returns the number', async () => {
    const { one, attempt } = await contact(phone)
    const { workspace_id } = place.rows.tenant
    await addSuppression(place.rows.app, 'system', { workspace_id, phone })
    await attempt()
    expect(await place.stateOf(one)).toEqual({ status: 'suppressed', operations: 0, used: 0 })
  })

  test('gets nothing when the platform omits the number and our store has it', async () => {
    const { one, attempt } = await contact(null)
    const { account_id, workspace_id } = one.held
    await place.rows.db.run(sql`
      insert into contacts (account_id, provider_id, workspace_id, name, sort_name, phone)
      values (${account_id}, ${one.person_id}, ${workspace_id}, 'Ines', 'ines', ${phone})`)
    await addSuppression(place.rows.app, 'system', { workspace_id, phone })
    await attempt()
    expect(await place.stateOf(one)).toEqual({ status: 'suppressed', operations: 0, used: 0 })
  })

  test('gets the message when another number is on the list', async () => {
    const { one, crossed, attempt } = await contact('+49 170 7770002')
    await attempt()
    expect(crossed).toHaveLength(1)
    expect(await place.stateOf(one)).toEqual({ status: 'completed', operations: 1, used: 1 })
  })
})

describe('a late outcome of a message whose recipient', () => {
  const steps = [{ wait_hours: 24 }]
  const unknown: Outcome<Sent> = { kind: 'unknown', reason: 'timeout' }

  async function end(one: PickedRecipient, ending: Ending): Promise<void> {
    const { id, attempt_token: token } = await place.operation(one)
    const { app, db } = place.rows
    expect(await db.transaction((tx) => settle(tx, app.operations, [{ id, token, ending }]))).toHaveLength(1)
  }
  const released: Ending = { to: 'released', reason: 'never_written' }
  const completed: Ending = {
    to: 'completed',
    reply: { message_id: '7', timestamp: new Date().toISOString() },
  }

  /** The outcome is unknown, and an operator has recorded that it was not sent. */
  async function notedNotSent(): Promise<PickedRecipient> {
    const one = await place.picked({ steps })
    await attempt(one, { send: async () => unknown })
    const { id } = await place.operation(one)
    const { app, db } = place.rows
    await db.transaction((tx) => closeByPerson(tx, app.operations, { id, closed_as: 'not_sent' }))
    expect(await place.stateOf(one)).toMatchObject({ status: 'failed' })
    return one
  }

  test('failed because an operator said so, and it was not sent: it stays failed', async () => {
    const one = await notedNotSent()
    await end(one, released)
    expect(await place.stateOf(one)).toMatchObject({ status: 'failed' })
  })

  test('failed because an operator said so, and it was sent: it is completed, and nothing follows', async () => {
    const one = await notedNotSent()
    await end(one, completed)
    expect(await place.stateOf(one)).toMatchObject({ status: 'completed' })
  })

  test('became final as unknown, and it was sent: it is completed, and nothing follows', async () => {
    const one = await place.picked({ steps })
    await attempt(one, { send: async () => unknown })
    await place.rows.db.run(sql`
      update campaign_recipients set status = 'ambiguous', next_action_at = null, ended_at = domain_now()
      where campaign_id = ${one.campaign_id}`)
    await end(one, completed)
    expect(await place.stateOf(one)).toMatchObject({ status: 'completed' })
  })

  test('has got the next message since, after an operator said so: it stays as it is', async () => {
    const one = await place.picked({ steps: [...steps, ...steps] })
    await attempt(one, { send: async () => unknown })
    const { app, db } = place.rows
    const first = await place.operation(one)
    await db.transaction((tx) => closeByPerson(tx, app.operations, { id: first.id, closed_as: 'sent' }))
    await db.run(sql`
      update campaign_recipients set last_sent_at = last_sent_at - interval '100 days',
        next_action_at = domain_now() - interval '1 minute' where campaign_id = ${one.campaign_id}`)
    await place.rows.host(one.held, sql`next_campaign_at = null`)
    await attempt(one)
    const recipient = () =>
      db.one(sql`
        select status, step, last_message_id::text, last_sent_at, next_action_at from campaign_recipients
        where campaign_id = ${one.campaign_id}`)
    const before = await recipient()
    expect(before).toMatchObject({ status: 'waiting', step: 2 })
    const { id, attempt_token: token } = first
    await db.transaction((tx) => settle(tx, app.operations, [{ id, token, ending: completed }]))
    expect(await recipient()).toEqual(before)
  })

  test('is in a cancelled campaign, and it is unknown: it is final immediately', async () => {
    const one = await place.picked({ steps })
    const send = async () => {
      await place.control(one.campaign_id, 'cancel')
      return unknown
    }
    await attempt(one, { send })
    expect(await place.stateOf(one)).toMatchObject({ status: 'ambiguous' })
  })

  test('is in a cancelled campaign, and it was not sent: it ends, because nobody would pick it again', async () => {
    const one = await place.picked({ steps })
    const send = async (): Promise<Outcome<Sent>> => {
      await place.control(one.campaign_id, 'cancel')
      return { kind: 'not_written', reason: 'no connection' }
    }
    await attempt(one, { send })
    expect(await place.stateOf(one)).toMatchObject({ status: 'cancelled' })
  })
})

test('a crossing whose answer is lost takes back its own attempt, and none that another worker has made since', async () => {
  const [own, other] = [await place.picked(), await place.picked()]
  const boundary = await place.boundary()
  const losing = (token?: string): MessageBoundary =>
    ({
      cross: async (wanted: Parameters<MessageBoundary['cross']>[0]) => {
        const crossed = await boundary.cross(wanted)
        expect(crossed.status).toBe('crossed')
        return { status: 'lost', id: wanted.id, token: token ?? crossed.token }
      },
    }) as unknown as MessageBoundary
  const send = () => Promise.reject(new Error('Nothing is sent.'))
  await attempt(own, { messages: losing(), send })
  expect(await place.stateOf(own)).toEqual({ status: 'queued', operations: 1, used: 0 })
  await attempt(other, { messages: losing(newId()), send })
  expect(await place.stateOf(other)).toEqual({ status: 'submitting', operations: 1, used: 1 })
})

test('a person whose username the platform writes in capitals is on the list under it', async () => {
  const one = await place.picked()
  const { app, db, tenant } = place.rows
  await db.run(sql`
    update campaign_recipients set username = 'LISTED_Name' where campaign_id = ${one.campaign_id}`)
  await addSuppression(app, 'system', { workspace_id: tenant.workspace_id, username: 'Listed_name' })
  await attempt(one)
  expect(await place.stateOf(one)).toEqual({ status: 'suppressed', operations: 0, used: 0 })
})

describe('a look-up', () => {
  const contacts = [{ contact: 'username:nobody' }]

  async function contact(): Promise<PickedRecipient> {
    const held = await place.rows.account()
    return place.picked({ kind: 'contacts', pool: [held.account_id], chats: [], contacts }, held)
  }

  test('is not made of somebody on the list, nor is the platform asked about them', async () => {
    const held = await place.rows.account()
    const listed = [{ contact: 'username:on_the_list' }]
    const one = await place.picked(
      { kind: 'contacts', pool: [held.account_id], chats: [], contacts: listed },
      held,
    )
    const { app, db, tenant } = place.rows
    const phone = '+491705559191'
    await addSuppression(app, 'system', { workspace_id: tenant.workspace_id, phone })
    // Only now is the listed number known to be of the person who has the username.
    await learnPeople(db, held, [
      { id: '5559191', name: 'Nia', username: 'on_the_list', phone, kind: 'person' },
    ])
    let asked = 0
    const nobody = async () => {
      asked++
      return { kind: 'not_written', reason: 'nobody is asked about' } as const
    }
    await attempt(one, { askPerson: nobody, resolve: nobody })
    expect(asked).toBe(0)
    expect(await place.stateOf(one)).toEqual({ status: 'suppressed', operations: 0, used: 0 })
  })

  test('is not made of a number on the list, however the contact spells it', async () => {
    const held = await place.rows.account()
    const { app, tenant } = place.rows
    await addSuppression(app, 'system', { workspace_id: tenant.workspace_id, phone: '+49 170 5559292' })
    const spelled = [{ contact: 'phone:4901705559292' }]
    const one = await place.picked(
      { kind: 'contacts', pool: [held.account_id], chats: [], contacts: spelled },
      held,
    )
    let asked = 0
    const resolve = async () => {
      asked++
      return { kind: 'not_written', reason: 'nobody is looked up' } as const
    }
    await attempt(one, { resolve })
    expect(asked).toBe(0)
    expect(await place.stateOf(one)).toEqual({ status: 'suppressed', operations: 0, used: 0 })
  })

  test('is not needed for a number: a flood wait when the platform is asked about it holds look-ups, and the contact stays due', async () => {
    const held = await place.rows.account()
    const numbered = [{ contact: 'platform_id:5559393' }]
    const one = await place.picked(
      { kind: 'contacts', pool: [held.account_id], chats: [], contacts: numbered },
      held,
    )
    await attempt(one, {
      askPerson: async () => ({ kind: 'flood_wait', retry_after_seconds: 600, stops: 'reading' }),
    })
    expect(await findFloodWait(place.rows.db, one.held.account_id, 'lookups')).toBeGreaterThan(500)
    expect(await place.stateOf(one)).toEqual({ status: 'queued', operations: 0, used: 0 })
  })

  test('that gets a flood wait holds the account that long, and the contact stays due', async () => {
    const one = await contact()
    await attempt(one, {
      resolve: async () => ({ kind: 'flood_wait', retry_after_seconds: 600, stops: 'lookups' }),
    })
    expect(await findFloodWait(place.rows.db, one.held.account_id, 'lookups')).toBeGreaterThan(500)
    expect(await place.stateOf(one)).toEqual({ status: 'queued', operations: 0, used: 0 })
  })

  test('is not made once the account has had all of a minute, and the contact stays due', async () => {
    const one = await contact()
    const { app } = place.rows
    const limit = app.config.start_chat_minute
    for (let n = 0; n < limit; n++)
      await app.limits.take(`lookup:${one.held.account_id}`, { limit, seconds: 60 })
    let asked = 0
    const resolve = async (): Promise<Outcome<Person>> => {
      asked++
      return { kind: 'refused', reason: 'username_not_found' }
    }
    const result = await attempt(one, { resolve })
    expect(asked).toBe(0)
    const lookUpsMs = typeof result === 'string' ? 0 : result.lookUpsMs
    expect(lookUpsMs).toBeGreaterThan(0)
    expect(lookUpsMs).toBeLessThanOrEqual(60_000)
    expect(await place.stateOf(one)).toEqual({ status: 'queued', operations: 0, used: 0 })
  })

  test.each(['needs_login', 'restricted'] as const)(
    'that fails because the account is %s marks the account, and the contact stays due',
    async (reason) => {
      const one = await contact()
      await attempt(one, { resolve: async () => ({ kind: 'refused', reason }) })
      expect(await place.stateOf(one)).toEqual({ status: 'queued', operations: 0, used: 0 })
      const { status } = await place.rows.db.one<{ status: string }>(sql`
        select status from accounts where id = ${one.held.account_id}`)
      expect(status).toBe(reason === 'needs_login' ? 'NEEDS_LOGIN' : 'RESTRICTED')
    },
  )

  test('that finds no one ends the contact as it was picked, and not one that has changed since', async () => {
    const nobody: Outcome<Person> = { kind: 'refused', reason: 'username_not_found' }
    const [one, changed] = [await contact(), await contact()]
    await attempt(one, { resolve: async () => nobody })
    expect(await place.stateOf(one)).toMatchObject({ status: 'failed' })
    const resolve = async () => {
      await place.rows.db.run(sql`
        update campaign_recipients set name = 'Other' where campaign_id = ${changed.campaign_id}`)
      return nobody
    }
    await attempt(changed, { resolve })
    expect(await place.stateOf(changed)).toMatchObject({ status: 'queued' })
  })

  test('that finds somebody ties the contact as it was picked, and not one that has changed since', async () => {
    const changed = await contact()
    const person: Person = { id: '8123', name: 'Ines', username: null, phone: null, kind: 'person' }
    const resolve = async (): Promise<Outcome<Person>> => {
      await place.rows.db.run(sql`
        update campaign_recipients set name = 'Other' where campaign_id = ${changed.campaign_id}`)
      return { kind: 'accepted', value: person }
    }
    await attempt(changed, { resolve })
    expect(await place.stateOf(changed)).toMatchObject({ status: 'queued' })
    const { tied } = await place.rows.db.one<{ tied: boolean }>(sql`
      select person_id is not null as tied from campaign_recipients where campaign_id = ${changed.campaign_id}`)
    expect(tied).toBe(false)
  })
})
