import type { tl } from '@mtcute/core'
import Long from 'long'
import { expect, test } from 'vitest'
import { MemoryAccountStore } from '../../../test/platform/account-store.ts'
import type { Person } from '../port.ts'
import { Peers } from './peers.ts'
import { peopleIn, viewMessage, viewUpdates } from './view.ts'

const self: Person = { id: '1', name: 'Sales', username: null, phone: null, kind: 'self' }
const message: tl.RawMessage = {
  _: 'message',
  ...{ id: 5, peerId: { _: 'peerUser', userId: 7 }, date: 60, message: 'Hello' },
}
const order = { pts: 1, ptsCount: 1 }

async function viewOne(update: tl.TypeUpdate) {
  const peers = await Peers.load(new MemoryAccountStore())
  return viewUpdates({ self, peers }, [update], 90)
}

test('a message has no unread count, and its chat has both people', async () => {
  const [update] = await viewOne({ _: 'updateNewMessage', message, ...order })
  expect(update).toMatchObject({
    kind: 'message',
    live: true,
    chat: { id: '7', kind: 'private', unread_count: null, participants: [{ id: '1' }, { id: '7' }] },
    message: { id: '5', text: 'Hello', is_sender: false, sender_id: '7', random_id: null },
  })
})

test('ignores an edit that Telegram hides, as it does for reactions', async () => {
  const edited = { ...message, editDate: 70 }
  const update = (given: tl.RawMessage) => viewOne({ _: 'updateEditMessage', message: given, ...order })
  expect(await update(edited)).toMatchObject([{ kind: 'edited', message: { edited_at: expect.any(String) } }])
  expect(await update({ ...edited, editHide: true })).toEqual([])
})

test('a message whose edit Telegram hides is not edited, in a page of history as in an update', async () => {
  const edited = { ...message, editDate: 70 }
  expect(viewMessage(self, edited).edited_at).toBe('1970-01-01T00:01:10.000Z')
  expect(viewMessage(self, { ...edited, editHide: true }).edited_at).toBeNull()
  const [update] = await viewOne({
    _: 'updateNewMessage',
    message: { ...edited, editHide: true },
    ...order,
  })
  expect(update).toMatchObject({ message: { edited_at: null } })
})

test.each<[string, tl.TypeUpdate]>([
  [
    'a channel',
    { _: 'updateNewMessage', message: { ...message, peerId: { _: 'peerChannel', channelId: 3 } }, ...order },
  ],
  [
    'notes to oneself',
    { _: 'updateNewMessage', message: { ...message, peerId: { _: 'peerUser', userId: 1 } }, ...order },
  ],
  [
    'a service message',
    {
      _: 'updateNewMessage',
      message: {
        _: 'messageService',
        ...{
          id: 5,
          peerId: { _: 'peerUser', userId: 7 },
          date: 60,
          action: { _: 'messageActionContactSignUp' },
        },
      },
      ...order,
    },
  ],
])('omits %s', async (_, update) => {
  expect(await viewOne(update)).toEqual([])
})

test('of the service chat shows that a code came and when, and nothing else', async () => {
  const peerId: tl.TypePeer = { _: 'peerUser', userId: 777_000 }
  const code = { ...message, peerId, message: 'Login code: 12345' }
  const update = (given: Partial<tl.RawMessage>): tl.TypeUpdate => ({
    _: 'updateNewMessage',
    message: { ...code, ...given },
    ...order,
  })
  expect(await viewOne(update({}))).toEqual([{ kind: 'login_code', at: '1970-01-01T00:01:00.000Z' }])
  expect(await viewOne(update({ out: true }))).toEqual([])
  expect(await viewOne({ _: 'updateEditMessage', message: { ...code, editDate: 70 }, ...order })).toEqual([])
  const read = { maxId: 5, stillUnreadCount: 1, ...order }
  expect(await viewOne({ _: 'updateReadHistoryInbox', peer: peerId, ...read })).toEqual([])
})

test('names the people of shown chats only', () => {
  const from = (peerId: tl.TypePeer, userId: number): tl.RawMessage => ({
    ...message,
    peerId,
    fromId: { _: 'peerUser', userId },
  })
  const messages = [
    message,
    from({ _: 'peerChat', chatId: 3 }, 8),
    from({ _: 'peerChannel', channelId: 3 }, 9),
    from({ _: 'peerUser', userId: 777_000 }, 777_000),
  ]
  expect([...peopleIn(messages, self.id)]).toEqual([7, 8])
})

test('a random id whose message is gone names no chat, and is still proof', async () => {
  const proof = await viewOne({ _: 'updateMessageID', id: 5, randomId: Long.fromNumber(-4) })
  const at = '1970-01-01T00:01:30.000Z'
  expect(proof).toEqual([{ kind: 'sent', random_id: '-4', chat_id: null, message_id: '5', at }])
})

function documentWith(...attributes: tl.TypeDocumentAttribute[]): tl.TypeMessageMedia {
  const bytes = new Uint8Array(0)
  const numbers = { id: Long.ONE, accessHash: Long.ONE, fileReference: bytes, date: 0, dcId: 2, size: 9 }
  return {
    _: 'messageMediaDocument',
    document: { _: 'document', ...numbers, mimeType: 'video/mp4', attributes },
  }
}
const voice: tl.TypeDocumentAttribute = { _: 'documentAttributeAudio', voice: true, duration: 3 }
const video: tl.TypeDocumentAttribute = { _: 'documentAttributeVideo', duration: 3, w: 1, h: 1 }
const named: tl.TypeDocumentAttribute = { _: 'documentAttributeFilename', fileName: 'offer.pdf' }

test.each([
  ['voice', documentWith(voice), { kind: 'voice', seconds: 3 }],
  ['video', documentWith(video, named), { kind: 'video', seconds: 3, width: 1, height: 1 }],
  ['offer.pdf', documentWith(named), { kind: 'file' }],
])('%s is an attachment', (file_name, media, more) => {
  const { attachments, text } = viewMessage(self, { ...message, media })
  expect(attachments).toEqual([{ index: 0, file_name, media_type: 'video/mp4', size: 9, ...more }])
  expect(text).toBe('Hello')
})

test('a photo has its largest size; media with a timer is no attachment', () => {
  const numbers = { id: Long.ONE, accessHash: Long.ONE, fileReference: new Uint8Array(0), date: 0, dcId: 2 }
  const photo: tl.TypePhoto = {
    _: 'photo',
    ...numbers,
    sizes: [
      { _: 'photoSize', type: 'm', w: 320, h: 240, size: 5 },
      { _: 'photoSizeProgressive', type: 'y', w: 1280, h: 960, sizes: [7, 9] },
    ],
  }
  const shown = viewMessage(self, { ...message, media: { _: 'messageMediaPhoto', photo } })
  expect(shown.attachments).toMatchObject([{ kind: 'photo', size: 9, width: 1280, height: 960 }])
  const once: tl.TypeMessageMedia = { _: 'messageMediaPhoto', photo, ttlSeconds: 10 }
  expect(viewMessage(self, { ...message, message: '', media: once })).toMatchObject({
    attachments: [],
    text: '[photo]',
  })
})

test('shows other media as a word in brackets', () => {
  const media: tl.TypeMessageMedia = { _: 'messageMediaGeo', geo: { _: 'geoPointEmpty' } }
  expect(viewMessage(self, { ...message, message: '', media }).text).toBe('[location]')
})
