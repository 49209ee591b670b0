/** What the database's functions learn about names, and whom an entry of the suppression list stops: row by row. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { insertCampaign } from '../../../test/harness/campaigns.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import type { AccountKey } from '../../contract.ts'
import { moveClock } from '../../db/domain-clock.ts'
import { sql } from '../../db/sql.ts'
import type { Person } from '../../platform/port.ts'
import type { Identifier } from '../../rules/identifier.ts'
import { storeContacts } from '../contacts/contacts.ts'
import { addSuppression, findSuppressed, removeSuppression } from '../suppressions/suppressions.ts'
import { learnPeople } from './people.ts'

let service: Service
let tenant: Tenant
let a: AccountKey
let b: AccountKey
let made = 70_000

beforeAll(async () => {
  service = await openService({ env: { PARLEY_CLOCK: 'manual' } })
})
beforeEach(async () => {
  tenant = await service.tenant()
  a = await account()
  b = await account()
})
afterAll(() => service.close())

async function account(of: Tenant = tenant, platform = 'sandbox'): Promise<AccountKey> {
  const { workspace_id } = of
  const account_id = await service.account(workspace_id)
  await service.app.db.run(sql`update accounts set platform = ${platform} where id = ${account_id}`)
  return { workspace_id, account_id }
}

interface Someone {
  readonly id: string
  readonly username: string
  readonly phone: string
}

function someone(): Someone {
  const n = made++
  return { id: String(n), username: `name_${n}`, phone: `49309${n}` }
}

/** What an account is shown of a person at this moment. */
const shown = ({ id }: Someone, names: Partial<Pick<Person, 'username' | 'phone'>>): Person => ({
  ...{ id, name: 'Mara', kind: 'person', username: null, phone: null },
  ...names,
})
const sees = (by: AccountKey, ...people: readonly Person[]) => learnPeople(service.app.db, by, people)
/** The account asked for the person under this name, and was shown these. */
const asksFor = (by: AccountKey, person: Person, identifier: Identifier, has_name = true) =>
  learnPeople(service.app.db, by, [person], { identifier, has_name })
const stores = (by: AccountKey, ...people: readonly Person[]) =>
  service.app.db.transaction((tx) => storeContacts(tx, by, people))

async function later(seconds = 60): Promise<void> {
  const { db } = service.app
  const { now } = await db.one<{ now: Date }>(sql`select domain_now() as now`)
  await moveClock(db, new Date(now.getTime() + seconds * 1_000))
}

const suppress = (given: { phone?: string; username?: string; platform_id?: string }, of = tenant) =>
  addSuppression(service.app, 'cli:ana', { workspace_id: of.workspace_id, ...given })
const isListed = (by: AccountKey, { id }: Someone) => findSuppressed(service.app.db, by, { id })
const isNamed = (by: AccountKey, username: string) => findSuppressed(service.app.db, by, { username })

/** Each name of the person; `-` before one that has ended. */
async function namesOf({ id }: Someone, by?: AccountKey): Promise<string[]> {
  const rows = await service.app.db.rows<{ name: string }>(sql`
    select distinct case when n.until is null then '' else '-' end || n.value as name
    from people p join person_names n on n.person_id = p.id
    where p.workspace_id = ${tenant.workspace_id} and p.number = ${id}
      and n.account_id = coalesce(${by?.account_id ?? null}, n.account_id) order by 1`)
  return rows.map(({ name }) => name)
}

