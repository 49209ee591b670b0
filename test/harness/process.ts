/** Real `parley` processes: what an operator starts and a supervisor sees. Each is ended by its own process id. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { dialled, dialledExitCode } from './loopback-only.ts'

const root = join(import.meta.dirname, '..', '..')
const ourMain = join(root, 'bin', 'main.js')
/** Processes share it, so that types are stripped and sources compiled only once. */
const NODE_COMPILE_CACHE = join(root, 'node_modules', '.cache', 'node')
/** Loaded first: a process that dials another machine ends. */
const loopbackOnly = ['--import', new URL('./loopback-only.ts', import.meta.url).href]
const readyMsMax = 180_000
const exitMsMax = 180_000

export interface Exit {
  /** Null when a signal ended it. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Parley {
  readonly pid: number
  /** What it has printed so far. */
  stdout(): string
  stderr(): string
  /** The address it answers at, from the log line that says it is ready. */
  ready(): Promise<string>
  /** The address of its admin port, from the same line. */
  admin(): Promise<string>
  signal(name: NodeJS.Signals): void
  exit(): Promise<Exit>
  /** Like `exit` but without a time limit: for a process that is expected to run. */
  ended(): Promise<Exit>
}

/** As `bin/parley.js` starts Node. */
const smallHeap = ['--max-semi-space-size=16']
const running = new Set<ChildProcess>()
const { PATH, HOME, TMPDIR } = process.env

export function spawnParley(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  main = ourMain,
  flags: readonly string[] = [],
  input?: string,
): Parley {
  // The default is the checkout's own directory, which belongs to the developer.
  const writes = ['start', 'work', 'sandbox', 'data-centre'].includes(args[0] ?? '')
  if (writes && !args.includes('--data-dir') && !args.includes('--help')) {
    throw new Error(`A test that runs \`parley ${args[0]}\` names a --data-dir of its own.`)
  }
  const child = spawn(process.execPath, [...smallHeap, ...loopbackOnly, ...flags, main, ...args], {
    env: { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.on('error', () => {}).end(input)
  const written = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    written.stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    written.stderr += text
  })
  running.add(child)
  const { promise: exited, resolve } = Promise.withResolvers<Exit>()
  child.once('close', (code) => {
    running.delete(child)
    if (code === dialledExitCode) dialled.push(`a process: ${written.stderr}`)
    resolve({ code, ...written })
  })
  const lineOfReady = () =>
    until('the process is ready', readyMsMax, () => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(
          `It ended with ${child.exitCode ?? child.signalCode}: ${written.stdout}${written.stderr}`,
        )
      return readyIn(written.stdout)
    })
  return {
    pid: child.pid ?? 0,
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    ready: async () => (await lineOfReady()).address,
    admin: async () => {
      const { admin_address } = await lineOfReady()
      if (!admin_address) throw new Error('It has no admin port.')
      return admin_address
    },
    signal: (name) => void child.kill(name),
    exit: () => within(exitMsMax, exited, () => `it did not end: ${written.stdout}${written.stderr}`),
    ended: () => exited,
  }
}

/** Runs a verb to its end. */
export function runParley(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Exit> {
  return spawnParley(args, env).exit()
}

/** For afterAll: ends what a failed test left running. */
export async function endProcesses(): Promise<void> {
  const gone = [...running].map((child) => new Promise((resolve) => child.once('close', resolve)))
  for (const child of running) child.kill('SIGKILL')
  await Promise.all(gone)
}

interface Ready {
  readonly address: string
  readonly admin_address?: string
}

function readyIn(stdout: string): Ready | undefined {
  for (const line of stdout.split('\n').slice(0, -1)) {
    if (line.startsWith('{') && line.includes('"msg":"ready"')) return JSON.parse(line)
  }
  return undefined
}

/**
 * How long a test waits for a state that comes by itself: longer than any busy machine takes, and less than a test may. With a
 * mutant the state may never come, and that run only has to fail.
 */
export const hangMs = process.env.TEST_MUTANT ? 30_000 : 150_000

/** Polls until there is an answer; on time-out, the error names what it waited for. */
export async function until<T>(
  what: string,
  msMax: number,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  everyMs = 20,
): Promise<T> {
  const deadline = performance.now() + msMax
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    if (performance.now() > deadline) throw new Error(`Waited ${msMax} ms in vain until ${what}.`)
    await sleep(everyMs)
  }
}

async function within<T>(msMax: number, work: Promise<T>, problem: () => string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(problem())), msMax)
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * A free port of this machine; the next one is free too, for a second data centre. Below those that the system gives to outgoing
 * connections: another test's connection could take one of them before the process listens.
 */
export async function freePort(): Promise<string> {
  for (;;) {
    const port = 20_000 + 2 * randomInt(5_000)
    if ((await canListen(port)) && (await canListen(port + 1))) return String(port)
  }
}

async function canListen(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** The servers whose command line names this data directory, found the way an operator would. */
export async function serversOf(data_dir: string): Promise<number[]> {
  const numbers = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    numbers.map(async (pid) => {
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      return command.includes('bin/postgres\0') && command.includes(`${data_dir}/`) ? [Number(pid)] : []
    }),
  )
  return found.flat()
}
