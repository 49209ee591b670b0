/** However messages are stored, edited, deleted, indexed and merged: a search finds what is there. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../../test/harness/service.ts'
import type { AccountKey } from '../../../contract.ts'
import { sql } from '../../../db/sql.ts'
import type { Message } from '../../../platform/port.ts'
import { deleteMessages, storeEdits, storeMessages } from '../../messages/messages.ts'
import { readWords } from '../query-words.ts'
import { chooseSegments } from './merge-policy.ts'
import { findMatches, findMergeable, findPending, indexPending, mergeSegments } from './search-index.ts'

let service: Service
let own: Tenant

beforeAll(async () => {
  service = await openService({ env: { PARLEY_RATE_LIMIT: '1000000' } })
  own = await service.tenant('Own')
})
afterAll(() => service.close())

/** What other tests left. */
async function gatherAll(): Promise<void> {
  const { db } = service.app
  for (let one = await findMergeable(db); one; one = await findMergeable(db)) {
    await mergeSegments(db, one)
  }
}

async function newOwner(): Promise<AccountKey> {
  return { account_id: await service.account(own.workspace_id), workspace_id: own.workspace_id }
}

const start = Date.UTC(2026, 5, 1)

function messageOf(id: number, text: string, edit = 0): Message {
  return {
    id: String(id),
    text,
    is_sender: false,
    sender_id: null,
    // Many in the same second.
    timestamp: new Date(start + Math.floor(id / 4) * 250).toISOString(),
    edited_at: edit === 0 ? null : new Date(start + edit * 1000).toISOString(),
    attachments: [],
    random_id: null,
  }
}

function put(owner: AccountKey, messages: readonly Message[]): Promise<unknown> {
  return service.app.db.transaction((tx) =>
    storeMessages(
      tx,
      owner,
      messages.map((message) => ({ chat_id: '42', message, announce: false })),
    ),
  )
}

function edit(owner: AccountKey, message: Message): Promise<unknown> {
  return service.app.db.transaction((tx) =>
    storeEdits(tx, owner, [{ chat_id: '42', message, announce: false }]),
  )
}

function remove(owner: AccountKey, id: number): Promise<unknown> {
  return service.app.db.transaction((tx) =>
    deleteMessages(tx, owner, [{ chat_id: '42', message_ids: [String(id)] }]),
  )
}

async function find({ account_id }: AccountKey, query: string): Promise<{ ids: number[]; count: number }> {
  const { status, body } = await service.post('/search', {
    key: own.key,
    body: { query, account_id, limit: 100 },
  })
  expect(status).toBe(200)
  const matches = body.matches as { message_id: string }[]
  return { ids: matches.map(({ message_id }) => Number(message_id)), count: body.match_count as number }
}

async function countStale({ account_id }: AccountKey): Promise<number> {
  const { count } = await service.app.db.one<{ count: number }>(sql`
    select count(*)::int as count from search_stale where account_id = ${account_id}`)
  return count
}

async function listSegments({ account_id }: AccountKey): Promise<number[]> {
  const rows = await service.app.db.rows<{ messages: number }>(sql`
    select messages from search_segments where account_id = ${account_id} order by id`)
  return rows.map(({ messages }) => messages)
}

interface Step {
  readonly do: 'put' | 'edit' | 'delete' | 'list' | 'merge'
  readonly id: number
  readonly text: string
}

const words = fc.array(fc.constantFrom('red', 'green', 'blue', 'reddish'), { minLength: 1, maxLength: 4 })
const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom('put', 'put', 'edit', 'edit', 'delete', 'list', 'merge'),
  id: fc.integer({ min: 1, max: 12 }),
  text: words.map((some) => some.join(' ')),
})

const queries: Readonly<Record<string, (text: string) => boolean>> = {
  red: (text) => /\bred/.test(text),
  '"red"': (text) => /\bred\b/.test(text),
  '"red green"': (text) => /\bred green\b/.test(text),
  '"red" -blue': (text) => /\bred\b/.test(text) && !/\bblue\b/.test(text),
  '"green" "blue" re': (text) => /\bgreen\b/.test(text) && /\bblue\b/.test(text) && /\bre/.test(text),
  '"red green blue"': (text) => /\bred green blue\b/.test(text),
}