describe('a name', () => {
  test('ends for its former owner as soon as another person is seen with it', async () => {
    const [one, other] = [someone(), someone()]
    await sees(a, shown(one, { username: one.username, phone: one.phone }))
    await sees(b, shown(other, { username: one.username, phone: one.phone }))
    expect(await namesOf(one)).toEqual([`-${one.phone}`, `-${one.username}`])
    expect(await namesOf(other)).toEqual([one.phone, one.username])
  })

  test('ends once the person is seen with another, or with none', async () => {
    const [one, other] = [someone(), someone()]
    await sees(a, shown(one, { username: one.username }), shown(other, { username: other.username }))
    await sees(b, shown(one, { username: 'renamed_since' }), shown(other, { username: null }))
    expect(await namesOf(one)).toEqual([`-${one.username}`, 'renamed_since'])
    expect(await namesOf(other)).toEqual([`-${other.username}`])
  })

  test('does not end because an account is not shown the phone number', async () => {
    const one = someone()
    await sees(a, shown(one, { username: one.username, phone: one.phone }))
    await sees(b, shown(one, { username: one.username }))
    expect(await namesOf(one)).toEqual([one.phone, one.username])
  })

  test('does not end because a contact that keeps an old phone number gets another username', async () => {
    const one = someone()
    await stores(a, shown(one, { username: one.username, phone: one.phone }))
    await sees(b, shown(one, { username: one.username, phone: `${one.phone}1` }))
    await stores(a, shown(one, { username: 'renamed_since', phone: null }))
    expect(await namesOf(one)).toEqual(
      [`-${one.phone}`, `${one.phone}1`, `-${one.username}`, 'renamed_since'].toSorted(),
    )
  })

  test('does not end because the platform has not shown the names of the person', async () => {
    const one = someone()
    await sees(a, shown(one, { username: one.username }))
    await sees(b, { ...shown(one, {}), stale: true })
    expect(await namesOf(one)).toEqual([one.username])
  })

  test('begins again when the person is seen with it again', async () => {
    const one = someone()
    await sees(a, shown(one, { username: one.username }))
    await sees(a, shown(one, { username: 'renamed_since' }))
    await sees(a, shown(one, { username: one.username }))
    expect(await namesOf(one)).toEqual(['-renamed_since', one.username])
  })

  test('is the same in any letter case, and a phone number in any spelling', async () => {
    const one = someone()
    await sees(a, shown(one, { username: one.username.toUpperCase(), phone: `+49 (0)${one.phone.slice(2)}` }))
    expect(await namesOf(one)).toEqual([one.phone, one.username])
  })

  test('on one platform ends no name on another', async () => {
    const telegram = await account(tenant, 'telegram')
    const [one, other] = [someone(), someone()]
    await sees(a, shown(one, { username: one.username }))
    await sees(telegram, shown(other, { username: one.username }))
    expect(await namesOf(one)).toEqual([one.username])
  })

  test('in one workspace ends no name in another', async () => {
    const elsewhere = await account(await service.tenant())
    const [one, other] = [someone(), someone()]
    await sees(a, shown(one, { username: one.username }))
    await sees(elsewhere, shown(other, { username: one.username }))
    expect(await namesOf(one)).toEqual([one.username])
  })

  test('that the person was found by is theirs, though the platform does not show it', async () => {
    const [one, other] = [someone(), someone()]
    const second = `${one.username}_2`
    await sees(b, shown(other, { username: second, phone: one.phone }))
    await asksFor(a, shown(one, {}), { kind: 'phone', value: `+49 (0)${one.phone.slice(2)}` })
    await asksFor(a, shown(one, { username: one.username }), {
      kind: 'username',
      value: second.toUpperCase(),
    })
    expect(await namesOf(one)).toEqual([one.phone, one.username, second].toSorted())
    expect(await namesOf(other)).toEqual([`-${one.phone}`, `-${second}`].toSorted())
  })

  test('besides the shown username does not end because that one is seen, and ends once the platform denies it', async () => {
    const one = someone()
    const second = { kind: 'username', value: `${one.username}_2` } as const
    await asksFor(a, shown(one, { username: one.username }), second)
    await sees(b, shown(one, { username: one.username }))
    expect(await namesOf(one)).toEqual([one.username, second.value].toSorted())
    await asksFor(b, shown(one, { username: one.username }), second, false)
    expect(await namesOf(one)).toEqual([`-${second.value}`, one.username].toSorted())
  })

  test('that the platform denies ends, but not a phone number that it only does not show', async () => {
    const one = someone()
    await sees(a, shown(one, { username: one.username, phone: one.phone }))
    await asksFor(a, shown(one, { username: one.username }), { kind: 'phone', value: one.phone }, false)
    expect(await namesOf(one)).toEqual([one.phone, one.username])
  })

  test('is written again only after a day', async () => {
    const one = someone()
    const seenAt = async () => {
      const rows = await service.app.db.rows<{ at: Date }>(sql`
        select last_seen_at as at from person_names where value = ${one.username}`)
      return rows.map(({ at }) => at.getTime())
    }
    await sees(a, shown(one, { username: one.username }))
    const [first = 0] = await seenAt()
    await later(23 * 3_600)
    await sees(a, shown(one, { username: one.username }))
    expect(await seenAt()).toEqual([first])
    await later(2 * 3_600)
    await sees(a, shown(one, { username: one.username }))
    expect(await seenAt()).toEqual([first + 25 * 3_600_000])
  })
})

