/**
 * The platform's side of one session: answers calls, delivers updates, and misbehaves if a fault says so. A fault affects a
 * connection (slow, frozen, silent) in real time, and the world (late updates) by the world's clock.
 */
import type { FloodScope, Outcome, Person, PlatformRefusal, UpdateBatch } from '../port.ts'
import {
  accepted,
  askPerson,
  listChats,
  listContacts,
  openChat,
  readFilePart,
  readHistory,
  refused,
  resolve,
  send,
  setReadState,
} from './account-acts.ts'
import type { Hello, Method, Params, Result } from './calls.ts'
import { type Fault, type FaultTarget, findRefusal } from './faults.ts'
import type { Account } from './state.ts'
import { Uploads } from './uploads.ts'
import { viewPerson, viewUpdate } from './view.ts'
import type { World } from './world.ts'

/** Called with the fault that affects a call, for a protocol that does more with it than return the outcome. */
type Struck = (fault: Fault) => void

/** The client's end, as the session sees it. */
export interface Peer {
  /** Resolves when the client has taken the batch, or is gone. */
  updates(batch: UpdateBatch): Promise<void>
  /** Ends the session. Without a reason the connection just breaks. */
  cut(reason: string | null): void
}

const batchMax = 100

/** The permanent refusal for each call. */
const refusalOn: Record<Exclude<FaultTarget, 'updates'>, PlatformRefusal> = {
  connect: 'needs_login',
  login: 'needs_login',
  start: 'identity_ineligible',
  resolve: 'username_not_found',
  ask: 'username_not_found',
  send: 'chat_unavailable',
  read_state: 'chat_unavailable',
  history: 'chat_unavailable',
  chats: 'restricted',
  download: 'file_unavailable',
  export: 'restricted',
}

/** What a flood wait on each call stops. */
const floodOn: Record<Exclude<FaultTarget, 'updates'>, FloodScope> = {
  connect: 'reading',
  login: 'reading',
  start: 'lookups',
  resolve: 'lookups',
  ask: 'reading',
  send: 'sends',
  read_state: 'reading',
  history: 'reading',
  chats: 'reading',
  download: 'reading',
  export: 'reading',
}

const targetOf: Partial<Record<Method, Exclude<FaultTarget, 'updates'>>> = {
  open_chat: 'start',
  send: 'send',
  read_state: 'read_state',
  history: 'history',
  resolve: 'resolve',
  ask_person: 'ask',
  chats: 'chats',
  file_part: 'download',
}

const unavailable = { kind: 'unknown', reason: 'The platform is unavailable.' } as const

/** A new promise each time: awaiting a shared one would keep every waiter in memory. */
function silence(): Promise<never> {
  return new Promise(() => {})
}

/** Null, or a position that this world has not reached because its data was deleted, means from now on. */
function positionOf(account: Account, position: string | null): { start: number; isGap: boolean } {
  const given = position === null ? Number.NaN : Number(position)
  const end = account.stream.length
  const isKnown = Number.isSafeInteger(given) && given >= 0 && given <= end
  return { start: isKnown ? given : end, isGap: position !== null && !isKnown }
}

function refusalBy(fault: Fault, target: Exclude<FaultTarget, 'updates'>): Outcome<never> | null {
  switch (fault.fault) {
    case 'refuse':
      return refused(findRefusal(fault) ?? refusalOn[target])
    case 'flood_wait':
      return { kind: 'flood_wait', retry_after_seconds: fault.seconds, stops: floodOn[target] }
    case 'unavailable':
      return unavailable
    default:
      return null
  }
}

function sleep(seconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, seconds * 1000).unref()
  })
}

export class ServedSession {
  readonly uploads = new Uploads()
  readonly #world: World
  readonly #peer: Peer
  readonly #device: string
  #session: { readonly account: Account; readonly handlers: Handlers; readonly release: () => void } | null =
    null
  #open = true
  #thawed: Promise<void> = Promise.resolve()
  #wake: () => void = () => {}

  constructor(world: World, peer: Peer, device = '') {
    this.#world = world
    this.#peer = peer
    this.#device = device
  }