describe('segments', () => {
  test('200 with what is stored, after any sequence of steps', async () => {
    const db = service.app.db
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const owner = await newOwner()
        const texts = new Map<number, string>()
        const deleted = new Set<number>()
        for (const [at, one] of steps.entries()) {
          if (one.do === 'list') await indexPending(db, owner)
          else if (one.do === 'merge') await mergeSegments(db, owner, { force: true })
          else if (one.do === 'delete') {
            await remove(owner, one.id)
            if (texts.delete(one.id)) deleted.add(one.id)
          } else if (one.do === 'put') {
            await put(owner, [messageOf(one.id, one.text)])
            if (!deleted.has(one.id) && !texts.has(one.id)) texts.set(one.id, one.text)
          } else if (texts.has(one.id)) {
            await edit(owner, messageOf(one.id, one.text, at + 1))
            texts.set(one.id, one.text)
          }
        }
        for (const [query, matches] of Object.entries(queries)) {
          const expected = [...texts].filter(([, text]) => matches(text)).map(([number]) => number)
          const found = await find(owner, query)
          expect(found.ids).toEqual(expected.sort((a, b) => b - a))
          expect(found.count).toBe(expected.length)
        }
      }),
      { numRuns: 40 },
    )
  })

  test('drop tombstones once everything was merged', async () => {
    const owner = await newOwner()
    await put(owner, [messageOf(1, 'red'), messageOf(2, 'red')])
    await indexPending(service.app.db, owner)
    await edit(owner, messageOf(1, 'green', 1))
    await remove(owner, 2)
    expect(await countStale(owner)).toBe(2)
    expect(await find(owner, 'red')).toEqual({ ids: [], count: 0 })
    await indexPending(service.app.db, owner)
    expect(await listSegments(owner)).toEqual([2, 1])
    await mergeSegments(service.app.db, owner, { force: true })
    expect(await countStale(owner)).toBe(0)
    expect(await listSegments(owner)).toHaveLength(1)
    expect(await find(owner, 'red')).toEqual({ ids: [], count: 0 })
    expect(await find(owner, 'green')).toEqual({ ids: [1], count: 1 })
  })

  test('make an edit wait while its message is being indexed, and find it afterwards', async () => {
    const owner = await newOwner()
    const { db } = service.app
    for (let round = 1; round <= 10; round++) {
      await put(
        owner,
        Array.from({ length: 200 }, (_, at) => messageOf(round * 1000 + at, 'before')),
      )
      const number = round * 1000 + 100
      await Promise.all([indexPending(db, owner), edit(owner, messageOf(number, 'afterwards', round))])
      expect((await find(owner, 'afterwards')).count).toBe(round)
      expect((await find(owner, '"before"')).count).toBe(Math.min(1000, round * 199))
    }
  })

  test('index fewer long messages at a time', async () => {
    const owner = await newOwner()
    const { db } = service.app
    const long = Array.from({ length: 4000 }, (_, at) =>
      String.fromCharCode(0x4e00 + ((at * 37) % 9000)),
    ).join('')
    await put(
      owner,
      Array.from({ length: 300 }, (_, at) => messageOf(at + 1, long)),
    )
    expect(await indexPending(db, owner)).toBe(250)
    expect((await find(owner, long.slice(100, 102))).count).toBe(300)
    expect(await indexPending(db, owner)).toBe(50)
    expect(await indexPending(db, owner)).toBe(0)
    expect(await listSegments(owner)).toEqual([250, 50])
    expect((await find(owner, long.slice(100, 102))).count).toBe(300)
  })

  test('are indexed once per message when two processes index the same account at the same time', async () => {
    const owner = await newOwner()
    await put(
      owner,
      Array.from({ length: 900 }, (_, at) => messageOf(at + 1, 'twice or once')),
    )
    const { db } = service.app
    const listed = await Promise.all([
      indexPending(db, owner),
      indexPending(db, owner),
      indexPending(db, owner),
    ])
    expect(listed.reduce((sum, one) => sum + one, 0)).toBe(900)
    expect((await find(owner, 'twice')).count).toBe(900)
  })

  test('stay correct when two processes merge the same account at the same time', async () => {
    const owner = await newOwner()
    const { db } = service.app
    for (let at = 0; at < 16; at++) {
      await put(owner, [messageOf(at + 1, 'merged')])
      await indexPending(db, owner)
    }
    await Promise.all([mergeSegments(db, owner), mergeSegments(db, owner)])
    expect((await listSegments(owner)).reduce((sum, messages) => sum + messages, 0)).toBe(16)
    expect((await find(owner, 'merged')).count).toBe(16)
  })

  test('are not all merged while another process merges some, and keep their tombstones', async () => {
    const owner = await newOwner()
    const { db } = service.app
    for (const at of [1, 2, 3]) {
      await put(owner, [messageOf(at, 'held')])
      await indexPending(db, owner)
    }
    await remove(owner, 1)
    await db.transaction(async (tx) => {
      await tx.run(sql`
        select from search_segments where account_id = ${owner.account_id} order by id limit 1 for update`)
      expect(await mergeSegments(db, owner, { force: true })).toBe(false)
    })
    expect(await countStale(owner)).toBe(1)
    expect(await mergeSegments(db, owner, { force: true })).toBe(true)
    expect(await countStale(owner)).toBe(0)
    expect(await listSegments(owner)).toEqual([2])
    expect(await find(owner, 'held')).toEqual({ ids: [3, 2], count: 2 })
  })

  test('do not change when a merge is given up', async () => {
    const owner = await newOwner()
    const { db } = service.app
    for (const at of [1, 2]) {
      await put(owner, [messageOf(at, 'given up')])
      await indexPending(db, owner)
    }
    const signal = AbortSignal.abort()
    await expect(mergeSegments(db, owner, { force: true, signal })).rejects.toThrow('abort')
    expect(await listSegments(owner)).toEqual([1, 1])
    expect(await find(owner, '"given up"')).toEqual({ ids: [2, 1], count: 2 })
  })

  test('find phrases and chats, however they were merged', async () => {
    const owner = await newOwner()
    const { db } = service.app
    for (const [from, size] of [
      [0, 40],
      [40, 40],
      [80, 100],
      [180, 3],
    ] as const) {
      await put(
        owner,
        Array.from({ length: size }, (_, at) => messageOf(from + at + 1, at % 2 ? 'odd even' : 'even odd')),
      )
      await indexPending(db, owner)
    }
    const inChat = async (chat_id: string) => {
      const times = { from: Date.UTC(2000, 0), until: Date.UTC(2100, 0) }
      const condition = { words: readWords({ query: 'odd' }), people: undefined, chat_id, ...times }
      const wanted = { limit: 5, count: 1001 }
      return (await db.snapshot((at) => findMatches(at, [owner.account_id], condition, wanted))).total
    }
    const evens = Array.from({ length: 91 }, (_, at) => 182 - 2 * at)
    expect(await find(owner, '"odd even"')).toEqual({ ids: evens, count: 91 })
    expect([await inChat('42'), await inChat('4')]).toEqual([183, 0])
    await edit(owner, messageOf(180, 'odd one out', 1))
    await mergeSegments(db, owner, { force: true })
    expect(await find(owner, '"odd even"')).toEqual({ ids: evens.filter((id) => id !== 180), count: 90 })
    expect([await inChat('42'), await inChat('4')]).toEqual([183, 0])
  })

  test('are merged for an idle account of which much was deleted', async () => {
    await gatherAll()
    const owner = await newOwner()
    const { db } = service.app
    await put(
      owner,
      Array.from({ length: 1100 }, (_, at) => messageOf(at + 1, 'much')),
    )
    await indexPending(db, owner)
    expect(await findMergeable(db)).not.toEqual(owner)
    await db.run(sql`
      update messages set deleted_at = now(), text = ''
      where account_id = ${owner.account_id} and id <= 1050`)
    expect(await findMergeable(db)).toEqual(owner)
    await mergeSegments(db, owner, { force: true })
    expect(await countStale(owner)).toBe(0)
    expect(await listSegments(owner)).toEqual([50])
    expect((await find(owner, 'much')).count).toBe(50)
  })

  test('are merged into one for an idle account', async () => {
    await gatherAll()
    const owner = await newOwner()
    const { db } = service.app
    for (const at of [1, 2, 3]) {
      await put(owner, [messageOf(at, 'scattered')])
      await indexPending(db, owner)
    }
    await put(owner, [messageOf(4, 'scattered')])
    expect(await findMergeable(db)).not.toEqual(owner)
    await indexPending(db, owner)
    expect(await findMergeable(db)).toEqual(owner)
    expect(await mergeSegments(db, owner, { force: true })).toBe(true)
    expect(await findMergeable(db)).not.toEqual(owner)
    expect(await listSegments(owner)).toEqual([4])
    expect((await find(owner, 'scattered')).count).toBe(4)
  })

  test('store long lists in parts, and read them from the beginning', async () => {
    const owner = await newOwner()
    const { db } = service.app
    for (const round of [0, 1, 2]) {
      const messages = Array.from({ length: 900 }, (_, at) => messageOf(round * 900 + at + 1, 'long list'))
      await put(owner, messages)
      await indexPending(db, owner)
      const { ids, count } = await find(owner, '"long" list')
      expect([ids[0], ids.length, count]).toEqual([(round + 1) * 900, 100, round === 0 ? 900 : 1000])
    }
    await mergeSegments(db, owner, { force: true })
    const { parts } = await db.one<{ parts: number }>(sql`
      select max(part) as parts from search_lists l join search_segments s on s.id = l.segment_id
      where s.account_id = ${owner.account_id} and word = 'long'`)
    expect(parts).toBeGreaterThan(0)
    expect((await find(owner, '"long" -list')).count).toBe(0)
    expect((await find(owner, '"list"')).ids[0]).toBe(2700)
  })

  test('find the newest of many in the same second, and tell a phrase from its words', async () => {
    const owner = await newOwner()
    const { db } = service.app
    await db.run(sql`
      insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
      select ${owner.account_id}, 42, n, ${owner.workspace_id}, case when n > 13900 then 'one two, two three' else 'one two three' end,
        false, ${new Date(start)}::timestamptz + case when n > 13900 then interval '1 s' else '0' end + n % 500 * interval '1 ms'
      from generate_series(1, 19000) as n`)
    while ((await indexPending(db, owner)) > 0);
    await mergeSegments(db, owner, { force: true })
    const newest = [18_999, 18_499, 17_999, 17_499, 16_999]
    expect((await find(owner, '"one"')).ids.slice(0, 5)).toEqual(newest)
    const { ids, count } = await find(owner, '"one two three"')
    expect(ids.slice(0, 5)).toEqual([13_499, 12_999, 12_499, 11_999, 11_499])
    expect(count).toBe(1000)
    expect((await find(owner, '"two, two three"')).ids.slice(0, 5)).toEqual(newest)
  })

  test('find the newest messages when older segments alone have enough to check', async () => {
    const owner = await newOwner()
    const { db } = service.app
    // 3,900 newer messages contain two of the three words, so the search cuts one posting list before it reaches the match.
    await db.run(sql`
      insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
      select ${owner.account_id}, 42, n, ${owner.workspace_id}, case when n > 8100 then 'two three' else 'one two three' end,
        false, ${new Date(start)}::timestamptz + n * interval '1 s'
      from generate_series(1, 12000) as n`)
    while ((await indexPending(db, owner)) > 0);
    expect(await listSegments(owner)).toEqual([4000, 4000, 4000])
    const { ids, count } = await find(owner, '"one two three"')
    expect([ids[0], ids.at(-1), count]).toEqual([8100, 8001, 1000])
  })

  test("find a channel's message in a group by its name, pending and indexed", async () => {
    const owner = await newOwner()
    const { db } = service.app
    await db.run(sql`
      insert into chats (account_id, chat_id, workspace_id, kind, name, name_tokens)
      values (${owner.account_id}, -1000000000001, ${owner.workspace_id}, 'channel', 'Gazette', '''gazette'':1')`)
    await db.run(sql`
      insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sender_id, sent_at)
      select ${owner.account_id}, -7, n, ${owner.workspace_id}, 'news', false, -1000000000000 - n, now()
      from generate_series(1, 2) as n`)
    const body = { people: ['gazette'], account_id: owner.account_id }
    const pending = await service.post('/search', { key: own.key, body })
    expect(pending.body.matches).toMatchObject([{ message_id: '1' }])
    await indexPending(db, owner)
    const listed = await service.post('/search', { key: own.key, body })
    expect(listed.body.matches).toEqual(pending.body.matches)
  })

  test('tell times before 1970 and after 2106 apart', async () => {
    const owner = await newOwner()
    const { db } = service.app
    const times = ['1955-01-01', '1969-12-31', '1970-01-01', '2106-12-31', '2200-01-01']
    await put(
      owner,
      times.map((time, at) => ({ ...messageOf(at + 1, 'far'), timestamp: `${time}T00:00:00.000Z` })),
    )
    const between = async (time_after: string, time_before: string) => {
      const body = { query: 'far', account_id: owner.account_id, time_after, time_before }
      const { body: found } = await service.post('/search', { key: own.key, body })
      return [
        found.match_count,
        ...(found.matches as { message_id: string }[]).map((match) => match.message_id),
      ]
    }
    for (const state of ['pending', 'listed']) {
      if (state === 'listed') await indexPending(db, owner)
      expect((await find(owner, 'far')).ids, state).toEqual([5, 4, 3, 2, 1])
      expect(await between('1950-01-01', '1960-01-01'), state).toEqual([1, '1'])
      expect(await between('1960-01-01', '1970-01-01'), state).toEqual([1, '2'])
      expect(await between('1970-01-01', '2107-01-01'), state).toEqual([2, '4', '3'])
      expect(await between('2107-01-01', '2300-01-01'), state).toEqual([1, '5'])
    }
  })

  test('index messages that have waited long enough, however few', async () => {
    const owner = await newOwner()
    await put(owner, [messageOf(1, 'patience')])
    expect(await findPending(service.app.db)).not.toContainEqual(owner)
    await service.app.db.run(sql`
      update search_pending set since = since - interval '1 minute' where account_id = ${owner.account_id}`)
    expect(await findPending(service.app.db)).toContainEqual(owner)
  })
})

