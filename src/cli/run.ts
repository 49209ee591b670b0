/** The long-running verbs: everything at once, HTTP only, or background only. */
import { type Command, Option } from 'commander'
import type { App } from '../app.ts'
import { readDemo } from '../capabilities/gates/gates.ts'
import { readConfig } from '../config.ts'
import type { Server } from '../http/base.ts'
import { buildServer } from '../http/server.ts'
import { loops } from '../loops.ts'
import { operations } from '../operations.ts'
import type { Control } from '../platform/module.ts'
import { routes } from '../routes.ts'
import { advanceClock } from '../worker/clock.ts'
import type { Running } from '../worker/run-loops.ts'
import { assembleWorker, runWorker, type Worker } from '../worker/worker.ts'
import { type Demo, makeDemo } from './demo.ts'
import { makeLogger } from './log.ts'
import { type OpenApp, openApp } from './open.ts'
import { write } from './output.ts'
import {
  closePlatforms,
  type OpenPlatforms,
  openPlatforms,
  platformModules,
  platformVariables,
} from './platforms.ts'
import { port, type Shared } from './verbs.ts'

type Role = 'start' | 'serve' | 'work'
interface RunOptions extends Shared {
  readonly port: number
  readonly demo?: boolean
}

/** After this long in-flight work is cut off, so that a supervisor does not have to. */
const stopMsMax = 30_000

export function addRunVerbs(program: Command): void {
  const verbs: readonly [Role, string][] = [
    ['start', 'everything in one process: HTTP, background work, and the sandbox'],
    ['serve', 'HTTP only'],
    ['work', 'background work only; the port answers /healthz and /readyz'],
  ]
  for (const [role, description] of verbs) {
    const command = program
      .command(role)
      .description(description)
      .addOption(new Option('--port <port>', '0 picks a free one').default(8080).argParser(port))
      .action((_, given: Command) => run(role, given.optsWithGlobals<RunOptions>()))
    if (role === 'start') command.option('--no-demo', 'start empty, with every gate off')
  }
}

interface Service {
  readonly role: Role
  readonly app: OpenApp
  readonly options: RunOptions
  platforms: OpenPlatforms
  server?: Server
  worker?: Worker
  running?: Running
  talk?: { stop(): void }
  stopping: boolean
  ready: boolean
}

async function run(role: Role, options: RunOptions): Promise<void> {
  const config = readConfig(process.env, platformVariables)
  const log = makeLogger(config.log_level)
  const app = await openApp({ config, data_dir: options.dataDir, log, claim: 'service', routes })
  const platforms: OpenPlatforms = new Map()
  const service: Service = { role, app, options, platforms, stopping: false, ready: false }
  const stopped = stopOnSignal(service)
  try {
    await begin(service)
  } catch (error) {
    await stop(service)
    throw error
  }
  const failure = await stopped
  if (failure) throw failure
}

async function begin(service: Service): Promise<void> {
  const { role, app, options } = service
  if (role !== 'serve') {
    service.platforms = await openPlatforms(app, platformModules, { role, directory: options.dataDir })
  }
  service.server = await buildServer(app, role === 'work' ? [] : routes, {
    readiness: {
      worker: () => {
        if (role === 'serve') return 'elsewhere'
        return service.ready ? (service.running?.problem() ?? 'ok') : 'starting'
      },
      stopping: () => service.stopping,
    },
    controls: listControls(service),
  })
  const address = await service.server.listen({ host: app.config.host, port: options.port })
  if (role !== 'serve') {
    const platforms = new Map([...service.platforms].map(([name, { platform }]) => [name, platform]))
    service.worker = await assembleWorker(app, { platforms, directory: options.dataDir, operations, loops })
    service.running = runWorker(app, service.worker)
  }
  const demo = await beginDemo(service)
  service.ready = true
  greet(app, app.config.base_url ?? address, demo)
}

function listControls(service: Service): Control[] {
  const { app } = service
  const platforms = [...service.platforms.values()]
  const timed = () => ({
    platforms: platforms.flatMap(({ clock }) => clock ?? []),
    loops: service.worker?.loops ?? [],
  })
  const advance = oneAtATime((seconds: number) => advanceClock(app, timed(), seconds))
  return platforms
    .flatMap(({ control }) => control?.(app.config.clock === 'manual' ? advance : undefined) ?? [])
    .filter(({ calls }) => calls.length > 0)
}

/** Two callers that move the clock take turns. */
function oneAtATime<A, T>(work: (argument: A) => Promise<T>): (argument: A) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (argument) => {
    const turn = last.then(() => work(argument))
    last = turn.catch(() => {})
    return turn
  }
}

/** The first start on an empty embedded database makes the demo; later ones let it go on living. */
async function beginDemo(service: Service): Promise<Demo | undefined> {
  const { role, app, options, platforms } = service
  const wanted = role === 'start' && options.demo !== false && app.config.database.kind === 'embedded'
  const stage = [...platforms.values()].find(({ demo }) => demo)
  if (!wanted || !stage?.demo) return undefined
  const made = await makeDemo(app, { platform: stage.platform.name, demo: stage.demo })
  if (app.config.clock === 'system' && (await readDemo(app.db))) service.talk = stage.demo.keepTalking()
  return made
}

function greet(app: App, address: string, demo: Demo | undefined): void {
  app.log.info({ address }, 'ready')
  if (!process.stdout.isTTY && !demo) return
  const lines = ['', `  Parley is running at ${address}`, `  API reference        ${address}/docs`]
  if (demo) {
    lines.push(
      '',
      '  This is a demo workspace: two sandbox accounts and forty people who exist nowhere else.',
      '  Every gate was opened for it. Start with --no-demo for an empty instance with every gate closed.',
      '',
      '  Both of these are shown this once:',
      '',
      `    set-up link of the operator   ${address}/dashboard/setup?token=${demo.setup_token}`,
      `    API key with all scopes       ${demo.key}`,
      '',
      '  Try it:',
      '',
      `    curl ${address}/api/v1/me -H "Authorization: Bearer ${demo.key}"`,
    )
  }
  write(lines.concat('').join('\n'))
}

/** Resolves once the service has stopped: with nothing after a signal, with an error after a failure. */
function stopOnSignal(service: Service): Promise<Error | undefined> {
  return new Promise((resolve) => {
    let firstAt = 0
    const end = async (failure?: Error) => {
      if (service.stopping) return
      firstAt = performance.now()
      await stop(service)
      resolve(failure)
    }
    const onSignal = (signal: NodeJS.Signals) => {
      // npm and the terminal may both deliver the first one; a later one means: now.
      if (service.stopping && performance.now() - firstAt > 1_000) process.exit(130)
      if (!service.stopping) service.app.log.info({ signal }, 'stopping')
      void end()
    }
    process.on('SIGINT', onSignal)
    process.on('SIGTERM', onSignal)
    const onFailure = (error: Error) => {
      service.app.log.fatal({ err: error }, 'the service cannot go on')
      void end(error)
    }
    process.on('uncaughtException', onFailure)
    process.on('unhandledRejection', onFailure)
    void service.app.lost?.then(onFailure)
  })
}

/** In-flight requests finish, then the background work, then the database. */
async function stop(service: Service): Promise<void> {
  service.stopping = true
  const cut = setTimeout(() => {
    service.app.log.error('stopping took too long; what was left is cut off')
    process.exit(1)
  }, stopMsMax)
  service.talk?.stop()
  await service.server?.close()
  await service.running?.stop()
  await closePlatforms(service.platforms)
  await service.app.close()
  clearTimeout(cut)
  service.app.log.info('stopped')
}
