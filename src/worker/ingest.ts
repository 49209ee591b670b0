/** Stores updates: a whole batch in one transaction with its events, its position and its fence. */

import type { App } from '../app.ts'
import { messagesDue, noteOwnMessages, noteReads } from '../capabilities/campaigns/running/running.ts'
import {
  addUnread,
  type ChatState,
  discountUnread,
  recountUnread,
  refreshLastMessages,
  storeChats,
  storeReadMarks,
  storeUnreadCounts,
} from '../capabilities/chats/chats.ts'
import { storeContacts } from '../capabilities/contacts/contacts.ts'
import { noteGap } from '../capabilities/history/history.ts'
import {
  type Deleted,
  deleteMessages,
  findDeleted,
  noteRandomIds,
  type ReceivedMessage,
  storeEdits,
  storeMessages,
  toWire,
} from '../capabilities/messages/messages.ts'
import type { Tx } from '../db/sql.ts'
import { emit, emitted, type NewEvent } from '../events/emit.ts'
import { noteLoginCode } from '../ledger/account-usage.ts'
import { type HeldLease, LeaseLost, noteWrites } from '../ledger/leases.ts'
import { advancePositions } from '../ledger/positions.ts'
import { lockCrossed, noteProofs, type Proof, proofsIn } from '../ledger/proofs.ts'
import { chatIdOf } from '../lib/shapes.ts'
import { toWellFormed } from '../lib/text.ts'
import type { Mark } from '../mark.ts'
import type { Chat, Message, Person, Update, UpdateBatch } from '../platform/port.ts'
import { withoutErased } from './erased.ts'
import { handleIncoming } from './incoming.ts'

/** False: another worker holds the lease by now, or the database has lost commits; nothing was stored. */
export async function ingest(app: App, held: HeldLease, batch: UpdateBatch): Promise<boolean> {
  const { updates: all, position, caught_up } = toWellFormed(batch)
  try {
    const { events, noted, writes, updates } = await app.db.transaction(async (tx) => {
      const [[advanced], isDeleted] = await Promise.all([
        advancePositions(tx, [{ held, position, caught_up }]),
        findDeleted(tx, held, all.flatMap(idOf)),
      ])
      if (!advanced) throw new LeaseLost('The lease of the account is lost.')
      const updates = await withoutErased(tx, held, all) // guard: updates of erased people are not stored
      const sorted = sortOut(updates, isDeleted)
      const happened = await store(app, tx, held, sorted)
      const byHand = await noteOwnMessages(tx, held, [...sorted.own.values()])
      emit(tx, held.workspace_id, happened)
      return { events: happened, noted: byHand, writes: advanced.writes, updates }
    })
    noteWrites(held, writes)
    if (events.length > 0) app.wake.signal(emitted)
    if (noted) app.wake.signal(messagesDue)
    app.wake.mark(...marksOf(held, updates, events)) // guard: ingest marks what it stores
    return true
  } catch (error) {
    if (error instanceof LeaseLost) return false
    throw error
  }
}

/** Where pages may show something else now. */
function marksOf(
  { workspace_id, account_id }: HeldLease,
  updates: readonly Update[],
  events: readonly NewEvent[],
): Mark[] {
  const own = { workspace_id, account_id }
  const replied = events.some(({ type }) => type === 'campaign.replied')
  const marks = updates.flatMap((update): Mark[] => {
    if (update.kind === 'person') return []
    if (update.kind === 'login_code') return [{ ...own, kind: 'accounts' }]
    const number = update.kind === 'message' ? update.chat.id : update.chat_id
    const kind = update.kind === 'unread' ? 'chats' : 'messages'
    return [{ ...own, kind, ...(number !== null && { chat_id: chatIdOf(number) }) }]
  })
  return replied ? [...marks, { workspace_id, kind: 'campaigns' }] : marks
}

function idOf(update: Update): string[] {
  return update.kind === 'message' || update.kind === 'edited' ? [update.message.id] : []
}

