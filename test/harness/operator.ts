/**
 * Runs an operator's commands in this process: starting a process for each would cost more than the commands themselves.
 * `test/command-line.test.ts` also runs every verb as a process.
 */
import { Readable, Writable } from 'node:stream'
import { expect } from 'vitest'
import { runCommand } from '../../src/cli/program.ts'
import { verbs } from '../../src/cli/verb-list.ts'
import type { Exit } from './process.ts'
import type { Service } from './service.ts'
import { testSecret } from './worker.ts'

/** A busy machine starts few processes a second. */
export const patient = { timeout: 180_000 }

type Env = Readonly<Record<string, string>>

let last: Promise<unknown> = Promise.resolve()

/**
 * Commands share the streams and the environment of this process, so each waits for the one before. `input` goes to its
 * standard input.
 */
export function runVerb(args: readonly string[], env: Env = {}, input?: string): Promise<Exit> {
  const turn = last.then(() => runAlone(args, env, input))
  last = turn.catch(() => {})
  return turn
}

class Output extends Writable {
  text = ''

  constructor() {
    super({ decodeStrings: false })
  }

  override _write(text: string, _: string, done: () => void): void {
    this.text += text
    done()
  }
}

async function runAlone(args: readonly string[], env: Env, input: string | undefined): Promise<Exit> {
  const { PATH, HOME, TMPDIR } = process.env
  const kept = Object.fromEntries(Object.entries({ PATH, HOME, TMPDIR }).filter(([, value]) => value))
  const [stdout, stderr] = [new Output(), new Output()]
  const stdin = Readable.from(input === undefined ? [] : [Buffer.from(input)])
  const restore = [replace({ env: { ...kept, ...env }, stdin, stdout, stderr }), keepListeners()]
  try {
    const code = await runCommand(async () => (await import('../../src/parts.ts')).parts, verbs, args)
    return { code, stdout: stdout.text, stderr: stderr.text }
  } finally {
    for (const each of restore) each()
  }
}

/** Overrides properties of `process` until the returned function is called. */
function replace(properties: Partial<Record<keyof NodeJS.Process, unknown>>): () => void {
  const names = Object.keys(properties) as (keyof NodeJS.Process)[]
  const before = names.map((name) => Object.getOwnPropertyDescriptor(process, name))
  for (const name of names) {
    Object.defineProperty(process, name, { configurable: true, writable: true, value: properties[name] })
  }
  return () => {
    for (const [at, name] of names.entries()) Object.defineProperty(process, name, before[at] ?? {})
  }
}

/** A command expects its process to end, so it leaves listeners behind. The returned function removes them. */
function keepListeners(): () => void {
  const events = ['exit', 'SIGINT', 'SIGTERM'] as const
  const before = events.map((event) => process.rawListeners(event))
  return () => {
    for (const [at, event] of events.entries()) {
      const added = process.rawListeners(event).filter((each) => !before[at]?.includes(each))
      for (const each of added) process.removeListener(event, each as () => void)
    }
  }
}

/** Runs a command on the database of a service under test. */
export function run(service: Service, args: readonly string[], input?: string): Promise<Exit> {
  return runVerb(args, { DATABASE_URL: service.database.url, PARLEY_SECRET: testSecret }, input)
}

/** The JSON that the command prints. */
export async function runJson<T>(service: Service, args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await run(service, [...args, '--json'])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as T
}

/** The sentence with which the command refuses. */
export async function runRefused(service: Service, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(service, args)
  expect([code, stdout]).toEqual([1, ''])
  return stderr
}
