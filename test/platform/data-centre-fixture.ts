/** The sandbox's data centre in this process, and an mtcute client for it: one client is one connection. */
import { setTimeout as sleep } from 'node:timers/promises'
import { connectTcp } from '@fuman/node'
import {
  IntermediatePacketCodec,
  type IPacketCodec,
  MemoryStorage,
  type TelegramTransport,
  tl,
} from '@mtcute/core'
import { BaseTelegramClient } from '@mtcute/core/client.js'
import { addPublicKey } from '@mtcute/core/utils.js'
import Long from 'long'
import { onTestFinished } from 'vitest'
import { Crypto } from '../../src/platform/mtcute-crypto.ts'
import type { Platform } from '../../src/platform/port.ts'
import { writeMessage } from '../../src/platform/sandbox/person-acts.ts'
import { openWorld, type World } from '../../src/platform/sandbox/world.ts'
import { telegramPlatform } from '../../src/platform/telegram/adapter.ts'
import { type DataCentre, openDataCentre } from './mtproto/data-centre.ts'

export const apiKey = { apiId: 1, apiHash: 'x' }

interface StageOptions {
  readonly dedupe?: boolean
  readonly keep_updates?: number
  readonly data_dir?: string
}

export interface Stage {
  readonly world: World
  readonly centre: DataCentre
  /** A client, logged in as the account if it is named. */
  client(account_id?: string, storage?: MemoryStorage): Client
  close(): Promise<void>
}

export async function openStage({
  dedupe = false,
  keep_updates,
  data_dir,
}: StageOptions = {}): Promise<Stage> {
  const world = openWorld({ data_dir: data_dir ?? null, dedupe })
  const centre = await openDataCentre(world, { port: 0, data_dir: data_dir ?? null, keep_updates })
  trust(centre.public_pem)
  const clients: Client[] = []
  return {
    world,
    centre,
    client(account_id, storage = new MemoryStorage()) {
      if (account_id !== undefined) storage.authKeys.set(2, centre.makeKey(account_id))
      const client = new Client(centre.port, storage)
      clients.push(client)
      return client
    },
    async close() {
      for (const client of clients) await client.close()
      await centre.close()
      await world.close()
    },
  }
}

/** A stage with one account, a client of it, and Mara, a person it may look up. It closes with the test. */
export async function setScene(options: StageOptions = {}) {
  const stage = await openStage(options)
  onTestFinished(() => stage.close())
  const { world } = stage
  const account_id = 'acc_one'
  world.addAccount({ account_id, name: 'Sales desk' })
  const { person_id } = world.addPerson({ name: 'Mara Lind', username: 'mara_lind', phone: '+4420' })
  const write = (text: string) => writeMessage(world, { account_id, person_id, text })
  return { stage, world, account_id, person_id, write, client: stage.client(account_id) }
}

/** Our own adapter, at a data centre on this machine. */
export function telegramAt(port: number): Platform {
  const test_dc = { id: 2, ipAddress: '127.0.0.1', port, ipv6: false, mediaOnly: false, testMode: false }
  return telegramPlatform({ api_id: 1, api_hash: '0'.repeat(32), test_dc }, { paceMs: 0, doubtMs: 0 })
}

export function trust(public_pem: string): void {
  const crypto = new Crypto()
  crypto.initialize()
  addPublicKey(crypto, public_pem)
}

export class Client {
  readonly storage: MemoryStorage
  readonly inner: BaseTelegramClient
  /** Everything that was pushed, in order. */
  readonly pushed: tl.TypeUpdate[] = []
  /** The first connection is over. */
  readonly ended: Promise<void>
  readonly #closed: Promise<never>
  readonly #written: (() => Promise<void>)[] = []
  #over = false

