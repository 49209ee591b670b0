/** People whose names change while campaigns run: each scene through HTTP, with several accounts. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type CampaignPlace, openCampaigns } from '../../../test/harness/campaigns.ts'
import { moveClock } from '../../db/domain-clock.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { setAccountEnabled } from '../accounts/accounts.ts'
import { storeContacts } from '../contacts/contacts.ts'
import { addSuppression, removeSuppression } from '../suppressions/suppressions.ts'
import { learnPeople } from './people.ts'

let place: CampaignPlace
beforeAll(async () => {
  place = await openCampaigns({ PARLEY_PACING_SECONDS: '0', PARLEY_START_CHAT_PER_MINUTE: '1000' })
})
beforeEach(() => place.fresh())
afterEach(async () => {
  expect(await place.judge()).toEqual([])
})
afterAll(() => place.close())

const hour = 3_600
const perDay = 200
let made = 0

interface Someone {
  readonly person_id: number
  readonly username: string
  /** Digits. */
  readonly phone: string
}

const world = () => place.work.sandbox.world

function someone(given: { readonly phone_visible_to?: readonly string[] } = {}): Someone {
  const username = `scene_${made++}`
  const phone = `4930${String(7_770_000 + made)}`
  const { person_id } = world().addPerson({ name: 'Mara', username, phone: `+${phone}`, ...given })
  return { person_id, username, phone }
}

/** The person has written to the account, which stores them as a contact. */
async function meets(
  account_id: string,
  { person_id }: Someone,
  text = 'Hello, who is this?',
): Promise<void> {
  const count = async () =>
    (
      await place.db.one<{ count: number }>(sql`
        select count(*)::int as count from messages where account_id = ${account_id}`)
    ).count
  const before = await count()
  place.work.write(account_id, person_id, text)
  await place.until('the message is stored', async () => (await count()) > before)
}

/** Until the account has stored that the person has this username. */
async function knows(account_id: string, { person_id }: Someone, username: string): Promise<void> {
  await place.until('the name is stored', async () => {
    const row = await place.db.maybe<{ username: string | null }>(sql`
      select username from contacts where account_id = ${account_id} and provider_id = ${person_id}`)
    return row?.username === username
  })
}

const suppress = (given: { phone?: string; username?: string; platform_id?: string }) =>
  addSuppression(place.app, 'cli:ana', { workspace_id: place.tenant.workspace_id, ...given })
const allow = (given: { phone?: string; username?: string; platform_id?: string }) =>
  removeSuppression(place.app, 'cli:ana', { workspace_id: place.tenant.workspace_id, ...given })

const post = (path: string, body: object) =>
  place.work.service.post(path, {
    key: place.tenant.key,
    headers: { 'idempotency-key': `scene-${made++}` },
    body,
  })

/** POST /campaigns for one contact. */
const create = (account_id: string, identifier: string, scheduled_at?: Date) =>
  post('/campaigns', {
    ...{ account_id, contacts: [{ identifier }], message_text: 'First message', daily_quota_per_account: 50 },
    ...(scheduled_at && { scheduled_at: scheduled_at.toISOString() }),
  })

/** Returns the campaign's id. */
async function write(account_id: string, identifier: string, scheduled_at?: Date): Promise<string> {
  const answer = await create(account_id, identifier, scheduled_at)
  expect(answer.status, answer.body.error).toBe(201)
  return (answer.body.campaign as { id: string }).id
}

async function expectRefused(account_id: string, identifier: string): Promise<void> {
  const started = await post('/chats/start', { account_id, identifier })
  expect([started.status, started.body.code], identifier).toEqual([409, 'identity_suppressed'])
  const created = await create(account_id, identifier)
  expect([created.status, created.body.code], identifier).toEqual([400, 'suppressed_recipient'])
}

async function inHours(hours: number): Promise<Date> {
  const { now } = await place.db.one<{ now: Date }>(sql`select domain_now() as now`)
  return new Date(now.getTime() + hours * hour * 1_000)
}

const reasons = async (id: string) =>
  (await place.recipients(id)).map(({ status, reason }) => [status, reason])
const receivers = () => place.sent().map(({ person }) => person)

