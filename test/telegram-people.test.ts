/** People at the data centre whose names change hands: two accounts, campaigns and the suppression list, over Telegram's protocol. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { addSuppression } from '../src/capabilities/suppressions/suppressions.ts'
import { sql } from '../src/db/sql.ts'
import { newId } from '../src/lib/ids.ts'
import { until } from './harness/process.ts'
import { msMax, openTelegramStage, type TelegramStage } from './platform/telegram-stage.ts'

let stage: TelegramStage
let a: string
let b: string
beforeAll(async () => {
  stage = await openTelegramStage({
    gates: ['extended'],
    workPatches: [{ marker: 'limit: pace of the sync', replace: 'const paceMsDefault = 20' }],
  })
  a = await stage.account()
  b = await stage.account()
})
afterEach(() => stage.expectNothingTwice())
afterAll(() => stage.close())

const patient = { timeout: 240_000 }
const barred = { to: [], status: 400, reason: 'suppressed_recipient' }
let made = 0

/** A campaign to one contact; returns who got its message once it is final, and why if nobody did. */
async function write(account_id: string, identifier: string) {
  const text = `To ${identifier} ${newId()}`
  const answer = await stage.service.post('/campaigns', {
    key: stage.tenant.key,
    body: { message_text: text, account_id, contacts: [{ identifier }], daily_quota_per_account: 50 },
    headers: { 'idempotency-key': newId() },
  })
  if (answer.status !== 201) return { to: [], status: answer.status, reason: answer.body.code }
  const { id } = answer.body.campaign as { id: string }
  const recipient = await until('the recipient is final', msMax, async () => {
    await stage.db.run(sql`update account_hosts set next_campaign_at = null where account_id = ${account_id}`)
    const row = await stage.db.one<{ status: string; reason: string | null; ended_at: Date | null }>(sql`
      select status, reason, ended_at from campaign_recipients where campaign_id = ${id}`)
    return row.ended_at ? row : undefined
  })
  const sent = (await stage.journal()).filter((entry) => entry.text === text)
  const to = sent.map(({ chat_id }) => Number(chat_id.replace('platform:chat:', '')))
  return { to, status: recipient.status, reason: recipient.reason }
}

const change = (person_id: number, names: { username?: string | null; phone?: string | null }) =>
  stage.ask('changePerson', { person_id, ...names })

/** Opens the chat, and writes nothing: the platform knows of no chat by then. */
async function startChat(account_id: string, identifier: string): Promise<void> {
  const answer = await stage.service.post('/chats/start', {
    key: stage.tenant.key,
    body: { account_id, identifier },
    headers: { 'idempotency-key': newId() },
  })
  expect(answer.status).toBe(200)
}

async function untilNamed(account_id: string, person_id: number, username: string): Promise<void> {
  await until(`${account_id} has seen ${username}`, msMax, async () => {
    const row = await stage.db.maybe(sql`
      select from contacts where account_id = ${account_id} and provider_id = ${person_id} and username = ${username}`)
    return row !== undefined
  })
}

/** From now on the account gets texts without the people they name. Waits until it has one of the person. */
async function writesShort(account_id: string, person_id: number): Promise<void> {
  const text = `In short ${newId()}`
  await stage.ask('setShort', { account_id, short: true })
  await stage.ask('writeMessage', { account_id, person_id, text })
  await until('the text is stored', msMax, async () => {
    const row = await stage.db.maybe(sql`
      select from messages where account_id = ${account_id} and chat_id = ${person_id} and text = ${text}`)
    return row !== undefined
  })
}

test(
  'a username that the account has stored and that passed on leads to its present owner',
  patient,
  async () => {
    const username = `passed_on_${made++}`
    const [former = 0] = await stage.people(a, 1, { username })
    const owner = await stage.person()
    await change(owner, { username })
    // Until then the stored name counts, and ties the recipient to its former owner.
    await until('A has seen that the name is gone', msMax, async () => {
      const row = await stage.db.maybe(sql`
        select from contacts where account_id = ${a} and provider_id = ${former} and username is null`)
      return row !== undefined
    })
    expect(await write(a, `@${username}`)).toEqual({ to: [owner], status: 'completed', reason: null })
    expect(former).not.toBe(owner)
  },
)

test(
  'a username of somebody whose chat was only opened, and that passed on untold, leads to its present owner days later',
  patient,
  async () => {
    const username = `opened_${made++}`
    const [former, owner] = [await stage.person({ username }), await stage.person()]
    await startChat(a, username)
    await change(owner, { username })
    await stage.db.run(sql`
      update person_names set last_seen_at = last_seen_at - interval '3 days' where value = ${username}`)
    expect(await write(a, `@${username}`)).toEqual({ to: [owner], status: 'completed', reason: null })
    expect(former).not.toBe(owner)
  },
)

test(
  'a person found by a number that they do not show is tied to it: B may not write under their username',
  patient,
  async () => {
    const [username, phone] = [`hidden_${made++}`, `+4930666${1_000 + made}`]
    const person = await stage.person({ username, phone, phone_visible_to: [] })
    expect(await write(a, phone)).toEqual({ to: [person], status: 'completed', reason: null })
    await addSuppression(stage.service.app, 'cli:ana', { workspace_id: stage.tenant.workspace_id, phone })
    expect(await write(b, `@${username}`)).toEqual(barred)
  },
)

