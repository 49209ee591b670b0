/**
 * Contacts that are looked up just before their first message, broadcasts, and messages that fail for a reason of
 * ours.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type CampaignPlace, openCampaigns } from '../../../../test/harness/campaigns.ts'
import { sql } from '../../../db/sql.ts'
import { noteFlood } from '../../../ledger/floods.ts'
import { closeByPerson } from '../../../ledger/settle.ts'
import { setAccountEnabled } from '../../accounts/accounts.ts'
import { learnPeople } from '../../people/people.ts'

let place: CampaignPlace
beforeAll(async () => {
  place = await openCampaigns({
    PARLEY_START_CHAT_PER_DAY: '12',
    PARLEY_START_CHAT_PER_MINUTE: '60',
    PARLEY_SCHEDULE_LATENESS: '3600',
  })
})
beforeEach(() => place.fresh())
afterEach(async () => {
  expect(await place.judge()).toEqual([])
})
afterAll(() => place.close())

const hour = 3_600
const day = 24 * hour
let named = 0

/** A person whom no account knows yet. */
function stranger(given = {}): { person_id: number; contact: string; phone: string } {
  const username = `stranger_${named++}`
  const phone = `49170${String(named).padStart(6, '0')}`
  const { person_id } = place.work.sandbox.world.addPerson({
    name: `Name ${named}`,
    username,
    phone: `+${phone}`,
    ...given,
  })
  return { person_id, contact: `username:${username}`, phone: `phone:${phone}` }
}

/** The account of this contact has asked who it is just now. */
async function know(campaign_id: string, { person_id, contact }: ReturnType<typeof stranger>): Promise<void> {
  const { account_id } = await place.db.one<{ account_id: string }>(sql`
    update campaign_recipients set chat_id = ${person_id}, asked_at = domain_now()
    where campaign_id = ${campaign_id} and contact = ${contact} returning account_id`)
  const person = { name: '', username: contact.replace('username:', ''), phone: null } as const
  const { workspace_id } = place.tenant
  await learnPeople(place.db, { workspace_id, account_id }, [
    { ...person, id: String(person_id), kind: 'person' },
  ])
}

