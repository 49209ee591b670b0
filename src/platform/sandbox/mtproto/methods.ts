/** The methods of a logged-in account, as calls of its `ServedAccount`. */
import type { tl } from '@mtcute/core'
import { orderOf } from '../account-acts.ts'
import type { Account } from '../state.ts'
import type { World } from '../world.ts'
import type { Call, Connection, Handlers } from './connection.ts'
import { captionLengthMax, refuse, ServedAccount, textLengthMax } from './served-account.ts'
import {
  accessHashOf,
  peerOf,
  ptsOf,
  stateOf,
  unixSeconds,
  viewDialog,
  viewGroup,
  viewPeers,
  viewPost,
  viewUser,
} from './views.ts'

const pageMax = 100

function chatIdOf(account: Account, peer: tl.TypeInputPeer): number {
  switch (peer._) {
    case 'inputPeerSelf':
      return account.person_id
    case 'inputPeerChat':
      return -peer.chatId
    case 'inputPeerUser':
      if (peer.accessHash.eq(accessHashOf(account, peer.userId))) return peer.userId // guard: a number needs its access hash
  }
  return refuse('PEER_ID_INVALID')
}

function pageOf(limit: number): number {
  return Math.min(Math.max(limit, 1), pageMax)
}

/** Where a page of dialogs begins: after this chat, or after its date if the chat has moved up since. */
function orderAfter(
  account: Account,
  { offsetDate, offsetPeer }: { offsetDate: number; offsetPeer: tl.TypeInputPeer },
): string | null {
  const box = offsetPeer._ === 'inputPeerEmpty' ? undefined : account.boxes.get(chatIdOf(account, offsetPeer))
  if (box && (offsetDate === 0 || unixSeconds(box.last_at || 0) <= offsetDate)) return orderOf(box)
  return offsetDate === 0 ? null : new Date(offsetDate * 1000 + 999).toISOString()
}

