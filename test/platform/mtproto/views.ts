/** How a client of the data centre sees the world: Telegram's users, chats, messages and updates, made from the state. */
import { createHash } from 'node:crypto'
import type { tl } from '@mtcute/core'
import Long from 'long'
import { digitsOf, showsPhone } from '../../../src/platform/sandbox/people.ts'
import type { Account, Box, Happening, Post, State } from '../../../src/platform/sandbox/state.ts'
import { viewFile } from './file-views.ts'
import { serviceId } from './service-chat.ts'

export function unixSeconds(time: string | number): number {
  return Math.floor(new Date(time).getTime() / 1000)
}

const pageMax = 100

export function pageOf(limit: number): number {
  return Math.min(Math.max(limit, 1), pageMax)
}

export function peerOf(chat_id: number): tl.TypePeer {
  return chat_id > 0 ? { _: 'peerUser', userId: chat_id } : { _: 'peerChat', chatId: -chat_id }
}

/** Each account has a different one for the same person. */
export function accessHashOf({ account_id }: Account, person_id: number): Long {
  const digest = createHash('sha256').update(`${account_id} ${person_id}`).digest()
  return Long.fromBytesLE([...digest.subarray(0, 8)])
}

/** Positions of the stream start at one, and so does pts before anything has happened. */
export function ptsOf(position: number): number {
  return position + 1
}

export function stateOf(
  account: Account,
  date: number,
  position = account.stream.length,
): tl.updates.RawState {
  return { _: 'updates.state', pts: ptsOf(position), qts: 0, date, seq: 0, unreadCount: 0 }
}

export function viewUser(state: State, account: Account, person_id: number): tl.RawUser {
  const person = state.people.get(person_id)
  const { username, phone } = person ?? {}
  return {
    _: 'user',
    id: person_id,
    accessHash: accessHashOf(account, person_id),
    firstName: person?.name ?? '',
    self: person_id === account.person_id,
    deleted: person?.kind === 'deleted',
    ...(person_id === serviceId && { verified: true, support: true }),
    ...(person?.kind === 'bot' && { bot: true, botInfoVersion: 1 }),
    ...(username && { username }),
    ...(person && phone && showsPhone(person, account) && { phone: phone.replace('+', '') }),
  }
}

export function viewGroup(state: State, chat_id: number): tl.RawChat {
  const group = state.groups.get(chat_id)
  return {
    _: 'chat',
    id: -chat_id,
    title: group?.name ?? '',
    photo: { _: 'chatPhotoEmpty' },
    participantsCount: (group?.members.length ?? 0) + 1,
    date: 0,
    version: 1,
  }
}

/** The people that an answer names, with what a client needs to write to them. */
export function viewPeers(state: State, account: Account, ids: Iterable<number>) {
  const all = [...new Set([account.person_id, ...ids])]
  return {
    users: all.filter((id) => id > 0).map((id) => viewUser(state, account, id)),
    chats: all.filter((id) => id < 0).map((id) => viewGroup(state, id)),
  }
}

export function viewPost(chat_id: number, post: Post): tl.RawMessage {
  const [file] = post.attachments
  return {
    _: 'message',
    id: post.message_id,
    out: post.is_sender,
    peerId: peerOf(chat_id),
    fromId: { _: 'peerUser', userId: post.person_id },
    date: unixSeconds(post.at),
    message: post.text,
    ...(post.edited_at && { editDate: unixSeconds(post.edited_at) }),
    ...(file && { media: viewFile(post, file, unixSeconds(post.at)) }),
  }
}

export function viewDialog(box: Box, placed: Pick<tl.RawDialog, 'pinned' | 'folderId'> = {}): tl.RawDialog {
  return {
    _: 'dialog',
    peer: peerOf(box.chat_id),
    topMessage: box.posts.at(-1)?.message_id ?? 0,
    readInboxMaxId: box.read_by_us,
    readOutboxMaxId: box.read_by_them,
    unreadCount: box.unread_count,
    unreadMentionsCount: 0,
    unreadReactionsCount: 0,
    unreadPollVotesCount: 0,
    notifySettings: { _: 'peerNotifySettings' },
    ...placed,
  }
}