describe('contacts', () => {
  test('are looked up just before their first message, and stay with the account that wrote to them', async () => {
    const pool = [await place.account(), await place.account()]
    const people = Array.from({ length: 4 }, () => stranger())
    const contacts = people.map(({ contact }) => ({ contact }))
    const id = await place.campaign({
      ...{
        kind: 'contacts',
        pool,
        contacts,
        message_text: 'Hello {{name|there}}',
        steps: [{ wait_hours: 24 }],
      },
    })
    await place.advance(hour)
    const rows = await place.recipients(id)
    expect(rows.map(({ status }) => status)).toEqual(['waiting', 'waiting', 'waiting', 'waiting'])
    expect(rows.map(({ chat_id }) => Number(chat_id))).toEqual(people.map(({ person_id }) => person_id))
    // Distributed evenly: each new contact goes to the account with most quota left.
    const by = Object.values(Object.groupBy(rows, ({ account_id }) => account_id ?? ''))
    expect(by.map((own) => own?.length)).toEqual([2, 2])
    expect(place.sent()[0]?.text).toMatch(/^Hello Name \d+$/)
    await place.advance(2 * day)
    expect(await place.statuses(id)).toEqual(['completed', 'completed', 'completed', 'completed'])
    expect((await place.recipients(id)).map(({ account_id }) => account_id)).toEqual(
      rows.map(({ account_id }) => account_id),
    )
    expect(place.sent()).toHaveLength(8)
  })

  test('go to another account of the pool when one has no first message left', async () => {
    const [none, free] = [await place.account(), await place.account()]
    await place.db.run(sql`update accounts set cold_per_day = 0 where id = ${none}`)
    const contacts = Array.from({ length: 3 }, () => ({ contact: stranger().contact }))
    const id = await place.campaign({ kind: 'contacts', pool: [none, free], contacts })
    await place.advance(hour)
    const rows = await place.recipients(id)
    expect(rows.map(({ status, account_id }) => [status, account_id])).toEqual(
      contacts.map(() => ['completed', free]),
    )
  })

  test.each([1, 3])('%i: go to another account of the pool when the campaigns of one hold', async (count) => {
    // The held one is first in the order of accounts.
    const [held, free] = [await place.account(), await place.account()].toSorted()
    await place.db.run(sql`
      update account_hosts set campaigns_held_at = domain_now(), campaigns_held_by = 'NEW_LIMIT' where account_id = ${held}`)
    const contacts = Array.from({ length: count }, () => ({ contact: stranger().contact }))
    const id = await place.campaign({ kind: 'contacts', pool: [held ?? '', free ?? ''], contacts })
    await place.advance(hour)
    const rows = await place.recipients(id)
    expect(rows.map(({ status, account_id }) => [status, account_id])).toEqual(
      contacts.map(() => ['completed', free]),
    )
  })

  test('go to another account of the pool when one has no look-up left for the day', async () => {
    const [spent, free] = [await place.account(), await place.account()]
    await place.db.run(sql`
      insert into account_days (account_id, workspace_id, day, lookups)
      values (${spent}, ${place.tenant.workspace_id}, domain_now()::date, 12)`)
    const contacts = Array.from({ length: 3 }, () => ({ contact: stranger().contact }))
    const id = await place.campaign({ kind: 'contacts', pool: [spent, free], contacts })
    await place.advance(120)
    const rows = await place.recipients(id)
    expect(rows.map(({ status, account_id }) => [status, account_id])).toEqual(
      contacts.map(() => ['completed', free]),
    )
  })

  /** All that the account may ask within a minute. */
  async function useUpMinute(account_id: string): Promise<void> {
    const { limits, config } = place.app
    const rule = { limit: config.start_chat_minute, seconds: 60 }
    for (let n = 0; n < rule.limit; n++) await limits.take(`lookup:${account_id}`, rule)
  }

  test.each([0, 1])(
    '%i: go to an account that has sent so many when another has had its look-ups of a minute',
    async (used) => {
      const [spent = '', free = ''] = [await place.account(), await place.account()].toSorted()
      await useUpMinute(spent)
      await place.db.run(sql`
      insert into account_days (account_id, workspace_id, day, used)
      values (${free}, ${place.tenant.workspace_id}, domain_now()::date, ${used})`)
      const contacts = [{ contact: stranger().contact }]
      const id = await place.campaign({ kind: 'contacts', pool: [spent, free], contacts })
      await place.until('the other has written', async () => (await place.statuses(id))[0] === 'completed')
      expect((await place.recipients(id)).map(({ account_id }) => account_id)).toEqual([free])
      await place.db.run(sql`update account_days set used = used - ${used} where account_id = ${free}`)
    },
  )

  test('who must be looked up wait for the next minute, and those behind them are written to', async () => {
    const account_id = await place.account()
    await useUpMinute(account_id)
    const known = stranger()
    const contacts = [stranger(), stranger(), known].map(({ contact }) => ({ contact, account_id }))
    const id = await place.campaign({ kind: 'contacts', pool: [account_id], contacts })
    await know(id, known)
    await place.until('somebody is written to', async () => (await place.statuses(id)).includes('completed'))
    expect(place.sent().map(({ person }) => person)).toEqual([known.person_id])
    await place.control(id, 'cancel')
  })

  test('fail when the look-up finds no one, the same person again, or something other than a person', async () => {
    const pool = [await place.account()]
    const one = stranger()
    const [bot, deleted] = [stranger({ kind: 'bot' }), stranger({ kind: 'deleted' })]
    const self = place.work.sandbox.world.state.accounts.get(pool[0] ?? '')?.person_id
    const contacts = [
      { contact: 'username:nobody_at_all' },
      { contact: one.contact },
      { contact: one.phone },
      { contact: bot.contact },
      { contact: deleted.contact },
      { contact: `platform_id:${self}` },
    ]
    const id = await place.campaign({ kind: 'contacts', pool, contacts })
    await place.advance(hour)
    expect((await place.recipients(id)).map(({ status, reason }) => [status, reason])).toEqual([
      ['failed', 'username_not_found'],
      ['completed', null],
      ['failed', 'duplicate'],
      ['failed', 'identity_ineligible'],
      ['failed', 'identity_ineligible'],
      ['failed', 'identity_ineligible'],
    ])
    expect(place.sent()).toHaveLength(1)
  })

  test('that are one person under two names get one message, also when the follow-up to one was refused', async () => {
    const account_id = await place.account()
    const { person_id, contact, phone } = stranger()
    const contacts = [{ contact }, { contact: phone }]
    const steps = [{ wait_hours: 1 }]
    const id = await place.campaign({ kind: 'contacts', pool: [account_id], contacts, steps, quota: 1 })
    await place.advance(hour)
    place.work.sandbox.world.addFault({ on: 'send', fault: 'refuse', account_id, times: 1 })
    await place.advance(3 * day)
    expect((await place.recipients(id)).map(({ status }) => status)).toEqual(['failed', 'failed'])
    expect(place.sent()).toMatchObject([{ person: person_id, text: 'First message' }])
  })

  test('wait out a flood wait for look-ups, while those with known chats get their messages', async () => {
    const account_id = await place.account()
    const [unknown, known] = [stranger(), stranger()]
    const contacts = [unknown, known].map(({ contact }) => ({ contact, account_id }))
    await noteFlood(place.db, account_id, { stops: 'lookups', retry_after_seconds: 80_000 })
    const id = await place.campaign({ kind: 'contacts', pool: [account_id], contacts })
    await know(id, known)
    await place.advance(hour)
    expect(place.sent().map(({ person }) => person)).toEqual([known.person_id])
    await place.advance(day)
    expect(place.sent().map(({ person }) => person)).toEqual([known.person_id, unknown.person_id])
  })

  test('wait for another day when the account has no look-up left', async () => {
    const pool = [await place.account()]
    const contacts = Array.from({ length: 14 }, () => ({ contact: stranger().contact }))
    const id = await place.campaign({ kind: 'contacts', pool, contacts })
    await place.advance(hour)
    const { lookups } = await place.app.db.one<{ lookups: number }>(
      sql`select lookups from account_days where account_id = ${pool[0] ?? ''}`,
    )
    expect(lookups).toBe(12)
    // A contact whose crossing was busy is looked up again, and that counts too.
    expect(place.sent().length).toBeLessThanOrEqual(12)
    await place.until('all have their message', async () => {
      await place.advance(day)
      return (await place.status(id)) === 'completed'
    })
    expect(place.sent()).toHaveLength(14)
  })

  test('of an account that is lost before it wrote go to another account', async () => {
    const pool = [await place.account(), await place.account()]
    const [lost = ''] = pool
    await setAccountEnabled(place.app, 'system', { id: lost, enabled: false })
    const contacts = [{ contact: stranger().contact, account_id: lost }]
    const id = await place.campaign({ kind: 'contacts', pool, contacts })
    await place.until('another account has written', async () => {
      await place.advance(1)
      return place.sent().length > 0
    })
    expect(await place.recipients(id)).toMatchObject([{ status: 'completed', account_id: pool[1] }])
  })
})