describe('two people who swap username and phone', () => {
  async function swapped() {
    const [a, b] = [await place.account(), await place.account()]
    const [one, other] = [someone(), someone()]
    for (const account_id of [a, b]) {
      await meets(account_id, one)
      await meets(account_id, other)
    }
    const swap = async () => {
      world().changePerson(one.person_id, { username: other.username, phone: `+${other.phone}` })
      world().changePerson(other.person_id, { username: one.username, phone: `+${one.phone}` })
      for (const account_id of [a, b]) {
        await knows(account_id, one, other.username)
        await knows(account_id, other, one.username)
      }
    }
    return { a, b, one, other, swap }
  }

  test('get what is meant for their present names', async () => {
    const { a, b, one, other, swap } = await swapped()
    await swap()
    const byName = await write(a, `@${one.username}`)
    const byPhone = await write(b, `+${other.phone}`)
    await place.advance(hour)
    expect([await place.statuses(byName), await place.statuses(byPhone)]).toEqual([
      ['completed'],
      ['completed'],
    ])
    // Two accounts send at the same time: which is first does not matter, who got which does.
    const chatOf = async (id: string) => (await place.recipients(id)).map(({ chat_id }) => Number(chat_id))
    expect([await chatOf(byName), await chatOf(byPhone)]).toEqual([[other.person_id], [one.person_id]])
    expect(receivers().toSorted()).toEqual([one.person_id, other.person_id].toSorted())
  })

  test('are both on the list if one of the names was: the owner of then, and the owner of now', async () => {
    const { a, b, one, other, swap } = await swapped()
    await suppress({ phone: one.phone })
    await place.advance(60)
    await swap()
    await expectRefused(a, `@${one.username}`)
    await expectRefused(b, `@${other.username}`)
    await expectRefused(b, `+${one.phone}`)
    await expectRefused(a, `+${other.phone}`)
    const chats = [one, other].map(({ person_id }) => ({ account_id: b, person_id }))
    const id = await place.campaign({ chats })
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['suppressed', 'suppressed'])
    expect(receivers()).toEqual([])
  })
})

describe('a name that no longer belongs to a person', () => {
  test.each(['a bot', 'a channel'])(
    'but to %s gets nothing, by campaign and by start chat',
    async (taker) => {
      const account_id = await place.account()
      const one = someone()
      await meets(account_id, one)
      if (taker === 'a bot') {
        const bot = world().addPerson({ name: 'Shop', kind: 'bot', username: `shop_${made++}_bot` })
        world().changePerson(bot.person_id, { username: one.username })
      } else {
        world().changePerson(one.person_id, { username: `${one.username}_2` })
        world().addGroup({ account_id, name: 'News', username: one.username, members: [] })
      }
      await place.advance(60)
      const id = await write(account_id, `@${one.username}`)
      await place.advance(hour)
      expect(await reasons(id)).toEqual([['failed', 'identity_ineligible']])
      const started = await post('/chats/start', { account_id, identifier: one.username })
      expect([started.status, started.body.code]).toEqual([409, 'identity_ineligible'])
      expect(receivers()).toEqual([])
    },
  )
})

describe('a person known by phone to A, by username to B and by id to C', () => {
  test.each(['phone', 'username', 'platform_id'] as const)(
    'who is on the list by %s is written to by none, and by all once the entry is removed',
    async (kind) => {
      const [a, b, c] = [await place.account(), await place.account(), await place.account()]
      const one = someone({ phone_visible_to: [a] })
      for (const account_id of [a, b, c]) await meets(account_id, one)
      const entry = { phone: one.phone, username: one.username, platform_id: String(one.person_id) }
      const ways: [string, string][] = [
        [a, `+${one.phone}`],
        [b, `@${one.username}`],
        [c, String(one.person_id)],
      ]
      const soon = await inHours(1)
      const ids: string[] = []
      for (const [account_id, identifier] of ways) ids.push(await write(account_id, identifier, soon))
      await suppress({ [kind]: entry[kind] })
      for (const [account_id, identifier] of ways) await expectRefused(account_id, identifier)
      await place.advance(2 * hour)
      for (const id of ids) expect(await place.statuses(id)).toEqual(['suppressed'])
      expect(receivers()).toEqual([])
      await allow({ [kind]: entry[kind] })
      for (const [account_id, identifier] of ways) {
        const started = await post('/chats/start', { account_id, identifier })
        expect(started.status, identifier).toBe(200)
      }
    },
  )
})

