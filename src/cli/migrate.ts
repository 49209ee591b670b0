import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { makeLogger } from './log.ts'
import { openApp } from './open.ts'
import { print } from './output.ts'
import { platformVariables } from './platforms.ts'
import { closing, commandOf, type Shared } from './verbs.ts'

/** The only verb that migrates a database of DATABASE_URL: the operator asked for exactly that. */
export function addMigrateVerb(program: Command): void {
  commandOf(program, 'migrate')
    .option('--json', 'print one JSON document', false)
    .action(async (_, command: Command) => {
      const options = command.optsWithGlobals<Shared>()
      const log = makeLogger('silent')
      const app = await openApp({
        config: readConfig(process.env, platformVariables),
        data_dir: options.dataDir,
        log,
        claim: 'command',
        operations: [],
        routes: [],
        ...(options.migrations && { migrations: options.migrations }),
        migrate: true,
        // Stdout is for the result.
        say: (line) => process.stderr.write(`${line}\n`),
      })
      await closing(
        () => app.close(),
        () => print({ applied: app.applied }, options),
      )
    })
}