describe('a broadcast', () => {
  test('uses no quota, stops at its own gate, and counts no replies', async () => {
    const account_id = await place.account()
    const people = await place.people(account_id, 2)
    await place.work.service.shut('broadcast')
    const chats = people.map((person_id) => ({ account_id, person_id }))
    const id = await place.campaign({ kind: 'broadcast', chats })
    await place.advance(hour)
    expect(place.sent()).toEqual([])
    await place.work.service.open('broadcast')
    await place.work.service.shut('campaigns')
    await place.advance(hour)
    await place.work.service.open('campaigns')
    expect(place.sent()).toHaveLength(2)
    place.work.write(account_id, people[0] ?? 0, 'Thanks')
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['completed', 'completed'])
    const counted = await place.db.one(sql`
      select (select coalesce(sum(used), 0)::int from account_days where account_id = ${account_id}) as used,
        (select count(*)::int from campaign_counts where campaign_id = ${id}) as counts`)
    expect(counted).toEqual({ used: 0, counts: 0 })
    const told = await place.work.events(place.tenant.workspace_id)
    expect(told.filter(({ type }) => type === 'campaign.replied')).toEqual([])
  })
})

describe('a message that fails for an internal reason', () => {
  test('does not hold up the other 99 of its batch, nor those behind it', async () => {
    const account_id = await place.account()
    const people = await place.people(account_id, 3)
    // The database refuses this at the boundary, and no check before it could have known.
    const poisoned = people[0] ?? 0
    await place.db.run(sql`
      create function refuse_poison() returns trigger language plpgsql as $$
      begin
        if new.payload ->> 'text' like '%poison%' then raise exception 'poison'; end if;
        return new;
      end $$`)
    await place.db.run(sql`
      create trigger poison before insert on operations for each row execute function refuse_poison()`)
    const id = await place.campaign({
      message_text: 'To [[name]]',
      chats: people.map((person_id) => ({ account_id, person_id })),
    })
    await place.db.run(sql`
      update campaign_recipients set name = 'poison' where campaign_id = ${id} and chat_id = ${poisoned}`)
    await place.until('the others are sent', async () => {
      await place.advance(20).catch(() => {})
      return place.sent().length === 2
    })
    expect(await place.statuses(id)).toEqual(['queued', 'completed', 'completed'])
    const { used } = await place.db.one<{ used: number }>(
      sql`select sum(used)::int as used from account_days where account_id = ${account_id}`,
    )
    expect(used).toBe(2)
    await place.db.run(sql`drop trigger poison on operations`)
    await place.control(id, 'cancel')
  }, 120_000)
})