describe('chooseSegments', () => {
  const busy = (tombstones: number) => ({ tombstones, isQuiet: false })
  const sizes = (...all: number[]) => all.map((messages) => ({ messages }))

  test('chooses four of about the same size, and everything when there are many tombstones', () => {
    expect(chooseSegments(sizes(1, 2, 3), busy(0))).toBeUndefined()
    expect(chooseSegments(sizes(100, 1, 4, 2, 3, 1), busy(0))).toEqual(sizes(1, 2, 3, 1))
    expect(chooseSegments(sizes(9000, 10), busy(999))).toBeUndefined()
    expect(chooseSegments(sizes(200_000, 10), busy(1000))).toBeUndefined()
    expect(chooseSegments(sizes(9000, 10), busy(1000))).toEqual(sizes(9000, 10))
    expect(chooseSegments([], busy(5000))).toEqual([])
    expect(chooseSegments(sizes(...Array.from({ length: 40 }, () => 64)), busy(0))).toHaveLength(16)
  })

  test('chooses everything of an idle account, unless the largest has nearly all', () => {
    const quiet = { tombstones: 0, isQuiet: true }
    expect(chooseSegments(sizes(80, 5, 5), quiet)).toEqual(sizes(80, 5, 5))
    expect(chooseSegments(sizes(80, 5, 4), quiet)).toBeUndefined()
    expect(chooseSegments(sizes(80, 80), quiet)).toBeUndefined()
    expect(chooseSegments(sizes(80, 5, 5), busy(0))).toBeUndefined()
  })

  test('leaves few segments, however many arrive', () => {
    let segments: { messages: number }[] = []
    for (let at = 0; at < 5000; at++) {
      segments.push({ messages: 64 })
      for (
        let chosen = chooseSegments(segments, busy(0));
        chosen;
        chosen = chooseSegments(segments, busy(0))
      ) {
        const merged = chosen
        segments = segments.filter((one) => !merged.includes(one))
        segments.push({ messages: merged.reduce((sum, { messages }) => sum + messages, 0) })
      }
      expect(segments.length).toBeLessThan(25)
    }
  })
})
