/** Telegram accounts for benchmarks: the loopback data centre in its own process, our adapter, and mtcute's bare client. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectTcp } from '@fuman/node'
import { IntermediatePacketCodec, MemoryStorage } from '@mtcute/core'
import { BaseTelegramClient } from '@mtcute/core/client.js'
import { createAccount } from '../src/capabilities/accounts/accounts.ts'
import { logIn } from '../src/capabilities/accounts/login.ts'
import { setGates } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { sendMessage } from '../src/capabilities/messages/send.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { createWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { type Caller, scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { requestOperation } from '../src/ledger/request.ts'
import { newId } from '../src/lib/ids.ts'
import { sha256 } from '../src/lib/secrets.ts'
import type { NewOperation } from '../src/operation.ts'
import type { OpenPlatform } from '../src/platform/module.ts'
import { Crypto } from '../src/platform/mtcute-crypto.ts'
import { telegramModule } from '../src/platform/telegram/module.ts'
import { freePort, type Parley } from '../test/harness/process.ts'
import { spawnDataCentre } from '../test/platform/data-centre-process.ts'

const apiKey = { apiId: 1, apiHash: '0'.repeat(32) }
const code = '12345'
/** How many log in at the same time. Key exchanges block the event loop, so more would time out and not be faster. */
const loginsMax = 2

export class TelegramStage {
  readonly platform: OpenPlatform['platform']
  readonly #directory: string
  readonly #port: string
  #centre: Parley
  #url: string
  #phones = 0

  private constructor(parts: {
    directory: string
    port: string
    centre: Parley
    url: string
    open: OpenPlatform
  }) {
    this.#directory = parts.directory
    this.#port = parts.port
    this.#centre = parts.centre
    this.#url = parts.url
    this.platform = parts.open.platform
  }

  static async open(): Promise<TelegramStage> {
    const directory = await mkdtemp(join(tmpdir(), 'parley-bench-telegram-'))
    const port = await freePort()
    const centre = spawnCentre(directory, port)
    const url = await centre.ready()
    const env = {
      PARLEY_TELEGRAM_API_ID: String(apiKey.apiId),
      PARLEY_TELEGRAM_API_HASH: apiKey.apiHash,
      PARLEY_TELEGRAM_DC: /^PARLEY_TELEGRAM_DC=(.+)$/m.exec(centre.stdout())?.[1] ?? '',
    }
    const open = await telegramModule.open({
      ...{ role: 'work', data_dir: '', manual_from: undefined, failed: () => {} },
      env,
    })
    if (!open) throw new Error('Telegram is not configured.')
    return new TelegramStage({ directory, port, centre, url, open })
  }

  clearFaults(): Promise<unknown> {
    return this.control('/faults', undefined, 'DELETE')
  }

