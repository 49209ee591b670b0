/** A campaign of contacts writes to a person once: the recipient that crosses first takes the person. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type CampaignPlace, openCampaigns } from '../../../../test/harness/campaigns.ts'
import { openPickedRows, type PickedRows } from '../../../../test/harness/picked.ts'
import { hangMs, until } from '../../../../test/harness/process.ts'
import { type Database, sql } from '../../../db/sql.ts'
import { settle } from '../../../ledger/settle.ts'
import { newId } from '../../../lib/ids.ts'
import type { Person } from '../../../platform/port.ts'
import { tieRecipients } from '../../people/loops.ts'
import { adoptOutcomes } from './outcomes.ts'
import { chooseDue, listHeads } from './pick.ts'

const takenIn = (db: Database, campaign_id: string) =>
  db.rows<{ contact: string; number: string }>(sql`
    select r.contact, p.number::text from campaign_people t join campaign_recipients r on r.id = t.recipient_id
    join people p on p.id = t.person_id where t.campaign_id = ${campaign_id} order by r.position`)

describe('two names of one person that cross at once', () => {
  let place: PickedRows
  beforeAll(async () => {
    place = await openPickedRows()
  })
  afterAll(() => place.close())

  /** Two accounts of a pool, each with its own process, that look up one person under two names. */
  async function pair() {
    const helds = [await place.rows.account(), await place.rows.account()]
    const contacts = helds.map(({ account_id }) => ({ contact: `username:${newId()}`, account_id }))
    const pool = helds.map(({ account_id }) => account_id)
    const { campaign_id, person_id } = await place
      .picked({ kind: 'contacts', chats: [], contacts, pool }, helds[0])
      .then((one) => ({ ...one, person_id: 9_000 + one.person_id }))
    const found: Person = { id: String(person_id), name: 'Ines', username: null, phone: null, kind: 'person' }
    const { app, db } = place.rows
    await db.run(
      sql`update campaign_recipients set asked_at = domain_now() where campaign_id = ${campaign_id}`,
    )
    const crossings = []
    for (const held of helds) {
      const heads = await listHeads(app, db, { account_ids: [held.account_id], avoid: [], due: true })
      const row = chooseDue(
        app,
        heads.filter((head) => head.campaign_id === campaign_id),
      )[0]?.row
      if (!row) throw new Error('Nothing is due.')
      const messages = await place.boundary()
      crossings.push(async () => {
        const { status } = await messages.cross({ id: newId(), wanted: { row, found, gapMs: 0 }, held })
        return status
      })
    }
    return { campaign_id, person_id, crossings, helds }
  }

  const endsOf = (campaign_id: string) =>
    place.rows.db.rows(sql`
      select status, reason from campaign_recipients where campaign_id = ${campaign_id} order by status desc`)

  test('from two processes: one message crosses, the other recipient ends as a duplicate', async () => {
    for (let round = 0; round < 5; round++) {
      const { campaign_id, person_id, crossings } = await pair()
      const answers = await Promise.all(crossings.map((cross) => cross()))
      expect(answers.toSorted()).toEqual(['crossed', 'ended'])
      expect(await endsOf(campaign_id)).toEqual([
        { status: 'submitting', reason: null },
        { status: 'failed', reason: 'duplicate' },
      ])
      expect(await takenIn(place.rows.db, campaign_id)).toMatchObject([{ number: String(person_id) }])
    }
  })

  test('one after the other, while nobody knows whether the first message went out: the person is taken', async () => {
    const { campaign_id, person_id, crossings } = await pair()
    const { app, db } = place.rows
    expect(await crossings[0]?.()).toBe('crossed')
    const operation = await db.one<{ id: string; token: string }>(sql`
      select id, attempt_token as token from operations where campaign_id = ${campaign_id}`)
    const ending = { to: 'ambiguous', reason: 'timeout' } as const
    await db.transaction((tx) => settle(tx, app.operations, [{ ...operation, ending }]))
    expect(await takenIn(db, campaign_id)).toMatchObject([{ number: String(person_id) }])
    expect(await crossings[1]?.()).toBe('ended')
    expect(await endsOf(campaign_id)).toEqual([
      { status: 'failed', reason: 'duplicate' },
      { status: 'ambiguous', reason: null },
    ])
  })

  test('while a process of the release before crosses: the key decides, though neither has seen the other', async () => {
    const { campaign_id, person_id, crossings, helds } = await pair()
    const { db } = place.rows
    const answer = await db.transaction(async (tx) => {
      // It knows nothing of people: it writes the chat, and takes no lock that others ask for.
      await tx.run(sql`
        update campaign_recipients set status = 'submitting', chat_id = ${person_id}, next_action_at = null
        where campaign_id = ${campaign_id} and account_id = ${helds[0]?.account_id}`)
      const crossing = crossings[1]?.()
      await until('it waits for the key', hangMs, () =>
        db.maybe(sql`
          select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`),
      )
      return { crossing }
    })
    expect(await answer.crossing).toBe('ended')
    expect(await endsOf(campaign_id)).toMatchObject([{ status: 'submitting' }, { reason: 'duplicate' }])
    expect(await takenIn(db, campaign_id)).toHaveLength(1)
  })
})

