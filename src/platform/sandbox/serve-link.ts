/** The platform's end of the socket link: an HTTP upgrade, then one session per socket. */
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { UpgradeHandler } from '../module.ts'
import type { Outcome, UpdateBatch } from '../port.ts'
import { type Hello, type Method, parseParams } from './calls.ts'
import { clientFrame, clientFrameBytesMax, linkPath, linkProtocol, readFrames, writeFrame } from './frames.ts'
import { type Peer, ServedSession } from './served-session.ts'
import type { World } from './world.ts'

/** How long a socket may take to say which account's session it is. */
const helloMsMax = 10_000
/** How long a client may take to read why its session ended. */
const farewellMsMax = 1000
/** How many calls of one session may wait for an answer at once. */
const callsMax = 1000

export function serveLink(world: World): UpgradeHandler {
  return (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    const path = request.url?.split('?', 1)[0]
    if (path !== linkPath || request.headers.upgrade?.toLowerCase() !== linkProtocol) {
      socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
      return
    }
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${linkProtocol}\r\n\r\n`,
    )
    if (socket instanceof Socket) socket.setNoDelay(true)
    new LinkSocket(world, socket).listen(head)
  }
}

class LinkSocket implements Peer {
  readonly #socket: Duplex
  readonly #session: ServedSession
  readonly #helloTimer: NodeJS.Timeout
  readonly #untaken = new Map<number, () => void>()
  #greeted = false
  #calls = 0
  #batches = 0

  constructor(world: World, socket: Duplex) {
    this.#socket = socket
    this.#session = new ServedSession(world, this)
    this.#helloTimer = setTimeout(() => this.#refuse(), helloMsMax)
  }

  listen(head: Buffer): void {
    this.#socket.on('close', () => this.#finish())
    this.#socket.on('end', () => this.#socket.destroy())
    readFrames(this.#socket, head, {
      bytesMax: clientFrameBytesMax,
      frame: (value) => this.#take(value),
      refuse: () => this.#refuse(),
    })
  }

  updates(batch: UpdateBatch): Promise<void> {
    const number = ++this.#batches
    return new Promise((taken) => {
      this.#untaken.set(number, taken)
      writeFrame(this.#socket, { batch: number, ...batch })
    })
  }

  cut(reason: string | null): void {
    const destroy = () => this.#socket.destroy()
    if (reason === null) {
      destroy()
      return
    }
    writeFrame(this.#socket, { closed: reason })
    this.#socket.end(destroy)
    setTimeout(destroy, farewellMsMax).unref()
  }

  #take(value: unknown): void {
    const { data: frame } = clientFrame.safeParse(value)
    if (!frame) {
      this.#refuse()
    } else if ('taken' in frame) {
      this.#untaken.get(frame.taken)?.()
      this.#untaken.delete(frame.taken)
    } else if ('connect' in frame) {
      this.#greet(frame.id, frame.connect)
    } else {
      this.#call(frame.id, frame.call, frame.params)
    }
  }

  #greet(id: number, greeting: Hello): void {
    if (this.#greeted) {
      this.#refuse()
      return
    }
    this.#greeted = true
    clearTimeout(this.#helloTimer)
    this.#answer(id, this.#session.connect(greeting))
  }

  #call<M extends Method>(id: number, method: M, given: unknown): void {
    const params = parseParams(method, given)
    if (!params || !this.#greeted || this.#calls > callsMax) {
      this.#refuse()
      return
    }
    this.#answer(id, this.#session.answer(method, params))
  }

  #answer(id: number, answer: Promise<Outcome<unknown>>): void {
    this.#calls++
    answer.then(
      (outcome) => {
        this.#calls--
        writeFrame(this.#socket, { id, outcome })
      },
      () => this.#socket.destroy(),
    )
  }

  /** A violation of the protocol closes this socket and no other. */
  #refuse(): void {
    this.#socket.destroy()
  }

  #finish(): void {
    clearTimeout(this.#helloTimer)
    this.#session.end(null)
    for (const taken of this.#untaken.values()) taken()
    this.#untaken.clear()
  }
}
