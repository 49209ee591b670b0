/** One more client of an account, for the files of one data centre. Its end does not affect the session. */
import type { ITelegramStorageProvider, tl } from '@mtcute/core'
import type { BasicDcOption } from '@mtcute/core/utils.js'
import type { Client } from './client.ts'
import { findErrorText, Refused } from './errors.ts'
import type { MediaKeys } from './media-keys.ts'

/** What downloads need of their session. */
export interface MediaOwner {
  readonly keys: MediaKeys
  self_id(): string
  /** Over the session's own connection. An error that says the account is in trouble ends the session. */
  call<T extends tl.RpcMethod>(request: T): Promise<tl.RpcCallReturn[T['_']]>
  /** With the session's transport: its lease, its way to Telegram. */
  openClient(options: MediaClientOptions): Client
}

interface MediaClientOptions {
  readonly storage: ITelegramStorageProvider
  /** Null: the account's own data centre. */
  readonly dc: BasicDcOption | null
  ended(): void
}

const partMsMax = 20_000 // limit: part of a file
const idleMs = 30_000 // limit: idle media connection

/** When it begins, and once more if the data centre forgets the login. */
const joinsMax = 2

export class MediaLine {
  readonly #owner: MediaOwner
  readonly #dc: number
  readonly #opened: Promise<Client>
  #client: Client | undefined
  #storage: ITelegramStorageProvider | undefined
  #joining: Promise<void> | undefined
  #joins = 0
  #idle: NodeJS.Timeout | undefined
  #reading = 0
  isOver = false

  constructor(owner: MediaOwner, dc: number) {
    this.#owner = owner
    this.#dc = dc
    this.#opened = this.#open().catch((error) => {
      this.end()
      throw error
    })
    this.#opened.catch(() => {})
  }

  async read(location: tl.TypeInputFileLocation, offset: number, limit: number): Promise<Uint8Array> {
    this.#reading++
    clearTimeout(this.#idle)
    try {
      const client = await this.#opened
      const answer = await this.#call(client, { _: 'upload.getFile', location, offset, limit })
      // Only a client that asks for it is sent to a CDN.
      if (answer._ !== 'upload.file') throw new Error('Telegram answered with something other than a part.')
      return answer.bytes
    } finally {
      if (--this.#reading === 0 && !this.isOver) this.#idle = setTimeout(() => this.end(), idleMs).unref()
    }
  }

  /** Exports the account's login once more if the data centre has forgotten it. */
  async #call<T extends tl.RpcMethod>(client: Client, request: T): Promise<tl.RpcCallReturn[T['_']]> {
    try {
      return await client.call(request, partMsMax)
    } catch (error) {
      const isForgotten =
        findErrorText(error) === 'AUTH_KEY_UNREGISTERED' && !this.#owner.keys.isOwn(this.#dc)
      if (!isForgotten || this.#joins >= joinsMax) throw error
      await this.#join(client)
      return client.call(request, partMsMax)
    }
  }

  async #open(): Promise<Client> {
    const { keys } = this.#owner
    const isOwn = keys.isOwn(this.#dc)
    const dc = isOwn ? null : await this.#findDc()
    const storage = isOwn ? keys.ownStorage() : keys.foreignStorage(this.#dc)
    this.#storage = storage
    if (this.isOver) throw new Error('The download is over.')
    const client = this.#owner.openClient({ storage, dc, ended: () => this.end() })
    this.#client = client
    await client.connect()
    if (!isOwn && !keys.has(this.#dc)) await this.#join(client)
    return client
  }

  async #findDc(): Promise<BasicDcOption> {
    const { dcOptions } = await this.#owner.call({ _: 'help.getConfig' })
    const found = dcOptions.find(
      ({ id, ipv6, cdn, tcpoOnly, mediaOnly }) => id === this.#dc && !ipv6 && !cdn && !tcpoOnly && !mediaOnly,
    )
    if (!found) throw new Refused('file_unavailable')
    const { id, ipAddress, port } = found
    return { id, ipAddress, port, ipv6: false, mediaOnly: false, testMode: false }
  }

  /** Exports the account's login to another data centre. Telegram rations it, so parts that ask together share it, and the key is kept. */
  #join(client: Client): Promise<void> {
    this.#joins++
    this.#joining ??= this.#bringLogin(client).finally(() => {
      this.#joining = undefined
    })
    return this.#joining
  }

  async #bringLogin(client: Client): Promise<void> {
    const { id, bytes } = await this.#owner.call({ _: 'auth.exportAuthorization', dcId: this.#dc })
    await client.call({ _: 'auth.importAuthorization', id, bytes }, partMsMax)
    if (this.#storage) await this.#owner.keys.keep(this.#dc, this.#storage)
  }

  end(): void {
    if (this.isOver) return
    this.isOver = true
    clearTimeout(this.#idle)
    this.#client?.end('The download is over.')
  }
}
