/** Campaigns of Telegram accounts while the data centre is silent, asks to wait, or loses updates; and up to a reply. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { setAccountEnabled } from '../src/capabilities/accounts/accounts.ts'
import { listProblems } from '../src/capabilities/alerts/problems.ts'
import { listSuppressions } from '../src/capabilities/suppressions/suppressions.ts'
import { sql } from '../src/db/sql.ts'
import { newId } from '../src/lib/ids.ts'
import { run } from './harness/operator.ts'
import { until } from './harness/process.ts'
import { msMax, openTelegramStage, type TelegramStage } from './platform/telegram-stage.ts'

const keepUpdates = 20

let stage: TelegramStage
let account_id: string
beforeAll(async () => {
  stage = await openTelegramStage({
    gates: ['extended'],
    centreArgs: ['--keep-updates', String(keepUpdates)],
    workPatches: [
      { marker: 'limit: quiet session', replace: 'const quietMs = 3_000' },
      { marker: 'limit: answer to a ping', replace: 'const pingMsMax = 8_000' },
      { marker: 'limit: pace of the sync', replace: 'const paceMsDefault = 20' },
    ],
  })
})
beforeEach(async () => {
  account_id = await stage.account()
})
afterEach(async () => {
  await stage.ask('clearFaults', {})
  await stage.expectNothingTwice()
})
afterAll(() => stage.close())

const patient = { timeout: 900_000 }

interface Shown {
  readonly status: string
  readonly reason: string | null
  readonly blocked_by: string | null
  readonly chat_id: string | null
}

/** Every campaign has texts of its own, so that the platform's journal names the campaign. */
async function create(body: object): Promise<{ id: string; first: string; second: string }> {
  const first = `First of ${newId()}`
  const second = `Second of ${newId()}`
  const steps = [{ branch: 'no_reply', wait_hours: 24, variants: [second] }]
  const answer = await stage.service.post('/campaigns', {
    key: stage.tenant.key,
    body: { message_text: first, steps, ...body },
    headers: { 'idempotency-key': newId() },
  })
  expect([answer.status, answer.body]).toEqual([201, expect.anything()])
  return { id: (answer.body as { campaign: { id: string } }).campaign.id, first, second }
}

const chatsOf = (people: readonly number[]) => ({
  recipients: people.map((person) => ({ account_id, chat_id: `platform:chat:${person}` })),
})

async function recipients(id: string): Promise<Shown[]> {
  const { body } = await stage.service.get(`/campaigns/${id}`, { key: stage.tenant.key })
  return (body as { campaign: { recipients: Shown[] } }).campaign.recipients
}

/** Waits until every recipient is in this state. The pauses between campaign messages are skipped. */
async function untilStatuses(id: string, statuses: readonly string[]): Promise<void> {
  let seen: string[] = []
  await until(`the recipients are ${statuses}`, msMax, async () => {
    await stage.db.run(sql`update account_hosts set next_campaign_at = null where account_id = ${account_id}`)
    seen = (await recipients(id)).map(({ status }) => status)
    return seen.join() === statuses.join()
  }).catch((cause) => {
    throw new Error(`The recipients are ${seen}.`, { cause })
  })
}

/** As if a day had passed since their last message. */
async function passADay(id: string): Promise<void> {
  await stage.db.run(sql`
    update campaign_recipients set last_sent_at = last_sent_at - interval '25 hours',
      next_action_at = next_action_at - interval '25 hours' where campaign_id = ${id}`)
}

/** Whom the platform has accepted these texts for, in order. */
async function sentTo(...texts: readonly string[]): Promise<number[]> {
  const entries = (await stage.journal()).filter(({ text }) => text !== null && texts.includes(text))
  return entries.map(({ chat_id }) => Number(chat_id.replace('platform:chat:', '')))
}

async function untilSent(person: number, text: string): Promise<void> {
  await until('it is sent', msMax, async () => (await stage.send(account_id, person, text)).status === 200)
}

test(
  '503 while the connection is silent: campaigns hold and say why, and go on when it answers',
  patient,
  async () => {
    const people = await stage.people(account_id, 3)
    const [person = 0] = people
    stage.sandbox.signal('SIGSTOP')
    try {
      // The first may be written before the silence is noticed: its outcome is unknown until the platform proves it.
      let n = 0
      await until('sends are refused', msMax, async () => {
        const { status, body } = await stage.send(account_id, person, `silent ${account_id} ${n++}`)
        return status === 503 && body.code === 'session_unavailable'
      })
      const { id } = await create(chatsOf(people))
      expect((await recipients(id)).map(({ blocked_by }) => blocked_by)).toEqual(
        people.map(() => 'account_not_ready'),
      )
      stage.sandbox.signal('SIGCONT')
      await untilStatuses(id, ['waiting', 'waiting', 'waiting'])
      await untilSent(person, `after the silence ${account_id}`)
    } finally {
      stage.sandbox.signal('SIGCONT')
    }
  },
)

