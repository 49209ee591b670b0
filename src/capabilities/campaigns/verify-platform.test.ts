/** Verifies a campaign against the platform itself: messages that are missing there, duplicated, or unknown to us. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type CampaignPlace, openCampaigns } from '../../../test/harness/campaigns.ts'
import { patient, run } from '../../../test/harness/operator.ts'
import { sql } from '../../db/sql.ts'
import { deleteMessage } from '../../platform/sandbox/person-acts.ts'
import type { Post } from '../../platform/sandbox/state.ts'
import { identityOf } from './running/message.ts'
import { verifyOnPlatform } from './verify-platform.ts'

const hour = 3_600
let place: CampaignPlace
let account_id: string
let people: number[]
let id: string
beforeAll(async () => {
  place = await openCampaigns()
})
beforeEach(async () => {
  await place.fresh()
  account_id = await place.account()
  people = await place.people(account_id, 3)
  const chats = people.map((person_id) => ({ account_id, person_id }))
  id = await place.campaign({ chats, steps: [{ wait_hours: 24 }] })
  await place.advance(hour)
  expect(place.sent()).toHaveLength(3)
})
afterAll(() => place.close())

/** The platform's messages of the chat, changed without its knowledge. */
function posts(n = 0): Post[] {
  const box = place.work.sandbox.world.state.accounts.get(account_id)?.boxes.get(people[n] ?? 0)
  if (!box) throw new Error('The account has no such chat.')
  return box.posts
}

function ownPost(n = 0): Post {
  const post = posts(n).find(({ is_sender }) => is_sender)
  if (!post) throw new Error('Nothing was sent there.')
  return post
}

async function operationOf(n = 0): Promise<string> {
  const row = await place.db.one<{ id: string }>(
    sql`select id from operations where account_id = ${account_id} and chat_id = ${people[n]}`,
  )
  return row.id
}

async function failures(silentMsMax?: number): Promise<Record<string, string>> {
  const checks = await verifyOnPlatform(place.app, id, silentMsMax)
  expect(checks.map(({ name }) => name)).toEqual([
    'platform_asked',
    'platform_messages',
    'platform_strangers',
  ])
  return Object.fromEntries(checks.filter(({ ok }) => !ok).map(({ name, detail }) => [name, detail]))
}

async function leftBehind(): Promise<number> {
  const { n } = await place.db.one<{ n: number }>(sql`select count(*)::int as n from history_questions`)
  return n
}

