/** Which account takes which contact, when several accounts of one pool pick at the same moment. */
import { expect, test } from 'vitest'
import type { App } from '../../../app.ts'
import type { PlannedAccount } from '../planning/plan.ts'
import { pickFromPool } from '../pool.ts'
import { chooseDue, type Head } from './pick.ts'

const now = new Date('2026-11-02T09:00:00Z')
const app = { config: { start_chat_day: 100 } } as App

function row(given: Partial<Head>): Head {
  return {
    ...{ recipient_id: 'contact 1', campaign_id: 'pool', workspace_id: 'w', user_id: 'u', account_id: 'a' },
    ...{ untaken: true, kind: 'contacts', campaign_status: 'sending', message_text: 'Hello', steps: [] },
    ...{ branching_enabled: false, daily_quota_per_account: 9, max_followups: 5, scheduled_at: null },
    ...{ allowed: true, status: 'queued', step: 0, version: 1, chat_id: null, known_until: null },
    ...{ needs_lookup: true, unfound: false },
    ...{ contact: 'username:ada', person_id: null, tied_to: null },
    ...{ name: null, username: null, last_sent_at: null, next_action_at: now, read: false, cold: true },
    ...{ unknown_since: null, suppressed: false, ready: true, flood_until: null, next_campaign_at: null },
    ...{
      cold_per_day: null,
      used: 0,
      used_cold: 0,
      lookups: 0,
      timezone: 'UTC',
      zone_change: null,
      sending_window: null,
      now,
    },
    ...{ lookup_flood_until: null, cold_stopped: false, cold_ramp_from: null },
    ...given,
  }
}

test('an account takes the first remaining contact, also when an account before it has other work', () => {
  const other = row({ account_id: 'a', recipient_id: 'other', campaign_id: 'other', untaken: false })
  const heads = [
    other,
    row({ account_id: 'a', recipient_id: 'contact 1' }),
    row({ account_id: 'b', recipient_id: 'contact 2', used: 3 }),
    row({ account_id: 'c', recipient_id: 'contact 3' }),
  ]
  expect(
    chooseDue(app, heads).map((due) => [due.row.account_id, due.row.recipient_id, due.row.used]),
  ).toEqual([
    ['a', 'other', 0],
    ['b', 'contact 1', 3],
    ['c', 'contact 2', 0],
  ])
})

test('an account that has had its look-ups of a minute leaves the contact to the next, and sends what needs none', () => {
  const heads = [row({ account_id: 'a' }), row({ account_id: 'b' })]
  expect(chooseDue(app, heads, ['a']).map((due) => due.row.account_id)).toEqual(['b'])
  const found = row({
    account_id: 'a',
    recipient_id: 'found',
    untaken: false,
    needs_lookup: false,
    chat_id: '7',
  })
  expect(chooseDue(app, [row({}), found], ['a']).map((due) => due.row.recipient_id)).toEqual(['found'])
})

test('a page names the account that will take a contact: it skips one that cannot today', () => {
  const account: PlannedAccount = {
    ...{ ready: true, flood_until: null, next_campaign_at: null, cold_per_day: null, lookups_per_day: 9 },
    ...{ lookup_flood_until: null, cold_stopped: false, cold_ramp_from: null },
    ...{ used: 0, used_cold: 0, lookups: 0 },
  }
  const hours = { timezone: 'UTC', window: null }
  const busier = { ...account, used: 3 }
  const pick = (one: PlannedAccount) =>
    pickFromPool({ accounts: new Map(Object.entries({ one, busier })), hours, now }, [
      'one',
      'busier',
      'gone',
    ])
  expect(pick(account)).toBe(account)
  expect(pick({ ...account, ready: false })).toBe(busier)
  expect(pick({ ...account, lookups: 9 })).toBe(busier)
  expect(pick({ ...account, cold_per_day: 2, used_cold: 2 })).toBe(busier)
  expect(pick({ ...account, flood_until: new Date(now.getTime() + 1) })).toBe(busier)
  expect(pick({ ...account, lookup_flood_until: new Date(now.getTime() + 1) })).toBe(busier)
  expect(pick({ ...account, cold_stopped: true })).toBe(busier)
  const over = { ...account, flood_until: now }
  expect(pick(over)).toBe(over)
})
