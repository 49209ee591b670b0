/**
 * openapi.json in the hands of others (`npm run test:clients`): a client is generated, compiled and run against a demo
 * of its own, and two linters have nothing to say. The package in this folder has its own lock file, because
 * generators need TypeScript 5.
 */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endProcesses, spawnParley, until } from '../harness/process.ts'

const stepMsMax = 80_000

await step('npm ci', ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'])
await step('generate a client', ['npm', 'run', '--silent', 'generate'])
await Promise.all([
  step('compile it', ['npm', 'run', '--silent', 'compile']),
  timed('run it', walk),
  step('Redocly', ['npm', 'run', '--silent', 'lint:redocly'], { none: /\b(warning|error)s?\b/i }),
  step('Spectral', ['npm', 'run', '--silent', 'lint:spectral']),
])

async function timed(name: string, work: () => Promise<void>): Promise<void> {
  const begunAt = performance.now()
  await work()
  process.stdout.write(`== ${((performance.now() - begunAt) / 1_000).toFixed(1)} s: ${name}\n`)
}

function step(name: string, command: readonly string[], { none }: { none?: RegExp } = {}): Promise<void> {
  return timed(name, async () => {
    const said = await run(command)
    if (none?.test(said)) throw new Error(`${name}:\n${said}`)
  })
}

/** What it wrote; throws where it failed. */
function run(
  [command = '', ...args]: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const child = spawn(command, args, {
    cwd: import.meta.dirname,
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: stepMsMax,
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      if (code === 0) resolve(said)
      else reject(new Error(`${command} ${args.join(' ')} ended with ${code}:\n${said}`))
    })
  })
}

async function walk(): Promise<void> {
  const data_dir = await mkdtemp(join(tmpdir(), 'parley-clients-'))
  const parley = spawnParley(['start', '--port', '0', '--data-dir', data_dir])
  try {
    const PARLEY_BASE_URL = await parley.ready()
    const PARLEY_API_KEY = await until('the key is printed', 30_000, () => {
      return /svc_live_\w+/.exec(parley.stdout())?.[0]
    })
    process.stdout.write(await run([process.execPath, 'walk.ts'], { PARLEY_BASE_URL, PARLEY_API_KEY }))
  } finally {
    parley.signal('SIGTERM')
    await parley.exit().catch(endProcesses)
    await rm(data_dir, { recursive: true, force: true })
  }
}
