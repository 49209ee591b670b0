/** `npm run data-centre`: the sandbox and Telegram's data centres in front of it, as a process of its own. */
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { runProgram } from '../../../src/cli/program.ts'
import {
  addSandboxOptions,
  type Beside,
  runSandbox,
  type SandboxOptions,
  sandboxDirectory,
} from '../../../src/cli/sandbox.ts'
import { commandOf, port, whole } from '../../../src/cli/verbs.ts'
import { explainPort } from '../../../src/http/ports.ts'
import { bind } from '../../../src/platform/control-operation.ts'
import type { World } from '../../../src/platform/sandbox/world.ts'
import { centreOperations } from './control.ts'
import { openDataCentre } from './data-centre.ts'

const host = '127.0.0.1'

interface Options extends SandboxOptions {
  readonly mtprotoPort: number
  readonly keepUpdates?: number
}

function addDataCentre(program: Command): void {
  addSandboxOptions(commandOf(program, 'data-centre'))
    .addOption(
      new Option(
        '--mtproto-port <port>',
        'port of the first data centre, the second uses the next; 0 picks free ones',
      )
        .default(8100)
        .argParser(port),
    )
    .addOption(
      new Option(
        '--keep-updates <number>',
        'updates kept for clients; a client that missed more cannot catch up; all by default',
      ).argParser(whole),
    )
    .action(async (_, command: Command) => {
      const data_dir = sandboxDirectory(program)
      const options = command.opts<Options>()
      await runSandbox(data_dir, options, (world) => openBeside(world, data_dir, options))
    })
}

/** Prints how Parley reaches it. */
async function openBeside(
  world: World,
  data_dir: string,
  { mtprotoPort, keepUpdates }: Options,
): Promise<Beside> {
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
  return { calls: bind(centreOperations, centre), close: () => centre.close() }
}

await runProgram(
  () => Promise.reject(new Error('The data centre needs no parts of the service.')),
  [
    {
      words: { 'data-centre': "serve accounts of the sandbox as Telegram's data centres, in --data-dir" },
      load: async () => addDataCentre,
    },
  ],
)
