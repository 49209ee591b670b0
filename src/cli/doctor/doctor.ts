/** `parley doctor`: checks the set-up and changes nothing. */
import type { Command } from 'commander'
import { type Config, readConfig } from '../../config.ts'
import { ConfigError, Refusal } from '../../lib/errors.ts'
import { makeLogger } from '../log.ts'
import { type OpenApp, openApp } from '../open.ts'
import { Failed, Plain, print } from '../output.ts'
import { platformVariables } from '../platforms.ts'
import { closing, commandOf, type Shared } from '../verbs.ts'
import { lookAtAlerts } from './alert-check.ts'
import { databaseChecks, migrationsCheck } from './database-checks.ts'
import { lookAtDirectory } from './directory-check.ts'
import { type Check, counted, type Finding, fault, ok } from './finding.ts'
import { instanceChecks } from './instance-checks.ts'
import { lookAtBaseUrl, lookAtPlatforms, lookAtRedis } from './network-checks.ts'

/** A finding and the check that made it. */
export interface Line extends Finding {
  readonly check: string
}

interface DoctorOptions extends Shared {
  readonly alert: boolean
}

export function addDoctorVerb(program: Command): void {
  commandOf(program, 'doctor')
    .option('--alert', 'also post a test to PARLEY_ALERT_URL', false)
    .option('--json', 'print one JSON document', false)
    .addHelpText('after', help)
    .action(async (_, command: Command) => {
      const options = command.optsWithGlobals<DoctorOptions>()
      await report(await examine(options), options)
    })
}

const help = `
It checks the configuration, the database, the data directory, Redis, the platforms, the workers, the accounts, the webhooks,
the keys and the public address. Every line is ok, warning or fault, with what to do. It exits with 1 if there is a fault. Run it with the
environment of a process, on that process's machine.`

async function report(lines: readonly Line[], options: Shared): Promise<void> {
  const faults = lines.filter(({ level }) => level === 'fault').length
  const shown = new Plain(
    lines.map((line) => `${textOf(line)}\n`),
    () => ({ ok: faults === 0, lines }),
  )
  await print(faults === 0 ? shown : new Failed(shown, `Found ${counted(faults, 'fault')}.`), options)
}

function textOf({ level, check, found, todo }: Line): string {
  const head = `${level.padEnd(8)} ${check.padEnd(18)} `
  const line = `${head}${found.replaceAll(/\p{Cc}/gu, '\ufffd')}`
  return todo === null ? line : `${line}\n${' '.repeat(head.length)}${todo}`
}

async function examine({ dataDir: data_dir, alert }: DoctorOptions): Promise<Line[]> {
  const config = readConfigOrFaults()
  if (Array.isArray(config)) return linesOf('configuration', config)
  const lines = [
    ...linesOf('configuration', ok('Every variable is known and valid.')),
    ...linesOf('data directory', await lookAtDirectory(config, data_dir)),
  ]
  const app = await openAsItIs(config, data_dir)
  if ('level' in app) {
    return [...lines, ...linesOf('database', app), ...(await examineNetwork(config, undefined, alert))]
  }
  return closing(
    () => app.close(),
    async () => {
      const found = [...lines, ...(await runChecks(databaseChecks, app))]
      const migrations = await runChecks([migrationsCheck], app)
      const isMigrated = migrations.every(({ level }) => level === 'ok')
      // Other schemas have other tables and columns.
      const instance = isMigrated ? await runChecks(instanceChecks, app) : []
      return [
        ...found,
        ...migrations,
        ...instance,
        ...(await examineNetwork(config, isMigrated ? app : undefined, alert)),
      ]
    },
  )
}

function readConfigOrFaults(): Config | Finding[] {
  try {
    return readConfig(process.env, platformVariables)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map((each) => fault(each, correctVariable))
    throw error
  }
}

const correctVariable = 'Correct the environment; .env.example documents every variable.'

/** What is wrong, if the database cannot be opened. */
async function openAsItIs(config: Config, data_dir: string): Promise<OpenApp | Finding> {
  try {
    return await openApp({
      config,
      data_dir,
      log: makeLogger('silent'),
      claim: 'command',
      existing: true,
      as_it_is: true,
      operations: [],
      routes: [],
    })
  } catch (error) {
    if (error instanceof Refusal)
      return fault(error.message, 'Correct this first: what needs it was not checked.')
    throw error
  }
}

async function runChecks<Subject>(checks: readonly Check<Subject>[], subject: Subject): Promise<Line[]> {
  const lines: Line[] = []
  for (const { name, look } of checks) lines.push(...linesOf(name, await look(subject)))
  return lines
}

async function examineNetwork(config: Config, app: OpenApp | undefined, send: boolean): Promise<Line[]> {
  const { address, proxy } = await lookAtBaseUrl(config, app?.secrets)
  return [
    ...linesOf('redis', await lookAtRedis(config)),
    ...linesOf('platforms', await lookAtPlatforms(config, app)),
    ...linesOf('public address', address),
    ...linesOf('proxy', proxy),
    ...linesOf('alerts', await lookAtAlerts(config, { db: app?.db, send })),
  ]
}

function linesOf(check: string, found: Finding | readonly Finding[]): Line[] {
  return [found].flat().map((finding) => ({ check, ...finding }))
}
