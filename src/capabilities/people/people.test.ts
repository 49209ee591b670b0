/** One person, whichever account writes to them and whatever they are called today. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type CampaignPlace, openCampaigns } from '../../../test/harness/campaigns.ts'
import { sql } from '../../db/sql.ts'
import { addSuppression, findSuppressed, removeSuppression } from '../suppressions/suppressions.ts'
import { readContacts } from './loops.ts'
import { learnPeople } from './people.ts'

let place: CampaignPlace
beforeAll(async () => {
  place = await openCampaigns({ PARLEY_PACING_SECONDS: '0' })
})
beforeEach(() => place.fresh())
afterEach(async () => {
  expect(await place.judge()).toEqual([])
})
afterAll(() => place.close())

const hour = 3_600
let made = 0

interface Given {
  readonly phone_visible_to?: readonly string[]
}

function stranger(given: Given = {}) {
  const username = `person_${made++}`
  const phone = `4930${String(6_660_000 + made)}`
  const { person_id } = place.work.sandbox.world.addPerson({
    name: 'Mara',
    username,
    phone: `+${phone}`,
    ...given,
  })
  return { person_id, username, phone }
}

/** The person has written to the account, which stores them as a contact. */
async function meets(account_id: string, person_id: number): Promise<void> {
  const before = await countMessages(account_id)
  place.work.write(account_id, person_id, 'Hello, who is this?')
  await place.until('the message is stored', async () => (await countMessages(account_id)) > before)
}

async function countMessages(account_id: string): Promise<number> {
  const { count } = await place.db.one<{ count: number }>(sql`
    select count(*)::int as count from messages where account_id = ${account_id}`)
  return count
}

async function renames(
  person_id: number,
  change: { username?: string | null; phone?: string | null },
): Promise<void> {
  place.work.sandbox.world.changePerson(person_id, change)
}

const suppress = (given: { phone?: string; username?: string; platform_id?: string }) =>
  addSuppression(place.app, 'cli:ana', { workspace_id: place.tenant.workspace_id, ...given })

const startChat = (account_id: string, identifier: string) =>
  place.work.service.call('POST', '/chats/start', {
    key: place.tenant.key,
    headers: { 'idempotency-key': `start-${made++}` },
    body: { account_id, identifier },
  })

async function namesOf(person_id: number) {
  const rows = await place.db.rows<{ kind: string; value: string; ended: boolean }>(sql`
    select distinct n.kind, n.value, n.until is not null as ended from people p join person_names n on n.person_id = p.id
    where p.workspace_id = ${place.tenant.workspace_id} and p.number = ${person_id} order by 1, 2`)
  return rows.map(({ kind, value, ended }) => `${kind}:${value}${ended ? ' ended' : ''}`)
}

describe('a phone number on the list that only one account can see', () => {
  async function place2() {
    const [a, b] = [await place.account(), await place.account()]
    const person = stranger({ phone_visible_to: [a] })
    await meets(a, person.person_id)
    await suppress({ phone: person.phone })
    return { a, b, person }
  }

  test('stops a campaign of contacts by the other account', async () => {
    const { b, person } = await place2()
    const contacts = [{ contact: `username:${person.username}` }]
    const id = await place.campaign({ kind: 'contacts', pool: [b], contacts })
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['suppressed'])
    expect(place.sent()).toEqual([])
  })

  test('stops a campaign of chats by the other account', async () => {
    const { b, person } = await place2()
    await meets(b, person.person_id)
    const id = await place.campaign({ chats: [{ account_id: b, person_id: person.person_id }] })
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['suppressed'])
    expect(place.sent()).toEqual([])
  })

  test('409 for POST /chats/start by the other account', async () => {
    const { b, person } = await place2()
    const { status, body } = await startChat(b, person.username)
    expect([status, body.code]).toEqual([409, 'identity_suppressed'])
  })

  test('ends what waits for the person in the other account', async () => {
    const [a, b] = [await place.account(), await place.account()]
    const person = stranger({ phone_visible_to: [a] })
    await meets(a, person.person_id)
    await meets(b, person.person_id)
    const steps = [{ wait_hours: 24, variants: ['Still there?'] }]
    const id = await place.campaign({ chats: [{ account_id: b, person_id: person.person_id }], steps })
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['waiting'])
    await suppress({ phone: person.phone })
    expect(await place.statuses(id)).toEqual(['suppressed'])
  })
})

