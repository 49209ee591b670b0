import { tl } from '@mtcute/core'
import Long from 'long'
import { afterEach, describe, expect, test } from 'vitest'
import { within } from '../../../test/platform/conformance-recorder.ts'
import type { UpdateState } from './update-state.ts'
import { type TelegramBatch, UpdateStream, UpdatesMissed } from './updates.ts'

const state: UpdateState = { pts: 10, qts: 0, date: 1_000, seq: 5 }
const streams: UpdateStream[] = []

afterEach(() => {
  for (const stream of streams.splice(0)) stream.end()
})

type Script = (request: tl.RpcMethod) => unknown

/** A stream that starts at `state`, and whose calls a script answers. */
function play({ answer = () => empty, from = state, knows = true, take = async () => {} }: Options = {}) {
  const batches: TelegramBatch[] = []
  const asked: tl.RpcMethod[] = []
  const failed = Promise.withResolvers<unknown>()
  const stream = new UpdateStream({
    state: from ?? undefined,
    call: async (request) => {
      asked.push(request)
      return answer(request) as never
    },
    take: async (batch) => {
      batches.push(batch)
      await take(batch)
    },
    knows: () => knows,
    failed: failed.resolve,
  })
  streams.push(stream)
  const until = (isDone: () => boolean) => expect.poll(isDone, { timeout: 20_000 }).toBe(true)
  const texts = () => batches.flatMap(({ updates }) => updates.flatMap(textOf))
  const differences = () => asked.filter(({ _ }) => _ === 'updates.getDifference').length
  return { stream, batches, asked, failed: failed.promise, until, texts, differences }
}

interface Options {
  answer?: Script
  from?: UpdateState | null
  knows?: boolean
  take?: (batch: TelegramBatch) => Promise<void>
}

const empty: tl.updates.TypeDifference = { _: 'updates.differenceEmpty', date: 1_001, seq: 5 }

function messageOf(id: number): tl.RawMessage {
  return { _: 'message', id, peerId: { _: 'peerUser', userId: 7 }, date: 1_000 + id, message: `${id}` }
}

function pushOf(pts: number, { count = 1, seq = 0 } = {}): tl.RawUpdates {
  const update: tl.TypeUpdate = { _: 'updateNewMessage', message: messageOf(pts), pts, ptsCount: count }
  return { _: 'updates', updates: [update], users: [], chats: [], date: 1_000 + pts, seq }
}

function differenceOf(ids: readonly number[], pts: number): tl.updates.RawDifference {
  return {
    _: 'updates.difference',
    newMessages: ids.map(messageOf),
    newEncryptedMessages: [],
    otherUpdates: [],
    chats: [],
    users: [],
    state: { _: 'updates.state', pts, qts: 0, date: 2_000, seq: 5, unreadCount: 0 },
  }
}

function sliceOf(ids: readonly number[], pts: number): tl.updates.RawDifferenceSlice {
  const { state: intermediateState, ...rest } = differenceOf(ids, pts)
  return { ...rest, _: 'updates.differenceSlice', intermediateState }
}

function textOf(update: tl.TypeUpdate): string[] {
  return update._ === 'updateNewMessage' && update.message._ === 'message' ? [update.message.message] : []
}

function answerOf<T>(next: T | Error): T {
  if (next instanceof Error) throw next
  return next
}

function rpcError(errorMessage: string, errorCode: number): Error {
  return tl.RpcError.fromTl({ errorCode, errorMessage })
}

