/** The long-running verbs: everything at once, HTTP only, or background only. */
import { type Command, Option } from 'commander'
import type { App } from '../app.ts'
import { type Config, readConfig } from '../config.ts'
import { buildServer, type Server } from '../http/server.ts'
import { routes } from '../routes.ts'
import type { Running } from '../worker/loops.ts'
import { startWorker } from '../worker/worker.ts'
import { type FirstRun, firstRun } from './first-run.ts'
import { makeLogger } from './log.ts'
import { type OpenApp, openApp } from './open.ts'
import { write } from './output.ts'
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
    ['start', 'everything in one process: HTTP and background work'],
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

async function run(role: Role, options: RunOptions): Promise<void> {
  const config = readConfig(process.env)
  const log = makeLogger(config.log_level)
  const app = await openApp({ config, data_dir: options.dataDir, log, claim: 'service', operations: routes })
  const service: Service = { role, app, stopping: false, ready: false }
  const stopped = stopOnSignal(service)
  try {
    await begin(service, config, options)
  } catch (error) {
    await stop(service)
    throw error
  }
  const failure = await stopped
  if (failure) throw failure
}

interface Service {
  readonly role: Role
  readonly app: OpenApp
  server?: Server
  worker?: Running
  stopping: boolean
  ready: boolean
}

async function begin(service: Service, config: Config, options: RunOptions): Promise<void> {
  const { role, app } = service
  service.server = await buildServer(app, role === 'work' ? [] : routes, {
    readiness: {
      worker: () => {
        if (role === 'serve') return 'elsewhere'
        return service.ready ? (service.worker?.problem() ?? 'ok') : 'starting'
      },
      stopping: () => service.stopping,
    },
  })
  const address = await service.server.listen({ host: config.host, port: options.port })
  if (role !== 'serve') service.worker = await startWorker(app)
  const empty = role === 'start' && options.demo !== false && config.database.kind === 'embedded'
  const first = empty ? await firstRun(app) : undefined
  service.ready = true
  greet(app, config.base_url ?? address, first)
}

function greet(app: App, address: string, first: FirstRun | undefined): void {
  app.log.info({ address }, 'ready')
  if (!process.stdout.isTTY && !first) return
  const lines = ['', `  Parley is running at ${address}`, `  API reference        ${address}/docs`]
  if (first) {
    lines.push(
      '',
      '  A workspace, an operator and an API key were made, and the gate "rest" was opened.',
      '  The key is shown this once:',
      '',
      `    ${first.key}`,
      '',
      '  Try it:',
      '',
      `    curl ${address}/api/v1/me -H "Authorization: Bearer ${first.key}"`,
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
  await service.server?.close()
  await service.worker?.stop()
  await service.app.close()
  clearTimeout(cut)
  service.app.log.info('stopped')
}
