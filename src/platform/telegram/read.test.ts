import type { tl } from '@mtcute/core'
import Long from 'long'
import { describe, expect, test } from 'vitest'
import { MemoryAccountStore } from '../../../test/platform/account-store.ts'
import type { ListedChat, Person } from '../port.ts'
import { Peers } from './peers.ts'
import { listChats, type Reader, readHistory, resolve, setReadState } from './read.ts'

const self: Person = { id: '1', name: 'Sales', username: null, phone: null, kind: 'self' }

/** A reader whose calls a script answers. */
async function open(answer: (request: tl.RpcMethod) => unknown = () => undefined) {
  const asked: tl.RpcMethod[] = []
  const fed: tl.TypeUpdates[] = []
  const peers = await Peers.load(new MemoryAccountStore())
  peers.learn({ users: [userOf(7, 'ada')] })
  const reader: Reader = {
    self,
    peers,
    call: async (request) => {
      asked.push(request)
      return answer(request) as never
    },
    learn: async (found) => peers.learn(found),
    feed: (container) => fed.push(container),
  }
  return { reader, asked, fed }
}

function userOf(id: number, username: string): tl.RawUser {
  return {
    _: 'user',
    id,
    accessHash: Long.fromNumber(id),
    firstName: username,
    username,
    phone: `49300${id}`,
  }
}

function messageOf(id: number): tl.RawMessage {
  return { _: 'message', id, peerId: { _: 'peerUser', userId: id }, date: id, message: `${id}` }
}

describe('resolve', () => {
  test('asks Telegram only about names that no stored person has', async () => {
    const found = {
      _: 'contacts.resolvedPeer',
      peer: { _: 'peerUser', userId: 8 },
      chats: [],
      users: [userOf(8, 'bob')],
    }
    const { reader, asked } = await open(() => found)
    expect(await resolve(reader, { kind: 'username', value: 'ADA' })).toMatchObject({ id: '7' })
    expect(await resolve(reader, { kind: 'phone', value: '+49300 7' })).toMatchObject({ id: '7' })
    expect(await resolve(reader, { kind: 'id', value: '7' })).toMatchObject({ id: '7' })
    expect(asked).toEqual([])
    expect(await resolve(reader, { kind: 'username', value: 'bob' })).toMatchObject({ id: '8' })
    expect(await resolve(reader, { kind: 'username', value: 'bob' })).toMatchObject({ id: '8' })
    expect(asked).toHaveLength(1)
    await expect(resolve(reader, { kind: 'id', value: '9' })).rejects.toMatchObject({
      reason: 'username_not_found',
    })
  })
})

function dialogOf(id: number, more: Partial<tl.RawDialog> = {}): tl.RawDialog {
  return {
    _: 'dialog',
    ...{
      peer: { _: 'peerUser', userId: id },
      topMessage: id,
      readInboxMaxId: 0,
      readOutboxMaxId: 0,
      unreadCount: 0,
    },
    ...{ unreadMentionsCount: 0, unreadReactionsCount: 0, unreadPollVotesCount: 0 },
    notifySettings: { _: 'peerNotifySettings' },
    ...more,
  }
}

/** Chats with these numbers, newest first, in folders of which the second is the archive. */
function dialogsOf(folders: readonly (readonly number[])[]) {
  return (request: tl.RpcMethod): tl.messages.RawDialogsSlice => {
    if (request._ !== 'messages.getDialogs') throw new Error(request._)
    const all = folders[request.folderId ?? 0] ?? []
    const page = all.filter((id) => request.offsetId === 0 || id < request.offsetId).slice(0, request.limit)
    return {
      _: 'messages.dialogsSlice',
      count: all.length,
      dialogs: page.map((id) => dialogOf(id, { unreadMark: id === 20 })),
      messages: page.map(messageOf),
      users: page.map((id) => userOf(id, `user_${id}`)),
      chats: [],
    }
  }
}

