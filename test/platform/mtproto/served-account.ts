/** One logged-in connection: calls of its `ServedSession`, and the account's stream as pts. */
import type { tl } from '@mtcute/core'
import { lengthOf } from '../../../src/lib/text.ts'
import type { Outcome, PlatformRefusal, UpdateBatch } from '../../../src/platform/port.ts'
import type { Method, Params, Result } from '../../../src/platform/sandbox/calls.ts'
import type { KeptFile } from '../../../src/platform/sandbox/entries.ts'
import { type Fault, findRefusal } from '../../../src/platform/sandbox/faults.ts'
import { ServedSession } from '../../../src/platform/sandbox/served-session.ts'
import { type Account, type Happening, indexOfPost, type Post } from '../../../src/platform/sandbox/state.ts'
import type { World } from '../../../src/platform/sandbox/world.ts'
import { type Channel, ptsOfChannel, viewChannel } from './channels.ts'
import { type Call, type Connection, refuse } from './connection.ts'
import type { CentreParts } from './parts.ts'
import {
  idsOf,
  ptsOf,
  stateOf,
  unixSeconds,
  viewHappening,
  viewPeers,
  viewPost,
  viewSent,
  viewShort,
} from './views.ts'

const sliceMax = 100
export const textLengthMax = 4096
export const captionLengthMax = 1024

const errorNames: Partial<Record<PlatformRefusal, string>> = {
  username_not_found: 'USERNAME_NOT_OCCUPIED',
  identity_ineligible: 'INPUT_USER_DEACTIVATED',
  chat_unavailable: 'PEER_ID_INVALID',
  blocked_by_person: 'USER_IS_BLOCKED',
  message_invalid: 'MESSAGE_EMPTY',
  needs_login: '401 SESSION_REVOKED',
  restricted: '401 USER_DEACTIVATED_BAN',
}

/** The Telegram error that a fault names. */
function named(struck: Fault | undefined): string | undefined {
  return struck?.error && !findRefusal(struck) ? struck.error : undefined
}

function acceptedValue<T>(outcome: Outcome<T>, struck: Fault | undefined): T {
  switch (outcome.kind) {
    case 'accepted':
      return outcome.value
    case 'refused':
      return refuse(named(struck) ?? errorNames[outcome.reason] ?? '500 INTERNAL')
    case 'flood_wait':
      return refuse(`420 FLOOD_WAIT_${outcome.retry_after_seconds}`)
    default:
      return refuse('500 INTERNAL')
  }
}

interface NewMessage {
  readonly chat_id: number
  readonly text: string
  readonly random_id: string
  readonly file: KeptFile | null
}

export class ServedAccount {
  readonly account: Account
  readonly #world: World
  readonly #parts: CentreParts
  readonly #key_id: string
  /** What this connection got in answers. */
  readonly #told = new WeakSet<Happening>()
  readonly #connection: Connection
  readonly #session: ServedSession
  /** By random id: how many happenings of a send this connection gets in the answer. */
  readonly #answered = new Map<string, number>()
  #connected: Promise<void> | undefined
  /** The position of the last push. */
  #position: number | undefined

