/** People who have several names: they get one message, and none once any of their names is on the suppression list. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type CampaignPlace, openCampaigns } from '../../../../test/harness/campaigns.ts'
import { sql } from '../../../db/sql.ts'
import { setAccountEnabled } from '../../accounts/accounts.ts'
import { learnPeople } from '../../people/people.ts'
import { addSuppression, findSuppressed } from '../../suppressions/suppressions.ts'

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

interface Stranger {
  readonly person_id: number
  readonly username: string
  readonly phone: string
}

/** A person whom no account knows yet. The number is in Berlin, so that a zero behind 49 is not part of it. */
function stranger(): Stranger {
  const username = `known_${named++}`
  const phone = `4930${String(5_550_000 + named)}`
  const { person_id } = place.work.sandbox.world.addPerson({
    name: `Name ${named}`,
    username,
    phone: `+${phone}`,
  })
  return { person_id, username, phone }
}

const suppress = (given: { phone?: string; username?: string; platform_id?: string }) =>
  addSuppression(place.app, 'cli:ana', { workspace_id: place.tenant.workspace_id, ...given })

/** Without the trigger that ends recipients, as when the entry commits while they cross. */
async function suppressUnseen(given: { phone?: string; username?: string }): Promise<void> {
  await place.db.run(sql`alter table suppressions disable trigger suppressions_end_recipients`)
  await suppress(given)
  await place.db.run(sql`alter table suppressions enable trigger suppressions_end_recipients`)
}

/** Everyone by username and by phone, in an order that the seed chooses. */
function shuffled(people: readonly Stranger[], seed: number) {
  let state = seed
  const random = () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state
  }
  return people
    .flatMap(({ username, phone }) => [`username:${username}`, `phone:${phone}`])
    .map((contact) => ({ contact, at: random() }))
    .toSorted((one, other) => one.at - other.at)
}

describe('a person who appears twice in one campaign', () => {
  const seeds = Number(process.env.TEST_SEEDS ?? 1)
  test.each([2, 6, 20])('gets one message, whichever of %i accounts finds them', async (accounts) => {
    const pool = await Promise.all(Array.from({ length: accounts }, () => place.account()))
    for (let seed = 1; seed <= seeds; seed++) {
      const people = Array.from({ length: 30 }, () => stranger())
      const contacts = shuffled(people, seed)
      const before = place.sent().length
      const id = await place.campaign({ kind: 'contacts', pool, contacts, quota: 200 })
      // A separate day each, so that no seed uses another one's quota.
      await place.advance(24 * hour)
      expect(await place.status(id)).toBe('completed')
      const sent = place.sent().slice(before)
      expect(new Set(sent.map(({ person }) => person)).size, `seed ${seed}`).toBe(30)
      expect(sent, `seed ${seed}`).toHaveLength(30)
      const ends = (await place.recipients(id)).map(({ status, reason }) => `${status} ${reason}`)
      expect(ends.filter((end) => end === 'failed duplicate')).toHaveLength(30)
    }
  })
})

/** Both names of a person stand next to each other, so that two accounts of a batch find them. */
test('a person who appears twice in a row gets one message, though two accounts find them in one batch', async () => {
  const pool = await Promise.all(Array.from({ length: 6 }, () => place.account()))
  const contacts = Array.from({ length: 30 }, stranger).flatMap(({ username, phone }) => [
    { contact: `username:${username}` },
    { contact: `phone:${phone}` },
  ])
  const id = await place.campaign({ kind: 'contacts', pool, contacts, quota: 200 })
  await place.advance(24 * hour)
  expect(await place.status(id)).toBe('completed')
  const people = place.sent().map(({ person }) => person)
  expect([people.length, new Set(people).size]).toEqual([30, 30])
})

