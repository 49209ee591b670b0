/** Running campaigns: messages are sent when due, never twice, and everything that holds or ends them. */
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type CampaignPlace, openCampaigns } from '../../../../test/harness/campaigns.ts'
import { sql } from '../../../db/sql.ts'
import { type Ending, settle } from '../../../ledger/settle.ts'
import { newId } from '../../../lib/ids.ts'
import { readMessages } from '../../../platform/sandbox/person-acts.ts'
import { setAccountEnabled } from '../../accounts/accounts.ts'
import { addSuppression } from '../../suppressions/suppressions.ts'
import { loops } from './loops.ts'

let place: CampaignPlace
let account_id: string
beforeAll(async () => {
  place = await openCampaigns()
})
beforeEach(async () => {
  await place.fresh()
  account_id = await place.account()
})
afterEach(async () => {
  expect(await place.judge()).toEqual([])
})
afterAll(() => place.close())

const hour = 3_600
const day = 24 * hour
const daily = [{ wait_hours: 24 }, { wait_hours: 24 }]

async function chatsWith(count: number, given = {}) {
  const people = await place.people(account_id, count, given)
  return people.map((person_id) => ({ account_id, person_id }))
}

async function usedAndSent(): Promise<unknown> {
  return place.db.one(sql`
    select coalesce(sum(used), 0)::int as used, coalesce(sum(sent), 0)::int as sent from account_days
    where account_id = ${account_id}`)
}

async function events(): Promise<unknown[]> {
  const all = await place.work.events(place.tenant.workspace_id)
  return all.filter(({ type }) => type === 'campaign.replied').map(({ data }) => data)
}

/** Of all together, then of each quarter of an hour. */
async function optOuts(campaign_id: string): Promise<number[]> {
  const rows = await place.db.rows<{ opted_out: number }>(sql`
    select opted_out::int from campaign_counts where campaign_id = ${campaign_id} and opted_out > 0 order by at`)
  return rows.map(({ opted_out }) => opted_out)
}

describe('a sequence', () => {
  test('goes out message by message, keeps the gap, and completes', async () => {
    const chats = await chatsWith(2)
    const [one, two] = chats.map(({ person_id }) => person_id)
    const id = await place.campaign({ chats, steps: [{ wait_hours: 24 }, { wait_hours: 48 }] })
    await place.advance(2 * hour)
    expect(place.sent()).toEqual([
      { person: one, text: 'First message', at: 0 },
      { person: two, text: 'First message', at: 15 },
    ])
    expect(await place.status(id)).toBe('sending')
    await place.advance(100 * hour)
    expect(place.sent().slice(2)).toEqual([
      { person: one, text: 'Step 1', at: day },
      { person: two, text: 'Step 1', at: day + 15 },
      { person: one, text: 'Step 2', at: 3 * day },
      { person: two, text: 'Step 2', at: 3 * day + 15 },
    ])
    expect(await place.statuses(id)).toEqual(['completed', 'completed'])
    expect(await place.status(id)).toBe('completed')
    expect(await usedAndSent()).toEqual({ used: 6, sent: 6 })
  })

  test('waits for its time, and is paused after a missed start if the operator says so', async () => {
    const chats = await chatsWith(1)
    const { now } = await place.db.one<{ now: Date }>(sql`select domain_now() as now`)
    const id = await place.campaign({
      chats,
      steps: daily,
      scheduled_at: new Date(now.getTime() + hour * 1000),
    })
    expect(await place.status(id)).toBe('scheduled')
    await place.advance(hour - 1)
    expect(place.sent()).toEqual([])
    await place.advance(2)
    expect(place.sent().map(({ at }) => at)).toEqual([hour])
  })

  test('holds while paused, continues when resumed, and ends when cancelled', async () => {
    const chats = await chatsWith(3)
    const id = await place.campaign({ chats, steps: daily })
    await place.advance(1)
    await place.control(id, 'pause')
    await place.advance(day)
    expect(place.sent()).toHaveLength(1)
    await place.control(id, 'resume')
    await place.advance(20)
    expect(place.sent().map(({ text }) => text)).toEqual(['First message', 'Step 1', 'First message'])
    await place.control(id, 'cancel')
    await place.advance(10 * day)
    expect(place.sent()).toHaveLength(3)
    expect(await place.statuses(id)).toEqual(['cancelled', 'cancelled', 'cancelled'])
  })
})

