/**
 * A whole installation of real processes that tests can damage: PostgreSQL, the sandbox platform as the witness, and
 * numbered `serve` and `work` processes, each with a data directory of its own.
 *
 *   const plant = await openPlant({ serves: 2, works: 2, accounts: 8 })
 *   const asked = await ask(plant, sendOf({ key, account_id, chat_id, text }))       // clients.ts
 *   await plant.work(0).kill()                              // kill -9; start(), restart(patches), pause(), resume()
 *   await plant.fault({ on: 'send', fault: 'timeout_after', account_id })
 *   await plant.postgres.crash()                            // restarts by itself; stop(), copy(), restore(), start()
 *   await plant.expireLeases()                              // as if a minute had passed for dead processes
 *   await plant.settled()
 *   expect(judge(await plant.evidence(history))).toEqual([])
 *   await plant.close()
 *
 * With `lossy` the processes reach PostgreSQL over a proxy that breaks at COMMIT (`lossy.ts`). Nothing here needs
 * vitest.
 */
import { chmod, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { changeAccount } from '../../src/capabilities/accounts/accounts.ts'
import { logIn } from '../../src/capabilities/accounts/login.ts'
import type { OpenApp } from '../../src/cli/open.ts'
import { moveClock } from '../../src/db/domain-clock.ts'
import { openDatabase } from '../../src/db/pool.ts'
import { type Database, type Db, sql } from '../../src/db/sql.ts'
import type { JournalEntry } from '../../src/platform/sandbox/entries.ts'
import type { NewFault } from '../../src/platform/sandbox/faults.ts'
import type { NewPerson } from '../../src/platform/sandbox/people.ts'
import { telegramModule } from '../../src/platform/telegram/module.ts'
import { freePort, hangMs, runParley, until } from '../harness/process.ts'
import { allow } from '../harness/role.ts'
import { makeScratch } from '../harness/scratch.ts'
import { type Lossy, type LossyOptions, openLossy } from './lossy.ts'
import { Member, readJournals } from './member.ts'
import type { CallRecord, Counter, Evidence, OperationRow, Transition } from './oracle.ts'
import type { Patch } from './patch.ts'
import { Postgres } from './postgres.ts'
import { openPlantApp, type PlantDatabase, prepareDatabase, type Tenant } from './tenant.ts'

const database = 'plant'
export const secret = 'a secret of the plant that is long enough'
/** One operation lease, one account lease, and the sweep. */
const settleMsMax = 120_000
const stillMsMax = 120_000

export interface PlantOptions {
  readonly serves?: number
  readonly works?: number
  readonly accounts?: number
  /** How many people write to every account first, so that there is a chat to answer in. */
  readonly people?: number
  readonly env?: Readonly<Record<string, string>>
  /** A deliberate bug in every `serve` and `work` process. */
  readonly patches?: readonly Patch[]
  /** The same for `work` processes only. */
  readonly workPatches?: readonly Patch[]
  readonly lossy?: LossyOptions['decide']
  /** Opens a way to the database, and returns the port of 127.0.0.1 that `serve` and `work` use instead of its socket. */
  readonly through?: ((postgres: Postgres) => Promise<number>) | undefined
  /** With `telegram` the accounts reach the same sandbox over MTProto, through its data centre. */
  readonly platform?: 'sandbox' | 'telegram'
  /** How many of the accounts do so beside those of the sandbox. */
  readonly telegramAccounts?: number
  /** Whether the data centre accepts a random id only once. */
  readonly dedupe?: 'on' | 'off'
  /** How many updates the data centre keeps for an account that is away. */
  readonly keepUpdates?: number
  /** Opens a way to the data centre's port, and returns the port that workers use instead. */
  readonly via?: (port: number) => Promise<number>
  /** The proxy of each Telegram account by its number; none by default. */
  readonly proxyOf?: (account: number) => string
  /** A checkout of older code, which sets the database up and which every `serve` and `work` process runs first. */
  readonly checkout?: string
  /** A manual clock moves only by `moveClock`. Real time by default. */
  readonly clock?: PlantDatabase['clock']
}

/** A person of the sandbox, with all their names. */
export interface PlantPerson {
  readonly person_id: number
  readonly username: string
  readonly phone: string
}

export class Plant {
  readonly directory: string
  readonly postgres: Postgres
  readonly db: Database
  readonly tenant: Tenant
  readonly lossy: Lossy | undefined
  readonly sandbox: Member
  readonly serves: readonly Member[]
  readonly works: readonly Member[]
  /** The people whom every account knows. */
  readonly people: number[] = []
  readonly #clock: PlantDatabase['clock']
  readonly #telegram: number
  readonly #options: PlantOptions
  readonly #databasePort: number | undefined
  #dcPort: number | undefined
  #app: Promise<OpenApp> | undefined
  #closing: Promise<void> | undefined

  constructor(parts: {
    directory: string
    postgres: Postgres
    db: Database
    tenant: Tenant
    lossy: Lossy | undefined
    database_port: number | undefined
    mtproto_port: string
    options: PlantOptions
  }) {
    this.directory = parts.directory
    this.postgres = parts.postgres
    this.db = parts.db
    this.tenant = parts.tenant
    this.lossy = parts.lossy
    this.#databasePort = parts.database_port
    const {
      serves = 1,
      works = 1,
      env = {},
      patches = [],
      workPatches = [],
      clock = 'system',
    } = parts.options
    const { dedupe = 'on', keepUpdates } = parts.options
    this.#options = parts.options
    this.#clock = clock
    this.#telegram = countTelegram(parts.options)
    // A port that is chosen once: a data centre that comes back is where it was.
    const kept = keepUpdates === undefined ? [] : ['--keep-updates', String(keepUpdates)]
    const isCentre = this.#telegram > 0
    const centre = isCentre ? ['--mtproto-port', parts.mtproto_port, '--dedupe', dedupe, ...kept] : []
    const member = (verb: Member['verb'], number: number) =>
      new Member({
        verb,
        isDataCentre: isCentre && verb === 'sandbox',
        number,
        data_dir: join(this.directory, `${verb}-${number}`),
        args: verb === 'sandbox' ? centre : [],
        checkout: verb === 'sandbox' ? undefined : parts.options.checkout,
        patches: { sandbox: [], serve: patches, work: [...patches, ...workPatches] }[verb],
        env: (name) => ({ PARLEY_CLOCK: clock, ...(verb !== 'sandbox' && { ...this.#env(name), ...env }) }),
      })
    this.sandbox = member('sandbox', 0)
    this.serves = Array.from({ length: serves }, (_, number) => member('serve', number))
    this.works = Array.from({ length: works }, (_, number) => member('work', number))
  }

  #env(name: string): Record<string, string> {
    return {
      DATABASE_URL: this.postgres.url(database, { name, port: this.#databasePort }),
      PARLEY_SECRET: secret,
      PARLEY_SANDBOX_URL: this.sandboxUrl,
      PARLEY_RATE_LIMIT: '1000000',
      ...(this.#telegram > 0 && { PARLEY_PROXY_ALLOW: '127.0.0.1', ...this.telegramEnv() }),
    }
  }

  /** What the data centre prints, and an application of Telegram's. */
  telegramEnv(): Record<string, string> {
    const [, port, key = ''] = /^PARLEY_TELEGRAM_DC=127.0.0.1:(\d+),(.+)$/m.exec(this.sandbox.output()) ?? []
    return {
      PARLEY_TELEGRAM_API_ID: '1',
      PARLEY_TELEGRAM_API_HASH: '0'.repeat(32),
      PARLEY_TELEGRAM_DC: `127.0.0.1:${this.#dcPort ?? port},${key}`,
    }
  }

  get sandboxUrl(): string {
    if (!this.sandbox.url) throw new Error('The sandbox is not running.')
    return this.sandbox.url
  }

  get accounts(): readonly string[] {
    return this.tenant.accounts
  }

  /** The accounts that are Telegram's. */
  get telegram(): readonly string[] {
    return this.accounts.slice(0, this.#telegram)
  }

  serve(number: number): Member {
    return requireMember(this.serves[number])
  }

  work(number: number): Member {
    return requireMember(this.works[number])
  }

  get members(): readonly Member[] {
    return [...this.serves, ...this.works]
  }

  /** The addresses that answer at this moment, as far as known. */
  get urls(): string[] {
    return this.serves.flatMap(({ url }) => url ?? [])
  }

  /** Starts everything, and waits until every account is READY and every person has written to it. */
  async begin(people: number): Promise<void> {
    await this.sandbox.start()
    const { via } = this.#options
    if (via)
      this.#dcPort = await via(
        Number(/^PARLEY_TELEGRAM_DC=127.0.0.1:(\d+)/m.exec(this.sandbox.output())?.[1]),
      )
    if (this.#telegram > 0) await this.#logIn()
    await Promise.all(this.members.map((member) => member.start()))
    await this.untilReady()
    for (let n = 0; n < people; n++) this.people.push((await this.addPerson()).person_id)
    for (const person_id of this.people) {
      await Promise.all(
        this.accounts.map((account_id) =>
          this.control('POST', '/messages', { account_id, person_id, text: 'Hello' }),
        ),
      )
    }
    await until('every chat is known', hangMs, async () => {
      const { count } = await this.db.one<{ count: number }>(sql`select count(*)::int as count from chats`)
      return count >= this.accounts.length * people
    })
  }

  /** Every account is a user of its own at the data centre, under the same id as in the sandbox. */
  async #logIn(): Promise<void> {
    const app = await this.openApp()
    const options = { role: 'work', data_dir: '', manual_from: undefined, failed: () => {} } as const
    const open = await telegramModule.open({ ...options, env: this.telegramEnv() })
    if (!open) throw new Error('Telegram is not configured.')
    for (const [n, id] of this.telegram.entries()) {
      const phone = `+99966${String(n).padStart(5, '0')}`
      const proxy = this.#options.proxyOf?.(n)
      if (proxy) await changeAccount(app, 'system', { id, proxy })
      await this.control('POST', '/accounts', { account_id: id, name: `Account ${n}`, phone })
      const dialogue = { show: () => {}, ask: async () => '12345' }
      await logIn(app, 'system', { id, phone, platform: open.platform, dialogue })
    }
    await open.close()
  }

  /** Waits until every account is READY and a living worker drives it. */
  untilReady(msMax = 60_000): Promise<boolean> {
    return until('every account is READY', msMax, async () => {
      return (await this.countReady()) === this.accounts.length
    })
  }

  async countReady(): Promise<number> {
    const { ready } = await this.db.one<{ ready: number }>(sql`
      select count(*)::int as ready from accounts a join account_hosts h on h.account_id = a.id
      where a.status = 'READY' and h.lease_until > clock_timestamp() and h.observed_at is not null`)
    return ready
  }

  async control(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.sandboxUrl}/sandbox/v1${path}`, {
      method,
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
    return (await response.json()) as Record<string, unknown>
  }

  /** Adds a person whom no account knows yet; the chat with them is `platform:chat:<person_id>`. */
  async addPerson(given: Partial<NewPerson> = {}): Promise<PlantPerson> {
    const no = process.hrtime.bigint()
    const username = `p${no.toString(36)}`
    const phone = `+88${String(no % 10n ** 12n).padStart(12, '0')}`
    const { person_id } = await this.control('POST', '/people', {
      ...{ name: 'Somebody', username, phone },
      ...given,
    })
    return { person_id: Number(person_id), username, phone }
  }

  /** Runs a verb of this code on the plant's database, as an operator does. */
  async runVerb(...args: readonly string[]): Promise<void> {
    const { code, stdout, stderr } = await runParley(args, this.#env('operator'))
    if (code !== 0) throw new Error(`parley ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`)
  }

  /** The App in this process, for an operator's actions. It migrates the database. */
  openApp(): Promise<OpenApp> {
    const url = this.postgres.url(database, { name: 'operator' })
    this.#app ??= openPlantApp({ url, secret, clock: this.#clock })
    return this.#app
  }

  /** Moves the platform's clock first, so that what people did by then is known before anything else falls due. */
  async moveClock(to: Date): Promise<void> {
    await this.control('POST', '/clock', { to: to.toISOString() })
    await moveClock(this.db, to)
  }

  async fault(fault: NewFault): Promise<void> {
    await this.control('POST', '/faults', fault)
  }

  async clearFaults(): Promise<void> {
    await this.control('DELETE', '/faults')
  }

  /** Everything that the platform accepted. */
  async journal(): Promise<JournalEntry[]> {
    return (await this.control('GET', '/journal')).entries as JournalEntry[]
  }

  operations(db: Db = this.db): Promise<OperationRow[]> {
    return db.rows<OperationRow>(sql`
      select id, kind, idempotency_key, state, reason, account_id, chat_id, random_id, attempt_no, attempt_token,
        reply_status, reply_body, reconciled,
        to_char(finished_at at time zone (select timezone from workspaces w where w.id = workspace_id), 'YYYY-MM-DD')
          as finished_on
      from operations where effect = 'platform' order by created_at, id`)
  }

  async operation(key: string): Promise<OperationRow | undefined> {
    return (await this.operations()).find(({ idempotency_key }) => idempotency_key === key)
  }

  transitions(db: Db = this.db): Promise<Transition[]> {
    return db.rows<Transition>(sql`
      select operation_id, from_state as from, to_state as to, reason, reconciled, by,
        extract(epoch from at)::float8 * 1000 as at
      from faults.transitions order by n`)
  }

  /**
   * What the platform accepted must not change while the rest is read: a message that leaves in between would be one that no
   * operation knows of.
   */
  async evidence(history: readonly CallRecord[]): Promise<Evidence> {
    let journal = await this.journal()
    return until('the platform accepts nothing while evidence is read', stillMsMax, async () => {
      const accepted = journal.length
      const recorded = await this.#recorded()
      journal = await this.journal()
      if (journal.length !== accepted) return undefined
      const alive = this.members.filter((member) => member.alive).map(({ name }) => name)
      return { ...recorded, journal, history, alive, intended: await this.#intended() }
    })
  }

  /** In one snapshot: an operation and its count are written together. */
  #recorded(): Promise<Required<Pick<Evidence, 'operations' | 'transitions' | 'counters'>>> {
    return this.db.snapshot(async (db) => ({
      operations: await this.operations(db),
      transitions: await this.transitions(db),
      counters: await db.rows<Counter>(
        sql`select account_id, day::text, sent from account_days where sent > 0`,
      ),
    }))
  }

  /** The tokens of all intended sends in the journals of all disks. */
  async #intended(): Promise<string[]> {
    const entries = await Promise.all(
      this.members.map(({ data_dir }) => readJournals(join(data_dir, 'ledger'))),
    )
    return entries
      .flat()
      .filter(({ entry }) => entry === 'intent')
      .map(({ token }) => token)
  }

  /**
   * Expires the leases of processes that are gone, so that no test waits for them: those of accounts and, by default, those of
   * attempts.
   */
  async expireLeases({ attempts = true }: { attempts?: boolean } = {}): Promise<void> {
    const names = this.members.filter(({ alive }) => alive).map(({ name }) => name)
    await this.db.run(sql`select faults.expire_leases(${names}::text[], ${attempts})`)
  }

  /** Resolves when every operation has ended; an error names those that did not. */
  async settled(msMax = settleMsMax): Promise<void> {
    let left = 'the database did not answer'
    await until('every operation has ended', msMax, async () => {
      const rows = await this.db
        .rows<{ state: string; count: number }>(sql`
          select state, count(*)::int as count from operations
          where effect = 'platform' and state in ('queued', 'submitting') group by state`)
        .catch(() => undefined)
      left = rows?.map(({ state, count }) => `${count} ${state}`).join(', ') ?? left
      return rows?.length === 0
    }).catch((cause) => {
      throw new Error(`Not settled: ${left}.`, { cause })
    })
  }

  /** Ends every process by its id and, unless `keep` is set, removes what they left. */
  close({ keep = false }: { keep?: boolean } = {}): Promise<void> {
    this.#closing ??= this.#close(keep)
    return this.#closing
  }

  async #close(keep: boolean): Promise<void> {
    const members = [...this.members, this.sandbox].filter(({ alive }) => alive)
    await Promise.all(members.map((member) => member.kill()))
    await this.lossy?.close()
    // If the app could not be opened, its caller has the error: the server ends all the same.
    const app = await this.#app?.catch(() => undefined)
    await app?.close()
    await this.db.close()
    await this.postgres.stop()
    if (!keep) await rm(this.directory, { recursive: true, force: true })
  }
}

function countTelegram({ platform, accounts = 1, telegramAccounts = 0 }: PlantOptions): number {
  return platform === 'telegram' ? accounts : telegramAccounts
}

/** That of the code which runs first: this code would migrate the database. */
async function findPreparation({ checkout }: PlantOptions): Promise<typeof prepareDatabase> {
  if (checkout === undefined) return prepareDatabase
  return (await import(join(checkout, 'test', 'faults', 'tenant.ts'))).prepareDatabase
}

function requireMember(member: Member | undefined): Member {
  if (!member) throw new Error('The plant has no such process.')
  return member
}

export async function openPlant(options: PlantOptions = {}): Promise<Plant> {
  const directory = await makeScratch('parley-plant-')
  const postgres = new Postgres(join(directory, 'database'))
  try {
    // As root: then the server runs as the user that a pooler runs as, who may use its socket.
    if (options.through) await chmod(directory, 0o755)
    await allow(join(directory, 'database'), 'createdb')
    await postgres.start()
    const url = postgres.url(database, { name: 'plant' })
    const { accounts = 1, clock = 'system' } = options
    const telegram = countTelegram(options)
    const prepare = await findPreparation(options)
    const tenant = await prepare(postgres, { database, url, secret, clock, accounts, telegram })
    const mtproto_port = await freePort()
    const lossy = options.lossy && (await openLossy({ socket: () => postgres.socket, decide: options.lossy }))
    const db = openDatabase({ connectionString: url }, { pool_size: 4 })
    const database_port = lossy?.port ?? (await options.through?.(postgres))
    const plant = new Plant({
      ...{ directory, postgres, db, tenant, lossy, database_port, mtproto_port, options },
    })
    try {
      await plant.begin(options.people ?? 2)
    } catch (error) {
      await plant.close()
      throw error
    }
    return plant
  } catch (error) {
    await postgres.stop()
    await rm(directory, { recursive: true, force: true })
    throw error
  }
}
