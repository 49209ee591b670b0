/**
 * Reads a chat page by page while its history is still being fetched: every message once, whatever the ties, and also
 * for a client that parses `next_before` into a date and formats it again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import type { Message } from '../../platform/port.ts'
import { giveUpWanted, listWanted, noteHistory } from '../history/history.ts'
import { type ReceivedMessage, storeEdits, storeMessages } from './messages.ts'

let service: Service
let own: Tenant
let owner: { account_id: string; workspace_id: string }
let chats = 0

beforeAll(async () => {
  service = await openService()
  own = await service.tenant()
  owner = { account_id: await service.account(own.workspace_id), workspace_id: own.workspace_id }
  await service.app.db.run(sql`
    insert into account_hosts as h (account_id, workspace_id, observed_at)
    values (${owner.account_id}, ${owner.workspace_id}, clock_timestamp() + interval '1 hour')
    on conflict (account_id) do update set observed_at = excluded.observed_at`)
})
afterAll(() => service.close())

interface Story {
  /** How many messages there are in each millisecond, the oldest first. */
  readonly ties: readonly number[]
  readonly limit: number
  /** How many messages the platform hands over at a time. */
  readonly fetched: number
  /** What happens between two pages, and on each call to the platform. It refuses now and then, not forever. */
  readonly chances: readonly ('new' | 'edit' | 'refuse' | 'nothing')[]
}

const beginning = Date.UTC(2026, 10, 1, 8)
/** A platform that always refuses has no last page. */
const refusalsMax = 12

/** The platform's side of one chat, and the worker that fetches from it, in a few lines. */
class Past {
  readonly chat_id: ChatNumber = `${++chats}`
  readonly messages: Message[]
  readonly #story: Story
  #turn = 0
  #refusals = 0

  constructor(story: Story) {
    this.#story = story
    const times = story.ties.flatMap((count, at) => Array.from({ length: count }, () => beginning + at))
    this.messages = times.map((at, index) => this.#message(index + 1, at))
  }

  #message(id: number, at: number): Message {
    const rest = { is_sender: false, sender_id: null, edited_at: null, attachments: [], random_id: null }
    return { id: String(id * 10), text: `message ${id}`, timestamp: new Date(at).toISOString(), ...rest }
  }

  chance(): Story['chances'][number] {
    return this.#story.chances[this.#turn++ % this.#story.chances.length] ?? 'nothing'
  }

  async store(messages: readonly Message[], how = storeMessages): Promise<void> {
    const seen: ReceivedMessage[] = messages.map((message) => ({
      chat_id: this.chat_id,
      message,
      announce: true,
    }))
    await service.app.db.transaction((tx) => how(tx, owner, seen))
  }

  async arrive(): Promise<void> {
    const last = this.messages.at(-1)
    const at = last ? Date.parse(last.timestamp) : beginning
    const message = this.#message(this.messages.length + 1, at + (this.#turn % 2))
    this.messages.push(message)
    await this.store([message])
  }

