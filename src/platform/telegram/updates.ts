/**
 * The stream of updates of one session: in order, without holes, one awaited batch at a time. mtcute's own manager is
 * unsuitable: it drops a difference that is too long, continues after one that failed, and does not wait for the
 * store.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { tl } from '@mtcute/core'
import { findErrorText, findSeconds } from './errors.ts'
import {
  type Container,
  fitContainer,
  peersNamed,
  reduceContainer,
  stateOf,
  type UpdateState,
  unpack,
} from './update-state.ts'

export interface TelegramBatch {
  readonly updates: readonly tl.TypeUpdate[]
  readonly users: readonly tl.TypeUser[]
  readonly chats: readonly tl.TypeChat[]
  /** After it. */
  readonly state: UpdateState
  readonly caught_up: boolean
  /** Updates before it are lost. */
  readonly gap: boolean
}

/** The stream cannot continue: sends confirmed only by the lost updates cannot be proven. */
export class UpdatesMissed extends Error {
  override readonly name = 'UpdatesMissed'
}

interface StreamOptions {
  /** Undefined: from now on. */
  readonly state: UpdateState | undefined
  call<T extends tl.RpcMethod>(request: T): Promise<tl.RpcCallReturn[T['_']]>
  /** Resolves when the batch is stored. */
  take(batch: TelegramBatch): Promise<void>
  /** Whether the account could write to it. */
  knows(peer: tl.TypePeer): boolean
  /** The stream is over. Not called after `end`. */
  failed(error: unknown): void
  asksDifference?(): void
}

/** How long a container waits for what is missing before it, until the stream requests the difference. */
const holeMs = 500
const waitingMax = 5_000
/** How often the stream requests a difference that Telegram fails to return. */
const triesMax = 5
const retryMs = 200
/** How many slices in a row may leave the position where it was (Telethon#808). */
const stallsMax = 3

export class UpdateStream {
  readonly #options: StreamOptions
  readonly #ending = new AbortController()
  #state: UpdateState | undefined
  /** Work that has not started. Containers and questions are processed in the order they arrived. */
  #queue: (() => Promise<void>)[] = []
  #isRunning = false
  /** Nothing that was reported before this session is missing. A push may arrive before the first difference. */
  #isCaughtUp = false
  /** Containers with something missing before them. */
  #waiting: Container[] = []
  #hole: NodeJS.Timeout | undefined

  constructor(options: StreamOptions) {
    this.#options = options
    this.#state = options.state
  }

  /** Without a stored state it starts at this moment. */
  async locate(): Promise<void> {
    this.#state ??= stateOf(await this.#options.call({ _: 'updates.getState' }))
  }

  /** Always delivers a first batch, which says where the stream begins. */
  begin(): void {
    const { state } = this.#options
    this.#isCaughtUp = !state // guard: a stored state has a difference to come
    this.#add(() => (state ? this.#difference() : this.#hand([], { caught_up: true })))
  }

  /** A push, or the answer to one of our calls: an answer carries a pts too, and belongs in the order. */
  feed(container: tl.TypeUpdates): void {
    // Pushed before the stream has a beginning: Telegram's current state, which `locate` requests, includes it.
    if (!this.#state) return // guard: a push before the beginning
    const unpacked = unpack(container)
    const reduced = unpacked && reduceContainer(unpacked)
    if (reduced) this.#add(() => this.#take(reduced))
    else if (!unpacked) this.#add(() => this.#difference())
  }

  /** Telegram reported its position: if that is ahead of ours, something was not pushed. */
  compare({ pts }: tl.updates.TypeState): void {
    this.#add(async () => {
      if (pts > this.#known.pts) await this.#difference() // guard: a pts ahead of ours
    })
  }

  /** Containers that are not delivered yet. */
  get waiting(): number {
    return this.#queue.length + this.#waiting.length
  }

  end(): void {
    this.#ending.abort()
    clearTimeout(this.#hole)
    this.#queue = []
    this.#waiting = []
  }

  get #known(): UpdateState {
    if (!this.#state) throw new Error('The updates have no beginning.')
    return this.#state
  }

  #add(work: () => Promise<void>): void {
    if (this.#ending.signal.aborted) return
    const isFull = this.waiting >= waitingMax // guard: so many containers wait
    if (isFull) this.#fail(new Error('Too many updates are waiting.'))
    else this.#queue.push(work)
    if (!this.#isRunning) void this.#run()
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    try {
      for (let work = this.#queue.shift(); work; work = this.#queue.shift()) await work()
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#isRunning = false
    }
  }

  #fail(error: unknown): void {
    if (this.#ending.signal.aborted) return
    this.end()
    this.#options.failed(error)
  }

  async #take(container: Container): Promise<void> {
    if (await this.#apply(container)) await this.#applyWaiting()
  }

  /** Whether it was processed. Otherwise it waits for what is missing. */
  async #apply(container: Container): Promise<boolean> {
    const found = fitContainer(this.#known, container)
    if (found === 'known') return true
    if (found === 'hole') {
      this.#wait(container)
      return false
    }
    // A short message, or one whose people came without an access hash: the difference has them in full.
    if (!this.#introduces(container)) {
      await this.#difference()
      return true
    }
    this.#state = found.state
    if (found.fresh.length === 0) return true // guard: an empty container is no batch
    const { users, chats } = container
    const caught_up = this.#isCaughtUp && this.#waiting.length === 0 // guard: no push is caught up before the difference
    await this.#hand(found.fresh, { users, chats, caught_up })
    return true
  }

  #introduces(container: Container): boolean {
    const users = new Set(
      container.users.flatMap((user) => (user._ === 'user' && !user.min ? [user.id] : [])),
    )
    const chats = new Set(container.chats.map(({ id }) => id))
    return peersNamed(container).every(
      (peer) =>
        peer._ === 'peerChannel' ||
        (peer._ === 'peerUser' ? users.has(peer.userId) : chats.has(peer.chatId)) ||
        this.#options.knows(peer),
    )
  }

  async #applyWaiting(): Promise<void> {
    for (;;) {
      const at = this.#waiting.findIndex((each) => fitContainer(this.#known, each) !== 'hole')
      const [next] = at < 0 ? [] : this.#waiting.splice(at, 1)
      if (!next) return
      await this.#apply(next)
    }
  }

  #wait(container: Container): void {
    this.#waiting.push(container)
    this.#expectMissing()
  }