describe('an account with no recipient due in a campaign', () => {
  const dueTimes = (id: string) =>
    place.db.one<{ due_at: string; next_action_at: string }>(sql`
      select c.due_at::text, r.next_action_at::text from campaign_accounts c join campaign_recipients r using (campaign_id)
      where c.campaign_id = ${id}`)
  const putOff = () =>
    loops()
      .find(({ name }) => name === 'campaigns')
      ?.step(place.app, AbortSignal.timeout(60_000))

  test('does not look at it again until one is due', async () => {
    const id = await place.campaign({ chats: await chatsWith(1), steps: daily })
    await place.advance(hour)
    await putOff()
    const { due_at, next_action_at } = await dueTimes(id)
    expect(due_at).toBe(next_action_at)
    await place.advance(3 * day)
    expect(place.sent().map(({ text }) => text)).toEqual(['First message', 'Step 1', 'Step 2'])
  })

  test('is not delayed when a recipient becomes due earlier', async () => {
    const id = await place.campaign({ chats: await chatsWith(1), steps: daily })
    await place.advance(hour)
    await place.db.run(sql`update campaign_accounts set due_at = '-infinity' where campaign_id = ${id}`)
    const client = await place.db.client()
    try {
      await client.query('begin')
      await client.query(
        `update campaign_recipients set next_action_at = next_action_at - interval '1 hour' where campaign_id = '${id}'`,
      )
      await putOff()
      await client.query('commit')
    } finally {
      await client.end()
    }
    await putOff()
    const { due_at, next_action_at } = await dueTimes(id)
    expect(due_at).toBe(next_action_at)
  })
})

test('a change that moves no recipient does not wait for the row of their account', async () => {
  const id = await place.campaign({ chats: await chatsWith(1), steps: daily })
  await place.advance(hour)
  const client = await place.db.client()
  try {
    await client.query('begin')
    await client.query(`select 1 from campaign_accounts where campaign_id = '${id}' for update`)
    await place.db.run(sql`update campaign_recipients set told_name = 'Mara' where campaign_id = ${id}`)
  } finally {
    await client.end()
  }
  expect(await place.statuses(id)).toEqual(['waiting'])
})

describe('quota', () => {
  test('is counted per account over all campaigns, and follow-ups go first', async () => {
    const chats = await chatsWith(6)
    const { seconds } = await place.db.one<{ seconds: number }>(sql`
      select extract(epoch from date_trunc('day', domain_now()) + interval '1 day' - domain_now())::int as seconds`)
    await place.advance(seconds)
    const first = await place.campaign({ chats: chats.slice(0, 3), quota: 2, steps: [{ wait_hours: 20 }] })
    const second = await place.campaign({ chats: chats.slice(3), quota: 3, message_text: 'Other' })
    await place.advance(hour)
    // The first campaign has two of the day; the second may go on to three.
    expect(place.sent().map(({ text }) => text)).toEqual(['First message', 'First message', 'Other'])
    await place.advance(day)
    expect(
      place
        .sent()
        .slice(3)
        .map(({ text }) => text),
    ).toEqual(['Step 1', 'Step 1', 'Other'])
    await place.advance(3 * day)
    expect(await place.status(first)).toBe('completed')
    expect(await place.status(second)).toBe('completed')
    const { most } = await place.db.one<{ most: number }>(
      sql`select max(used) as most from account_days where account_id = ${account_id}`,
    )
    expect(most).toBe(3)
  })

  test('has a separate allowance for first messages to people who never wrote', async () => {
    await place.db.run(sql`update accounts set cold_per_day = 1 where id = ${account_id}`)
    const [known] = await chatsWith(1)
    const cold = [0, 1].map(() => ({ account_id, person_id: place.work.person() }))
    const id = await place.campaign({ chats: [...cold, ...(known ? [known] : [])] })
    await place.advance(hour)
    expect(place.sent().map(({ person }) => person)).toEqual([cold[0]?.person_id, known?.person_id])
    await place.advance(day)
    expect(place.sent()).toHaveLength(3)
    expect(await place.status(id)).toBe('completed')
  })
})

