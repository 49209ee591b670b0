/**
 * The user's own phone and Parley on one account, while people write, connections are cut, the data centre is killed and its clock
 * moves by ten minutes: in the end both show what the data centre has, and nothing was sent twice. `TEST_PHONE_MINUTES=30` runs it in
 * full, `TEST_PHONE_SEED` repeats its decisions.
 */
import { randomInt, randomUUID } from 'node:crypto'
import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../src/db/sql.ts'
import type { JournalEntry } from '../src/platform/sandbox/entries.ts'
import { openWorld } from '../src/platform/sandbox/world.ts'
import { makeRandom, type Random } from './faults/random.ts'
import { hangMs, until } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { serviceId } from './platform/mtproto/service-chat.ts'
import { Phone } from './platform/phone.ts'
import { openTelegramStage, type TelegramStage } from './platform/telegram-stage.ts'

const minutes = Number(process.env.TEST_PHONE_MINUTES ?? 1)
const seed = Number(process.env.TEST_PHONE_SEED ?? randomInt(1_000_000))
/** After these minutes everything pauses and is compared. */
const minutesEach = 3
const peopleCount = 6
const pageSize = 100

const user = { account_id: 'user', phone: '+9996677777' }
let stage: TelegramStage
let phone: Phone
let account_id: string
/** The chats: people, and a group of all of them. */
let people: number[]
let group: number

beforeAll(async () => {
  process.stdout.write(`TEST_PHONE_SEED=${seed}\n`)
  stage = await openTelegramStage({ centreArgs: ['--dedupe', 'on'] })
  await stage.ask('addAccount', { ...user, name: 'Sales desk' })
  people = []
  for (let n = 0; n < peopleCount; n++) people.push(await stage.person({ name: `Person ${n}` }))
  const added = await stage.ask('addGroup', { account_id: user.account_id, name: 'Crew', members: people })
  group = (added as { chat_id: number }).chat_id
  for (const person_id of people) await write(person_id, { text: `Hello from ${person_id}` })
  account_id = await stage.account(user)
  phone = new Phone(stage.mtprotoPort)
  await phone.logIn(user.phone)
})
afterAll(async () => {
  await phone?.close()
  await stage?.close()
})

async function write(person_id: number, message: { text: string; chat_id?: number }): Promise<void> {
  await stage.ask('writeMessage', { account_id: user.account_id, person_id, ...message })
}

/** How often each act succeeded, and how often it failed: the data centre was away, or there was no such message. */
const tally: Record<string, number> = {}

function count(what: string): void {
  tally[what] = (tally[what] ?? 0) + 1
}

/** Every act has a text of its own. */
let texts = 0
const nextText = (by: string) => `${by} ${++texts}`

/** Any message of the chat that the phone knows. */
function pickMessage(random: Random, chat_id: number, isWanted = (_: boolean) => true): number | undefined {
  const known = [...(phone.chats.get(chat_id) ?? [])].filter(([, { out }]) => isWanted(out))
  // Mostly recent ones: what is on its way is more interesting.
  const recent = random.chance(0.7) ? known.slice(-3) : known
  return recent.length === 0 ? undefined : random.pick(recent)[0]
}

const pickChat = (random: Random) => (random.chance(0.2) ? group : random.pick(people))

/** Returns false if there was nothing to do, and throws if it failed. */
type Act = readonly [name: string, weight: number, act: (random: Random) => Promise<unknown>]

const ofPeople: readonly Act[] = [
  [
    'person writes',
    6,
    async (random) => {
      const person_id = random.pick(people)
      const text = nextText('person')
      await write(person_id, random.chance(0.2) ? { text, chat_id: group } : { text })
    },
  ],
  [
    'person edits',
    2,
    async (random) => {
      const person_id = random.pick(people)
      const message_id = pickMessage(random, person_id, (out) => !out)
      if (message_id === undefined) return false
      const edit = { person_id, message_id, text: nextText('person edits') }
      return stage.ask('editMessage', { account_id: user.account_id, ...edit })
    },
  ],
  [
    'person deletes',
    1,
    async (random) => {
      const person_id = random.pick(people)
      const message_id = pickMessage(random, person_id)
      if (message_id === undefined) return false
      return stage.ask('deleteMessage', { account_id: user.account_id, person_id, message_id })
    },
  ],
  [
    'person reads',
    2,
    async (random) => {
      await stage.ask('readMessages', { account_id: user.account_id, person_id: random.pick(people) })
    },
  ],
]