  /** Further containers do not restart the timer: a busy account would never ask. */
  #expectMissing(): void {
    this.#hole ??= setTimeout(() => {
      this.#hole = undefined
      this.#add(async () => {
        if (this.#waiting.length > 0) await this.#difference()
      })
    }, holeMs)
  }

  async #difference(): Promise<void> {
    this.#options.asksDifference?.()
    for (let stalls = 0; ; ) {
      const before = this.#known
      const found = await this.#askDifference()
      if (found._ === 'updates.differenceTooLong') return this.#miss({ ...this.#known, pts: found.pts })
      if (found._ === 'updates.differenceEmpty') {
        this.#state = { ...this.#known, date: found.date, seq: found.seq }
        await this.#hand([], { caught_up: true })
        break
      }
      const isLast = found._ === 'updates.difference'
      this.#state = stateOf(isLast ? found.state : found.intermediateState)
      const { users, chats } = found
      // guard: a slice is not caught up
      await this.#hand(updatesOf(found), { users, chats, caught_up: isLast })
      if (isLast) break
      stalls = isAhead(this.#known, before) ? 0 : stalls + 1
      if (stalls >= stallsMax) throw new Error('The difference does not advance.') // guard: a difference advances
    }
    this.#isCaughtUp = true
    await this.#applyWaiting()
    if (this.#waiting.length > 0) this.#expectMissing() // guard: what still waits is asked for again
  }

  /** Never skips a failed difference: it may contain a message of ours. */
  async #askDifference(): Promise<tl.updates.TypeDifference> {
    for (let tries = 1; ; ) {
      const { pts, qts, date } = this.#known
      try {
        return await this.#options.call({ _: 'updates.getDifference', pts, qts, date })
      } catch (error) {
        const text = findErrorText(error) ?? ''
        const seconds = findSeconds(error)
        if (seconds !== undefined) await this.#rest(seconds * 1000)
        // ..._OUTDATED, a 500, only asks for patience: it is tried again.
        // guard: an outdated position is no gap
        else if (/^(PERSISTENT_TIMESTAMP_(EMPTY|INVALID)|DATE_EMPTY)$/.test(text)) {
          await this.#miss(stateOf(await this.#options.call({ _: 'updates.getState' })))
        } else if (isFailing(error) && tries < triesMax) await this.#rest(retryMs * tries++)
        else throw error
      }
    }
  }

  /** Everything up to there is lost. The stream reports that, with the new state, and ends. */
  async #miss(state: UpdateState): Promise<never> {
    this.#state = state
    await this.#hand([], { gap: true })
    throw new UpdatesMissed('Updates were missed.') // guard: missed updates end the stream
  }

  async #rest(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#ending.signal })
  }

  async #hand(
    updates: readonly tl.TypeUpdate[],
    { users = [], chats = [], caught_up = false, gap = false }: Partial<TelegramBatch>,
  ): Promise<void> {
    if (this.#ending.signal.aborted) return
    const taken = this.#options.take({ updates, users, chats, caught_up, gap, state: this.#known })
    await taken // guard: an awaited batch
  }
}

/** Random ids before the messages that carry them, and both before later changes to them. */
function updatesOf(found: tl.updates.RawDifference | tl.updates.RawDifferenceSlice): tl.TypeUpdate[] {
  const isId = (update: tl.TypeUpdate) => update._ === 'updateMessageID'
  const messages = found.newMessages.map(
    (message): tl.TypeUpdate => ({ _: 'updateNewMessage', message, pts: 0, ptsCount: 0 }),
  )
  return [
    ...found.otherUpdates.filter(isId),
    ...messages,
    ...found.otherUpdates.filter((update) => !isId(update)),
  ]
}

function isAhead(now: UpdateState, before: UpdateState): boolean {
  return now.pts > before.pts || now.qts > before.qts
}

/** A temporary failure at Telegram. */
function isFailing(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return findErrorText(error) !== undefined && typeof code === 'number' && (code >= 500 || code < 0)
}
