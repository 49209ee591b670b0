/** `parley sandbox`: the sandbox platform alone, so that it survives a killed service. */
import { type Command, Option } from 'commander'
import { readConfig } from '../config.ts'
import { openDataDirectory } from '../db/data-directory.ts'
import { buildControlServer } from '../http/admin.ts'
import type { Server } from '../http/base.ts'
import { explainPort } from '../http/ports.ts'
import type { ControlCall } from '../platform/control-operation.ts'
import { aloneControl } from '../platform/sandbox/open.ts'
import { openLocalSandbox } from '../platform/sandbox/sandbox.ts'
import { serveLink } from '../platform/sandbox/serve-link.ts'
import type { World } from '../platform/sandbox/world.ts'
import { logVersion, makeLogger } from './log.ts'
import { platformVariables } from './platforms.ts'
import { commandOf, port, type Shared, whole } from './verbs.ts'

const host = '127.0.0.1'

export interface SandboxOptions {
  readonly port: number
  readonly seed?: number
  readonly dedupe: 'on' | 'off'
}

/** What a program serves beside the sandbox: the data centre of the tests does. */
export interface Beside {
  /** More calls of the control address. */
  readonly calls: readonly ControlCall[]
  close(): Promise<void>
}

/** Its journal is kept apart from the service's data. This is the default of --data-dir. */
const ownDirectory = '.parley-sandbox'

export function addSandboxVerb(program: Command): void {
  addSandboxOptions(commandOf(program, 'sandbox')).action(async (_, command: Command) => {
    await runSandbox(sandboxDirectory(program), command.opts<SandboxOptions>())
  })
}

export function addSandboxOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--port <port>', 'port to listen on, 0 to 65535; 0 picks a free one')
        .default(8090)
        .argParser(port),
    )
    .addOption(
      new Option(
        '--seed <number>',
        'seed for random choices, a whole number; the same seed gives the same people',
      ).argParser(whole),
    )
    .addOption(
      new Option('--dedupe <switch>', 'accept each random id of an account only once')
        .choices(['on', 'off'])
        .default('off'),
    )
}

export function sandboxDirectory(program: Command): string {
  const given = program.getOptionValueSource('dataDir') === 'cli'
  return given ? program.opts<Shared>().dataDir : ownDirectory
}

export async function runSandbox(
  data_dir: string,
  { port: wanted, seed, dedupe }: SandboxOptions,
  openBeside?: (world: World) => Promise<Beside>,
): Promise<void> {
  const config = readConfig(process.env, platformVariables)
  const log = makeLogger(config.log_level)
  logVersion(log, 'sandbox')
  await openDataDirectory(data_dir)
  const manual = config.clock === 'manual'
  const { promise: ended, resolve: end, reject: fail } = Promise.withResolvers<void>()
  const sandbox = await openLocalSandbox({
    data_dir,
    // The service that moves the clock sets the time.
    manual_from: manual ? new Date(0) : undefined,
    failed: fail,
    dedupe: dedupe === 'on',
    ...(seed !== undefined && { seed }),
  })
  process.on('SIGINT', () => end())
  process.on('SIGTERM', () => end())
  let beside: Beside | undefined
  let server: Server | undefined
  try {
    beside = await openBeside?.(sandbox.world)
    const control = aloneControl(sandbox, { manual, calls: beside?.calls ?? [] })
    server = await buildControlServer(log, control, serveLink(sandbox.world))
    const address = await server.listen({ host, port: wanted }).catch((error) => {
      throw explainPort(error, { host, port: wanted, names: { host, port: '--port' } })
    })
    log.info({ address }, 'ready')
    await ended
  } finally {
    await beside?.close()
    await sandbox.close()
    await server?.close()
  }
}