const lookUpsOf = async (account_id: string) => {
  const { count } = await place.db.one<{ count: number }>(sql`
    select coalesce(sum(lookups), 0)::int as count from account_days where account_id = ${account_id}`)
  return count
}

const tiedTo = async (id: string) => {
  const rows = await place.db.rows<{ number: string | null }>(sql`
    select p.number::text from campaign_recipients r left join people p on p.id = r.person_id
    where r.campaign_id = ${id} order by r.position`)
  return rows.map(({ number }) => (number === null ? null : Number(number)))
}

/** The account looked the name up a moment ago, and has no chat with the person. */
const hears = (account_id: string, { person_id, username, phone }: Someone) =>
  learnPeople(place.db, { workspace_id: place.tenant.workspace_id, account_id }, [
    { id: String(person_id), name: 'Mara', username, phone: `+${phone}`, kind: 'person' },
  ])

const changed = [['failed', 'name_changed']]

describe('a recipient is tied to a person', () => {
  test('by its own look-up: a name that changes hands before the crossing ends it', async () => {
    const account_id = await place.account()
    const [one, other] = [someone(), someone()]
    const id = await write(account_id, `@${one.username}`)
    // The campaign's row is held, so that nothing crosses.
    await place.db.transaction(async (tx) => {
      await tx.run(sql`select 1 from campaigns where id = ${id} for update`)
      await place.until('the look-up has tied it', async () => (await tiedTo(id))[0] === one.person_id)
      world().changePerson(other.person_id, { username: one.username })
      await moveClock(place.db, await inHours(2))
      await place.until('it ends', async () => (await place.statuses(id))[0] === 'failed')
    })
    expect(await reasons(id)).toEqual(changed)
    expect(receivers()).toEqual([])
  })

  test('at creation by the name of a person in a chat of the account, who has given it away by then', async () => {
    const account_id = await place.account()
    const [one, other] = [someone(), someone()]
    await meets(account_id, one)
    await place.advance(72 * hour)
    const id = await write(account_id, `@${one.username}`, await inHours(2))
    expect(await tiedTo(id)).toEqual([one.person_id])
    world().changePerson(other.person_id, { username: one.username })
    await place.advance(3 * hour)
    expect(await reasons(id)).toEqual(changed)
    expect(receivers()).toEqual([])
  })

  test('at creation by a name that was learned within the day, and not by an older one', async () => {
    const account_id = await place.account()
    const [one, other] = [someone(), someone()]
    await hears(account_id, one)
    world().changePerson(other.person_id, { username: one.username })
    await place.advance(23 * hour)
    const soon = await write(account_id, `@${one.username}`)
    await place.advance(60)
    expect([await reasons(soon), receivers()]).toEqual([changed, []])
    await hears(account_id, one)
    await place.advance(25 * hour)
    const late = await write(account_id, `@${one.username}`)
    expect(await tiedTo(late)).toEqual([null])
    await place.advance(60)
    expect([await place.statuses(late), receivers()]).toEqual([['completed'], [other.person_id]])
  })

  test('not by an older name of a contact without a chat, of whose renames the platform does not tell', async () => {
    const account_id = await place.account()
    const [one, other] = [someone(), someone()]
    await meets(account_id, someone())
    const { workspace_id } = place.tenant
    const contact = { id: String(one.person_id), name: 'Mara', username: one.username, phone: null } as const
    await place.db.transaction((tx) =>
      storeContacts(tx, { workspace_id, account_id }, [{ ...contact, kind: 'person' }]),
    )
    world().changePerson(other.person_id, { username: one.username })
    await place.advance(72 * hour)
    const id = await write(account_id, `@${one.username}`)
    expect(await tiedTo(id)).toEqual([null])
    await place.advance(60)
    expect([await place.statuses(id), receivers()]).toEqual([['completed'], [other.person_id]])
  })

  test('not by an older name that was seen an hour or more before the chat began', async () => {
    const account_id = await place.account()
    const one = someone()
    await meets(account_id, one)
    await place.advance(72 * hour)
    const tiedIfBegun = async (minutes: number) => {
      await place.db.run(sql`
        update messages m set sent_at = n.last_seen_at + make_interval(mins => ${minutes}) from person_names n
        where m.account_id = ${account_id} and n.account_id = ${account_id} and n.value = ${one.username}`)
      const id = await write(account_id, `@${one.username}`, await inHours(24))
      const [tied] = await tiedTo(id)
      await place.control(id, 'cancel')
      return tied
    }
    expect([await tiedIfBegun(59), await tiedIfBegun(60)]).toEqual([one.person_id, null])
  })

  test.each(['another account', 'an account that misses updates'])(
    'not by what only %s knows of a chat',
    async (whose) => {
      const [a, b] = [await place.account(), await place.account()]
      const one = someone()
      await meets(b, one)
      await place.advance(25 * hour)
      const gap = sql`update account_hosts set gap_since = domain_now() where account_id = ${b}`
      if (whose !== 'another account') await place.db.run(gap)
      const id = await write(whose === 'another account' ? a : b, `@${one.username}`, await inHours(24))
      expect(await tiedTo(id)).toEqual([null])
      await place.control(id, 'cancel')
    },
  )

  test('at creation by the name of a person on its platform, whoever has the name on another', async () => {
    const [account_id, elsewhere] = [await place.account(), await place.account()]
    const [one, other] = [someone(), someone()]
    await hears(account_id, one)
    await place.db.run(sql`update accounts set platform = 'telegram' where id = ${elsewhere}`)
    await hears(elsewhere, { ...other, username: one.username })
    const id = await write(account_id, `@${one.username}`, await inHours(24))
    expect(await tiedTo(id)).toEqual([one.person_id])
    await place.control(id, 'cancel')
    await place.db.run(sql`update accounts set platform = 'sandbox' where id = ${elsewhere}`)
  })

  test('not by a name that two people have as far as is known', async () => {
    const account_id = await place.account()
    const [one, other] = [someone(), someone()]
    await hears(account_id, one)
    await hears(account_id, other)
    await place.db.run(sql`
      update person_names set until = null, value = ${one.username}
      where value = ${other.username} and workspace_id = ${place.tenant.workspace_id}`)
    const id = await write(account_id, `@${one.username}`, await inHours(24))
    expect(await tiedTo(id)).toEqual([null])
    await place.control(id, 'cancel')
  })
})

