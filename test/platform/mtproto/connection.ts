/**
 * One connection of a client: frames, encryption, service messages, requests and their answers. A violation of the
 * protocol ends this connection and no other.
 */
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import type { mtp, tl } from '@mtcute/core'
import { type ICryptoProvider, TlBinaryWriter } from '@mtcute/core/utils.js'
import Long from 'long'
import { decrypt, encrypt } from './encryption.ts'
import { hostileCases, type Wire } from './hostile.ts'
import type { Hostility } from './hostility.ts'
import { KeyExchange } from './key-exchange.ts'
import type { ServerClock } from './server-clock.ts'
import type { ServerKey } from './server-key.ts'
import type { AuthKeyEntry } from './store.ts'
import { type Message, read, unpack, write, writeAnswer, writeSalt } from './tl.ts'
import { Transport } from './transport.ts'
import type { Refusal, Turns } from './turns.ts'

/** An answer that is an error. */
export class RpcFault extends Error {
  readonly code: number

  constructor(code: number, name: string) {
    super(name)
    this.code = code
  }
}

/** Throws the error `NAME`, whose code is 400, or `CODE NAME`. */
export function refuse(error: string): never {
  const [, code, name] = /^(?:(-?\d+) )?(.*)$/.exec(error) ?? []
  throw new RpcFault(Number(code ?? 400), name ?? '')
}

/** One request of a client. */
export interface Call {
  readonly connection: Connection
  /** Makes the data centre report that it never received the request: the client sends it again. */
  forget(): void
}

type RequestOf<M extends tl.RpcMethod['_']> = Extract<tl.RpcMethod, { _: M }>

export type Handlers = {
  readonly [M in tl.RpcMethod['_']]?: (
    request: RequestOf<M>,
    call: Call,
  ) => tl.RpcCallReturn[M] | Promise<tl.RpcCallReturn[M]>
}

/** What all connections share. */
export interface Centre {
  readonly crypto: ICryptoProvider
  readonly serverKey: ServerKey
  readonly clock: ServerClock
  readonly handlers: Handlers
  findKey(key_id: string): AuthKeyEntry | undefined
  keepKey(entry: AuthKeyEntry): void
  saltOf(key_id: string): Long
  setSalt(key_id: string, salt: Long): void
  readonly hostilities: Turns<Hostility>
  /** Answers that are an error, in place of what their method does. */
  readonly refusals: Turns<Refusal>
}

/** The request that a packet answers. */
interface Cause {
  readonly on: string
  readonly id: Long | null
}

interface Session {
  /** Whether the client got `new_session_created`. */
  isCreated: boolean
  readonly id: Long
  readonly key_id: string
  readonly key: Uint8Array
  /** By message id: 4 is received, 68 answered, as in `msgs_state_info`. */
  readonly received: Map<string, number>
  sent: number
}

/** Requests that wait for an answer at the same time. */
const callsMax = 1000
/** How many messages a client can ask about in one state request. */
const receivedMax = 10_000
/** A client that does not read loses its connection when this many bytes wait for it. */
const unreadBytesMax = 32 * 1024 * 1024
/** A connection that has sent no encrypted message by then is closed. */
const greetingMsMax = 30_000
const stateUnknown = 1
const stateReceived = 4
const stateAnswered = 4 | 64

export class Connection {
  readonly dc: number
  /** The name, version, system and languages under which the client shows in the account's list of devices. */
  device: string | undefined
  readonly #centre: Centre
  readonly #socket: Socket
  readonly #exchange: KeyExchange
  readonly #transport = new Transport()
  readonly #greetingTimer: NodeJS.Timeout
  #session: Session | undefined
  #calls = 0
  #lastId = Long.UZERO
  #isSilent = false
  #always: ((request_id: Long | null) => Uint8Array) | undefined

