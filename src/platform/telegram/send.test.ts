import type { tl } from '@mtcute/core'
import Long from 'long'
import { expect, test } from 'vitest'
import { NotWritten } from './errors.ts'
import { send } from './send.ts'

const peer: tl.TypeInputPeer = { _: 'inputPeerUser', userId: 7, accessHash: Long.ZERO }
const file: tl.TypeInputMedia = { _: 'inputMediaEmpty' }
const random_id = '-4611686018427387904'
const randomId = Long.fromString(random_id)

async function sendText({ text = 'Hello', withFile = false, isPremium = false, answer }: Sending) {
  const fed: tl.TypeUpdates[] = []
  const asked: tl.RpcMethod[] = []
  const call = async (request: tl.RpcMethod) => {
    asked.push(request)
    if (answer instanceof Error) throw answer
    return answer
  }
  const outcome = await send(
    { chat_id: '7', text, file: null, random_id },
    { peer, file: withFile ? file : null, isPremium, call: call as never, feed: (each) => fed.push(each) },
  )
  return { outcome, fed, asked }
}

interface Sending {
  text?: string
  withFile?: boolean
  isPremium?: boolean
  answer: tl.TypeUpdates | Error
}

const short: tl.TypeUpdates = { _: 'updateShortSentMessage', id: 5, pts: 11, ptsCount: 1, date: 60 }
const whole: tl.RawUpdates = {
  _: 'updates',
  updates: [{ _: 'updateMessageID', id: 5, randomId }],
  users: [],
  chats: [],
  date: 60,
  seq: 0,
}

test('accepts a short answer, and feeds it to the updates with text and random id', async () => {
  const { outcome, fed, asked } = await sendText({ answer: short })
  expect(asked).toMatchObject([{ _: 'messages.sendMessage', message: 'Hello', randomId }])
  const at = '1970-01-01T00:01:00.000Z'
  expect(outcome).toEqual({ kind: 'accepted', value: { message_id: '5', at } })
  expect(fed).toMatchObject([
    {
      updates: [
        { _: 'updateMessageID', id: 5, randomId },
        { _: 'updateNewMessage', pts: 11, ptsCount: 1, message: { id: 5, out: true, message: 'Hello' } },
      ],
    },
  ])
})

test('accepts a full answer that names our random id, and treats another as unknown', async () => {
  expect((await sendText({ answer: whole })).outcome).toMatchObject({ kind: 'accepted' })
  const other = await sendText({ answer: { ...whole, updates: [] } })
  expect(other.outcome).toMatchObject({ kind: 'unknown' })
  expect(other.fed).toHaveLength(1)
})

test('treats an answer that names only the random id of another message as unknown', async () => {
  const updates: tl.TypeUpdate[] = [{ _: 'updateMessageID', id: 5, randomId: randomId.add(1) }]
  expect((await sendText({ answer: { ...whole, updates } })).outcome).toMatchObject({ kind: 'unknown' })
})

test("refuses a caption above the account's limit before the call", async () => {
  const plain = await sendText({ text: '👋'.repeat(1025), withFile: true, answer: whole })
  expect(plain.outcome).toMatchObject({ kind: 'refused', reason: 'message_invalid' })
  expect(plain.asked).toEqual([])
  const premium = { text: '👋'.repeat(4096), withFile: true, isPremium: true, answer: whole }
  expect((await sendText(premium)).outcome).toMatchObject({ kind: 'accepted' })
  expect((await sendText({ text: '👋'.repeat(1024), withFile: true, answer: whole })).asked).toHaveLength(1)
})

test('a lost connection is unknown, a closed gate is not_written', async () => {
  const lost = await sendText({ answer: new Error('Session is reset') })
  expect(lost.outcome).toEqual({ kind: 'unknown', reason: 'connection_lost' })
  const closed = await sendText({ answer: new NotWritten('The session is over.') })
  expect(closed.outcome).toEqual({ kind: 'not_written', reason: 'The session is over.' })
})
