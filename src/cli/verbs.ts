/** What all verbs share: options, opening the App, refusals and exit codes. */
import { userInfo } from 'node:os'
import { type Command, InvalidArgumentError } from 'commander'
import type { App } from '../app.ts'
import type { Actor } from '../capabilities/audit/audit.ts'
import { readConfig } from '../config.ts'
import { parseTime } from '../lib/shapes.ts'
import type { OperationKind } from '../operation.ts'
import { endByForce, meansNow, stopMsMax } from './force.ts'
import { describeArguments } from './help.ts'
import { makeLogger } from './log.ts'
import { openApp } from './open.ts'
import { print, type Result } from './output.ts'
import { platformVariables } from './platforms.ts'

export interface Shared {
  readonly dataDir: string
  readonly json: boolean
  /** The folders of migrations; our own unless given. Not an option that can be typed. */
  readonly migrations?: readonly string[]
}

export interface VerbNeeds {
  /** Useful before the first start, so it creates the embedded database. Every other verb refuses if there is none. */
  readonly makes_instance?: boolean
  /** The kinds of operation, if the verb settles one. */
  readonly operations?: () => Promise<readonly OperationKind[]>
}

/** A verb that opens the database, does one thing and prints the result. */
export function verb<O extends object>(
  parent: Command,
  usage: string,
  description: string | undefined,
  act: (app: App, actor: Actor, options: O, ...args: string[]) => Promise<object>,
  needs: VerbNeeds = {},
): Command {
  const command = describeArguments(commandOf(parent, usage))
  if (description !== undefined) command.description(description)
  return command.option('--json', 'print one JSON document', false).action(async (...given: unknown[]) => {
    const command = given.pop() as Command
    const options = command.optsWithGlobals<O & Shared>()
    const args = command.processedArgs.flat() as string[]
    const work = async (app: App) => {
      const result = await act(app, actor(), options, ...args)
      await print(result as Result, options)
    }
    await withApp(options, work, needs)
  })
}

export async function withApp<T>(
  { dataDir: data_dir, migrations }: Shared,
  work: (app: App) => Promise<T>,
  { makes_instance = false, operations = async () => [] }: VerbNeeds = {},
): Promise<T> {
  const config = readConfig(process.env, platformVariables)
  const log = makeLogger('silent')
  const existing = !makes_instance
  const kinds = await operations()
  const app = await openApp({
    config,
    data_dir,
    log,
    claim: 'command',
    existing,
    operations: kinds,
    routes: [],
    ...(migrations && { migrations }),
  })
  return closing(
    () => app.close(),
    () => work(app),
  )
}

/** An interrupted verb still stops the server it started. PostgreSQL rolls back what was not committed. */
export async function closing<T>(
  close: () => Promise<void>,
  work: () => Promise<T>,
  closeMsMax = stopMsMax,
): Promise<T> {
  let closed: Promise<void> | undefined
  const closeOnce = () => {
    closed ??= close()
    return closed
  }
  let interruptedAt: number | undefined
  const interrupt = () => {
    if (interruptedAt !== undefined) {
      if (meansNow(interruptedAt)) void endByForce(130)
      return
    }
    interruptedAt = performance.now()
    setTimeout(() => void endByForce(130), closeMsMax)
    void closeOnce().finally(() => process.exit(130))
  }
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt)
  try {
    return await work()
  } finally {
    await closeOnce()
    // The interrupted work may fail in any way by now. It is not reported, because the process is ending.
    if (interruptedAt !== undefined) await new Promise(() => {})
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
  }
}

export function actor(): Actor {
  try {
    return `cli:${userInfo().username}`
  } catch {
    return 'cli:unknown'
  }
}

export function list(value: string): string[] {
  return value
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)
}

export function date(value: string): Date {
  const time = parseTime(value)
  if (!time) throw new InvalidArgumentError('Give a date such as 2027-01-31, or an RFC 3339 time.')
  return time
}

export function port(value: string): number {
  const number = Number(value)
  if (!/^\d+$/.test(value) || number > 65_535) throw new InvalidArgumentError('Give a port from 0 to 65535.')
  return number
}

export function whole(value: string): number {
  if (!/^\d{1,9}$/.test(value)) throw new InvalidArgumentError('Give a whole number, at most 999999999.')
  return Number(value)
}

/** A limit, or `none` to remove it. */
export function wholeOrNone(value: string): number | 'none' {
  return value === 'none' ? value : whole(value)
}

export function within(value: string, max: number): number {
  const number = whole(value)
  if (number < 1 || number > max) throw new InvalidArgumentError(`Give a whole number from 1 to ${max}.`)
  return number
}

/** A position in an order, counted from 1. */
export function place(value: string): number {
  const number = whole(value)
  if (number === 0) throw new InvalidArgumentError('Positions begin with 1.')
  return number
}

/** The command for a usage such as `create <name>`. The list of verbs has already added and described a verb's first word. */
export function commandOf(parent: Command, usage: string): Command {
  const [word = '', ...args] = usage.split(' ')
  const known = parent.commands.find((command) => command.name() === word)
  if (!known) return parent.command(usage)
  return args.length === 0 ? known : known.arguments(args.join(' '))
}
