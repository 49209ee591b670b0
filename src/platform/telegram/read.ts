/** What a session reads: the person behind a name, chats with the archive, contacts, history, read state. */
import type { tl } from '@mtcute/core'
import Long from 'long'
import type { ChatNumber } from '../../lib/shapes.ts'
import type { Identifier } from '../../rules/identifier.ts'
import type { AskedPerson, ChatPage, HistoryPage, ListedChat, Message, Person } from '../port.ts'
import { Refused } from './errors.ts'
import type { Peers } from './peers.ts'
import { findChatNumber, peopleIn, type Viewer, viewChat, viewMessage } from './view.ts'

/** The people and groups that Telegram adds to an answer. */
export interface Answered {
  readonly users?: readonly tl.TypeUser[]
  readonly chats?: readonly tl.TypeChat[]
}

/** What reading needs of a session. Functions here throw; the session turns errors into outcomes. */
export interface Reader extends Viewer {
  readonly peers: Peers
  call<T extends tl.RpcMethod>(request: T): Promise<tl.RpcCallReturn[T['_']]>
  /** Keeps the groups that came with an answer, and its people: all of them, or only those that are shown. */
  learn(answer: Answered, shown?: ReadonlySet<number>): Promise<void>
  feed(container: tl.TypeUpdates): void
}

/** Looks a name up, which Telegram rations. By an id, it finds nobody. */
export async function resolve(reader: Reader, { kind, value }: Identifier): Promise<Person> {
  if (kind === 'id') throw new Refused('username_not_found')
  const found = await reader.call(
    kind === 'username'
      ? { _: 'contacts.resolveUsername', username: value }
      : { _: 'contacts.resolvePhone', phone: digitsOf(value) },
  )
  await reader.learn(found)
  const { peer, users } = found
  const person = peer._ === 'peerUser' ? reader.peers.with(users).findPerson(`${peer.userId}`) : undefined
  if (!person) throw new Refused('identity_ineligible')
  return person
}

/** No call can be made about a number without an access hash. A phone number that is not shown proves nothing. */
export async function askPerson(
  reader: Reader,
  person_id: string,
  { kind, value }: Identifier,
): Promise<AskedPerson | null> {
  const peer = reader.peers.findInput(person_id as ChatNumber)
  if (peer?._ !== 'inputPeerUser') return null
  const { userId, accessHash } = peer
  const users = await reader.call({ _: 'users.getUsers', id: [{ _: 'inputUser', userId, accessHash }] })
  await reader.learn({ users })
  const user = users.find((one) => one._ === 'user' && one.id === userId)
  const person = reader.peers.with(users).findPerson(person_id as ChatNumber)
  // Of a person in short form Telegram leaves names out.
  if (user?._ !== 'user' || user.min || !person) return null // guard: a short form denies no name
  if (kind === 'id') return { person, has_name: true }
  const active = (user.usernames ?? []).flatMap((one) => (one.active ? [one.username] : [])) // guard: a username that is switched off
  const has_name =
    kind === 'username'
      ? [user.username, ...active].some((name) => name?.toLowerCase() === value.toLowerCase())
      : user.phone === digitsOf(value) // guard: a number that is not shown proves nothing
  return { person, has_name }
}

function digitsOf(phone: string): string {
  return phone.replaceAll(/\D/g, '')
}

/** Where the next page of chats begins. The archive comes after everything else. */
interface Cursor {
  readonly archive: 0 | 1
  readonly date: number
  readonly message_id: number
  /**
   * The chat that ended the page, with its access hash: Telegram looks for it, and a channel is not kept elsewhere. Null: the
   * first page.
   */
  readonly peer: string | null
  /** How many chats the earlier folders have. */
  readonly counted: number
}

type Dialogs = tl.messages.RawDialogs | tl.messages.RawDialogsSlice

const firstPage: Cursor = { archive: 0, date: 0, message_id: 0, peer: null, counted: 0 }

function readCursor(after: string | null): Cursor {
  if (after === null) return firstPage
  const [archive, date, message_id, counted, peer] = after.split('.')
  return {
    archive: archive === '1' ? 1 : 0,
    date: Number(date),
    message_id: Number(message_id),
    counted: Number(counted),
    peer: peer || null,
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
    offsetPeer: peer === null ? { _: 'inputPeerEmpty' } : readOffsetPeer(reader, peer),
    limit,
    hash: Long.ZERO,
  })
  if (page._ === 'messages.dialogsNotModified') return { chats: [], next: null, total: null }
  await reader.learn(page, peopleOfDialogs(page, reader.self.id))
  const total = counted + (page._ === 'messages.dialogsSlice' ? page.count : page.dialogs.length)
  const next = nextCursor(page, { cursor, total })
  return { chats: viewDialogs(reader, page), next: next && writeCursor(next), total }
}