test('a look-up wait of 80,000 s stops look-ups only', patient, async () => {
  const people = await stage.people(account_id, 2)
  const username = `stranger_${people[0]}`
  await stage.person({ username })
  await stage.fault({ on: 'resolve', fault: 'flood_wait', seconds: 80_000, account_id, times: 0 })
  const start = () =>
    stage.service.post('/chats/start', {
      key: stage.tenant.key,
      body: { account_id, identifier: username },
      headers: { 'idempotency-key': newId() },
    })
  const flooded = await until('the platform asks to wait', msMax, async () => {
    const answer = await start()
    return answer.status === 429 ? answer : undefined
  })
  expect(Number(flooded.headers.get('retry-after'))).toBeGreaterThan(79_000)
  const cold = await create({ account_id, contacts: [{ identifier: username }] })
  const known = await create(chatsOf(people))
  await untilSent(people[0] ?? 0, `during the look-up wait ${account_id}`)
  await untilStatuses(known.id, ['waiting', 'waiting'])
  expect((await sentTo(known.first)).toSorted()).toEqual(people.toSorted())
  expect(await recipients(cold.id)).toMatchObject([{ status: 'queued', blocked_by: 'flood_wait' }])
})

test('endless waits on reading stop neither sends nor answers nor campaigns', patient, async () => {
  for (const on of ['chats', 'history', 'read_state'] as const) {
    await stage.fault({ on, fault: 'flood_wait', seconds: 80_000, times: 0 })
  }
  account_id = await stage.account()
  const people = await stage.people(account_id, 2)
  await until('the sync waits', msMax, async () => {
    const row = await stage.db.maybe(sql`
      select from account_hosts where account_id = ${account_id} and reading_flood_until > domain_now()`)
    return row !== undefined
  })
  const { id, first } = await create(chatsOf(people))
  await untilSent(people[0] ?? 0, `during the reading wait ${account_id}`)
  await untilStatuses(id, ['waiting', 'waiting'])
  expect((await sentTo(first)).toSorted()).toEqual(people.toSorted())
  await stage.ask('writeMessage', { account_id, person_id: people[1], text: 'Tell me more' })
  await untilStatuses(id, ['waiting', 'replied'])
  await untilSent(people[1] ?? 0, `an answer to the reply ${account_id}`)
  const { strikes } = await stage.db.one<{ strikes: number }>(sql`
    select count(*)::int as strikes from account_strikes where account_id = ${account_id}`)
  expect(strikes).toBe(0)
})

test(
  'a campaign up to a reply: no follow-up after it, and the platform is compared with the ledger',
  patient,
  async () => {
    const [silent = 0] = await stage.people(account_id, 1)
    const [replies = 0] = await stage.people(account_id, 1, { behaviour: 'replies', delay_seconds: 0 })
    const { id, first, second } = await create(chatsOf([silent, replies]))
    await untilStatuses(id, ['waiting', 'replied'])
    await passADay(id)
    await untilStatuses(id, ['completed', 'replied'])
    expect((await sentTo(first)).toSorted()).toEqual([silent, replies].toSorted())
    expect(await sentTo(second)).toEqual([silent])
    const verified = await run(stage.service, ['verify', 'campaign', id, '--platform'])
    expect([verified.code, verified.stderr]).toEqual([0, ''])
    expect(verified.stdout).toContain('Of 2 chats read from the platform, each has every accepted message')
    expect(verified.stdout).toContain('2 show messages without random ids')
  },
)

