/** A new time zone opens no second day: quota, plan and page follow the day that has begun. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type CampaignPlace, openCampaigns } from '../../../test/harness/campaigns.ts'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { sql } from '../../db/sql.ts'
import { dayOf } from '../../ledger/workspace-days.ts'
import { changeOf, dayAt, type Zone } from '../../rules/zones.ts'

let place: CampaignPlace
beforeAll(async () => {
  place = await openCampaigns({ PARLEY_PACING_SECONDS: '0' })
})
afterEach(async () => {
  expect(await place.judge()).toEqual([])
})
afterAll(() => place.close())

const hour = 3_600

async function patch(timezone: string) {
  const cookie = await signIn(place.work.service, place.tenant.user_id)
  const path = `/w/${place.tenant.workspace_id}/workspace`
  const { status, body } = await askDashboard(place.work.service, 'PATCH', path, {
    cookie,
    body: { timezone },
  })
  expect(status).toBe(200)
  return body.workspace as { timezone: string; timezone_before: string | null; timezone_from: string | null }
}

test('PATCH /workspace 200: the quota of the day that has begun stays used, however often the zone changes', async () => {
  await place.fresh()
  const account_id = await place.account()
  const people = await place.people(account_id, 6)
  // It is 09:00 UTC, and 23:00 on Kiritimati: its next day begins in an hour.
  const chats = people.map((person_id) => ({ account_id, person_id }))
  await place.campaign({ chats, quota: 2 })
  await place.advance(60)
  expect(place.sent()).toHaveLength(2)
  expect(await patch('Pacific/Kiritimati')).toMatchObject({
    timezone: 'Pacific/Kiritimati',
    timezone_before: 'UTC',
    timezone_from: expect.stringMatching(/T00:00:00.000Z$/),
  })
  for (const zone of ['Pacific/Apia', 'Etc/GMT+12', 'Pacific/Kiritimati']) {
    await place.advance(2 * hour)
    await patch(zone)
  }
  expect(place.sent()).toHaveLength(2)
  // 15:00 UTC by now. At midnight in UTC the day is over, and on Kiritimati it is 14:00 of the next one.
  await place.advance(8 * hour)
  expect(place.sent()).toHaveLength(2)
  await place.advance(2 * hour)
  expect(place.sent()).toHaveLength(4)
  expect(
    await place.db.one(sql`
    select timezone, timezone_from <= domain_now() as holds from workspaces where id = ${place.tenant.workspace_id}`),
  ).toEqual({
    timezone: 'Pacific/Kiritimati',
    holds: true,
  })
  await place.advance(8 * hour)
  expect(place.sent()).toHaveLength(4)
  await place.advance(2 * hour)
  expect(place.sent()).toHaveLength(6)
})

test('the day in SQL is the day of the planner', async () => {
  await place.fresh()
  const { workspace_id } = place.tenant
  // Each follows the one that is three further on: after Kiritimati, days would come again.
  const zones = [
    'Pacific/Kiritimati',
    'Europe/Berlin',
    'UTC',
    'Etc/GMT+12',
    'America/Havana',
    'Asia/Kathmandu',
  ]
  for (const [n, timezone] of zones.entries()) {
    const before: Zone = { timezone: zones[(n + 3) % zones.length] ?? 'UTC' }
    const changed = new Date(Date.UTC(2026, 2, 28, 5 * n, 30))
    const change = changeOf(before, changed)
    await place.db.run(sql`
      update workspaces set timezone = ${timezone}, timezone_before = ${change.before},
        timezone_from = ${change.from.toISOString()}::timestamptz, day_floor = ${change.floor}::date where id = ${workspace_id}`)
    // The day of the change ends at one of them.
    const times = Array.from({ length: 600 }, (_, at) => new Date(changed.getTime() + at * 10 * 60_000))
    const rows = await place.db.rows<{ day: string }>(sql`
      select ${dayOf(sql`w`, sql`t.at`)}::text as day
      from unnest(${times.map((at) => at.toISOString())}::timestamptz[]) with ordinality as t (at, place)
      join workspaces w on w.id = ${workspace_id} order by t.place`)
    expect(rows.map(({ day }) => day)).toEqual(times.map((at) => dayAt({ timezone, change }, at)))
  }
  await place.db.run(sql`
    update workspaces set timezone = 'UTC', timezone_before = null, timezone_from = null, day_floor = null
    where id = ${workspace_id}`)
})
