import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../test/harness/service.ts'
import { createAccount } from '../capabilities/accounts/accounts.ts'
import { sql } from '../db/sql.ts'
import { claimAccounts, type HeldLease } from '../ledger/leases.ts'
import { newId } from '../lib/ids.ts'
import type { Chat, Message, Person, Update } from '../platform/port.ts'
import { ingest } from './ingest.ts'

/** Where a transaction can be made to fail: everything it did before must be rolled back. */
const crashPoints = ['account_hosts', 'messages', 'chats', 'contacts', 'deleted_messages', 'outbox'] as const
type CrashPoint = (typeof crashPoints)[number]

let service: Service
let tenant: Tenant
beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
  const { pool } = service.app.db
  await pool.query('create table crash (at text)')
  await pool.query(`create function crash_on_demand() returns trigger language plpgsql as $$
    begin
      if exists (select from crash where at = tg_table_name) then raise exception 'crashed on demand'; end if;
      return null;
    end $$`)
  for (const table of crashPoints) {
    await pool.query(`create trigger crash after insert or update or delete on ${table}
      for each statement execute function crash_on_demand()`)
  }
})
afterAll(() => service.close())

async function newHeld(): Promise<HeldLease> {
  const { workspace_id } = tenant
  await createAccount(service.app, 'system', { workspace_id, platform: 'sandbox', name: 'Sales' })
  const worker_id = newId()
  const [lease] = await claimAccounts(service.app.db, {
    worker_id,
    platform: 'sandbox',
    limit: 1,
    takeover_seconds: 0,
    neighbours: [],
  })
  if (!lease) throw new Error('There was no account to claim.')
  return { worker_id, ...lease, writes: { seen: lease.writes } }
}

async function setCrash(at: CrashPoint | null): Promise<void> {
  await service.app.db.pool.query('delete from crash')
  if (at) await service.app.db.pool.query('insert into crash values ($1)', [at])
}

const second = (n: number) => new Date(Date.UTC(2026, 10, 2, 9, 0, n)).toISOString()

// Two people, a group, and a channel with its own message numbers.
const channel = '-1000000000007'
const chatOfNumber = (n: number) => (['11', '12', '-3'] as const)[n % 3] ?? '11'
const kinds: Record<string, Chat['kind']> = { '11': 'private', '12': 'private', '-3': 'group' }

/** What never changes about the n-th message of a chat. Times repeat, so that ties must be broken. */
function original(chat_id: Chat['id'], n: number): Message {
  const is_sender = n % 4 === 0
  return {
    id: String(n),
    text: `${chat_id} said ${n}`,
    is_sender,
    sender_id: is_sender ? '1' : '11',
    timestamp: second(n % 3),
    edited_at: null,
    attachments: [],
    random_id: null,
  }
}

interface Version {
  readonly edited: number
  readonly text: string
}

function edition(chat_id: Chat['id'], n: number, { edited, text }: Version): Message {
  return { ...original(chat_id, n), text, edited_at: second(30 + edited) }
}

function chat(id: Chat['id'], name: string, unread_count: number): Chat {
  const participants =
    Number(id) > 0
      ? [{ id, name, username: null, phone: name === 'Ann' ? '+4420' : null, kind: 'person' as const }]
      : []
  return { id, kind: kinds[id] ?? 'channel', name, username: null, unread_count, participants }
}

const number = fc.integer({ min: 1, max: 7 })
const place = fc
  .record({ n: number, in_channel: fc.boolean() })
  .map(({ n, in_channel }) => ({ n, chat_id: in_channel ? (channel as Chat['id']) : chatOfNumber(n) }))
const version = fc.record({ edited: fc.integer({ min: 0, max: 2 }), text: fc.constantFrom('a', 'b', 'c') })
const name = fc.constantFrom('Ann', 'Bob')
const unread = fc.integer({ min: 0, max: 5 })

const messageUpdate = fc
  .record({ place, name, unread, live: fc.boolean(), version: fc.option(version, { freq: 4 }) })
  .map(
    (given): Update => ({
      kind: 'message',
      chat: chat(given.place.chat_id, given.name, given.unread),
      message: given.version
        ? edition(given.place.chat_id, given.place.n, given.version)
        : original(given.place.chat_id, given.place.n),
      live: given.live,
    }),
  )

