import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { openChat, readHistory, send, setReadState } from './account-acts.ts'
import type { Behaviour } from './people.ts'
import { deleteMessage, readMessages, writeMessage } from './person-acts.ts'
import { viewUpdate } from './view.ts'
import { openWorld, type World } from './world.ts'
import { advanceTo, type ManualClock, manualClock } from './world-clock.ts'

const root = mkdtempSync(join(tmpdir(), 'parley-world-'))
afterAll(() => rmSync(root, { recursive: true }))

const start = new Date('2026-11-02T09:00:00.000Z')
const account_id = 'acc_one'
let directories = 0

function newDirectory(): string {
  return join(root, String(++directories))
}

function setWorld(options: { data_dir?: string | null; seed?: number } = {}): {
  world: World
  clock: ManualClock
} {
  const clock = manualClock(start)
  const world = openWorld({ data_dir: options.data_dir ?? null, seed: options.seed ?? 7, clock })
  world.addAccount({ account_id, name: 'Sales desk' })
  return { world, clock }
}

function say(world: World, person_id: number, text: string) {
  const message = { chat_id: `${person_id}`, text, random_id: '1' } as const
  return send(world, world.requireAccount(account_id), { message, file: null })
}

function later(seconds: number): Date {
  return new Date(start.getTime() + seconds * 1000)
}

function updates(world: World) {
  const account = world.requireAccount(account_id)
  return world.streamAfter(account_id, 0, 1000).map((each) => viewUpdate(world.state, account, each))
}

function textsFrom(world: World, person_id: number): string[] {
  const posts = world.requireAccount(account_id).boxes.get(person_id)?.posts ?? []
  return posts.filter((post) => !post.is_sender).map((post) => post.text)
}

describe('people', () => {
  const cases: [Behaviour, { reads: boolean; answer: RegExp | null }][] = [
    ['silent', { reads: false, answer: null }],
    ['reads', { reads: true, answer: null }],
    ['replies', { reads: true, answer: /\w+ \w+/ }],
    ['stops', { reads: true, answer: /^STOP$/ }],
  ]
  test.each(cases)('who are %s react after their delay, not before', (behaviour, expected) => {
    const { world, clock } = setWorld()
    const { person_id } = world.addPerson({ name: 'Mara', behaviour, delay_seconds: 10 })
    say(world, person_id, 'Hello')
    advanceTo(world, clock, later(9))
    expect(updates(world).map(({ kind }) => kind)).toEqual(['message', 'sent'])
    advanceTo(world, clock, later(60))
    const kinds = updates(world).map(({ kind }) => kind)
    expect(kinds.includes('read_by_them')).toBe(expected.reads)
    const texts = textsFrom(world, person_id)
    if (expected.answer === null) expect(texts).toEqual([])
    else expect(texts).toEqual([expect.stringMatching(expected.answer)])
    const answer = world.requireAccount(account_id).boxes.get(person_id)?.posts[1]
    if (answer) expect(answer.at).toBe(later(10).toISOString())
  })

  test('who block refuse, and the journal has no entry', () => {
    const { world } = setWorld()
    const { person_id } = world.addPerson({ name: 'Mara', behaviour: 'blocks' })
    expect(say(world, person_id, 'Hello')).toEqual({ kind: 'refused', reason: 'blocked_by_person' })
    expect(world.journal(0)).toEqual([])
  })

  test('answer in their own words if they have some', () => {
    const { world, clock } = setWorld()
    const { person_id } = world.addPerson({ name: 'Mara', behaviour: 'replies', reply_text: 'Oui.' })
    say(world, person_id, 'Hello')
    advanceTo(world, clock, later(60))
    expect(textsFrom(world, person_id)).toEqual(['Oui.'])
  })

  test('have distinct usernames and phones', () => {
    const { world } = setWorld()
    world.addPerson({ name: 'Mara', username: 'mara' })
    expect(() => world.addPerson({ name: 'Other', username: 'MARA' })).toThrow('taken')
  })
})