describe('a first message that was released', () => {
  /** It was looked up, and a flood wait released the message. */
  async function released(account_id: string, { username }: Someone, seconds: number): Promise<string> {
    place.work.fault({ on: 'send', fault: 'flood_wait', seconds, account_id })
    const id = await write(account_id, `@${username}`)
    await place.advance(60)
    expect(await place.recipients(id)).toMatchObject([{ status: 'queued', account_id }])
    return id
  }

  test('is not sent two hours later to somebody who has taken the name', async () => {
    const account_id = await place.account()
    const [one, other] = [someone(), someone()]
    const id = await released(account_id, one, 2 * hour)
    world().changePerson(other.person_id, { username: one.username })
    await place.advance(3 * hour)
    expect([await reasons(id), receivers()]).toEqual([changed, []])
  })

  test('is not sent two hours later to the former owner, whom the account has met', async () => {
    const account_id = await place.account()
    const one = someone()
    const id = await released(account_id, one, 2 * hour)
    await meets(account_id, one)
    world().changePerson(one.person_id, { username: `${one.username}_2` })
    await place.advance(3 * hour)
    expect(receivers()).toEqual([])
    // A known person had the name, so it is asked about once more.
    expect(await place.statuses(id)).toEqual(['queued'])
    await place.advance(24 * hour)
    expect([await reasons(id), receivers()]).toEqual([[['failed', 'username_not_found']], []])
  })

  test('is not sent by B, which takes the contact over from A, to somebody who has taken the name', async () => {
    const [a, b] = [await place.account(), await place.account()]
    const [one, other] = [someone(), someone()]
    // B gets it only once A has given it up.
    await place.db.run(sql`
      update account_hosts set flood_until = domain_now() + interval '10 minutes' where account_id = ${b}`)
    place.work.fault({ on: 'send', fault: 'flood_wait', seconds: 24 * hour, account_id: a })
    const contacts = [{ contact: `username:${one.username}` }]
    const id = await place.campaign({ kind: 'contacts', pool: [a, b], contacts })
    await place.advance(60)
    expect(await place.recipients(id)).toMatchObject([{ status: 'queued', account_id: a }])
    world().changePerson(other.person_id, { username: one.username })
    await setAccountEnabled(place.app, 'system', { id: a, enabled: false })
    await place.until('A has given it up', async () => {
      await place.advance(1)
      return (await place.recipients(id))[0]?.account_id === null
    })
    await place.advance(2 * hour)
    expect([await reasons(id), receivers()]).toEqual([changed, []])
    expect(await lookUpsOf(b)).toBe(1)
  })

  test.each([
    [0.5, 1],
    [2, 2],
  ])('%d hours later takes %d look-ups', async (hours, count) => {
    const account_id = await place.account()
    const one = someone()
    const id = await released(account_id, one, hours * hour)
    await place.advance((hours + 1) * hour)
    expect([await place.statuses(id), receivers()]).toEqual([['completed'], [one.person_id]])
    expect(await lookUpsOf(account_id)).toBe(count)
  })
})