describe('a person on the list under a username', () => {
  test('stays on it after a rename, and the new owner of the name is on it as well', async () => {
    const account_id = await place.account()
    const key = { workspace_id: place.tenant.workspace_id, account_id }
    const [person, other] = [stranger(), stranger()]
    await meets(account_id, person.person_id)
    await meets(account_id, other.person_id)
    await suppress({ username: person.username })
    const isListed = ({ person_id }: { person_id: number }) =>
      findSuppressed(place.db, key, { id: String(person_id) })
    expect([await isListed(person), await isListed(other)]).toEqual([true, false])
    await renames(person.person_id, { username: `${person.username}_new` })
    await place.until('the rename is stored', async () => (await namesOf(person.person_id)).length === 3)
    expect([await isListed(person), await isListed(other)]).toEqual([true, false])
    await renames(other.person_id, { username: person.username })
    await place.until('so is the other', async () => (await namesOf(other.person_id)).length === 3)
    expect([await isListed(person), await isListed(other)]).toEqual([true, true])
    const chats = [{ account_id, person_id: person.person_id }]
    const id = await place.campaign({ chats })
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['suppressed'])
    await removeSuppression(place.app, 'cli:ana', { ...key, username: person.username })
    expect([await isListed(person), await isListed(other)]).toEqual([false, false])
  })

  test('is not tied to a name that they had given up before it was listed', async () => {
    const account_id = await place.account()
    const key = { workspace_id: place.tenant.workspace_id, account_id }
    const person = stranger()
    await meets(account_id, person.person_id)
    await renames(person.person_id, { username: `${person.username}_new` })
    await place.until('the rename is stored', async () => (await namesOf(person.person_id)).length === 3)
    await place.advance(60)
    await suppress({ username: person.username })
    expect(await findSuppressed(place.db, key, { id: String(person.person_id) })).toBe(false)
    expect(await findSuppressed(place.db, key, { username: person.username })).toBe(true)
  })
})

describe('names', () => {
  test('that two people swap end for the one and begin for the other', async () => {
    const account_id = await place.account()
    const [one, other] = [stranger(), stranger()]
    await meets(account_id, one.person_id)
    await meets(account_id, other.person_id)
    const { world } = place.work.sandbox
    world.changePerson(one.person_id, { username: other.username, phone: `+${other.phone}` })
    world.changePerson(other.person_id, { username: one.username, phone: `+${one.phone}` })
    const swapped = (was: typeof one, is: typeof one) =>
      [
        `phone:${was.phone} ended`,
        `phone:${is.phone}`,
        `username:${was.username} ended`,
        `username:${is.username}`,
      ].toSorted()
    await place.until('both are stored', async () => {
      const [first, second] = [await namesOf(one.person_id), await namesOf(other.person_id)]
      return (
        first.length === 4 &&
        second.length === 4 &&
        second.filter((name) => name.endsWith('ended')).length === 2
      )
    })
    expect((await namesOf(one.person_id)).toSorted()).toEqual(swapped(one, other))
    expect((await namesOf(other.person_id)).toSorted()).toEqual(swapped(other, one))
  })

  test('that two accounts see change hands at the same time do not lock each other out', async () => {
    const accounts = [await place.account(), await place.account()]
    const { workspace_id } = place.tenant
    const people = Array.from({ length: 20 }, stranger)
    const seen = (shift: number) =>
      people.map(({ person_id }, at) => {
        const next = people[(at + shift) % people.length] as (typeof people)[number]
        return {
          id: String(person_id),
          name: '',
          username: next.username,
          phone: next.phone,
          kind: 'person',
        } as const
      })
    for (let round = 0; round < 10; round++) {
      await Promise.all(
        accounts.map((account_id, at) =>
          learnPeople(
            place.db,
            { workspace_id, account_id },
            at === 0 ? seen(round) : seen(round + 1).reverse(),
          ),
        ),
      )
    }
    const { current } = await place.db.one<{ current: number }>(sql`
      select count(distinct (n.kind, n.value))::int as current from person_names n
      where n.workspace_id = ${workspace_id} and n.until is null`)
    expect(current).toBe(40)
  })

  test('of contacts from before are read once, end no other name, and count from the start', async () => {
    const [a, b] = [await place.account(), await place.account()]
    const [person, later] = [stranger({ phone_visible_to: [a] }), stranger()]
    await meets(a, person.person_id)
    await meets(b, later.person_id)
    // As an older release left it: contacts without people, and one whose name another person has by now.
    await place.db.run(sql`delete from person_names where workspace_id = ${place.tenant.workspace_id}`)
    await place.db.run(sql`delete from people where workspace_id = ${place.tenant.workspace_id}`)
    await place.db.run(
      sql`update people_backfill set done_at = null, after_account_id = '', after_number = 0`,
    )
    const taken = {
      id: String(later.person_id),
      name: '',
      username: person.username,
      phone: null,
      kind: 'person',
    } as const
    await learnPeople(place.db, { workspace_id: place.tenant.workspace_id, account_id: b }, [taken])
    const isListed = (account_id: string) =>
      findSuppressed(
        place.db,
        { workspace_id: place.tenant.workspace_id, account_id },
        { id: String(person.person_id) },
      )
    await suppress({ phone: person.phone })
    // Until its contact was read, the list asks about the contacts of every account.
    expect([await isListed(a), await isListed(b)]).toEqual([true, true])
    const { status, body } = await startChat(b, String(person.person_id))
    expect([status, body.code]).toEqual([409, 'identity_suppressed'])
    while (await readContacts(place.app, 1)) {}
    expect([await isListed(a), await isListed(b)]).toEqual([true, true])
    expect(await namesOf(person.person_id)).toEqual([`phone:${person.phone}`, `username:${person.username}`])
    expect(await namesOf(later.person_id)).toContain(`username:${person.username}`)
    const { done } = await place.db.one<{ done: boolean }>(sql`
      select done_at is not null as done from people_backfill`)
    expect(done).toBe(true)
  })
})