describe('messages', () => {
  test('are refused when empty, too long, malformed or without a recipient', () => {
    const { world } = setWorld()
    const { person_id } = world.addPerson({ name: 'Mara' })
    const invalid = { kind: 'refused', reason: 'message_invalid' }
    expect(say(world, person_id, ' ')).toEqual(invalid)
    expect(say(world, person_id, '👋'.repeat(4097))).toEqual(invalid)
    expect(say(world, person_id, 'a\ud800')).toEqual(invalid)
    expect(say(world, person_id, '👋'.repeat(4096))).toMatchObject({ kind: 'accepted' })
    expect(say(world, 99_999, 'Hello')).toEqual({ kind: 'refused', reason: 'chat_unavailable' })
    expect(say(world, -5, 'Hello')).toEqual({ kind: 'refused', reason: 'chat_unavailable' })
  })

  test('of the past are stored, without a reaction or an update', () => {
    const { world } = setWorld()
    const { person_id } = world.addPerson({ name: 'Mara', behaviour: 'replies' })
    const seed = (n: number, mine: boolean, read: boolean) =>
      world.seedMessage({
        account_id,
        chat_id: person_id,
        person_id: mine ? null : person_id,
        text: String(n),
        at: later(n - 1000),
        read,
      })
    seed(1, true, true)
    seed(2, false, true)
    seed(3, false, false)
    expect(updates(world)).toEqual([])
    expect(world.nextDueAt()).toBeNull()
    expect(world.journal(0)).toEqual([])
    const page = { chat_id: `${person_id}`, before: null, limit: 10 } as const
    const history = readHistory(world.requireAccount(account_id), page)
    expect(history).toMatchObject({ value: [{ text: '3' }, { text: '2' }, { text: '1', is_sender: true }] })
    expect(world.requireAccount(account_id).boxes.get(person_id)?.unread_count).toBe(1)
  })

  test('that are deleted are no longer unread', () => {
    const { world } = setWorld()
    const { person_id } = world.addPerson({ name: 'Mara' })
    const message_id = writeMessage(world, { account_id, person_id, text: 'oops' })
    deleteMessage(world, { account_id, person_id, message_id })
    expect(updates(world).at(-1)).toEqual({ kind: 'unread', chat_id: String(person_id), unread_count: 0 })
    expect(() => deleteMessage(world, { account_id, person_id, message_id })).toThrow('no such message')
  })

  test('are read up to the last one that the account wrote', () => {
    const { world } = setWorld()
    const { person_id } = world.addPerson({ name: 'Mara' })
    say(world, person_id, 'one')
    say(world, person_id, 'two')
    expect(readMessages(world, { account_id, person_id, up_to_message_id: 1 })).toBe(1)
    expect(readMessages(world, { account_id, person_id })).toBe(2)
    expect(readMessages(world, { account_id, person_id, up_to_message_id: 1 })).toBe(2)
  })
})

describe('flood rules', () => {
  test('accept as many as they allow, return how long to wait, and accept more in time', () => {
    const { world, clock } = setWorld()
    const { person_id } = world.addPerson({ name: 'Mara' })
    world.setFloodRule(account_id, { sends_max: 2, seconds: 60 })
    expect(say(world, person_id, '1').kind).toBe('accepted')
    clock.set(later(20))
    expect(say(world, person_id, '2').kind).toBe('accepted')
    clock.set(later(30))
    expect(say(world, person_id, '3')).toEqual({
      kind: 'flood_wait',
      retry_after_seconds: 30,
      stops: 'sends',
    })
    clock.set(later(60))
    expect(say(world, person_id, '4').kind).toBe('accepted')
    expect(say(world, person_id, '5')).toEqual({
      kind: 'flood_wait',
      retry_after_seconds: 20,
      stops: 'sends',
    })
    expect(world.journal(0)).toHaveLength(3)
  })
})

describe('updates', () => {
  test('late enters the stream later, and others pass it', () => {
    const { world, clock } = setWorld()
    const { person_id } = world.addPerson({ name: 'Mara' })
    world.addFault({ on: 'updates', fault: 'late', seconds: 30 })
    writeMessage(world, { account_id, person_id, text: 'first' })
    writeMessage(world, { account_id, person_id, text: 'second' })
    const texts = () => updates(world).map((update) => update.kind === 'message' && update.message.text)
    expect(texts()).toEqual(['second'])
    advanceTo(world, clock, later(30))
    expect(texts()).toEqual(['second', 'first'])
  })

  test('twice enters it twice', () => {
    const { world } = setWorld()
    const { person_id } = world.addPerson({ name: 'Mara' })
    world.addFault({ on: 'updates', fault: 'twice' })
    writeMessage(world, { account_id, person_id, text: 'hello' })
    writeMessage(world, { account_id, person_id, text: 'again' })
    expect(updates(world)).toHaveLength(3)
  })
})

describe('the journal', () => {
  test('has every accepted call in order, including repeats', () => {
    const { world } = setWorld()
    const { person_id } = world.addPerson({ name: 'Mara' })
    const account = world.requireAccount(account_id)
    openChat(world, account, String(person_id))
    say(world, person_id, 'Hello')
    say(world, person_id, 'Hello')
    setReadState(world, account, { chat_id: String(person_id), unread: true })
    const chat_id = `platform:chat:${person_id}`
    const at = start.toISOString()
    const common = { account_id, chat_id, at, file_sha256: null }
    expect(world.journal(0)).toEqual([
      { seq: 1, kind: 'start', text: null, random_id: null, ...common },
      { seq: 2, kind: 'send', text: 'Hello', random_id: '1', ...common },
      { seq: 3, kind: 'send', text: 'Hello', random_id: '1', ...common },
      { seq: 4, kind: 'read_state', text: null, random_id: null, ...common },
    ])
    expect(world.journal(3)).toHaveLength(1)
    expect(world.counts()).toMatchObject({ journal: 4, messages: 2 })
  })
})

