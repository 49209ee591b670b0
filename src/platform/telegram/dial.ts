/**
 * Dials through an account's proxy: SOCKS5, or CONNECT over HTTP or HTTPS. The proxy's address is checked at every dial,
 * because a name may resolve to another address by then. Every failure is a `ProxyFailed`, whose sentence names no credentials.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { shownProxy } from '../../lib/proxy-url.ts'
import { HostRefused, isPublic, requireAddresses } from '../../lib/public-hosts.ts'
import type { AccountProxy } from '../port.ts'
import { HandshakeReader } from './handshake-reader.ts'

export interface Place {
  readonly address: string
  readonly port: number
}

const dialMsMax = 10_000
/** The longest head of an answer to CONNECT. */
const headBytesMax = 16 * 1024

export class ProxyFailed extends Error {
  override readonly name = 'ProxyFailed'

  constructor(proxy: AccountProxy, problem: string) {
    super(`The proxy ${shownProxy(proxy)} ${problem}`)
  }
}

const unreachable = 'cannot be reached.'
const credentialsRefused = 'refused the user name and password, or requires them.'

/** A socket whose next byte goes to the target. */
export async function dialThrough(proxy: AccountProxy, target: Place, over: AbortSignal): Promise<Socket> {
  const signal = AbortSignal.any([over, AbortSignal.timeout(dialMsMax)])
  let socket: Socket | undefined
  const cut = () => socket?.destroy()
  signal.addEventListener('abort', cut)
  try {
    const [address = ''] = await checkedAddresses(proxy)
    signal.throwIfAborted()
    socket = await open(proxy, address, (opening) => {
      socket = opening
    })
    const reader = new HandshakeReader(socket)
    await (proxy.scheme === 'socks5' ? askSocks : askHttp)({ proxy, target, socket, reader })
    reader.release()
    signal.throwIfAborted()
    return socket
  } catch (error) {
    socket?.destroy()
    throw error instanceof ProxyFailed ? error : new ProxyFailed(proxy, unreachable)
  } finally {
    signal.removeEventListener('abort', cut)
  }
}

async function checkedAddresses(proxy: AccountProxy): Promise<readonly string[]> {
  const { host, allow } = proxy
  if (isIP(host) !== 0) {
    // guard: a private proxy is not dialled
    if (!allow.has(host) && !isPublic(host)) throw new ProxyFailed(proxy, blocked)
    return [host]
  }
  try {
    return await requireAddresses(host, allow)
  } catch (error) {
    const isBlocked = error instanceof HostRefused && error.problem === 'blocked_address'
    throw new ProxyFailed(proxy, isBlocked ? blocked : 'has a name that cannot be looked up.')
  }
}

const blocked = 'is at a private address, which PARLEY_PROXY_ALLOW of the service does not list.'

function open(proxy: AccountProxy, address: string, begun: (socket: Socket) => void): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = proxy.scheme === 'https' ? openTls(proxy, address, reject) : openTcp(proxy, address)
    begun(socket)
    // It stays: an error without a listener would end the process.
    socket.on('error', reject)
    socket.once('close', () => reject(new Error('closed')))
    socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => resolve(socket))
  })
}

function openTcp({ port }: AccountProxy, address: string): Socket {
  return connectTcp({ host: address, port })
}

function openTls(proxy: AccountProxy, address: string, refuse: (error: ProxyFailed) => void): Socket {
  const { host, port } = proxy
  const socket = connectTls({
    host: address,
    port,
    servername: isIP(host) === 0 ? host : '',
    rejectUnauthorized: true, // guard: certificate of a proxy
  })
  socket.once('error', () => {
    if (socket.authorizationError) refuse(new ProxyFailed(proxy, 'has a certificate that is not trusted.'))
  })
  return socket
}

interface Handshake {
  readonly proxy: AccountProxy
  readonly target: Place
  readonly socket: Socket
  readonly reader: HandshakeReader
}

/** RFC 1928, and RFC 1929 for credentials. */
async function askSocks({ proxy, target, socket, reader }: Handshake): Promise<void> {
  const { credentials } = proxy
  const [none, password] = [0, 2]
  socket.write(Buffer.from(credentials ? [5, 2, none, password] : [5, 1, none]))
  const [version, method] = await reader.take(2)
  if (version !== 5) throw new ProxyFailed(proxy, 'does not speak SOCKS5.')
  if (method === password && credentials) {
    const name = Buffer.from(credentials.username)
    const secret = Buffer.from(credentials.password)
    socket.write(Buffer.concat([Buffer.from([1, name.length]), name, Buffer.from([secret.length]), secret]))
    const [, status] = await reader.take(2)
    if (status !== 0) throw new ProxyFailed(proxy, credentialsRefused)
  } else if (method !== none) throw new ProxyFailed(proxy, credentialsRefused)
  socket.write(Buffer.concat([Buffer.from([5, 1, 0]), socksAddress(target)]))
  const [, reply, , kind] = await reader.take(4)
  if (reply !== 0) throw new ProxyFailed(proxy, `does not connect to the platform (SOCKS5 error ${reply}).`)
  // Reads and ignores the address that the proxy dials from.
  const length = kind === 1 ? 4 : kind === 4 ? 16 : ((await reader.take(1))[0] ?? 0)
  await reader.take(length + 2)
}

function socksAddress({ address, port }: Place): Buffer {
  const number = Buffer.alloc(2)
  number.writeUInt16BE(port)
  if (isIP(address) === 4) return Buffer.concat([Buffer.from([1, ...address.split('.').map(Number)]), number])
  const name = Buffer.from(address)
  return Buffer.concat([Buffer.from([3, name.length]), name, number])
}

async function askHttp({ proxy, target, socket, reader }: Handshake): Promise<void> {
  const { credentials } = proxy
  const place = `${target.address.includes(':') ? `[${target.address}]` : target.address}:${target.port}`
  const pair =
    credentials && Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')
  const lines = [
    `CONNECT ${place} HTTP/1.1`,
    `Host: ${place}`,
    ...(pair ? [`Proxy-Authorization: Basic ${pair}`] : []),
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  const head = (await reader.takeThrough('\r\n\r\n', headBytesMax)).toString('latin1')
  const [, status] = /^HTTP\/1\.[01] (\d{3})\b/.exec(head) ?? []
  if (status === '407') throw new ProxyFailed(proxy, credentialsRefused)
  if (status === undefined) throw new ProxyFailed(proxy, 'does not speak HTTP.')
  if (!status.startsWith('2'))
    throw new ProxyFailed(proxy, `does not connect to the platform (HTTP status ${status}).`)
}
