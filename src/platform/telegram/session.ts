/**
 * One open session of one account, as the port requires: a client, the stream of its updates, and the people it
 * knows.
 */
import type { tl } from '@mtcute/core'
import type { ChatNumber } from '../../lib/shapes.ts'
import type { Identifier } from '../../rules/identifier.ts'
import type {
  AccountRef,
  AskedPerson,
  Chat,
  ChatPage,
  Closed,
  Download,
  FilePlace,
  FloodScope,
  HistoryPage,
  Listener,
  Message,
  Outcome,
  Person,
  Sent,
  Session,
  Submission,
  Upload,
  UploadedFile,
} from '../port.ts'
import { Client, type ClientOptions, type Endpoint } from './client.ts'
import { type ConnectMemory, mayPass } from './connect-memory.ts'
import { ProxyFailed } from './dial.ts'
import { ConnectionRefused, findErrorText, outcomeOf, Refused, refusedSeconds } from './errors.ts'
import { Media } from './media.ts'
import { MediaKeys } from './media-keys.ts'
import type { MediaOwner } from './media-line.ts'
import { Peers, serviceUserId } from './peers.ts'
import {
  type Answered,
  askPerson,
  listChats,
  listContacts,
  type Reader,
  readHistory,
  resolve,
  setReadState,
} from './read.ts'
import { send } from './send.ts'
import { explainClock, type ServerClock } from './server-clock.ts'
import { openSessionStorage } from './storage.ts'
import type { Tally } from './tally.ts'
import { keyUnknown } from './transport.ts'
import { explainTrouble, findMisconfiguration, refusedBy, type Trouble } from './trouble.ts'
import { readPosition, writePosition } from './update-state.ts'
import { type TelegramBatch, UpdateStream, UpdatesMissed } from './updates.ts'
import { upload } from './upload.ts'
import { messagesIn, peopleIn, viewChat, viewUpdates } from './view.ts'

/** Only a person can correct a variable, and then restarts the worker. */
const misconfiguredSeconds = 600

const isOverReason = 'The session is over.'

export async function openSession(
  endpoint: Endpoint,
  account: AccountRef,
  {
    listener,
    tally,
    memory,
  }: { readonly listener: Listener; readonly tally: Tally; readonly memory: ConnectMemory },
): Promise<Outcome<TelegramSession>> {
  const blob = await account.store.readSession()
  const storage = blob && openSessionStorage(blob)
  if (!storage) return refusedBy('needs_login', 'no_session', account.account_id)
  const peers = await Peers.load(account.store)
  // Every connection of the account is made here, so that all have the same lease and the same proxy.
  const openClient: OpenClient = (options) =>
    new Client(endpoint, {
      held: () => account.held(),
      migrates: false,
      proxy: account.proxy,
      clock: memory.clock,
      ...options,
    })
  const keys = new MediaKeys(account.store, blob)
  const session = new TelegramSession(account, { listener, tally, memory, peers, keys, openClient })
  const client = openClient({
    storage,
    pushed: (container) => session.pushed(container),
    ended: (reason, cause) => {
      const isRefused = cause instanceof ConnectionRefused
      session.finish({ status: 'lost', reason, ...(isRefused && { retry_after_seconds: refusedSeconds }) })
    },
  })
  const { corrections } = memory.clock
  try {
    await session.open(client)
  } catch (error) {
    await session.close()
    // In a session that was open it only ends the connection: this frame is not encrypted, so the next connect decides.
    // guard: an unknown key needs a login
    if (session.endReason === keyUnknown) return memory.doubt('key_unknown', account)
    const outcome = outcomeOf(error, 'reading')
    // No call so far could have had an effect.
    if (outcome.kind === 'flood_wait') return outcome
    if (outcome.kind === 'refused' && mayPass(outcome.detail)) return memory.doubt(outcome.detail, account)
    if (outcome.kind === 'refused' && isTrouble(outcome.reason)) {
      return refusedBy(outcome.reason, outcome.detail ?? outcome.reason, account.account_id)
    }
    const isCorrected = memory.clock.corrections !== corrections // guard: a corrected clock keeps no account away
    return notConnected(error, isCorrected ? memory.clock : undefined)
  }
  memory.noteConnected()
  return { kind: 'accepted', value: session }
}