/**
 * The updates of one happening; the last of them carries the pts after it. `isOurs` says whether the key that gets them sent the
 * message of this random id: `updateMessageID` is for its own devices.
 */
export function viewHappening(
  account: Account,
  happening: Happening,
  { pts, isOurs }: { readonly pts: number; readonly isOurs: (random_id: string | null) => boolean },
): tl.TypeUpdate[] {
  const peer = peerOf(happening.chat_id)
  const order = { pts, ptsCount: 1 }
  switch (happening.kind) {
    case 'message':
      return [{ _: 'updateNewMessage', message: viewPost(happening.chat_id, happening.post), ...order }]
    case 'edited': {
      const { chat_id, post, hidden } = happening
      const message = {
        ...viewPost(chat_id, post),
        ...(hidden && { editDate: unixSeconds(post.at), editHide: true }),
      }
      return [{ _: 'updateEditMessage', message, ...order }]
    }
    case 'deleted':
      return [{ _: 'updateDeleteMessages', messages: [...happening.message_ids], ...order }]
    case 'read_by_them':
      return [{ _: 'updateReadHistoryOutbox', peer, maxId: happening.message_id, ...order }]
    case 'unread': {
      const carrier: tl.TypeUpdate = { _: 'updateReadMessagesContents', messages: [], ...order }
      // Clients count what a deletion leaves unread on their own (TDLib, `do_delete_message`).
      if (happening.cause === 'deleted') return [carrier]
      // A mark moves nothing that was read (core.telegram.org/constructor/updateDialogUnreadMark). It has no pts of its own.
      if (happening.cause === 'marked') {
        return [{ _: 'updateDialogUnreadMark', peer: { _: 'dialogPeer', peer }, unread: true }, carrier]
      }
      const maxId = account.boxes.get(happening.chat_id)?.read_by_us ?? 0
      return [
        { _: 'updateReadHistoryInbox', peer, maxId, stillUnreadCount: happening.unread_count, ...order },
      ]
    }
    // As `updateMessageID` below: no pts of its own.
    case 'person': {
      const { person_id: userId, name: firstName, username, phone } = happening.person
      const usernames = username === null ? [] : [{ _: 'username' as const, active: true, username }]
      return [
        { _: 'updateUserName', userId, firstName, lastName: '', usernames },
        ...(phone !== null && showsPhone(happening.person, account)
          ? [{ _: 'updateUserPhone' as const, userId, phone: digitsOf(phone) }]
          : []),
        { _: 'updateReadMessagesContents', messages: [], ...order },
      ]
    }
    // Telegram gives `updateMessageID` no pts. Here it is a happening of its own, so an empty update carries its pts.
    case 'sent': {
      const { post } = happening
      const carrier: tl.TypeUpdate = { _: 'updateReadMessagesContents', messages: [], ...order }
      return isOurs(post.random_id) ? [viewSent(post), carrier] : [carrier] // guard: random ids only to the key that sent
    }
  }
}

/** A text alone, without the people it names. Undefined: Telegram has no short form of it. */
export function viewShort(
  happening: Happening,
  pts: number,
): tl.RawUpdateShortMessage | tl.RawUpdateShortChatMessage | undefined {
  if (happening.kind !== 'message' || happening.post.attachments.length > 0) return undefined
  const { chat_id, post } = happening
  const { message_id: id, is_sender: out, text: message, at } = post
  const body = { id, out, message, pts, ptsCount: 1, date: unixSeconds(at) }
  return chat_id > 0
    ? { _: 'updateShortMessage', userId: chat_id, ...body }
    : { _: 'updateShortChatMessage', chatId: -chat_id, fromId: post.person_id, ...body }
}

export function viewSent({ message_id, random_id }: Post): tl.RawUpdateMessageID {
  return { _: 'updateMessageID', id: message_id, randomId: Long.fromString(random_id ?? '0') }
}

/** The chats and senders of happenings, for `viewPeers`. */
export function idsOf(happenings: readonly Happening[]): number[] {
  return happenings.flatMap((each) => ('post' in each ? [each.chat_id, each.post.person_id] : [each.chat_id]))
}