describe('a platform that stops first messages', () => {
  const write = (person_id: number) =>
    place.work.service.post('/messages', {
      key: place.tenant.key,
      body: { account_id, chat_id: `platform:chat:${person_id}`, text: 'This is Sales.' },
      headers: { 'Idempotency-Key': newId() },
    })

  test('gets none until the account is enabled again; answers and follow-ups continue', async () => {
    const [known] = await chatsWith(1)
    const strangers = [0, 1, 2].map(() => ({ account_id, person_id: place.work.person() }))
    for (const { person_id } of strangers) {
      await place.db.run(sql`
        insert into chats (account_id, chat_id, workspace_id, kind)
        values (${account_id}, ${person_id}, ${place.tenant.workspace_id}, 'private')`)
    }
    place.work.fault({ on: 'send', fault: 'refuse', error: 'cold_stopped', times: 1 })
    const [first, second] = strangers.map(({ person_id }) => person_id)
    // The platform refuses the first; of the second it is not asked.
    expect((await write(first ?? 0)).body).toMatchObject({ code: 'cold_stopped' })
    expect(await write(second ?? 0)).toMatchObject({ status: 403, body: { code: 'cold_stopped' } })
    expect((await write(known?.person_id ?? 0)).status).toBe(200)
    const id = await place.campaign({ chats: strangers })
    await place.advance(2 * day)
    expect(place.sent()).toHaveLength(1)
    const { body } = await place.work.service.get(`/campaigns/${id}`, { key: place.tenant.key })
    expect(body).toMatchObject({ campaign: { recipients: strangers.map(() => ({ blocked_by: 'quota' })) } })
    const strikes = await place.db.rows(
      sql`select kind from account_strikes where account_id = ${account_id}`,
    )
    expect(strikes).toEqual([{ kind: 'peer_flood' }])
    await setAccountEnabled(place.work.service.app, 'system', { id: account_id, enabled: true })
    await place.advance(day)
    expect(place.sent()).toHaveLength(4)
  })

  test('does not hold up those who have written behind those who have not', async () => {
    const [known] = await chatsWith(1)
    const strangers = [0, 1].map(() => ({ account_id, person_id: place.work.person() }))
    place.work.fault({ on: 'send', fault: 'refuse', error: 'cold_stopped', times: 1, account_id })
    const id = await place.campaign({ chats: [...strangers, ...(known ? [known] : [])] })
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['queued', 'queued', 'completed'])
    expect(place.sent().map(({ person }) => person)).toEqual([known?.person_id])
  })

  test('uses up no recipient: the one whose message it stopped gets it once the account is enabled again', async () => {
    const person_id = place.work.person()
    await place.db.run(sql`
      insert into chats (account_id, chat_id, workspace_id, kind)
      values (${account_id}, ${person_id}, ${place.tenant.workspace_id}, 'private')`)
    place.work.fault({ on: 'send', fault: 'refuse', error: 'cold_stopped', times: 1, account_id })
    const id = await place.campaign({ chats: [{ account_id, person_id }] })
    await place.advance(day)
    expect([await place.statuses(id), place.sent().length]).toEqual([['queued'], 0])
    await setAccountEnabled(place.work.service.app, 'system', { id: account_id, enabled: true })
    await place.advance(day)
    expect([await place.statuses(id), place.sent().length]).toEqual([['completed'], 1])
  })
})

