/** The dashboard's own rules: what it may import, what it may not do, and how much a browser has to load. */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, statSync } from 'node:fs'
import { basename, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { codeOf, splitHidden } from '../web/src/hidden-characters.ts'
import { askersOf } from '../web/src/pages/approval-asker.ts'

const root = join(import.meta.dirname, '..')
const source = join(root, 'web', 'src')
const assets = join(root, 'web', 'dist', 'assets')
const shellKilobytesMax = 160
const pageKilobytesMax = 45

const texts = new Map(
  globSync('**/*.{ts,tsx}', { cwd: source }).map((file) => [file, readFileSync(join(source, file), 'utf8')]),
)
const imports = [...texts].flatMap(([from, text]) =>
  [...text.matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map((match) => ({
    from,
    to: match[1] ?? '',
  })),
)

test('imports its own files and packages, and nothing of the service', () => {
  expect(imports.length).toBeGreaterThan(100)
  const outside = imports.filter(
    ({ from, to }) => to.startsWith('.') && normalize(join(from, '..', to)).startsWith('..'),
  )
  expect(outside).toEqual([])
  expect(imports.filter(({ to }) => to.startsWith('node:'))).toEqual([])
})

test("components import no page, and pages import only each other's parts", () => {
  const wrong = imports.filter(({ from, to }) => from.startsWith('ui/') && to.includes('pages/'))
  expect(wrong).toEqual([])
})

test('text never becomes markup or code', () => {
  const risky = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcDoc/
  expect([...texts].filter(([, text]) => risky.test(text)).map(([file]) => file)).toEqual([])
})

test('shows invisible characters as their codes, except those of an emoji, a keycap and line breaks', () => {
  const hidden = [
    [
      0x00, 0x08, 0x0b, 0x1b, 0x7f, 0x85, 0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180e,
      0x180f,
    ],
    [
      0x200b, 0x200c, 0x200d, 0x200e, 0x2028, 0x2029, 0x202e, 0x2060, 0x2064, 0x2065, 0x2066, 0x206f, 0x2800,
      0x3164,
    ],
    [0xfe00, 0xfe0e, 0xfe0f, 0xfeff, 0xffa0, 0xfff0, 0xfff9, 0xffff, 0xe000, 0xfdd0, 0x378, 0x16fe4, 0x13440],
    [0x1bca0, 0x1d173, 0xe0041, 0xe0100, 0xe01ef, 0x10ffff],
  ].flat()
  for (const code of hidden) {
    const character = String.fromCodePoint(code)
    expect(splitHidden(`a${character}b`), code.toString(16)).toEqual(['a', character, 'b'])
  }
  // A message can be hidden in the characters after one sign, a few bits each.
  const carried = ['\ufe06', '\ufe09', '\ufe0f', '\ufe0f']
  const parts = splitHidden(`\u2764\ufe0f${carried.join('')}!`)
  expect(parts.filter((_, at) => at % 2 === 1)).toEqual(carried)
  expect(splitHidden('1\ufe0f')).toHaveLength(3)
  const plain = [
    'Grüße, 日本語, עברית, ไทย',
    'two\nlines\tand a tab',
    '❤️ ☎︎ 1️⃣ 👩🏽‍🚀 🏳️‍🌈 ❤️‍🔥 👨‍👩‍👧 🇩🇪',
    'é e\u0301',
  ]
  for (const text of plain) expect(splitHidden(text)).toEqual([text])
  expect([codeOf('\0'), codeOf('\u202e'), codeOf('\u{e0100}')]).toEqual(['U+0000', 'U+202E', 'U+E0100'])
})

test("an approval's headline begins with the name of the key, which its user chose", () => {
  const key = { name: 'My agent' }
  expect(askersOf({ key, client_name: 'Your bank' })).toEqual(['My agent', 'Your bank'])
  expect(askersOf({ key, client_name: null })).toEqual(['My agent'])
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
  expect(texts.get('side-bar.tsx')).toMatch(/<a\s+href="\/docs\/"/)
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
  const listed = [...(texts.get('router.tsx') ?? '').matchAll(/import\('\.\/pages\/([\w/-]+)\.tsx'\)/g)]
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