  /** An edit stores an old message long before history has reached it. */
  async edit(): Promise<void> {
    const old = this.messages[this.#turn % Math.ceil(this.messages.length / 2)]
    if (old) await this.store([{ ...old, edited_at: '2026-11-02T00:00:00.000Z' }], storeEdits)
  }

  async answerWanted(): Promise<void> {
    for (const wanted of await listWanted(service.app.db, [owner.account_id])) {
      if (wanted.chat_id !== this.chat_id) continue
      if (this.chance() === 'refuse' && this.#refusals++ < refusalsMax) {
        await giveUpWanted(service.app.db, wanted)
        continue
      }
      const before = wanted.oldest_id === null ? Number.POSITIVE_INFINITY : Number(wanted.oldest_id)
      const older = this.messages.filter(({ id }) => Number(id) < before).toReversed()
      const page = older.slice(0, this.#story.fetched)
      const complete = page.length < this.#story.fetched
      const oldest_id = page.at(-1)?.id ?? null
      await service.app.db.transaction(async (tx) => {
        const seen = page.map((message) => ({ chat_id: this.chat_id, message, announce: false }))
        await storeMessages(tx, owner, seen)
        await noteHistory(tx, owner, { chat_id: this.chat_id, oldest_id, complete })
      })
    }
  }
}

interface Page {
  readonly messages: readonly { readonly id: string; readonly timestamp: string }[]
  readonly next_before: string | null
  readonly has_more: boolean
}

/** What a client does with `next_before` before it sends it back. */
type Client = (next_before: string, page: Page) => string

/** The messages that a client has seen, page by page. It retries after a 503. */
async function walk(past: Past, limit: number, client: Client): Promise<Page[]> {
  const pages: Page[] = []
  let before: string | null = null
  for (let tries = 0; tries < 1_000; tries++) {
    const query: string = `account_id=${owner.account_id}&limit=${limit}${before ? `&before=${before}` : ''}`
    const asked = service.get(`/chats/platform:chat:${past.chat_id}/messages?${query}`, { key: own.key })
    let answered = false
    const answer = asked.finally(() => {
      answered = true
    })
    while (!answered) {
      await past.answerWanted()
      await sleep(2)
    }
    const { status, body } = await answer
    if (status !== 503) {
      expect(status, JSON.stringify(body)).toBe(200)
      const page = body as unknown as Page
      pages.push(page)
      if (page.next_before === null) return pages
      before = client(page.next_before, page)
    }
    const chance = past.chance()
    if (chance === 'new') await past.arrive()
    if (chance === 'edit') await past.edit()
  }
  throw new Error('The walk has no end.')
}

async function visitsAll(story: Story, client: Client): Promise<void> {
  const past = new Past(story)
  const there = past.messages.map(({ id }) => id)
  await service.chat({ ...owner, id: past.chat_id, texts: [] })
  await past.store(past.messages.slice(-1))
  const pages = await walk(past, story.limit, client)
  const seen = pages.toReversed().flatMap(({ messages }) => messages.map(({ id }) => id))
  expect(seen.filter((id) => there.includes(id))).toEqual(there)
  expect(new Set(seen).size).toBe(seen.length)
  for (const { messages } of pages) expect(messages.length).toBeLessThanOrEqual(story.limit)
}

type Chance = Story['chances'][number]
const chancesOf = (...of: Chance[]): fc.Arbitrary<Chance[]> =>
  fc.array(fc.constantFrom(...of), { minLength: 3, maxLength: 9 })
const base = {
  ties: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 6 }),
  fetched: fc.integer({ min: 2, max: 12 }),
}
/** Fits one millisecond's messages, and those that may arrive in the last one. */
const enough = fc.integer({ min: 10, max: 14 })
const asItIs: Client = (next_before) => next_before
const asDate: Client = (next_before) => new Date(next_before).toISOString()

/** When the platform refuses the rest of a millisecond and there is nothing else to show, its digits matter. */
const asDateWherePlain: Client = (next_before, { messages }) => {
  const plain = /\.\d{3}Z$/.test(next_before)
  if (!plain) expect(new Set(messages.map(({ timestamp }) => timestamp)).size).toBe(1)
  return plain ? asDate(next_before, { messages, next_before, has_more: true }) : next_before
}

describe('GET /chats/{chat_id}/messages, read while history is fetched (V5)', () => {
  test.each([
    ['read into a date', enough, chancesOf('new', 'edit', 'nothing'), asDate],
    [
      'read into a date, while the platform refuses now and then',
      enough,
      chancesOf('new', 'edit', 'refuse', 'nothing'),
      asDateWherePlain,
    ],
    [
      'as it is, whatever a millisecond holds',
      fc.integer({ min: 1, max: 5 }),
      chancesOf('new', 'edit', 'refuse', 'nothing'),
      asItIs,
    ],
  ])('200 returns every message once by next_before %s', async (_, limit, chances, client) => {
    const stories = fc.record({ ...base, limit, chances })
    await fc.assert(
      fc.asyncProperty(stories, (story) => visitsAll(story, client)),
      { numRuns: 8 },
    )
  })

  test('200 does not show an edited old message before those in between are stored', async () => {
    const chances = ['refuse', 'edit', 'refuse'] as const
    await visitsAll({ ties: [1, 2], limit: 1, fetched: 2, chances }, asItIs)
  })

  test('200 returns every message once after a platform that refused every first call', async () => {
    const chances = ['refuse', 'nothing'] as const
    await visitsAll({ ties: [3, 2, 4], limit: 3, fetched: 4, chances }, asItIs)
  })

  test('200: next_before is a plain time when a millisecond fits a page, and has its digits otherwise', async () => {
    const pagesOf = async (limit: number) => {
      const story: Story = { ties: [1, 3, 2], limit, fetched: 10, chances: ['nothing'] }
      const past = new Past(story)
      await service.chat({ ...owner, id: past.chat_id, texts: [] })
      return walk(past, limit, (next_before) => next_before)
    }
    const fits = await pagesOf(3)
    expect(fits.map(({ messages, next_before }) => [messages.length, next_before])).toEqual([
      [2, '2026-11-01T08:00:00.002Z'],
      [3, '2026-11-01T08:00:00.001Z'],
      [1, null],
    ])
    const cut = await pagesOf(2)
    expect(cut.map(({ messages, next_before }) => [messages.length, next_before])).toEqual([
      [2, '2026-11-01T08:00:00.002Z'],
      [2, '2026-11-01T08:00:00.0010000000000000000030Z'],
      [2, null],
    ])
  })
})
