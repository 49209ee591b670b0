/** The long-running verbs: the whole service, HTTP only, or background work only. */
import { type Command, Option } from 'commander'
import { type Config, readConfig } from '../config.ts'
import { Refusal } from '../lib/errors.ts'
import { endByForce, meansNow, stopMsMax } from './force.ts'
import { logVersion, makeLogger } from './log.ts'
import { write } from './output.ts'
import { platformVariables } from './platforms.ts'
import { type Parts, type Role, Service, type StartedService } from './service.ts'
import { commandOf, port, type Shared } from './verbs.ts'
import { welcome } from './welcome.ts'

interface RunOptions extends Shared {
  readonly port: number
  readonly adminPort?: number
  readonly demo?: boolean
}

export const addRunVerbs = (parts: Parts) => (program: Command) => {
  for (const role of ['start', 'serve', 'work'] as const) {
    const command = commandOf(program, role)
      .addOption(
        new Option('--port <port>', 'port to listen on, 0 to 65535; 0 picks a free one')
          .default(8080)
          .argParser(port),
      )
      .addOption(new Option('--admin-port <port>', adminHelp(role)).argParser(port))
      .action((_, given: Command) => run(role, parts, given.optsWithGlobals<RunOptions>()))
    if (role === 'start') command.option('--no-demo', 'start empty, with every gate closed')
  }
}

function adminHelp(role: Role): string {
  const without = role === 'start' ? 'the port after --port by default' : 'none by default'
  const sandbox = role === 'start' ? ', and in the demo the sandbox' : ''
  return `metrics and health${sandbox}, for this machine only; 0 to 65535; ${without}`
}

/** Undefined if the process has no admin port. */
function adminPortOf(role: Role, { port, adminPort }: RunOptions, config: Config): number | undefined {
  const named = adminPort ?? config.admin_port
  if (named !== undefined || role !== 'start') return named
  if (port === 65_535) throw new Refusal('There is no port after 65535. Choose one with --admin-port.')
  return port === 0 ? 0 : port + 1
}

async function run(role: Role, parts: Parts, options: RunOptions): Promise<void> {
  const config = readConfig(process.env, platformVariables)
  const log = makeLogger(config.log_level)
  // At a terminal, log only warnings and errors: the welcome text says how the start went.
  if (process.stdout.isTTY && config.log_level === 'info') log.level = 'warn'
  logVersion(log, role)
  const { dataDir: data_dir, port, demo = true } = options
  const admin_port = adminPortOf(role, options, config)
  const service = await Service.open(parts, { role, config, log, data_dir, port, admin_port, demo })
  const stopped = stopOnSignal(service)
  try {
    greet(service, await service.begin(), { role, directory: data_dir })
  } catch (error) {
    // A service that was stopped while it started may fail in any way: that is no failure of the start.
    if (!service.stopping) {
      await stop(service)
      throw error
    }
  }
  const failure = await stopped
  if (failure) throw failure
}

function greet(
  service: Service,
  begun: StartedService,
  { role, directory }: { role: Role; directory: string },
): void {
  const { stopping, app } = service
  const { address, admin_address, demo } = begun
  if (!stopping) app.log.info({ address, admin_address }, 'ready')
  app.log.level = app.config.log_level
  const data_dir = app.config.database.kind === 'embedded' ? directory : undefined
  // The key and the link are the last of the start: a log in a pipe holds its lines for a moment.
  app.log.flush()
  if (demo || (process.stdout.isTTY && !stopping)) write(welcome(begun, { role, stopping, data_dir }))
}

/** Resolves when the service has stopped: with undefined after a signal, with the error after a failure. */
function stopOnSignal(service: Service): Promise<Error | undefined> {
  return new Promise((resolve) => {
    let firstAt = 0
    let ending: Promise<void> | undefined
    const end = async (failure?: Error, drain_seconds = 0) => {
      if (service.stopping && !failure) return
      firstAt ||= performance.now()
      if (drain_seconds > 0) await service.drain(drain_seconds)
      // A failure also ends a drain.
      ending ??= stop(service)
      await ending
      resolve(failure)
    }
    const onSignal = (signal: NodeJS.Signals) => {
      if (service.stopping && meansNow(firstAt)) return void endByForce(130)
      const { config, log } = service.app
      // Only a supervisor waits for a load balancer. A person who presses Ctrl-C wants the process to end.
      const drain_seconds = signal === 'SIGTERM' ? config.drain_seconds : 0
      if (!service.stopping) log.info({ signal, drain_seconds }, 'stopping')
      void end(undefined, drain_seconds)
    }
    process.on('SIGINT', onSignal)
    process.on('SIGTERM', onSignal)
    const onFailure = (error: Error) => {
      service.app.log.fatal({ err: error }, 'the service stops because of an error')
      void end(error)
    }
    process.on('uncaughtException', onFailure)
    process.on('unhandledRejection', onFailure)
    void service.app.lost?.then(onFailure)
  })
}

async function stop(service: Service): Promise<void> {
  const { log } = service.app
  const cut = setTimeout(() => {
    log.error('shutdown took too long; the remaining work was cut off')
    void endByForce(1)
  }, stopMsMax)
  await service.stop()
  clearTimeout(cut)
  log.info('stopped')
}
