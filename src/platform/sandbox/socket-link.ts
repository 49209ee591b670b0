/** The client's end of the socket link: one socket per account. */
import { request } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Outcome, Person, Update } from '../port.ts'
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
import {
  linkPath,
  linkProtocol,
  type PlatformFrame,
  platformFrame,
  platformFrameBytesMax,
  readFrames,
  writeFrame,
} from './frames.ts'

/** A link to the sandbox process at this address, such as `http://127.0.0.1:8090`. */
export function socketLink(address: string): Link {
  const url = new URL(linkPath, address)
  return {
    async connect(greeting, events, signal) {
      const dialled = await dial(url, signal)
      if (dialled.kind !== 'accepted') return dialled
      const wire = new SocketWire(dialled.value, events)
      const giveUp = () => wire.lose('The platform did not answer in time.')
      signal.addEventListener('abort', giveUp, { once: true })
      const outcome = await wire.connect(greeting)
      signal.removeEventListener('abort', giveUp)
      if (outcome.kind === 'accepted') return { kind: 'accepted', value: { wire, self: outcome.value } }
      await wire.close()
      return outcome
    },
  }
}

interface DialledSocket {
  readonly socket: Duplex
  readonly head: Buffer
}

/** Nothing has been asked before the protocol is switched, so every failure here is "not written". */
function dial(url: URL, signal: AbortSignal): Promise<Outcome<DialledSocket>> {
  return new Promise((resolve) => {
    const headers = { Connection: 'Upgrade', Upgrade: linkProtocol }
    const asked = request(url, { headers, agent: false })
    const giveUp = () => asked.destroy(new Error('The platform did not answer in time.'))
    signal.addEventListener('abort', giveUp, { once: true })
    asked.on('upgrade', (_, socket, head) => {
      signal.removeEventListener('abort', giveUp)
      resolve({ kind: 'accepted', value: { socket, head } })
    })
    asked.on('response', (response) => {
      response.destroy()
      resolve({ kind: 'not_written', reason: `The address answered with status ${response.statusCode}.` })
    })
    asked.on('error', (error) => resolve({ kind: 'not_written', reason: error.message }))
    asked.end()
  })
}

class SocketWire implements Wire {
  readonly #socket: Duplex
  readonly #events: LinkEvents
  readonly #pending = new PendingCalls()
  #open = true
  #connected = false

  constructor({ socket, head }: DialledSocket, events: LinkEvents) {
    this.#socket = socket
    this.#events = events
    if (socket instanceof Socket) socket.setNoDelay(true).setKeepAlive(true, 30_000)
    socket.on('error', () => this.lose('The connection was lost.'))
    socket.on('close', () => this.lose('The connection was lost.'))
    socket.on('end', () => this.lose('The connection was lost.'))
    readFrames(socket, head, {
      bytesMax: platformFrameBytesMax,
      frame: (value) => this.#take(value),
      refuse: () => this.lose('The platform sent something unreadable.'),
    })
  }

  async connect(greeting: Hello): Promise<Outcome<Person>> {
    return this.#ask<Person>((id) => ({ id, connect: greeting }))
  }

  call<M extends Method>(method: M, params: Params<M>): Promise<Outcome<Result<M>>> {
    return this.#ask((id) => ({ id, call: method, params: encode(params) }))
  }

  #ask<T>(frame: (id: number) => object): Promise<Outcome<T>> {
    if (!this.#open || !this.#socket.writable) {
      return Promise.resolve({ kind: 'not_written', reason: 'The session is closed.' })
    }
    return this.#pending.add((id) => writeFrame(this.#socket, frame(id)))
  }

  #take(value: unknown): void {
    if (!this.#open) return
    const parsed = platformFrame.safeParse(value)
    if (parsed.success) this.#handle(parsed.data)
    else this.lose('The platform sent something unreadable.')
  }

  #handle(frame: PlatformFrame): void {
    if ('closed' in frame) {
      this.lose(frame.closed)
    } else if ('batch' in frame) {
      // The platform defines the kinds of updates; its conformance suite checks their content.
      const updates = frame.updates as unknown as readonly Update[]
      const { position, caught_up } = frame
      this.#events.updates({ updates, position, caught_up }).then(
        () => writeFrame(this.#socket, { taken: frame.batch }),
        () => this.lose('The updates could not be processed.'),
      )
    } else {
      // The first answer is the answer to the greeting.
      if (frame.outcome.kind === 'accepted') this.#connected = true
      this.#pending.settle(frame.id, frame.outcome)
    }
  }

  /** The connection is gone: no pending call will get an answer. */
  lose(reason: string): void {
    if (!this.#open) return
    this.#end(reason)
    if (this.#connected) this.#events.lost(reason)
  }

  async close(): Promise<void> {
    if (this.#open) this.#end('The session was closed.')
    if (!this.#socket.closed) await new Promise((closed) => this.#socket.once('close', closed))
  }

  #end(reason: string): void {
    this.#open = false
    this.#pending.lose(reason)
    this.#socket.destroy()
  }
}

/** A line of JSON carries bytes as base64. */
function encode(params: object): object {
  const { data } = params as { readonly data?: Uint8Array }
  if (!data) return params
  return { ...params, data: Buffer.from(data.buffer, data.byteOffset, data.length).toString('base64') }
}
