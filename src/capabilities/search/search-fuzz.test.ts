/**
 * Random messages, edits, deletions and merges, with random queries in between: a search must find what a scan of
 * every message finds. `SEARCH_FUZZ_ROUNDS` makes it longer, `SEARCH_FUZZ_SEED` repeats a run.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import type { AccountKey } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import type { Chat, Message } from '../../platform/port.ts'
import { storeChats } from '../chats/chats.ts'
import { storeContacts } from '../contacts/contacts.ts'
import { deleteMessages, storeEdits, storeMessages } from '../messages/messages.ts'
import { indexPending, mergeSegments } from './index/search-index.ts'

const rounds = Number(process.env.SEARCH_FUZZ_ROUNDS ?? 2)
const queriesInRound = 120
/** Between two changes. */
const queriesAtOnce = 8
const seed = Number(process.env.SEARCH_FUZZ_SEED ?? Date.now() % 1_000_000)
/** `countMax` of `search.ts`. */
const countMax = Number(process.env.SEARCH_FUZZ_COUNT ?? 1000)

let service: Service
beforeAll(async () => {
  service = await openService({ env: { PARLEY_RATE_LIMIT: '1000000' } })
})
afterAll(() => service.close())

let state = seed
function random(below: number): number {
  state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
  return Math.floor((state / 0x80000000) * below)
}

function pick<T>(values: readonly T[]): T {
  return values[random(values.length)] as T
}

const vocabulary = [
  'a',
  'an',
  'ant',
  'ants',
  'anti',
  'b',
  'be',
  'bee',
  'bees',
  'bell',
  'c',
  'cat',
  'cats',
  'd',
  'dog',
  'e',
]
const chats: Chat['id'][] = ['1', '2', '3', '-4', '-5']
const senders = ['201', '202', '203']
const start = Date.UTC(2026, 0, 1)

interface StoredMessage {
  readonly account_id: string
  readonly chat_id: Chat['id']
  readonly id: string
  readonly sender_id: string | null
  readonly at: number
  text: string
}

/** Words at the front of the vocabulary are common, those at its end rare. */
function makeText(): string {
  const word = () => vocabulary[Math.floor((random(1000) / 1000) ** 2 * vocabulary.length)] as string
  return Array.from({ length: 1 + random(9) }, word).join(' ')
}

class World {
  readonly messages = new Map<string, StoredMessage>()
  readonly owners: readonly AccountKey[]
  #lastId = 0
  #edits = 0

  constructor(owners: readonly AccountKey[]) {
    this.owners = owners
  }

  async step(): Promise<void> {
    const owner = pick(this.owners)
    const action = random(10)
    if (action < 4) await this.#add(owner, random(4) === 0 ? 150 : 1 + random(40))
    else if (action < 6) await this.#change(owner)
    else if (action < 9) await indexPending(service.app.db, owner)
    else await mergeSegments(service.app.db, owner, { force: random(2) === 0 })
  }

  async #add(owner: AccountKey, count: number): Promise<void> {
    const added = Array.from({ length: count }, (): StoredMessage => {
      const chat_id = pick(chats)
      this.#lastId++
      return {
        account_id: owner.account_id,
        chat_id,
        id: String(this.#lastId),
        sender_id: chat_id.startsWith('-') ? pick(senders) : null,
        // Many of the same moment.
        at: start + random(400) * 1000,
        text: makeText(),
      }
    })
    await service.app.db.transaction((tx) =>
      storeMessages(
        tx,
        owner,
        added.map((one) => itemOf(one)),
      ),
    )
    for (const one of added) this.messages.set(one.id, one)
    // A search reads no more than 500 pending messages of an account.
    while ((await countPending(owner)) > 400) await indexPending(service.app.db, owner)
  }