describe('a contact that a look-up found', () => {
  /** It was found, and a flood wait released the message. */
  async function released(): Promise<{ person: Stranger; id: string; account_id: string }> {
    const account_id = await place.account()
    const person = stranger()
    place.work.fault({ on: 'send', fault: 'flood_wait', seconds: 600, account_id })
    const contacts = [{ contact: `username:${person.username}` }]
    const id = await place.campaign({ kind: 'contacts', pool: [account_id], contacts })
    await place.advance(60)
    expect(await place.recipients(id)).toMatchObject([{ status: 'queued', account_id }])
    return { person, id, account_id }
  }
  test('is tied to its person, keeps the name that the platform told apart, and shows no phone number', async () => {
    const { person, id } = await released()
    const tied = () =>
      place.db.rows(sql`
        select p.number::text, r.name, r.told_name, r.username from campaign_recipients r join people p on p.id = r.person_id
        where r.campaign_id = ${id}`)
    const told = {
      number: String(person.person_id),
      name: null,
      told_name: expect.stringMatching(/^Name /),
      username: person.username,
    }
    expect(await tied()).toEqual([told])
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['completed'])
    expect(await tied()).toEqual([told])
    const answer = await place.work.service.get(`/campaigns/${id}`, { key: place.tenant.key })
    expect(JSON.stringify(answer.body)).not.toContain(person.phone)
  })

  test.each(['phone', 'username', 'platform_id'] as const)(
    'ends immediately when the %s is suppressed',
    async (kind) => {
      const { person, id } = await released()
      const { phone, username, person_id } = person
      await suppress({ [kind]: { phone: `+${phone}`, username, platform_id: String(person_id) }[kind] })
      expect(await place.statuses(id)).toEqual(['suppressed'])
      await place.advance(hour)
      expect(place.sent()).toEqual([])
    },
  )

  test('gets no message when the phone is suppressed at the moment of crossing', async () => {
    const { person, id } = await released()
    await suppressUnseen({ phone: `+${person.phone}` })
    await place.advance(hour)
    expect([await place.statuses(id), place.sent()]).toEqual([['suppressed'], []])
  })

  test('gets no follow-up and no retry when it is suppressed while the message is in flight', async () => {
    const account_id = await place.account()
    const person = stranger()
    const contacts = [{ contact: `username:${person.username}` }]
    const steps = [{ wait_hours: 1 }]
    const id = await place.campaign({ kind: 'contacts', pool: [account_id], contacts, steps })
    await place.advance(60)
    expect(await place.statuses(id)).toEqual(['waiting'])
    await suppressUnseen({ phone: `+${person.phone}` })
    await place.advance(2 * hour)
    expect([await place.statuses(id), place.sent().length]).toEqual([['suppressed'], 1])
  })

  test('keeps its names when another account of the pool may take it', async () => {
    const { person, id, account_id } = await released()
    await setAccountEnabled(place.app, 'system', { id: account_id, enabled: false })
    const other = await place.account()
    await place.db.run(sql`
      insert into campaign_accounts (campaign_id, account_id, workspace_id, pool)
      values (${id}, ${other}, ${place.tenant.workspace_id}, true)`)
    await place.db.run(
      sql`update account_hosts set flood_until = domain_now() + interval '1 hour' where account_id = ${other}`,
    )
    await place.until('it is free', async () => {
      await place.advance(1)
      return (await place.recipients(id))[0]?.account_id === null
    })
    await suppress({ phone: `+${person.phone}` })
    expect(await place.statuses(id)).toEqual(['suppressed'])
  })

  test('is looked up again when only the chat is known', async () => {
    const account_id = await place.account()
    const [listed, free, moved, former] = [stranger(), stranger(), stranger(), stranger()]
    await suppressUnseen({ phone: `+${listed.phone}` })
    const contacts = [listed, free, moved].map(({ username }) => ({
      contact: `username:${username}`,
      account_id,
    }))
    const id = await place.campaign({ kind: 'contacts', pool: [account_id], contacts })
    // A journal restores a recipient like this: the chat, and nothing else about the person.
    const chats = [listed.person_id, free.person_id, former.person_id]
    for (const [at, chat] of chats.entries()) {
      await place.db.run(sql`
        update campaign_recipients set chat_id = ${chat} where campaign_id = ${id} and position = ${at + 1}`)
    }
    await place.advance(hour)
    expect((await place.recipients(id)).map(({ status, reason }) => [status, reason])).toEqual([
      ['suppressed', 'suppressed'],
      ['completed', null],
      // The name belongs to another person by now.
      ['failed', 'name_changed'],
    ])
    expect(place.sent().map(({ person }) => person)).toEqual([free.person_id])
  })
})