const update: fc.Arbitrary<Update> = fc.oneof(
  { weight: 5, arbitrary: messageUpdate },
  {
    weight: 3,
    arbitrary: fc.record({ place, version }).map(
      ({ place: { chat_id, n }, version: given }): Update => ({
        kind: 'edited',
        chat_id,
        message: edition(chat_id, n, given),
      }),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record({ place, named: fc.boolean() }).map(
      ({ place: { chat_id, n }, named }): Update => ({
        kind: 'deleted',
        // A channel's deletion always names it.
        chat_id: named || chat_id === channel ? chat_id : null,
        message_ids: [String(n)],
      }),
    ),
  },
  {
    weight: 1,
    arbitrary: place.map(
      ({ chat_id, n }): Update => ({
        kind: 'read_by_them',
        chat_id,
        up_to_message_id: String(n),
        at: second(n),
      }),
    ),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ place, unread })
      .map((given): Update => ({ kind: 'unread', chat_id: given.place.chat_id, unread_count: given.unread })),
  },
  {
    weight: 1,
    arbitrary: fc.record({ id: fc.constantFrom('11', '12', '13'), name }).map(
      ({ id, name: given }): Update => ({
        kind: 'person',
        person: { id, name: given, username: null, phone: given === 'Bob' ? '+4930' : null, kind: 'person' },
      }),
    ),
  },
)

interface Delivery {
  readonly updates: readonly Update[]
  readonly crashes: readonly CrashPoint[]
}

/** A stream as it arrives: some updates twice, in any order (each is drawn by itself), cut anywhere, with crashes. */
const deliveries: fc.Arbitrary<Delivery[]> = fc.array(
  fc.record({
    updates: fc
      .record({ fresh: fc.array(update, { maxLength: 6 }), again: fc.nat(5) })
      .map(({ fresh, again }) => [...fresh, ...fresh.slice(0, again)]),
    crashes: fc.array(fc.constantFrom(...crashPoints), { maxLength: 2 }),
  }),
  { maxLength: 7 },
)

/** The expected inbox: plain maps, one update at a time. */
class Model {
  readonly chats = new Map<string, ModelChat>()
  readonly messages = new Map<string, ModelMessage>()
  readonly deleted = new Set<string>()
  readonly contacts = new Map<string, { name: string; phone: string | null }>()
  readonly events: string[] = []

  take(updates: readonly Update[]): void {
    const of = <K extends Update['kind']>(kind: K) =>
      updates.filter((each): each is Extract<Update, { kind: K }> => each.kind === kind)
    const late = new Set(this.deleted)
    const isLate = (chat_id: string, id: string) => late.has(key(chat_id, id))
    for (const each of updates) this.#noteChat(each)
    const arrived = of('message').filter((each) => !isLate(each.chat.id, each.message.id))
    for (const group of groupBy(arrived, (each) => key(each.chat.id, each.message.id))) this.#arrive(group)
    const editions = updates.flatMap((each) => {
      if (each.kind === 'edited') return [{ chat_id: each.chat_id, message: each.message }]
      const isEdition = each.kind === 'message' && each.message.edited_at !== null
      return isEdition ? [{ chat_id: each.chat.id, message: each.message }] : []
    })
    const open = editions.filter((each) => !isLate(each.chat_id, each.message.id))
    for (const group of groupBy(open, (each) => key(each.chat_id, each.message.id))) this.#edit(group)
    for (const each of of('deleted')) this.#remove(each)
  }

