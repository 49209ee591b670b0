/** The dashboard's own rules: what it may import, what it may not do, and how much of it a browser has to load. */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, statSync } from 'node:fs'
import { join, normalize } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const source = join(root, 'web', 'src')
const assets = join(root, 'web', 'dist', 'assets')
const shellKilobytesMax = 160

const texts = new Map(
  globSync('**/*.{ts,tsx}', { cwd: source }).map((file) => [file, readFileSync(join(source, file), 'utf8')]),
)
const imports = [...texts].flatMap(([from, text]) =>
  [...text.matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map((match) => ({
    from,
    to: match[1] ?? '',
  })),
)

test('it imports its own files and packages, and nothing of the service', () => {
  expect(imports.length).toBeGreaterThan(100)
  const outside = imports.filter(
    ({ from, to }) => to.startsWith('.') && normalize(join(from, '..', to)).startsWith('..'),
  )
  expect(outside).toEqual([])
  expect(imports.filter(({ to }) => to.startsWith('node:'))).toEqual([])
})

test('components know no page, and pages know each other only by their parts', () => {
  const wrong = imports.filter(({ from, to }) => from.startsWith('ui/') && to.includes('pages/'))
  expect(wrong).toEqual([])
})

test('text never becomes markup or code', () => {
  const risky = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcDoc/
  expect([...texts].filter(([, text]) => risky.test(text)).map(([file]) => file)).toEqual([])
})

test('it asks no other server for anything', () => {
  const addresses = /https?:\/\/(?!www\.w3\.org)[\w.-]+/
  expect([...texts].filter(([, text]) => addresses.test(text)).map(([file]) => file)).toEqual([])
})

test(`the shell with its first page is at most ${shellKilobytesMax} kB of gzip, without fonts`, () => {
  // Nothing to do where `npm ci` has built it.
  const built = spawnSync(process.execPath, [join(root, 'web', 'build.ts')], { encoding: 'utf8' })
  expect([built.status, built.stderr]).toEqual([0, ''])
  const html = readFileSync(join(assets, '..', 'index.html'), 'utf8')
  const first = globSync('approvals-*.js', { cwd: assets })
  expect(first).toHaveLength(1)
  const loaded = new Set<string>()
  for (const [, file] of html.matchAll(/\/dashboard\/assets\/([\w.-]+)/g)) load(file ?? '', loaded)
  for (const file of first) load(file, loaded)
  expect(loaded.size).toBeGreaterThan(3)
  const bytes = [...loaded].map((file) => statSync(join(assets, `${file}.gz`)).size)
  expect(bytes.reduce((sum, size) => sum + size, 0) / 1_000).toBeLessThanOrEqual(shellKilobytesMax)
})

/** A file and what it imports at once; what it imports later is not part of the shell. */
function load(file: string, loaded: Set<string>): void {
  if (loaded.has(file)) return
  loaded.add(file)
  const text = readFileSync(join(assets, file), 'utf8')
  for (const [, next] of text.matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g)) load(next ?? '', loaded)
}
