/** README as a script: every command of it is typed as it stands, on a fresh instance, and says what README shows. */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { copyDatabase } from './harness/database.ts'
import { endProcesses, type Parley, spawnParley, until } from './harness/process.ts'
import { testSecret } from './harness/worker.ts'

const root = join(import.meta.dirname, '..')
const main = join(root, 'src', 'main.ts')
const readme = await readFile(join(root, 'README.md'), 'utf8')

interface Block {
  readonly section: string
  /** `sh` is typed; what follows it without a language, or as `json`, is what it says. */
  readonly language: string
  readonly text: string
}

const blocks: readonly Block[] = readme.split(/^## /m).flatMap((part) => {
  const [section = ''] = part.split('\n')
  return [...part.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({
    section,
    language,
    text,
  }))
})

/** Not typed here, each for its reason. */
const elsewhere = (block: Block) =>
  // Whoever runs this test has done it; what `npm start` is, is checked below.
  block.text.startsWith('npm ci') ||
  // A test of its own.
  block.text.includes('node --env-file') ||
  // Typed in test/several-processes.test.ts.
  block.section === 'Your own PostgreSQL, several processes'

let home: string
let service: Parley
/** What stands in README, and what it is here. */
const meant = new Map<string, string>()

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'parley-readme-'))
  service = await start('data', {})
  const [, token = ''] = /setup#(\w+)/.exec(service.stdout()) ?? []
  meant.set(/setup#(\w+)/.exec(readme)?.[1] ?? 'none', token)
})
afterAll(async () => {
  await endProcesses()
  await rm(home, { recursive: true, force: true })
})

/** From then on README's addresses and its key are those of this one. */
async function start(data: string, env: Readonly<Record<string, string>>): Promise<Parley> {
  const parley = join(root, 'bin', 'parley.js')
  const started = spawnParley(['start', '--port', '0', '--data-dir', join(home, data)], env, parley)
  meant.set('http://127.0.0.1:8080', await started.ready())
  meant.set('http://127.0.0.1:8081', await started.admin())
  const key = await until('the key is told', 30_000, () => /svc_live_\w+/.exec(started.stdout())?.[0])
  meant.set(/svc_live_\w+/.exec(readme)?.[0] ?? 'none', key)
  return started
}

function fill(text: string): string {
  return [...meant].reduce((filled, [shown, real]) => filled.replaceAll(shown, real), text)
}

/** In one shell session, as far as anybody can tell: what was exported stays. */
async function type(command: string): Promise<string> {
  const script = `npx() { shift; "$NODE" "$MAIN" "$@"; }
    [ -f vars ] && . ./vars
    ${fill(command)}
    code=$?; export -p > vars; exit $code`
  const { PATH, HOME, TMPDIR } = process.env
  const env = { PATH, HOME, TMPDIR, NODE: process.execPath, MAIN: main, PARLEY_DATA_DIR: join(home, 'data') }
  const child = spawn('sh', ['-c', script], { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const said = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said.err += text
  })
  const code = await new Promise((resolve) => child.once('close', resolve))
  expect([command, code, said.err]).toEqual([command, 0, ''])
  return said.out
}

const shapes: Readonly<Record<string, RegExp>> = {
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  time: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  account: /^acc_\w{20}$/,
  event: /^evt_[0-9a-f]{32}$/,
  key: /^svc_live_\w{6}$/,
  number: /^\d+$/,
}

/** Ids and times are compared by their shape, everything else as it is. */
function shapeOf(value: unknown): unknown {
  if (typeof value !== 'string') return value
  return Object.entries(shapes).find(([, shape]) => shape.test(value))?.[0] ?? value
}

/** `…` stands for anything else. */
function isShown(shown: unknown, real: unknown): boolean {
  if (shown === '…') return true
  if (Array.isArray(shown)) {
    if (!Array.isArray(real)) return false
    const items = shown.filter((item) => item !== '…')
    if (items.length < shown.length) return items.every((item) => real.some((each) => isShown(item, each)))
    return shown.length === real.length && shown.every((item, at) => isShown(item, real[at]))
  }
  if (typeof shown === 'object' && shown !== null) {
    if (typeof real !== 'object' || real === null) return false
    const { '…': more, ...named } = shown as Record<string, unknown>
    const found = real as Record<string, unknown>
    if (more === undefined && Object.keys(found).length !== Object.keys(named).length) return false
    return Object.entries(named).every(([name, value]) =>
      name === 'sequence' ? typeof found[name] === 'number' : isShown(value, found[name]),
    )
  }
  return shapeOf(shown) === shapeOf(real)
}

/** Lines such as headers: each that is shown is there, with its numbers as they may be. */
function areLinesShown(shown: string, real: string): boolean {
  const plain = (text: string) =>
    text.split(/\r?\n/).map((line) => line.replace(/: (\d+|[0-9a-f-]{36})$/, ': #'))
  const lines = plain(real)
  return plain(shown.trim()).every((line) => line === '…' || lines.includes(line))
}