describe('"nobody" for a name that somebody had', () => {
  /** B knows who has the name; A, which writes, has no chat with them. */
  async function unfound(times: number) {
    const [a, b] = [await place.account(), await place.account()]
    const one = someone()
    await meets(b, one)
    world().addFault({ on: 'resolve', fault: 'refuse', account_id: a, times })
    const id = await write(a, `@${one.username}`)
    await place.advance(60)
    return { a, one, id }
  }

  test('puts the first message off until the next day, which every page says', async () => {
    const { one, id } = await unfound(1)
    const { now } = await place.db.one<{ now: Date }>(sql`select domain_now() as now`)
    const tomorrow = new Date(Math.ceil(now.getTime() / 86_400_000) * 86_400_000).toISOString()
    const { key } = place.tenant
    const shown = await place.work.service.get(`/campaigns/${id}`, { key })
    const [recipient] = (shown.body.campaign as { recipients: object[] }).recipients
    expect(recipient).toMatchObject({ status: 'queued', next_action_at: tomorrow, blocked_by: 'waiting' })
    const forecast = await place.work.service.get(`/campaigns/${id}/forecast`, { key })
    expect(forecast.body.timetable).toMatchObject([{ messages: [{ at: tomorrow }] }])
    await place.advance(24 * hour)
    expect([await place.statuses(id), receivers()]).toEqual([['completed'], [one.person_id]])
  })

  test('ends the recipient when it comes again', async () => {
    const { a, id } = await unfound(2)
    expect(await place.statuses(id)).toEqual(['queued'])
    await place.advance(48 * hour)
    expect([await reasons(id), receivers()]).toEqual([[['failed', 'username_not_found']], []])
    expect(await lookUpsOf(a)).toBe(2)
  })
})