describe('pushed updates', () => {
  test('are delivered in order, each once, with the state after them', async () => {
    const { stream, batches, texts, until } = play()
    stream.begin()
    for (const pts of [11, 12, 12, 11, 13]) stream.feed(pushOf(pts))
    await until(() => texts().length === 3)
    expect(texts()).toEqual(['11', '12', '13'])
    expect(batches.at(-1)).toMatchObject({ state: { pts: 13, date: 1_013, seq: 5 }, caught_up: true })
  })

  test('wait for a missing one before them, without a request for the difference', async () => {
    const { stream, texts, until, differences } = play()
    for (const pts of [13, 12, 11]) stream.feed(pushOf(pts))
    await until(() => texts().length === 3)
    expect(texts()).toEqual(['11', '12', '13'])
    expect(differences()).toBe(0)
  })

  test('come with the difference if the one before them stays missing, and not twice', async () => {
    const { stream, texts, until, differences } = play({ answer: () => differenceOf([11, 12], 12) })
    stream.feed(pushOf(12))
    stream.feed(pushOf(13))
    await until(() => texts().length === 3)
    expect(texts()).toEqual(['11', '12', '13'])
    expect(differences()).toBe(1)
  })

  test('in a container after a missing one wait as well', async () => {
    const { stream, batches, until } = play()
    const name = (userId: number): tl.TypeUpdate => ({
      _: 'updateUserName',
      ...{ userId, firstName: 'Ada', lastName: '', usernames: [] },
    })
    stream.feed({ ...pushOf(11, { seq: 7 }), updates: [name(7)] })
    stream.feed({ ...pushOf(11, { seq: 6 }), updates: [name(6)] })
    await until(() => batches.length === 2)
    expect(batches.flatMap(({ updates }) => updates)).toMatchObject([{ userId: 6 }, { userId: 7 }])
  })

  test('of a person without an access hash come with the difference', async () => {
    const short: tl.TypeUpdates = {
      _: 'updateShortMessage',
      ...{ id: 11, userId: 7, message: '11', pts: 11, ptsCount: 1, date: 1_011 },
    }
    const stranger = play({ knows: false, answer: () => differenceOf([11], 11) })
    stranger.stream.feed(short)
    await stranger.until(() => stranger.texts().length === 1)
    expect(stranger.differences()).toBe(1)
    const friend = play()
    friend.stream.feed(short)
    await friend.until(() => friend.texts().length === 1)
    expect(friend.differences()).toBe(0)
  })

  test('of channels do not count', async () => {
    const { stream, batches, texts, until } = play()
    const update = { _: 'updateNewChannelMessage', message: messageOf(1), pts: 900, ptsCount: 1 } as const
    stream.feed({ ...pushOf(11), updates: [update] })
    stream.feed(pushOf(11))
    await until(() => texts().length === 1)
    expect(batches.at(-1)?.state.pts).toBe(11)
  })

  test('of channels and of who is online are dropped before the queue, however many arrive', async () => {
    const { stream, batches, texts, until } = play({ take: () => new Promise(() => {}) })
    stream.feed(pushOf(11))
    await until(() => batches.length === 1)
    const channel = { _: 'updateNewChannelMessage', message: messageOf(1), pts: 900, ptsCount: 1 } as const
    const online: tl.TypeUpdate = { _: 'updateUserStatus', userId: 7, status: { _: 'userStatusEmpty' } }
    // Fewer than end the stream, which would empty its queue.
    for (let n = 0; n < 4_000; n++) stream.feed({ ...pushOf(11), updates: [n % 2 ? channel : online] })
    expect(stream.waiting).toBe(0)
    expect(texts()).toEqual(['11'])
  })

  test('of channels that have a place among the containers move it, and are no batch', async () => {
    const { stream, batches, texts, until } = play()
    const channel = { _: 'updateNewChannelMessage', message: messageOf(1), pts: 900, ptsCount: 1 } as const
    stream.feed({ ...pushOf(11, { seq: 6 }), updates: [channel] })
    stream.feed(pushOf(11, { seq: 7 }))
    await until(() => texts().length === 1)
    expect(batches.map((batch) => batch.state.seq)).toEqual([7])
  })

  test('wait until the batch before is stored', async () => {
    const gate = Promise.withResolvers<void>()
    const { stream, batches, until } = play({ take: () => gate.promise })
    stream.feed(pushOf(11))
    stream.feed(pushOf(12))
    await until(() => batches.length === 1)
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(batches).toHaveLength(1)
    gate.resolve()
    await until(() => batches.length === 2)
  })

  test('end the stream when 5,000 of them wait', async () => {
    const { stream, failed } = play({ take: () => new Promise(() => {}) })
    for (let pts = 11; pts < 5_015; pts++) stream.feed(pushOf(pts))
    expect(await within(20_000, failed)).toMatchObject({ message: 'Too many updates are waiting.' })
  })
})

