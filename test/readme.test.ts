/** README and the guides as one session: every command is typed as it stands, on a fresh instance, and prints what they show. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { copyDatabase } from './harness/database.ts'
import { type Block, blocksOf, commandsOf, isOutput, readPage } from './harness/pages.ts'
import { endProcesses, freePort, hangMs, type Parley, spawnParley, until } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { testSecret } from './harness/worker.ts'

const root = join(import.meta.dirname, '..')
const main = join(root, 'bin', 'parley.js')

/** In this order, because later pages use what earlier ones made. */
const typedFirst = ['README.md', 'docs/quickstart.md', 'docs/campaigns.md', 'docs/cli.md']
const others = globSync('docs/*.md', { cwd: root }).filter((page) => !typedFirst.includes(page))
const pages = [...typedFirst, ...others.sort()]
const blocks = pages.flatMap(blocksOf)
const [readmeText, quickstartText] = pages.map(readPage)

/** Not typed here: the page, how the block begins, and the file that tests it instead. */
const elsewhere: readonly (readonly [page: string, begins: string, where: string])[] = [
  ['README.md', 'npm ci && npm start', 'package.json'],
  ['README.md', 'npm ci && npm test', '.ci/run'],
  ['docs/configuration.md', 'cp .env.example .env', 'test/readme.test.ts'],
  ['docs/scaling.md', 'export DATABASE_URL=', 'test/several-processes.test.ts'],
  ['docs/scaling.md', 'bin/parley.js workspace create', 'test/several-processes.test.ts'],
  ['docs/scaling.md', 'sleep 1', 'test/several-processes.test.ts'],
  ['docs/scaling.md', 'export CLONE_URL=', 'test/clone-drill.test.ts'],
  // README's restore is typed.
  ['docs/operating.md', 'mv .parley/postgres', 'test/backup.test.ts'],
  ['docs/operating.md', 'bin/parley.js restore --mark', 'test/backup.test.ts'],
  ['docs/operating.md', 'bin/parley.js operation list --ambiguous', 'test/limits/unknown.test.ts'],
  ['docs/operating.md', 'bin/parley.js serve --port 8080 --admin-port', 'test/admin.test.ts'],
  ['docs/operating.md', 'bin/parley.js workspace update', 'test/cli-campaigns.test.ts'],
  ['docs/operating.md', 'bin/parley.js person find', 'test/cli-crm.test.ts'],
  ['docs/operating.md', 'bin/parley.js suppress add', 'test/cli-crm.test.ts'],
  ['docs/telegram.md', 'export PARLEY_TELEGRAM_API_ID=', 'test/telegram.test.ts'],
  ['docs/telegram.md', 'bin/parley.js account create', 'test/telegram.test.ts'],
  ['docs/telegram.md', 'bin/parley.js account set ACCOUNT_ID --proxy', 'test/proxies.test.ts'],
  ['docs/telegram.md', 'bin/parley.js telegram rehearse', 'test/telegram-rehearse.test.ts'],
  ['docs/upgrading.md', 'docker compose build', 'test/deploy.test.ts'],
  ['docs/upgrading.md', 'systemd-run', 'test/deploy.test.ts'],
  ['docs/upgrading.md', 'kubectl replace', 'test/deploy.test.ts'],
  ['docs/upgrading.md', 'for name in PARLEY_METRICS_TOKEN', 'test/deploy-programs.test.ts'],
  ['docs/upgrading.md', 'for name in serve-1', 'test/deploy.test.ts'],
  // The quickstart's endpoint is typed.
  ['docs/webhooks.md', 'export BASE=', 'test/webhooks-page.test.ts'],
  ['docs/webhooks.md', 'export PARLEY_API_KEY=', 'test/cli-webhooks.test.ts'],
  // Programs of others; that file runs the libraries they are built on.
  ['docs/mcp.md', 'claude mcp add', 'test/clients/run.ts'],
  ['docs/mcp.md', 'npx @modelcontextprotocol/inspector', 'test/clients/run.ts'],
  ['docs/mcp.md', 'npx mcp-remote', 'test/clients/run.ts'],
]
const isElsewhere = (block: Block) =>
  elsewhere.some(([page, begins]) => block.page === page && block.text.startsWith(begins))

let home: string
let service: Parley
let firstWelcome: string
/** What the pages say, and what it is here. */
const meant = new Map<string, string>()
const background: ChildProcess[] = []
let receiverPort: string

