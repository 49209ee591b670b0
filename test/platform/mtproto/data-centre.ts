/** Telegram's data centres on loopback, two addresses in front of one world, for tests of the real protocol. */
import { randomBytes } from 'node:crypto'
import { type AddressInfo, createServer, type Server } from 'node:net'
import Long from 'long'
import { ApiError } from '../../../src/lib/errors.ts'
import { Crypto } from '../../../src/platform/mtcute-crypto.ts'
import type { Account } from '../../../src/platform/sandbox/state.ts'
import type { World } from '../../../src/platform/sandbox/world.ts'
import { BetweenAccounts } from './between-accounts.ts'
import { chatIdOfChannel } from './channels.ts'
import { type Centre, Connection } from './connection.ts'
import { Devices } from './devices.ts'
import { dialogHandlers } from './dialog-methods.ts'
import { fileHandlers } from './files.ts'
import { helpHandlers } from './help.ts'
import { hostileCases } from './hostile.ts'
import type { HostileCase, Hostility } from './hostility.ts'
import { firstDc, openLogins, secondDc } from './login.ts'
import { accountHandlers } from './methods.ts'
import type { CentreParts } from './parts.ts'
import { ServerClock } from './server-clock.ts'
import { openServerKey, processKey } from './server-key.ts'
import { openStore, type Store } from './store.ts'
import { type Refusal, type Turn, Turns } from './turns.ts'

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

interface NewAccount {
  readonly account_id: string
  readonly name: string
  readonly phone?: string | undefined
  /** The two-step password of its logins. */
  readonly password?: string | undefined
}

interface NewChannel {
  readonly title: string
  readonly username?: string | undefined
  readonly kind?: 'channel' | 'supergroup' | undefined
  /** The accounts that are members. */
  readonly account_ids: readonly string[]
}

interface NewPost {
  readonly channel_id: number
  /** A person of the world, or a stranger. */
  readonly person_id: number
  readonly text: string
  /** Now by default. */
  readonly at?: string | undefined
}

export interface DataCentre {
  readonly world: World
  readonly store: Store
  /** The time of the servers, which a test may move. */
  readonly clock: ServerClock
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
  readonly hostilities: Turns<Hostility>
  /** Which answers are an error, and when. */
  readonly refusals: Turns<Refusal>
  /** The accounts to which a text is pushed alone, as Telegram does: core.telegram.org/constructor/updateShortMessage. */
  readonly short: Set<string>
  /** Which differences do not advance (Telethon#808), and when. */
  readonly stalls: Turns<Turn>
  /** Runs the case now, on every connection of the account. Returns how many there are. */
  strike(account_id: string, name: HostileCase): number
  /** The account scans the QR code of the newest waiting login; false if no login is waiting. */
  acceptLogin(account: Account): boolean
  addAccount(account: NewAccount): Account
  addChannel(channel: NewChannel): { channel_id: number; chat_id: number }
  /** Returns the number of the message, when every open connection of a member has it. */
  writeInChannel(post: NewPost): Promise<number>
  close(): Promise<void>
}

export async function openDataCentre(world: World, options: Options): Promise<DataCentre> {
  const crypto = new Crypto()
  crypto.initialize()
  const { data_dir, port, keep_updates = Number.POSITIVE_INFINITY } = options
  const opened = data_dir === null ? null : openServerKey(crypto, data_dir)
  const serverKey = opened?.key ?? processKey(crypto)
  const store = openStore(data_dir)
  const clock = new ServerClock()
  const salts = new Map<string, Long>()
  const ports = new Map<number, number>()
  const open = new Set<Connection>()
  const clientPorts: number[] = []
  const between = new BetweenAccounts(world)
  const stalls = new Turns<Turn>()
  const short = new Set<string>()
  const parts: CentreParts = { world, store, clock, between, crypto, ports, keep_updates, short, stalls }
  const devices = new Devices(parts)
  const logins = openLogins(parts)
  const centre: Centre = {
    crypto,
    serverKey,
    clock,
    handlers: {
      ...helpHandlers(parts),
      ...logins.handlers,
      ...accountHandlers(parts, devices),
      ...dialogHandlers(parts, devices),
      ...fileHandlers(parts, devices),
    },
    findKey: (key_id) => store.state.auth_keys.get(key_id),
    keepKey: (entry) => store.commit(entry),
    saltOf(key_id) {
      const salt = salts.get(key_id) ?? Long.fromBytesLE([...randomBytes(8)])
      salts.set(key_id, salt)
      return salt
    },
    setSalt: (key_id, salt) => void salts.set(key_id, salt),
    hostilities: new Turns(),
    refusals: new Turns(),
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
  const { hostilities, refusals } = centre
  return {
    world,
    store,
    clock,
    port: ports.get(firstDc) ?? 0,
    public_pem: serverKey.public_pem,
    key_file: opened?.file ?? null,
    makeKey(account_id) {
      const key = randomBytes(256)
      const key_id = Buffer.from(crypto.sha1(key).subarray(-8)).toString('hex')
      store.commit({ entry: 'auth_key', key_id, key: key.toString('base64'), dc: firstDc, account_id })
      return key
    },
    saltOf: centre.saltOf,
    listDevices: () => [...open].flatMap(({ device }) => device ?? []),
    connections: () => [...open].map(({ dc }) => dc).sort(),
    clientPorts: () => clientPorts,
    changeSalts: () => salts.clear(),
    hostilities,
    refusals,
    short,
    stalls,
    strike,
    acceptLogin: logins.accept,
    addAccount({ password, ...account }) {
      const added = world.addAccount(account)
      if (password !== undefined) {
        store.commit({ entry: 'password', account_id: added.account_id, password })
      }
      return added
    },
    addChannel({ title, username, kind = 'supergroup', account_ids }) {
      const channel_id = store.state.channels.size + 1
      store.commit({ entry: 'channel', channel_id, title, username: username ?? null, kind, account_ids })
      return { channel_id, chat_id: chatIdOfChannel(channel_id) }
    },
    async writeInChannel({ channel_id, person_id, text, at }) {
      const channel = store.state.channels.get(channel_id)
      if (!channel) throw new ApiError('not_found', { detail: 'There is no such channel.' })
      const post = {
        entry: 'channel_post',
        ...{ channel_id, person_id, text, message_id: channel.posts.length + 1 },
        at: at ?? new Date(clock.now()).toISOString(),
      } as const
      store.commit(post)
      await devices.pushPost(channel, post)
      return post.message_id
    },
    async close() {
      for (const connection of open) connection.end()
      await Promise.all(servers.map(({ server }) => new Promise((closed) => server.close(closed))))
      await store.close()
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
