/**
 * Telegram accounts end to end: the API in this process, a worker and the loopback data centre as processes of their own,
 * so that either can be killed, paused and measured.
 */
import { randomUUID } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { createAccount } from '../../src/capabilities/accounts/accounts.ts'
import { logIn } from '../../src/capabilities/accounts/login.ts'
import type { Gate } from '../../src/contract.ts'
import { sql } from '../../src/db/sql.ts'
import type { OpenPlatform } from '../../src/platform/module.ts'
import type { JournalEntry } from '../../src/platform/sandbox/entries.ts'
import type { NewFault } from '../../src/platform/sandbox/faults.ts'
import type { NewPerson } from '../../src/platform/sandbox/people.ts'
import { openWorld, type World } from '../../src/platform/sandbox/world.ts'
import { telegramModule } from '../../src/platform/telegram/module.ts'
import { type Patch, patchEnv } from '../faults/patch.ts'
import { endProcesses, freePort, type Parley, spawnParley, until } from '../harness/process.ts'
import { makeScratch } from '../harness/scratch.ts'
import { type Answer, openService, type Service, type Tenant } from '../harness/service.ts'
import { testSecret } from '../harness/worker.ts'
import { spawnDataCentre, telegramEnv } from './data-centre-process.ts'
import { type Ask, askAddress } from './sandbox-fixture.ts'

/** Longer than anything takes; for a hang. */
export const msMax = 240_000

interface StageOptions {
  /** Those to open beside the usual ones. */
  readonly gates?: readonly Gate[]
  readonly workPatches?: readonly Patch[]
  /** More arguments of the data centre. */
  readonly centreArgs?: readonly string[]
  /** Writes the past into the data centre's log before it starts. */
  readonly seed?: (world: World) => void
}

export class TelegramStage {
  readonly service: Service
  readonly tenant: Tenant
  readonly #options: StageOptions
  readonly #directory: string
  #ask: Ask | undefined
  #sandbox: Parley | undefined
  #worker: Parley | undefined
  #open: OpenPlatform | undefined
  #port = ''
  #accounts = 0

  constructor(parts: { service: Service; tenant: Tenant; directory: string; options: StageOptions }) {
    this.service = parts.service
    this.tenant = parts.tenant
    this.#directory = parts.directory
    this.#options = parts.options
  }

  async begin(): Promise<void> {
    const { seed } = this.#options
    if (seed) {
      const world = openWorld({ data_dir: this.centreDirectory })
      seed(world)
      await world.close()
    }
    this.#port = await freePort()
    await this.startCentre()
    await this.startWorker()
    const options = { role: 'work', data_dir: '', manual_from: undefined, failed: () => {} } as const
    this.#open = await telegramModule.open({ ...options, env: this.#telegramEnv() })
  }

  get db() {
    return this.service.app.db
  }