/** A batch by kind. Within a kind the stream's order holds; between kinds no order is needed (see `store`). */
interface SortedBatch {
  readonly chats: Map<string, ChatState>
  readonly people: Map<string, Person>
  readonly messages: Map<string, ReceivedMessage>
  readonly edits: Map<string, ReceivedMessage>
  /** Live messages of ours to people. */
  readonly own: Map<string, ReceivedMessage>
  /** The latest count of each chat, whether it came with a message or alone. */
  readonly unread: Map<Chat['id'], number>
  /** How far the latest count of each chat has read, where the platform says so. */
  readonly readUpTo: Map<Chat['id'], string>
  /** Messages that came without a count, after the latest count of their chat. */
  readonly uncounted: Map<string, ReceivedMessage>
  readonly of: { [K in Update['kind']]: Extract<Update, { kind: K }>[] }
}

function sortOut(updates: readonly Update[], isDeleted: Deleted): SortedBatch {
  const of: SortedBatch['of'] = {
    message: [],
    edited: [],
    deleted: [],
    read_by_them: [],
    unread: [],
    sent: [],
    person: [],
    login_code: [],
    gap: [],
  }
  const sorted: SortedBatch = {
    chats: new Map(),
    people: new Map(),
    messages: new Map(),
    edits: new Map(),
    own: new Map(),
    unread: new Map(),
    readUpTo: new Map(),
    uncounted: new Map(),
    of,
  }
  for (const update of updates) {
    of[update.kind].push(update as never)
    if (update.kind === 'message') noteMessage(sorted, update, isDeleted)
    else if (update.kind === 'edited' && !isDeleted(update)) noteEdit(sorted, update.chat_id, update.message)
    else if (update.kind === 'unread') {
      noteUnread(sorted, update.chat_id, update.unread_count)
      if (update.read_up_to === undefined) sorted.readUpTo.delete(update.chat_id)
      else sorted.readUpTo.set(update.chat_id, update.read_up_to)
    } else if (update.kind === 'person') notePerson(sorted, update.person)
  }
  return sorted
}

function noteMessage(
  sorted: SortedBatch,
  { chat, message, live }: Extract<Update, { kind: 'message' }>,
  isDeleted: Deleted,
): void {
  const last = sorted.chats.get(chat.id)?.last ?? null
  sorted.chats.set(chat.id, { chat, last })
  if (chat.unread_count !== null) noteUnread(sorted, chat.id, chat.unread_count)
  for (const person of chat.participants ?? []) notePerson(sorted, person)
  if (isDeleted({ chat_id: chat.id, message })) return
  const place = `${chat.id}:${message.id}`
  const seen = sorted.messages.get(place)
  const version = latestVersion(seen?.message, message)
  const announce = (live && !message.is_sender) || (seen?.announce ?? false)
  const own = { chat_id: chat.id, message: version, announce }
  sorted.messages.set(place, own)
  if (live && message.is_sender && chat.kind === 'private') sorted.own.set(place, own) // guard: only live messages are of a hand
  if (chat.unread_count === null && live && !message.is_sender) sorted.uncounted.set(place, own)
  sorted.chats.set(chat.id, { chat, last: newest(last, version) })
  // It may carry an edit that was missed.
  if (message.edited_at !== null) noteEdit(sorted, chat.id, message)
}

/** The platform's count includes every message before it. */
function noteUnread(sorted: SortedBatch, chat_id: Chat['id'], count: number): void {
  sorted.unread.set(chat_id, count)
  // guard: a count includes the messages before it
  for (const [place, seen] of sorted.uncounted) if (seen.chat_id === chat_id) sorted.uncounted.delete(place)
}

/** Keeps what a later update leaves out: a phone number, or the names. */
function notePerson({ people }: SortedBatch, person: Person): void {
  if (person.kind !== 'person') return
  const before = people.get(person.id)
  const latest = person.stale && before ? before : person // guard: names outlast an update without them
  people.set(person.id, { ...latest, phone: person.phone ?? before?.phone ?? null })
}

function newest(one: Message | null, other: Message): Message {
  if (!one) return other
  const [a, b] = [Date.parse(one.timestamp), Date.parse(other.timestamp)]
  return a > b || (a === b && BigInt(one.id) > BigInt(other.id)) ? one : other
}

/** Of two edits of one message in a batch, only the later is stored and announced. */
function noteEdit(sorted: SortedBatch, chat_id: Chat['id'], message: Message): void {
  const place = `${chat_id}:${message.id}`
  const known = sorted.edits.get(place)?.message
  sorted.edits.set(place, { chat_id, message: latestVersion(known, message), announce: false })
}

