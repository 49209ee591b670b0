/** `parley telegram rehearse`: twenty checks with two accounts of the operator. It opens no database. */
import { execFile } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { Refusal } from '../lib/errors.ts'
import { version } from '../lib/version.ts'
import { readApplication } from '../platform/telegram/module.ts'
import type { CheckReport, RehearsalReport } from '../platform/telegram/rehearse.ts'
import { dialogueAt, phoneNumber } from './account-login.ts'
import { Failed, Plain, print } from './output.ts'
import { platformVariables } from './platforms.ts'
import { Prompt } from './prompt.ts'
import { closing, commandOf, type Shared } from './verbs.ts'

/** What an interrupted rehearsal leaves behind is removed on two accounts, which may have to wait. */
const cleanUpMsMax = 300_000

interface RehearseOptions extends Shared {
  readonly first: string
  readonly second: string
}

const help = `
Both accounts log in again, by a code that Telegram sends and the two-step password if there is one; use accounts of yours that may
lose nothing. They exchange about ten messages, which the command deletes again, and it logs out what it logged in. Stop it with
Ctrl-C and it still does. With PARLEY_TELEGRAM_DC=test it takes numbers of Telegram's test servers, 99966XYYYY, and types their codes
itself. It exits with 1 if a check fails. The report has no text, no phone number and no key in it.`

export function addTelegramVerbs(program: Command): void {
  const telegram = commandOf(program, 'telegram')
  telegram
    .command('rehearse')
    .description('run twenty checks at Telegram with two accounts of yours; opens no database')
    .requiredOption(
      '--first <number>',
      'phone number of the first account, such as +4915112345678',
      phoneNumber,
    )
    .requiredOption('--second <number>', 'phone number of the second account', phoneNumber)
    .option('--json', 'print one JSON document', false)
    .addHelpText('after', help)
    .action(async (_, command: Command) => {
      const options = command.optsWithGlobals<RehearseOptions>()
      const report = await rehearse(options)
      const { passed, of, left_behind } = report
      const shown = new Plain(linesOf(report), () => ({ ...report }))
      const isDone = passed === of && left_behind.length === 0
      await print(isDone ? shown : new Failed(shown, sentenceOf(report)), options)
    })
}

type Rehearsed = RehearsalReport & {
  readonly version: string
  /** Null: not a checkout. */
  readonly commit: string | null
  readonly library: string
  readonly servers: 'telegram' | 'test' | 'loopback'
}

async function rehearse({ first, second }: RehearseOptions): Promise<Rehearsed> {
  if (first === second)
    throw new Refusal('--first and --second are the same number: a rehearsal needs two accounts.')
  const application = readApplication(readConfig(process.env, platformVariables).platform_env)
  if (!application) {
    throw new Refusal('PARLEY_TELEGRAM_API_ID and PARLEY_TELEGRAM_API_HASH are not set (.env.example).')
  }
  const { Rehearsal } = await import('../platform/telegram/rehearse.ts')
  const { endpointOf } = await import('../platform/telegram/open.ts')
  const prompt = new Prompt()
  const dialogue = await dialogueAt(prompt)
  const rehearsal = new Rehearsal({
    endpoint: endpointOf(application),
    phones: [first, second],
    ask: (whose, step) => {
      prompt.say(`The login of ${whose}.`)
      return dialogue.ask(step)
    },
    progress: (check) => prompt.say(lineOf(check)),
  })
  try {
    let isOver = false
    const report = await closing(
      async () => {
        const left = await rehearsal.cleanUp()
        // Of an interrupted rehearsal there is no report.
        if (!isOver) for (const line of left) prompt.say(line)
      },
      async () => {
        const done = await rehearsal.run()
        isOver = true
        return done
      },
      cleanUpMsMax,
    )
    const { dc } = application
    const servers = dc === null ? 'telegram' : dc === 'test' ? 'test' : 'loopback'
    return { version, commit: await readCommit(), servers, ...report }
  } finally {
    prompt.close()
  }
}

const root = join(import.meta.dirname, '..', '..')

/** Only of our own checkout: a package may lie below a repository of its user. */
async function readCommit(): Promise<string | null> {
  const git = async (...args: readonly string[]) => {
    const { stdout } = await promisify(execFile)('git', ['-C', root, ...args])
    return stdout.trim()
  }
  try {
    return (await git('rev-parse', '--show-toplevel')) === realpathSync(root)
      ? await git('rev-parse', 'HEAD')
      : null
  } catch {
    return null
  }
}

function lineOf({ check, result, seconds, why }: CheckReport): string {
  const head = `${{ passed: 'ok', failed: 'FAILED', not_run: 'not run' }[result].padEnd(8)} ${check}`
  return why === null ? `${head} (${seconds} s)` : `${head}: ${why}`
}

function linesOf(report: Rehearsed): string[] {
  const { passed, of, version: own, commit, layer, library, servers, checks, left_behind } = report
  const about = `Parley ${own}, commit ${commit ?? 'unknown'}, layer ${layer}, ${library}, servers: ${servers}`
  const lines = [...checks.map(lineOf), `${passed} of ${of} checks passed`, about, ...left_behind]
  return lines.map((line) => `${line}\n`)
}

function sentenceOf({ passed, of, left_behind }: Rehearsed): string {
  if (passed < of) return `${of - passed} of ${of} checks did not pass.`
  return left_behind.join(' ')
}