  constructor(centre: Centre, socket: Socket, dc: number) {
    this.#centre = centre
    this.#socket = socket
    this.dc = dc
    this.#exchange = new KeyExchange(centre, ({ key, salt }) => {
      const key_id = Buffer.from(centre.crypto.sha1(key).subarray(-8)).toString('hex')
      centre.setSalt(key_id, salt)
      centre.keepKey({
        entry: 'auth_key',
        key_id,
        key: Buffer.from(key).toString('base64'),
        dc,
        account_id: null,
      })
    })
    this.#greetingTimer = setTimeout(() => this.end(), greetingMsMax)
    socket.setNoDelay(true)
    socket.on('error', () => this.end())
    socket.on('close', () => clearTimeout(this.#greetingTimer))
    socket.on('data', (bytes) => {
      try {
        if (!this.#isSilent) this.#take(bytes)
      } catch {
        this.end()
      }
    })
    const hostility = centre.hostilities.take('accept', undefined)
    if (hostility) hostileCases[hostility.case](this.#wire(new Uint8Array(64), null))
  }

  get account_id(): string | undefined {
    return (this.#session && this.#centre.findKey(this.#session.key_id)?.account_id) ?? undefined
  }

  /** Runs a case of `hostile.ts` now, while the client waits for no answer. */
  suffer(act: (wire: Wire) => void): void {
    act(this.#wire(this.#seal(writeSalt(Long.ONE, Long.ONE, 0), {}, true), null))
  }

  #wire(due: Uint8Array, request_id: Long | null): Wire {
    const socket = this.#socket
    return {
      due,
      request_id,
      raw: (...bytes) => void (socket.writable && socket.write(Buffer.concat(bytes))),
      frame: (packet) => void this.#frame(packet),
      seal: (body, as) => this.#seal(body, as, true),
      silence: () => {
        this.#isSilent = true
      },
      always: (packet) => {
        this.#always = packet
        void this.#frame(packet(request_id))
      },
      finish: () => socket.end(),
      reset: () => socket.resetAndDestroy(),
    }
  }

  /** The client's key, with its current account. Throws before the first encrypted message. */
  get key(): AuthKeyEntry {
    const key = this.#session && this.#centre.findKey(this.#session.key_id)
    if (!key) throw new RpcFault(401, 'AUTH_KEY_UNREGISTERED')
    return key
  }

  end(): void {
    this.#socket.destroy()
  }

  onEnd(ended: () => void): void {
    if (this.#socket.destroyed) ended()
    else this.#socket.once('close', ended)
  }

  /** Resolves when the operating system has the bytes, or the connection is over. */
  push(updates: tl.TypeUpdates): Promise<void> {
    return this.#session ? this.#send(this.#session, write(updates), false) : Promise.resolve()
  }

  #take(bytes: Buffer): void {
    this.#transport.push(bytes)
    while (!this.#socket.destroyed) {
      const frame = this.#transport.next()
      if (!frame) return
      this.#packet(frame)
    }
  }

  #packet(packet: Uint8Array): void {
    const key_id = Buffer.from(packet.subarray(0, 8)).toString('hex')
    if (key_id === '0000000000000000') {
      const message = read(packet, 20)
      const answer = write(this.#exchange.answer(message))
      const writer = TlBinaryWriter.manual(20 + answer.length)
      writer.long(Long.ZERO)
      writer.long(this.#nextId(true))
      writer.uint(answer.length)
      writer.raw(answer)
      void this.#write(writer.result(), { on: message._, id: null })
      return
    }
    const known = this.#centre.findKey(key_id)
    // Only its own data centre knows a key. The transport error 404 is four bytes; then the connection ends.
    if (known?.dc !== this.dc) {
      this.#socket.end(this.#transport.frame(new Uint8Array(Int32Array.of(-404).buffer)))
      return
    }
    this.#encrypted(key_id, Buffer.from(known.key, 'base64'), packet)
  }

  #encrypted(key_id: string, key: Uint8Array, packet: Uint8Array): void {
    const { salt, session_id, id, seq, body } = decrypt(this.#centre.crypto, key, packet)
    clearTimeout(this.#greetingTimer)
    const messages = unpack({ id, body })
    const session = this.#sessionOf(session_id, key_id, key)
    const newServerSalt = this.#centre.saltOf(key_id)
    const bad = { badMsgId: id, badMsgSeqno: seq }
    const errorCode = faultOf(id, this.#centre.clock.seconds())
    if (errorCode !== undefined) {
      void this.#send(session, write({ _: 'mt_bad_msg_notification', ...bad, errorCode }), true)
      return
    }
    if (salt.neq(newServerSalt)) {
      void this.#send(session, write({ _: 'mt_bad_server_salt', ...bad, errorCode: 48, newServerSalt }), true)
      return
    }
    if (!session.isCreated) {
      session.isCreated = true
      const firstMsgId = messages.reduce((least, each) => (each.id.lt(least) ? each.id : least), id)
      const created = {
        firstMsgId,
        uniqueId: Long.fromBytesLE([...randomBytes(8)]),
        serverSalt: newServerSalt,
      }
      void this.#send(session, write({ _: 'mt_new_session_created', ...created }), false)
    }
    for (const message of messages) this.#message(session, message)
  }

  #sessionOf(id: Long, key_id: string, key: Uint8Array): Session {
    const known = this.#session
    if (known?.key_id === key_id && known.id.eq(id)) return known
    this.#session = { id, key_id, key, received: new Map(), sent: 0, isCreated: false }
    return this.#session
  }

  #message(session: Session, { id, body }: Message): void {
    const object = read(body)
    if (object._.startsWith('mt_')) this.#serviceMessage(session, id, object as mtp.TlObject)
    else this.#request(session, id, this.#unwrap(object as tl.RpcMethod))
  }

  #unwrap(request: tl.RpcMethod): tl.RpcMethod {
    switch (request._) {
      case 'initConnection':
        this.device =
          `${request.deviceModel} ${request.appVersion}, ${request.systemVersion}, ` +
          `${request.systemLangCode} ${request.langCode}`
        return this.#unwrap(request.query as tl.RpcMethod)
      case 'invokeWithLayer':
      case 'invokeAfterMsg':
      case 'invokeWithoutUpdates':
        return this.#unwrap(request.query as tl.RpcMethod)
      default:
        return request
    }
  }

  #serviceMessage(session: Session, id: Long, message: mtp.TlObject): void {
    const answer = this.#answerOf(session, id, message)
    if (answer) void this.#send(session, answer, true)
  }

  #answerOf(session: Session, id: Long, message: mtp.TlObject): Uint8Array | undefined {
    switch (message._) {
      case 'mt_ping':
      case 'mt_ping_delay_disconnect':
        return write({ _: 'mt_pong', msgId: id, pingId: message.pingId })
      case 'mt_get_future_salts':
        return writeSalt(id, this.#centre.saltOf(session.key_id), this.#centre.clock.seconds())
      case 'mt_msgs_state_req': {
        const states = message.msgIds.map((each) => session.received.get(each.toUnsigned().toString()))
        const info = Uint8Array.from(states.map((state) => state ?? stateUnknown))
        return write({ _: 'mt_msgs_state_info', reqMsgId: id, info })
      }
      case 'mt_rpc_drop_answer':
        return writeAnswer(id, { _: 'mt_rpc_answer_unknown' })
      case 'mt_destroy_session':
        return write({ _: 'mt_destroy_session_ok', sessionId: message.sessionId })
      default:
        return undefined
    }
  }

  #request(session: Session, id: Long, request: tl.RpcMethod): void {
    const number = id.toString()
    if (session.received.has(number)) return // guard: a message id is processed once
    session.received.set(number, stateReceived)
    const [oldest] = session.received.keys()
    if (session.received.size > receivedMax && oldest) session.received.delete(oldest)
    if (++this.#calls > callsMax) throw new Error('Too many requests are waiting.')
    const answer = (value: unknown) => {
      this.#calls--
      if (session.received.has(number)) session.received.set(number, stateAnswered)
      return this.#send(session, writeAnswer(id, value), true, { on: request._, id })
    }
    const call: Call = { connection: this, forget: () => session.received.delete(number) }
    this.#handle(request, call)
      .then(answer)
      .catch((error: unknown) => {
        const { code, message } = error instanceof RpcFault ? error : new RpcFault(500, 'INTERNAL')
        return answer({ _: 'mt_rpc_error', errorCode: code, errorMessage: message })
      })
      .catch(() => this.end())
  }

  async #handle(request: tl.RpcMethod, call: Call): Promise<unknown> {
    const { error } = this.#centre.refusals.take(request._, this.account_id) ?? {}
    if (error !== undefined) refuse(error)
    const handler = this.#centre.handlers[request._] as
      | ((request: tl.RpcMethod, call: Call) => unknown)
      | undefined
    if (!handler) throw new RpcFault(400, 'METHOD_INVALID')
    return handler(request, call)
  }

  #send(session: Session, body: Uint8Array, isAnswer: boolean, cause?: Cause): Promise<void> {
    return this.#write(this.#seal(body, session, isAnswer), cause)
  }

  /** Before the client's first encrypted message there is no session: then a random key encrypts it. */
  #seal(body: Uint8Array, as: Partial<Pick<Session, 'id' | 'key'>> = {}, isAnswer: boolean): Uint8Array {
    const session = this.#session
    const key_id = session?.key_id ?? randomBytes(8).toString('hex')
    const { key, id: session_id } = {
      ...{ key: session?.key ?? randomBytes(256), id: session?.id ?? Long.ONE },
      ...as,
    }
    const salt = this.#centre.saltOf(key_id)
    const [id, seq] = [this.#nextId(isAnswer), (session ? session.sent++ : 0) * 2 + 1]
    return encrypt(this.#centre.crypto, { key, key_id, salt, session_id, id, seq, body })
  }

  #write(packet: Uint8Array, cause?: Cause): Promise<void> {
    if (this.#isSilent) return Promise.resolve()
    const hostility = cause && this.#centre.hostilities.take(cause.on, this.account_id)
    if (!hostility) return this.#frame(this.#always ? this.#always(cause?.id ?? null) : packet)
    hostileCases[hostility.case](this.#wire(packet, cause.id))
    return Promise.resolve()
  }

  #frame(packet: Uint8Array): Promise<void> {
    if (this.#socket.writableLength > unreadBytesMax) this.end()
    if (!this.#socket.writable) return Promise.resolve()
    return new Promise((done) => {
      this.#socket.write(this.#transport.frame(packet), () => done())
    })
  }

  /** Ids grow with time; the last two bits say whether the message is an answer. */
  #nextId(isAnswer: boolean): Long {
    const kind = isAnswer ? 1 : 3
    const now = this.#centre.clock.now()
    const least = this.#lastId.shiftRightUnsigned(2).add(1).shiftLeft(2).or(kind)
    const id = new Long(((now % 1000) << 21) | kind, Math.floor(now / 1000), true)
    this.#lastId = id.lt(least) ? least : id
    return this.#lastId
  }
}

/**
 * What is wrong with a message id (https://core.telegram.org/mtproto/service_messages_about_messages): 16 is more than 300 s
 * behind the server's clock, 17 more than 30 s ahead, 18 not divisible by four.
 */
function faultOf(id: Long, now: number): number | undefined {
  const seconds = id.getHighBitsUnsigned()
  if (seconds < now - 300) return 16 // guard: a message id of the past
  if (seconds > now + 30) return 17 // guard: a message id of the future
  return (id.getLowBitsUnsigned() & 3) === 0 ? undefined : 18
}