/** Of two versions with the same time, the later one in the stream. */
function latestVersion(known: Message | undefined, message: Message): Message {
  const editedAt = ({ edited_at }: Message) => (edited_at === null ? 0 : Date.parse(edited_at))
  return known && editedAt(known) > editedAt(message) ? known : message
}

/** Proofs that the platform accepted our submissions. */
function proofsOf({ of }: SortedBatch): Proof[] {
  return [...of.sent, ...proofsIn(of.message.map(({ message }) => message))]
}

/** How many of them are new in each chat: a message that history brought first is counted already. */
function countNew(
  uncounted: SortedBatch['uncounted'],
  stored: readonly ReceivedMessage[],
): Map<Chat['id'], number> {
  const added = new Map<Chat['id'], number>()
  for (const { chat_id, message } of stored) {
    if (uncounted.has(`${chat_id}:${message.id}`)) added.set(chat_id, (added.get(chat_id) ?? 0) + 1)
  }
  return added
}

/**
 * Messages before their edits, edits before deletions: then the order of arrival does not matter. Sends the statements
 * one after the other without waiting; the database runs them in this order.
 */
async function store(app: App, tx: Tx, held: HeldLease, sorted: SortedBatch): Promise<NewEvent[]> {
  const { account_id } = held
  const { of } = sorted
  const chats = [...sorted.chats.values()].map(({ chat, last }) => ({
    chat: { ...chat, unread_count: sorted.unread.get(chat.id) ?? chat.unread_count },
    last,
  }))
  const unread = new Map([...sorted.unread].filter(([chat_id]) => !sorted.chats.has(chat_id)))
  // The ledger first: a transaction that completes an operation locks its row before the message.
  const [, , stored, edited, deleted] = await Promise.all([
    of.deleted.length > 0 && lockCrossed(tx, account_id), // guard: a deletion waits for the message that it names
    noteProofs(tx, account_id, proofsOf(sorted)),
    storeMessages(tx, held, [...sorted.messages.values()]),
    storeEdits(tx, held, [...sorted.edits.values()]),
    deleteMessages(tx, held, of.deleted),
    storeChats(tx, held, chats),
    storeContacts(tx, held, [...sorted.people.values()]),
    storeReadMarks(tx, held, of.read_by_them),
    storeUnreadCounts(tx, held, unread),
    noteRandomIds(
      tx,
      held,
      of.sent.flatMap(({ chat_id, ...sent }) => (chat_id === null ? [] : [{ ...sent, chat_id }])),
    ),
  ])
  await addUnread(tx, held, countNew(sorted.uncounted, stored))
  // guard: a deleted message is not unread
  if (of.deleted.some(({ uncounted }) => uncounted)) await discountUnread(tx, held, deleted)
  await recountUnread(tx, held, sorted.readUpTo) // guard: what came after the last read message is unread
  await noteGap(tx, held, of.gap)
  for (const { at } of of.login_code) await noteLoginCode(tx, account_id, at)
  const changed = new Set([...edited, ...deleted].map(({ chat_id }) => chat_id))
  await refreshLastMessages(tx, held, [...changed])
  const [replied] = await Promise.all([
    handleIncoming(app, tx, held, [...stored, ...edited]), // guard: edits are handled as incoming
    noteReads(tx, held, of.read_by_them),
  ])
  const received = stored.filter(({ announce }) => announce)
  const about = (chat: Chat['id']) => ({ account_id, chat_id: chatIdOf(chat) })
  return [
    ...received.map(
      ({ chat_id, message }): NewEvent => ({
        type: 'message.received',
        occurred_at: message.timestamp,
        data: { ...about(chat_id), message: toWire(message) },
      }),
    ),
    ...edited.map(
      ({ chat_id, message }): NewEvent => ({
        type: 'message.edited',
        occurred_at: message.edited_at,
        data: { ...about(chat_id), message: toWire(message) },
      }),
    ),
    ...deleted.map(
      ({ chat_id, message_ids }): NewEvent => ({
        type: 'message.deleted',
        occurred_at: null,
        data: { ...about(chat_id), message_ids },
      }),
    ),
    ...replied,
  ]
}
