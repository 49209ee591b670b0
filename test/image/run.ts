/**
 * Builds the image of deploy/Dockerfile and starts it as deploy/ does: its root cannot be written, its user is an ordinary one, and
 * its database is a PostgreSQL elsewhere. It must migrate, become ready, serve a page and stop by itself.
 *
 *   npm run test:image [-- --with docker|podman|buildah] [--keep]
 *
 * Without a program that can build images it says so and exits 0. `--with` demands one of them; `--keep` leaves the image.
 * It needs the network for the base image, so CI does not run it. Exit 1: a check failed.
 */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { parseArgs, promisify } from 'node:util'
import { repository } from '../faults/markers.ts'
import { say } from '../faults/report.ts'
import { administer, openCluster } from '../harness/cluster.ts'
import { FakePooler } from '../harness/fake-pooler.ts'
import { freePort, until } from '../harness/process.ts'

const execute = promisify(execFile)
const programs = ['docker', 'podman', 'buildah'] as const
type Program = (typeof programs)[number]
const readyMsMax = 120_000
const user = '10001'
const database = 'image'

const { values } = parseArgs({
  options: { with: { type: 'string' }, keep: { type: 'boolean', default: false } },
})

/** Docker is installed only where its daemon answers. */
function isInstalled(program: Program): boolean {
  return spawnSync(program, program === 'docker' ? ['info'] : ['--version'], { stdio: 'ignore' }).status === 0
}

function findProgram(): Program | undefined {
  const wanted = values.with
  if (wanted === undefined) return programs.find(isInstalled)
  const program = programs.find((each) => each === wanted)
  if (!program) throw new Error(`--with names one of ${programs.join(', ')}, not ${wanted}.`)
  if (!isInstalled(program)) throw new Error(`${program} is not installed, or does not respond.`)
  return program
}

/** Does not block: the way to the database is in this process. */
async function run(program: string, args: readonly string[], { quiet = false } = {}): Promise<string> {
  const { stdout } = await execute(program, args, { cwd: repository, maxBuffer: 1 << 26 })
  if (!quiet) say(`${program} ${args[0]}: done`)
  return stdout
}

interface Image {
  /** The command line that runs the image with these arguments of Parley's, or of another program. */
  command(wanted: Run): readonly [string, ...string[]]
  /** Whether it runs as a container. What buildah runs has a root that can be written, and gets no signal. */
  readonly isContainer: boolean
  remove(): Promise<void>
}

interface Run {
  readonly env?: Readonly<Record<string, string>>
  readonly program?: string
  readonly args: readonly string[]
}

async function build(program: Program): Promise<Image> {
  const tag = `parley-test-${randomBytes(4).toString('hex')}`
  await run(program, ['build', '--file', 'deploy/Dockerfile', '--tag', tag, '.'])
  const envOf = (env: Readonly<Record<string, string>>) =>
    Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`])
  if (program !== 'buildah') {
    // /data is the volume that the image declares.
    const how = ['--rm', '--read-only', '--network', 'host']
    return {
      command: ({ env = {}, program: entry, args }) => {
        const entries = entry ? ['--entrypoint', entry] : []
        return [program, 'run', ...how, ...entries, ...envOf(env), tag, ...args]
      },
      isContainer: true,
      remove: async () => void (await run(program, ['rmi', '--force', tag])),
    }
  }
  const container = (await run('buildah', ['from', tag], { quiet: true })).trim()
  const parley = ['node', '--max-semi-space-size=16', 'bin/parley.js']
  return {
    command: ({ env = {}, program: entry, args }) => {
      const command = [...(entry ? [entry] : parley), ...args]
      return ['buildah', 'run', '--network', 'host', ...envOf(env), container, '--', ...command]
    },
    isContainer: false,
    remove: async () => {
      await run('buildah', ['rm', container])
      await run('buildah', ['rmi', '--force', tag])
    },
  }
}

function requireEqual(what: string, found: unknown, expected: unknown): void {
  if (found !== expected) throw new Error(`${what}: ${found} instead of ${expected}`)
  say(`${what}: ${found}`)
}

/** Who runs it, and whether that user can write beside /data. */
async function inspect(image: Image): Promise<void> {
  const script = `const { writeFileSync } = require('fs')
    const write = (path) => { try { writeFileSync(path, ''); return 'written' } catch ({ code }) { return code } }
    console.log([process.getuid(), write('/app/probe'), write('/data/probe')].join(' '))`
  const [program, ...args] = image.command({ program: 'node', args: ['-e', script] })
  const printed = await run(program, args, { quiet: true })
  // The files of the image belong to root.
  requireEqual(
    'user, root, /data',
    printed.trim(),
    `${user} ${image.isContainer ? 'EROFS' : 'EACCES'} written`,
  )
  if (!image.isContainer) say('SKIPPED with buildah: a root that is only read, and the end after SIGTERM')
}

async function serve(image: Image, url: string): Promise<void> {
  const env = { DATABASE_URL: url, PARLEY_SECRET: randomBytes(32).toString('hex') }
  const [first, ...rest] = image.command({ env, args: ['migrate'] })
  await run(first, rest, { quiet: true })
  say('parley migrate: done')
  const port = await freePort()
  const served = { env: { ...env, PARLEY_HOST: '127.0.0.1' }, args: ['serve', '--port', port] }
  const [program, ...args] = image.command(served)
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  try {
    const ask = (path: string) => fetch(`http://127.0.0.1:${port}${path}`)
    await until('it is ready', readyMsMax, async () => {
      if (child.exitCode !== null) throw new Error(`serve ended with ${child.exitCode}`)
      return ask('/readyz').then(
        ({ status }) => status === 200,
        () => false,
      )
    })
    requireEqual('/readyz', (await ask('/readyz')).status, 200)
    const page = await ask('/dashboard')
    requireEqual('/dashboard', page.status, 200)
    requireEqual('its type', page.headers.get('content-type')?.split(';')[0], 'text/html')
  } finally {
    child.kill('SIGTERM')
  }
  const code = await ended
  if (image.isContainer) requireEqual('exit code after SIGTERM', code, 0)
}

async function main(): Promise<number> {
  const program = findProgram()
  if (!program) {
    say(`SKIPPED: none of ${programs.join(', ')} is installed, so the image was not built`)
    return 0
  }
  say(`with ${program}`)
  const image = await build(program)
  const { cluster, close } = await openCluster()
  // The embedded server has no port.
  const way = new FakePooler(`${cluster.host}/.s.PGSQL.5432`, 'session')
  try {
    await inspect(image)
    await administer(cluster, `create database ${database}`)
    const port = await way.listen()
    await serve(image, `postgres://${cluster.user}:${cluster.password}@127.0.0.1:${port}/${database}`)
    return 0
  } finally {
    await way.close()
    await close()
    if (!values.keep) await image.remove()
  }
}

try {
  process.exitCode = await main()
} catch (error) {
  say(`FAILED: ${(error as Error).message}`)
  process.exitCode = 1
}
