/** A service whose log cannot be written: it answers, ends when it is stopped, and later logs how much is missing. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Patch, patchEnv } from './faults/patch.ts'
import { copyDatabase, type TestDatabase } from './harness/database.ts'
import { hangMs, until } from './harness/process.ts'
import { mountSmallDisk } from './harness/small-disk.ts'

const main = join(import.meta.dirname, '..', 'src', 'main.ts')
/** So that some hundred requests are more than the log keeps. */
const holdLittle: Patch = { marker: 'limit: held log lines', replace: 'const heldBytesMax = 20_000' }
const disk = await mountSmallDisk(1)

let database: TestDatabase
let directory: string
const children = new Set<ChildProcess>()
beforeAll(async () => {
  database = await copyDatabase()
  directory = await mkdtemp(join(tmpdir(), 'parley-log-'))
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await disk?.remove()
  await rm(directory, { recursive: true, maxRetries: 10 })
  await database.drop()
})

interface Serving {
  readonly url: string
  readonly child: ChildProcess
  readonly exited: Promise<number | null>
}

interface ServeOptions {
  readonly stderr?: number
  /** What the process also does when it loads the writer of its log. */
  readonly insert?: string
  /** The verb, on the test's database unless it names a directory. */
  readonly args?: readonly string[]
}

/** A service with its output on these descriptors. */
async function serve(
  stdout: number,
  { stderr = 2, insert = '', args = ['serve'] }: ServeOptions = {},
): Promise<Serving> {
  const port = await freePort()
  const shared = { DATABASE_URL: database.url, PARLEY_SECRET: 'a secret for tests that is long enough' }
  const child = spawn(process.execPath, [main, ...args, '--port', String(port)], {
    env: {
      ...process.env,
      ...(args.includes('--data-dir') ? {} : shared),
      ...patchEnv(insert ? [holdLittle, { marker: holdLittle.marker, insert }] : [holdLittle]),
    },
    stdio: ['ignore', stdout, stderr === 2 ? 'ignore' : stderr],
  })
  children.add(child)
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const url = `http://127.0.0.1:${port}`
  await until('it answers', 180_000, async () => {
    const answer = await fetch(`${url}/healthz`).catch(() => undefined)
    return answer?.status === 200
  })
  return { url, child, exited }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

const askedAtOnce = 20

/** Each of them is a line of the log. */
async function ask({ url }: Serving, times: number): Promise<void> {
  for (let done = 0; done < times; done += askedAtOnce) {
    const answers = Array.from({ length: askedAtOnce }, async () => {
      const answer = await fetch(`${url}/api/v1/me`, { signal: AbortSignal.timeout(30_000) })
      await answer.arrayBuffer()
      return answer.status
    })
    // Without a key every request is refused, and in a new database the API is not even open.
    for (const status of await Promise.all(answers)) expect([401, 503]).toContain(status)
  }
}

interface Line {
  readonly msg: string
  readonly dropped?: number
}

/** How many lines were dropped, according to the log, and how many requests it has. */
function accountOf(text: string): { dropped: number; requests: number } {
  const lines = text
    .split('\n')
    .filter(Boolean)
    .map((line): Line => JSON.parse(line))
  const dropped = lines.reduce((sum, line) => sum + (line.dropped ?? 0), 0)
  return { dropped, requests: lines.filter(({ msg }) => msg === 'request').length }
}

async function ended({ child, exited }: Serving): Promise<number | null> {
  child.kill('SIGTERM')
  return exited
}

test('answers on a pipe without a reader, logs later how many lines were dropped, and ends at SIGTERM', async () => {
  const path = join(directory, 'pipe')
  execFileSync('mkfifo', [path])
  // Both ends, so that it is open for reading without a reader.
  const pipe = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const service = await serve(pipe)
  await ask(service, 600)
  let text = ''
  await until('the dropped lines are counted in the log', hangMs, () => {
    text += readWhatIsThere(pipe)
    return text.includes('Parley dropped log lines')
  })
  // Again there is no reader.
  await ask(service, 600)
  expect(await ended(service)).toBe(0)
  closeSync(pipe)
  const { dropped, requests } = accountOf(text.slice(0, text.lastIndexOf('\n')))
  expect(dropped).toBeGreaterThan(0)
  expect(requests).toBeGreaterThan(0)
})

function readWhatIsThere(fd: number): string {
  const piece = Buffer.alloc(64 * 1024)
  try {
    return piece.toString('utf8', 0, readSync(fd, piece))
  } catch {
    return ''
  }
}

test('answers on a full device, and ends at SIGTERM', async () => {
  const full = openSync('/dev/full', 'w')
  const service = await serve(full)
  await ask(service, 200)
  expect(await ended(service)).toBe(0)
  closeSync(full)
})

test('a first start continues although its greeting cannot be written', async () => {
  const full = openSync('/dev/full', 'w')
  const data_dir = join(directory, 'data')
  const service = await serve(full, { args: ['start', '--data-dir', data_dir, '--admin-port', '0'] })
  await until('it is ready', 180_000, async () => (await fetch(`${service.url}/readyz`)).status === 200)
  await ask(service, 200)
  expect(await ended(service)).toBe(0)
  closeSync(full)
})

test('a failure ends it although neither log nor error output can be written', async () => {
  const full = openSync('/dev/full', 'w')
  const insert = "process.on('SIGUSR2', () => { throw new Error('an unforeseen failure') })"
  const service = await serve(full, { stderr: full, insert })
  await ask(service, 200)
  service.child.kill('SIGUSR2')
  expect(await service.exited).toBe(1)
  closeSync(full)
})

test.skipIf(!disk)(
  'drops lines on a full disk, and with space again every line or its loss is logged',
  async () => {
    const path = join(disk?.path ?? '', 'parley.log')
    const log = openSync(path, 'a')
    const service = await serve(log)
    await disk?.fill()
    await ask(service, 300)
    await disk?.empty()
    await until('the dropped lines are counted in the log', hangMs, () =>
      readFileSync(path, 'utf8').includes('Parley dropped log lines'),
    )
    await ask(service, 20)
    expect(await ended(service)).toBe(0)
    closeSync(log)
    const { dropped, requests } = accountOf(readFileSync(path, 'utf8'))
    expect(dropped).toBeGreaterThan(0)
    // Health was requested at least once at the start, and its lines may be among them.
    expect(dropped + requests).toBeGreaterThanOrEqual(320)
  },
)