/** One change of a world, by number: enough to drive two worlds the same way. */
function act(world: World, clock: ManualClock, [kind, n]: readonly [number, number]): void {
  const people = [...world.state.people.keys()].filter((id) => !world.state.account_of_person.has(id))
  const person_id = people[n % people.length] ?? 0
  switch (kind) {
    case 0:
      say(world, person_id, `message ${n}`)
      break
    case 1:
      writeMessage(world, { account_id, person_id, text: `written ${n}` })
      break
    case 2:
      advanceTo(world, clock, new Date(clock.now().getTime() + n * 500))
      break
    case 3:
      world.addFault({ on: 'updates', fault: n % 2 ? 'late' : 'twice', times: 1 + (n % 3), seconds: n })
      break
    case 4:
      openChat(world, world.requireAccount(account_id), String(person_id))
      break
    case 5:
      setReadState(world, world.requireAccount(account_id), {
        chat_id: String(person_id),
        unread: n % 2 === 0,
      })
  }
}

function populate(world: World): void {
  const behaviours: Behaviour[] = ['silent', 'reads', 'replies', 'blocks', 'stops']
  for (const behaviour of behaviours) world.addPerson({ name: behaviour, behaviour, delay_seconds: 2 })
}

const acts = fc.array(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.nat(20)), { maxLength: 40 })

describe('the log', () => {
  test('is the same, byte for byte, for the same seed and the same calls', async () => {
    await fc.assert(
      fc.asyncProperty(acts, fc.nat(1000), async (script, seed) => {
        const files: string[] = []
        for (const data_dir of [newDirectory(), newDirectory()]) {
          const { world, clock } = setWorld({ data_dir, seed })
          populate(world)
          for (const each of script) act(world, clock, each)
          await world.close()
          files.push(readFileSync(join(data_dir, 'world.ndjson'), 'utf8'))
        }
        expect(files[0]).toBe(files[1])
      }),
      { numRuns: 15, seed: 1 },
    )
  })

  test('restores the same world at any point, with its due acts', async () => {
    await fc.assert(
      fc.asyncProperty(acts, acts, async (before, after) => {
        const [data_dir, restarted_dir] = [newDirectory(), newDirectory()]
        const straight = setWorld({ data_dir })
        const first = setWorld({ data_dir: restarted_dir })
        for (const { world, clock } of [straight, first]) {
          populate(world)
          for (const each of before) act(world, clock, each)
        }
        await first.world.close()
        const world = openWorld({ data_dir: restarted_dir, seed: 7, clock: first.clock })
        expect(world.state).toEqual(straight.world.state)
        for (const each of after) {
          act(straight.world, straight.clock, each)
          act(world, first.clock, each)
        }
        expect(world.state).toEqual(straight.world.state)
        expect(world.nextDueAt()).toEqual(straight.world.nextDueAt())
        await Promise.all([world.close(), straight.world.close()])
      }),
      { numRuns: 15, seed: 2 },
    )
  })

  test('drops a torn last line, and continues after it', async () => {
    const data_dir = newDirectory()
    const path = join(data_dir, 'world.ndjson')
    const { world } = setWorld({ data_dir })
    const { person_id } = world.addPerson({ name: 'Mara' })
    say(world, person_id, 'one')
    await world.close()
    const whole = readFileSync(path, 'utf8')
    appendFileSync(path, '{"entry":"send","seq":2,"acc')
    const again = openWorld({ data_dir, clock: manualClock(start) })
    expect(readFileSync(path, 'utf8')).toBe(whole)
    say(again, person_id, 'two')
    await again.close()
    const third = openWorld({ data_dir, clock: manualClock(start) })
    expect(third.journal(0).map(({ seq, text }) => [seq, text])).toEqual([
      [1, 'one'],
      [2, 'two'],
    ])
    await third.close()
  })

  test('that is damaged in the middle is refused, with the position', async () => {
    const data_dir = newDirectory()
    const { world } = setWorld({ data_dir })
    await world.close()
    appendFileSync(join(data_dir, 'world.ndjson'), 'garbage\n{"entry":"faults_cleared"}\n')
    expect(() => openWorld({ data_dir })).toThrow(/damaged at byte \d+/)
  })

  test('is flushed to disk for all callers that wait together', async () => {
    const { world } = setWorld({ data_dir: newDirectory() })
    const { person_id } = world.addPerson({ name: 'Mara' })
    await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        say(world, person_id, String(n))
        await world.durable()
      }),
    )
    expect(world.journal(0)).toHaveLength(50)
    await world.close()
    expect(() => say(world, person_id, 'closed')).toThrow('closed')
  })
})