/** Null: this was the last page of the archive. */
function nextCursor(page: Dialogs, { cursor, total }: { cursor: Cursor; total: number }): Cursor | null {
  const { _: kind, dialogs, messages } = page
  const last = dialogs.findLast((each) => each._ === 'dialog')
  const folderEnds = { ...firstPage, archive: 1, counted: total } as const
  const isEnd = kind === 'messages.dialogs' || !last
  if (isEnd) return cursor.archive === 1 ? null : folderEnds
  const message = messages.find((each) => each.id === last.topMessage && isOf(each, last.peer))
  const next: Cursor = {
    ...cursor,
    date: message && 'date' in message ? message.date : cursor.date,
    message_id: last.topMessage,
    peer: writeOffsetPeer(last.peer, page),
  }
  // A page whose end equals its start would be requested forever.
  if (writeCursor(next) === writeCursor(cursor)) return cursor.archive === 1 ? null : folderEnds
  return next
}

function isOf(message: tl.TypeMessage, peer: tl.TypePeer): boolean {
  if (!('peerId' in message) || !message.peerId) return false
  return JSON.stringify(message.peerId) === JSON.stringify(peer)
}

/** As `user:7:70`, `channel:3:30` or `chat:4`. */
function writeOffsetPeer(peer: tl.TypePeer, { users, chats }: Dialogs): string {
  if (peer._ === 'peerChat') return `chat:${peer.chatId}`
  const isUser = peer._ === 'peerUser'
  const id = isUser ? peer.userId : peer.channelId
  const found = (isUser ? users : chats).find((each) => each.id === id)
  const hash = found && 'accessHash' in found ? found.accessHash : undefined
  return `${isUser ? 'user' : 'channel'}:${id}:${hash ?? 0}` // guard: the cursor keeps the channel
}

/** A cursor of release 0.3 has the chat's number alone. */
function readOffsetPeer({ peers }: Reader, text: string): tl.TypeInputPeer {
  const [kind, id, hash = '0'] = text.split(':')
  const accessHash = Long.fromString(hash)
  if (kind === 'user') return { _: 'inputPeerUser', userId: Number(id), accessHash }
  if (kind === 'channel') return { _: 'inputPeerChannel', channelId: Number(id), accessHash }
  if (kind === 'chat') return { _: 'inputPeerChat', chatId: Number(id) }
  return peers.findInput(text as ChatNumber) ?? { _: 'inputPeerEmpty' }
}

/** The people of the private chats, and who wrote the last message of a group. */
function peopleOfDialogs({ dialogs, messages }: Dialogs, self_id: string): Set<number> {
  const people = peopleIn(messages, self_id)
  for (const { peer } of dialogs) if (peer?._ === 'peerUser') people.add(peer.userId)
  return people
}

function viewDialogs(reader: Reader, { dialogs, messages, chats, users }: Dialogs): ListedChat[] {
  const viewer = { self: reader.self, peers: reader.peers.with(users) }
  const groups = new Set(chats.flatMap((each) => (each._ === 'chat' && !each.deactivated ? [-each.id] : [])))
  return dialogs.flatMap((dialog): ListedChat[] => {
    const id = dialog._ === 'dialog' ? findChatNumber(dialog.peer, reader.self.id) : undefined
    if (dialog._ !== 'dialog' || id === undefined) return []
    // A group that was turned into a supergroup, or that removed the account.
    if (Number(id) < 0 && !groups.has(Number(id))) return []
    const top = messages.find((each) => each.id === dialog.topMessage && isOf(each, dialog.peer))
    const unread_count = Math.max(dialog.unreadCount, dialog.unreadMark ? 1 : 0)
    const last = top?._ === 'message' ? viewMessage(reader.self, top) : null
    return [{ chat: viewChat(viewer, id, unread_count), last }]
  })
}

export async function listContacts(reader: Reader): Promise<readonly Person[]> {
  const found = await reader.call({ _: 'contacts.getContacts', hash: Long.ZERO })
  if (found._ === 'contacts.contactsNotModified') return []
  await reader.learn(found)
  const known = reader.peers.with(found.users)
  return found.users.flatMap(({ id }) => known.findPerson(`${id}`) ?? [])
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
    await reader.learn(page, peopleIn(page.messages, reader.self.id))
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
