/** What a session reads: the person behind a name, chats with the archive, contacts, history, read state. */
import type { tl } from '@mtcute/core'
import Long from 'long'
import type { ChatNumber } from '../../lib/shapes.ts'
import type { ChatPage, HistoryPage, Identifier, ListedChat, Message, Person } from '../port.ts'
import { Refused } from './errors.ts'
import { findChatNumber, type Viewer, viewChat, viewMessage } from './view.ts'

/** What reading needs of a session. Functions here throw; the session turns errors into outcomes. */
export interface Reader extends Viewer {
  call<T extends tl.RpcMethod>(request: T): Promise<tl.RpcCallReturn[T['_']]>
  /** Keeps the people and groups that came with an answer. */
  learn(answer: { users?: tl.TypeUser[]; chats?: tl.TypeChat[] }): Promise<void>
  feed(container: tl.TypeUpdates): void
}

/** Telegram rations look-ups, so it is asked only about names that no stored person has. */
export async function resolve(reader: Reader, { kind, value }: Identifier): Promise<Person> {
  const known = findKnown(reader, { kind, value }) // guard: known people are not looked up
  if (known) return known
  // No call can be made about a number without an access hash.
  if (kind === 'id') throw new Refused('username_not_found')
  const found = await reader.call(
    kind === 'username'
      ? { _: 'contacts.resolveUsername', username: value }
      : { _: 'contacts.resolvePhone', phone: digitsOf(value) },
  )
  await reader.learn(found)
  const person = found.peer._ === 'peerUser' ? reader.peers.findPerson(`${found.peer.userId}`) : undefined
  if (!person) throw new Refused('identity_ineligible')
  return person
}

function findKnown({ peers }: Reader, { kind, value }: Identifier): Person | undefined {
  if (kind === 'username') return peers.findByUsername(value)
  if (kind === 'phone') return peers.findByPhone(digitsOf(value))
  return peers.findPerson(value as ChatNumber)
}

function digitsOf(phone: string): string {
  return phone.replaceAll(/\D/g, '')
}

/** Where the next page of chats begins. The archive comes after everything else. */
interface Cursor {
  readonly archive: 0 | 1
  readonly date: number
  readonly message_id: number
  readonly peer: ChatNumber | null
  /** How many chats the earlier folders have. */
  readonly counted: number
}

const firstPage: Cursor = { archive: 0, date: 0, message_id: 0, peer: null, counted: 0 }

function readCursor(after: string | null): Cursor {
  if (after === null) return firstPage
  const [archive, date, message_id, counted, peer] = after.split('.')
  return {
    archive: archive === '1' ? 1 : 0,
    date: Number(date),
    message_id: Number(message_id),
    counted: Number(counted),
    peer: peer ? (peer as ChatNumber) : null,
  }
}

function writeCursor({ archive, date, message_id, counted, peer }: Cursor): string {
  return [archive, date, message_id, counted, peer ?? ''].join('.')
}