test(
  'a phone number that passed on leads to its present owner, and once it is listed neither gets anything',
  patient,
  async () => {
    const [username, phone] = [`had_number_${made++}`, `+4930444${1_000 + made}`]
    const [former = 0] = await stage.people(a, 1, { username, phone })
    const owner = await stage.person()
    await change(owner, { phone })
    const reached = { to: [owner], status: 'completed', reason: null }
    // Only A has stored the number as the former owner's. B's look-up shows whose it is, and A believes its own store no more.
    expect(await write(b, phone)).toEqual(reached)
    expect(await write(a, phone)).toEqual(reached)
    expect(await write(b, `@${username}`)).toEqual({ to: [former], status: 'completed', reason: null })
    await addSuppression(stage.service.app, 'cli:ana', { workspace_id: stage.tenant.workspace_id, phone })
    for (const account_id of [a, b]) expect(await write(account_id, phone)).toEqual(barred)
    // The former owner had given it up before it was listed.
    expect(await write(b, `@${username}`)).toEqual({ to: [former], status: 'completed', reason: null })
    const next = await stage.person()
    await change(next, { phone })
    expect(await write(b, String(owner))).toEqual(barred)
  },
)

test('a username that a bot or a group has taken gets nothing', patient, async () => {
  const [first, second] = [`taken_by_${made++}`, `taken_by_${made++}`]
  await stage.people(a, 1, { username: first })
  const [former = 0] = await stage.people(a, 1, { username: second })
  const bot = await stage.person({ kind: 'bot', username: `shop_${made++}_bot` })
  await change(bot, { username: first })
  await change(former, { username: null })
  await stage.ask('addGroup', { account_id: a, name: 'News', username: second, members: [] })
  const nothing = { to: [], status: 'failed', reason: 'identity_ineligible' }
  expect(await write(a, `@${first}`)).toEqual(nothing)
  expect(await write(a, `@${second}`)).toEqual(nothing)
})

test(
  'a person on the list by the number that only A sees gets nothing from B, also under a new username',
  patient,
  async () => {
    const [username, phone] = [`seen_by_a_${made++}`, `+4930555${1_000 + made}`]
    const [person = 0] = await stage.people(a, 1, { username, phone, phone_visible_to: [a] })
    await addSuppression(stage.service.app, 'cli:ana', { workspace_id: stage.tenant.workspace_id, phone })
    expect(await write(b, `@${username}`)).toEqual(barred)
    await change(person, { username: `${username}_new` })
    await until('A has seen the new username', msMax, async () => {
      const row = await stage.db.maybe(sql`
      select from contacts where account_id = ${a} and username = ${`${username}_new`}`)
      return row !== undefined
    })
    expect(await write(b, `@${username}_new`)).toEqual(barred)
    // Nor under a number that the list has never had, whether an account has seen it by then or only B's look-up shows it.
    await stage.ask('changePerson', { person_id: person, phone_visible_to: [b] })
    await change(person, { phone: `${phone}9` })
    expect(await write(b, `${phone}9`)).toMatchObject({
      to: [],
      reason: expect.stringMatching(/^suppressed/),
    })
  },
)

test(
  'a text without its people teaches no name from before: who has another one by now stays on the list under that',
  patient,
  async () => {
    const account = await stage.account()
    const [before, now] = [`kept_${made++}`, `shown_${made++}`]
    const [person = 0, taker = 0] = [
      ...(await stage.people(b, 1, { username: before })),
      ...(await stage.people(b, 1)),
    ]
    // The account knows them by a look-up alone, so it is not told of a new name.
    const error = '403 USER_PRIVACY_RESTRICTED'
    await stage.fault({ on: 'send', fault: 'refuse', error, account_id: account })
    expect(await write(account, `@${before}`)).toMatchObject({ to: [], reason: 'privacy_restricted' })
    await stage.killWorker()
    await stage.startWorker()
    for (const id of [a, b, account]) await stage.untilLive(id)
    await change(person, { username: now })
    await change(taker, { username: before })
    await untilNamed(b, person, now)
    await untilNamed(b, taker, before)
    await writesShort(account, person)
    await addSuppression(stage.service.app, 'cli:ana', {
      workspace_id: stage.tenant.workspace_id,
      username: now,
    })
    expect(await write(account, String(person))).toEqual(barred)
    expect(await write(b, `@${before}`)).toEqual({ to: [taker], status: 'completed', reason: null })
  },
)

test(
  'a text without its people does not say that a person whose name was taken has none: another one stays theirs',
  patient,
  async () => {
    const account = await stage.account()
    const [before, now] = [`taken_${made++}`, `instead_${made++}`]
    const [person = 0, taker = 0] = [
      ...(await stage.people(b, 1, { username: before })),
      ...(await stage.people(b, 1)),
    ]
    await startChat(account, before)
    await change(taker, { username: before })
    await change(person, { username: now })
    await untilNamed(b, taker, before)
    await untilNamed(b, person, now)
    expect(await write(account, `@${before}`)).toMatchObject({ to: [taker], status: 'completed' })
    await writesShort(account, person)
    await addSuppression(stage.service.app, 'cli:ana', {
      workspace_id: stage.tenant.workspace_id,
      username: now,
    })
    expect(await write(account, String(person))).toEqual(barred)
  },
)
