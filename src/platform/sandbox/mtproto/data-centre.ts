/** Telegram's data centres on loopback, two addresses in front of one world, for tests of the real protocol. */
import { randomBytes } from 'node:crypto'
import { type AddressInfo, createServer, type Server } from 'node:net'
import Long from 'long'
import { Crypto } from '../../mtcute-crypto.ts'
import type { HostileCase } from '../hostility.ts'
import type { World } from '../world.ts'
import { type Centre, Connection } from './connection.ts'
import { fileHandlers } from './files.ts'
import { Hostilities, hostileCases } from './hostile.ts'
import { firstDc, loginHandlers, secondDc } from './login.ts'
import { accountHandlers, helpHandlers } from './methods.ts'
import { openServerKey, processKey } from './server-key.ts'

const host = '127.0.0.1'
const connectionsMax = 2000
const portsMax = 1_000

interface Options {
  /** The port of the first address; the second uses the port after it. 0 picks free ones. */
  readonly port: number
  /** The directory of the RSA key; null is for tests in one process. */
  readonly data_dir: string | null
  /** A difference over more updates than this is too long. */
  readonly keep_updates?: number | undefined
}

export interface DataCentre {
  readonly port: number
  readonly public_pem: string
  /** The file with `public_pem`. */
  readonly key_file: string | null
  /** Makes a key that is logged in as the account, for tests that are not about logins. */
  makeKey(account_id: string): Uint8Array
  /** The transport header that a client puts in front of its messages. */
  saltOf(key_id: string): Long
  /** The devices of the open connections. */
  listDevices(): string[]
  /** The data centres of the open connections. */
  connections(): number[]
  /** From which port each client has connected so far. */
  clientPorts(): readonly number[]
  /** Replaces the salt: every client has to get the new one. */
  changeSalts(): void
  /** What the network does wrong, and when. */
  readonly hostilities: Hostilities
  /** Runs the case now, on every connection of the account. Returns how many there are. */
  strike(account_id: string, name: HostileCase): number
  close(): Promise<void>
}

export async function openDataCentre(world: World, options: Options): Promise<DataCentre> {
  const crypto = new Crypto()
  crypto.initialize()
  const { data_dir, port, keep_updates = Number.POSITIVE_INFINITY } = options
  const opened = data_dir === null ? null : openServerKey(crypto, data_dir)
  const serverKey = opened?.key ?? processKey(crypto)
  const salts = new Map<string, Long>()
  const ports = new Map<number, number>()
  const open = new Set<Connection>()
  const clientPorts: number[] = []
  const centre: Centre = {
    crypto,
    serverKey,
    handlers: {
      ...helpHandlers(() => ports),
      ...loginHandlers(world, crypto),
      ...accountHandlers(world, { keep_updates }),
      ...fileHandlers(world, () => ports),
    },
    findKey: (key_id) => world.state.auth_keys.get(key_id),
    keepKey: (entry) => world.commit(entry),
    saltOf(key_id) {
      const salt = salts.get(key_id) ?? Long.fromBytesLE([...randomBytes(8)])
      salts.set(key_id, salt)
      return salt
    },
    setSalt: (key_id, salt) => void salts.set(key_id, salt),
    hostilities: new Hostilities(),
  }
  const servers = [firstDc, secondDc].map((dc) => ({ dc, server: serve(centre, dc, { open, clientPorts }) }))
  for (const [n, { dc, server }] of servers.entries()) {
    ports.set(dc, await listen(server, port === 0 ? 0 : port + n))
  }
  const strike = (account_id: string, name: HostileCase) => {
    const struck = [...open].filter((each) => each.account_id === account_id)
    for (const each of struck) each.suffer(hostileCases[name])
    return struck.length
  }
  const { hostilities } = centre
  world.network = { strike, add: (each) => hostilities.add(each), clear: () => hostilities.clear() }
  return {
    port: ports.get(firstDc) ?? 0,
    public_pem: serverKey.public_pem,
    key_file: opened?.file ?? null,
    makeKey(account_id) {
      const key = randomBytes(256)
      const key_id = Buffer.from(crypto.sha1(key).subarray(-8)).toString('hex')
      world.commit({ entry: 'auth_key', key_id, key: key.toString('base64'), dc: firstDc, account_id })
      return key
    },
    saltOf: centre.saltOf,
    listDevices: () => [...open].flatMap(({ device }) => device ?? []),
    connections: () => [...open].map(({ dc }) => dc).sort(),
    clientPorts: () => clientPorts,
    changeSalts: () => salts.clear(),
    hostilities,
    strike,
    async close() {
      world.acceptLogin = null
      world.network = null
      for (const connection of open) connection.end()
      await Promise.all(servers.map(({ server }) => new Promise((closed) => server.close(closed))))
    },
  }
}

function serve(
  centre: Centre,
  dc: number,
  { open, clientPorts }: { open: Set<Connection>; clientPorts: number[] },
): Server {
  const server = createServer((socket) => {
    clientPorts.push(socket.remotePort ?? 0)
    // The newest are enough for a test.
    if (clientPorts.length > portsMax) clientPorts.shift()
    const connection = new Connection(centre, socket, dc)
    open.add(connection)
    connection.onEnd(() => open.delete(connection))
  })
  server.maxConnections = connectionsMax
  return server
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((listening, fail) => {
    server.once('error', fail)
    server.listen(port, host, () => listening((server.address() as AddressInfo).port))
  })
}