describe('the person of a campaign', () => {
  let place: CampaignPlace
  beforeAll(async () => {
    place = await openCampaigns({
      PARLEY_START_CHAT_PER_DAY: '1000',
      PARLEY_START_CHAT_PER_MINUTE: '1000',
      PARLEY_PACING_SECONDS: '0',
    })
  })
  beforeEach(() => place.fresh())
  afterEach(async () => {
    expect(await place.judge()).toEqual([])
  })
  afterAll(() => place.close())

  const hour = 3_600
  let named = 0

  /** A person whom no account knows yet, by username and by phone. */
  function twice() {
    const username = `twice_${named++}`
    const phone = `4930${String(7_770_000 + named)}`
    const { person_id } = place.work.sandbox.world.addPerson({ name: 'Ines', username, phone: `+${phone}` })
    const contacts = [{ contact: `username:${username}` }, { contact: `phone:${phone}` }]
    return { person_id, contacts }
  }

  const ends = async (id: string) =>
    (await place.recipients(id)).map(({ status, reason }) => [status, reason])

  test('is given back when the first message is refused: the other name gets it', async () => {
    const account_id = await place.account()
    const { person_id, contacts } = twice()
    place.work.fault({ on: 'send', fault: 'refuse', account_id, times: 1 })
    const id = await place.campaign({ kind: 'contacts', pool: [account_id], contacts })
    await place.advance(hour)
    expect(await ends(id)).toEqual([
      ['failed', expect.any(String)],
      ['completed', null],
    ])
    expect((await ends(id))[0]?.[1]).not.toBe('duplicate')
    expect(await takenIn(place.db, id)).toEqual([
      { contact: contacts[1]?.contact, number: String(person_id) },
    ])
    expect(place.sent()).toHaveLength(1)
  })

  test('is given back when the first message is released: whichever name crosses next gets it, and the other none', async () => {
    const [a, b] = [await place.account(), await place.account()]
    const { person_id, contacts } = twice()
    const [first, second] = contacts.map(({ contact }, at) => ({
      contact,
      account_id: [a, b][at] as string,
    }))
    place.work.fault({ on: 'send', fault: 'flood_wait', seconds: 6 * hour, account_id: a, times: 1 })
    const later = await place.db.one<{ at: Date }>(sql`select domain_now() + interval '1 hour' as at`)
    const id = await place.campaign({
      kind: 'contacts',
      pool: [a, b],
      contacts: [first, second].flatMap((one) => one ?? []),
    })
    await place.db.run(sql`
      update campaign_recipients set next_action_at = ${later.at.toISOString()}::timestamptz
      where campaign_id = ${id} and account_id = ${b}`)
    await place.advance(60)
    expect(await place.statuses(id)).toEqual(['queued', 'queued'])
    expect(await takenIn(place.db, id)).toEqual([])
    await place.advance(24 * hour)
    expect(await ends(id)).toEqual([
      ['failed', 'duplicate'],
      ['completed', null],
    ])
    expect(place.sent().map(({ person }) => person)).toEqual([person_id])
  })

  test('is kept by a recipient whose message was sent, also when a follow-up is refused', async () => {
    const account_id = await place.account()
    const { contacts } = twice()
    const steps = [{ wait_hours: 1 }]
    const id = await place.campaign({ kind: 'contacts', pool: [account_id], contacts, steps, quota: 1 })
    await place.advance(60)
    place.work.fault({ on: 'send', fault: 'refuse', account_id, times: 1 })
    await place.advance(72 * hour)
    expect((await ends(id)).map(([status]) => status)).toEqual(['failed', 'failed'])
    expect((await ends(id))[1]).toEqual(['failed', 'duplicate'])
    expect([await takenIn(place.db, id), place.sent()]).toMatchObject([
      [{ contact: contacts[0]?.contact }],
      [{}],
    ])
  })

  /** The first name got its message; the database was then restored to before it. */
  async function restored(kept: 'nothing' | 'the row') {
    const account_id = await place.account()
    const { person_id, contacts } = twice()
    const [first = { contact: '' }, second = { contact: '' }] = contacts
    const id = await place.campaign({ kind: 'contacts', pool: [account_id], contacts: [first, second] })
    await place.db.run(sql`
      update campaign_recipients set next_action_at = domain_now() + interval '2 hours'
      where campaign_id = ${id} and contact = ${second.contact}`)
    await place.advance(60)
    expect(await place.statuses(id)).toEqual(['completed', 'queued'])
    const { operation_id } = await place.db.one<{ operation_id: string }>(sql`
      select id as operation_id from operations where campaign_id = ${id}`)
    await place.db.transaction(async (tx) => {
      await tx.run(sql`alter table campaign_recipients disable trigger user`)
      await tx.run(sql`delete from campaign_people where campaign_id = ${id}`)
      await tx.run(sql`update campaign_recipients set person_id = null where campaign_id = ${id}`)
      if (kept === 'nothing') {
        await tx.run(sql`
          update campaign_recipients set status = 'queued', step = 0, chat_id = null, last_sent_at = null,
            last_message_id = null, ended_at = null, next_action_at = domain_now() + interval '4 hours'
          where campaign_id = ${id} and status = 'completed'`)
        await tx.run(sql`
          update campaign_accounts set completed = completed - 1, queued = queued + 1
          where campaign_id = ${id} and account_id = ${account_id}`)
      }
      await tx.run(sql`alter table campaign_recipients enable trigger user`)
    })
    return { id, person_id, operation_id, contact: first.contact }
  }

  test('is taken again when a journal puts the message back', async () => {
    const { id, person_id, operation_id, contact } = await restored('nothing')
    await place.db.transaction((tx) => adoptOutcomes(tx, [operation_id]))
    expect(await takenIn(place.db, id)).toEqual([{ contact, number: String(person_id) }])
    await place.advance(4 * hour)
    expect(await ends(id)).toEqual([
      ['completed', null],
      ['failed', 'duplicate'],
    ])
    expect(place.sent()).toHaveLength(1)
  })

  test('is taken again when a journal puts a message back whose outcome nobody knows', async () => {
    const { id, person_id, operation_id, contact } = await restored('nothing')
    await place.db.transaction(async (tx) => {
      await tx.run(sql`alter table operations disable trigger operations_guard`)
      await tx.run(sql`
        update operations set state = 'ambiguous', reason = 'restored', reply_status = null, reply_body = null,
          proof_message_id = null, proof_at = null, finished_at = domain_now() - interval '8 days'
        where id = ${operation_id}`)
      await tx.run(sql`alter table operations enable trigger operations_guard`)
    })
    await place.db.transaction((tx) => adoptOutcomes(tx, [operation_id]))
    expect(await ends(id)).toMatchObject([
      ['ambiguous', null],
      ['queued', null],
    ])
    expect(await takenIn(place.db, id)).toEqual([{ contact, number: String(person_id) }])
    await place.advance(4 * hour)
    expect(await ends(id)).toEqual([
      ['ambiguous', null],
      ['failed', 'duplicate'],
    ])
    expect(place.sent()).toHaveLength(1)
  })

  test('is not given back by another recipient who never had it', async () => {
    const account_id = await place.account()
    const { person_id, contacts } = twice()
    const id = await place.campaign({ kind: 'contacts', pool: [account_id], contacts })
    await place.db.run(sql`
      update campaign_recipients set next_action_at = domain_now() + interval '2 hours'
      where campaign_id = ${id} and contact = ${contacts[1]?.contact}`)
    await place.advance(60)
    expect(await place.statuses(id)).toEqual(['completed', 'queued'])
    const taken = [{ contact: contacts[0]?.contact, number: String(person_id) }]
    // A journal puts a message to the second name back, of which an operator knows that it was not sent.
    await place.db.run(sql`
      update campaign_recipients r set status = 'submitting', unknown_since = domain_now(), account_id = ${account_id},
        chat_id = ${person_id}, person_id = (select t.person_id from campaign_people t where t.campaign_id = r.campaign_id)
      where campaign_id = ${id} and status = 'queued'`)
    expect(await takenIn(place.db, id)).toEqual(taken)
    await place.db.run(sql`
      update campaign_recipients set status = 'failed', reason = 'noted_not_sent', ended_at = domain_now(), unknown_since = null,
        next_action_at = null where campaign_id = ${id} and status = 'submitting'`)
    expect(await takenIn(place.db, id)).toEqual(taken)
  })

  test.each(['before', 'after'])(
    'of a release that knew no people is found %s the loop has read it',
    async (when) => {
      const { id, person_id, contact } = await restored('the row')
      await place.db.run(sql`update people_backfill set tied_at = null, after_recipient_id = null`)
      if (when === 'after') {
        while (await tieRecipients(place.app, 1)) {}
        expect(await takenIn(place.db, id)).toEqual([{ contact, number: String(person_id) }])
      }
      await place.advance(4 * hour)
      expect(await ends(id)).toEqual([
        ['completed', null],
        ['failed', 'duplicate'],
      ])
      expect(place.sent()).toHaveLength(1)
      while (await tieRecipients(place.app)) {}
    },
  )

  test('of a campaign of chats may be in two accounts', async () => {
    const [a, b] = [await place.account(), await place.account()]
    const [person_id = 0] = await place.people(a, 1)
    place.work.write(b, person_id, 'Hello, who is this?')
    await place.work.untilStored(b, 1)
    const chats = [a, b].map((account_id) => ({ account_id, person_id }))
    const id = await place.campaign({ chats })
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['completed', 'completed'])
    expect(await takenIn(place.db, id)).toEqual([])
  })
})