describe('the start', () => {
  test("without a state is Telegram's current state, and caught up", async () => {
    const told: tl.updates.TypeState = { _: 'updates.state', ...state, pts: 99, unreadCount: 0 }
    const { stream, batches, until, differences } = play({ from: null, answer: () => told })
    await stream.locate()
    stream.begin()
    await until(() => batches.length === 1)
    expect(batches[0]).toMatchObject({ updates: [], caught_up: true, state: { pts: 99 } })
    expect(differences()).toBe(0)
  })

  test('without a state ignores what is pushed before it, and does not fail', async () => {
    const told: tl.updates.TypeState = { _: 'updates.state', ...state, pts: 99, unreadCount: 0 }
    const { stream, batches, texts, until } = play({ from: null, answer: () => told })
    stream.feed(pushOf(99))
    await stream.locate()
    stream.begin()
    stream.feed(pushOf(100))
    await until(() => texts().length === 1)
    expect(batches.map((batch) => batch.state.pts)).toEqual([99, 100])
  })

  test('with a state is the difference, in slices of which only the last is caught up', async () => {
    const answers = [sliceOf([11], 11), sliceOf([12], 12), differenceOf([13], 13)]
    const { stream, batches, texts, until } = play({ answer: () => answers.shift() })
    stream.begin()
    await until(() => texts().length === 3)
    expect(batches.map(({ caught_up }) => caught_up)).toEqual([false, false, true])
    expect(batches.map((batch) => batch.state.pts)).toEqual([11, 12, 13])
  })
})

describe('a push that arrives before the first difference', () => {
  test('is not caught up: what was sent before the session is not known yet', async () => {
    const { stream, batches, until } = play({ answer: () => differenceOf([11], 11) })
    const update: tl.TypeUpdate = {
      _: 'updateUserName',
      ...{ userId: 7, firstName: 'Ada', lastName: '', usernames: [] },
    }
    stream.feed({ _: 'updateShort', update, date: 1_000 })
    stream.begin()
    await until(() => batches.length === 2)
    expect(batches.map(({ caught_up }) => caught_up)).toEqual([false, true])
  })

  test('is not caught up either where it waits behind another until the session begins', async () => {
    const stored = Promise.withResolvers<void>()
    const { stream, batches, until } = play({
      answer: () => differenceOf([11], 11),
      take: () => stored.promise,
    })
    for (const userId of [7, 8]) {
      const update: tl.TypeUpdate = {
        _: 'updateUserName',
        ...{ userId, firstName: 'Ada', lastName: '', usernames: [] },
      }
      stream.feed({ _: 'updateShort', update, date: 1_000 })
    }
    stream.begin()
    stored.resolve()
    await until(() => batches.length === 3)
    expect(batches.map(({ caught_up }) => caught_up)).toEqual([false, false, true])
  })
})