describe('campaigns of an account whose sends keep ending with an unknown error', () => {
  test('hold until a person enables it; every page says why, and single messages go on', async () => {
    const { key } = place.tenant
    const { app } = place
    const chats = await chatsWith(3)
    const hold = sql`update account_hosts set campaigns_held_at = domain_now(), campaigns_held_by = 'NEW_LIMIT'`
    await place.db.run(sql`${hold} where account_id = ${account_id}`)
    const id = await place.campaign({ chats })
    await place.advance(day)
    expect(place.sent()).toEqual([])
    const { body } = await place.work.service.get(`/campaigns/${id}`, { key })
    expect(body).toMatchObject({
      campaign: { recipients: chats.map(() => ({ status: 'queued', blocked_by: 'account_not_ready' })) },
    })
    const foreseen = async () => {
      const answer = await place.work.service.get(`/campaigns/${id}/forecast`, { key })
      const { timetable } = answer.body as { timetable: { messages: unknown[] }[] }
      return timetable.map(({ messages }) => messages.length)
    }
    expect(await foreseen()).toEqual([0, 0, 0])
    const single = await place.work.service.post('/messages', {
      key,
      body: { account_id, chat_id: `platform:chat:${chats[0]?.person_id}`, text: 'A single message' },
      headers: { 'Idempotency-Key': newId() },
    })
    expect(single.status).toBe(200)
    await setAccountEnabled(app, 'system', { id: account_id, enabled: true })
    expect(await foreseen()).toEqual([1, 1, 1])
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(chats.map(() => 'completed'))
  })
})

