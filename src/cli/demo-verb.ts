/** `parley demo`: makes the demo after a first start with --no-demo. */
import type { Command } from 'commander'
import type { App } from '../app.ts'
import { readConfig } from '../config.ts'
import { Refusal } from '../lib/errors.ts'
import { type Demo, makeDemo } from './demo.ts'
import { makeLogger } from './log.ts'
import { openApp } from './open.ts'
import { keyNote, Noted, noteLink, print } from './output.ts'
import { closePlatforms, openPlatforms, platformVariables } from './platforms.ts'
import type { Parts } from './service.ts'
import { closing, commandOf, type Shared } from './verbs.ts'

export const addDemoVerb =
  ({ routes, operations, platforms, migrations }: Parts) =>
  (program: Command) => {
    commandOf(program, 'demo')
      .option('--json', 'print one JSON document', false)
      .action(async (_, command: Command) => {
        const options = command.optsWithGlobals<Shared>()
        const config = readConfig(process.env, platformVariables)
        if (config.database.kind !== 'embedded') {
          throw new Refusal('A demo needs an embedded data directory. Unset DATABASE_URL and try again.')
        }
        const log = makeLogger('silent')
        const data_dir = options.dataDir
        const app = await openApp({ config, data_dir, log, claim: 'service', operations, routes, migrations })
        await closing(
          () => app.close(),
          async () => {
            const made = await makeAsked(app, platforms, data_dir)
            await print(new Noted(made, noteLink(keyNote, config)), options)
          },
        )
      })
  }

async function makeAsked(app: App, modules: Parts['platforms'], directory: string): Promise<Demo> {
  const open = await openPlatforms(app, modules, { role: 'start', directory })
  try {
    const stage = [...open.values()].find((each) => each.demo)
    if (!stage?.demo) {
      throw new Refusal('The demo uses its own sandbox. Unset PARLEY_SANDBOX_URL and try again.')
    }
    const made = await makeDemo(app, { platform: stage.platform.name, demo: stage.demo, asked: true })
    if (made) return made
    throw new Refusal('This data directory already has workspaces. Choose an empty one with --data-dir.')
  } finally {
    await closePlatforms(open)
  }
}