describe('the difference', () => {
  test('is requested again while something waits that it did not bring', async () => {
    const answers = [differenceOf([11], 11), differenceOf([12, 13], 13)]
    const { stream, texts, until, differences } = play({ answer: () => answers.shift() })
    stream.feed(pushOf(13))
    await until(() => texts().length === 3)
    expect(texts()).toEqual(['11', '12', '13'])
    expect(differences()).toBe(2)
  })

  test('delivers random ids before the messages that carry them', async () => {
    const found = differenceOf([11], 11)
    const proof: tl.TypeUpdate = { _: 'updateMessageID', id: 11, randomId: Long.fromNumber(4) }
    const { stream, batches, until } = play({ answer: () => ({ ...found, otherUpdates: [proof] }) })
    stream.begin()
    await until(() => batches.length === 1)
    expect(batches[0]?.updates.map(({ _ }) => _)).toEqual(['updateMessageID', 'updateNewMessage'])
  })

  test('that is too long moves on, reports the gap, and ends the stream before it is caught up', async () => {
    const answer = () => ({ _: 'updates.differenceTooLong', pts: 5_000 })
    const { stream, batches, failed } = play({ answer })
    stream.begin()
    expect(await within(20_000, failed)).toBeInstanceOf(UpdatesMissed)
    expect(batches).toMatchObject([{ gap: true, caught_up: false, state: { pts: 5_000 }, updates: [] }])
  })

  test('from a state that Telegram does not know is also a gap', async () => {
    const told: tl.updates.TypeState = { _: 'updates.state', ...state, pts: 70, unreadCount: 0 }
    const answer: Script = ({ _ }) => {
      if (_ === 'updates.getState') return told
      throw rpcError('PERSISTENT_TIMESTAMP_INVALID', 400)
    }
    const { stream, batches, failed } = play({ answer })
    stream.begin()
    expect(await within(20_000, failed)).toBeInstanceOf(UpdatesMissed)
    expect(batches).toMatchObject([{ gap: true, caught_up: false, state: { pts: 70 } }])
  })

  test('from a state that Telegram has not reached yet is requested again, and no gap', async () => {
    const answers = [rpcError('PERSISTENT_TIMESTAMP_OUTDATED', 500), differenceOf([11], 11)]
    const { stream, batches, until } = play({ answer: () => answerOf(answers.shift()) })
    stream.begin()
    await until(() => batches.length === 1)
    expect(batches).toMatchObject([{ gap: false, caught_up: true, state: { pts: 11 } }])
  })

  test('whose slices do not advance ends the stream after a few of them', async () => {
    // Without the bound it would go on for as long as Telegram answers like this.
    let slices = 0
    const answer = () => (slices++ < 50 ? sliceOf([], 10) : differenceOf([], 10))
    const { stream, batches, failed, differences } = play({ answer })
    stream.begin()
    expect(await within(20_000, failed)).toMatchObject({ message: 'The difference does not advance.' })
    expect(differences()).toBe(3)
    expect(batches.every(({ caught_up }) => !caught_up)).toBe(true)
  })

  test('that fails a few times is requested again, and delivered before anything else', async () => {
    const answers = [rpcError('INTERNAL', 500), rpcError('FLOOD_WAIT_0', 420), differenceOf([11], 11)]
    const { stream, batches, texts, until } = play({ answer: () => answerOf(answers.shift()) })
    stream.begin()
    stream.feed(pushOf(12))
    await until(() => texts().length === 2)
    expect(texts()).toEqual(['11', '12'])
    expect(batches[0]).toMatchObject({ caught_up: true })
  })

  test('that keeps failing ends the stream, which is never caught up', async () => {
    const { stream, batches, failed } = play({
      answer: () => {
        throw rpcError('INTERNAL', 500)
      },
    })
    stream.begin()
    expect(await within(20_000, failed)).toMatchObject({ text: 'INTERNAL' })
    expect(batches).toEqual([])
  })

  test('is requested when Telegram is ahead of us, and only then', async () => {
    const { stream, texts, until, differences } = play({ answer: () => differenceOf([11], 11) })
    const told: tl.updates.TypeState = { _: 'updates.state', ...state, unreadCount: 0 }
    stream.compare(told)
    stream.compare({ ...told, pts: 11 })
    await until(() => texts().length === 1)
    expect(differences()).toBe(1)
  })
})