describe('the daily look-ups', () => {
  const use = (account_id: string, lookups: number) =>
    place.db.run(sql`
      insert into account_days (account_id, workspace_id, day, lookups)
      values (${account_id}, ${place.tenant.workspace_id}, domain_now()::date, ${lookups})`)

  test('are not used by people whom a chat of the account proves, nor by numbers; the preview says the same', async () => {
    const account_id = await place.account()
    const met = [someone(), someone()]
    for (const one of met) await meets(account_id, one)
    const [numbered, first, second] = [someone(), someone(), someone()]
    // One look-up is left.
    await use(account_id, perDay - 1)
    const contacts = [
      ...met.map(({ username }) => ({ identifier: `@${username}` })),
      { identifier: String(numbered.person_id) },
      ...[first, second].map(({ username }) => ({ identifier: `@${username}` })),
    ]
    const body = { account_id, contacts, message_text: 'First message', daily_quota_per_account: 50 }
    const preview = await post('/campaigns/preview', body)
    const answer = await post('/campaigns', body)
    const { id } = answer.body.campaign as { id: string }
    const shown = await place.work.service.get(`/campaigns/${id}/forecast`, { key: place.tenant.key })
    expect(shown.body.timetable).toEqual(preview.body.timetable)
    await place.advance(60)
    expect(receivers()).toEqual([...met, numbered, first].map(({ person_id }) => person_id))
    expect(await place.recipients(id)).toMatchObject([{}, {}, {}, {}, { status: 'queued' }])
    expect(await lookUpsOf(account_id)).toBe(perDay)
    await place.advance(24 * hour)
    expect(receivers().at(-1)).toBe(second.person_id)
    expect(await lookUpsOf(account_id)).toBe(perDay + 1)
    type Timetable = { messages: { at: string }[] }[]
    const planned = (preview.body.timetable as Timetable).map(({ messages }) => messages[0]?.at.slice(0, 10))
    const rows = await place.db.rows<{ day: string }>(sql`
      select to_char(last_sent_at at time zone 'utc', 'YYYY-MM-DD') as day from campaign_recipients
      where campaign_id = ${id} order by position`)
    expect(planned).toEqual(rows.map(({ day }) => day))
  })

  test('are waited for when the person known does not show the number', async () => {
    const [a, b] = [await place.account(), await place.account()]
    const one = someone({ phone_visible_to: [b] })
    await meets(a, one)
    await meets(b, one)
    await use(a, perDay)
    const id = await write(a, `+${one.phone}`)
    await place.advance(60)
    expect(receivers()).toEqual([])
    const shown = await place.work.service.get(`/campaigns/${id}`, { key: place.tenant.key })
    expect(shown.body.campaign).toMatchObject({ recipients: [{ status: 'queued', blocked_by: 'quota' }] })
    await place.advance(24 * hour)
    expect([await place.statuses(id), receivers()]).toEqual([['completed'], [one.person_id]])
    expect(await lookUpsOf(a)).toBe(perDay + 1)
  })

  test('are not used by a chat that is started with somebody in a chat, or by number', async () => {
    const account_id = await place.account()
    const [met, numbered, far] = [someone(), someone(), someone()]
    await meets(account_id, met)
    const ways = [`@${met.username}`, `+${met.phone}`, String(numbered.person_id), `@${far.username}`]
    for (const identifier of ways) {
      const started = await post('/chats/start', { account_id, identifier })
      expect(started.status, identifier).toBe(200)
    }
    expect(await lookUpsOf(account_id)).toBe(1)
    const nobody = await post('/chats/start', { account_id, identifier: '987654321' })
    expect([nobody.status, nobody.body.code]).toEqual([404, 'username_not_found'])
    expect(await lookUpsOf(account_id)).toBe(1)
  })
})

describe('a person found by a number that they do not show', () => {
  test.each(['a campaign', 'a started chat'])(
    'through %s of A is tied to it: B may not write under the username',
    async (way) => {
      const [a, b] = [await place.account(), await place.account()]
      const one = someone({ phone_visible_to: [] })
      if (way === 'a campaign') {
        await write(a, `+${one.phone}`)
        await place.advance(60)
        expect(receivers()).toEqual([one.person_id])
      } else {
        const started = await post('/chats/start', { account_id: a, identifier: `+${one.phone}` })
        expect(started.status).toBe(200)
      }
      const soon = await write(b, `@${one.username}`, await inHours(1))
      await suppress({ phone: one.phone })
      expect(await place.statuses(soon)).toEqual(['suppressed'])
      await expectRefused(b, `@${one.username}`)
    },
  )
})