export async function listChats(
  reader: Reader,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<ChatPage> {
  const cursor = readCursor(after)
  const { archive, date, message_id, peer, counted } = cursor
  const isFirst = peer === null
  const page = await reader.call({
    _: 'messages.getDialogs',
    folderId: archive,
    // Pinned chats come before the first page, whatever their time.
    ...(!isFirst && { excludePinned: true }),
    offsetDate: date,
    offsetId: message_id,
    offsetPeer: (peer && reader.peers.findInput(peer)) ?? { _: 'inputPeerEmpty' },
    limit,
    hash: Long.ZERO,
  })
  if (page._ === 'messages.dialogsNotModified') return { chats: [], next: null, total: null }
  await reader.learn(page)
  const total = counted + (page._ === 'messages.dialogsSlice' ? page.count : page.dialogs.length)
  const next = nextCursor(page, { cursor, total, self_id: reader.self.id })
  return { chats: viewDialogs(reader, page), next: next && writeCursor(next), total }
}

/** Null: this was the last page of the archive. */
function nextCursor(
  { _: kind, dialogs, messages }: tl.messages.RawDialogs | tl.messages.RawDialogsSlice,
  { cursor, total, self_id }: { cursor: Cursor; total: number; self_id: string },
): Cursor | null {
  const last = dialogs.findLast((each) => each._ === 'dialog')
  const folderEnds = { ...firstPage, archive: 1, counted: total } as const
  const isEnd = kind === 'messages.dialogs' || !last
  if (isEnd) return cursor.archive === 1 ? null : folderEnds
  const message = messages.find((each) => each.id === last.topMessage && isOf(each, last.peer))
  const next: Cursor = {
    ...cursor,
    date: message && 'date' in message ? message.date : cursor.date,
    message_id: last.topMessage,
    peer: offsetPeerOf(last.peer, self_id) ?? cursor.peer,
  }
  // A page whose end equals its start would be requested forever.
  if (writeCursor(next) === writeCursor(cursor)) return cursor.archive === 1 ? null : folderEnds
  return next
}

function isOf(message: tl.TypeMessage, peer: tl.TypePeer): boolean {
  if (!('peerId' in message) || !message.peerId) return false
  return JSON.stringify(message.peerId) === JSON.stringify(peer)
}

/** A channel is not kept, and its offset uses date and message alone. */
function offsetPeerOf(peer: tl.TypePeer, self_id: string): ChatNumber | undefined {
  return peer._ === 'peerUser' ? `${peer.userId}` : findChatNumber(peer, self_id)
}

function viewDialogs(
  reader: Reader,
  { dialogs, messages, chats }: tl.messages.RawDialogs | tl.messages.RawDialogsSlice,
): ListedChat[] {
  const groups = new Set(chats.flatMap((each) => (each._ === 'chat' && !each.deactivated ? [-each.id] : [])))
  return dialogs.flatMap((dialog): ListedChat[] => {
    const id = dialog._ === 'dialog' ? findChatNumber(dialog.peer, reader.self.id) : undefined
    if (dialog._ !== 'dialog' || id === undefined) return []
    // A group that was turned into a supergroup, or that removed the account.
    if (Number(id) < 0 && !groups.has(Number(id))) return []
    const top = messages.find((each) => each.id === dialog.topMessage && isOf(each, dialog.peer))
    const unread_count = Math.max(dialog.unreadCount, dialog.unreadMark ? 1 : 0)
    const last = top?._ === 'message' ? viewMessage(reader.self, top) : null
    return [{ chat: viewChat(reader, id, unread_count), last }]
  })
}

export async function listContacts(reader: Reader): Promise<readonly Person[]> {
  const found = await reader.call({ _: 'contacts.getContacts', hash: Long.ZERO })
  if (found._ === 'contacts.contactsNotModified') return []
  await reader.learn(found)
  return found.users.flatMap(({ id }) => reader.peers.findPerson(`${id}`) ?? [])
}

/** The most that Telegram returns in one answer. */
const historyPageMax = 100
/** Requested in addition, because service messages are omitted. */
const spare = 10

/** As many as requested, unless the chat has no more: a shorter page is its beginning. */
export async function readHistory(
  reader: Reader,
  { chat_id, before, limit }: HistoryPage,
): Promise<readonly Message[]> {
  const peer = requireInput(reader, chat_id)
  const found: Message[] = []
  let offsetId = before === null ? 0 : Number(before.message_id)
  while (found.length < limit) {
    const asked = Math.min(limit - found.length + spare, historyPageMax)
    const page = await reader.call({
      _: 'messages.getHistory',
      ...{ peer, offsetId, offsetDate: 0, addOffset: 0, limit: asked, maxId: 0, minId: 0, hash: Long.ZERO },
    })
    if (page._ === 'messages.messagesNotModified') break
    await reader.learn(page)
    const shown = page.messages.filter((each) => each._ === 'message')
    found.push(...shown.map((each) => viewMessage(reader.self, each)))
    const oldest = page.messages.at(-1)
    if (!oldest || page._ === 'messages.messages' || oldest.id === offsetId) break
    offsetId = oldest.id
  }
  return found.slice(0, limit)
}

export async function setReadState(
  reader: Reader,
  chat_id: ChatNumber,
  unread: boolean,
): Promise<{ readonly unread_count: number }> {
  const peer = requireInput(reader, chat_id)
  const marked = { _: 'messages.markDialogUnread', peer: { _: 'inputDialogPeer', peer } } as const
  if (unread) {
    await reader.call({ ...marked, unread: true })
    return { unread_count: 1 }
  }
  const { pts, ptsCount } = await reader.call({ _: 'messages.readHistory', peer, maxId: 0 })
  // The answer belongs in the order of updates, and Telegram pushes nothing else about it.
  if (ptsCount > 0) reader.feed(readUpdate(chat_id, { pts, ptsCount }))
  return { unread_count: 0 }
}

function readUpdate(chat_id: ChatNumber, order: { pts: number; ptsCount: number }): tl.RawUpdateShort {
  const number = Number(chat_id)
  const peer: tl.TypePeer =
    number > 0 ? { _: 'peerUser', userId: number } : { _: 'peerChat', chatId: -number }
  return {
    _: 'updateShort',
    update: { _: 'updateReadHistoryInbox', peer, maxId: 0, stillUnreadCount: 0, ...order },
    date: 0,
  }
}

function requireInput({ peers }: Reader, chat_id: ChatNumber): tl.TypeInputPeer {
  const input = peers.findInput(chat_id)
  if (!input) throw new Refused('chat_unavailable')
  return input
}