const ofPhone: readonly Act[] = [
  ['phone sends', 5, (random) => phone.send(pickChat(random), nextText('phone'), 1 + random.whole(2 ** 50))],
  [
    'phone edits',
    2,
    async (random) => {
      const chat_id = pickChat(random)
      const id = pickMessage(random, chat_id, (out) => out)
      return id !== undefined && phone.edit(chat_id, id, nextText('phone edits'))
    },
  ],
  [
    'phone deletes',
    1,
    async (random) => {
      const id = pickMessage(random, pickChat(random))
      return id !== undefined && phone.remove(id)
    },
  ],
  [
    'phone reads',
    2,
    async (random) => {
      const chat_id = pickChat(random)
      const id = pickMessage(random, chat_id)
      return id !== undefined && phone.read(chat_id, id)
    },
  ],
]

/** The last status of every key that a caller used, by the text of its message. */
const answered = new Map<string, number>()

/** As a caller does: with the same key until the answer is final. */
async function sendByParley(chat_id: number, text: string): Promise<boolean> {
  const key = randomUUID()
  for (let tries = 0; tries < 5; tries++) {
    const { status } = await stage.send(account_id, chat_id, text, key)
    answered.set(text, status)
    if (status !== 503 && status !== 429) return status === 200
    await sleep(500)
  }
  return false
}

const ofParley: readonly Act[] = [
  ['Parley sends', 5, (random) => sendByParley(pickChat(random), nextText('parley'))],
  [
    'Parley reads',
    2,
    async (random) => {
      const { status } = await stage.service.post(`/chats/platform:chat:${pickChat(random)}/read-state`, {
        key: stage.tenant.key,
        body: { account_id, unread: false },
        headers: { 'idempotency-key': randomUUID() },
      })
      return status === 200
    },
  ],
]

const cut = { case: 'cut', account_id: user.account_id } as const

/** How many of the account's connections it hit. */
async function cutNow(): Promise<number> {
  return ((await stage.ask('addHostility', { ...cut, on: 'now' })) as { struck: number }).struck
}

/** A cut that waits for its call has come. */
async function untilStruck(): Promise<void> {
  await until('the connection is cut', hangMs, async () => {
    const { waiting } = (await stage.ask('readHostilities', {})) as { waiting: number }
    return waiting === 0
  })
}

/** Seconds by which the clock of the servers is ahead. */
let ahead = 0

async function moveClock(by: number): Promise<void> {
  ahead += by
  await stage.ask('setServerClock', { ahead_seconds: ahead })
}

const disturbances: readonly Act[] = [
  ['cut', 1, async () => (await cutNow()) > 0],
  [
    'cut at a send',
    1,
    async (random) => {
      const after = random.whole(3)
      await stage.ask('addHostility', { ...cut, on: 'messages.sendMessage', after })
      await untilStruck()
    },
  ],
  [
    'cut at a difference',
    1,
    async () => {
      await stage.ask('addHostility', { ...cut, on: 'updates.getDifference' })
      await cutNow()
      await untilStruck()
    },
  ],
  [
    'restart',
    1,
    async (random) => {
      await stage.killCentre()
      await sleep(random.between(0, 2_000))
      await stage.startCentre()
      // The new process has the right time.
      await moveClock(0)
    },
  ],
  // Each comes as often as the other, so that the clock is never further off than ten minutes.
  ['clock ahead', 1, () => moveClock(600)],
  ['clock behind', 1, () => moveClock(-600)],
]

/** Every act as often as its weight says, in an order of the seed, then again. */
function* deal(acts: readonly Act[], random: Random): Generator<Act, never> {
  const deck = acts.flatMap((act) => Array.from({ length: act[1] }, () => act))
  for (;;) {
    const order = deck.map((act) => ({ act, place: random() })).sort((one, other) => one.place - other.place)
    for (const { act } of order) yield act
  }
}