describe('while a message crosses', () => {
  const steps = [
    { wait_hours: 1, variants: ['Second message'] },
    { wait_hours: 24, variants: ['Third message'] },
  ]

  /** A message stops after its locks, before its commit, while this table has its campaign. No lock: that would have a limit. */
  beforeAll(async () => {
    await place.db.run(sql`create table held_crossings (campaign_id uuid)`)
    await place.db.run(sql`
      create function hold_crossing() returns trigger language plpgsql as $$
      begin
        while exists (select from held_crossings h where h.campaign_id = new.campaign_id) loop
          perform pg_advisory_xact_lock_shared(4712);
          perform pg_sleep(0.05);
        end loop;
        return new;
      end $$`)
    await place.db.run(sql`
      create trigger hold_crossing before insert on operations for each row when (new.step_no is not null)
      execute function hold_crossing()`)
  })
  afterAll(async () => {
    await place.db.run(sql`drop function hold_crossing cascade`)
    await place.db.run(sql`drop table held_crossings`)
  })

  /** Holds the crossing of the campaign's next message open until what happens meanwhile waits for it. */
  async function held(id: string, meanwhile: () => Promise<unknown>) {
    const exists = (what: string, rows: Sql) =>
      place.until(what, async () => (await place.db.maybe(rows)) !== undefined)
    await place.db.run(sql`insert into held_crossings values (${id})`)
    const begun = place.advance(hour).catch((error) => error)
    await exists('it crosses', sql`select 1 from pg_locks where locktype = 'advisory' and objid = 4712`)
    const acted = meanwhile().catch((error) => error)
    await exists(
      'a statement waits',
      sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    await place.db.run(sql`delete from held_crossings`)
    expect([await begun, await acted].filter((one) => one instanceof Error)).toEqual([])
  }

  async function both() {
    const [a, b] = [await place.account(), await place.account()]
    const one = someone()
    await meets(a, one)
    await meets(b, one)
    return { a, b, one }
  }

  async function second() {
    const { a, b, one } = await both()
    const id = await place.campaign({ chats: [{ account_id: a, person_id: one.person_id }], steps })
    await place.advance(60)
    expect(await place.statuses(id)).toEqual(['waiting'])
    return { a, b, one, id }
  }

  test('a suppression waits for it, and the person gets nothing after it', async () => {
    const { one, id } = await second()
    await held(id, () => suppress({ username: one.username }))
    await place.advance(48 * hour)
    expect(place.sent().map(({ text }) => text)).toEqual(['First message', 'Second message'])
    expect(await place.statuses(id)).toEqual(['suppressed'])
  })

  test.each(['the same account', 'another account'])(
    'a reply to %s waits for it, and the person gets nothing after it',
    async (which) => {
      const { a, b, one, id } = await second()
      await held(id, () => meets(which === 'another account' ? b : a, one))
      await place.advance(48 * hour)
      expect(place.sent().map(({ text }) => text)).toEqual(['First message', 'Second message'])
      expect(await place.statuses(id)).toEqual(['replied'])
    },
  )

  test('a request to stop to another account waits for the first message, and the person gets nothing after it', async () => {
    const { a, b, one } = await both()
    const scheduled_at = await inHours(0.5)
    const chats = [{ account_id: a, person_id: one.person_id }]
    const id = await place.campaign({ chats, steps, scheduled_at })
    await held(id, () => meets(b, one, 'stop'))
    await place.advance(48 * hour)
    expect(place.sent().map(({ text }) => text)).toEqual(['First message'])
    const [ended] = await place.statuses(id)
    expect(['replied', 'suppressed']).toContain(ended)
    await expectRefused(a, `@${one.username}`)
  })
})

describe('one person', () => {
  test('under @Name, t.me/name and two spellings of a phone gets one message', async () => {
    const [a, b] = [await place.account(), await place.account()]
    const one = someone()
    const answer = await post('/campaigns', {
      account_pool: [a, b],
      contacts: [
        { identifier: `@${one.username.toUpperCase()}` },
        { identifier: `https://t.me/${one.username}` },
        { identifier: `+${one.phone}` },
        { identifier: `00${one.phone.slice(0, 2)} (0)${one.phone.slice(2)}` },
        { identifier: String(one.person_id) },
      ],
      ...{ message_text: 'First message', daily_quota_per_account: 50 },
    })
    expect(answer.status, answer.body.error).toBe(201)
    await place.advance(hour)
    expect(receivers()).toEqual([one.person_id])
    const rows = await reasons((answer.body.campaign as { id: string }).id)
    expect(rows.filter(([status]) => status === 'completed')).toHaveLength(1)
    for (const [status, reason] of rows) {
      if (status !== 'completed') expect([status, reason]).toEqual(['failed', 'duplicate'])
    }
  })

  test.each(['@sсene_cyrillic', '@scene＿wide', '@scene‍joined', '+49 30 ٧٧٧٧٧٧٧'])(
    'is not written with look-alike letters or digits: 400 for %s',
    async (identifier) => {
      const account_id = await place.account()
      const started = await post('/chats/start', { account_id, identifier })
      expect(started.status).toBe(400)
      const contacts = [{ identifier }]
      const answer = await post('/campaigns', {
        ...{ account_id, contacts, message_text: 'First message', daily_quota_per_account: 50 },
      })
      expect(answer.status).toBe(400)
    },
  )
})