/** Nothing is wrong with the account. The worker retries. `corrected`: Telegram has corrected the time meanwhile. */
function notConnected(error: unknown, corrected: ServerClock | undefined): Outcome<never> {
  const kind = 'not_written'
  if (error instanceof ProxyFailed) return { kind, cause: 'proxy', reason: error.message }
  const misconfiguration = findMisconfiguration(findErrorText(error))
  if (misconfiguration)
    return {
      kind,
      cause: 'misconfigured',
      reason: misconfiguration,
      retry_after_seconds: misconfiguredSeconds,
    }
  if (error instanceof ConnectionRefused) {
    const reason = `Telegram refuses connections from this address for now. (${error.message})`
    return { kind, cause: 'refused', reason, retry_after_seconds: refusedSeconds } // guard: a refused connection says how long to wait
  }
  const wrongTime = corrected && explainClock(corrected.offsetSeconds)
  if (wrongTime) return { kind, cause: 'clock', reason: wrongTime } // guard: the account says that the clock is wrong
  return { kind, reason: 'Telegram could not be reached.' }
}

type OpenClient = (options: Omit<ClientOptions, 'held' | 'migrates' | 'proxy'>) => Client

export class TelegramSession implements Session, Reader {
  self: Person = { id: '0', name: '', username: null, phone: null, kind: 'self' }
  /** Why the session ended without `close`. */
  endReason: string | undefined
  readonly peers: Peers
  readonly #account_id: string
  readonly #listener: Listener
  readonly #stream: UpdateStream
  readonly #media: Media
  readonly #files = new Map<string, tl.TypeInputMedia>()
  /** The listener is called only after `connect` has returned the session. */
  readonly #handedOver = Promise.withResolvers<void>()
  #client: Client | undefined
  readonly #tally: Tally
  readonly #memory: ConnectMemory
  readonly #unwatch: () => void
  #isPremium = false
  #isOver = false