beforeAll(async () => {
  home = await makeScratch('parley-readme-')
  // The pages' commands are typed in a checkout.
  await mkdir(join(home, 'bin'))
  await writeFile(join(home, 'bin', 'parley.js'), '#!/bin/sh\nexec "$NODE" "$MAIN" "$@"\n', { mode: 0o755 })
  service = await startNew('.parley', {})
  const [, token = ''] = /setup#(\w+)/.exec(service.stdout()) ?? []
  meant.set(/setup#(\w+)/.exec(quickstartText ?? '')?.[1] ?? 'none', token)
  // Without a terminal, log lines surround it.
  firstWelcome = service.stdout().replaceAll(/^\{.*\n/gm, '')
})
afterAll(async () => {
  for (const { pid } of background) if (pid) endGroup(pid)
  await endProcesses()
  await rm(home, { recursive: true, force: true })
})

function startOn(data: string, ports: readonly string[], env: Readonly<Record<string, string>>): Parley {
  const args = ['start', ...ports, '--data-dir', join(home, data)]
  return spawnParley(args, env, join(root, 'bin', 'parley.js'))
}

/** From then on the pages' addresses and key are those of this instance. */
async function startNew(data: string, env: Readonly<Record<string, string>>): Promise<Parley> {
  const started = startOn(data, ['--port', '0'], env)
  meant.set('http://127.0.0.1:8080', await started.ready())
  meant.set('http://127.0.0.1:8081', await started.admin())
  const key = await until('the key is printed', hangMs, () => /svc_live_\w+/.exec(started.stdout())?.[0])
  meant.set(/svc_live_\w+/.exec(readmeText ?? '')?.[0] ?? 'none', key)
  return started
}

/** `npm start` once more: on the same ports, because files written in the meantime name them. */
async function startAgain(env: Readonly<Record<string, string>>): Promise<void> {
  await stop('SIGTERM')
  const port = (shown: string) => new URL(meant.get(shown) ?? shown).port
  const ports = ['--port', port('http://127.0.0.1:8080'), '--admin-port', port('http://127.0.0.1:8081')]
  service = startOn('.parley', ports, env)
  await service.ready()
}

async function stop(signal: NodeJS.Signals): Promise<void> {
  service.signal(signal)
  await service.exit()
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

function fill(text: string): string {
  return [...meant].reduce((filled, [shown, real]) => filled.replaceAll(shown, real), text)
}

function shell(command: string): ChildProcess {
  const script = `npx() { shift; "$NODE" "$@"; }
    [ -f vars ] && . ./vars
    ${fill(command)}
    code=$?; export -p > vars; exit $code`
  const { PATH, HOME, TMPDIR } = process.env
  const own = { NODE: process.execPath, MAIN: main, PARLEY_DATA_DIR: join(home, '.parley') }
  const PARLEY_BASE_URL = meant.get('http://127.0.0.1:8080')
  const env = { PATH, HOME, TMPDIR, ...own, PARLEY_BASE_URL }
  return spawn('sh', ['-c', script], { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
}

/** In one shell session, as far as a command can notice: exported variables stay. */
async function type(command: string): Promise<string> {
  const child = shell(command)
  const written = { out: '', err: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    written.out += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    written.err += text
  })
  const code = await new Promise((resolve) => child.once('close', resolve))
  expect([command, code, written.err]).toEqual([command, 0, ''])
  return written.out
}

/** `command &`, until its purpose has happened. */
async function typeInBackground(command: string): Promise<void> {
  const journal = async () => (await fetch(fill('http://127.0.0.1:8081/sandbox/v1/journal'))).text()
  const before = await journal()
  background.push(shell(command.replace(/ &$/, '')))
  await until(`${command} has had its effect`, hangMs, async () => {
    return command.startsWith('sh send.sh') ? (await journal()).length > before.length : receiverListens()
  })
}

/** A receiver refuses unsigned requests. */
function receiverListens(): Promise<boolean> {
  return fetch(`http://127.0.0.1:${receiverPort}`, { method: 'POST', body: '{}' }).then(
    ({ status }) => status === 401,
    () => false,
  )
}

/** A person types more slowly. A command without effects is repeated until the service is ready. */
async function typeUntil(command: string, good: (output: string) => boolean): Promise<string> {
  const deadline = performance.now() + 120_000
  const once = command.includes('/sandbox/v1/') && command.includes(' -d ')
  for (;;) {
    const output = await type(command)
    if (good(output)) return output
    if (once || performance.now() > deadline)
      throw new Error(`The page shows something else than this.\n${command}\n${output}`)
    // The key's rate limit counts every repetition.
    await sleep(500)
  }
}

/** Keeps the ids that later commands need. */
function learn(command: string, output: string): void {
  const [, noun] = /^bin\/parley\.js (workspace|user) /.exec(command) ?? []
  const id = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(output)?.[0]
  if (noun && id) meant.set(`${noun.toUpperCase()}_ID`, id)
  const [, made, made_id] = /"(campaign|webhook)":\{"id":"([^"]+)"/.exec(output) ?? []
  if (made && made_id) meant.set(`${made.toUpperCase()}_ID`, made_id)
  const [, secret] = /"secret":"(whsec_[^"]+)"/.exec(output) ?? []
  if (secret) meant.set('WEBHOOK_SECRET', secret)
}

/** `NAME=value npm start -- --data-dir DIR`, each part but the middle one optional. */
const npmStart = /^(?:(\w+)=(\S+) )?npm start(?: -- --data-dir (\S+))?$/

/** What a person does in the other terminal. */
async function typeAtService(command: string): Promise<boolean> {
  const [start, name, value, data] = npmStart.exec(command) ?? []
  const env = name && value ? { [name]: value } : {}
  if (start && data) await startNew(data, env)
  else if (start) await startAgain(env)
  else if (command === "pkill -9 -f 'bin/parley.js start'") await stop('SIGKILL')
  else return false
  return true
}

/** What the text above a command asks for, or leaves time for. */
async function prepare(command: string): Promise<void> {
  if (command.startsWith('mv .parley/postgres')) await stop('SIGINT')
  if (command !== 'bin/parley.js dispatch on') return
  await until('the journals have put back what they know', hangMs, async () => {
    const response = await fetch(fill('http://127.0.0.1:8080/readyz'))
    const { checks } = (await response.json()) as { checks: { dispatch: string } }
    return checks.dispatch === 'off'
  })
}

async function typeBlock(block: Block, shown: Block | undefined): Promise<void> {
  const commands = commandsOf(block)
  const isRequest = (command: string) => command.startsWith('curl') || command === 'sh send.sh'
  // JSON is the response to the last request; anything else is the output of the last line.
  const last = shown?.language === 'json' ? commands.findLastIndex(isRequest) : commands.length - 1
  for (const [at, command] of commands.entries()) {
    await prepare(command)
    if (await typeAtService(command)) continue
    if (command.endsWith(' &')) await typeInBackground(command)
    else if (shown && at === last) {
      const filled = { ...shown, text: fill(shown.text) }
      learn(command, await typeUntil(command, (output) => isOutput(filled, output)))
    } else if (!isRequest(command)) learn(command, await type(command))
    else learn(command, await typeUntil(command, (output) => !('error' in JSON.parse(output))))
  }
}

describe('README and guides', () => {
  test('README has at most 200 lines, and its first session at most 40', () => {
    expect(readmeText?.split('\n').length).toBeLessThanOrEqual(201)
    const [, session = ''] = readmeText?.split('\n## A first session\n') ?? []
    expect(session.split('\n## ')[0]?.split('\n').length).toBeLessThanOrEqual(40)
  })

  test('show what the first start prints', () => {
    const [shown] = blocks.filter(({ section, language }) => section === 'The first start' && !language)
    expect(firstWelcome.trim()).toBe(fill(shown?.text ?? '').trim())
  })

  test('the receivers of the quickstart are saved as it says', async () => {
    receiverPort = await freePort()
    meant.set('http://127.0.0.1:3000', `http://127.0.0.1:${receiverPort}`)
    for (const [language, file] of [
      ['ts', 'receiver.ts'],
      ['python', 'receiver.py'],
    ] as const) {
      const code = blocks.filter(
        (block) => block.page.endsWith('quickstart.md') && block.language === language,
      )
      expect(code.map(({ text }) => text.includes('3000'))).toEqual([true])
      await writeFile(join(home, file), code[0]?.text.replaceAll('3000', receiverPort) ?? '')
    }
  })

  const typed = blocks.flatMap((block, at) => {
    if (block.language !== 'sh' || isElsewhere(block)) return []
    const next = blocks[at + 1]
    const shown = next?.page === block.page && ['json', ''].includes(next.language) ? next : undefined
    return [[`${block.page}, ${block.section}: ${commandsOf(block)[0]?.slice(0, 60)}`, block, shown] as const]
  })
  test.each(typed)('%s', (_, block, shown) => typeBlock(block, shown))

  test('the receiver in Python verifies the same deliveries', async ({ skip }) => {
    const python = ['python3', 'python'].find((name) => spawnSync(name, ['--version']).status === 0)
    if (!python) return skip()
    for (const { pid } of background) if (pid) endGroup(pid)
    background.push(shell(`${python} receiver.py`))
    // Requests go to the first instance, whichever was started last.
    const url = await service.ready()
    await until('it listens', hangMs, receiverListens)
    await type(`PARLEY_BASE_URL=${url} bin/parley.js webhook test WEBHOOK_ID`)
  })

  test('have all been typed, here or where this file says', () => {
    const commands = typed.flatMap(([, block]) => commandsOf(block))
    expect(commands.length).toBeGreaterThan(55)
    expect(typed.filter(([, , shown]) => shown).length).toBeGreaterThan(13)
    const ids = ['WORKSPACE_ID', 'USER_ID', 'CAMPAIGN_ID', 'WEBHOOK_ID', 'WEBHOOK_SECRET']
    expect([...meant.keys()]).toEqual(expect.arrayContaining(ids))
    for (const [page, begins, where] of elsewhere) {
      const found = blocks.filter((block) => block.page === page && block.text.startsWith(begins))
      expect([page, begins, found.length, existsSync(join(root, where))]).toEqual([page, begins, 1, true])
    }
  })

  test('npm start is what was started here', async () => {
    const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    expect(scripts.start).toBe('exec node --max-semi-space-size=16 bin/parley.js start')
  })

  test('docs/configuration.md: Node reads a file of variables', async () => {
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