  constructor(
    port: number,
    storage: MemoryStorage,
    codec: () => IPacketCodec = () => new IntermediatePacketCodec(),
  ) {
    this.storage = storage
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    const main = { id: 2, ipAddress: '127.0.0.1', port, ipv6: false, mediaOnly: false, testMode: false }
    this.inner = new BaseTelegramClient({
      ...apiKey,
      crypto: new Crypto(),
      platform: {
        beforeExit: () => () => {},
        log: () => {},
        getDefaultLogLevel: () => null,
        getDeviceModel: () => 'Test',
      },
      transport: transport(codec, { over: resolve, written: (again) => this.#written.push(again) }),
      storage,
      storageOptions: { cleanup: false },
      defaultDcs: { main, media: main },
      logLevel: 0,
      updates: false,
      reconnectionStrategy: () => false,
      network: { middlewares: [], connectionCount: () => 1 },
    })
    this.inner.onError.add(() => {})
    this.inner.onServerUpdate.add((container) => {
      if ('updates' in container) this.pushed.push(...container.updates)
      if (container._ === 'updateShort') this.pushed.push(container.update)
    })
    this.#closed = promise.then(() => {
      throw new Error('The connection is over.')
    })
    this.#closed.catch(() => {})
  }

  call<T extends tl.RpcMethod>(request: T): Promise<tl.RpcCallReturn[T['_']]> {
    const answer = this.inner.call(request)
    answer.catch(() => {})
    return Promise.race([answer, this.#closed])
  }

  /** The name of the error that the call rejects with. */
  async error(request: tl.RpcMethod): Promise<string> {
    const error: unknown = await this.call(request).then(
      () => 'accepted',
      (thrown) => thrown,
    )
    if (!tl.RpcError.is(error)) return String(error)
    // mtcute removes the number from the names it knows.
    const { code, text, ...more } = error as tl.RpcError & Record<string, unknown>
    return `${code} ${text.replace('%d', String(Object.values(more).find((each) => typeof each === 'number')))}`
  }

  /** Writes everything again that was written since the connection was made, byte for byte. */
  async repeatWrites(): Promise<void> {
    for (const again of this.#written.splice(0)) await again()
  }

  state() {
    return this.call({ _: 'updates.getState' })
  }

  async close(): Promise<void> {
    if (this.#over) return
    this.#over = true
    await this.inner.destroy()
  }
}

interface Watch {
  /** A connection that was open has ended. */
  over(): void
  /** How to write these bytes again. */
  written(again: () => Promise<void>): void
}

function transport(packetCodec: () => IPacketCodec, { over, written }: Watch): TelegramTransport {
  return {
    packetCodec,
    async connect({ ipAddress, port }) {
      const connection = await connectTcp({ address: ipAddress, port })
      const read = connection.read.bind(connection)
      connection.read = async (into) => {
        try {
          return await read(into)
        } catch (error) {
          over()
          throw error
        }
      }
      const write = connection.write.bind(connection)
      let isTagged = false
      connection.write = async (bytes) => {
        const copy = bytes.slice()
        // The first bytes name the transport and are not a frame.
        if (isTagged) written(() => write(copy))
        isTagged = true
        await write(bytes)
      }
      return connection
    },
  }
}

/** The person as the client knows them after looking their username up. */
export async function lookUp(client: Client, username: string): Promise<tl.RawInputPeerUser> {
  const { users } = await client.call({ _: 'contacts.resolveUsername', username })
  const [user] = users
  if (user?._ !== 'user') throw new Error(`There is no ${username}.`)
  return { _: 'inputPeerUser', userId: user.id, accessHash: user.accessHash ?? Long.ZERO }
}

export function textOf(
  peer: tl.TypeInputPeer,
  message: string,
  random: number,
): tl.messages.RawSendMessageRequest {
  return { _: 'messages.sendMessage', peer, message, randomId: Long.fromNumber(random) }
}

/** Waits for a state, however long it takes; the limit is for a hang. */
export async function until(holds: () => boolean): Promise<void> {
  for (let n = 0; n < 6000 && !holds(); n++) await sleep(5)
  if (!holds()) throw new Error('The state was not reached.')
}