describe('a schedule', () => {
  test('is paused when it was missed by more than the operator tolerates', async () => {
    const account_id = await place.account()
    const [person_id = 0] = await place.people(account_id, 1)
    const { now } = await place.db.one<{ now: Date }>(sql`select domain_now() as now`)
    const soon = new Date(now.getTime() + hour * 1000)
    const id = await place.campaign({
      chats: [{ account_id, person_id }],
      steps: [{ wait_hours: 1 }],
      scheduled_at: soon,
    })
    // No worker was there to start it: the clock moved on by itself.
    await place.db.run(sql`update manual_clock set at = at + interval '3 hours'`)
    await place.until('it is paused', async () => (await place.status(id)) === 'paused')
    await place.advance(hour)
    expect(place.sent()).toEqual([])
    await place.control(id, 'resume')
    await place.advance(1)
    expect(place.sent()).toHaveLength(1)
  })
})

describe('an unknown outcome that an operator closes', () => {
  test.each([
    ['sent', 'completed', 1],
    ['not_sent', 'failed', 0],
  ] as const)('as %s', async (closed_as, status, followed) => {
    const account_id = await place.account()
    const [person_id = 0] = await place.people(account_id, 1)
    place.work.fault({ on: 'send', fault: 'unavailable', times: 1, account_id })
    const id = await place.campaign({ chats: [{ account_id, person_id }], steps: [{ wait_hours: 24 }] })
    await place.advance(1)
    const row = await place.db.one<{ id: string }>(
      sql`select id from operations where campaign_id = ${id} and state = 'ambiguous'`,
    )
    await place.db.transaction((tx) => closeByPerson(tx, place.app.operations, { id: row.id, closed_as }))
    await place.advance(2 * day)
    expect(await place.statuses(id)).toEqual([status])
    expect(place.sent()).toHaveLength(followed)
  })

  test.each(['before', 'after'])('as sent, with a reply %s that: nothing follows', async (when) => {
    const account_id = await place.account()
    const [person_id = 0] = await place.people(account_id, 1)
    place.work.fault({ on: 'send', fault: 'unavailable', times: 1, account_id })
    const id = await place.campaign({ chats: [{ account_id, person_id }], steps: [{ wait_hours: 24 }] })
    await place.advance(60)
    const row = await place.db.one<{ id: string }>(
      sql`select id from operations where campaign_id = ${id} and state = 'ambiguous'`,
    )
    const answer = async () => {
      place.work.write(account_id, person_id, 'Tell me more')
      await place.advance(60)
    }
    if (when === 'before') await answer()
    await place.db.transaction((tx) =>
      closeByPerson(tx, place.app.operations, { id: row.id, closed_as: 'sent' }),
    )
    if (when === 'after') await answer()
    await place.advance(2 * day)
    expect(await place.statuses(id)).toEqual(['replied'])
    expect(place.sent()).toEqual([])
    const told = await place.work.events(place.tenant.workspace_id)
    expect(told.filter(({ type }) => type === 'campaign.replied')).toHaveLength(1)
  })
})
