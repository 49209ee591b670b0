/** The methods of a logged-in account, as calls of its `ServedAccount`. */
import type { tl } from '@mtcute/core'
import type { Account } from '../../../src/platform/sandbox/state.ts'
import { ptsOfChannel, viewAuthors, viewChannel, viewChannelPost } from './channels.ts'
import { type Call, type Handlers, refuse } from './connection.ts'
import type { Devices } from './devices.ts'
import { chatIdOf, requireChannel } from './input-peers.ts'
import type { CentreParts } from './parts.ts'
import {
  accessHashOf,
  pageOf,
  peerOf,
  ptsOf,
  stateOf,
  viewGroup,
  viewHappening,
  viewPeers,
  viewPost,
  viewUser,
} from './views.ts'

export function accountHandlers({ world, store, clock, between }: CentreParts, devices: Devices): Handlers {
  const { state } = world

  /** Returns the pts after it. */
  async function setReadState(call: Call, peer: tl.TypeInputPeer, unread: boolean, maxId = 0) {
    const served = await devices.serve(call)
    const { stream } = served.account
    const chat_id = chatIdOf(served.account, peer)
    const empty = state.people.has(chat_id) ? { unread_count: 0 } : undefined
    // 0: all of it (core.telegram.org/method/messages.readHistory).
    const upTo = maxId > 0 ? { up_to_message_id: `${maxId}` as const } : {}
    await served.ask(call, 'read_state', { chat_id: `${chat_id}`, unread, ...upTo }, empty)
    const found = stream.findLastIndex((each) => each.kind === 'unread' && each.chat_id === chat_id)
    return found === -1 ? { pts: ptsOf(stream.length), ptsCount: 0 } : { pts: ptsOf(found + 1), ptsCount: 1 }
  }

  async function savePart(
    { fileId, filePart, bytes }: tl.upload.RawSaveFilePartRequest | tl.upload.RawSaveBigFilePartRequest,
    call: Call,
  ): Promise<true> {
    return devices.filesOf(devices.accountOf(call)).add(fileId.toString(), filePart, bytes)
  }

  return {
    'users.getUsers': async ({ id }, call) => {
      const { account } = await devices.serve(call)
      return id.map((each) => {
        if (each._ === 'inputUserSelf') return viewUser(state, account, account.person_id)
        const isKnown = each._ === 'inputUser' && each.accessHash.eq(accessHashOf(account, each.userId))
        return isKnown ? viewUser(state, account, each.userId) : { _: 'userEmpty', id: 0 }
      })
    },
    'updates.getState': async (_request, call) => {
      const served = await devices.serve(call)
      await served.ask(call, 'ping', {})
      return stateOf(served.account, clock.seconds())
    },
    'updates.getDifference': async (request, call) => (await devices.serve(call)).difference(call, request),
    'messages.sendMessage': async ({ peer, message: text, randomId }, call) => {
      const served = await devices.serve(call)
      const chat_id = chatIdOf(served.account, peer)
      return served.send(call, { chat_id, text, random_id: randomId.toString(), file: null })
    },
    'messages.sendMedia': async ({ peer, message: text, randomId, media }, call) => {
      const served = await devices.serve(call)
      const chat_id = chatIdOf(served.account, peer)
      if (media._ !== 'inputMediaUploadedDocument') return refuse('MEDIA_INVALID')
      if (media.file._ !== 'inputFile' && media.file._ !== 'inputFileBig') return refuse('MEDIA_INVALID')
      const named = media.attributes.find((each) => each._ === 'documentAttributeFilename')
      const taken = devices.filesOf(served.account).take(media.file.id.toString(), media.file.parts)
      const { size, sha256, bytes } = taken
      if (bytes) between.keepFile(sha256, bytes)
      const file_name = named?.fileName ?? media.file.name
      const file = { file_name, media_type: media.mimeType, size, sha256 }
      return served.send(call, { chat_id, text, random_id: randomId.toString(), file })
    },
    'upload.saveFilePart': savePart,
    'upload.saveBigFilePart': savePart,
    'messages.getHistory': async ({ peer, offsetId, limit }, call) => {
      const served = await devices.serve(call)
      const { account } = served
      if (peer._ === 'inputPeerChannel') {
        const channel = requireChannel(store, account, peer)
        const before = channel.posts.filter(({ message_id }) => offsetId === 0 || message_id < offsetId)
        const posts = before.slice(-pageOf(limit)).reverse()
        return {
          _: 'messages.channelMessages',
          pts: ptsOfChannel(channel),
          count: channel.posts.length,
          messages: posts.map((post) => viewChannelPost(channel, post)),
          topics: [],
          users: viewAuthors(world, account, posts),
          chats: [viewChannel(account, channel)],
        }
      }
      const chat_id = chatIdOf(account, peer)
      const before = offsetId === 0 ? null : { message_id: String(offsetId) }
      const page = { chat_id: `${chat_id}` as const, before, limit: pageOf(limit) }
      const found = await served.ask(call, 'history', page, state.people.has(chat_id) ? [] : undefined)
      const posts = found.flatMap(({ id }) => served.findPost(chat_id, Number(id)) ?? [])
      return {
        _: 'messages.messagesSlice',
        count: account.boxes.get(chat_id)?.posts.length ?? 0,
        messages: posts.map((post) => viewPost(chat_id, post)),
        topics: [],
        ...viewPeers(state, account, [chat_id, ...posts.map(({ person_id }) => person_id)]),
      }
    },
    'messages.editMessage': async ({ peer, id, message: text }, call) => {
      const served = await devices.serve(call)
      const { account } = served
      const chat_id = chatIdOf(account, peer)
      const post = served.findPost(chat_id, id)
      if (!post) return refuse('MESSAGE_ID_INVALID')
      if (!post.is_sender) return refuse('403 MESSAGE_AUTHOR_REQUIRED')
      if (text === undefined || text === post.text) return refuse('MESSAGE_NOT_MODIFIED')
      const entry = {
        entry: 'edited',
        account_id: account.account_id,
        chat_id,
        message_id: id,
        text,
      } as const
      const { happenings, pts } = served.change(() => world.commit({ ...entry, at: world.nowText() }))
      const isOurs = () => false
      return {
        _: 'updates',
        updates: happenings.flatMap((each) => viewHappening(account, each, { pts, isOurs })),
        ...viewPeers(state, account, [chat_id]),
        date: clock.seconds(),
        seq: 0,
      }
    },
    'messages.deleteMessages': async ({ id, revoke }, call) => {
      const served = await devices.serve(call)
      const { account } = served
      const chat_ids = new Set(id.flatMap((each) => account.chat_of_message.get(each) ?? []))
      if (revoke) between.deleted(account, id)
      const { pts, ptsCount } = served.change(() => {
        for (const chat_id of chat_ids) {
          const message_ids = id.filter((each) => account.chat_of_message.get(each) === chat_id)
          const { account_id } = account
          world.commit({ entry: 'deleted', account_id, chat_id, message_ids, at: world.nowText() })
        }
      })
      return { _: 'messages.affectedMessages', pts, ptsCount }
    },
    'messages.getMessages': async ({ id }, call) => {
      const served = await devices.serve(call)
      const { account } = served
      const wanted = id.map((each) => (each._ === 'inputMessageID' ? each.id : 0))
      const chat_ids = wanted.map((message_id) => account.chat_of_message.get(message_id) ?? 0)
      const messages = wanted.map((message_id, n): tl.TypeMessage => {
        const post = served.findPost(chat_ids[n] ?? 0, message_id)
        return post ? viewPost(chat_ids[n] ?? 0, post) : { _: 'messageEmpty', id: message_id }
      })
      return { _: 'messages.messages', messages, topics: [], ...viewPeers(state, account, chat_ids) }
    },
    'messages.readHistory': async ({ peer, maxId }, call) => {
      return { _: 'messages.affectedMessages', ...(await setReadState(call, peer, false, maxId)) }
    },
    'messages.markDialogUnread': async ({ peer, unread }, call) => {
      if (peer._ !== 'inputDialogPeer') return refuse('PEER_ID_INVALID')
      await setReadState(call, peer.peer, unread ?? false)
      return true
    },
    'contacts.getContacts': async (_request, call) => {
      const served = await devices.serve(call)
      const people = await served.ask(call, 'contacts', {})
      // An address book lists numbers: a chat alone makes nobody a contact.
      const ids = people.filter(({ phone }) => phone !== null).map(({ id }) => Number(id))
      return {
        _: 'contacts.contacts',
        contacts: ids.map((userId) => ({ _: 'contact', userId, mutual: false })),
        savedCount: 0,
        users: ids.map((id) => viewUser(state, served.account, id)),
      }
    },
    'contacts.resolveUsername': async ({ username }, call) => {
      const served = await devices.serve(call)
      const group = state.usernames.get(username.toLowerCase()) ?? 0
      if (group < 0) {
        return {
          _: 'contacts.resolvedPeer',
          peer: peerOf(group),
          chats: [viewGroup(state, group)],
          users: [],
        }
      }
      const { id } = await served.ask(call, 'resolve', { kind: 'username', value: username })
      return resolved(served.account, Number(id))
    },
    'contacts.resolvePhone': async ({ phone }, call) => {
      const served = await devices.serve(call)
      if (!state.phones.has(phone.replace(/\D/g, ''))) refuse('PHONE_NOT_OCCUPIED')
      const { id } = await served.ask(call, 'resolve', { kind: 'phone', value: phone })
      return resolved(served.account, Number(id))
    },
  }

  function resolved(account: Account, id: number): tl.contacts.RawResolvedPeer {
    const users = [viewUser(state, account, id)]
    return { _: 'contacts.resolvedPeer', peer: peerOf(id), chats: [], users }
  }
}
