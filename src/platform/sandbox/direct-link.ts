/** The link inside one process: the two ends of a session call each other, asynchronously as over a socket. */
import type { Outcome, Person, UpdateBatch } from '../port.ts'
import {
  type Hello,
  type Link,
  type LinkEvents,
  type Method,
  type Params,
  PendingCalls,
  type Result,
  type Wire,
} from './calls.ts'
import { type Peer, ServedSession } from './served-session.ts'
import type { World } from './world.ts'

export function directLink(world: World): Link {
  return {
    async connect(greeting, events, signal) {
      const wire = new DirectWire(world, events)
      const giveUp = () => wire.cut('The platform did not answer in time.')
      signal.addEventListener('abort', giveUp, { once: true })
      const outcome = await wire.connect(greeting)
      signal.removeEventListener('abort', giveUp)
      return outcome.kind === 'accepted'
        ? { kind: 'accepted', value: { wire, self: outcome.value } }
        : outcome
    },
  }
}

class DirectWire implements Wire, Peer {
  readonly #events: LinkEvents
  readonly #session: ServedSession
  readonly #pending = new PendingCalls()
  #open = true
  #connected = false

  constructor(world: World, events: LinkEvents) {
    this.#events = events
    this.#session = new ServedSession(world, this)
  }

  async connect(greeting: Hello): Promise<Outcome<Person>> {
    return this.#ask<Person>(async () => {
      const outcome = await this.#session.connect(greeting)
      this.#connected = outcome.kind === 'accepted'
      return outcome
    })
  }

  call<M extends Method>(method: M, params: Params<M>): Promise<Outcome<Result<M>>> {
    return this.#ask(() => this.#session.answer(method, params))
  }

  #ask<T>(question: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
    if (!this.#open) return Promise.resolve({ kind: 'not_written', reason: 'The session is closed.' })
    return this.#pending.add((id) => {
      question().then(
        (outcome) => this.#pending.settle(id, outcome),
        () => this.#pending.settle(id, { kind: 'unknown', reason: 'The platform failed.' }),
      )
    })
  }

  async updates(batch: UpdateBatch): Promise<void> {
    if (this.#open) await this.#events.updates(batch)
  }

  cut(reason: string | null): void {
    if (!this.#open) return
    const why = reason ?? 'The connection was lost.'
    const wasConnected = this.#connected
    this.#end(why)
    if (wasConnected) this.#events.lost(why)
  }

  close(): Promise<void> {
    if (this.#open) this.#end('The session was closed.')
    return Promise.resolve()
  }

  #end(reason: string): void {
    this.#open = false
    this.#pending.lose(reason)
    this.#session.end(reason)
  }
}
