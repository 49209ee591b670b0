/** The background work in this process: its own sandbox world, and a worker that drives accounts in it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAccount } from '../../src/capabilities/accounts/accounts.ts'
import { createKey } from '../../src/capabilities/keys/keys.ts'
import { createUser } from '../../src/capabilities/users/users.ts'
import { createWorkspace } from '../../src/capabilities/workspaces/workspaces.ts'
import { makeLogger } from '../../src/cli/log.ts'
import { type OpenApp, openApp } from '../../src/cli/open.ts'
import { readConfig } from '../../src/config.ts'
import { scopes } from '../../src/contract.ts'
import { sql } from '../../src/db/sql.ts'
import { loops } from '../../src/lists/loops.ts'
import { operations } from '../../src/lists/operations.ts'
import { routes } from '../../src/lists/routes.ts'
import type { NewFault } from '../../src/platform/sandbox/faults.ts'
import { writeMessage } from '../../src/platform/sandbox/person-acts.ts'
import { type LocalSandbox, openLocalSandbox } from '../../src/platform/sandbox/sandbox.ts'
import type { Route } from '../../src/route.ts'
import type { Running } from '../../src/worker/run-loops.ts'
import { assembleWorker, runWorker } from '../../src/worker/worker.ts'
import { hangMs, until } from './process.ts'
import { openService, type Service, type Tenant } from './service.ts'

export const testSecret = 'a secret for tests that is long enough'

/** Another process on the same database, as far as the database can tell. */
export function openNeighbour(url: string, env: Readonly<Record<string, string>> = {}): Promise<OpenApp> {
  return openApp({
    config: readConfig({ DATABASE_URL: url, PARLEY_SECRET: testSecret, ...env }),
    data_dir: '',
    log: makeLogger('silent'),
    claim: 'service',
    operations,
    routes,
  })
}

interface StoredMessage {
  readonly chat_id: string
  readonly id: string
  readonly text: string
  readonly deleted: boolean
}

interface StoredEvent {
  readonly sequence: number
  readonly type: string
  readonly data: { readonly account_id: string; readonly message: { readonly id: string } }
}

/** A service with its background work, and the people its accounts talk to. */
export class Workplace {
  readonly service: Service
  readonly sandbox: LocalSandbox
  /** The disk of its workers. */
  readonly directory: string
  readonly #workers = new Set<Running>()

  constructor(service: Service, sandbox: LocalSandbox, directory: string) {
    this.service = service
    this.sandbox = sandbox
    this.directory = directory
  }

  get db() {
    return this.service.app.db
  }

  /** Starts the background work in the given process; the first one is the service's own. */
  async work(app: OpenApp = this.service.app, directory = this.directory, own = loops): Promise<Running> {
    const platforms = new Map([['sandbox' as const, this.sandbox.platform]])
    const parts = { platforms, directory, loops: own }
    const worker = runWorker(app, await assembleWorker(app, parts))
    this.#workers.add(worker)
    return { ...worker, stop: () => this.#stop(worker) }
  }

  async #stop(worker: Running): Promise<void> {
    if (this.#workers.delete(worker)) await worker.stop()
  }

  /** A new account, not connected yet. */
  async account(tenant: Tenant, name = 'Sales'): Promise<string> {
    const { workspace_id } = tenant
    const account = await createAccount(this.service.app, 'system', {
      workspace_id,
      platform: 'sandbox',
      name,
    })
    return account.id
  }

  async connected(tenant: Tenant, name?: string): Promise<string> {
    const account_id = await this.account(tenant, name)
    await this.untilStatus(account_id, 'READY')
    await this.service.settle()
    return account_id
  }

  person(name = 'Mara'): number {
    return this.sandbox.world.addPerson({ name }).person_id
  }

  /** A person writes; returns the message's number. */
  write(account_id: string, person_id: number, text: string): string {
    return String(writeMessage(this.sandbox.world, { account_id, person_id, text }))
  }

  fault(fault: NewFault): void {
    this.sandbox.world.addFault(fault)
  }

  async status(account_id: string): Promise<string> {
    const row = await this.db.one<{ status: string }>(
      sql`select status from accounts where id = ${account_id}`,
    )
    return row.status
  }

  untilStatus(account_id: string, status: string, msMax = hangMs): Promise<boolean> {
    return until(
      `${account_id} is ${status}`,
      msMax,
      async () => (await this.status(account_id)) === status || undefined,
    )
  }

  messages(account_id: string): Promise<StoredMessage[]> {
    return this.db.rows<StoredMessage>(sql`
      select chat_id, id, text, deleted_at is not null as deleted
      from messages where account_id = ${account_id} order by id`)
  }

  untilStored(account_id: string, count: number, msMax = hangMs): Promise<StoredMessage[]> {
    return until(`${count} messages are stored`, msMax, async () => {
      const rows = await this.messages(account_id)
      return rows.length >= count ? rows : undefined
    })
  }

  /** All events, once the outbox is empty. */
  events(workspace_id: string): Promise<StoredEvent[]> {
    return until('every event has its place', hangMs, async () => {
      const { waiting } = await this.db.one<{ waiting: boolean }>(
        sql`select exists (select from outbox) as waiting`,
      )
      return (
        !waiting &&
        this.db.rows<StoredEvent>(sql`
          select sequence::int, type, data from events
          where workspace_id = ${workspace_id} order by sequence`)
      )
    })
  }

  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => this.#stop(worker)))
    await this.sandbox.close()
    await this.service.close()
    await rm(this.directory, { recursive: true, force: true })
  }
}

interface WorkplaceOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly manual_from?: Date
  readonly routes?: readonly Route[]
  /** Where it listens; any free port by default. */
  readonly port?: number
}

export async function openWorkplace({
  env = {},
  manual_from,
  routes: own = [],
  port = 0,
}: WorkplaceOptions = {}): Promise<Workplace> {
  const service = await openService({ env, routes: own, port })
  const failed = (error: unknown) => {
    throw error
  }
  const sandbox = await openLocalSandbox({ data_dir: null, manual_from, failed })
  return new Workplace(service, sandbox, await mkdtemp(join(tmpdir(), 'parley-work-')))
}

/** A workspace with a user and a key, created as an operator would. */
export async function seedTenant(app: OpenApp): Promise<Tenant> {
  const workspace = await createWorkspace(app, 'system', { name: 'Acme' })
  const workspace_id = workspace.id
  const user = await createUser(app, 'system', { email: `${workspace_id}@acme.example`, workspace_id })
  const { key, id } = await createKey(app, 'system', { workspace_id, user_id: user.id, name: 'test', scopes })
  return { workspace_id, user_id: user.id, key, key_id: id }
}
