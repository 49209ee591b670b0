/**
 * Installs the archive of `npm pack` as a user does, with `npm i -g` and with `npx`, on the Nodes that Parley promises, and starts it:
 * it must become ready, serve a page and an answer to its key, and stop by itself.
 *
 *   npm run test:install [-- --nodes 20,22,24]
 *
 * It needs the network, for the packages and the Nodes, so CI does not run it: `test/deploy-installed.test.ts` does the same with
 * the packages of this checkout. Exit 1: a check failed.
 */
import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { version } from '../../src/lib/version.ts'
import { repository } from '../faults/markers.ts'
import { say } from '../faults/report.ts'
import { until } from '../harness/process.ts'

const execute = promisify(execFile)
const { values } = parseArgs({ options: { nodes: { type: 'string', default: '20,22,24' } } })

/** The environment of the caller's shell: without what npm adds for a script, such as folders that have a Node 24. */
const machinePath = (process.env.PATH ?? '')
  .split(':')
  .filter((folder) => !folder.includes('node_modules'))
  .join(':')
const machine = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name))),
  PATH: machinePath,
}

interface Place {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

async function run(command: string, args: readonly string[], place: Place): Promise<string> {
  const { stdout } = await execute(command, args, { ...place, maxBuffer: 1 << 26 })
  return stdout.trim()
}

function requireEqual(what: string, found: unknown, expected: unknown): void {
  if (found !== expected) throw new Error(`${what}: ${found} instead of ${expected}`)
  say(`${what}: ${found}`)
}

/** A Node of this line, in a folder of its own. */
async function fetchNode(home: string, line: string): Promise<string> {
  const name = `node-${process.platform}-${process.arch}`
  const cwd = join(home, `node-${line}`)
  await mkdir(cwd)
  const args = ['install', '--prefix', cwd, '--no-save', '--ignore-scripts', `${name}@${line}`]
  await run('npm', args, { cwd, env: machine })
  return join(cwd, 'node_modules', name, 'bin')
}

async function installAndStart(home: string, archive: string, line: string): Promise<void> {
  const bin = await fetchNode(home, line)
  const place = { cwd: home, env: { ...machine, PATH: `${bin}:${machinePath}` } }
  const node = await run('node', ['--version'], place)
  requireEqual(`the Node of line ${line}`, node.split('.')[0], `v${line}`)
  const prefix = join(home, `prefix-${line}`)
  await run('npm', ['install', '--global', '--prefix', prefix, archive], place)
  const parley = join(prefix, 'bin', 'parley')
  requireEqual(`${node}, npm i -g: parley --version`, await run(parley, ['--version'], place), version)
  await start(parley, join(home, `data-${line}`), node, place)
  const npx = await run('npx', ['--yes', '--package', archive, 'parley', '--version'], place)
  requireEqual(`${node}, npx: parley --version`, npx, version)
}

async function start(parley: string, data: string, node: string, place: Place): Promise<void> {
  const verb = ['start', '--port', '0', '--admin-port', '0', '--data-dir', data]
  const child = spawn(parley, verb, { ...place, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text) => {
      said += text
    })
  }
  try {
    const [address, key] = await until('it is ready', 120_000, () => {
      if (child.exitCode !== null) throw new Error(said)
      const [, at] = /"address":"([^"]+)".*"msg":"ready"/.exec(said) ?? []
      const [made] = /svc_live_\w+/.exec(said) ?? []
      return at && made ? ([at, made] as const) : undefined
    })
    const headers = { authorization: `Bearer ${key}` }
    requireEqual(`${node}: /dashboard`, (await fetch(`${address}/dashboard`)).status, 200)
    requireEqual(`${node}: /api/v1/me`, (await fetch(`${address}/api/v1/me`, { headers })).status, 200)
  } finally {
    child.kill('SIGTERM')
  }
  requireEqual(`${node}: exit code after SIGTERM`, await ended, 0)
}

async function main(): Promise<void> {
  // Open to `nobody`, who runs PostgreSQL if this user is root.
  const home = await mkdtemp(join(tmpdir(), 'parley-install-'))
  await chmod(home, 0o755)
  try {
    if (!existsSync(join(repository, 'web', 'dist')))
      throw new Error('Run `npm ci` first: it builds the pages.')
    await run('npm', ['pack', '--pack-destination', home], { cwd: repository, env: machine })
    const archive = (await readdir(home)).find((name) => name.endsWith('.tgz')) ?? ''
    say(`packed: ${archive}`)
    for (const line of values.nodes.split(',')) await installAndStart(home, join(home, archive), line)
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 10 })
  }
}

try {
  await main()
} catch (error) {
  say(`FAILED: ${(error as Error).message}`)
  process.exitCode = 1
}