describe('a reply to one account', () => {
  const steps = [{ wait_hours: 24, variants: ['Still there?'] }]

  test('ends the sequence of every other account that has written to the person, and no first message to come', async () => {
    const [a, b] = [await place.account(), await place.account()]
    const person = stranger()
    await meets(a, person.person_id)
    await meets(b, person.person_id)
    const of = (account_id: string) => ({ chats: [{ account_id, person_id: person.person_id }], steps })
    const [first, second] = [await place.campaign(of(a)), await place.campaign(of(b))]
    const tomorrow = new Date(Date.parse('2026-11-02T09:00:00Z') + 30 * 24 * hour * 1_000)
    const later = await place.campaign({ ...of(b), scheduled_at: tomorrow })
    await place.advance(hour)
    expect([await place.statuses(first), await place.statuses(second)]).toEqual([['waiting'], ['waiting']])
    place.work.write(a, person.person_id, 'Yes please, call me')
    await place.until('both have ended', async () => (await place.statuses(second))[0] === 'replied')
    expect(await place.statuses(first)).toEqual(['replied'])
    expect(await place.statuses(later)).toEqual(['queued'])
    const rows = await place.db.rows<{ reply_account_id: string }>(sql`
      select reply_account_id from campaign_recipients where campaign_id = any(${[first, second]}::uuid[])`)
    expect(rows).toEqual([{ reply_account_id: a }, { reply_account_id: a }])
  })

  test('ends nothing in another workspace that has written to the person', async () => {
    const a = await place.account()
    const [person_id = 0] = await place.people(a, 1)
    const id = await place.campaign({ chats: [{ account_id: a, person_id }], steps })
    await place.advance(60)
    expect(await place.statuses(id)).toEqual(['waiting'])
    const { key } = place.tenant
    await place.fresh()
    expect(place.tenant.key).not.toBe(key)
    const b = await place.account()
    place.work.write(b, person_id, 'Yes please, call me')
    await place.work.untilStored(b, 1)
    expect(await place.statuses(id)).toEqual(['waiting'])
  })

  test('ends nothing of a person with the same number on another platform', async () => {
    const [a, b] = [await place.account(), await place.account()]
    const person = stranger()
    await meets(a, person.person_id)
    await meets(b, person.person_id)
    const id = await place.campaign({ chats: [{ account_id: b, person_id: person.person_id }], steps })
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['waiting'])
    await place.db.run(sql`update accounts set platform = 'telegram' where id = ${b}`)
    await meets(a, person.person_id)
    expect(await place.statuses(id)).toEqual(['waiting'])
    await place.db.run(sql`update accounts set platform = 'sandbox' where id = ${b}`)
  })
})
