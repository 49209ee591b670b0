/**
 * The user's own phone beside Parley: mtcute with its own reconnects, a key of its own, and a few lines that keep what it shows in
 * order. Shares neither the stream of updates nor the sessions of the adapter.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { connectTcp } from '@fuman/node'
import { IntermediatePacketCodec, MemoryStorage, type tl } from '@mtcute/core'
import { BaseTelegramClient } from '@mtcute/core/client.js'
import Long from 'long'
import { Crypto } from '../../src/platform/mtcute-crypto.ts'

const apiKey = { apiId: 1, apiHash: '0'.repeat(32) }
/** A call whose answer was lost may wait for ever. */
const answerMsMax = 15_000

export interface PhoneMessage {
  readonly text: string
  readonly out: boolean
}

export class Phone {
  readonly #client: BaseTelegramClient
  /** By chat, then by message. */
  readonly chats = new Map<number, Map<number, PhoneMessage>>()
  /** By chat: the last message that this account has read, and the last that the person has. */
  readonly #readUpTo = new Map<number, number>()
  readonly #readByThem = new Map<number, number>()
  readonly #peers = new Map<number, tl.TypeInputPeer>()
  #pts = 0
  #turn: Promise<unknown> = Promise.resolve()

  constructor(port: number) {
    const main = { id: 2, ipAddress: '127.0.0.1', port, ipv6: false, mediaOnly: false, testMode: false }
    this.#client = new BaseTelegramClient({
      ...apiKey,
      crypto: new Crypto(),
      platform: {
        beforeExit: () => () => {},
        log: () => {},
        getDefaultLogLevel: () => null,
        getDeviceModel: () => 'Phone',
      },
      transport: {
        packetCodec: () => new IntermediatePacketCodec(),
        connect: ({ ipAddress, port: each }) => connectTcp({ address: ipAddress, port: each }),
      },
      storage: new MemoryStorage(),
      storageOptions: { cleanup: false },
      defaultDcs: { main, media: main },
      logLevel: 0,
      updates: false,
      network: { middlewares: [] },
    })
    this.#client.onError.add(() => {})
    this.#client.onServerUpdate.add((container) => void this.#inTurn(() => this.#take(container)))
  }

  /** Another device of the number's account. */
  async logIn(phoneNumber: string): Promise<void> {
    const settings = { _: 'codeSettings' } as const
    const sent = await this.#call({ _: 'auth.sendCode', phoneNumber, ...apiKey, settings })
    if (sent._ !== 'auth.sentCode') throw new Error(`auth.sendCode answered ${sent._}.`)
    const { phoneCodeHash } = sent
    await this.#call({ _: 'auth.signIn', phoneNumber, phoneCodeHash, phoneCode: '12345' })
    this.#pts = 1
    await this.sync()
  }

  /** Everything that has happened by now. */
  sync(): Promise<void> {
    return this.#inTurn(() => this.#differ())
  }

  /** The messages of a chat that the account has not read. */
  unreadOf(chat_id: number): number {
    const upTo = this.#readUpTo.get(chat_id) ?? 0
    return [...(this.chats.get(chat_id) ?? [])].filter(([id, { out }]) => !out && id > upTo).length
  }

  readByThem(chat_id: number): number {
    return this.#readByThem.get(chat_id) ?? 0
  }

  async send(chat_id: number, message: string, random: number): Promise<void> {
    const randomId = Long.fromNumber(random)
    const peer = this.#peerOf(chat_id)
    const answer = await this.#call({ _: 'messages.sendMessage', peer, message, randomId })
    if (answer._ !== 'updateShortSentMessage') throw new Error(`It answered ${answer._}.`)
    const { id, pts, ptsCount } = answer
    // The short answer stands for a message: it has its place in the order.
    await this.#inTurn(() =>
      this.#place({ pts, ptsCount }, () => this.#keep(chat_id, id, { text: message, out: true })),
    )
  }

  async edit(chat_id: number, id: number, message: string): Promise<void> {
    const peer = this.#peerOf(chat_id)
    const answer = await this.#call({ _: 'messages.editMessage', peer, id, message })
    await this.#inTurn(() => this.#take(answer))
  }

  async remove(id: number): Promise<void> {
    const order = await this.#call({ _: 'messages.deleteMessages', revoke: true, id: [id] })
    await this.#inTurn(() => this.#place(order, () => this.#forget([id])))
  }

  /** As far as the message: later ones may be on their way. */
  async read(chat_id: number, maxId: number): Promise<void> {
    const order = await this.#call({ _: 'messages.readHistory', peer: this.#peerOf(chat_id), maxId })
    await this.#inTurn(() => this.#place(order, () => raise(this.#readUpTo, chat_id, maxId)))
  }

  async close(): Promise<void> {
    await this.#client.destroy()
  }

  async #call<T extends tl.RpcMethod>(request: T): Promise<tl.RpcCallReturn[T['_']]> {
    const over = new AbortController()
    const late = sleep(answerMsMax, undefined, { signal: over.signal, ref: false })
    const answer = this.#client.call<T>(request as never)
    answer.catch(() => {})
    try {
      return await Promise.race([
        answer,
        late.then(() => {
          throw new Error(`${request._} got no answer.`)
        }),
      ])
    } finally {
      over.abort()
      late.catch(() => {})
    }
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(act)
    this.#turn = done.catch(() => {})
    return done
  }

  async #differ(): Promise<void> {
    for (;;) {
      const found = await this.#call({ _: 'updates.getDifference', pts: this.#pts, date: 1, qts: 0 })
      if (found._ === 'updates.differenceEmpty') return
      if (found._ === 'updates.differenceTooLong') throw new Error('The difference is too long.')
      this.#learn(found)
      for (const message of found.newMessages) this.#keepMessage(message)
      for (const update of found.otherUpdates) this.#apply(update)
      const isWhole = found._ === 'updates.difference'
      this.#pts = (isWhole ? found.state : found.intermediateState).pts
      if (isWhole) return
    }
  }

  async #take(container: tl.TypeUpdates): Promise<void> {
    if (container._ !== 'updates') return this.#differ()
    this.#learn(container)
    for (const update of container.updates) {
      const order = 'pts' in update && 'ptsCount' in update ? update : undefined
      if (order) await this.#place(order as Order, () => this.#apply(update))
      else this.#apply(update)
    }
  }

  /** What is known already is skipped, and a hole is asked for. */
  async #place({ pts, ptsCount }: Order, apply: () => void): Promise<void> {
    if (pts <= this.#pts) return
    if (pts - ptsCount !== this.#pts) return this.#differ()
    apply()
    this.#pts = pts
  }

  #learn({ users, chats }: { users: tl.TypeUser[]; chats: tl.TypeChat[] }): void {
    for (const user of users) {
      if (user._ !== 'user' || !user.accessHash) continue
      this.#peers.set(user.id, { _: 'inputPeerUser', userId: user.id, accessHash: user.accessHash })
    }
    for (const { id } of chats) this.#peers.set(-id, { _: 'inputPeerChat', chatId: id })
  }

  #apply(update: tl.TypeUpdate): void {
    switch (update._) {
      case 'updateNewMessage':
      case 'updateEditMessage':
        this.#keepMessage(update.message)
        break
      case 'updateDeleteMessages':
        this.#forget(update.messages)
        break
      case 'updateReadHistoryInbox':
        raise(this.#readUpTo, numberOf(update.peer), update.maxId)
        break
      case 'updateReadHistoryOutbox':
        raise(this.#readByThem, numberOf(update.peer), update.maxId)
    }
  }

  #keepMessage(message: tl.TypeMessage): void {
    if (message._ !== 'message') return
    const { id, out = false, message: text } = message
    this.#keep(numberOf(message.peerId), id, { text, out })
  }

  #keep(chat_id: number, id: number, message: PhoneMessage): void {
    const messages = this.chats.get(chat_id) ?? new Map<number, PhoneMessage>()
    this.chats.set(chat_id, messages.set(id, message))
  }

  #forget(ids: readonly number[]): void {
    for (const messages of this.chats.values()) for (const id of ids) messages.delete(id)
  }

  #peerOf(chat_id: number): tl.TypeInputPeer {
    const peer = this.#peers.get(chat_id)
    if (!peer) throw new Error(`The phone does not know ${chat_id}.`)
    return peer
  }
}

interface Order {
  readonly pts: number
  readonly ptsCount: number
}

function numberOf(peer: tl.TypePeer): number {
  if (peer._ === 'peerUser') return peer.userId
  return peer._ === 'peerChat' ? -peer.chatId : 0
}

function raise(marks: Map<number, number>, chat_id: number, id: number): void {
  marks.set(chat_id, Math.max(id, marks.get(chat_id) ?? 0))
}