describe('what the platform has', () => {
  test('passes when the platform has every accepted message', async () => {
    expect(await failures()).toEqual({})
    expect(await leftBehind()).toBe(0)
  })

  test('reports a message that is missing there, also at the terminal', patient, async () => {
    const verify = ['verify', 'campaign', id]
    const whole = await run(place.work.service, [...verify, '--platform'])
    expect([whole.code, whole.stdout]).toEqual([0, expect.stringContaining('Every account was read.')])
    posts(1).splice(posts(1).indexOf(ownPost(1)), 1)
    expect((await run(place.work.service, verify)).code).toBe(0)
    const missed = await run(place.work.service, [...verify, '--platform'])
    expect([missed.code, missed.stderr]).toEqual([1, 'FAILED: platform_messages.\n'])
    expect(missed.stdout).toMatch(
      new RegExp(`^FAILED {2}platform_messages +This check fails for ${await operationOf(1)}\\.$`, 'm'),
    )
  })

  test('reports a message that is there twice', async () => {
    const twice = ownPost()
    posts().push({ ...twice, message_id: twice.message_id + 1_000 })
    expect(await failures()).toEqual({
      platform_messages: `This check fails for ${await operationOf()}.`,
    })
  })

  test('finds a message beyond the first page', async () => {
    const last = ownPost()
    const later = Array.from({ length: 250 }, (_, n) => ({
      ...{ ...last, is_sender: false, random_id: null, message_id: last.message_id + n + 1 },
    }))
    posts().push(...later)
    expect(await failures()).toEqual({})
    posts().splice(posts().indexOf(last), 1)
    expect(Object.keys(await failures())).toEqual(['platform_messages'])
  })

  test('reports a message from before the campaign, as when its creation is repeated after a restore', async () => {
    await place.db.run(sql`update campaigns set created_at = created_at + interval '9 days' where id = ${id}`)
    await place.db.run(sql`
      update operations set created_at = created_at + interval '9 days' where account_id = ${account_id}`)
    expect(await failures()).toEqual({})
  })

  test('does not miss a message that was deleted since', async () => {
    const [person_id = 0] = people
    const { message_id } = ownPost()
    deleteMessage(place.work.sandbox.world, { account_id, person_id, message_id })
    await place.until('the deletion is stored', async () => {
      const row = await place.db.maybe(sql`
        select from messages where account_id = ${account_id} and id = ${message_id} and deleted_at is not null`)
      return row !== undefined
    })
    expect(posts()).not.toContainEqual(expect.objectContaining({ message_id }))
    expect(await failures()).toEqual({})
  })

  test("reports a message of the next step that no operation knows, and ignores another campaign's", async () => {
    const [recipient] = await place.recipients(id)
    const { workspace_id } = place.tenant
    const identity = { kind: 'scoped', workspace_id, recipient_id: recipient?.id ?? '', step: 1 }
    const { random_id } = identityOf(place.app, identity)
    const message_id = ownPost().message_id + 1_000
    posts().push({ ...ownPost(), message_id: message_id - 1, random_id: '123456789' })
    expect(await failures()).toEqual({})
    posts().push({ ...ownPost(), message_id, random_id })
    expect(await failures()).toEqual({
      platform_strangers: `This check fails for ${account_id} platform:chat:${people[0]} message ${message_id}.`,
    })
  })

  test('says where it cannot see such messages, because the platform shows no random ids', async () => {
    for (const [n] of people.entries()) {
      const own = ownPost(n)
      posts(n).splice(posts(n).indexOf(own), 1, { ...own, random_id: n === 0 ? own.random_id : null })
    }
    const checks = await verifyOnPlatform(place.app, id)
    expect(checks).toContainEqual({
      name: 'platform_strangers',
      ok: true,
      detail:
        'Of 3 chats read from the platform, 2 show messages without random ids: a message that is not in the ledger ' +
        'cannot be seen there.',
    })
  })

  test('reports a message that the ledger has as refused', async () => {
    const [person_id = 0] = await place.people(account_id, 1)
    people = [person_id]
    place.work.sandbox.world.addFault({ on: 'send', fault: 'refuse', account_id })
    id = await place.campaign({ chats: [{ account_id, person_id }] })
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['failed'])
    expect(await failures()).toEqual({})
    const { random_id } = await place.db.one<{ random_id: string }>(
      sql`select random_id::text from operations where id = ${await operationOf()}`,
    )
    const [last] = posts().slice(-1)
    if (last) posts().push({ ...last, message_id: last.message_id + 1_000, is_sender: true, random_id })
    expect(Object.keys(await failures())).toEqual(['platform_strangers'])
  })
})

describe('an account that was not checked never passes', () => {
  test('when its session is not live', async () => {
    await place.db.run(sql`update accounts set status = 'DISABLED' where id = ${account_id}`)
    await place.until('its session is closed', async () => {
      const row = await place.db.maybe(
        sql`select from account_hosts where account_id = ${account_id} and lease_owner is null`,
      )
      return row !== undefined
    })
    await place.db.run(sql`update account_hosts set observed_at = null where account_id = ${account_id}`)
    expect(await failures()).toEqual({
      platform_asked: `Chats of these accounts were not read: ${account_id}: its session is not live (chats: 3).`,
    })
    // It was live a moment ago, and no worker drives it any more.
    await place.db.run(
      sql`update account_hosts set observed_at = real_now() where account_id = ${account_id}`,
    )
    expect(await failures(300)).toEqual({
      platform_asked: `Chats of these accounts were not read: ${account_id}: its worker did not answer (chats: 3).`,
    })
    expect(await leftBehind()).toBe(0)
  })

  test('when the platform gives no answer, or a flood wait', async () => {
    place.work.sandbox.world.addFault({ on: 'history', fault: 'unavailable', account_id })
    expect(await failures()).toEqual({
      platform_asked: `Chats of these accounts were not read: ${account_id}: the platform did not tell (chats: 1).`,
    })
    await place.db.run(sql`
      update account_hosts set reading_flood_until = domain_now() + interval '30 s' where account_id = ${account_id}`)
    expect(await failures()).toEqual({
      platform_asked: `Chats of these accounts were not read: ${account_id}: the platform asks it to wait 30 s (chats: 3).`,
    })
  })
})