const random = makeRandom(seed)

/** What acts at the same time, each one act after the other, with a rest between them. */
const actors = [
  { name: 'people', acts: ofPeople, rest: [50, 600] },
  { name: 'phone', acts: ofPhone, rest: [50, 600] },
  { name: 'parley', acts: ofParley, rest: [50, 600] },
  { name: 'disturbances', acts: disturbances, rest: [2_000, 8_000] },
].map((each) => {
  const own = random.fork(each.name)
  return { ...each, random: own, dealt: deal(each.acts, own.fork('order')) }
})

/** Until the time is over and every act has succeeded at least once. */
async function keepActing(actor: (typeof actors)[number], untilMs: number): Promise<void> {
  const [least = 0, most = 0] = actor.rest
  const missing = new Set(actor.acts.map(([name]) => name))
  let failure: unknown
  while (missing.size > 0 || performance.now() < untilMs) {
    if (performance.now() > untilMs + hangMs) {
      throw new Error(`These never succeeded: ${[...missing].join(', ')}.`, { cause: failure })
    }
    await sleep(actor.random.between(least, most))
    const [name, , act] = actor.dealt.next().value
    // The data centre may be away, or the message gone: what it has counts in the end.
    const done = await act(actor.random).catch((error: unknown) => {
      failure = error
      return false
    })
    count(done === false ? `${name}: failed` : name)
    if (done !== false) missing.delete(name)
  }
}

interface Shown {
  /** Each message as its id, its side and its text, in order. */
  readonly messages: readonly string[]
  readonly unread: number
  readonly readByThem: number
}

const line = (id: string | number, isOut: boolean, text: string) => `${id} ${isOut ? '>' : '<'} ${text}`

function shownByPhone(chat_id: number): Shown {
  const messages = [...(phone.chats.get(chat_id) ?? [])].sort(([one], [other]) => one - other)
  return {
    messages: messages.map(([id, { out, text }]) => line(id, out, text)),
    unread: phone.unreadOf(chat_id),
    readByThem: phone.readByThem(chat_id),
  }
}

interface WireMessage {
  readonly id: string
  readonly text: string
  readonly is_sender: boolean
}

async function shownByParley(chat_id: number): Promise<Shown> {
  const { key } = stage.tenant
  const path = `/chats/platform:chat:${chat_id}`
  const found = new Map<string, WireMessage>()
  for (let before = ''; ; ) {
    const query = `account_id=${account_id}&limit=${pageSize}${before && `&before=${before}`}`
    const { status, body } = await stage.service.get(`${path}/messages?${query}`, { key })
    if (status !== 200) throw new Error(JSON.stringify(body))
    const { messages, next_before } = body as unknown as { messages: WireMessage[]; next_before: string }
    for (const message of messages) found.set(message.id, message)
    if (body.has_more !== true) break
    before = next_before
  }
  const { body } = await stage.service.get(`${path}?account_id=${account_id}`, { key })
  const { readByThem } = await stage.db.one<{ readByThem: number }>(sql`
    select coalesce(read_by_them_id, 0)::int as "readByThem" from chats
    where account_id = ${account_id} and chat_id = ${chat_id}`)
  return {
    messages: [...found.values()]
      .sort((one, other) => Number(one.id) - Number(other.id))
      .map(({ id, is_sender, text }) => line(id, is_sender, text)),
    unread: (body.chat as { unread_count: number }).unread_count,
    readByThem,
  }
}

/** What the data centre has, read from a copy of its log. */
async function readCentre(): Promise<{ chats: Map<number, Shown>; journal: readonly JournalEntry[] }> {
  const data_dir = join(await makeScratch('parley-phone-'), 'sandbox')
  await cp(stage.centreDirectory, data_dir, { recursive: true })
  const world = openWorld({ data_dir })
  try {
    const chats = new Map<number, Shown>()
    for (const [chat_id, box] of world.requireAccount(user.account_id).boxes) {
      // Parley shows login codes to no caller.
      if (chat_id === serviceId) continue
      chats.set(chat_id, {
        messages: box.posts.map((post) => line(post.message_id, post.is_sender, post.text)),
        unread: box.posts.filter((post) => !post.is_sender && post.message_id > box.read_by_us).length,
        readByThem: box.read_by_them,
      })
    }
    return { chats, journal: [...world.state.journal] }
  } finally {
    await world.close()
    await rm(data_dir, { recursive: true })
  }
}