test('a number is one person in its workspace and on its platform, and another one elsewhere; a group is none', async () => {
  const [telegram, elsewhere] = [await account(tenant, 'telegram'), await account(await service.tenant())]
  const { id } = someone()
  const personOf = async ({ workspace_id, account_id }: AccountKey, number = id) =>
    (
      await service.app.db.one<{ person: string | null }>(sql`
        select person_of(${workspace_id}, ${account_id}, ${number}::bigint) as person`)
    ).person
  const first = await personOf(a)
  expect(first).not.toBeNull()
  expect(await personOf(b)).toBe(first)
  const others = [await personOf(telegram), await personOf(elsewhere)]
  expect(new Set([first, ...others]).size).toBe(3)
  expect(await personOf(a, '-1001')).toBeNull()
})

describe('an entry by name', () => {
  test('stops a person who has the name in one account, in every account and by the number alone', async () => {
    const [one, other] = [someone(), someone()]
    await sees(a, shown(one, { username: one.username }), shown(other, { username: other.username }))
    await suppress({ username: one.username })
    expect([await isListed(b, one), await isListed(b, other)]).toEqual([true, false])
  })

  test('stops everybody who had the name while it stood: the owner of then, and who took it', async () => {
    const [one, other] = [someone(), someone()]
    await sees(a, shown(one, { username: one.username }), shown(other, { username: other.username }))
    await later()
    await suppress({ username: one.username })
    await later()
    await sees(a, shown(one, { username: 'renamed_since' }))
    expect([await isListed(b, one), await isListed(b, other)]).toEqual([true, false])
    await later()
    await sees(b, shown(other, { username: one.username }))
    expect([await isListed(b, one), await isListed(b, other)]).toEqual([true, true])
    await sees(b, shown(other, { username: other.username }))
    expect([await isListed(a, one), await isListed(a, other)]).toEqual([true, true])
    await removeSuppression(service.app, 'cli:ana', {
      workspace_id: tenant.workspace_id,
      username: one.username,
    })
    expect([await isListed(a, one), await isListed(a, other)]).toEqual([false, false])
  })

  test('counts the last sight of a name that two accounts saw end at two times', async () => {
    const one = someone()
    await sees(a, shown(one, { username: one.username }))
    await sees(a, shown(one, { username: 'renamed_since' }))
    await later()
    await suppress({ username: one.username })
    await later()
    expect(await isListed(a, one)).toBe(false)
    await sees(b, shown(one, { username: one.username }))
    await later()
    await sees(b, shown(one, { username: 'renamed_since' }))
    expect(await isListed(a, one)).toBe(true)
  })

  test('stops a person who has the name again in one account, though another saw it end before the entry', async () => {
    const one = someone()
    await sees(a, shown(one, { username: one.username }))
    await sees(a, shown(one, { username: 'renamed_since' }))
    await later()
    await sees(b, shown(one, { username: one.username }))
    await later()
    await suppress({ username: one.username })
    expect([await isListed(a, one), await isListed(b, one)]).toEqual([true, true])
  })

  test('does not stop a person who had given the name up before', async () => {
    const one = someone()
    await sees(a, shown(one, { username: one.username }))
    await sees(a, shown(one, { username: 'renamed_since' }))
    await later()
    await suppress({ username: one.username })
    expect(await isListed(a, one)).toBe(false)
  })

  test('stops a name of which another name of its present owner is listed, and not one that was passed on', async () => {
    const [one, other] = [someone(), someone()]
    await sees(a, shown(one, { username: one.username, phone: one.phone }))
    await suppress({ phone: one.phone })
    expect(await isNamed(b, one.username)).toBe(true)
    await later()
    await sees(a, shown(other, { username: one.username }))
    expect(await isNamed(b, one.username)).toBe(false)
  })

  test('stops a name whose present owner is listed by number', async () => {
    const one = someone()
    await sees(a, shown(one, { username: one.username }))
    await suppress({ platform_id: one.id })
    expect(await isNamed(b, one.username)).toBe(true)
    expect(await findSuppressed(service.app.db, b, { phone: one.phone })).toBe(false)
  })

  test('does not stop the person with the same number on another platform', async () => {
    const telegram = await account(tenant, 'telegram')
    const one = someone()
    await sees(a, shown(one, { username: one.username, phone: one.phone }))
    await suppress({ phone: one.phone })
    expect([await isListed(a, one), await isListed(telegram, one)]).toEqual([true, false])
    expect([await isNamed(a, one.username), await isNamed(telegram, one.username)]).toEqual([true, false])
    await suppress({ platform_id: one.id })
    expect([await isNamed(a, one.username), await isNamed(telegram, one.username)]).toEqual([true, false])
  })

  test('does not stop anybody in another workspace', async () => {
    const other = await service.tenant()
    const elsewhere = await account(other)
    const one = someone()
    await sees(a, shown(one, { username: one.username, phone: one.phone }))
    await suppress({ username: one.username })
    expect(await isListed(elsewhere, one)).toBe(false)
    expect(await isNamed(elsewhere, one.username)).toBe(false)
    // Nor by what only the accounts of another workspace have seen.
    await suppress({ phone: one.phone }, other)
    expect(await isListed(elsewhere, one)).toBe(false)
    expect(await isNamed(elsewhere, one.username)).toBe(false)
    await suppress({ platform_id: one.id }, other)
    expect([await isListed(elsewhere, one), await isNamed(elsewhere, one.username)]).toEqual([true, false])
  })
})