  #noteChat(each: Update): void {
    if (each.kind === 'message') {
      const { id, kind, name: given, unread_count } = each.chat
      this.chats.set(id, { ...this.#chat(id), kind, name: given, unread_count: unread_count ?? 0 })
      for (const person of each.chat.participants ?? []) this.#person(person.id, person.name, person.phone)
    } else if (each.kind === 'unread') {
      this.chats.set(each.chat_id, { ...this.#chat(each.chat_id), unread_count: each.unread_count })
    } else if (each.kind === 'read_by_them') {
      const known = this.#chat(each.chat_id)
      const read = Math.max(known.read ?? 0, Number(each.up_to_message_id))
      this.chats.set(each.chat_id, { ...known, read })
    } else if (each.kind === 'person') {
      this.#person(each.person.id, each.person.name, each.person.phone)
    }
  }

  #chat(id: string): ModelChat {
    const unknown = {
      kind: Number(id) > 0 ? 'private' : 'group',
      name: '',
      unread_count: 0,
      read: null,
    } as const
    return this.chats.get(id) ?? unknown
  }

  #person(id: string, given: string, phone: string | null): void {
    this.contacts.set(id, { name: given, phone: phone ?? this.contacts.get(id)?.phone ?? null })
  }

  /** The newest version of what arrived together; announced once, if it is live and incoming. */
  #arrive(group: readonly Extract<Update, { kind: 'message' }>[]): void {
    const [first] = group
    if (!first) return
    const place = key(first.chat.id, first.message.id)
    const message = newestOf(group.map((each) => each.message))
    const announce = group.some(({ live }) => live) && !message.is_sender
    const known = this.messages.get(place)
    if (announce && !known?.announced) this.events.push(`message.received ${place} ${message.text}`)
    const state = known ?? { chat_id: first.chat.id, message, announced: false }
    this.messages.set(place, { ...state, announced: state.announced || announce })
  }

  /** The newest edit of what arrived together, if it is not older than the known text and changes something. */
  #edit(group: readonly { chat_id: string; message: Message }[]): void {
    const [first] = group
    if (!first) return
    const place = key(first.chat_id, first.message.id)
    const message = newestOf(group.map((each) => each.message))
    const known = this.messages.get(place)
    if (known && (known.message.edited_at ?? '') > (message.edited_at ?? '')) return
    if (known?.message.edited_at === message.edited_at && known.message.text === message.text) return
    this.messages.set(place, { chat_id: first.chat_id, announced: known?.announced ?? false, message })
    this.chats.set(first.chat_id, this.#chat(first.chat_id))
    this.events.push(`message.edited ${place} ${message.text}`)
  }

  #remove({ chat_id, message_ids }: Extract<Update, { kind: 'deleted' }>): void {
    for (const id of message_ids) {
      const place = key(chat_id ?? chatOfNumber(Number(id)), id)
      if (this.messages.has(place) && !this.deleted.has(place)) this.events.push(`message.deleted ${place}`)
      this.deleted.add(place)
    }
  }

  visible(): ModelMessage[] {
    return [...this.messages].flatMap(([place, state]) => (this.deleted.has(place) ? [] : [state]))
  }

  lastOf(chat_id: string): Message | undefined {
    const order = ({ timestamp, id }: Message) => `${timestamp} ${id}`
    return this.visible()
      .filter((each) => each.chat_id === chat_id)
      .map(({ message }) => message)
      .sort((a, b) => (order(a) < order(b) ? 1 : -1))[0]
  }
}

interface ModelChat {
  readonly kind: string
  readonly name: string
  readonly unread_count: number
  readonly read: number | null
}

interface ModelMessage {
  readonly chat_id: string
  readonly message: Message
  readonly announced: boolean
}

function key(chat_id: string, id: string): string {
  return `${chat_id}:${id}`
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): T[][] {
  return [...Map.groupBy(items, keyOf).values()]
}

/** Of two versions at the same time the later one in the stream. */
function newestOf(messages: readonly [Message, ...Message[]] | readonly Message[]): Message {
  return messages.reduce((known, each) => ((known.edited_at ?? '') > (each.edited_at ?? '') ? known : each))
}

async function readRows({ account_id }: HeldLease) {
  const { db } = service.app
  const messages = await db.rows<{ place: string; text: string; edited_at: Date | null; sent_at: Date }>(sql`
    select chat_id || ':' || id as place, text, is_sender, sent_at, edited_at from messages
    where account_id = ${account_id} and deleted_at is null`)
  const gone = await db.rows(sql`
    select text, attachments from messages where account_id = ${account_id} and deleted_at is not null
      and (text <> '' or attachments <> '[]')`)
  const chats = await db.rows<{ chat_id: string; last_message_id: string | null; read: number | null }>(sql`
    select chat_id, kind, name, unread_count, read_by_them_id::int as read, last_message_id, last_message_text,
      nullif(last_message_at, '-infinity') as last_message_at
    from chats where account_id = ${account_id}`)
  const contacts = await db.rows(sql`
    select provider_id, name, phone from contacts where account_id = ${account_id} order by provider_id`)
  const events = await db.rows<{ type: string; data: EventData }>(sql`
    select type, data from outbox where data ->> 'account_id' = ${account_id} order by id`)
  return {
    messages: messages.sort((a, b) => (a.place < b.place ? -1 : 1)),
    gone,
    chats: chats.sort((a, b) => (a.chat_id < b.chat_id ? -1 : 1)),
    contacts,
    events: events.flatMap(describeEvent).sort(),
  }
}

