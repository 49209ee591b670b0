/** The devices of all accounts: each connection that is logged in, with its session. */
import type { Account } from '../../../src/platform/sandbox/state.ts'
import {
  type Channel,
  type ChannelPostEntry,
  viewAuthors,
  viewChannel,
  viewChannelUpdate,
} from './channels.ts'
import { type Call, type Connection, refuse } from './connection.ts'
import { FileParts } from './file-parts.ts'
import type { CentreParts } from './parts.ts'
import { ServedAccount } from './served-account.ts'

export class Devices {
  readonly #parts: CentreParts
  readonly #served = new Map<Connection, ServedAccount>()
  /** By account: any of its connections may bring a part of a file. */
  readonly #files = new Map<string, FileParts>()

  constructor(parts: CentreParts) {
    this.#parts = parts
  }

  /** The account of a connection that need not get updates, such as one for files. */
  accountOf({ connection }: Call): Account {
    const { account_id } = connection.key
    return account_id === null
      ? refuse('401 AUTH_KEY_UNREGISTERED')
      : this.#parts.world.requireAccount(account_id)
  }

  /** Concurrent calls of a connection share one session, which the first of them opens. */
  async serve(call: Call): Promise<ServedAccount> {
    const { connection } = call
    const account = this.accountOf(call)
    let served = this.#served.get(connection)
    if (served?.account !== account) {
      served = new ServedAccount(this.#parts, connection, account)
      this.#served.set(connection, served)
      connection.onEnd(() => this.#served.delete(connection))
    }
    await served.connect()
    return served
  }

  filesOf({ account_id }: Account): FileParts {
    const files = this.#files.get(account_id) ?? new FileParts()
    this.#files.set(account_id, files)
    return files
  }

  /** Every device of every member gets it. */
  async pushPost(channel: Channel, post: ChannelPostEntry): Promise<void> {
    const members = [...this.#served].filter(([connection, { account }]) => {
      return connection.account_id === account.account_id && channel.account_ids.includes(account.account_id)
    })
    await Promise.all(
      members.map(([connection, { account }]) =>
        connection.push({
          _: 'updates',
          updates: [viewChannelUpdate(channel, post)],
          users: viewAuthors(this.#parts.world, account, [post]),
          chats: [viewChannel(account, channel)],
          date: this.#parts.clock.seconds(),
          seq: 0,
        }),
      ),
    )
  }
}