  constructor(parts: CentreParts, connection: Connection, account: Account) {
    this.account = account
    this.#parts = parts
    this.#world = parts.world
    this.#connection = connection
    this.#key_id = connection.key.key_id
    const peer = {
      updates: ({ position }: UpdateBatch) => this.#push(Number(position)),
      cut: () => connection.end(),
    }
    // Another device has another key. The same key from elsewhere replaces this connection.
    this.#session = new ServedSession(parts.world, peer, this.#key_id)
    connection.onEnd(() => this.#session.end(null))
  }

  /** The first call opens the session. After a refusal the next call tries again. */
  connect(): Promise<void> {
    this.#connected ??= this.#connect().catch((error: unknown) => {
      this.#connected = undefined
      throw error
    })
    return this.#connected
  }

  async #connect(): Promise<void> {
    let struck: Fault | undefined
    const { account_id } = this.account
    const outcome = await this.#session.connect({ account_id, name: '', position: null }, (fault) => {
      struck = fault
    })
    if (outcome.kind === 'not_written') this.#connection.end()
    acceptedValue(outcome, struck)
  }

  /** `empty` is the answer for a person without messages: on Telegram such a chat need not be opened. */
  async ask<M extends Method>(
    call: Call,
    method: M,
    params: Params<M>,
    empty?: Result<M>,
  ): Promise<Result<M>> {
    let struck: Fault | undefined
    const outcome = await this.#session.answer(method, params, (fault) => {
      struck = fault
      if (fault.fault === 'resend') call.forget()
    })
    const isMissing = !struck && outcome.kind === 'refused' && outcome.reason === 'chat_unavailable'
    if (isMissing && empty !== undefined) return empty
    return acceptedValue(outcome, struck)
  }

  async #push(position: number): Promise<void> {
    const start = this.#position ?? position
    this.#position = position
    const fresh = this.account.stream
      .slice(start, position)
      .map((happening, n) => ({ happening, pts: ptsOf(start + n + 1) }))
      .filter(({ happening }) => !this.#isAnswered(happening)) // guard: own sends only in their answers
    if (fresh.length === 0 || this.#connection.key.account_id !== this.account.account_id) return
    const [only, ...more] = fresh
    const isShort = this.#parts.short.has(this.account.account_id) && more.length === 0
    const short = only && isShort && viewShort(only.happening, only.pts)
    if (short) return this.#connection.push(short)
    const ids = idsOf(fresh.map(({ happening }) => happening))
    await this.#connection.push({
      _: 'updates',
      updates: fresh.flatMap(({ happening, pts }) =>
        viewHappening(this.account, happening, { pts, isOurs: this.#isOurs }),
      ),
      ...viewPeers(this.#world.state, this.account, ids),
      date: this.#parts.clock.seconds(),
      seq: 0,
    })
  }

  readonly #isOurs = (random_id: string | null): boolean =>
    random_id !== null && this.#parts.store.senderOf(this.account.account_id, random_id) === this.#key_id

  /** Runs a change of ours. Returns the order of its updates: this connection gets them in the answer alone. */
  change(act: () => void): { happenings: Happening[]; pts: number; ptsCount: number } {
    const { stream } = this.account
    const start = stream.length
    act()
    const happenings = stream.slice(start)
    for (const each of happenings) this.#told.add(each)
    return { happenings, pts: ptsOf(stream.length), ptsCount: happenings.length }
  }

  #isAnswered(happening: Happening): boolean {
    if (this.#told.has(happening)) return true
    const random_id = 'post' in happening && happening.kind !== 'edited' ? happening.post.random_id : null
    const left = random_id === null ? undefined : this.#answered.get(random_id)
    if (random_id === null || left === undefined) return false
    if (left > 1) this.#answered.set(random_id, left - 1)
    else this.#answered.delete(random_id)
    return true
  }

  async send(call: Call, { chat_id, text, random_id, file }: NewMessage): Promise<tl.TypeUpdates> {
    if (lengthOf(text) > (file ? captionLengthMax : textLengthMax)) {
      refuse(file ? 'MEDIA_CAPTION_TOO_LONG' : 'MESSAGE_TOO_LONG')
    }
    const isRepeat = this.#world.dedupe && this.account.sent_ids.has(random_id)
    if (!isRepeat) {
      this.#answered.set(random_id, 2)
      const { account_id } = this.account
      this.#parts.store.commit({ entry: 'sender', account_id, random_id, key_id: this.#key_id })
    }
    const { stream } = this.account
    const start = isRepeat ? 0 : stream.length
    try {
      const handle = file && this.#session.uploads.keep(file)
      const message = { chat_id: `${chat_id}` as const, text, handle, random_id }
      const { message_id, at } = await this.ask(call, 'send', message)
      const offset = stream
        .slice(start)
        .findIndex((each) => each.kind === 'sent' && each.post.message_id === Number(message_id))
      const isTold = offset !== -1 && !isRepeat
      if (!isTold) this.#answered.delete(random_id)
      const pts = ptsOf(offset === -1 ? stream.length : start + offset + 1)
      const order = { pts, ptsCount: isTold ? 2 : 0 }
      const post = this.findPost(chat_id, Number(message_id))
      const date = unixSeconds(at)
      if (!file || !post)
        return { _: 'updateShortSentMessage', out: true, id: Number(message_id), date, ...order }
      const updates = [
        viewSent(post),
        { _: 'updateNewMessage' as const, message: viewPost(chat_id, post), ...order },
      ]
      return { _: 'updates', updates, ...viewPeers(this.#world.state, this.account, [chat_id]), date, seq: 0 }
    } catch (error) {
      this.#answered.delete(random_id)
      throw error
    }
  }

  findPost(chat_id: number, message_id: number): Post | undefined {
    const box = this.account.boxes.get(chat_id)
    const post = box?.posts[indexOfPost(box, message_id)]
    return post?.message_id === message_id ? post : undefined
  }

  /** A difference does not carry the messages of channels: it names the channels that have news. */
  #newsOfChannels(since: number): Channel[] {
    const { account_id } = this.account
    return [...this.#parts.store.state.channels.values()].filter(
      ({ account_ids, posts }) =>
        account_ids.includes(account_id) && unixSeconds(posts.at(-1)?.at ?? 0) > since,
    )
  }

  /** What happened after `pts`, in slices; too long if the data centre keeps fewer updates. A slice may stay where it is. */
  async difference(
    call: Call,
    { pts, date: since }: { readonly pts: number; readonly date: number },
  ): Promise<tl.updates.TypeDifference> {
    const { account } = this
    await this.ask(call, 'ping', {})
    const start = pts - ptsOf(0)
    const end = account.stream.length
    if (start < 0 || start > end) refuse('PERSISTENT_TIMESTAMP_INVALID')
    if (end - start > this.#parts.keep_updates) return { _: 'updates.differenceTooLong', pts: ptsOf(end) }
    const date = this.#parts.clock.seconds()
    if (this.#parts.stalls.take('updates.getDifference', account.account_id))
      return viewStall(account, date, start)
    const channels = start + sliceMax < end ? [] : this.#newsOfChannels(since)
    if (start === end && channels.length === 0) return { _: 'updates.differenceEmpty', date, seq: 0 }
    const found = account.stream.slice(start, start + sliceMax)
    await this.#world.durable()
    const updates = found.flatMap((each, n) =>
      viewHappening(account, each, { pts: ptsOf(start + n + 1), isOurs: this.#isOurs }),
    )
    const people = viewPeers(this.#world.state, account, idsOf(found))
    const body = {
      // A message that was deleted since is omitted, and its `updateMessageID` stands alone.
      newMessages: updates.flatMap((each) =>
        each._ === 'updateNewMessage' && account.chat_of_message.has(each.message.id) ? [each.message] : [],
      ),
      newEncryptedMessages: [],
      otherUpdates: [
        ...updates.filter(({ _ }) => _ !== 'updateNewMessage' && _ !== 'updateReadMessagesContents'),
        ...channels.map((each) => viewTooLong(each)),
      ],
      users: people.users,
      chats: [...people.chats, ...channels.map((each) => viewChannel(account, each))],
    }
    const state = stateOf(account, date, start + found.length)
    return start + found.length < end
      ? { _: 'updates.differenceSlice', ...body, intermediateState: state }
      : { _: 'updates.difference', ...body, state }
  }
}

function viewStall(account: Account, date: number, start: number): tl.updates.RawDifferenceSlice {
  return {
    _: 'updates.differenceSlice',
    ...{ newMessages: [], newEncryptedMessages: [], otherUpdates: [], users: [], chats: [] },
    intermediateState: stateOf(account, date, start),
  }
}

function viewTooLong(channel: Channel): tl.RawUpdateChannelTooLong {
  return { _: 'updateChannelTooLong', channelId: channel.channel_id, pts: ptsOfChannel(channel) }
}
