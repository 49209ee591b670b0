/**
 * A proxy to PostgreSQL that breaks where it hurts: exactly at a COMMIT, before the server has received it or after it has
 * committed, so that the answer is lost both ways. It parses just enough of the protocol to know where that is, and whether the
 * transaction crosses the ledger's boundary.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Cuts } from './rare.ts'

export type Fate = 'pass' | 'before' | 'after'

export interface LossyOptions {
  readonly socket: () => string
  /** Decides what happens to this COMMIT; a statement outside a transaction counts as one, too. */
  readonly decide: (commit: Commit) => Fate
}

export interface Commit {
  /** It makes an operation `submitting`. */
  readonly boundary: boolean
  /** It makes one `completed`. */
  readonly completion: boolean
}

/** Lets every COMMIT pass except the next one of the kind that a test has chosen to cut. */
export class NextCut {
  #cut: { readonly at: keyof Commit; readonly fate: Fate } | undefined

  set(at: keyof Commit, fate: Fate): void {
    this.#cut = { at, fate }
  }

  /** Whether the chosen cut has happened. */
  get done(): boolean {
    return this.#cut === undefined
  }

  readonly decide = (commit: Commit): Fate => {
    if (!this.#cut || !commit[this.#cut.at]) return 'pass'
    const { fate } = this.#cut
    this.#cut = undefined
    return fate
  }
}

export interface Lossy {
  readonly port: number
  /** The cuts at a boundary, and those at any other COMMIT. */
  readonly boundaries: Cuts
  readonly others: Cuts
  close(): Promise<void>
}

/** The statement that makes an operation `submitting`, however it is written. */
const boundaryStatement =
  /set\s+state\s*=\s*'submitting'|insert\s+into\s+operations\b[^;]*\bvalues?\b[^;]*'submitting'/i
/** The statement that settles operations. These tests cut only completions. */
const completionStatement = /update\s+operations\s+o\s+set\s+state\s*=\s*case\s+when\s+t\.from_state/i

export async function openLossy(options: LossyOptions): Promise<Lossy> {
  const sockets = new Set<Socket>()
  const boundaries = { before: 0, after: 0 }
  const others = { before: 0, after: 0 }
  const server = createServer((client) => {
    const upstream = connect(options.socket())
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    relay(client, upstream, (commit) => {
      const fate = options.decide(commit)
      if (fate !== 'pass') (commit.boundary ? boundaries : others)[fate]++
      return fate
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    boundaries,
    others,
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

function relay(client: Socket, upstream: Socket, decide: LossyOptions['decide']): void {
  const conversation = new Conversation()
  /** How many answers the server has to give, and how many it has given. The start-up is the first question. */
  let asked = 1
  let answered = 0
  let doomed = Number.POSITIVE_INFINITY
  const fromClient = splitter(false)
  const fromServer = splitter(true)

  client.on('data', (chunk) => {
    const passed: Buffer[] = []
    for (const message of fromClient(chunk)) {
      if (doomed < Number.POSITIVE_INFINITY) return
      const commit = conversation.hear(message)
      const fate = commit ? decide(commit) : 'pass'
      if (fate === 'before') {
        client.destroy()
        upstream.destroy()
        return
      }
      if (isQuestion(message)) asked++
      passed.push(message)
      if (fate === 'after') doomed = asked
    }
    if (passed.length > 0 && !upstream.write(Buffer.concat(passed))) {
      client.pause()
      upstream.once('drain', () => client.resume())
    }
  })
  upstream.on('data', (chunk) => {
    const passed: Buffer[] = []
    for (const message of fromServer(chunk)) {
      if (answered < doomed - 1) passed.push(message)
      if (message[0] === readyForQuery && ++answered >= doomed) {
        client.destroy()
        upstream.destroy()
        return
      }
    }
    if (passed.length > 0) client.write(Buffer.concat(passed))
  })
}

const readyForQuery = 'Z'.charCodeAt(0)

/** The server answers simple queries and Sync with one ReadyForQuery each. */
function isQuestion(message: Buffer): boolean {
  const type = String.fromCharCode(message[0] ?? 0)
  return type === 'Q' || type === 'S'
}

/** Splits a stream into whole messages. A client's first message has no type. */
function splitter(typed: boolean): (chunk: Buffer) => Buffer[] {
  let rest: Buffer = Buffer.alloc(0)
  let head = typed ? 1 : 0
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const messages: Buffer[] = []
    while (rest.length >= head + 4) {
      const size = head + rest.readUInt32BE(head)
      if (rest.length < size) break
      messages.push(rest.subarray(0, size))
      rest = rest.subarray(size)
      head = 1
    }
    return messages
  }
}

const nothing: Commit = { boundary: false, completion: false }

/** The state of a client's protocol conversation. */
class Conversation {
  readonly #statements = new Map<string, string>()
  #started = false
  #limited = false
  #inTransaction = false
  #commits = nothing

  /** Returns the commit, if this message makes one. The first question sets the connection's time limits and stores nothing. */
  hear(message: Buffer): Commit | undefined {
    if (!this.#started) {
      this.#started = true
      return undefined
    }
    if (!this.#limited) {
      this.#limited = isQuestion(message)
      return undefined
    }
    switch (String.fromCharCode(message[0] ?? 0)) {
      case 'P': {
        const [name = '', text = ''] = textsOf(message)
        this.#statements.set(name, text)
        return undefined
      }
      case 'B': {
        const [, name = ''] = textsOf(message)
        this.#note(this.#statements.get(name) ?? '')
        return undefined
      }
      case 'Q':
        return this.#hearQuery(textsOf(message)[0] ?? '')
      case 'S':
        return this.#inTransaction ? undefined : this.#commit()
      default:
        return undefined
    }
  }

  #note(text: string): void {
    const { boundary, completion } = this.#commits
    this.#commits = {
      boundary: boundary || boundaryStatement.test(text),
      completion: completion || completionStatement.test(text),
    }
  }

  #hearQuery(text: string): Commit | undefined {
    this.#note(text)
    if (/^\s*begin/i.test(text)) this.#inTransaction = true
    if (/^\s*rollback/i.test(text)) {
      this.#commit()
      return undefined
    }
    return this.#inTransaction && !/commit\s*;?\s*$/i.test(text) ? undefined : this.#commit()
  }

  #commit(): Commit {
    const commit = this.#commits
    this.#inTransaction = false
    this.#commits = nothing
    return commit
  }
}

/** The first two strings of a message. Does not read the bound values that follow. */
function textsOf(message: Buffer): string[] {
  const first = message.indexOf(0, 5)
  const second = message.indexOf(0, first + 1)
  return [
    message.toString('utf8', 5, first),
    message.toString('utf8', first + 1, Math.max(second, first + 1)),
  ]
}
