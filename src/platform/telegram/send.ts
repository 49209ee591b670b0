/** One submission: the call to Telegram, and what its answer proves. */
import type { tl } from '@mtcute/core'
import Long from 'long'
import { lengthOf } from '../../lib/text.ts'
import type { Outcome, Sent, Submission } from '../port.ts'
import { outcomeOf } from './errors.ts'
import { timeOf } from './view.ts'

/** The longest text next to a file, without and with Premium. */
const captionLengthMax = { plain: 1024, premium: 4096 } as const
/** Telegram processes a file before it answers. */
const fileAnswerMsMax = 90_000

interface SendingOptions {
  readonly peer: tl.TypeInputPeer
  readonly file: tl.TypeInputMedia | null
  readonly isPremium: boolean
  call<T extends tl.RpcMethod>(request: T, msMax?: number): Promise<tl.RpcCallReturn[T['_']]>
  /** Passes the answer to the stream of updates. */
  feed(container: tl.TypeUpdates): void
}

export async function send(message: Submission, options: SendingOptions): Promise<Outcome<Sent>> {
  const { peer, file, isPremium, call, feed } = options
  const { text, random_id } = message
  // guard: a caption that is too long
  if (file && lengthOf(text) > captionLengthMax[isPremium ? 'premium' : 'plain']) {
    return { kind: 'refused', reason: 'message_invalid', detail: 'MEDIA_CAPTION_TOO_LONG' }
  }
  const randomId = Long.fromString(random_id)
  try {
    const answer = file
      ? await call({ _: 'messages.sendMedia', peer, media: file, message: text, randomId }, fileAnswerMsMax)
      : await call({ _: 'messages.sendMessage', peer, message: text, randomId, noWebpage: true })
    const told = answer._ === 'updateShortSentMessage' ? lengthen(answer, { peer, text, randomId }) : answer
    feed(told) // guard: answers are fed
    return findSent(told, randomId)
  } catch (error) {
    return outcomeOf(error, 'sends')
  }
}

/** The short answer has neither text nor random id: it is accepted because the call sent nothing else. */
function lengthen(
  { id, date, pts, ptsCount, media }: tl.RawUpdateShortSentMessage,
  { peer, text, randomId }: { peer: tl.TypeInputPeer; text: string; randomId: Long },
): tl.RawUpdates {
  const peerId: tl.TypePeer =
    peer._ === 'inputPeerChat'
      ? { _: 'peerChat', chatId: peer.chatId }
      : { _: 'peerUser', userId: (peer as tl.RawInputPeerUser).userId }
  return {
    _: 'updates',
    updates: [
      { _: 'updateMessageID', id, randomId },
      {
        _: 'updateNewMessage',
        message: { _: 'message', id, out: true, peerId, date, message: text, ...(media && { media }) },
        pts,
        ptsCount,
      },
    ],
    users: [],
    chats: [],
    date,
    seq: 0,
  }
}

function findSent(answer: tl.TypeUpdates, randomId: Long): Outcome<Sent> {
  const updates = 'updates' in answer ? answer.updates : []
  // guard: only our random id proves our message
  const proof = updates.find((each) => each._ === 'updateMessageID' && each.randomId.eq(randomId))
  // guard: an answer without our random id is unknown
  if (proof?._ !== 'updateMessageID') return { kind: 'unknown', reason: `unexpected answer ${answer._}` }
  const message = updates.flatMap((each) => (each._ === 'updateNewMessage' ? [each.message] : []))
  const shown = message.find(({ id }) => id === proof.id)
  const date = shown && 'date' in shown ? shown.date : 'date' in answer ? answer.date : 0
  return { kind: 'accepted', value: { message_id: String(proof.id), at: timeOf(date) } }
}
