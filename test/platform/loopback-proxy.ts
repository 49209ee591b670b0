/** SOCKS5, HTTP and HTTPS proxies on loopback. Each logs what it connected, and from which of its ports. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Certificate } from '../harness/certificates.ts'

export interface ProxyOptions {
  /** Undefined: it asks for none. */
  readonly credentials?: { readonly username: string; readonly password: string } | undefined
  /** Of an HTTPS proxy. */
  readonly certificate?: Certificate
  /** The port that it dials for one that a client asks for; the same by default. */
  readonly portFor?: (port: number) => number
}

export interface LoopbackProxy {
  readonly port: number
  /** What each accepted request asked for, as `address:port`. */
  readonly asked: string[]
  /** How many clients came at all. */
  clients: number
  /** The ports from which it dialled. */
  readonly ports: Set<number>
  /** Ends every connection; new ones are accepted. */
  cut(): void
  /** Nothing more is passed on, and no client is accepted. */
  close(): Promise<void>
}

export type ProxyKind = 'socks5' | 'http' | 'https'

export function listenProxy(kind: ProxyKind, options: ProxyOptions = {}): Promise<LoopbackProxy> {
  return listen(kind === 'socks5' ? socks : http, options)
}

type Serve = (
  client: Socket,
  options: ProxyOptions,
  pass: (target: string, host: string, port: number, reply: (isOpen: boolean) => Buffer | string) => void,
) => void

async function listen(serve: Serve, options: ProxyOptions): Promise<LoopbackProxy> {
  const open = new Set<Socket>()
  const asked: string[] = []
  const ports = new Set<number>()
  const accept = (client: Socket) => {
    proxy.clients++
    open.add(client)
    client.on('error', () => {})
    client.on('close', () => open.delete(client))
    serve(client, options, (target, host, port, reply) => {
      asked.push(target)
      const through = connect({ host, port: options.portFor?.(port) ?? port })
      open.add(through)
      through.on('error', () => client.end(reply(false)))
      through.on('close', () => {
        open.delete(through)
        client.destroy()
      })
      client.on('close', () => through.destroy())
      through.once('connect', () => {
        ports.add(through.localPort ?? 0)
        client.write(reply(true))
        client.pipe(through).pipe(client)
      })
    })
  }
  const server: Server = options.certificate
    ? createTlsServer({ ...options.certificate }, accept)
    : createServer(accept)
  // A client that refuses the certificate.
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: LoopbackProxy = {
    port: (server.address() as AddressInfo).port,
    asked,
    ports,
    clients: 0,
    cut() {
      for (const socket of open) socket.destroy()
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of open) socket.destroy()
      await closed
    },
  }
  return proxy
}

/** Calls back with each message; the test's own client sends each in one piece. */
function messages(client: Socket, ...steps: ((bytes: Buffer) => void)[]): void {
  const next = () => {
    const step = steps.shift()
    if (!step) return
    client.once('data', (bytes) => {
      step(bytes)
      client.pause()
      next()
      client.resume()
    })
  }
  next()
}

const socks: Serve = (client, { credentials }, pass) => {
  const request = (bytes: Buffer) => {
    const host = [...bytes.subarray(4, 8)].join('.')
    const port = bytes.readUInt16BE(8)
    pass(`${host}:${port}`, host, port, (isOpen) => Buffer.from([5, isOpen ? 0 : 5, 0, 1, 0, 0, 0, 0, 0, 0]))
  }
  const greet = (bytes: Buffer) => {
    const methods = bytes.subarray(2)
    const method = credentials ? 2 : 0
    client.write(Buffer.from([5, methods.includes(method) ? method : 255]))
  }
  const check = (bytes: Buffer) => {
    const name = bytes.subarray(2, 2 + (bytes[1] ?? 0)).toString()
    const secret = bytes.subarray(3 + (bytes[1] ?? 0)).toString()
    const isRight = name === credentials?.username && secret === credentials.password
    client.write(Buffer.from([1, isRight ? 0 : 1]))
    if (!isRight) client.end()
  }
  messages(client, greet, ...(credentials ? [check] : []), request)
}

const http: Serve = (client, { credentials }, pass) => {
  messages(client, (bytes) => {
    const head = bytes.toString('latin1')
    const [, host = '', port] = /^CONNECT ([\d.]+):(\d+) HTTP\/1\.1\r\n/.exec(head) ?? []
    const pair =
      credentials && Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')
    if (pair && !head.includes(`Proxy-Authorization: Basic ${pair}\r\n`)) {
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
      return
    }
    pass(`${host}:${port}`, host, Number(port), (isOpen) =>
      isOpen
        ? 'HTTP/1.1 200 Connection established\r\nX-Long: 1\r\n\r\n'
        : 'HTTP/1.1 502 Bad Gateway\r\n\r\n',
    )
  })
}
