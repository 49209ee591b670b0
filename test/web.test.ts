/** The dashboard's own rules: what it may not do, and how much a browser has to load. */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const source = join(root, 'web', 'src')
const assets = join(root, 'web', 'dist', 'assets')
const shellKilobytesMax = 160
const pageKilobytesMax = 35

const texts = new Map(
  globSync('**/*.{ts,tsx}', { cwd: source })
    .filter((file) => !file.endsWith('.test.ts'))
    .map((file) => [file, readFileSync(join(source, file), 'utf8')]),
)
test('text never becomes markup or code', () => {
  const risky = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcDoc/
  expect([...texts].filter(([, text]) => risky.test(text)).map(([file]) => file)).toEqual([])
})

test('refers no one to the terminal, and mentions no Idempotency-Key', () => {
  const commands = /parley (user|key|gate|operation|workspace|dispatch|account|campaign)\b|idempotency-key/i
  // The header itself, which no person sees, and the examples for programs.
  const shown = [...texts]
    .filter(([file]) => file !== 'ui/as-api-text.ts')
    .map(([file, text]) => [file, text.replace("{ 'idempotency-key': key }", '')] as const)
  expect(shown.filter(([, text]) => commands.test(text)).map(([file]) => file)).toEqual([])
})

test('its menu links to the reference, as the reference links back', () => {
  expect(texts.get('frame/side-bar.tsx')).toMatch(/<a\s+href="\/docs\/"/)
})

test('sends no request to another server', () => {
  // Pages show examples of addresses, which are reserved for that.
  const addresses = /https?:\/\/(?!www\.w3\.org|example\.com\/|localhost:3000\/)[\w.-]+/
  expect([...texts].filter(([, text]) => addresses.test(text)).map(([file]) => file)).toEqual([])
})

/** Does nothing if `npm ci` has built it. */
function build(): void {
  const built = spawnSync(process.execPath, [join(root, 'web', 'build.ts')], { encoding: 'utf8' })
  expect([built.status, built.stderr]).toEqual([0, ''])
}

test(`the shell with its first page is at most ${shellKilobytesMax} kB of gzip, without fonts`, () => {
  build()
  const first = globSync('inbox-????????.js', { cwd: assets })
  expect(first).toHaveLength(1)
  const loaded = loadShell()
  for (const file of first) load(file, loaded)
  expect(loaded.size).toBeGreaterThan(3)
  expect(kilobytesOf(loaded)).toBeLessThanOrEqual(shellKilobytesMax)
})

test(`a page is at most ${pageKilobytesMax} kB of gzip besides the shell, without what it loads on demand`, () => {
  build()
  const shell = loadShell()
  const listed = [
    ...(texts.get('frame/router.tsx') ?? '').matchAll(/import\('\.\.\/pages\/([\w/-]+)\.tsx'\)/g),
  ]
  expect(listed.length).toBeGreaterThan(9)
  const names = [...listed.map(([, path]) => basename(path ?? '')), 'chat-pane']
  const sizes = names.map((name) => {
    const loaded = new Set(shell)
    const files = globSync(`${name}-????????.js`, { cwd: assets })
    expect(files, name).toHaveLength(1)
    for (const file of files) load(file, loaded)
    return { name, kilobytes: kilobytesOf(loaded) - kilobytesOf(shell) }
  })
  expect(sizes.filter(({ kilobytes }) => kilobytes > pageKilobytesMax)).toEqual([])
})

/** What the page itself names, with its static imports. */
function loadShell(): Set<string> {
  const html = readFileSync(join(assets, '..', 'index.html'), 'utf8')
  const loaded = new Set<string>()
  for (const [, file] of html.matchAll(/\/dashboard\/assets\/([\w.-]+)/g)) load(file ?? '', loaded)
  return loaded
}

function kilobytesOf(files: ReadonlySet<string>): number {
  const bytes = [...files].map((file) => statSync(join(assets, `${file}.gz`)).size)
  return bytes.reduce((sum, size) => sum + size, 0) / 1_000
}

/** A file and its static imports; dynamic imports are not part of the shell. */
function load(file: string, loaded: Set<string>): void {
  if (loaded.has(file)) return
  loaded.add(file)
  const text = readFileSync(join(assets, file), 'utf8')
  for (const [, next] of text.matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g)) load(next ?? '', loaded)
}