describe('listChats', () => {
  test('lists the chats and then the archive, with last messages and the total', async () => {
    const { reader } = await open(
      dialogsOf([
        [30, 29, 28, 27, 26],
        [20, 19],
      ]),
    )
    const seen: ListedChat[] = []
    const totals: (number | null)[] = []
    for (let after: string | null = null; ; ) {
      const page = await listChats(reader, { after, limit: 2 })
      seen.push(...page.chats)
      totals.push(page.total)
      after = page.next
      if (after === null) break
    }
    expect(seen.map(({ chat }) => chat.id)).toEqual(['30', '29', '28', '27', '26', '20', '19'])
    expect(seen.map(({ last }) => last?.text)).toEqual(['30', '29', '28', '27', '26', '20', '19'])
    expect(seen.map(({ chat }) => chat.unread_count)).toEqual([0, 0, 0, 0, 0, 1, 0])
    expect([totals[0], totals.at(-1)]).toEqual([5, 7])
  })

  test('omits channels and dead groups, and continues behind them', async () => {
    const peer: tl.TypePeer = { _: 'peerChannel', channelId: 3 }
    const group: tl.TypePeer = { _: 'peerChat', chatId: 4 }
    const dead: tl.TypeChat = { _: 'chatForbidden', id: 4, title: 'Gone' }
    const first = { ...dialogsOf([[30]])({ _: 'messages.getDialogs', limit: 9 } as never), chats: [dead] }
    const dialogs = [dialogOf(30), dialogOf(5, { peer: group }), dialogOf(6, { peer })]
    const { reader } = await open(() => ({ ...first, dialogs }))
    const page = await listChats(reader, { after: null, limit: 3 })
    expect(page.chats.map(({ chat }) => chat.id)).toEqual(['30'])
    expect(page.next).not.toBeNull()
  })
})

describe('readHistory', () => {
  test('omits service messages, and is short only at the beginning of the chat', async () => {
    const service = (id: number): tl.TypeMessage => ({
      _: 'messageService',
      ...{ id, peerId: { _: 'peerUser', userId: 7 }, date: id, action: { _: 'messageActionHistoryClear' } },
    })
    const all = Array.from({ length: 150 }, (_, n) => (n % 3 === 0 ? service(150 - n) : messageOf(150 - n)))
    const { reader, asked } = await open((request) => {
      if (request._ !== 'messages.getHistory') throw new Error(request._)
      const from = all.filter(({ id }) => request.offsetId === 0 || id < request.offsetId)
      const messages = from.slice(0, request.limit)
      return { _: 'messages.messagesSlice', count: 150, messages, topics: [], users: [], chats: [] }
    })
    const page = await readHistory(reader, { chat_id: '7', before: null, limit: 90 })
    expect(page).toHaveLength(90)
    const rest = await readHistory(reader, {
      chat_id: '7',
      before: { message_id: page.at(-1)?.id ?? '' },
      limit: 90,
    })
    expect(rest).toHaveLength(10)
    expect(new Set([...page, ...rest].map(({ id }) => id)).size).toBe(100)
    expect(asked.every((request) => request._ === 'messages.getHistory' && request.limit <= 100)).toBe(true)
  })

  test('makes no call for an unknown chat', async () => {
    const { reader, asked } = await open()
    const page = readHistory(reader, { chat_id: '9', before: null, limit: 3 })
    await expect(page).rejects.toMatchObject({ reason: 'chat_unavailable' })
    expect(asked).toEqual([])
  })
})

test('the answer to reading is fed to the updates, if it has a pts', async () => {
  for (const ptsCount of [0, 1]) {
    const { reader, fed } = await open(() => ({ _: 'messages.affectedMessages', pts: 11, ptsCount }))
    expect(await setReadState(reader, '7', false)).toEqual({ unread_count: 0 })
    expect(fed).toHaveLength(ptsCount)
  }
})
