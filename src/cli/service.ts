/**
 * The service: HTTP, background work and platforms, assembled from the lists that `main` passes in. This file does not know
 * which slices exist.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { findAlertUrlProblem, makeAlertLoops } from '../capabilities/alerts/alerts.ts'
import { beginsUnderSecret } from '../capabilities/audit/audit.ts'
import { declineDemo, readDemo } from '../capabilities/gates/gates.ts'
import { hasWorkspace } from '../capabilities/workspaces/workspaces.ts'
import { type Config, isLoopback } from '../config.ts'
import { openDataDirectory } from '../db/data-directory.ts'
import { findSecretUse } from '../db/secret-use.ts'
import { sql } from '../db/sql.ts'
import { buildAdminServer } from '../http/admin.ts'
import type { Server } from '../http/base.ts'
import { documentOf } from '../http/control.ts'
import type { DashboardRoutes } from '../http/dashboard.ts'
import { builtPages } from '../http/dashboard-pages.ts'
import type { Readiness } from '../http/health.ts'
import { type Place, tryPorts } from '../http/ports.ts'
import { buildServer } from '../http/server.ts'
import { Refusal } from '../lib/errors.ts'
import { collectAtRest } from '../lib/memory-at-rest.ts'
import type { MakeLoops } from '../loop.ts'
import type { OperationKind } from '../operation.ts'
import type { Control, PlatformModule } from '../platform/module.ts'
import type { Route } from '../route.ts'
import { advanceClock } from '../worker/clock.ts'
import { watchDisk } from '../worker/disk-free.ts'
import { type Running, runLoops } from '../worker/run-loops.ts'
import { undrivenLoop } from '../worker/undriven.ts'
import { assembleWorker, runWorker, type Worker } from '../worker/worker.ts'
import { type Demo, isDemo, isDemoDue, makeDemo } from './demo.ts'
import { type OpenApp, openApp } from './open.ts'
import { closePlatforms, type OpenPlatforms, openPlatforms } from './platforms.ts'
import { retryWhileAway } from './slow-database.ts'

/** What the service consists of. A new slice is a folder that adds to these lists. */
export interface Parts {
  readonly routes: readonly Route[]
  /** The dashboard's routes besides those. */
  readonly dashboard: DashboardRoutes
  readonly operations: readonly OperationKind[]
  readonly loops: readonly MakeLoops[]
  readonly platforms: readonly PlatformModule[]
  /** The folders with migrations. */
  readonly migrations: readonly string[]
}

export type Role = 'start' | 'serve' | 'work'

/** The part of its connections that requests leave to the background work: settings and alerts alone need few. */
const backgroundOf: Readonly<Record<Role, number>> = { start: 0.4, serve: 0.2, work: 0.8 }

interface ServiceOptions {
  readonly role: Role
  readonly config: Config
  readonly log: Logger
  readonly data_dir: string
  readonly port: number
  /** Undefined: this process has no admin port. */
  readonly admin_port: number | undefined
  /** Whether the first start of an embedded database makes the demo. */
  readonly demo: boolean
}

/** What `begin` returns once the service runs. */
export interface StartedService {
  readonly address: string
  readonly admin_address: string | undefined
  /** The demo, if this start made one. */
  readonly demo: Demo | undefined
  /** Whether the welcome text has to say that there is no workspace yet. */
  readonly empty: boolean
}

export class Service {
  readonly app: OpenApp
  readonly #parts: Parts
  readonly #options: ServiceOptions
  #platforms: OpenPlatforms = new Map()
  #server: Server | undefined
  #admin: Server | undefined
  #worker: Worker | undefined
  #running: Running | undefined
  #talk: { stop(): void } | undefined
  #stopCollecting: (() => void) | undefined
  #beginning: Promise<StartedService> | undefined
  #stopping = false
  #ready = false

  private constructor(app: OpenApp, parts: Parts, options: ServiceOptions) {
    this.app = app
    this.#parts = parts
    this.#options = options
  }

