/**
 * As much of PgBouncer as its two modes need, on loopback, before the server of the tests. It refuses start-up parameters as
 * PgBouncer does. By session each client has a connection to the server; by transaction all share one, or several in turn.
 */
import { createConnection, createServer, type Server, type Socket } from 'node:net'

const known = ['user', 'database', 'client_encoding', 'application_name']

export class FakePooler {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #upstream: string
  readonly #mode: 'session' | 'transaction'
  readonly #sharedMax: number
  readonly #shared: SharedBackend[] = []
  #turn = 0

  constructor(upstream: string, mode: 'session' | 'transaction', shared = 1) {
    this.#upstream = upstream
    this.#mode = mode
    this.#sharedMax = shared
    this.#server = createServer((client) => this.#accept(client))
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return (this.#server.address() as { port: number }).port
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => this.#sockets.delete(socket))
    return socket
  }

  #accept(client: Socket): void {
    this.#keep(client).once('data', (startup) => {
      const names = startup
        .subarray(8)
        .toString('latin1')
        .split('\0')
        .filter((_, at) => at % 2 === 0)
      const unknown = names.find((name) => name !== '' && !known.includes(name))
      if (unknown) return void client.end(failure('08P01', `unsupported startup parameter: ${unknown}`))
      const ask = (bytes: Buffer) => this.#ask(client, bytes)
      if (this.#shared.length === this.#sharedMax) {
        client.on('data', ask)
        return this.#shared[0]?.greet(client)
      }
      const server = this.#keep(createConnection(this.#upstream))
      server.write(startup)
      if (this.#mode === 'session') return void server.pipe(client).pipe(server)
      const backend = new SharedBackend(server)
      this.#shared.push(backend)
      backend.logIn(client, ask)
    })
  }

  #ask(client: Socket, bytes: Buffer): void {
    if (bytes[0] !== terminate) this.#shared[this.#turn++ % this.#shared.length]?.ask(client, bytes)
  }
}

/** One connection to the server for many clients. A client has it until the server is idle again. */
class SharedBackend {
  readonly #server: Socket
  readonly #waiting: { client: Socket; bytes: Buffer }[] = []
  /** Clients that wait until the first one has logged in. */
  readonly #joining: Socket[] = []
  #greeting = Buffer.alloc(0)
  #current: Socket | undefined
  #answer = Buffer.alloc(0)

  constructor(server: Socket) {
    this.#server = server
    server.on('data', (bytes) => this.#answered(bytes))
  }

  /** The first client logs in itself; what the server says then greets the others too. */
  logIn(client: Socket, ask: (bytes: Buffer) => void): void {
    this.#current = client
    client.on('data', (bytes) => (this.#greeting.length === 0 ? this.#server.write(bytes) : ask(bytes)))
  }

  greet(client: Socket): void {
    if (this.#greeting.length > 0) client.write(this.#greeting)
    else this.#joining.push(client)
  }

  ask(client: Socket, bytes: Buffer): void {
    this.#waiting.push({ client, bytes })
    this.#next()
  }

  #next(): void {
    if (this.#current) return
    const turn = this.#waiting.shift()
    if (!turn) return
    this.#current = turn.client
    this.#server.write(turn.bytes)
  }

  #answered(bytes: Buffer): void {
    this.#answer = Buffer.concat([this.#answer, bytes])
    this.#current?.write(bytes)
    const idle = this.#answer.subarray(-6).equals(readyAndIdle)
    if (!idle) return
    if (this.#greeting.length === 0) this.#greeting = afterLogin(this.#answer)
    for (const client of this.#joining.splice(0)) client.write(this.#greeting)
    this.#answer = Buffer.alloc(0)
    this.#current = undefined
    this.#next()
  }
}

const terminate = 'X'.charCodeAt(0)
const readyAndIdle = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])
const loggedIn = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0])

/** From the message that a client is logged in. */
function afterLogin(answer: Buffer): Buffer<ArrayBuffer> {
  return Buffer.from(answer.subarray(answer.indexOf(loggedIn)))
}

/** An error message of a server, after which it ends the connection. */
export function failure(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}
