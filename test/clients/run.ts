/**
 * Parley used by other programs (`npm run test:clients`): three generators make clients of openapi.json, which are compiled and
 * run against a demo with the smallest body of every operation; two linters find nothing, and agents use the tools of /api/mcp
 * with the libraries they are built on. Two client libraries of Telegram's that share no code with Parley take twenty steps at the
 * data centre of the tests. The package in this folder has its own lock file, because generators need TypeScript 5.
 */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beginSession } from '../../src/access/sessions.ts'
import { createKey } from '../../src/capabilities/keys/keys.ts'
import { makeLogger } from '../../src/cli/log.ts'
import { openApp } from '../../src/cli/open.ts'
import { readConfig } from '../../src/config.ts'
import { scopes } from '../../src/contract.ts'
import { sql } from '../../src/db/sql.ts'
import { operations } from '../../src/lists/operations.ts'
import { routes } from '../../src/lists/routes.ts'
import { identify } from '../harness/agents.ts'
import { endProcesses, hangMs, spawnParley, until } from '../harness/process.ts'

/** For a hang. */
const stepMsMax = 300_000
/** Loaded first: a process that dials another machine ends. */
const loopbackOnly = new URL('../harness/loopback-only.ts', import.meta.url).href
const PARLEY_MAIN = join(import.meta.dirname, '..', '..', 'bin', 'parley.js')

await step('npm ci', ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'])
await Promise.all(
  ['openapi-typescript', 'hey-api', 'orval'].map((name) =>
    step(`generate a client with ${name}`, ['npm', 'run', '--silent', `generate:${name}`]),
  ),
)
await step('bundle what uses them', ['npm', 'run', '--silent', 'bundle'])
await Promise.all([
  step('compile them', ['npm', 'run', '--silent', 'compile']),
  timed('run them, and agents', walkAll),
  timed("foreign clients of Telegram's protocol", walkTelegram),
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

/** Its output; throws if it failed. */
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

async function walkTelegram(): Promise<void> {
  const command = [process.execPath, '--import', loopbackOnly, 'telegram/walk.ts']
  process.stdout.write(await run(command))
}

async function walkAll(): Promise<void> {
  const data_dir = await mkdtemp(join(tmpdir(), 'parley-clients-'))
  const parley = spawnParley(['start', '--port', '0', '--data-dir', data_dir])
  try {
    const PARLEY_BASE_URL = await parley.ready()
    const PARLEY_API_KEY = await until('the key is printed', hangMs, () => {
      return /svc_live_\w+/.exec(parley.stdout())?.[0]
    })
    process.stdout.write(await run([process.execPath, 'walk.ts'], { PARLEY_BASE_URL, PARLEY_API_KEY }))
    const { agent, whole } = await makeKeys(data_dir)
    const minimal = join('generated', 'minimal-walk.mjs')
    process.stdout.write(await run([process.execPath, minimal], { PARLEY_BASE_URL, PARLEY_API_KEY: whole }))
    process.stdout.write(
      await run([process.execPath, 'mcp-walk.ts'], { PARLEY_BASE_URL, PARLEY_MAIN, ...agent }),
    )
  } finally {
    parley.signal('SIGTERM')
    await parley.exit().catch(endProcesses)
    await rm(data_dir, { recursive: true, force: true })
  }
}

/** A key for an agent, with the session of the user whose key it is, and a key with every scope. */
async function makeKeys(
  data_dir: string,
): Promise<{ agent: { PARLEY_API_KEY: string; PARLEY_COOKIE: string }; whole: string }> {
  const config = readConfig({})
  const log = makeLogger('silent')
  const app = await openApp({ config, data_dir, log, claim: 'command', operations, routes })
  try {
    const owner = await app.db.one<Record<'workspace_id' | 'user_id', string>>(sql`
      select workspace_id, user_id from keys order by created_at limit 1`)
    const rights = { name: 'agent', scopes: ['read', 'write', 'send'] as const, mcp_only: true }
    const { key } = await createKey(app, 'system', { ...owner, ...rights })
    const { key: whole } = await createKey(app, 'system', { ...owner, name: 'whole', scopes })
    const { user_id } = owner
    const { via } = await identify(app.db, user_id)
    const visitor = {
      via: {
        kind: 'visitor',
        address: '',
        user_agent: '',
        session_token: undefined,
        device_token: undefined,
      },
    } as const
    const token = await app.db.transaction((tx) => beginSession(tx, visitor, { user_id, ...via.identity }))
    return { agent: { PARLEY_API_KEY: key, PARLEY_COOKIE: `sid=${token}` }, whole }
  } finally {
    await app.close()
  }
}