  /** Opens the database. The service answers nothing and runs nothing before `begin`. */
  static async open(parts: Parts, options: ServiceOptions): Promise<Service> {
    const { config, data_dir, log, role } = options
    const { routes, operations, migrations } = parts
    const problem = findAlertUrlProblem(config)
    if (problem) throw new Refusal(problem)
    await tryPorts(placesOf(options))
    // Every kind of database needs it: it holds the journals and the sandbox.
    if (role !== 'serve') await openDataDirectory(data_dir)
    const background = backgroundOf[role]
    const lists = { routes, operations, migrations }
    const app = await openApp({ config, data_dir, log, claim: 'service', background, ...lists })
    return new Service(app, parts, options)
  }

  get stopping(): boolean {
    return this.#stopping
  }

  /** If the service is stopped meanwhile, this fails or returns early, and `stop` closes what it opened. */
  begin(): Promise<StartedService> {
    this.#beginning = this.#begin()
    return this.#beginning
  }

  async #begin(): Promise<StartedService> {
    const { app } = this
    const { role, data_dir } = this.#options
    const { routes, dashboard, platforms } = this.#parts
    await this.#checkSecret()
    if (role !== 'serve') {
      // It closes again what it has opened when it fails.
      const open = () => openPlatforms(app, platforms, { role, directory: data_dir })
      this.#platforms = await this.#patiently(open)
    }
    const readiness = {
      worker: () => this.#workerState(),
      journal: () => (role === 'serve' ? 'elsewhere' : (this.#worker?.journal() ?? 'none')),
      stopping: () => this.#stopping,
    }
    const controls = (await this.#patiently(() => this.#mayControl())) ? this.#listControls() : []
    const admin_address = await this.#beginAdmin(readiness, controls)
    this.#server = await buildServer(app, role === 'work' ? [] : routes, {
      readiness,
      ...(role !== 'work' && { dashboard, pages: builtPages }),
      sources: admin_address ? controls.map((control) => documentOf(control, admin_address)) : [],
    })
    this.#requireGoing()
    const [main] = placesOf(this.#options)
    app.listensAt(await this.#server.listen(main))
    if (role === 'serve')
      this.#running = runLoops(app.background, [undrivenLoop(), ...makeAlertLoops(app.background)])
    else await this.#beginWork()
    this.#requireGoing()
    const demo = await this.#beginDemo()
    const empty = role === 'start' && !demo && !(await this.#patiently(() => hasWorkspace(app.db)))
    this.#ready = true
    this.#stopCollecting = collectAtRest()
    return { address: app.base_url(), admin_address, demo, empty }
  }

  /** Announces the stop and keeps serving for a while: load balancers watch `/readyz`. */
  async drain(seconds: number): Promise<void> {
    this.#stopping = true
    await sleep(seconds * 1000)
  }

  /** Finishes requests in flight, then the background work, then closes the database. */
  async stop(): Promise<void> {
    this.#stopping = true
    // Otherwise what is still opening would stay open.
    await this.#beginning?.catch(() => {})
    this.#stopCollecting?.()
    this.#talk?.stop()
    this.app.beginStop()
    await this.#server?.close()
    await this.#admin?.close()
    await this.#running?.stop()
    await closePlatforms(this.#platforms)
    await this.app.close()
  }

  /**
   * For what may run twice: reads, and what repeats itself. Two steps may not. A worker registers with the database and on
   * its disk in an order that only the next start may begin again. The demo makes a workspace.
   */
  #patiently<T>(step: () => Promise<T>): Promise<T> {
    return retryWhileAway(this.app, () => this.#requireGoing(), step)
  }

  /** Warns and does not refuse: an operator who has lost the secret for good can still read and send. */
  async #checkSecret(): Promise<void> {
    // If this cannot be read now, the code that needs it reports the error.
    const use = await findSecretUse(this.app.db).catch(() => undefined)
    const isForeign = use !== undefined && !this.app.secrets.isTied
    if (!isForeign && (await beginsUnderSecret(this.app).catch(() => true))) return
    this.app.log.warn(
      'PARLEY_SECRET is not the secret that this database was set up with: sessions, cursors and encrypted values, such as webhook secrets and the logins of accounts, do not work, and after a restore Parley may not recognise a repeated send',
    )
  }

  #requireGoing(): void {
    if (this.#stopping) throw new Refusal('Stopped before it was ready.')
  }

  #workerState(): string {
    if (this.#options.role === 'serve') return 'elsewhere'
    return this.#ready ? (this.#running?.problem() ?? 'ok') : 'starting'
  }

  async #beginWork(): Promise<void> {
    const { loops } = this.#parts
    const platforms = new Map([...this.#platforms].map(([name, { platform }]) => [name, platform]))
    const directory = this.#options.data_dir
    const { background } = this.app // guard: connections of the worker
    // What follows runs once: it begins when the database answers, on a connection that is open.
    await this.#patiently(() => background.db.one(sql`select 1`))
    this.#worker = await assembleWorker(background, {
      platforms,
      directory,
      loops,
      diskFree: watchDisk(directory),
    })
    this.#running = runWorker(background, this.#worker)
  }

  /** Runs first, so that the reference page can name the admin port. */
  async #beginAdmin(readiness: Readiness, controls: readonly Control[]): Promise<string | undefined> {
    const [, admin] = placesOf(this.#options)
    if (!admin) return undefined
    this.#admin = buildAdminServer(this.app, { readiness, controls })
    return this.#admin.listen(admin)
  }

  /** Only made-up people can be controlled from this machine, in the demo or if configured; never next to real ones. */
  async #mayControl(): Promise<boolean> {
    const { sandbox_control, admin_host } = this.app.config
    const real = [...this.#platforms].find(([, platform]) => platform.real)?.[0]
    if (real && sandbox_control) {
      throw new Refusal(`PARLEY_SANDBOX_CONTROL=on is for tests and cannot be combined with ${real}.`)
    }
    if (real || !isLoopback(admin_host)) return false
    return sandbox_control || (this.#wantsDemo() && (await isDemo(this.app)))
  }

  #wantsDemo(): boolean {
    const { role, demo, config } = this.#options
    return role === 'start' && demo && config.database.kind === 'embedded'
  }

  #listControls(): Control[] {
    const advance = oneAtATime((seconds: number) => {
      const clocks = [...this.#platforms.values()].flatMap(({ clock }) => clock ?? [])
      return advanceClock(this.app, { platforms: clocks, loops: this.#worker?.loops ?? [] }, seconds)
    })
    return [...this.#platforms.values()]
      .flatMap(({ control }) => control?.(this.app.config.clock === 'manual' ? advance : undefined) ?? [])
      .filter(({ calls }) => calls.length > 0)
  }

  /** The first start on an empty embedded database makes the demo. On later starts its people keep writing. */
  async #beginDemo(): Promise<Demo | undefined> {
    const { app } = this
    const { role, demo } = this.#options
    if (role === 'start' && !demo && app.config.database.kind === 'embedded') {
      await this.#patiently(() => declineDemo(app))
    }
    const stage = [...this.#platforms.values()].find((open) => open.demo)
    if (!this.#wantsDemo() || !stage?.demo) return undefined
    const isDue = await this.#patiently(() => isDemoDue(app))
    const wanted = { platform: stage.platform.name, demo: stage.demo }
    const made = isDue ? await makeDemo(app, wanted) : undefined
    const state = await this.#patiently(() => readDemo(app.db))
    if (app.config.clock === 'system' && state === 'done') this.#talk = stage.demo.keepTalking()
    return made
  }
}

/** Where it listens: the API's port, and the admin port if it has one. */
function placesOf({ config, port, admin_port }: ServiceOptions): [main: Place, ...admin: Place[]] {
  const main = { host: config.host, port }
  if (admin_port === undefined) return [main]
  const names = { host: 'PARLEY_ADMIN_HOST', port: '--admin-port' }
  return [main, { host: config.admin_host, port: admin_port, names }]
}

/** Serializes callers that move the clock. */
function oneAtATime<A, T>(work: (argument: A) => Promise<T>): (argument: A) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (argument) => {
    const turn = last.then(() => work(argument))
    last = turn.catch(() => {})
    return turn
  }
}
