/** Where a story happens: its own database, a sandbox world, workers, and two clocks that only the story moves. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setAllowed, setGates } from '../../src/capabilities/gates/gates.ts'
import { createKey } from '../../src/capabilities/keys/keys.ts'
import { createUser } from '../../src/capabilities/users/users.ts'
import { createWorkspace } from '../../src/capabilities/workspaces/workspaces.ts'
import { makeLogger } from '../../src/cli/log.ts'
import { type OpenApp, openApp } from '../../src/cli/open.ts'
import { readConfig } from '../../src/config.ts'
import { moveClock } from '../../src/db/domain-clock.ts'
import { sql } from '../../src/db/sql.ts'
import { operations } from '../../src/lists/operations.ts'
import { type LocalSandbox, openLocalSandbox } from '../../src/platform/sandbox/sandbox.ts'
import type { Random } from '../faults/random.ts'
import { administer, type Cluster, dropFrom, planOnce } from '../harness/cluster.ts'
import { Erased } from './erased.ts'
import { Hands } from './hands.ts'
import { Persons } from './persons.ts'
import { Schedule } from './schedule.ts'
import type { Disk } from './sim-worker.ts'

const morning = new Date('2026-11-02T09:00:00Z')

interface SimTenant {
  readonly workspace_id: string
  readonly user_id: string
  readonly key_id: string
}

export class Place {
  readonly app: OpenApp
  readonly sandbox: LocalSandbox
  readonly schedule: Schedule
  readonly persons: Persons
  readonly hands: Hands
  /** Undefined: nobody is erased in this story. */
  readonly erased: Erased | undefined
  readonly tenant: SimTenant
  readonly log: string[]
  readonly #cluster: Cluster
  readonly #name: string
  readonly #directory: string
  /** Accounts that are to be shown a gap, after which they list all their dialogs again. */
  readonly gaps = new Set<string>()
  /** Domain time. */
  now = morning
  /** The tied people of the time when an older copy was made. */
  #tiedThen: ReadonlySet<number> | undefined
  #ids = 0
  #disks = 0

  constructor(parts: {
    app: OpenApp
    sandbox: LocalSandbox
    schedule: Schedule
    hands: Hands
    erased: Erased | undefined
    tenant: SimTenant
    log: string[]
    cluster: Cluster
    name: string
    directory: string
  }) {
    this.app = parts.app
    this.sandbox = parts.sandbox
    this.schedule = parts.schedule
    this.persons = new Persons(parts.sandbox.world, () => this.now)
    this.hands = parts.hands
    this.erased = parts.erased
    this.tenant = parts.tenant
    this.log = parts.log
    this.#cluster = parts.cluster
    this.#name = parts.name
    this.#directory = parts.directory
  }

  get db() {
    return this.app.db
  }

  /** Ids in the order of the calls, the same in every run. */
  newId = (): string => `00000000-0000-7000-8000-${(++this.#ids).toString(16).padStart(12, '0')}`

  newDisk(): Disk {
    const name = `disk ${++this.#disks}`
    return { name, directory: join(this.#directory, String(this.#disks)) }
  }

  /** Moves real time: leases, timers, deadlines. */
  async pass(ms: number): Promise<void> {
    this.schedule.pass(ms)
    await this.db.run(
      sql`update simulated_time set at = ${morning}::timestamptz + make_interval(secs => ${this.schedule.now / 1000})`,
    )
  }

  /** Moves domain time, and lets people do what is due by then. */
  async advance(to: Date): Promise<void> {
    this.now = to
    await moveClock(this.db, to)
    await this.sandbox.run(to)
    await this.schedule.quiet()
  }

  get isCopied(): boolean {
    return this.#tiedThen !== undefined
  }

  /** Makes a copy of the database, as a backup is. */
  async copy(): Promise<void> {
    await copyDatabase(this.#cluster, this.#name, this.#copy)
    this.#tiedThen = new Set(this.persons.tied)
  }

  /** Puts the copy in the place of the database; the clocks go on. Nothing may be using it. */
  async goBack(): Promise<void> {
    await this.erased?.goBack(this.sandbox.world.state.journal.length)
    await dropFrom(this.#cluster, this.#name)
    await copyDatabase(this.#cluster, this.#copy, this.#name)
    await this.pass(0)
    await moveClock(this.db, this.now)
    // What accounts have learned since is forgotten.
    this.persons.forget(this.#tiedThen ?? new Set())
  }

  get #copy(): string {
    return `${this.#name}_copy`
  }

  async close(): Promise<void> {
    await this.sandbox.close()
    await this.app.close()
    await dropFrom(this.#cluster, this.#name)
    await dropFrom(this.#cluster, this.#copy)
    await rm(this.#directory, { recursive: true, force: true })
  }
}

/** A database that is in use cannot be copied: its connections end, and the pool makes new ones. */
async function copyDatabase(cluster: Cluster, from: string, to: string): Promise<void> {
  await administer(
    cluster,
    `alter database ${from} allow_connections false`,
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${from}'`,
    `create database ${to} template ${from}`,
    `alter database ${from} allow_connections true`,
    planOnce(to),
  )
}

/** In memory if possible: the journals are flushed with every message. */
async function makeDirectory(): Promise<string> {
  return mkdtemp('/dev/shm/parley-simulation-').catch(() => mkdtemp(join(tmpdir(), 'parley-simulation-')))
}

export async function openPlace(cluster: Cluster, seed: number, random: Random): Promise<Place> {
  const name = `simulation_${process.pid}_${seed}`
  await dropFrom(cluster, name)
  await administer(cluster, `create database ${name} template ${cluster.template}`, planOnce(name))
  const { host, user, password } = cluster
  const log: string[] = []
  const app = await openApp({
    config: readConfig({
      DATABASE_URL: `postgres://${user}:${password}@localhost/${name}?host=${encodeURIComponent(host)}`,
      PARLEY_SECRET: 'a secret for tests that is long enough',
      PARLEY_CLOCK: 'manual',
    }),
    data_dir: '',
    log: makeLogger('info', { write: (line) => void log.push(line) }),
    claim: 'service',
    operations,
    routes: [],
  })
  const failed = (error: unknown) => {
    throw error
  }
  const sandbox = await openLocalSandbox({ data_dir: null, seed, manual_from: morning, failed })
  await prepareDatabase(app)
  const tenant = await makeTenant(app)
  const directory = await makeDirectory()
  const schedule = new Schedule(random.fork('sources'))
  const hands = new Hands(sandbox.world, random.fork('hidden'))
  // One story in four erases people.
  const erased = seed % 4 === 0 ? new Erased(app.db) : undefined
  return new Place({ app, sandbox, schedule, hands, erased, tenant, log, cluster, name, directory })
}

/** Both clocks start at the same time, and nothing changes the tables by itself. */
async function prepareDatabase({ db }: OpenApp): Promise<void> {
  await db.run(sql`update manual_clock set at = ${morning}::timestamptz`)
  await db.run(sql`insert into simulated_time (at) values (${morning}::timestamptz)`)
  await db.pool.query(`do $$ declare t record; begin
    for t in select oid::regclass as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
    loop execute format('alter table %s set (autovacuum_enabled = off)', t.name); end loop; end $$`)
}

async function makeTenant(app: OpenApp): Promise<SimTenant> {
  const { id: workspace_id } = await createWorkspace(app, 'system', { name: 'Acme' })
  const { id: user_id } = await createUser(app, 'system', { email: 'ada@acme.example', workspace_id })
  await setGates(app, 'system', { names: ['all'], enabled: true })
  await setGates(app, 'system', { names: ['extended'], enabled: true })
  await setAllowed(app, 'system', { list: 'campaign_user', id: user_id, allowed: true })
  await setAllowed(app, 'system', { list: 'campaign_workspace', id: workspace_id, allowed: true })
  const key = { workspace_id, user_id, name: 'A program', scopes: ['send'] }
  const { id: key_id } = await createKey(app, 'system', key)
  return { workspace_id, user_id, key_id }
}
