/** What one account has learned of a person or heard from them, and what the other accounts of the workspace do then. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type CampaignPlace, openCampaigns } from '../../../test/harness/campaigns.ts'
import { sql } from '../../db/sql.ts'
import { setAccountEnabled } from '../accounts/accounts.ts'
import { addSuppression } from '../suppressions/suppressions.ts'

let place: CampaignPlace
let a: string
let b: string
beforeAll(async () => {
  place = await openCampaigns({ PARLEY_PACING_SECONDS: '0' })
})
beforeEach(async () => {
  await place.fresh()
  a = await place.account()
  b = await place.account()
})
afterEach(async () => {
  expect(await place.judge()).toEqual([])
})
afterAll(() => place.close())

const hour = 3_600
const day = 24 * hour
const daily = [{ wait_hours: 24 }, { wait_hours: 24 }]
let made = 0

function someone(given: { readonly phone_visible_to?: readonly string[] } = {}) {
  const username = `elsewhere_${made++}`
  const phone = `4930${String(5_550_000 + made)}`
  const { person_id } = place.work.sandbox.world.addPerson({
    ...{ name: 'Mara', username, phone: `+${phone}` },
    ...given,
  })
  return { person_id, username, phone }
}

/** The person writes to the account, which stores it. */
async function hears(account_id: string, person_id: number, text = 'Hello, who is this?'): Promise<void> {
  const { length } = await place.work.messages(account_id)
  place.work.write(account_id, person_id, text)
  await place.work.untilStored(account_id, length + 1)
}

const post = (path: string, body: object) =>
  place.work.service.post(path, {
    key: place.tenant.key,
    headers: { 'idempotency-key': `elsewhere-${made++}` },
    body,
  })

async function inDays(days: number): Promise<Date> {
  const { now } = await place.db.one<{ now: Date }>(sql`select domain_now() as now`)
  return new Date(now.getTime() + days * day * 1_000)
}

const receivers = () => place.sent().map(({ person }) => person)

describe('a person on the list under a number that only another account sees', () => {
  test('gets no broadcast, and the preview of a campaign says so', async () => {
    const [listed, other] = [someone({ phone_visible_to: [a] }), someone()]
    await hears(a, listed.person_id)
    for (const { person_id } of [listed, other]) await hears(b, person_id)
    await addSuppression(place.app, 'cli:ana', {
      workspace_id: place.tenant.workspace_id,
      phone: listed.phone,
    })
    const chatOf = ({ person_id }: { person_id: number }) => `platform:chat:${person_id}`
    const preview = await post('/campaigns/preview', {
      message_text: 'First message',
      recipients: [listed, other].map((one) => ({ account_id: b, chat_id: chatOf(one) })),
    })
    expect(preview.body).toMatchObject({
      creatable: false,
      excluded: [{ chat_id: chatOf(listed), code: 'suppressed_recipient' }],
    })
    const broadcast = await post('/broadcast', {
      ...{ account_id: b, audience_type: 'stage', audience_ref: 'new', message_text: 'News' },
    })
    expect(broadcast.body, broadcast.body.error).toMatchObject({ recipients: 1, audience_total: 1 })
    await place.advance(hour)
    expect(receivers()).toEqual([other.person_id])
  })

  test('gets no broadcast that was queued before', async () => {
    const listed = someone({ phone_visible_to: [a] })
    for (const account_id of [a, b]) await hears(account_id, listed.person_id)
    const id = await place.campaign({
      kind: 'broadcast',
      chats: [{ account_id: b, person_id: listed.person_id }],
      scheduled_at: await inDays(1),
    })
    await addSuppression(place.app, 'cli:ana', {
      workspace_id: place.tenant.workspace_id,
      phone: listed.phone,
    })
    expect(await place.statuses(id)).toEqual(['suppressed'])
    expect(receivers()).toEqual([])
  })
})