interface EventData {
  readonly chat_id: string
  readonly message?: { readonly id: string; readonly text: string }
  readonly message_ids?: readonly string[]
}

function describeEvent({ type, data }: { type: string; data: EventData }): string[] {
  const chat_id = data.chat_id.replace('platform:chat:', '')
  if (data.message) return [`${type} ${key(chat_id, data.message.id)} ${data.message.text}`]
  return (data.message_ids ?? []).map((id) => `${type} ${key(chat_id, id)}`)
}

function expectedRows(model: Model): Awaited<ReturnType<typeof readRows>> {
  const messages = model.visible().map(({ chat_id, message }) => ({
    place: key(chat_id, message.id),
    text: message.text,
    is_sender: message.is_sender,
    sent_at: new Date(message.timestamp),
    edited_at: message.edited_at === null ? null : new Date(message.edited_at),
  }))
  const chats = [...model.chats].map(([chat_id, { kind, name: given, unread_count, read }]) => {
    const last = model.lastOf(chat_id)
    return {
      chat_id,
      kind,
      name: given,
      unread_count,
      read,
      last_message_id: last?.id ?? null,
      last_message_text: last?.text ?? null,
      last_message_at: last ? new Date(last.timestamp) : null,
    }
  })
  const contacts = [...model.contacts].map(([provider_id, { name: given, phone }]) => ({
    provider_id,
    name: given,
    phone,
  }))
  return {
    messages: messages.sort((a, b) => (a.place < b.place ? -1 : 1)),
    gone: [],
    chats: chats.sort((a, b) => (a.chat_id < b.chat_id ? -1 : 1)),
    contacts: contacts.sort((a, b) => Number(a.provider_id) - Number(b.provider_id)),
    events: [...model.events].sort(),
  }
}

describe('updates in any order, cut anywhere, late, twice, with crashes', () => {
  test('become the rows and the events of a plain model, each once', async () => {
    await fc.assert(
      fc.asyncProperty(deliveries, async (given) => {
        const held = await newHeld()
        const model = new Model()
        for (const [at, { updates, crashes }] of given.entries()) {
          const batch = { updates, position: String(at + 1), caught_up: true }
          for (const crash of crashes) {
            await setCrash(crash)
            // A batch that never reaches that point is stored, and repeating it below changes nothing.
            if (await ingest(service.app, held, batch).catch(() => false)) model.take(updates)
          }
          await setCrash(null)
          expect(await ingest(service.app, held, batch)).toBe(true)
          model.take(updates)
        }
        expect(await readRows(held)).toEqual(expectedRows(model))
      }),
      { numRuns: 80 },
    )
  })

  test('leave the same inbox in any order, if the platform says what is newer', async () => {
    const distinct = fc.uniqueArray(update, { selector: subjectOf, minLength: 2, maxLength: 14 })
    const orders = distinct.chain((updates) =>
      fc.record({
        one: fc.constant(updates),
        other: fc.shuffledSubarray(updates, { minLength: updates.length, maxLength: updates.length }),
        size: fc.integer({ min: 1, max: 14 }),
      }),
    )
    await fc.assert(
      fc.asyncProperty(orders, async ({ one, other, size }) => {
        const first = await inboxAfter(one, one.length)
        expect(await inboxAfter(other, size)).toEqual(first)
      }),
      { numRuns: 40 },
    )
  })
})

/**
 * When two updates contradict each other at the same time, the last to arrive decides. Here no update repeats, so
 * that the order decides nothing; names and unread counts carry no time and are not compared.
 */
