/**
 * The list of chats. Pages are in the order of (date, message, chat) of the last message, and continue after the dialog that
 * `offset_peer` names. A peer without its access hash does not resolve: then the list begins again (tlgrcli/tlgr#17,
 * DrKLO/Telegram#2116).
 */
import type { tl } from '@mtcute/core'
import { Heap } from '../../../src/lib/heap.ts'
import { type Account, type Box, indexOfPost } from '../../../src/platform/sandbox/state.ts'
import { type Channel, channelIdOf, chatIdOfChannel } from './channels.ts'
import type { Store } from './store.ts'

const dateLength = '2026-11-02T09:30:00'.length

/** Where a dialog stands. */
interface Place {
  /** Of its last message, to the second, as the start of an ISO time. */
  readonly date: string
  readonly top: number
  readonly chat_id: number
}

export interface Listed extends Place {
  readonly box?: Box
  readonly channel?: Channel
  readonly pinned: boolean
  readonly archived: boolean
}

interface DialogPage {
  readonly listed: Listed[]
  /** Of the folder, whatever the page. */
  readonly count: number
  readonly isFirst: boolean
  /** The last chat of the archive, if the page shows the archive as one line. */
  readonly archive: Listed | undefined
}

function compare(a: Place, b: Place): number {
  if (a.date !== b.date) return a.date < b.date ? -1 : 1
  return a.top - b.top || a.chat_id - b.chat_id
}

/** A chat without messages comes last. */
function placeOf(
  chat_id: number,
  last: { readonly message_id: number; readonly at: string } | undefined,
): Place {
  return { date: last?.at.slice(0, dateLength) ?? '', top: last?.message_id ?? 0, chat_id }
}

const unplaced = { pinned: false, archived: false }

export function* listDialogs(store: Store, account: Account): Generator<Listed> {
  for (const chat of chatsOf(store, account)) {
    const listed = viewListed(store, account, chat)
    if (listed) yield listed
  }
}

function* chatsOf(store: Store, account: Account): Generator<Box | Channel> {
  yield* account.boxes.values()
  for (const channel of store.state.channels.values()) {
    if (channel.account_ids.includes(account.account_id)) yield channel
  }
}

const chatIdOf = (chat: Box | Channel) =>
  'chat_id' in chat ? chat.chat_id : chatIdOfChannel(chat.channel_id)

function viewListed(store: Store, account: Account, chat: Box | Channel): Listed | undefined {
  const chat_id = chatIdOf(chat)
  const last = chat.posts.at(-1)
  // A private chat without messages is not listed.
  if (!last && chat_id > 0) return undefined
  const { pinned, archived } = store.state.placed.get(account.account_id)?.get(chat_id) ?? unplaced
  const content = 'chat_id' in chat ? { box: chat } : { channel: chat }
  return { ...placeOf(chat_id, last), ...content, pinned, archived }
}

/**
 * Only a page is sorted, and looked at from the end, where most of the newest chats are: of fifty thousand the others cost one
 * comparison each. It shares its process with the sends that a test measures beside it.
 */
export function readDialogs(
  store: Store,
  account: Account,
  request: Omit<tl.messages.RawGetDialogsRequest, 'offsetPeer'> & {
    /** Null: none given. Undefined: it did not resolve. */
    readonly offset: number | null | undefined
  },
): DialogPage {
  const after = placeAfter(store, account, request)
  const placed = store.state.placed.get(account.account_id)
  const newest = new Heap<Place>(compare)
  const chats = new Map<Place, Box | Channel>()
  const pinned: Listed[] = []
  let archive: Listed | undefined
  let count = 0
  for (const chat of [...chatsOf(store, account)].reverse()) {
    const chat_id = chatIdOf(chat)
    const last = chat.posts.at(-1)
    if (!last && chat_id > 0) continue
    const { pinned: isPinned, archived } = placed?.get(chat_id) ?? unplaced
    if (request.folderId === 0 && archived) {
      const each = viewListed(store, account, chat)
      if (each && (!archive || compare(each, archive) > 0)) archive = each
      continue
    }
    if (request.folderId === 1 && !archived) continue
    if (isPinned) {
      if (request.excludePinned) continue
      count++
      const each = viewListed(store, account, chat)
      if (after === null && each) pinned.push(each)
      continue
    }
    count++
    const least = chats.size < request.limit ? undefined : newest.first()
    if (isNewer(last, after) || isOlder(last, least)) continue
    const place = placeOf(chat_id, last)
    if (after !== null && compare(place, after) >= 0) continue
    if (least && compare(place, least) <= 0) continue
    chats.set(place, chat)
    newest.add(place)
    if (least) chats.delete(newest.takeFirst() ?? least)
  }
  const rest: Listed[] = []
  for (let one = newest.takeFirst(); one; one = newest.takeFirst()) {
    const chat = chats.get(one)
    const each = chat && viewListed(store, account, chat)
    if (each) rest.push(each)
  }
  const isFirst = after === null
  const listed = [...pinned.sort((a, b) => compare(b, a)), ...rest.reverse()].slice(0, request.limit)
  return { listed, count, isFirst, archive: isFirst && !request.excludePinned ? archive : undefined }
}

type Last = { readonly at: string } | undefined

/** In an earlier second, by its time as it is written: so most chats need no place. */
function isOlder(last: Last, place: Place | undefined): boolean {
  return place !== undefined && (last?.at ?? '') < place.date
}

/** In a later second. */
function isNewer(last: Last, place: Place | null): boolean {
  return place !== null && last !== undefined && last.at > `${place.date}~`
}

/** Null: from the top. */
function placeAfter(
  store: Store,
  account: Account,
  { offset, offsetDate, offsetId }: Parameters<typeof readDialogs>[2],
): Place | null {
  if (offset === undefined) return null
  const end = { date: new Date(offsetDate * 1000).toISOString().slice(0, dateLength), top: offsetId }
  if (offset === null) return offsetDate === 0 ? null : { ...end, chat_id: Number.NEGATIVE_INFINITY }
  const given = { ...end, chat_id: offset }
  const stands = standOf(store, account, offset)
  if (!stands) return given
  // A chat that has a newer message now has moved up. One that never had this message was not the end of any page.
  return stands.top !== offsetId && hasMessage(store, account, given) ? given : stands // guard: a page continues after its peer
}

function standOf(store: Store, account: Account, chat_id: number): Place | undefined {
  const channel_id = channelIdOf(chat_id)
  const chat = channel_id === undefined ? account.boxes.get(chat_id) : store.state.channels.get(channel_id)
  if (!chat || ('account_ids' in chat && !chat.account_ids.includes(account.account_id))) return undefined
  return viewListed(store, account, chat)
}

function hasMessage(store: Store, account: Account, { chat_id, top }: Place): boolean {
  const channel_id = channelIdOf(chat_id)
  if (channel_id !== undefined) {
    return store.state.channels.get(channel_id)?.posts.some(({ message_id }) => message_id === top) ?? false
  }
  const box = account.boxes.get(chat_id)
  return box?.posts[indexOfPost(box, top)]?.message_id === top
}