/** What an older release left: contacts without people. `work` runs until they are read. */
async function beforeReading(work: () => Promise<void>): Promise<void> {
  const { db } = service.app
  await db.run(sql`delete from person_names where workspace_id = ${tenant.workspace_id}`)
  await db.run(sql`delete from people where workspace_id = ${tenant.workspace_id}`)
  await db.run(sql`update people_backfill set done_at = null`)
  try {
    await work()
  } finally {
    await db.run(sql`update people_backfill set done_at = domain_now()`)
  }
}

describe('an entry by a name of a contact that is not read yet', () => {
  test('stops the person in every account of the workspace, until all are read', async () => {
    const [one, two] = [someone(), someone()]
    await stores(
      a,
      shown(one, { phone: `+${one.phone}` }),
      shown(two, { username: two.username.toUpperCase() }),
    )
    await beforeReading(async () => {
      await suppress({ phone: one.phone })
      await suppress({ username: two.username })
      for (const by of [a, b])
        expect([await isListed(by, one), await isListed(by, two)]).toEqual([true, true])
    })
    for (const by of [a, b])
      expect([await isListed(by, one), await isListed(by, two)]).toEqual([false, false])
  })

  test('does not stop the person with the same number on another platform, nor in another workspace', async () => {
    const other = await service.tenant()
    const [telegram, elsewhere] = [await account(tenant, 'telegram'), await account(other)]
    const one = someone()
    await stores(a, shown(one, { phone: one.phone }))
    await beforeReading(async () => {
      await suppress({ phone: one.phone })
      await suppress({ phone: one.phone }, other)
      const by = [a, b, telegram, elsewhere]
      expect(await Promise.all(by.map((each) => isListed(each, one)))).toEqual([true, true, false, false])
    })
  })
})