describe('a person who was renamed', () => {
  test('gets what is meant for their chat, without a look-up', async () => {
    const one = someone()
    await hears(a, one.person_id)
    const id = await place.campaign({ chats: [{ account_id: a, person_id: one.person_id }], steps: daily })
    place.work.sandbox.world.changePerson(one.person_id, { username: `${one.username}_new` })
    await place.advance(3 * day)
    expect([await place.statuses(id), receivers()]).toEqual([
      ['completed'],
      [one.person_id, one.person_id, one.person_id],
    ])
    const { lookups } = await place.db.one<{ lookups: number }>(sql`
      select coalesce(sum(lookups), 0)::int as lookups from account_days where account_id = ${a}`)
    expect(lookups).toBe(0)
  })
})

describe('a reply to A', () => {
  /** Each account has written to the person once. */
  async function begun(person_id: number): Promise<string[]> {
    const ids: string[] = []
    for (const account_id of [a, b]) {
      await hears(account_id, person_id)
      ids.push(await place.campaign({ chats: [{ account_id, person_id }], steps: daily }))
    }
    await place.advance(hour)
    for (const id of ids) expect(await place.statuses(id)).toEqual(['waiting'])
    return ids
  }

  test("is the reply of B's sequence too: one event and one reply for each", async () => {
    const { person_id } = someone()
    const ids = await begun(person_id)
    place.work.write(a, person_id, 'Yes please, call me')
    await place.until('both have ended', async () => (await place.statuses(ids[1] ?? ''))[0] === 'replied')
    const events = (await place.work.events(place.tenant.workspace_id))
      .filter(({ type }) => type === 'campaign.replied')
      .map(({ data }) => data as unknown as { campaign_id: string; account_id: string; opted_out: boolean })
    expect(
      events.map(({ campaign_id, account_id, opted_out }) => [campaign_id, account_id, opted_out]),
    ).toEqual(expect.arrayContaining(ids.map((id) => [id, a, false])))
    expect(events).toHaveLength(2)
    await place.advance(3 * day)
    for (const id of ids) {
      const shown = await place.work.service.get(`/campaigns/${id}`, { key: place.tenant.key })
      expect(shown.body.campaign).toMatchObject({ status: 'completed', totals: { replied: 1 } })
      const [step] = (shown.body.campaign as { reporting: { sent: number; replies: number }[] }).reporting
      expect(step).toMatchObject({ sent: 1, replies: 1 })
    }
    expect(receivers()).toEqual([person_id, person_id])
  })

  test('that asks to stop also ends what B was still to send first', async () => {
    const { person_id } = someone()
    const ids = await begun(person_id)
    const later = await place.campaign({
      chats: [{ account_id: b, person_id }],
      scheduled_at: await inDays(2),
    })
    place.work.write(a, person_id, 'STOP')
    await place.until('both have ended', async () => (await place.statuses(ids[1] ?? ''))[0] === 'replied')
    expect(await place.statuses(later)).toEqual(['suppressed'])
    await place.advance(5 * day)
    expect(receivers()).toEqual([person_id, person_id])
  })

  test('that is away is no reply until it is stored: B goes on, and ends then', async () => {
    const { person_id } = someone()
    const ids = await begun(person_id)
    await setAccountEnabled(place.app, 'cli:ana', { id: a, enabled: false })
    await place.until('A is away', async () => (await place.work.status(a)) !== 'READY')
    place.work.write(a, person_id, 'Yes please, call me')
    await place.advance(day)
    expect(await place.statuses(ids[1] ?? '')).toEqual(['waiting'])
    expect(receivers()).toEqual([person_id, person_id, person_id])
    await setAccountEnabled(place.app, 'cli:ana', { id: a, enabled: true })
    await place.until('both have ended', async () => (await place.statuses(ids[1] ?? ''))[0] === 'replied')
    await place.advance(3 * day)
    expect(receivers()).toEqual([person_id, person_id, person_id])
  })
})
