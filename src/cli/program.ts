/** The command line. Exit codes: 0 done, 1 refused with a sentence, 2 wrong usage. */
import { Command, CommanderError } from 'commander'
import { ApiError, ConfigError, Refusal } from '../lib/errors.ts'
import { hideTokens } from '../lib/text.ts'
import { version } from '../lib/version.ts'
import { readDataDirDefault } from './data-dir.ts'
import { explainEnvironment } from './database-sentences.ts'
import { helpStyle } from './help.ts'
import { sentenceOf } from './hints.ts'
import type { Parts } from './service.ts'

/** Loads the whole service, once a verb needs it. */
type LoadParts = () => Promise<Parts>

/** Adds the subcommands to its module's words, which already exist with their descriptions: see `wordOf`. */
type AddVerbs = (program: Command) => void

export interface VerbModule {
  /** The first words of its verbs, with their descriptions for `--help`. */
  readonly words: Readonly<Record<string, string>>
  /** Not listed by `--help`. */
  readonly hidden?: boolean
  load(parts: LoadParts): Promise<AddVerbs>
}

/** Loads only the modules that these arguments name: `--version` and `--help` need nothing but the words. */
export async function makeProgram(
  parts: LoadParts,
  verbs: readonly VerbModule[],
  args: readonly string[],
): Promise<Command> {
  const program = new Command('parley')
    .description('Outreach for messaging accounts: one HTTP API, and no message is sent twice.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help for a verb and its options')
    .option('--data-dir <dir>', 'directory of the embedded database and the journals', readDataDirDefault())
    .configureHelp(helpStyle)
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(withoutSecrets(text)) })
    .showHelpAfterError('Add --help to see how it is used.')
    .addHelpText('after', firstSteps)
  for (const { words, hidden = false, load } of verbs) {
    for (const [word, description] of Object.entries(words)) {
      program.command(word, { hidden }).description(description).helpCommand(false)
    }
    if (args.some((arg) => Object.hasOwn(words, arg))) (await load(parts))(program)
  }
  return program
}

/** Runs the verb named on the command line and ends the process with its exit code. */
export async function runProgram(
  parts: LoadParts,
  verbs: readonly VerbModule[],
  migrations?: readonly string[],
): Promise<never> {
  return process.exit(await runCommand(parts, verbs, process.argv.slice(2), migrations))
}

/** Runs one command and returns its exit code. `migrations` are the folders of more slices than our own. */
export async function runCommand(
  parts: LoadParts,
  verbs: readonly VerbModule[],
  args: readonly string[],
  migrations?: readonly string[],
): Promise<number> {
  // A reader that has closed the pipe, such as `head`, or has no space left must not change the exit code.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  try {
    const program = await makeProgram(parts, verbs, args)
    program.setOptionValue('migrations', migrations)
    await program.parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    return explain(error)
  }
}

/** An argument that a verb does not take may be a secret, and what a verb prints ends up in logs of jobs. */
function withoutSecrets(text: string): string {
  return hideTokens(text.replace(/(too many arguments.* but got \d+): .*\./s, '$1.')) // guard: surplus arguments are not repeated
}

const firstSteps = `
Configuration is the environment; .env.example documents it. Verbs act on DATABASE_URL, or on the embedded
database of --data-dir, whether the service is running or not.

First steps:
  parley start                                  run everything; the first start prints an API key
  parley workspace create "Acme"                create a tenant
  parley user create ana@acme.example --workspace ID
  parley key create --workspace ID --user ID --name app --scopes read,write,send
  parley gate enable rest                       open the API`

function explain(error: unknown): number {
  // Commander has already printed its message.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const environment = explainEnvironment(error) // guard: the environment is not our bug
  if (error instanceof ConfigError) {
    const faults = error.faults.map((fault) => `  - ${fault}`).join('\n')
    process.stderr.write(`Parley cannot start with this configuration:\n${faults}\n`)
  } else if (error instanceof Refusal || error instanceof ApiError) {
    process.stderr.write(`${sentenceOf(error)}\n`)
  } else if (environment) {
    process.stderr.write(`${sentenceOf(environment)}\n`)
  } else {
    process.stderr.write(`This is a bug in Parley: ${error instanceof Error ? error.stack : String(error)}\n`)
  }
  return 1
}