describe('a reply', () => {
  test('ends the sequence, emits one event, and counts', async () => {
    const chats = await chatsWith(2)
    const id = await place.campaign({ chats, steps: daily })
    await place.advance(hour)
    const person_id = chats[0]?.person_id ?? 0
    place.work.write(account_id, person_id, 'Tell me more')
    place.work.write(account_id, person_id, 'Are you there?')
    await place.advance(4 * day)
    expect(await place.statuses(id)).toEqual(['replied', 'completed'])
    expect(place.sent().filter(({ person }) => person === person_id)).toHaveLength(1)
    expect(await events()).toMatchObject([
      {
        campaign_id: id,
        account_id,
        chat_id: `platform:chat:${person_id}`,
        step: 0,
        variant: 0,
        opted_out: false,
      },
    ])
    const counts = await place.db.one(sql`
      select sent::int, reached::int, replied::int, opted_out::int from campaign_counts
      where campaign_id = ${id} and at = '-infinity'`)
    expect(counts).toEqual({ sent: 4, reached: 2, replied: 1, opted_out: 0 })
  })

  test('counts within 30 days of the last message, and not later', async () => {
    const chats = await chatsWith(2)
    const id = await place.campaign({ chats })
    await place.advance(29 * day)
    place.work.write(account_id, chats[0]?.person_id ?? 0, 'I was away')
    await place.advance(2 * day)
    place.work.write(account_id, chats[1]?.person_id ?? 0, 'I was away for longer')
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['replied', 'completed'])
    expect(await events()).toHaveLength(1)
  })

  test('ends what is still pending, also more than 30 days after a message', async () => {
    const chats = await chatsWith(1)
    const id = await place.campaign({ chats, steps: [{ wait_hours: 60 * 24 }] })
    await place.advance(40 * day)
    place.work.write(account_id, chats[0]?.person_id ?? 0, 'I was away')
    await place.advance(30 * day)
    expect(await place.statuses(id)).toEqual(['replied'])
    expect(place.sent()).toHaveLength(1)
    expect(await events()).toHaveLength(1)
  })

  test('belongs to the campaign that wrote last, and later messages are no reply to the one before', async () => {
    const chats = await chatsWith(1)
    const person_id = chats[0]?.person_id ?? 0
    const earlier = await place.campaign({ chats })
    await place.advance(hour)
    const later = await place.campaign({ chats })
    await place.advance(hour)
    for (const text of ['Tell me more', 'Are you there?']) {
      place.work.write(account_id, person_id, text)
      await place.advance(hour)
    }
    expect([await place.statuses(later), await place.statuses(earlier)]).toEqual([['replied'], ['completed']])
    expect(await events()).toMatchObject([{ campaign_id: later }])
  })

  test("to an earlier message emits its event and counts while the next one's outcome is unknown", async () => {
    const chats = await chatsWith(1)
    const id = await place.campaign({ chats, steps: daily })
    await place.advance(hour)
    place.work.fault({ on: 'send', fault: 'unavailable', times: 1, account_id })
    await place.advance(day)
    expect(await place.statuses(id)).toEqual(['submitting'])
    place.work.write(account_id, chats[0]?.person_id ?? 0, 'Tell me more')
    await place.advance(2 * day)
    expect(await place.statuses(id)).toEqual(['replied'])
    expect(await events()).toMatchObject([{ campaign_id: id, step: 0 }])
    const counts = await place.db.one(sql`
      select replied::int from campaign_counts where campaign_id = ${id} and at = '-infinity'`)
    expect(counts).toEqual({ replied: 1 })
  })

  /** A message that has crossed, with no outcome yet. */
  async function crossed(campaign_id: string, step_no: number) {
    const [id, token] = [newId(), randomUUID()]
    await place.db.run(sql`
      insert into operations (id, workspace_id, kind, effect, fingerprint, state, account_id, chat_id, payload, random_id,
        campaign_id, recipient_id, step_no, attempt_token)
      select ${id}, workspace_id, 'campaign_message', 'platform', ${Buffer.alloc(32)}, 'submitting', account_id, chat_id,
        '{"text": "x", "branch": null, "variant": 0, "found": false}', ${step_no}, campaign_id, id, ${step_no}, ${token}
      from campaign_recipients where campaign_id = ${campaign_id}`)
    await place.db.run(sql`
      update campaign_recipients set status = 'submitting', next_action_at = null where campaign_id = ${campaign_id}`)
    const end = (ending: Ending) =>
      place.db.transaction((tx) => settle(tx, place.app.operations, [{ id, token, ending }]))
    return { end }
  }

  async function heard(campaign_id: string): Promise<boolean> {
    const { at } = await place.db.one<{ at: Date | null }>(
      sql`select replied_at as at from campaign_recipients where campaign_id = ${campaign_id}`,
    )
    return at !== null
  }

  test('to an earlier message counts while the next one is refused', async () => {
    const chats = await chatsWith(1)
    const id = await place.campaign({ chats, steps: daily })
    await place.advance(hour)
    const { end } = await crossed(id, 1)
    place.work.write(account_id, chats[0]?.person_id ?? 0, 'STOP')
    await place.until('it is heard', () => heard(id))
    await end({ to: 'refused', refusal: 'blocked_by_person' })
    expect(await place.statuses(id)).toEqual(['replied'])
    expect(await events()).toMatchObject([{ campaign_id: id, step: 0, opted_out: true }])
    expect(await optOuts(id)).toEqual([1, 1])
  })

  test('does not count when the first message provably did not go out', async () => {
    const chats = await chatsWith(1)
    const id = await place.campaign({ chats, scheduled_at: new Date('2999-01-01T00:00:00Z') })
    const { end } = await crossed(id, 0)
    place.work.write(account_id, chats[0]?.person_id ?? 0, 'Good morning')
    await place.until('it is heard', () => heard(id))
    await end({ to: 'released', reason: 'never_written' })
    expect([await place.statuses(id), await heard(id), await events()]).toEqual([['queued'], false, []])
  })

  test('that asks to stop is counted separately, and ends pending messages to that person elsewhere', async () => {
    const chats = await chatsWith(1)
    const other = await place.account()
    const person_id = chats[0]?.person_id ?? 0
    const id = await place.campaign({ chats, steps: daily })
    await place.advance(hour)
    const later = await place.campaign({ chats: [{ account_id: other, person_id }], steps: daily })
    await place.db.run(
      sql`update account_hosts set next_campaign_at = domain_now() + interval '1 day' where account_id = ${other}`,
    )
    place.work.write(account_id, person_id, 'STOP')
    await place.advance(5 * day)
    expect(await place.statuses(id)).toEqual(['replied'])
    expect(await place.statuses(later)).toEqual(['suppressed'])
    const row = await place.db.one(sql`select opted_out from campaign_recipients where campaign_id = ${id}`)
    expect(row).toEqual({ opted_out: true })
    expect(await events()).toMatchObject([{ campaign_id: id, opted_out: true }])
    expect(await optOuts(id)).toEqual([1, 1])
    expect(place.sent()).toHaveLength(1)
  })
})

