import type { tl } from '@mtcute/core'
import Long from 'long'
import { describe, expect, test } from 'vitest'
import { MemoryAccountStore } from '../../../test/platform/account-store.ts'
import type { Identifier } from '../../rules/identifier.ts'
import type { ListedChat, Person } from '../port.ts'
import { Peers } from './peers.ts'
import { askPerson, listChats, type Reader, readHistory, resolve, setReadState } from './read.ts'

const self: Person = { id: '1', name: 'Sales', username: null, phone: null, kind: 'self' }

/** A reader whose calls a script answers. */
async function open(answer: (request: tl.RpcMethod) => unknown = () => undefined) {
  const asked: tl.RpcMethod[] = []
  const fed: tl.TypeUpdates[] = []
  const shown: number[] = []
  const peers = await Peers.load(new MemoryAccountStore())
  peers.learn({ users: [userOf(7, 'ada')] })
  const reader: Reader = {
    self,
    peers,
    call: async (request) => {
      asked.push(request)
      return answer(request) as never
    },
    learn: async (found, only) => {
      peers.learn(found)
      if (only) shown.push(...only)
    },
    feed: (container) => fed.push(container),
  }
  return { reader, asked, fed, shown }
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

/** As Telegram answers a look-up. */
const foundAs = (user: tl.RawUser) => ({
  _: 'contacts.resolvedPeer',
  peer: { _: 'peerUser', userId: user.id },
  chats: [],
  users: [user],
})

describe('resolve', () => {
  test('asks Telegram about every name, also one that a stored person has, and finds nobody by id', async () => {
    const { reader, asked } = await open(() => foundAs(userOf(8, 'ada')))
    for (const value of ['ADA', 'ada']) {
      expect(await resolve(reader, { kind: 'username', value })).toMatchObject({ id: '8', phone: '+493008' })
    }
    expect(asked.map(({ _ }) => _)).toEqual(['contacts.resolveUsername', 'contacts.resolveUsername'])
    await expect(resolve(reader, { kind: 'id', value: '7' })).rejects.toMatchObject({
      reason: 'username_not_found',
    })
    expect(asked).toHaveLength(2)
    // The former owner no longer shows the name.
    expect(reader.peers.findPerson('7')?.username).toBeNull()
  })

  test('returns no phone number that the answer does not show', async () => {
    const { reader } = await open(() => foundAs(without(userOf(7, 'ada'))))
    expect(await resolve(reader, { kind: 'phone', value: '+49300 7' })).toMatchObject({
      id: '7',
      phone: null,
    })
  })
})

describe('askPerson', () => {
  const second: tl.RawUsername[] = [
    { _: 'username', username: 'ada', active: true },
    { _: 'username', username: 'Ada_Sales', active: true },
    { _: 'username', username: 'ada_old' },
  ]
  const { username: _, ...nameless } = userOf(7, 'ada')
  test.each<[string, tl.RawUser, Identifier, boolean]>([
    ['under their username in any case', userOf(7, 'ada'), { kind: 'username', value: 'ADA' }, true],
    [
      'under a second username',
      { ...nameless, usernames: second },
      { kind: 'username', value: 'ada_sales' },
      true,
    ],
    [
      'not under a username that is switched off',
      { ...nameless, usernames: second },
      { kind: 'username', value: 'ada_old' },
      false,
    ],
    ['not under a former one', userOf(7, 'ada_new'), { kind: 'username', value: 'ada' }, false],
    ['under their phone number', userOf(7, 'ada'), { kind: 'phone', value: '+49300 7' }, true],
    ['not under a hidden one', without(userOf(7, 'ada')), { kind: 'phone', value: '+493007' }, false],
    ['by id, whatever they are called', userOf(7, 'ada_new'), { kind: 'id', value: '7' }, true],
  ])('shows a person %s', async (_, user, identifier, has_name) => {
    const { reader, asked } = await open(() => [user])
    expect(await askPerson(reader, '7', identifier)).toMatchObject({ person: { id: '7' }, has_name })
    expect(asked).toMatchObject([{ _: 'users.getUsers', id: [{ userId: 7 }] }])
  })

  test('says nothing when Telegram shows only the short form of a person, without their names', async () => {
    const { reader } = await open(() => [{ ...without(nameless), min: true }])
    const asked: Identifier[] = [
      { kind: 'username', value: 'ada' },
      { kind: 'phone', value: '+493007' },
    ]
    for (const identifier of asked) expect(await askPerson(reader, '7', identifier)).toBeNull()
  })

  test('makes no call about somebody whom the account cannot reach', async () => {
    const { reader, asked } = await open()
    expect(await askPerson(reader, '9', { kind: 'id', value: '9' })).toBeNull()
    expect(asked).toEqual([])
  })
})

/** As Telegram shows a person who hides their number. */
function without({ phone: _, ...user }: tl.RawUser): tl.RawUser {
  return user
}

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
    const { reader, shown } = await open(() => ({ ...first, dialogs }))
    const page = await listChats(reader, { after: null, limit: 3 })
    expect(page.chats.map(({ chat }) => chat.id)).toEqual(['30'])
    expect(page.next).not.toBeNull()
    expect(shown).toEqual([30])
  })

  test('begins the next page with the channel that ended the last one, and its access hash', async () => {
    const ends: [tl.TypePeer, tl.TypeInputPeer][] = [
      [
        { _: 'peerChannel', channelId: 3 },
        { _: 'inputPeerChannel', channelId: 3, accessHash: Long.fromNumber(-30) },
      ],
      [
        { _: 'peerUser', userId: 30 },
        { _: 'inputPeerUser', userId: 30, accessHash: Long.fromNumber(30) },
      ],
      [
        { _: 'peerChat', chatId: 4 },
        { _: 'inputPeerChat', chatId: 4 },
      ],
    ]
    const channel = { _: 'channel', id: 3, accessHash: Long.fromNumber(-30), title: 'News' }
    for (const [peer, offsetPeer] of ends) {
      const { reader, asked } = await open(() => ({
        ...dialogsOf([[30]])({ _: 'messages.getDialogs', offsetId: 0, limit: 9 } as never),
        dialogs: [dialogOf(30, { peer })],
        messages: [{ ...messageOf(30), peerId: peer }],
        chats: [channel],
      }))
      const { next } = await listChats(reader, { after: null, limit: 1 })
      await listChats(reader, { after: next, limit: 1 })
      expect(asked[1]).toMatchObject({ offsetPeer, offsetDate: 30, offsetId: 30 })
    }
    const { reader, asked } = await open(dialogsOf([[30]]))
    await listChats(reader, { after: '0.30.30.0.7', limit: 1 })
    expect(asked[0]).toMatchObject({ offsetPeer: { _: 'inputPeerUser', userId: 7 } })
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