  async control(path: string, body?: object, method = 'POST'): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.#url}/sandbox/v1${path}`, {
      method,
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
    return (await response.json()) as Record<string, unknown>
  }

  async addPerson(username: string): Promise<number> {
    const { person_id } = await this.control('/people', { name: 'Ada', username })
    return Number(person_id)
  }

  /** Accounts that are logged in, each known to the person, so that no message is the first to a stranger. */
  async accounts(app: OpenApp, count: number, person_id: number) {
    const { id: workspace_id } = await createWorkspace(app, 'system', { name: 'Bench' })
    const { id: user_id } = await createUser(app, 'system', { email: 'bench@example.org', workspace_id })
    const key = await createKey(app, 'system', { workspace_id, user_id, name: 'bench', scopes })
    await setGates(app, 'system', { names: ['all'], enabled: true })
    const via = {
      kind: 'key',
      id: key.id,
      name: 'bench',
      prefix: '',
      mcp_only: false,
      issued_by: 'operator',
      role: 'owner',
    } as const
    const caller: Caller = { workspace_id, user_id, scopes, via }
    const ids: string[] = []
    await this.#each(count, async () => {
      const wanted = { workspace_id, platform: 'telegram', name: 'Sales' }
      const { id } = await createAccount(app, 'system', wanted)
      const phone = await this.addUser(id)
      const dialogue = { show: () => {}, ask: async () => code }
      await logIn(app, 'system', { id, phone, platform: this.platform, dialogue })
      await this.control('/messages', { account_id: id, person_id, text: 'Hello' })
      ids.push(id)
    })
    return { caller, ids }
  }

  /** A user of the data centre. Returns the phone number that it logs in with. */
  async addUser(account_id: string): Promise<string> {
    const phone = `+99966${String(this.#phones++).padStart(5, '0')}`
    await this.control('/accounts', { account_id, name: 'Sales', phone })
    return phone
  }

  /** mtcute's client without anything of ours, connected. */
  async bareClients(count: number): Promise<BaseTelegramClient[]> {
    const clients: BaseTelegramClient[] = []
    await this.#each(count, async () => {
      const client = bareClient(Number(this.#port))
      clients.push(client)
      await client.call({ _: 'help.getConfig' })
    })
    return clients
  }

  async logInBare(client: BaseTelegramClient, phoneNumber: string): Promise<void> {
    const settings = { _: 'codeSettings' } as const
    const sent = await client.call({ _: 'auth.sendCode', phoneNumber, ...apiKey, settings })
    if (sent._ !== 'auth.sentCode') throw new Error(`auth.sendCode answered ${sent._}.`)
    const { phoneCodeHash } = sent
    await client.call({ _: 'auth.signIn', phoneNumber, phoneCodeHash, phoneCode: code })
  }

  async killCentre(): Promise<void> {
    this.#centre.signal('SIGKILL')
    await this.#centre.ended()
  }

  async startCentre(): Promise<void> {
    this.#centre = spawnCentre(this.#directory, this.#port)
    this.#url = await this.#centre.ready()
  }

  async close(): Promise<void> {
    await this.platform.close()
    await this.killCentre()
    await rm(this.#directory, { recursive: true, force: true })
  }

  async #each(count: number, work: () => Promise<void>): Promise<void> {
    let left = count
    const next = async () => {
      while (left-- > 0) await work()
    }
    await Promise.all(Array.from({ length: loginsMax }, next))
  }
}

export async function countLive(app: OpenApp): Promise<number> {
  const { live } = await app.db.one<{ live: number }>(sql`
    select count(*)::int as live from accounts a join account_hosts h on h.account_id = a.id
    where a.status = 'READY' and h.lease_until > clock_timestamp() and h.observed_at is not null`)
  return live
}

/** One send through the ledger. Returns its milliseconds, or undefined if it was not accepted. */
export async function sendOne(
  app: OpenApp,
  caller: Caller,
  { account_id, chat_id }: { account_id: string; chat_id: `${number}` },
): Promise<number | undefined> {
  const wanted: NewOperation = { account_id, chat_id, payload: { text: 'A message.', file: null } }
  const askedAt = performance.now()
  const { status } = await requestOperation(app, caller, {
    ...{ operation: sendMessage, key: newId(), fingerprint: sha256(account_id), overrides: {} },
    want: async () => wanted,
  })
  return status === 200 ? performance.now() - askedAt : undefined
}

function spawnCentre(directory: string, port: string): Parley {
  return spawnDataCentre({ data_dir: directory, mtproto_port: port })
}

function bareClient(port: number): BaseTelegramClient {
  const main = { id: 2, ipAddress: '127.0.0.1', port, ipv6: false, mediaOnly: false, testMode: false }
  const client = new BaseTelegramClient({
    ...apiKey,
    crypto: new Crypto(),
    platform: {
      beforeExit: () => () => {},
      log: () => {},
      getDefaultLogLevel: () => null,
      getDeviceModel: () => 'Bench',
    },
    transport: {
      packetCodec: () => new IntermediatePacketCodec(),
      connect: ({ ipAddress, port }) => connectTcp({ address: ipAddress, port }),
    },
    storage: new MemoryStorage(),
    defaultDcs: { main, media: main },
    logLevel: 0,
    updates: false,
    network: { middlewares: [] },
  })
  client.onError.add(() => {})
  return client
}