  get ask(): Ask {
    return existing(this.#ask)
  }

  get sandbox(): Parley {
    return existing(this.#sandbox)
  }

  get worker(): Parley {
    return existing(this.#worker)
  }

  /** Where the data centre keeps its world. */
  get centreDirectory(): string {
    return join(this.#directory, 'sandbox')
  }

  /** Of the data centre, also after it was restarted. */
  get mtprotoPort(): number {
    return Number(this.#port)
  }

  /** Always at the same port and with the same world. Its clock is right again. */
  async startCentre(): Promise<void> {
    const { centreArgs: args = [] } = this.#options
    this.#sandbox = spawnDataCentre({ data_dir: this.centreDirectory, mtproto_port: this.#port, args })
    this.#ask = askAddress(await this.sandbox.ready())
  }

  async killCentre(): Promise<void> {
    this.sandbox.signal('SIGKILL')
    await this.sandbox.ended()
  }

  #telegramEnv(): Record<string, string> {
    return telegramEnv(this.sandbox.stdout())
  }

  /** Always on the same disk: the next worker continues where a killed one stopped. */
  async startWorker(): Promise<void> {
    const env = { DATABASE_URL: this.service.database.url, PARLEY_SECRET: testSecret, ...this.#telegramEnv() }
    const args = ['work', '--port', '0', '--data-dir', join(this.#directory, 'worker')]
    this.#worker = spawnParley(args, { ...env, ...patchEnv(this.#options.workPatches ?? []) })
    await this.worker.ready()
  }

  async killWorker(): Promise<void> {
    this.worker.signal('SIGKILL')
    await this.worker.ended()
  }

  /** An account that is logged in and READY. `user` is its name at the data centre; a new user by default. */
  async account(user?: { readonly account_id: string; readonly phone: string }): Promise<string> {
    const wanted = { workspace_id: this.tenant.workspace_id, platform: 'telegram', name: 'Sales' }
    const { id } = await createAccount(this.service.app, 'system', wanted)
    const phone = user?.phone ?? `+99966${String(this.#accounts++).padStart(5, '0')}`
    if (!user) await this.ask('addAccount', { account_id: id, name: 'Sales desk', phone })
    const { platform } = existing(this.#open)
    const dialogue = { show: () => {}, ask: async () => '12345' }
    await logIn(this.service.app, 'system', { id, phone, platform, dialogue })
    await this.untilLive(id)
    return id
  }

  /** The account is READY, and its session is live. */
  async untilLive(id: string): Promise<void> {
    await until(`${id} is live`, msMax, async () => {
      const row = await this.db.maybe(sql`
        select from accounts a join account_hosts h on h.account_id = a.id
        where a.id = ${id} and a.status = 'READY' and h.observed_at is not null and h.lease_until > clock_timestamp()`)
      return row !== undefined
    })
    await this.service.settle()
  }

  async person(given: Partial<NewPerson> = {}): Promise<number> {
    const { person_id } = (await this.ask('addPerson', { name: 'Mara Lind', ...given })) as {
      person_id: number
    }
    return person_id
  }

  /** People who have written to the account, so that it has a chat with each. */
  async people(account_id: string, count: number, given: Partial<NewPerson> = {}): Promise<number[]> {
    const people: number[] = []
    for (let n = 0; n < count; n++) {
      const person_id = await this.person(given)
      await this.ask('writeMessage', { account_id, person_id, text: 'Hello, who is this?' })
      people.push(person_id)
    }
    await until(`${count} chats are stored`, msMax, async () => {
      const { known } = await this.db.one<{ known: number }>(sql`
        select count(*)::int as known from chats where account_id = ${account_id} and chat_id = any(${people}::bigint[])`)
      return known === count
    })
    return people
  }

  async fault(fault: NewFault): Promise<void> {
    await this.ask('addFault', fault)
  }

  /** Everything that the platform accepted. */
  async journal(): Promise<JournalEntry[]> {
    return ((await this.ask('readJournal', { after: 0 })) as { entries: JournalEntry[] }).entries
  }

  /** The platform has accepted no message twice. */
  async expectNothingTwice(): Promise<void> {
    const ids = (await this.journal()).flatMap(({ random_id }) => random_id ?? [])
    expect(ids).toEqual([...new Set(ids)])
  }

  send(account_id: string, person_id: number, text: string, key: string = randomUUID()): Promise<Answer> {
    return this.service.post('/messages', {
      key: this.tenant.key,
      body: { account_id, chat_id: `platform:chat:${person_id}`, text },
      headers: { 'idempotency-key': key },
    })
  }

  /** Bytes of the worker's memory. */
  async workerRss(): Promise<number> {
    const status = await readFile(`/proc/${this.worker.pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024
  }

  async close(): Promise<void> {
    await this.#open?.close()
    await endProcesses()
    await this.service.close()
    await rm(this.#directory, { recursive: true, force: true })
  }
}

export async function openTelegramStage(options: StageOptions = {}): Promise<TelegramStage> {
  const directory = await makeScratch('parley-telegram-')
  const service = await openService()
  const tenant = await service.tenant()
  await service.allow(tenant)
  await service.open(...(options.gates ?? []))
  const stage = new TelegramStage({ service, tenant, directory, options })
  await stage.begin()
  return stage
}

function existing<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('The stage has not begun.')
  return part
}

/** Watches the worker's memory while the work runs; returns the most, in bytes. */
export async function peakRss(stage: TelegramStage, work: () => Promise<void>): Promise<number> {
  let most = await stage.workerRss()
  const timer = setInterval(() => {
    // A worker that was just killed has no memory to read.
    void stage.workerRss().then(
      (bytes) => {
        most = Math.max(most, Number.isNaN(bytes) ? 0 : bytes)
      },
      () => {},
    )
  }, 50)
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
  return most
}
