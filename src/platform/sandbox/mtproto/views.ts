/** How a client of the data centre sees the world: Telegram's users, chats, messages and updates, made from the state. */
import { createHash } from 'node:crypto'
import type { tl } from '@mtcute/core'
import Long from 'long'
import type { Account, Box, Happening, Post, State } from '../state.ts'
import { viewFile } from './file-views.ts'

export function unixSeconds(time: string | number): number {
  return Math.floor(new Date(time).getTime() / 1000)
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

export function stateOf(account: Account, position = account.stream.length): tl.updates.RawState {
  const date = unixSeconds(Date.now())
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
    ...(person?.kind === 'bot' && { bot: true, botInfoVersion: 1 }),
    ...(username && { username }),
    ...(phone && { phone: phone.replace('+', '') }),
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

export function viewDialog(box: Box): tl.RawDialog {
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
  }
}

/** The updates of one happening; the last of them carries the pts after it. */
export function viewHappening(account: Account, happening: Happening, pts: number): tl.TypeUpdate[] {
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
      const maxId = account.boxes.get(happening.chat_id)?.read_by_us ?? 0
      return [
        { _: 'updateReadHistoryInbox', peer, maxId, stillUnreadCount: happening.unread_count, ...order },
      ]
    }
    // Telegram gives `updateMessageID` no pts. Here it is a happening of its own, so an empty update carries its pts.
    case 'sent':
      return [viewSent(happening.post), { _: 'updateReadMessagesContents', messages: [], ...order }]
  }
}

export function viewSent({ message_id, random_id }: Post): tl.RawUpdateMessageID {
  return { _: 'updateMessageID', id: message_id, randomId: Long.fromString(random_id ?? '0') }
}

/** The chats and senders of happenings, for `viewPeers`. */
export function idsOf(happenings: readonly Happening[]): number[] {
  return happenings.flatMap((each) => ('post' in each ? [each.chat_id, each.post.person_id] : [each.chat_id]))
}