  async #change(owner: AccountKey): Promise<void> {
    const mine = [...this.messages.values()].filter(({ account_id }) => account_id === owner.account_id)
    for (let changes = random(12); changes > 0 && mine.length > 0; changes--) {
      const one = pick(mine)
      if (!this.messages.has(one.id)) continue
      if (random(2) === 0) {
        this.messages.delete(one.id)
        await service.app.db.transaction((tx) =>
          deleteMessages(tx, owner, [{ chat_id: one.chat_id, message_ids: [one.id] }]),
        )
      } else {
        one.text = makeText()
        this.#edits++
        await service.app.db.transaction((tx) => storeEdits(tx, owner, [itemOf(one, this.#edits)]))
      }
    }
  }

  find(matches: (message: StoredMessage) => boolean): StoredMessage[] {
    return [...this.messages.values()]
      .filter(matches)
      .sort((a, b) => b.at - a.at || Number(b.id) - Number(a.id))
  }
}

async function countPending({ account_id }: AccountKey): Promise<number> {
  const rows = await service.app.db.rows(sql`select from search_pending where account_id = ${account_id}`)
  return rows.length
}

function itemOf({ chat_id, id, sender_id, at, text }: StoredMessage, edit = 0) {
  const message: Message = {
    id,
    text,
    is_sender: false,
    sender_id,
    timestamp: new Date(at).toISOString(),
    edited_at: edit === 0 ? null : new Date(start + edit * 1000).toISOString(),
    attachments: [],
    random_id: null,
  }
  return { chat_id, message, announce: false }
}

interface Search {
  readonly body: Readonly<Record<string, unknown>>
  readonly matches: (message: StoredMessage) => boolean
}

type Test = (message: StoredMessage) => boolean

/** The words, one after another, the last one sometimes as the beginning of a word. */
function has(words: readonly string[], isPrefix: boolean): Test {
  return ({ text }) => {
    const tokens = text.split(' ')
    return tokens.some((_, at) =>
      words.every((word, next) => {
        const token = tokens[at + next] ?? ''
        return isPrefix && next === words.length - 1 ? token.startsWith(word) : token === word
      }),
    )
  }
}

function makeQuery(): { query: string; test: Test } {
  const pieces = Array.from({ length: 1 + random(3) }, () => ({
    words: Array.from({ length: 1 + (random(2) ? 0 : random(4)) }, () => pick(vocabulary)),
    quoted: random(2) === 0,
    excluded: random(5) === 0,
  }))
  // A query needs a word to look for, and words with a hyphen are a phrase without quotation marks.
  if (pieces.every(({ excluded }) => excluded))
    pieces.push({ words: [pick(vocabulary)], quoted: false, excluded: false })
  const last = pieces.findLastIndex(({ quoted, excluded }) => !quoted && !excluded)
  const query = pieces
    .map(
      ({ words, quoted, excluded }) =>
        (excluded ? '-' : '') + (quoted ? `"${words.join(' ')}"` : words.join('-')),
    )
    .join(' ')
  const tests = pieces.map(({ words, excluded }, at) => ({ test: has(words, at === last), excluded }))
  return { query, test: (message) => tests.every(({ test: one, excluded }) => one(message) !== excluded) }
}

function makeSearch(world: World): Search {
  const tests: Test[] = []
  const body: Record<string, unknown> = { limit: pick([1, 5, 20, 100]) }
  if (random(8) > 0) {
    const { query, test: one } = makeQuery()
    body.query = query
    tests.push(one)
  }
  if (body.query === undefined || random(6) === 0) {
    const keywords = Array.from({ length: 1 + random(2) }, () => [
      pick(vocabulary),
      ...(random(2) ? [pick(vocabulary)] : []),
    ])
    body.keywords = keywords.map((words) => words.join(' '))
    tests.push((message) =>
      keywords.some((words) => words.every((word, at) => has([word], at === words.length - 1)(message))),
    )
  }
  if (random(6) === 0) {
    const name = pick(['person1', 'person2', 'group4', 'sender201', 'sender203'])
    body.people = [name]
    tests.push(({ chat_id, sender_id }) =>
      [`person${chat_id}`, `group${chat_id.slice(1)}`, `sender${sender_id}`].includes(name),
    )
  }
  if (random(4) === 0) {
    const [from, until] = [start + random(400) * 1000, start + random(500) * 1000]
    body.time_after = new Date(from).toISOString()
    body.time_before = new Date(until).toISOString()
    tests.push(({ at }) => at >= from && at < until)
  }
  if (random(3) === 0) {
    const { account_id } = pick(world.owners)
    body.account_id = account_id
    tests.push((message) => message.account_id === account_id)
    if (random(2) === 0) {
      const chat_id = pick(chats)
      body.chat_id = `platform:chat:${chat_id}`
      tests.push((message) => message.chat_id === chat_id)
    }
  }
  return { body, matches: (message) => tests.every((one) => one(message)) }
}

async function check(own: Tenant, world: World): Promise<void> {
  const { body, matches } = makeSearch(world)
  const { status, body: found } = await service.post('/search', { key: own.key, body })
  const label = `seed ${seed}: ${JSON.stringify(body)}`
  expect(status, label).toBe(200)
  expect((found.completeness as { complete: boolean }).complete, label).toBe(true)
  const expected = world.find(matches)
  const ids = (found.matches as { message_id: string }[]).map(({ message_id }) => message_id)
  expect(ids, label).toEqual(expected.slice(0, body.limit as number).map(({ id }) => id))
  expect([found.match_count, found.match_count_capped ?? false, found.has_more], label).toEqual([
    Math.min(countMax, expected.length),
    expected.length > countMax,
    expected.length > (body.limit as number),
  ])
}

async function makeWorld(own: Tenant): Promise<World> {
  const owners: AccountKey[] = []
  for (let at = 0; at < 2; at++) {
    const owner = { account_id: await service.account(own.workspace_id), workspace_id: own.workspace_id }
    const people = senders.map((id) => ({
      id,
      name: `sender${id}`,
      username: null,
      phone: null,
      kind: 'person' as const,
    }))
    const rest = { username: null, unread_count: 0, participants: [] }
    const known = chats.map((id): Chat => {
      const isGroup = id.startsWith('-')
      return {
        id,
        kind: isGroup ? 'group' : 'private',
        name: isGroup ? `group${id.slice(1)}` : `person${id}`,
        ...rest,
      }
    })
    await service.app.db.transaction(async (tx) => {
      await storeChats(
        tx,
        owner,
        known.map((chat) => ({ chat, last: null })),
      )
      await storeContacts(tx, owner, people)
      await tx.run(sql`
        insert into account_sync (account_id, workspace_id, phase)
        values (${owner.account_id}, ${owner.workspace_id}, 'done')`)
    })
    owners.push(owner)
  }
  return new World(owners)
}

test('200 finds what a scan of every message finds, whatever happened before', async () => {
  for (let round = 0; round < rounds; round++) {
    const own = await service.tenant(`Fuzz ${round}`)
    const world = await makeWorld(own)
    for (let asked = 0; asked < queriesInRound; asked += queriesAtOnce) {
      for (let steps = 1 + random(4); steps > 0; steps--) await world.step()
      await Promise.all(Array.from({ length: queriesAtOnce }, () => check(own, world)))
    }
  }
}, 3_600_000)