function says({ language, text }: Block, real: string): boolean {
  if (language !== 'json') return areLinesShown(fill(text), real)
  try {
    return isShown(JSON.parse(text), JSON.parse(real))
  } catch {
    return false
  }
}

/** A line that README continues is one command, and so is one with the text that it is given. */
const commandsOf = ({ text }: Block) =>
  text.replaceAll(/\\\n\s*/g, '').match(/^[^\n]*<<(\w+)\n.*?\n\1$|^[^\n]+$/gms) ?? []

/** Whoever types is slower than this test. What has no effect of its own is asked again until the service is as far. */
async function typeUntil(command: string, good: (said: string) => boolean): Promise<string> {
  const deadline = performance.now() + 30_000
  const once = command.includes('/sandbox/v1/') && command.includes(' -d ')
  for (;;) {
    const said = await type(command)
    if (good(said)) return said
    if (once || performance.now() > deadline)
      throw new Error(`README shows something else than this.\n${command}\n${said}`)
  }
}

/** The ids that later commands need. */
function learn(command: string, said: string): void {
  const [, noun] = /^npx parley (workspace|user) /.exec(command) ?? []
  const id = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(said)?.[0]
  if (noun && id) meant.set(`${noun.toUpperCase()}_ID`, id)
  const [, campaign] = /"campaign":\{"id":"([^"]+)"/.exec(said) ?? []
  if (campaign) meant.set('CAMPAIGN_ID', campaign)
}

/** `NAME=value npm start -- --data-dir DIR`: what README starts besides the first one. */
const started = /^(\w+)=(\w+) npm start -- --data-dir (\S+)$/

async function typeBlock(block: Block, shown: Block | undefined): Promise<void> {
  const commands = commandsOf(block)
  const isCurl = (command: string) => command.startsWith('curl')
  // JSON is what the last request is answered with; anything else is what the last line says.
  const last = shown?.language === 'json' ? commands.findLastIndex(isCurl) : commands.length - 1
  for (const [at, command] of commands.entries()) {
    const [, name, value, data] = started.exec(command) ?? []
    if (name && value && data) await start(data, { [name]: value })
    else if (shown && at === last) learn(command, await typeUntil(command, (said) => says(shown, said)))
    else if (!isCurl(command)) learn(command, await type(command))
    else learn(command, await typeUntil(command, (said) => !('error' in JSON.parse(said))))
  }
}

describe('README', () => {
  test('shows what the first start says', () => {
    const [shown] = blocks.filter(({ section, language }) => section === 'A first session' && !language)
    // Where it is no terminal, the log stands around it.
    const told = service.stdout().replaceAll(/^\{.*\n/gm, '')
    expect(told.trim()).toBe(fill(shown?.text ?? '').trim())
  })

  // In the order of the page, because later ones use what earlier ones made.
  const typed = blocks.flatMap((block, at) => {
    if (block.language !== 'sh' || elsewhere(block)) return []
    const next = blocks[at + 1]
    const shown = next && ['json', ''].includes(next.language) ? next : undefined
    return [[`${block.section}: ${commandsOf(block)[0]?.slice(0, 60)}`, block, shown] as const]
  })
  test.each(typed)('%s', (_, block, shown) => typeBlock(block, shown))

  test('has been typed, all of it', () => {
    const commands = typed.flatMap(([, block]) => commandsOf(block))
    expect(commands.length).toBeGreaterThan(30)
    expect(typed.filter(([, , shown]) => shown).length).toBeGreaterThan(10)
    expect([...meant.keys()]).toEqual(expect.arrayContaining(['WORKSPACE_ID', 'USER_ID', 'CAMPAIGN_ID']))
    const others = blocks.filter((block) => block.language === 'sh' && elsewhere(block))
    expect(others.map(({ section }) => section)).toEqual([
      'Run it',
      'Run it',
      'Configuration',
      ...Array(3).fill('Your own PostgreSQL, several processes'),
    ])
  })

  test('npm start is what was started here', async () => {
    const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    expect(scripts.start).toBe('exec node bin/parley.js start')
  })

  test('Configuration: Node reads a file of variables', async () => {
    const [block] = blocks.filter(({ text }) => text.includes('node --env-file'))
    expect(block?.text.trim()).toBe('cp .env.example .env\nnode --env-file=.env bin/parley.js start')
    const database = await copyDatabase()
    const file = join(home, '.env')
    await writeFile(file, `DATABASE_URL=${database.url}\nPARLEY_SECRET='${testSecret}'\n`)
    const args = ['start', '--port', '0', '--admin-port', '0', '--data-dir', join(home, 'own')]
    const serving = spawnParley(args, {}, join(root, 'bin', 'parley.js'), [`--env-file=${file}`])
    expect((await fetch(`${await serving.ready()}/readyz`)).status).toBe(200)
    serving.signal('SIGTERM')
    expect(await serving.exit()).toMatchObject({ code: 0 })
    await database.drop()
  })
})