describe('people who get no message', () => {
  test('a new suppression ends pending recipients in its own transaction', async () => {
    const chats = await chatsWith(2)
    const id = await place.campaign({ chats, steps: daily })
    await place.advance(1)
    const { workspace_id } = place.tenant
    const platform_id = String(chats[1]?.person_id)
    await addSuppression(place.app, 'system', { workspace_id, platform_id })
    expect(await place.statuses(id)).toEqual(['waiting', 'suppressed'])
    await place.advance(4 * day)
    expect(place.sent()).toHaveLength(3)
    expect(await place.status(id)).toBe('completed')
  })

  test("a suppressed number also matches the platform's spelling of it", async () => {
    const chats = await chatsWith(1, { phone: '+49 (0)170 555-04 04' })
    const id = await place.campaign({ chats, steps: daily })
    await place.advance(1)
    expect(await place.statuses(id)).toEqual(['waiting'])
    const { workspace_id } = place.tenant
    await addSuppression(place.app, 'system', { workspace_id, phone: '0049 170 5550404' })
    expect(await place.statuses(id)).toEqual(['suppressed'])
  })

  test('a permanent refusal fails the recipient and refunds the quota', async () => {
    const chats = await chatsWith(1, { behaviour: 'blocks' })
    const id = await place.campaign({ chats, steps: daily })
    await place.advance(day)
    expect(await place.recipients(id)).toMatchObject([{ status: 'failed', reason: 'blocked_by_person' }])
    expect(await usedAndSent()).toEqual({ used: 0, sent: 0 })
    expect(await place.status(id)).toBe('completed')
  })
})

describe('what holds', () => {
  test('a flood wait stops the account, and the recipient stays due', async () => {
    const chats = await chatsWith(2)
    place.work.fault({ on: 'send', fault: 'flood_wait', seconds: 600, times: 1, account_id })
    const id = await place.campaign({ chats })
    await place.advance(500)
    expect(place.sent()).toEqual([])
    expect(await usedAndSent()).toEqual({ used: 0, sent: 0 })
    await place.advance(200)
    expect(place.sent().map(({ at }) => at)).toEqual([600, 615])
    expect(await place.status(id)).toBe('completed')
  })

  test('a closed gate, an allowlist without the user, a disabled user and dispatch off each stop it', async () => {
    const chats = await chatsWith(5)
    const id = await place.campaign({ chats })
    const { user_id } = place.tenant
    const holds: [() => Promise<unknown>, () => Promise<unknown>][] = [
      [() => place.work.service.shut('campaigns'), () => place.work.service.open('campaigns')],
      [() => place.work.service.allow(place.tenant, false), () => place.work.service.allow(place.tenant)],
      [
        () => place.db.run(sql`update users set disabled_at = now() where id = ${user_id}`),
        () => place.db.run(sql`update users set disabled_at = null where id = ${user_id}`),
      ],
      [
        () => place.db.run(sql`update settings set value = 'false' where name = 'dispatch'`),
        () => place.db.run(sql`update settings set value = 'true' where name = 'dispatch'`),
      ],
    ]
    await place.advance(1)
    for (const [at, [hold, release]] of holds.entries()) {
      await hold()
      await place.advance(hour)
      expect(place.sent()).toHaveLength(at + 1)
      await release()
      await place.advance(1)
      expect(place.sent()).toHaveLength(at + 2)
    }
    expect(await place.status(id)).toBe('completed')
  })

  test("the workspace's sending window stops it", async () => {
    const { workspace_id } = place.tenant
    await place.db.run(sql`
      update workspaces set sending_window = 'mon-sun 00:00-00:01' where id = ${workspace_id}`)
    const chats = await chatsWith(1)
    const id = await place.campaign({ chats })
    await place.advance(day)
    expect(place.sent()).toHaveLength(1)
    const { at } = await place.db.one<{ at: string }>(
      sql`select to_char(last_sent_at at time zone 'UTC', 'HH24:MI:SS') as at from campaign_recipients where campaign_id = ${id}`,
    )
    expect(at).toBe('00:00:00')
  })
})

