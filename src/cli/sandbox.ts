/** `parley sandbox`: the sandbox platform alone, so that it survives a killed service. */
import { type Command, Option } from 'commander'
import { readConfig } from '../config.ts'
import { openDataDirectory } from '../db/data-directory.ts'
import { buildControlServer } from '../http/admin.ts'
import { aloneControl } from '../platform/sandbox/module.ts'
import { openLocalSandbox } from '../platform/sandbox/sandbox.ts'
import { serveLink } from '../platform/sandbox/serve-link.ts'
import { makeLogger, tellVersion } from './log.ts'
import { platformVariables } from './platforms.ts'
import { commandOf, port, type Shared, whole } from './verbs.ts'

interface SandboxOptions {
  readonly port: number
  readonly seed?: number
}

/** Its journal is kept apart from the service's data. This is the default of --data-dir. */
const ownDirectory = '.parley-sandbox'

export function addSandboxVerb(program: Command): void {
  commandOf(program, 'sandbox')
    .addOption(
      new Option('--port <port>', 'where it listens, 0 to 65535; 0 picks a free one')
        .default(8090)
        .argParser(port),
    )
    .addOption(
      new Option(
        '--seed <number>',
        'what chance is drawn from: a whole number; the same one gives the same people',
      ).argParser(whole),
    )
    .action(async (_, command: Command) => {
      const given = program.getOptionValueSource('dataDir') === 'cli'
      const data_dir = given ? program.opts<Shared>().dataDir : ownDirectory
      await runSandbox(data_dir, command.opts<SandboxOptions>())
    })
}

async function runSandbox(data_dir: string, { port: wanted, seed }: SandboxOptions): Promise<void> {
  const config = readConfig(process.env, platformVariables)
  const log = makeLogger(config.log_level)
  tellVersion(log, 'sandbox')
  await openDataDirectory(data_dir)
  const manual = config.clock === 'manual'
  const { promise: ended, resolve: end, reject: fail } = Promise.withResolvers<void>()
  const sandbox = await openLocalSandbox({
    data_dir,
    // The service that moves the clock sets the time.
    manual_from: manual ? new Date(0) : undefined,
    failed: fail,
    ...(seed !== undefined && { seed }),
  })
  const server = await buildControlServer(log, aloneControl(sandbox, { manual }), serveLink(sandbox.world))
  process.on('SIGINT', () => end())
  process.on('SIGTERM', () => end())
  try {
    const address = await server.listen({ host: '127.0.0.1', port: wanted })
    log.info({ address }, 'ready')
    await ended
  } finally {
    await sandbox.close()
    await server.close()
  }
}