/** Until both show what the data centre has; what is different after a long wait fails the test. */
async function expectSame(chats: ReadonlyMap<number, Shown>): Promise<void> {
  const wanted = Object.fromEntries(chats)
  const deadline = performance.now() + hangMs
  for (;;) {
    const isLast = performance.now() > deadline
    // A call may be lost to a reconnect that is still on its way.
    await phone.sync().catch((error: unknown) => {
      if (isLast) throw error
    })
    const shown: Record<number, Shown> = {}
    for (const chat_id of chats.keys()) shown[chat_id] = await shownByParley(chat_id)
    const byPhone = Object.fromEntries([...chats.keys()].map((chat_id) => [chat_id, shownByPhone(chat_id)]))
    const found = { parley: shown, phone: byPhone }
    const both = { parley: wanted, phone: wanted }
    if (isLast || JSON.stringify(found) === JSON.stringify(both)) return expect(found).toEqual(both)
    await sleep(1_000)
  }
}

/** Acts for the given minutes; the seed decides how. */
async function act(forMinutes: number): Promise<void> {
  const untilMs = performance.now() + forMinutes * 60_000
  await Promise.all(actors.map((actor) => keepActing(actor, untilMs)))
  await stage.ask('clearHostilities', {})
  await stage.untilLive(account_id)
  await until('every send is settled', hangMs, async () => {
    const open = await stage.db.maybe(sql`
      select from operations where account_id = ${account_id} and state in ('queued', 'submitting')`)
    return open === undefined
  })
}

/** What the ledger and the events say is what the data centre accepted, each once. */
async function expectOnce(journal: readonly JournalEntry[]): Promise<void> {
  for (const of of ['random_id', 'text'] as const) {
    const found = journal.flatMap((entry) => entry[of] ?? [])
    expect(found).toEqual([...new Set(found)])
  }
  const texts = new Set(journal.map(({ text }) => text))
  for (const [text, status] of answered) if (status === 200) expect(texts, text).toContain(text)
  const accepted = new Set(journal.map(({ random_id }) => random_id))
  // A worker sweeps once a second for outcomes that the platform has proven.
  const deadline = performance.now() + hangMs
  for (;;) {
    const sends = await stage.db.rows<{ state: string; random_id: string; proof: string | null }>(sql`
      select state, random_id::text, proof_message_id::text as proof from operations
      where account_id = ${account_id} and kind = 'send_message'`)
    const unproven = sends.filter(
      ({ state, random_id }) => (state === 'completed') !== accepted.has(random_id),
    )
    if (unproven.length === 0) break
    if (performance.now() > deadline) expect(unproven).toEqual([])
    await sleep(200)
  }
  const received = await stage.db.rows<{ message: string }>(sql`
    select data #>> '{message,id}' as message from events
    where type = 'message.received' and data ->> 'account_id' = ${account_id}`)
  const announced = received.map(({ message }) => message)
  expect(announced).toEqual([...new Set(announced)])
}

test(`a phone and Parley show the same after ${minutes} minutes`, {
  timeout: minutes * 120_000 + 3 * hangMs,
}, async () => {
  for (let done = 0; done < minutes; done += minutesEach) {
    await act(Math.min(minutes - done, minutesEach))
    const { chats, journal } = await readCentre()
    const states = await stage.db.rows(sql`
      select kind, state, count(*)::int from operations where account_id = ${account_id} group by 1, 2 order by 1, 2`)
    const messages = [...chats.values()].reduce((sum, { messages: each }) => sum + each.length, 0)
    process.stdout.write(
      `${JSON.stringify({ seed, done, tally, journal: journal.length, messages, states })}\n`,
    )
    await expectSame(chats)
    await expectOnce(journal)
  }
  for (const [name] of actors.flatMap(({ acts }) => acts)) expect(tally[name], name).toBeGreaterThan(0)
})
