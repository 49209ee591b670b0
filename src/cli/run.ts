/** The long-running verbs: everything at once, HTTP only, or background only. */
import { type Command, Option } from 'commander'
import type { App } from '../app.ts'
import { readConfig } from '../config.ts'
import type { Demo } from './demo.ts'
import { makeLogger } from './log.ts'
import { write } from './output.ts'
import { platformVariables } from './platforms.ts'
import { type Parts, type Role, Service } from './service.ts'
import { port, type Shared } from './verbs.ts'

interface RunOptions extends Shared {
  readonly port: number
  readonly demo?: boolean
}

/** After this long in-flight work is cut off, so that a supervisor does not have to. */
const stopMsMax = 30_000

export function addRunVerbs(program: Command, parts: Parts): void {
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
      .action((_, given: Command) => run(role, parts, given.optsWithGlobals<RunOptions>()))
    if (role === 'start') command.option('--no-demo', 'start empty, with every gate off')
  }
}

async function run(role: Role, parts: Parts, options: RunOptions): Promise<void> {
  const config = readConfig(process.env, platformVariables)
  const log = makeLogger(config.log_level)
  const { dataDir: data_dir, port, demo = true } = options
  const service = await Service.open(parts, { role, config, log, data_dir, port, demo })
  const stopped = stopOnSignal(service)
  try {
    const { address, demo } = await service.begin()
    greet(service.app, address, demo)
  } catch (error) {
    await stop(service)
    throw error
  }
  const failure = await stopped
  if (failure) throw failure
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
      // npm and the terminal may both deliver the first signal. One that comes later means: stop at once.
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

async function stop(service: Service): Promise<void> {
  const { log } = service.app
  const cut = setTimeout(() => {
    log.error('stopping took too long; what was left is cut off')
    process.exit(1)
  }, stopMsMax)
  await service.stop()
  clearTimeout(cut)
  log.info('stopped')
}