function subjectOf(each: Update): string {
  switch (each.kind) {
    case 'message':
      return `version ${key(each.chat.id, each.message.id)} ${each.message.edited_at}`
    case 'edited':
      return `version ${key(each.chat_id, each.message.id)} ${each.message.edited_at}`
    case 'deleted':
      return `deleted ${each.chat_id} ${each.message_ids}`
    case 'read_by_them':
      return `read ${each.chat_id} ${each.up_to_message_id}`
    case 'unread':
      return `unread ${each.chat_id}`
    default:
      return each.kind
  }
}

/** What a reader sees: existing messages, and the chats that have any. */
async function inboxAfter(updates: readonly Update[], size: number) {
  const held = await newHeld()
  for (let at = 0; at < updates.length; at += size) {
    await ingest(service.app, held, {
      updates: updates.slice(at, at + size),
      position: String(at + 1),
      caught_up: true,
    })
  }
  const { messages, gone, chats } = await readRows(held)
  const holding = chats.filter(({ last_message_id, read }) => last_message_id !== null || read !== null)
  return { messages, gone, chats: holding.map((row) => ({ ...row, name: '', unread_count: 0 })) }
}

describe('an account session whose lease is gone', () => {
  test('stores nothing: no row, no event, no position', async () => {
    const held = await newHeld()
    const updates: Update[] = [
      { kind: 'message', chat: chat('11', 'Ann', 1), message: original('11', 1), live: true },
    ]
    const stolen = { ...held, epoch: String(BigInt(held.epoch) - 1n) }
    expect(await ingest(service.app, stolen, { updates, position: '9', caught_up: true })).toBe(false)
    expect(
      await ingest(service.app, { ...held, worker_id: newId() }, { updates, position: '9', caught_up: true }),
    ).toBe(false)
    expect(await readRows(held)).toEqual({ messages: [], gone: [], chats: [], contacts: [], events: [] })
    const row = await service.app.db.one(
      sql`select position from account_hosts where account_id = ${held.account_id}`,
    )
    expect(row).toEqual({ position: null })
  })
})