  constructor(
    { account_id, position }: AccountRef,
    {
      listener,
      tally,
      memory,
      peers,
      keys,
      openClient,
    }: {
      listener: Listener
      tally: Tally
      memory: ConnectMemory
      peers: Peers
      keys: MediaKeys
      openClient: OpenClient
    },
  ) {
    this.#tally = tally
    this.#memory = memory
    this.peers = peers
    this.#account_id = account_id
    this.#listener = listener
    this.#media = new Media(this.#mediaOwner(keys, openClient))
    this.#stream = new UpdateStream({
      state: position === null ? undefined : readPosition(position),
      call: (request) => this.call(request),
      take: (batch) => this.#take(batch),
      knows: (peer) => this.#knows(peer),
      failed: (error) => this.#finishBy(error),
      asksDifference: () => void tally.differences++,
    })
    this.#unwatch = tally.watch(this.#stream)
  }

  #mediaOwner(keys: MediaKeys, openClient: OpenClient): MediaOwner {
    return {
      keys,
      self_id: () => this.self.id,
      call: async (request) => {
        try {
          return await this.call(request)
        } catch (error) {
          this.#outcome(error, 'reading')
          throw error
        }
      },
      openClient: ({ storage, dc, ended }) => openClient({ storage, media: { dc }, pushed: () => {}, ended }),
    }
  }

  async open(client: Client): Promise<void> {
    this.#client = client
    await client.connect()
    const [user] = await this.call({ _: 'users.getUsers', id: [{ _: 'inputUserSelf' }] })
    if (user?._ !== 'user') throw new Error('Telegram does not say who the user of the session is.')
    await this.learn({ users: [user] })
    this.self = this.peers.with([user]).findPerson(`${user.id}`) ?? this.self
    this.#isPremium = user.premium ?? false
    await this.#stream.locate()
    setImmediate(() => {
      this.#handedOver.resolve()
      this.#stream.begin()
    })
  }

  pushed(container: tl.TypeUpdates): void {
    this.#stream.feed(container)
  }

  feed(container: tl.TypeUpdates): void {
    this.#stream.feed(container)
  }

  call<T extends tl.RpcMethod>(request: T, msMax?: number): Promise<tl.RpcCallReturn[T['_']]> {
    if (!this.#client) throw new Error('The session is not open.')
    return this.#client.call(request, msMax)
  }

  async learn({ users = [], chats = [] }: Answered, shown?: ReadonlySet<number>): Promise<void> {
    // Everybody who is known may have changed, also where they are not shown.
    const isKept = ({ id }: tl.TypeUser) => !shown || shown.has(id) || this.peers.has(`${id}`) // guard: strangers are not kept
    this.peers.learn({ users: users.filter(isKept), chats })
    try {
      await this.peers.save()
    } catch (error) {
      // They would be unreachable after the next start.
      this.finish({ status: 'lost', reason: 'The people of the account could not be stored.' })
      throw error
    }
  }

  /** Ends the session from inside: calls the listener once, and never after `close`. */
  finish(closed: Closed): void {
    if (this.#isOver) return
    this.endReason = closed.reason
    this.#stop()
    this.#client?.end(closed.reason)
    void this.#handedOver.promise.then(() => this.#listener.closed(closed))
  }

  async close(): Promise<void> {
    this.#stop()
    await this.#client?.close()
  }

  #stop(): void {
    // One that has ended by itself may be closed after the next one has begun.
    if (!this.#isOver) this.#memory.noteEnded() // guard: a session that ends settles the doubt before it
    this.#isOver = true
    this.#unwatch()
    this.#stream.end()
    this.#media.close()
  }

  async ping(): Promise<boolean> {
    try {
      this.#stream.compare(await this.call({ _: 'updates.getState' }))
      return true
    } catch (error) {
      // A flood wait is an answer too.
      return this.#outcome(error, 'reading').kind === 'flood_wait'
    }
  }

  resolve(identifier: Identifier): Promise<Outcome<Person>> {
    return this.#ask('lookups', () => resolve(this, identifier))
  }

  askPerson(person_id: string, identifier: Identifier): Promise<Outcome<AskedPerson | null>> {
    return this.#ask('reading', () => askPerson(this, person_id, identifier))
  }

  /** Makes no call: a chat begins with its first message. */
  openChat(person_id: string): Promise<Outcome<Chat>> {
    return this.#ask('lookups', async () => {
      const person = this.peers.findPerson(person_id as ChatNumber)
      if (!person) throw new Refused('chat_unavailable')
      if (person.kind !== 'person') throw new Refused('identity_ineligible')
      return viewChat(this, person_id as ChatNumber, null)
    })
  }

  async upload(file: Upload): Promise<Outcome<UploadedFile>> {
    if (this.#isOver) return { kind: 'not_written', reason: isOverReason }
    this.#tally.uploads++
    const outcome = await upload(file, { call: (request, msMax) => this.call(request, msMax) }).finally(
      () => {
        this.#tally.uploads--
      },
    )
    if (outcome.kind !== 'accepted') return outcome
    const handle = crypto.randomUUID()
    this.#files.set(handle, outcome.value)
    const { file_name, media_type, size } = file
    return { kind: 'accepted', value: { file_name, media_type, size, handle } }
  }

  async send(message: Submission): Promise<Outcome<Sent>> {
    if (this.#isOver) return { kind: 'not_written', reason: isOverReason }
    const peer = this.peers.findInput(message.chat_id)
    if (!peer) return { kind: 'refused', reason: 'chat_unavailable' }
    const file = message.file && this.#files.get(message.file.handle)
    // guard: no text goes out without its file
    if (message.file && !file) return { kind: 'refused', reason: 'message_invalid' }
    if (message.file) this.#files.delete(message.file.handle)
    const outcome = await send(message, {
      peer,
      file: file ?? null,
      isPremium: this.#isPremium,
      call: (request, msMax) => this.call(request, msMax),
      feed: (container) => this.feed(container),
    })
    return this.#endOnTrouble(outcome)
  }

  history(page: HistoryPage): Promise<Outcome<readonly Message[]>> {
    return this.#ask('reading', () => readHistory(this, page))
  }

  chats(page: { readonly after: string | null; readonly limit: number }): Promise<Outcome<ChatPage>> {
    return this.#ask('reading', () => listChats(this, page))
  }

  contacts(): Promise<Outcome<readonly Person[]>> {
    return this.#ask('reading', () => listContacts(this))
  }

  setReadState(chat_id: ChatNumber, unread: boolean): Promise<Outcome<{ readonly unread_count: number }>> {
    return this.#ask('reading', () => setReadState(this, chat_id, unread))
  }

  async download(file: FilePlace): Promise<Outcome<Download>> {
    if (this.#isOver) return { kind: 'not_written', reason: isOverReason }
    return this.#media.download(file)
  }

  async #ask<T>(stops: FloodScope, work: () => Promise<T>): Promise<Outcome<T>> {
    if (this.#isOver) return { kind: 'not_written', reason: isOverReason }
    try {
      return { kind: 'accepted', value: await work() }
    } catch (error) {
      return this.#outcome(error, stops)
    }
  }

  #outcome(error: unknown, stops: FloodScope): Outcome<never> {
    return this.#endOnTrouble(outcomeOf(error, stops))
  }

  /** A login that Telegram does not know may be known again: the next connect asks, and the call may be repeated. */
  #endOnTrouble<T>(outcome: Outcome<T>): Outcome<T> {
    if (outcome.kind !== 'refused' || !isTrouble(outcome.reason)) return outcome
    const { reason, detail } = outcome
    const doubt = mayPass(detail) ? this.#memory.doubt(detail, { account_id: this.#account_id }) : undefined // guard: a 401 in a session may pass
    if (doubt?.kind !== 'not_written') {
      this.#finishIn(reason, detail ?? reason)
      return outcome
    }
    const { retry_after_seconds = 0 } = doubt
    this.finish({ status: 'lost', reason: doubt.reason, retry_after_seconds })
    return { kind: 'not_written', reason: doubt.reason }
  }

  #finishIn(trouble: Trouble, name: string): void {
    this.finish({ status: trouble, reason: explainTrouble(trouble, name, this.#account_id) })
  }

  /** The stream of updates has ended. Of several reasons, the session ends for the first. */
  #finishBy(error: unknown): void {
    if (error instanceof UpdatesMissed) this.#finishIn('restricted', 'updates_missed')
    this.#endOnTrouble(outcomeOf(error, 'reading'))
    const name = findErrorText(error)
    this.finish({
      status: 'lost',
      reason: name ? `Updates: ${name}.` : 'The updates could not be processed.',
    })
  }

  #knows(peer: tl.TypePeer): boolean {
    if (peer._ === 'peerChannel' || (peer._ === 'peerUser' && peer.userId === serviceUserId)) return true
    return this.peers.has(peer._ === 'peerUser' ? `${peer.userId}` : `${-peer.chatId}`)
  }

  async #take({ updates, users, chats, state, caught_up, gap }: TelegramBatch): Promise<void> {
    await this.#handedOver.promise
    for (const update of updates) if (update._ === 'updateUserName') this.peers.rename(update)
    await this.learn({ users, chats }, peopleIn(messagesIn(updates), this.self.id))
    if (this.#isOver) return
    await this.#listener.updates({
      updates: [
        ...(gap ? [{ kind: 'gap', chat_id: null } as const] : []),
        ...viewUpdates({ self: this.self, peers: this.peers.with(users) }, updates, state.date),
      ],
      position: writePosition(state),
      caught_up,
      // The stream reports a gap only where sends can no longer be proven.
      ...(gap && { restricts: explainTrouble('restricted', 'updates_missed', this.#account_id) }),
    })
  }
}

function isTrouble(reason: string): reason is Trouble {
  return reason === 'needs_login' || reason === 'restricted'
}
