/** The command line. Exit codes: 0 done, 1 refused with a sentence, 2 wrong usage. */
import { Command, CommanderError } from 'commander'
import { ConfigError } from '../config.ts'
import { ApiError, Refusal } from '../lib/errors.ts'
import { version } from '../lib/version.ts'
import { helpStyle } from './help.ts'
import { sentenceOf } from './hints.ts'
import type { Parts } from './service.ts'
import { dataDirDefault } from './verbs.ts'

export type AddVerbs = (program: Command, parts: Parts) => void

export function makeProgram(parts: Parts, verbs: readonly AddVerbs[]): Command {
  const program = new Command('parley')
    .description('Outreach for messaging accounts: one HTTP API, messages that are never sent twice.')
    .version(version, '-V, --version', 'print which Parley this is')
    .helpOption('-h, --help', 'explain a verb and its options')
    .option('--data-dir <dir>', 'where the embedded database and the journals live', dataDirDefault)
    .configureHelp(helpStyle)
    .helpCommand(false)
    .exitOverride()
    .showHelpAfterError('Add --help to see how it is used.')
    .addHelpText('after', firstSteps)
  for (const add of verbs) add(program, parts)
  return program
}

/** Runs the verb of the command line and ends the process with its exit code. */
export async function runProgram(parts: Parts, verbs: readonly AddVerbs[]): Promise<never> {
  // Whoever reads what we write may have no room or be gone. That must not decide how a process ends.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  try {
    await makeProgram(parts, verbs).parseAsync()
    return process.exit(0)
  } catch (error) {
    return process.exit(explain(error))
  }
}

const firstSteps = `
Configuration is the environment; .env.example documents it. Verbs act on DATABASE_URL, or on the embedded
database of --data-dir, whether the service is running or not.

First steps:
  parley start                                  run everything; the first start prints an API key
  parley workspace create "Acme"                make a tenant
  parley user create ana@acme.example --workspace ID
  parley key create --workspace ID --user ID --name app --scopes read,write,send
  parley gate enable rest                       open the API`

function explain(error: unknown): number {
  // Commander has written its own message.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (error instanceof ConfigError) {
    const faults = error.faults.map((fault) => `  - ${fault}`).join('\n')
    process.stderr.write(`Parley does not start with this configuration:\n${faults}\n`)
  } else if (error instanceof Refusal || error instanceof ApiError) {
    process.stderr.write(`${sentenceOf(error)}\n`)
  } else {
    process.stderr.write(`This is a bug in Parley: ${error instanceof Error ? error.stack : String(error)}\n`)
  }
  return 1
}