describe('a platform that reports no unread count with a message', () => {
  const silent = (id: Chat['id']): Chat => ({ ...chat(id, 'Ann', 0), unread_count: null })
  const message = (n: number, id: Chat['id'] = '11'): Update => ({
    kind: 'message',
    chat: silent(id),
    message: original(id, n),
    live: true,
  })
  const counted = (chat_id: Chat['id'], unread_count: number): Update => ({
    kind: 'unread',
    chat_id,
    unread_count,
  })

  async function unreadAfter(held: HeldLease, ...batches: readonly (readonly Update[])[]): Promise<number> {
    for (const [at, updates] of batches.entries()) {
      await ingest(service.app, held, { updates, position: String(at), caught_up: true })
    }
    const { unread_count } = await service.app.db.one<{ unread_count: number }>(sql`
      select unread_count from chats where account_id = ${held.account_id} and chat_id = 11`)
    return unread_count
  }

  test('every new incoming message adds one, an own one or a repeated one none', async () => {
    const held = await newHeld()
    expect(await unreadAfter(held, [message(1)], [message(2), message(3)])).toBe(3)
    expect(await unreadAfter(held, [message(4), message(2)])).toBe(3)
  })

  test('a count includes the messages before it, in its batch or earlier, and later ones add to it', async () => {
    const held = await newHeld()
    expect(await unreadAfter(held, [message(1), message(2), counted('11', 7), message(3)])).toBe(8)
    expect(await unreadAfter(held, [counted('11', 0)], [message(5)])).toBe(1)
    expect(await unreadAfter(held, [message(6), counted('11', 0)])).toBe(0)
  })

  test('what came after the last read message is unread, in whatever order both arrive', async () => {
    const read = (read_up_to: string, unread_count: number): Update => ({
      ...{ kind: 'unread', chat_id: '11', unread_count },
      read_up_to,
    })
    const held = await newHeld()
    // A difference: the chat was read before the third message came, or the count is of a later moment.
    expect(await unreadAfter(held, [message(1), message(2), message(3), read('2', 0)])).toBe(1)
    expect(await unreadAfter(held, [message(5), read('3', 1)])).toBe(1)
    expect(await unreadAfter(held, [read('5', 0)], [message(6)])).toBe(1)
    // The store does not reach back to what was read, so only the platform can count.
    expect(await unreadAfter(await newHeld(), [message(5), read('2', 4)])).toBe(4)
  })

  test('a deleted message is unread no longer, and one that was read changes nothing', async () => {
    const deleted = (...message_ids: string[]): Update => ({
      ...{ kind: 'deleted', chat_id: null, message_ids },
      uncounted: true,
    })
    const held = await newHeld()
    const three = [message(1), message(2), message(3)]
    expect(await unreadAfter(held, three, [counted('11', 2)], [deleted('1')])).toBe(2)
    expect(await unreadAfter(held, [deleted('2')], [deleted('2')])).toBe(1)
    // It comes and goes in one batch; the fourth is our own.
    expect(await unreadAfter(held, [message(4), message(5), deleted('5', '4')])).toBe(1)
    expect(await unreadAfter(held, [message(6), deleted('6', '3')])).toBe(0)
  })

  test('the participants it does not list stay as they were', async () => {
    const held = await newHeld()
    const named: Update = {
      kind: 'message',
      chat: chat('11', 'Ann', 2),
      message: original('11', 1),
      live: true,
    }
    const unnamed: Update = {
      kind: 'message',
      chat: { ...silent('11'), participants: null },
      message: original('11', 2),
      live: true,
    }
    expect(await unreadAfter(held, [named], [unnamed])).toBe(3)
    const { participants } = await service.app.db.one<{ participants: { name: string }[] }>(sql`
      select participants from chats where account_id = ${held.account_id} and chat_id = 11`)
    expect(participants).toMatchObject([{ name: 'Ann' }])
  })

  test('names that it has not shown are neither stored nor learned, and what was stored stays', async () => {
    const held = await newHeld()
    const { account_id } = held
    const at = (id: '11' | '12', names: Partial<Person>, n: number): Update => {
      const person: Person = { id, name: `Ann ${id}`, username: null, phone: null, kind: 'person', ...names }
      const { name, username } = person
      return {
        kind: 'message',
        chat: { ...silent(id), name, username, participants: [person] },
        message: original(id, n),
        live: true,
      }
    }
    const stale = { stale: true, name: 'Ann Kept' } as const
    const [ann, both] = [`ann_${newId()}`, { username: `ann_${newId()}`, phone: '+4420' }]
    await unreadAfter(held, [at('11', { username: ann }, 1)], [at('11', stale, 2), at('12', stale, 3)])
    const stored = () =>
      service.app.db.rows(sql`
        select h.chat_id::text as id, h.name, h.username, h.participants -> 0 ->> 'username' as shown,
          h.participants -> 0 ->> 'kind' as kind, h.name_tokens is null as has_contact, c.name as contact, c.phone,
          array(select n.value from people p join person_names n on n.person_id = p.id
            where p.workspace_id = ${held.workspace_id} and p.number = h.chat_id and n.account_id = ${account_id}
              and n.until is null order by 1) as names
        from chats h left join contacts c on c.account_id = h.account_id and c.provider_id = h.chat_id
        where h.account_id = ${account_id} order by 1`)
    const first = { id: '11', name: 'Ann Kept', kind: 'person', contact: 'Ann 11', has_contact: false }
    expect(await stored()).toMatchObject([
      { ...first, username: ann, shown: ann, phone: null, names: [ann.toLowerCase()] },
      // What they are called is for show, and found by the chat.
      {
        id: '12',
        name: 'Ann Kept',
        username: null,
        kind: 'person',
        contact: null,
        has_contact: false,
        names: [],
      },
    ])
    // In one batch with a message that shows them, in either order, that one counts.
    await unreadAfter(
      held,
      [at('11', both, 4), at('11', stale, 5)],
      [at('12', stale, 6), at('12', { username: ann }, 7)],
    )
    expect(await stored()).toMatchObject([
      {
        id: '11',
        contact: 'Ann 11',
        phone: both.phone,
        names: [both.phone.slice(1), both.username].toSorted(),
      },
      { id: '12', username: ann, contact: 'Ann 12', names: [ann.toLowerCase()] },
    ])
  })
})
