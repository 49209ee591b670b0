/**
 * How long the second start takes, against the bare embedded server on the same directory.
 * Goal: less than twice the bare start plus 1.5 s.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { openEmbedded } from '../src/db/embedded.ts'

const rounds = 5
const main = join(import.meta.dirname, '..', 'bin', 'parley.js')

const data_dir = await mkdtemp(join(tmpdir(), 'parley-bench-'))
try {
  const first = await service()
  const bare = await repeat(bareServer)
  const second = await repeat(service)
  const goal = 2 * bare + 1500
  console.log(`first start, with set-up and migrations  ${ms(first)}`)
  console.log(`bare embedded server                     ${ms(bare)}`)
  console.log(`second start, until /readyz answers 200  ${ms(second)}`)
  console.log(`goal: under 2 × bare + 1,500 ms          ${ms(goal)}  ${second < goal ? 'met' : 'MISSED'}`)
  if (second >= goal) process.exitCode = 1
} finally {
  await rm(data_dir, { recursive: true, force: true })
}

/** The median of several runs: a single slow disk flush means nothing. */
async function repeat(work: () => Promise<number>): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) times.push(await work())
  return times.sort((a, b) => a - b)[Math.floor(rounds / 2)] as number
}

async function bareServer(): Promise<number> {
  const startedAt = performance.now()
  const embedded = await openEmbedded({ data_dir, claim: 'service' })
  const took = performance.now() - startedAt
  await embedded.close()
  return took
}

async function service(): Promise<number> {
  const startedAt = performance.now()
  const child = spawn(process.execPath, [main, 'start', '--port', '0', '--data-dir', data_dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const address = await readAddress(child)
  const { status } = await fetch(`${address}/readyz`)
  const took = performance.now() - startedAt
  if (status !== 200) throw new Error(`/readyz answered ${status}.`)
  child.kill('SIGTERM')
  await once(child, 'exit')
  return took
}

async function readAddress(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error('The service has no output.')
  for await (const line of createInterface(child.stdout)) {
    const address = /"address":"([^"]+)"/.exec(line)?.[1]
    if (!address) continue
    child.stdout.resume()
    return address
  }
  throw new Error('The service ended before it was ready.')
}

function ms(value: number): string {
  return `${Math.round(value).toLocaleString('en').padStart(6)} ms`
}