describe('branches', () => {
  test('only the message that was read takes the seen track', async () => {
    const account_id = await place.account()
    const [person_id = 0] = await place.people(account_id, 1)
    const steps = [{ wait_hours: 1 }, { wait_hours: 100 }]
    const id = await place.campaign({ chats: [{ account_id, person_id }], steps })
    await place.advance(2 * hour)
    const sent = await place.db.rows<{ message_id: number }>(sql`
      select (reply_body ->> 'message_id')::int as message_id from operations where campaign_id = ${id} order by step_no`)
    expect(sent).toHaveLength(2)
    const reads = async () => {
      const { read } = await place.db.one<{ read: boolean[] }>(sql`
        select array[reads[1] is not null, reads[2] is not null] as read from campaign_recipients where campaign_id = ${id}`)
      return read
    }
    const up_to_message_id = sent[0]?.message_id ?? 0
    readMessages(place.work.sandbox.world, { account_id, person_id, up_to_message_id })
    await place.advance(60)
    expect(await reads()).toEqual([true, false])
    readMessages(place.work.sandbox.world, { account_id, person_id })
    await place.advance(60)
    expect(await reads()).toEqual([true, true])
  })

  test.each(['branching', 'read_receipts'] as const)(
    'a step waits while the gate %s is closed',
    async (gate) => {
      const chats = await chatsWith(1)
      const steps = [{ branch: 'unseen' as const, wait_hours: 24, variants: ['You did not'] }]
      await place.campaign({ chats, steps, branching: true })
      await place.advance(hour)
      await place.work.service.shut(gate)
      await place.advance(2 * day)
      const before = place.sent().length
      await place.work.service.open(gate)
      await place.advance(60)
      expect([before, place.sent().length]).toEqual([1, 2])
    },
  )

  test('the step takes the track that fits when it is due', async () => {
    const chats = await chatsWith(2)
    const steps = [
      { branch: 'seen' as const, wait_hours: 24, variants: ['You read it'] },
      { branch: 'unseen' as const, wait_hours: 48, variants: ['You did not'] },
    ]
    await place.campaign({ chats, steps, branching: true })
    await place.advance(hour)
    const person_id = chats[0]?.person_id ?? 0
    readMessages(place.work.sandbox.world, { account_id, person_id })
    await place.advance(4 * day)
    expect(place.sent().slice(2)).toEqual([
      { person: person_id, text: 'You read it', at: day },
      { person: chats[1]?.person_id, text: 'You did not', at: 2 * day + 15 },
    ])
  })
})

describe('an unknown outcome', () => {
  test('continues as answered when the platform proves it later', async () => {
    const chats = await chatsWith(1)
    place.work.fault({ on: 'send', fault: 'drop_after', times: 1, account_id })
    const id = await place.campaign({ chats, steps: daily })
    await place.advance(5 * day)
    expect(place.sent()).toHaveLength(3)
    expect(await place.statuses(id)).toEqual(['completed'])
    expect(await usedAndSent()).toEqual({ used: 3, sent: 3 })
    const counts = await place.db.one(sql`
      select sent::int, ambiguous::int from campaign_counts where campaign_id = ${id} and at = '-infinity'`)
    expect(counts).toEqual({ sent: 3, ambiguous: 0 })
  })

  test('becomes final when the next message would be due, and gets no follow-up', async () => {
    const chats = await chatsWith(1)
    place.work.fault({ on: 'send', fault: 'unavailable', times: 1, account_id })
    const id = await place.campaign({ chats, steps: daily })
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['submitting'])
    await place.advance(day)
    expect(await place.statuses(id)).toEqual(['ambiguous'])
    expect(await place.status(id)).toBe('completed')
    expect(place.sent()).toEqual([])
    expect(await usedAndSent()).toEqual({ used: 1, sent: 0 })
  })
})
