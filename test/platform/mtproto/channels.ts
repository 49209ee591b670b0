/**
 * Channels and supergroups: their messages, numbers and pts are the same for every member, unlike those of private chats and
 * basic groups (https://core.telegram.org/api/channel).
 */
import type { tl } from '@mtcute/core'
import type { Account } from '../../../src/platform/sandbox/state.ts'
import type { World } from '../../../src/platform/sandbox/world.ts'
import { accessHashOf, unixSeconds, viewUser } from './views.ts'

export interface ChannelEntry {
  readonly entry: 'channel'
  readonly channel_id: number
  readonly title: string
  readonly username: string | null
  readonly kind: 'channel' | 'supergroup'
  /** The accounts that are members. */
  readonly account_ids: readonly string[]
}

export interface ChannelPostEntry {
  readonly entry: 'channel_post'
  readonly channel_id: number
  readonly message_id: number
  /** Of the world, or of a stranger that no account knows. */
  readonly person_id: number
  readonly text: string
  readonly at: string
}

export interface ChannelReadEntry {
  readonly entry: 'channel_read'
  readonly account_id: string
  readonly channel_id: number
  readonly message_id: number
}

export interface Channel extends ChannelEntry {
  readonly posts: ChannelPostEntry[]
  /** How far each account has read. */
  readonly read: Map<string, number>
}

const channelMark = -1_000_000_000_000

/** The number of its chat: channels and basic groups are both negative. */
export function chatIdOfChannel(channel_id: number): number {
  return channelMark - channel_id
}

/** Undefined: not the chat of a channel. */
export function channelIdOf(chat_id: number): number | undefined {
  return chat_id < channelMark ? channelMark - chat_id : undefined
}

/** Each message counts one. */
export function ptsOfChannel({ posts }: Channel): number {
  return posts.length + 1
}

export function viewChannel(account: Account, channel: Channel): tl.RawChannel {
  const { channel_id, title, username, kind, account_ids } = channel
  return {
    _: 'channel',
    id: channel_id,
    accessHash: accessHashOf(account, chatIdOfChannel(channel_id)),
    title,
    photo: { _: 'chatPhotoEmpty' },
    date: 0,
    participantsCount: account_ids.length + 1,
    ...(kind === 'channel' ? { broadcast: true } : { megagroup: true }),
    ...(username && { username }),
  }
}

export function viewChannelPost({ kind }: Channel, post: ChannelPostEntry): tl.RawMessage {
  const { channel_id, message_id, person_id, text, at } = post
  return {
    _: 'message',
    id: message_id,
    peerId: { _: 'peerChannel', channelId: channel_id },
    date: unixSeconds(at),
    message: text,
    // Posts of a channel are the channel's own.
    ...(kind === 'channel'
      ? { post: true, views: 1 }
      : { fromId: { _: 'peerUser' as const, userId: person_id } }),
  }
}

/** Whole users come with every message, also for accounts that have never met them. */
export function viewAuthors(
  { state }: World,
  account: Account,
  posts: readonly ChannelPostEntry[],
): tl.RawUser[] {
  const ids = [...new Set(posts.map(({ person_id }) => person_id))]
  return ids.map((id) => {
    const user = viewUser(state, account, id)
    return state.people.has(id) ? user : { ...user, firstName: `Stranger ${id}`, username: `stranger_${id}` }
  })
}

export function viewChannelDialog(
  account: Account,
  channel: Channel,
  placed: Pick<tl.RawDialog, 'pinned' | 'folderId'>,
): tl.RawDialog {
  const read = channel.read.get(account.account_id) ?? 0
  return {
    _: 'dialog',
    peer: { _: 'peerChannel', channelId: channel.channel_id },
    topMessage: channel.posts.at(-1)?.message_id ?? 0,
    readInboxMaxId: read,
    readOutboxMaxId: 0,
    unreadCount: channel.posts.filter(({ message_id }) => message_id > read).length,
    unreadMentionsCount: 0,
    unreadReactionsCount: 0,
    unreadPollVotesCount: 0,
    notifySettings: { _: 'peerNotifySettings' },
    pts: ptsOfChannel(channel),
    ...placed,
  }
}

export function viewChannelUpdate(channel: Channel, post: ChannelPostEntry): tl.RawUpdateNewChannelMessage {
  const pts = channel.posts.indexOf(post) + 2
  return { _: 'updateNewChannelMessage', message: viewChannelPost(channel, post), pts, ptsCount: 1 }
}
