/** The methods about the list of chats, and about channels and supergroups. */
import type { tl } from '@mtcute/core'
import {
  type Channel,
  type ChannelPostEntry,
  chatIdOfChannel,
  ptsOfChannel,
  viewAuthors,
  viewChannel,
  viewChannelDialog,
  viewChannelPost,
  viewChannelUpdate,
} from './channels.ts'
import type { Handlers } from './connection.ts'
import type { Devices } from './devices.ts'
import { type Listed, listDialogs, readDialogs } from './dialogs.ts'
import { chatIdOf, offsetOf, requireChannel } from './input-peers.ts'
import type { CentreParts } from './parts.ts'
import type { ServedAccount } from './served-account.ts'
import { pageOf, stateOf, viewDialog, viewPeers, viewPost } from './views.ts'

const differenceMax = 100

export function dialogHandlers(parts: CentreParts, devices: Devices): Handlers {
  const { world, store, clock } = parts

  function viewListed({ account }: ServedAccount, listed: readonly Listed[], archive?: Listed) {
    const all = archive ? [...listed, archive] : listed
    const boxes = all.flatMap(({ box }) => box ?? [])
    const channels = all.flatMap(({ channel }) => channel ?? [])
    const posts = boxes.flatMap((box) => box.posts.slice(-1).map((post) => ({ box, post })))
    const ids = [...boxes.map(({ chat_id }) => chat_id), ...posts.map(({ post }) => post.person_id)]
    const last = channels.map((channel) => ({ channel, posts: channel.posts.slice(-1) }))
    const people = viewPeers(world.state, account, ids)
    const authors = viewAuthors(
      world,
      account,
      last.flatMap(({ posts: each }) => each),
    )
    const known = new Set(people.users.map(({ id }) => id))
    return {
      dialogs: [...(archive ? [viewArchive(archive)] : []), ...listed.map((each) => viewPlace(each))],
      messages: [
        ...posts.map(({ box, post }) => viewPost(box.chat_id, post)),
        ...last.flatMap(({ channel, posts: each }) => each.map((post) => viewChannelPost(channel, post))),
      ],
      users: [...people.users, ...authors.filter(({ id }) => !known.has(id))],
      chats: [...people.chats, ...channels.map((each) => viewChannel(account, each))],
    }

    function viewPlace({ box, channel, pinned, archived }: Listed): tl.RawDialog {
      const placed = { ...(pinned && { pinned }), ...(archived && { folderId: 1 }) }
      if (channel) return viewChannelDialog(account, channel, placed)
      if (box) return viewDialog(box, placed)
      throw new Error('A dialog is a box or a channel.')
    }
  }

  function viewPosts({ account }: ServedAccount, channel: Channel, posts: readonly ChannelPostEntry[]) {
    return {
      messages: posts.map((post) => viewChannelPost(channel, post)),
      topics: [],
      users: viewAuthors(world, account, posts),
      chats: [viewChannel(account, channel)],
    }
  }

  return {
    'messages.getDialogs': async (request, call) => {
      const served = await devices.serve(call)
      const limit = pageOf(request.limit)
      // For the faults that strike a list of chats.
      await served.ask(call, 'chats', { after: null, limit: 1 })
      const offset = offsetOf(store, served.account, request.offsetPeer)
      const page = readDialogs(store, served.account, { ...request, limit, offset })
      const found = viewListed(served, page.listed, page.archive)
      const isWhole = page.isFirst && page.listed.length === page.count
      if (isWhole || page.listed.length === 0) return { _: 'messages.dialogs', ...found }
      return { _: 'messages.dialogsSlice', count: page.count, ...found }
    },
    'messages.getPinnedDialogs': async ({ folderId }, call) => {
      const served = await devices.serve(call)
      const pinned = [...listDialogs(store, served.account)].filter(
        (each) => each.pinned && each.archived === (folderId === 1),
      )
      return {
        _: 'messages.peerDialogs',
        ...viewListed(served, pinned),
        state: stateOf(served.account, clock.seconds()),
      }
    },
    'messages.getPeerDialogs': async ({ peers }, call) => {
      const served = await devices.serve(call)
      const { account } = served
      const wanted = new Set(
        peers.flatMap((each) => {
          if (each._ !== 'inputDialogPeer') return []
          const { peer } = each
          return peer._ === 'inputPeerChannel'
            ? [chatIdOfChannel(requireChannel(store, account, peer).channel_id)]
            : [chatIdOf(account, peer)]
        }),
      )
      const listed = [...listDialogs(store, account)].filter(({ chat_id }) => wanted.has(chat_id))
      return {
        _: 'messages.peerDialogs',
        ...viewListed(served, listed),
        state: stateOf(account, clock.seconds()),
      }
    },
    'updates.getChannelDifference': async ({ channel: peer, pts }, call) => {
      const served = await devices.serve(call)
      const channel = requireChannel(store, served.account, peer)
      const found = channel.posts.slice(Math.max(0, pts - 1), Math.max(0, pts - 1) + differenceMax)
      const final = pts - 1 + found.length >= channel.posts.length
      if (found.length === 0) {
        return { _: 'updates.channelDifferenceEmpty', final, pts: ptsOfChannel(channel), timeout: 30 }
      }
      const { messages: newMessages, users, chats } = viewPosts(served, channel, found)
      const last = found.at(-1)
      const end = last ? viewChannelUpdate(channel, last).pts : pts
      return {
        _: 'updates.channelDifference',
        ...{ final, pts: end, timeout: 30, newMessages, otherUpdates: [], users, chats },
      }
    },
    'channels.getMessages': async ({ channel: peer, id }, call) => {
      const served = await devices.serve(call)
      const channel = requireChannel(store, served.account, peer)
      const wanted = new Set(id.map((each) => (each._ === 'inputMessageID' ? each.id : 0)))
      const posts = channel.posts.filter(({ message_id }) => wanted.has(message_id))
      return {
        _: 'messages.channelMessages',
        pts: ptsOfChannel(channel),
        count: posts.length,
        ...viewPosts(served, channel, posts),
      }
    },
    'channels.readHistory': async ({ channel: peer, maxId }, call) => {
      const { account } = await devices.serve(call)
      const { channel_id } = requireChannel(store, account, peer)
      const { account_id } = account
      store.commit({ entry: 'channel_read', account_id, channel_id, message_id: maxId })
      return true
    },
  }
}

/** The archive as one line of the list (https://core.telegram.org/api/folders). */
function viewArchive({ box, channel, top }: Listed): tl.RawDialogFolder {
  const peer: tl.TypePeer = channel
    ? { _: 'peerChannel', channelId: channel.channel_id }
    : viewDialog(box ?? missing()).peer
  return {
    _: 'dialogFolder',
    pinned: true,
    folder: { _: 'folder', id: 1, title: 'Archived chats' },
    peer,
    topMessage: top,
    unreadMutedPeersCount: 0,
    unreadUnmutedPeersCount: 0,
    unreadMutedMessagesCount: 0,
    unreadUnmutedMessagesCount: 0,
  }
}

function missing(): never {
  throw new Error('A dialog is a box or a channel.')
}