describe('a new entry ends', () => {
  /** Recipients that wait: of a campaign of chats by `b`, and one of contacts under this name. */
  async function waits(one: Someone, contact: string) {
    const { db } = service.app
    const chats = [{ account_id: b.account_id, person_id: Number(one.id) }]
    const byChat = await insertCampaign(db, tenant, { chats })
    const byName = await insertCampaign(db, tenant, {
      kind: 'contacts',
      pool: [b.account_id],
      contacts: [{ contact }],
    })
    return async () => {
      const rows = await db.rows<{ status: string }>(sql`
        select r.status from campaign_recipients r join campaigns k on k.id = r.campaign_id
        where k.id in (${byChat}, ${byName}) order by k.kind desc`)
      return rows.map(({ status }) => status)
    }
  }

  test('what waits for the person in another account, and under another name', async () => {
    const one = someone()
    await sees(a, shown(one, { username: one.username, phone: one.phone }))
    const statuses = await waits(one, `username:${one.username}`)
    await suppress({ phone: one.phone })
    expect(await statuses()).toEqual(['suppressed', 'suppressed'])
  })

  test('what waits under a name of a person who is listed by number', async () => {
    const one = someone()
    await sees(a, shown(one, { username: one.username }))
    const statuses = await waits(one, `username:${one.username}`)
    await suppress({ platform_id: one.id })
    expect(await statuses()).toEqual(['suppressed', 'suppressed'])
  })

  test('what waits under the number of a person who is listed by name', async () => {
    const one = someone()
    await sees(a, shown(one, { username: one.username }))
    const statuses = await waits(one, `platform_id:${one.id}`)
    await suppress({ username: one.username })
    expect(await statuses()).toEqual(['suppressed', 'suppressed'])
  })

  test('nothing of a person who has given the name up, nor under a name that they have given up', async () => {
    const [one, other] = [someone(), someone()]
    await sees(a, shown(one, { username: one.username }), shown(other, { username: other.username }))
    await sees(a, shown(one, { username: 'renamed_before' }))
    const former = await waits(one, 'username:renamed_before')
    await later()
    await suppress({ username: one.username })
    expect(await former()).toEqual(['queued', 'queued'])
    await sees(a, shown(other, { username: 'renamed_after', phone: other.phone }))
    const given = await waits(someone(), `username:${other.username}`)
    await later()
    await suppress({ phone: other.phone })
    expect(await given()).toEqual(['queued', 'queued'])
  })

  test('nothing of the person with the same number on another platform', async () => {
    const telegram = await account(tenant, 'telegram')
    const one = someone()
    await sees(telegram, shown(one, { username: one.username }))
    const statuses = await waits(one, `username:${one.username}_other`)
    await suppress({ username: one.username })
    expect(await statuses()).toEqual(['queued', 'queued'])
  })

  test.each(['the same account', 'another account'])(
    'what waits for a contact of %s from before of whom no person is known, while some are not read',
    async (which) => {
      const one = someone()
      const names = { username: one.username.toUpperCase(), phone: `+${one.phone}` }
      await stores(which === 'another account' ? a : b, shown(one, names))
      await beforeReading(async () => {
        const byName = await waits(one, 'username:another')
        await suppress({ username: one.username })
        expect(await byName()).toEqual(['suppressed', 'queued'])
        const byPhone = await waits(one, 'username:another')
        await suppress({ phone: one.phone })
        expect(await byPhone()).toEqual(['suppressed', 'queued'])
      })
    },
  )

  test('nothing of a contact from before with the same number on another platform', async () => {
    const telegram = await account(tenant, 'telegram')
    const one = someone()
    await stores(telegram, shown(one, { username: one.username }))
    await beforeReading(async () => {
      const statuses = await waits(one, 'username:another')
      await suppress({ username: one.username })
      expect(await statuses()).toEqual(['queued', 'queued'])
    })
  })

  test.each(['username', 'phone'] as const)(
    'nothing of a contact whose %s has passed on in another account since',
    async (kind) => {
      const [one, other] = [someone(), someone()]
      await stores(b, shown(one, { [kind]: one[kind] }))
      const statuses = await waits(one, 'username:another')
      await later()
      // Account `b` has not heard of it: its contact still shows the name.
      await sees(a, shown(other, { [kind]: one[kind] }))
      await later()
      await suppress({ [kind]: one[kind] })
      expect([await isListed(b, one), await statuses()]).toEqual([false, ['queued', 'queued']])
    },
  )

  test('nothing of the person in another workspace', async () => {
    const { db } = service.app
    const other = await service.tenant()
    const elsewhere = await account(other)
    const one = someone()
    await sees(a, shown(one, { username: one.username }))
    await sees(elsewhere, shown(one, { username: one.username }))
    const chats = [{ account_id: elsewhere.account_id, person_id: Number(one.id) }]
    const byChat = await insertCampaign(db, other, { chats })
    const contacts = [`username:${one.username}`, `platform_id:${one.id}`].map((contact) => ({ contact }))
    const pool = [elsewhere.account_id]
    const byName = await insertCampaign(db, other, { kind: 'contacts', pool, contacts })
    await suppress({ platform_id: one.id })
    await suppress({ username: one.username })
    const rows = await db.rows<{ status: string }>(sql`
      select status from campaign_recipients where campaign_id in (${byChat}, ${byName})`)
    expect(rows.map(({ status }) => status)).toEqual(['queued', 'queued', 'queued'])
  })

  test('nothing that is in flight', async () => {
    const one = someone()
    await sees(a, shown(one, { username: one.username }))
    const statuses = await waits(one, `username:${one.username}_other`)
    await service.app.db.run(sql`
      update campaign_recipients set status = 'submitting', next_action_at = null
      where workspace_id = ${tenant.workspace_id} and chat_id = ${one.id}`)
    await suppress({ username: one.username })
    expect(await statuses()).toEqual(['submitting', 'queued'])
  })
})