export function accountHandlers(world: World, { keep_updates }: { keep_updates: number }): Handlers {
  const { state } = world
  const open = new WeakMap<Connection, ServedAccount>()

  /** Concurrent calls of a connection share one session, which the first of them opens. */
  async function serve({ connection }: Call): Promise<ServedAccount> {
    const { account_id } = connection.key
    if (account_id === null) return refuse('401 AUTH_KEY_UNREGISTERED')
    let served = open.get(connection)
    if (served?.account.account_id !== account_id) {
      served = new ServedAccount(world, connection, world.requireAccount(account_id))
      open.set(connection, served)
    }
    await served.connect()
    return served
  }

  /** Returns the pts after it. */
  async function setReadState(call: Call, peer: tl.TypeInputPeer, unread: boolean) {
    const served = await serve(call)
    const { stream } = served.account
    const chat_id = chatIdOf(served.account, peer)
    const empty = state.people.has(chat_id) ? { unread_count: 0 } : undefined
    await served.ask(call, 'read_state', { chat_id: `${chat_id}`, unread }, empty)
    const found = stream.findLastIndex((each) => each.kind === 'unread' && each.chat_id === chat_id)
    return found === -1 ? { pts: ptsOf(stream.length), ptsCount: 0 } : { pts: ptsOf(found + 1), ptsCount: 1 }
  }

  async function savePart(
    { fileId, filePart, bytes }: tl.upload.RawSaveFilePartRequest | tl.upload.RawSaveBigFilePartRequest,
    call: Call,
  ): Promise<true> {
    return (await serve(call)).files.add(fileId.toString(), filePart, bytes)
  }

  return {
    'users.getUsers': async ({ id }, call) => {
      const { account } = await serve(call)
      return id.map((each) => {
        if (each._ === 'inputUserSelf') return viewUser(state, account, account.person_id)
        const isKnown = each._ === 'inputUser' && each.accessHash.eq(accessHashOf(account, each.userId))
        return isKnown ? viewUser(state, account, each.userId) : { _: 'userEmpty', id: 0 }
      })
    },
    'updates.getState': async (_request, call) => {
      const served = await serve(call)
      await served.ask(call, 'ping', {})
      return stateOf(served.account)
    },
    'updates.getDifference': async ({ pts }, call) => (await serve(call)).difference(call, pts, keep_updates),
    'messages.sendMessage': async ({ peer, message: text, randomId }, call) => {
      const served = await serve(call)
      const chat_id = chatIdOf(served.account, peer)
      return served.send(call, { chat_id, text, random_id: randomId.toString(), file: null })
    },
    'messages.sendMedia': async ({ peer, message: text, randomId, media }, call) => {
      const served = await serve(call)
      const chat_id = chatIdOf(served.account, peer)
      if (media._ !== 'inputMediaUploadedDocument') return refuse('MEDIA_INVALID')
      if (media.file._ !== 'inputFile' && media.file._ !== 'inputFileBig') return refuse('MEDIA_INVALID')
      const named = media.attributes.find((each) => each._ === 'documentAttributeFilename')
      const file = {
        file_name: named?.fileName ?? media.file.name,
        media_type: media.mimeType,
        ...served.files.take(media.file.id.toString(), media.file.parts),
      }
      return served.send(call, { chat_id, text, random_id: randomId.toString(), file })
    },
    'upload.saveFilePart': savePart,
    'upload.saveBigFilePart': savePart,
    'messages.getDialogs': async (request, call) => {
      const served = await serve(call)
      const { account } = served
      const after = orderAfter(account, request)
      const page = { after, limit: pageOf(request.limit) }
      // Nothing is archived or pinned in this world.
      const { chats, next } = await served.ask(call, 'chats', page)
      const boxes =
        request.folderId === 1 ? [] : chats.flatMap(({ chat }) => account.boxes.get(Number(chat.id)) ?? [])
      const posts = boxes.flatMap(({ chat_id, posts }) => posts.slice(-1).map((post) => ({ chat_id, post })))
      const found = {
        dialogs: boxes.map(viewDialog),
        messages: posts.map(({ chat_id, post }) => viewPost(chat_id, post)),
        ...viewPeers(state, account, [
          ...boxes.map(({ chat_id }) => chat_id),
          ...posts.map(({ post }) => post.person_id),
        ]),
      }
      if (boxes.length === 0 || (after === null && next === null)) return { _: 'messages.dialogs', ...found }
      return { _: 'messages.dialogsSlice', count: account.boxes.size, ...found }
    },
    'messages.getHistory': async ({ peer, offsetId, limit }, call) => {
      const served = await serve(call)
      const { account } = served
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
    'messages.getMessages': async ({ id }, call) => {
      const served = await serve(call)
      const { account } = served
      const wanted = id.map((each) => (each._ === 'inputMessageID' ? each.id : 0))
      const chat_ids = wanted.map((message_id) => account.chat_of_message.get(message_id) ?? 0)
      const messages = wanted.map((message_id, n): tl.TypeMessage => {
        const post = served.findPost(chat_ids[n] ?? 0, message_id)
        return post ? viewPost(chat_ids[n] ?? 0, post) : { _: 'messageEmpty', id: message_id }
      })
      return { _: 'messages.messages', messages, topics: [], ...viewPeers(state, account, chat_ids) }
    },
    'messages.readHistory': async ({ peer }, call) => {
      return { _: 'messages.affectedMessages', ...(await setReadState(call, peer, false)) }
    },
    'messages.markDialogUnread': async ({ peer, unread }, call) => {
      if (peer._ !== 'inputDialogPeer') return refuse('PEER_ID_INVALID')
      await setReadState(call, peer.peer, unread ?? false)
      return true
    },
    'contacts.getContacts': async (_request, call) => {
      const served = await serve(call)
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
      const served = await serve(call)
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
      const served = await serve(call)
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

/** Figures of Telegram's configuration that no test depends on. */
const figures =
  'chatSizeMax megagroupSizeMax forwardedCountMax onlineUpdatePeriodMs offlineBlurTimeoutMs offlineIdleTimeoutMs ' +
  'onlineCloudTimeoutMs notifyCloudDelayMs notifyDefaultDelayMs pushChatPeriodMs pushChatLimit editTimeLimit ' +
  'revokeTimeLimit revokePmTimeLimit ratingEDecay stickersRecentLimit channelsReadMediaPeriod ' +
  'callReceiveTimeoutMs callRingTimeoutMs callConnectTimeoutMs callPacketTimeoutMs'

/** The methods that clients call before they log in. Both data centres answer the same. */
export function helpHandlers(ports: () => ReadonlyMap<number, number>): Handlers {
  return {
    'help.getConfig': (_request, { connection }) => {
      const date = unixSeconds(Date.now())
      const dcOptions = [...ports()].map(
        ([id, port]) => ({ _: 'dcOption', id, ipAddress: '127.0.0.1', port }) as const,
      )
      return {
        ...(Object.fromEntries(figures.split(' ').map((each) => [each, 1000])) as unknown as tl.RawConfig),
        _: 'config',
        date,
        expires: date + 3600,
        testMode: false,
        thisDc: connection.dc,
        dcOptions,
        dcTxtDomainName: 'localhost',
        meUrlPrefix: 'https://t.me/',
        captionLengthMax,
        messageLengthMax: textLengthMax,
        webfileDcId: connection.dc,
      }
    },
  }
}
