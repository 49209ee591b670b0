/** Updates become rows: a whole batch in one transaction with its events, its position and its fence. */
import { advancePosition } from '../access/ledger/hosts.ts'
import type { App } from '../app.ts'
import {
  refreshLastMessages,
  storeChats,
  storeReadMarks,
  storeUnreadCounts,
} from '../capabilities/chats/chats.ts'
import { storeContacts } from '../capabilities/contacts/contacts.ts'
import {
  deleteMessages,
  type Seen,
  storeEdits,
  storeMessages,
  toWire,
} from '../capabilities/messages/messages.ts'
import type { Tx } from '../db/sql.ts'
import { emit, type NewEvent } from '../events/emit.ts'
import { chatPrefix } from '../lib/shapes.ts'
import type { Chat, Message, Person, Update, UpdateBatch } from '../platform/port.ts'

export interface Held {
  readonly owner: string
  readonly account_id: string
  readonly workspace_id: string
  readonly epoch: string
}

/** False: the lease is somebody else's by now, and nothing was stored. */
export async function ingest(app: App, held: Held, { updates, position }: UpdateBatch): Promise<boolean> {
  const stored = await app.db.transaction(async (tx) => {
    if (!(await advancePosition(tx, { ...held, position }))) return false
    const events = await store(tx, held, sortOut(updates))
    await emit(tx, held.workspace_id, events)
    return events.length > 0 ? 'announced' : true
  })
  if (stored === 'announced') app.wake.signal('outbox')
  return stored !== false
}

/** A batch by kind. Within a kind the stream's order holds; between kinds no order is needed (see `store`). */
interface Sorted {
  readonly chats: Map<string, Chat>
  readonly people: Map<string, Person>
  readonly messages: Map<string, Seen>
  readonly edits: Map<string, Seen>
  readonly of: { [K in Update['kind']]: Extract<Update, { kind: K }>[] }
}

function sortOut(updates: readonly Update[]): Sorted {
  const of: Sorted['of'] = {
    message: [],
    edited: [],
    deleted: [],
    read_by_them: [],
    unread: [],
    sent: [],
    person: [],
  }
  const sorted: Sorted = { chats: new Map(), people: new Map(), messages: new Map(), edits: new Map(), of }
  for (const update of updates) {
    of[update.kind].push(update as never)
    if (update.kind === 'message') noteMessage(sorted, update)
    else if (update.kind === 'edited') noteEdit(sorted, update.chat_id, update.message)
    else if (update.kind === 'person') sorted.people.set(update.person.id, update.person)
  }
  return sorted
}

function noteMessage(sorted: Sorted, update: Extract<Update, { kind: 'message' }>): void {
  const { chat, message, live } = update
  sorted.chats.set(chat.id, chat)
  for (const person of chat.participants) {
    if (person.kind === 'person') sorted.people.set(person.id, person)
  }
  const place = `${chat.id}:${message.id}`
  const announce = (live && !message.is_sender) || (sorted.messages.get(place)?.announce ?? false)
  sorted.messages.set(place, { chat_id: chat.id, message, announce })
}

/** Of two edits of one message in a batch the later one is what everybody hears of. */
function noteEdit(sorted: Sorted, chat_id: string, message: Message): void {
  const place = `${chat_id}:${message.id}`
  const known = sorted.edits.get(place)?.message
  if (known && (known.edited_at ?? '') > (message.edited_at ?? '')) return
  sorted.edits.set(place, { chat_id, message, announce: false })
}

/** Messages before their edits, edits before deletions: then the order of arrival does not matter. */
async function store(tx: Tx, held: Held, sorted: Sorted): Promise<NewEvent[]> {
  const { account_id } = held
  const { of } = sorted
  await storeContacts(tx, held, [...sorted.people.values()])
  const received = await storeMessages(tx, held, [...sorted.messages.values()])
  const edited = await storeEdits(tx, held, [...sorted.edits.values()])
  const deleted = await deleteMessages(tx, held, of.deleted)
  await storeChats(tx, held, [...sorted.chats.values()])
  const changed = new Set([...edited, ...deleted].map(({ chat_id }) => chat_id))
  await refreshLastMessages(
    tx,
    held,
    [...changed].filter((chat_id) => !sorted.chats.has(chat_id)),
  )
  await storeReadMarks(tx, held, of.read_by_them)
  await storeUnreadCounts(
    tx,
    held,
    new Map(of.unread.map(({ chat_id, unread_count }) => [chat_id, unread_count])),
  )
  const about = (chat: Chat['id']) => ({ account_id, chat_id: `${chatPrefix}${chat}` })
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
  ]
}