  /** Opens the session. Like every answer of the platform, this one may never arrive. */
  async connect(greeting: Hello, struck?: Struck): Promise<Outcome<Person>> {
    const fault = this.#world.takeFault({ on: 'connect', account_id: greeting.account_id })
    if (fault) struck?.(fault)
    const no = fault && refusalBy(fault, 'connect')
    if (no) return no.kind === 'unknown' ? { ...no, kind: 'not_written' } : no
    if (fault?.fault === 'timeout_before') return silence()
    if (fault?.fault === 'slow') await sleep(fault.seconds)
    await this.#listening()
    const account = this.#world.addAccount(greeting)
    const occupant = { wake: () => this.#wake(), evict: (reason: string) => this.end(reason) }
    const release = this.#world.occupy(account.account_id, occupant, this.#device)
    this.#session = { account, handlers: handlersOf(this.#world, account, this.uploads), release }
    const beginning = positionOf(account, greeting.position)
    if (fault?.fault === 'freeze') this.#freeze(fault.seconds)
    if (fault?.fault === 'drop_after') this.end(null)
    if (fault?.fault === 'timeout_after') return silence()
    await this.#listening()
    this.#pump(account, beginning).catch(() => this.end('The platform failed.'))
    return accepted(viewPerson(this.#world.state, account, account.person_id))
  }

  /** Answers a call, or never does. */
  async answer<M extends Method>(method: M, params: Params<M>, struck?: Struck): Promise<Outcome<Result<M>>> {
    await this.#listening()
    const session = this.#session
    if (!session) return silence()
    const target = targetOf[method]
    const fault = target && this.#world.takeFault({ on: target, account_id: session.account.account_id })
    if (!target || !fault) return this.#perform(session.handlers[method], params)
    struck?.(fault)
    const no = refusalBy(fault, target)
    if (no) return no
    if (fault.fault === 'timeout_before') return silence()
    if (fault.fault === 'slow') await sleep(fault.seconds)
    if (fault.fault === 'freeze') this.#freeze(fault.seconds)
    await this.#listening()
    if (fault.fault === 'drop_after') {
      // Cut the connection immediately, so that not even an update can tell this session that the call was done.
      session.handlers[method](params)
      this.end(null)
      return silence()
    }
    const outcome = await this.#perform(session.handlers[method], params)
    return fault.fault === 'timeout_after' || fault.fault === 'resend' ? silence() : outcome
  }

  async #perform<M extends Method>(handler: Handler<M>, params: Params<M>): Promise<Outcome<Result<M>>> {
    let outcome: Outcome<Result<M>>
    try {
      outcome = handler(params)
      await this.#world.durable()
    } catch {
      // The log failed, so what is on the disk is unknown.
      return unavailable
    }
    await this.#listening()
    return outcome
  }

  /** Resolves when the connection is not frozen, and never once it is closed. */
  async #listening(): Promise<void> {
    await this.#thawed
    if (!this.#open) await silence()
  }

  /** Keeps the connection open but silent in both directions. Calls made meanwhile run afterwards, if it is still open. */
  #freeze(seconds: number): void {
    this.#thawed = Promise.all([this.#thawed, sleep(seconds)]).then(() => {})
  }

  end(reason: string | null): void {
    if (!this.#open) return
    this.#open = false
    this.#session?.release()
    this.#wake()
    this.#peer.cut(reason)
  }

  async #pump(account: Account, { start, isGap }: ReturnType<typeof positionOf>): Promise<void> {
    const { account_id } = account
    let position = start
    const isAtEnd = () => this.#world.streamAfter(account_id, position, 1).length === 0
    // Says where the stream begins, so that a crash before the first update loses nothing, and whether more follows.
    const gap = { kind: 'gap', chat_id: null } as const
    await this.#peer.updates({
      updates: isGap ? [gap] : [],
      position: String(start),
      caught_up: isAtEnd(),
    })
    while (this.#open) {
      const happenings = this.#world.streamAfter(account_id, position, batchMax)
      if (happenings.length === 0) {
        await new Promise<void>((woken) => {
          this.#wake = woken
        })
        continue
      }
      const fault = this.#world.takeFault({ on: 'updates', account_id })
      if (fault?.fault === 'freeze') this.#freeze(fault.seconds)
      if (fault?.fault === 'slow') await sleep(fault.seconds)
      await this.#world.durable()
      await this.#listening()
      position += happenings.length
      const updates = happenings
        .filter((each) => each.kind !== 'edited' || !each.hidden)
        .map((each) => viewUpdate(this.#world.state, account, each))
      await this.#peer.updates({ updates, position: String(position), caught_up: isAtEnd() })
      if (fault?.fault === 'drop_after') this.end(null)
    }
  }
}

type Handler<M extends Method> = (params: Params<M>) => Outcome<Result<M>>
type Handlers = { readonly [M in Method]: Handler<M> }

function handlersOf(world: World, account: Account, uploads: Uploads): Handlers {
  return {
    ping: () => accepted(null),
    resolve: (identifier) => resolve(world, account, identifier),
    ask_person: (asked) => accepted(askPerson(world, account, asked)),
    open_chat: ({ person_id }) => openChat(world, account, person_id),
    upload_begin: (file) => accepted({ handle: uploads.begin(file) }),
    upload_chunk: ({ handle, data }) =>
      uploads.add(handle, data) ? accepted(null) : refused('message_invalid'),
    upload_end: ({ handle }) => {
      const file = uploads.finish(handle)
      return file ? accepted(file) : refused('message_invalid')
    },
    send: ({ handle, ...message }) => {
      const file = handle === null ? null : uploads.take(handle)
      return file === undefined ? refused('message_invalid') : send(world, account, { message, file })
    },
    history: (page) => readHistory(account, page),
    chats: (page) => listChats(world, account, page),
    contacts: () => listContacts(world, account),
    read_state: (state) => setReadState(world, account, state),
    file_part: (part) => readFilePart(account, part),
  }
}