test(
  'five sends in a row with one unlisted error hold campaigns, also over a kill, until a person enables the account',
  patient,
  async () => {
    const people = await stage.people(account_id, 7)
    const [first = 0] = people
    const enable = () => run(stage.service, ['account', 'enable', account_id])
    const hold = async () => {
      const list = ['account', 'list', '--workspace', stage.tenant.workspace_id, '--json']
      const accounts = JSON.parse((await run(stage.service, list)).stdout)
      const own = accounts.find(({ id }: { id: string }) => id === account_id)
      expect(own.status).toBe('READY')
      return own.status_reason
    }
    const raised = async () => (await listProblems(stage.db)).filter(({ subject }) => subject === account_id)
    // Four with one name, then another end: the row begins again.
    await stage.fault({ on: 'send', fault: 'refuse', error: '400 NEW_LIMIT_9', account_id, times: 4 })
    for (let n = 0; n < 4; n++) {
      const answer = await stage.send(account_id, first, `refused ${n}`)
      expect([answer.status, answer.body.code]).toEqual([503, 'outcome_ambiguous'])
    }
    await untilSent(first, `accepted ${account_id}`)
    expect(await hold()).toBeNull()

    await stage.fault({ on: 'send', fault: 'refuse', error: '400 NEW_LIMIT_10', account_id, times: 0 })
    const { id } = await create(chatsOf(people))
    const five = Array.from({ length: 5 }, () => 'submitting')
    await untilStatuses(id, [...five, 'queued', 'queued'])
    expect(await hold()).toMatch(/^Sends kept ending with an error that Parley does not know: NEW_LIMIT\. /)
    expect(await raised()).toMatchObject([{ kind: 'campaigns_held' }])
    expect((await recipients(id)).slice(5).map(({ blocked_by }) => blocked_by)).toEqual([
      'account_not_ready',
      'account_not_ready',
    ])

    // Neither time, nor another worker, nor a message that arrives lets them go on.
    await stage.ask('clearFaults', {})
    await stage.killWorker()
    await stage.startWorker()
    await stage.untilLive(account_id)
    await untilSent(first, `during the hold ${account_id}`)
    await stage.db.run(sql`update account_hosts set next_campaign_at = null where account_id = ${account_id}`)
    const other = await stage.account()
    const [known = 0] = await stage.people(other, 1)
    const beside = await create({ recipients: [{ account_id: other, chat_id: `platform:chat:${known}` }] })
    await until('the account next to it has written', msMax, async () => {
      return (await recipients(beside.id))[0]?.status === 'waiting'
    })
    await untilStatuses(id, [...five, 'queued', 'queued'])
    expect((await enable()).code).toBe(0)
    expect([await hold(), await raised()]).toEqual([null, []])
    await untilStatuses(id, [...five, 'waiting', 'waiting'])
  },
)

test(
  'what another device of another account writes ends the sequence, and what Parley sends from there does not',
  patient,
  async () => {
    const other = await stage.account()
    const username = `by_hand_${newId().slice(-8)}`
    const [person_id = 0] = await stage.people(account_id, 1, { username })
    await stage.ask('writeMessage', { account_id: other, person_id, text: 'Hello, who is this?' })
    const { id, first, second } = await create({
      ...{ account_id, contacts: [{ identifier: username }], stop_on_own_message: true },
    })
    await untilStatuses(id, ['waiting'])
    await until('the other account has sent', msMax, async () => {
      const { status } = await stage.send(other, person_id, 'From a program')
      return status === 200
    })
    expect((await recipients(id)).map(({ status }) => status)).toEqual(['waiting'])
    await stage.ask('writeFromPhone', { account_id: other, person_id, text: 'We agreed on the phone' })
    await untilStatuses(id, ['completed'])
    expect(await recipients(id)).toMatchObject([{ reason: 'answered_by_hand', blocked_by: null }])
    await passADay(id)
    expect(await sentTo(first, second)).toEqual([person_id])
  },
)

test('a reply and an opt-out that arrive only through a gap end their sequences', patient, async () => {
  const [silent = 0, replied = 0, stopped = 0] = await stage.people(account_id, 3)
  const { id, second } = await create(chatsOf([silent, replied, stopped]))
  await untilStatuses(id, ['waiting', 'waiting', 'waiting'])
  await stage.killWorker()
  await stage.ask('writeMessage', { account_id, person_id: replied, text: 'Tell me more' })
  await stage.ask('writeMessage', { account_id, person_id: stopped, text: 'STOP' })
  const [noisy] = [await stage.person()]
  for (let n = 0; n < keepUpdates + 5; n++) {
    await stage.ask('writeMessage', { account_id, person_id: noisy, text: `while away ${n}` })
  }
  await stage.startWorker()
  await until('the account is RESTRICTED', msMax, async () => {
    const row = await stage.db.one<{ status: string }>(
      sql`select status from accounts where id = ${account_id}`,
    )
    return row.status === 'RESTRICTED'
  })
  // Enabling takes the lease away: a gap that is not stored by then restricts the account again.
  await until('the gap is stored', msMax, () =>
    stage.db.maybe(sql`
      select 1 from account_hosts h where h.account_id = ${account_id} and (h.gap_since is not null or exists (
        select from messages m where m.account_id = h.account_id and m.text = 'Tell me more'))`),
  )
  await passADay(id)
  await setAccountEnabled(stage.service.app, 'system', { id: account_id, enabled: true })
  await untilStatuses(id, ['completed', 'replied', 'replied'])
  expect(await sentTo(second)).toEqual([silent])
  const suppressed = await listSuppressions(stage.db, stage.tenant.workspace_id)
  expect(suppressed.map(({ value }) => value)).toContain(String(stopped))
  expect(suppressed.map(({ value }) => value)).not.toContain(String(replied))
})