test.each(['no account', 'another account'])(
  'a follow-up to a person whose names %s knows is not sent before the account has asked',
  async (who) => {
    const [a, b] = [await place.account(), await place.account()]
    const person = stranger()
    const contacts = [{ contact: `username:${person.username}` }]
    const id = await place.campaign({ kind: 'contacts', pool: [a], contacts, steps: [{ wait_hours: 1 }] })
    await place.advance(60)
    expect(await place.statuses(id)).toEqual(['waiting'])
    // As a journal puts it back: the chat, and nothing of what the account knew about the person.
    await place.db.run(
      sql`delete from contacts where account_id = ${a} and provider_id = ${person.person_id}`,
    )
    await place.db.run(sql`delete from person_names where account_id = ${a}`)
    const learns = (account_id: string, { person_id, username }: Stranger) =>
      learnPeople(place.db, { workspace_id: place.tenant.workspace_id, account_id }, [
        { id: String(person_id), name: 'Ines', username, phone: null, kind: 'person' },
      ])
    await learns(a, stranger())
    await place.people(a, 1)
    if (who === 'another account') await learns(b, person)
    await suppressUnseen({ phone: `+${person.phone}` })
    await place.advance(2 * hour)
    expect([await place.statuses(id), place.sent().length]).toEqual([['suppressed'], 1])
  },
)

describe('a phone number on the list', () => {
  test.each([
    ['+49 0170 5550101', '+49 170 5550101', true],
    ['+49 170 5550102', '+49 0170 5550102', true],
    ['+49 0170 5550103', '+49 (0)170 5550103', true],
    ['+380 067 1234567', '+380 67 1234567', true],
    ['+1 0212 5550104', '+1 212 5550104', true],
    ['+49 00170 555010', '+49 170 555010', false],
    // Berlin's 030 keeps its 30.
    ['+49 30 5550105', '+49 3 5550105', false],
    ['+39 06 5550106', '+39 6 5550106', false],
    ['+225 01 5550107', '+225 1 5550107', false],
    ['+242 06 5550108', '+242 6 5550108', false],
  ])('%s is the same as %s: %s', async (listed, asked, same) => {
    const key = { workspace_id: place.tenant.workspace_id, account_id: await place.account() }
    await suppress({ phone: listed })
    expect(await findSuppressed(place.db, key, { phone: asked })).toBe(same)
    const [one, other] = await Promise.all(
      [listed, asked].map((phone) =>
        place.db.one<{ digits: string }>(sql`select phone_digits(${phone}::text) as digits`),
      ),
    )
    expect(one?.digits === other?.digits).toBe(same)
  })

  test('matches however the contact was given, and the look-up uses the number as given', async () => {
    const account_id = await place.account()
    const { person_id } = place.work.sandbox.world.addPerson({ name: 'As given', phone: '+4901705550109' })
    const contacts = [{ contact: 'phone:4901705550109' }]
    const id = await place.campaign({ kind: 'contacts', pool: [account_id], contacts })
    const other = await place.campaign({ kind: 'contacts', pool: [account_id], contacts })
    await place.advance(60)
    expect(place.sent().map(({ person }) => person)).toEqual([person_id, person_id])
    expect([await place.status(id), await place.status(other)]).toEqual(['completed', 'completed'])
    await place.work.service.shut('campaigns')
    const [third, fourth] = [
      await place.campaign({ kind: 'contacts', pool: [account_id], contacts }),
      await place.campaign({ kind: 'contacts', pool: [account_id], contacts }),
    ]
    await suppress({ phone: '+49 170 5550109' })
    expect([await place.statuses(third), await place.statuses(fourth)]).toEqual([
      ['suppressed'],
      ['suppressed'],
    ])
    await place.work.service.open('campaigns')
    const fifth = await place.campaign({ kind: 'contacts', pool: [account_id], contacts })
    await place.advance(60)
    expect([await place.statuses(fifth), place.sent().length]).toEqual([['suppressed'], 2])
  })
})
