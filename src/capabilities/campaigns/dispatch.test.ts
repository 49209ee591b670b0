/** Campaigns as they run: sent when due, never twice, and everything that holds or ends them. */
import { afterEach, describe, expect, test } from 'vitest'
import { sql } from '../../db/sql.ts'
import { type CampaignPlace, openCampaigns } from '../../../test/harness/campaigns.ts'

let place: CampaignPlace
afterEach(() => place.close())

const hour = 3_600

describe('a sequence', () => {
  test('goes out message by message, keeps the gap, and completes', async () => {
    place = await openCampaigns()
    const account_id = await place.work.connected(place.tenant)
    const [one = 0, two = 0] = await place.people(account_id, 2)
    const chats = [one, two].map((person_id) => ({ account_id, person_id }))
    const id = await place.campaign({ chats, steps: [{ wait_hours: 24 }, { wait_hours: 48 }] })
    await place.advance(2 * hour)
    expect(place.sent()).toEqual([
      { person: one, text: 'First message', at: 0 },
      { person: two, text: 'First message', at: 15 },
    ])
    expect(await place.status(id)).toBe('sending')
    await place.advance(100 * hour)
    expect(place.sent().slice(2)).toEqual([
      { person: one, text: 'Step 1', at: 24 * hour },
      { person: two, text: 'Step 1', at: 24 * hour + 15 },
      { person: one, text: 'Step 2', at: 72 * hour },
      { person: two, text: 'Step 2', at: 72 * hour + 15 },
    ])
    expect(await place.statuses(id)).toEqual(['completed', 'completed'])
    expect(await place.status(id)).toBe('completed')
    const [used] = await place.db.rows(sql`select sum(used)::int as used, sum(sent)::int as sent from account_days`)
    expect(used).toEqual({ used: 6, sent: 6 })
  })
})
