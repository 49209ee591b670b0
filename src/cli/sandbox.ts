/** `parley sandbox`: the sandbox platform alone, so that it survives a killed service. */
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { readConfig } from '../config.ts'
import { openDataDirectory } from '../db/data-directory.ts'
import { buildControlServer } from '../http/admin.ts'
import { explainPort } from '../http/ports.ts'
import type { DataCentre } from '../platform/sandbox/mtproto/data-centre.ts'
import { aloneControl } from '../platform/sandbox/open.ts'
import { openLocalSandbox } from '../platform/sandbox/sandbox.ts'
import { serveLink } from '../platform/sandbox/serve-link.ts'
import type { World } from '../platform/sandbox/world.ts'
import { logVersion, makeLogger } from './log.ts'
import { platformVariables } from './platforms.ts'
import { commandOf, port, type Shared, whole } from './verbs.ts'

const host = '127.0.0.1'

interface SandboxOptions {
  readonly port: number
  readonly seed?: number
  readonly mtprotoPort?: number
  readonly keepUpdates?: number
  readonly dedupe: 'on' | 'off'
}

/** Its journal is kept apart from the service's data. This is the default of --data-dir. */
const ownDirectory = '.parley-sandbox'

export function addSandboxVerb(program: Command): void {
  commandOf(program, 'sandbox')
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
      new Option(
        '--mtproto-port <port>',
        'also serve its accounts as a Telegram data centre, on this port and the next; 0 picks free ones',
      ).argParser(port),
    )
    .addOption(
      new Option(
        '--keep-updates <number>',
        'updates kept for Telegram clients; a client that missed more cannot catch up; all by default',
      ).argParser(whole),
    )
    .addOption(
      new Option('--dedupe <switch>', 'accept each random id of an account only once')
        .choices(['on', 'off'])
        .default('off'),
    )
    .action(async (_, command: Command) => {
      const given = program.getOptionValueSource('dataDir') === 'cli'
      const data_dir = given ? program.opts<Shared>().dataDir : ownDirectory
      await runSandbox(data_dir, command.opts<SandboxOptions>())
    })
}

async function runSandbox(data_dir: string, options: SandboxOptions): Promise<void> {
  const { port: wanted, seed, dedupe } = options
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
  const server = await buildControlServer(log, aloneControl(sandbox, { manual }), serveLink(sandbox.world))
  let centre: DataCentre | undefined
  process.on('SIGINT', () => end())
  process.on('SIGTERM', () => end())
  try {
    const address = await server.listen({ host, port: wanted }).catch((error) => {
      throw explainPort(error, { host, port: wanted, names: { host, port: '--port' } })
    })
    centre = await serveTelegram(sandbox.world, data_dir, options)
    log.info({ address }, 'ready')
    await ended
  } finally {
    await centre?.close()
    await sandbox.close()
    await server.close()
  }
}

/** Starts the data centre and prints how Parley reaches it. Only this imports MTProto. */
async function serveTelegram(
  world: World,
  data_dir: string,
  { mtprotoPort, keepUpdates }: SandboxOptions,
): Promise<DataCentre | undefined> {
  if (mtprotoPort === undefined) return undefined
  const { openDataCentre } = await import('../platform/sandbox/mtproto/data-centre.ts')
  const centre = await openDataCentre(world, {
    port: mtprotoPort,
    data_dir: resolve(data_dir),
    keep_updates: keepUpdates,
  }).catch((error) => {
    // Its second data centre is at the next port.
    const { port = mtprotoPort } = error as { port?: number }
    throw explainPort(error, { host, port, names: { host, port: '--mtproto-port' } })
  })
  process.stdout.write(`PARLEY_TELEGRAM_DC=${host}:${centre.port},${centre.key_file}\n`)
  return centre
}
