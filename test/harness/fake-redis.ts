/** As much of Redis as counting needs, for machines without one: it allows everything, and can go away, fall silent and come back. */
import { createServer, type Server, type Socket } from 'node:net'

export class FakeRedis {
  readonly port: number
  /** How many commands arrived while it was silent. */
  unanswered = 0
  readonly #sockets = new Set<Socket>()
  #server: Server | undefined
  #silent = false

  private constructor(port: number) {
    this.port = port
  }

  static async open(): Promise<FakeRedis> {
    const probe = createServer()
    await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
    const { port } = probe.address() as { port: number }
    await new Promise((resolve) => probe.close(resolve))
    const redis = new FakeRedis(port)
    await redis.come()
    return redis
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  async come(): Promise<void> {
    this.#silent = false
    if (this.#server) return
    const server = createServer((socket) => this.#serve(socket))
    this.#server = server
    await new Promise<void>((resolve) => server.listen(this.port, '127.0.0.1', resolve))
  }

  /** Closes its port and its connections. */
  async leave(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    const closed = new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  /** Accepts connections and commands, and answers none. */
  silence(): void {
    this.#silent = true
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    let received = ''
    socket.on('error', () => {})
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1')
      for (let read = readCommand(received); read; read = readCommand(received)) {
        received = received.slice(read.length)
        if (this.#silent) this.unanswered++
        else socket.write(answerTo(read.words))
      }
    })
  }
}

/** The first whole command: an array of strings. */
function readCommand(text: string): { words: string[]; length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text)
  if (!head) return undefined
  const words: string[] = []
  let at = head[0].length
  while (words.length < Number(head[1])) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at, at + 20))
    if (!size) return undefined
    const start = at + size[0].length
    at = start + Number(size[1]) + 2
    if (text.length < at) return undefined
    words.push(text.slice(start, at - 2))
  }
  return { words, length: at }
}

function answerTo([name = '']: readonly string[]): string {
  const text = (value: string) => `$${value.length}\r\n${value}\r\n`
  const now = String(Date.now() * 1000)
  switch (name.toLowerCase()) {
    case 'hello':
      return "-ERR unknown command 'HELLO'\r\n"
    case 'info':
      return text('redis_version:7.4.0\r\nloading:0')
    case 'ping':
      return '+PONG\r\n'
    case 'eval':
    case 'evalsha':
      return `*4\r\n:1\r\n:1\r\n${text(now)}${text(now)}`
    default:
      return '+OK\r\n'
  }
}
