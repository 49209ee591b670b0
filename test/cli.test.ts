/** The command line as an operator uses it, on an embedded database: first start, crashes, clean shutdowns. */
import { chmod, mkdir, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gates } from '../src/contract.ts'
import { runVerb } from './harness/operator.ts'
import {
  type Exit,
  endProcesses,
  hangMs,
  type Parley,
  runParley,
  serversOf,
  spawnParley,
  until,
} from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'

let home: string
let data_dir: string

beforeAll(async () => {
  home = await makeScratch('parley-cli-')
  await chmod(home, 0o755)
  data_dir = join(home, 'data')
})
afterAll(async () => {
  await endProcesses()
  for (const pid of await serversOf(home)) process.kill(pid, 'SIGKILL')
  await until('every server is gone', hangMs, async () => (await serversOf(home)).length === 0)
  await rm(home, { recursive: true, force: true })
})

const start = (...options: readonly string[]) =>
  spawnParley(['start', '--port', '0', '--data-dir', data_dir, ...options])
const verb = (...args: readonly string[]) => runVerb([...args, '--data-dir', data_dir])

/** A command prints exactly one JSON document, and nothing else. */
async function json<T>(...args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await verb(...args, '--json')
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as T
}

const keysIn = (text: string) => [...new Set(text.match(/svc_live_[0-9A-Za-z]{38}/g))]

async function statusOf(url: string, key?: string): Promise<number> {
  const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {}
  return (await fetch(url, { headers })).status
}

async function stop(service: Parley, signal: NodeJS.Signals): Promise<Exit> {
  service.signal(signal)
  const exit = await service.exit()
  expect(exit.code, exit.stdout + exit.stderr).toBe(0)
  expect(await serversOf(data_dir)).toEqual([])
  return exit
}

interface Row {
  readonly id: string
  readonly name: string
  readonly enabled: boolean
}

test("a worker on DATABASE_URL does not keep its journals in an embedded database's directory", async () => {
  const { stdout } = await runVerb(['--help'], { DATABASE_URL: 'postgres://nowhere/parley' })
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain('(default: .parley-work)')
  expect((await runVerb(['--help'])).stdout.replaceAll(/\s+/g, ' ')).toContain('(default: .parley)')
})

describe('the life of an embedded database', () => {
  let service: Parley
  let url: string
  let key: string

  test('the first start prints a key that works, and is ready', async () => {
    service = start()
    url = await service.ready()
    await until('the key is printed', hangMs, () => keysIn(service.stdout()).length > 0)
    expect(keysIn(service.stdout())).toHaveLength(1)
    key = keysIn(service.stdout())[0] ?? ''
    expect(await statusOf(`${url}/readyz`)).toBe(200)
    expect(await statusOf(`${url}/api/v1/me`, key)).toBe(200)
    expect(await serversOf(data_dir)).toHaveLength(1)
  })

  test('a second service on the same directory refuses with a sentence, and does no harm', async () => {
    const { code, stderr } = await start().exit()
    expect([code, stderr]).toEqual([
      1,
      `Another Parley service is running on ${data_dir}. Stop it, or give this one its own --data-dir.\n`,
    ])
    expect(await statusOf(`${url}/readyz`)).toBe(200)
  })

  test('verbs work while it runs, and it sees their changes', async () => {
    const [before, workspaces] = await Promise.all([
      json<Row[]>('gate', 'list'),
      json<Row[]>('workspace', 'list'),
    ])
    expect(before.map(({ name }) => name)).toEqual(gates)
    expect(workspaces).toHaveLength(1)
    expect((await verb('dispatch', 'status')).stdout).toBe(
      'dispatch     yes\nsince        –\nreason       –\nowing        –\nunconfirmed  –\n',
    )
    expect((await verb('user', 'list')).stdout).toMatch(/ workspace_id=[0-9a-f-]{36} role=owner$/m)
    expect((await verb('key', 'revoke', 'nope')).stderr).toBe(
      'There is no key "nope". `parley key list --workspace ID` lists the keys.\n',
    )
    expect(await json('gate', 'disable', 'rest')).toMatchObject([
      { name: 'rest', enabled: false, changed: true },
    ])
    expect((await verb('gate', 'disable', 'rest')).stdout).toMatch(/^name.*changed\nrest +no .*no$/m)
    await until('the gate is closed', hangMs, async () => (await statusOf(`${url}/api/v1/me`, key)) === 503)
    await json('gate', 'enable', 'rest')
    await until('the gate is open', hangMs, async () => (await statusOf(`${url}/api/v1/me`, key)) === 200)
    expect(await statusOf(`${url}/readyz`)).toBe(200)
  })

  test('a killed server is restarted under a running service', async () => {
    const [pid = 0] = await serversOf(data_dir)
    process.kill(pid, 'SIGKILL')
    await until('it answers again', hangMs, async () => {
      const [now] = await serversOf(data_dir)
      return now !== undefined && now !== pid && (await statusOf(`${url}/readyz`)) === 200
    })
    await until('it serves again', hangMs, async () => (await statusOf(`${url}/api/v1/me`, key)) === 200)
  })

  test('a killed service leaves a server that the next start takes over', async () => {
    const servers = await serversOf(data_dir)
    service.signal('SIGKILL')
    await service.exit()
    expect(await serversOf(data_dir)).toEqual(servers)
    service = start()
    url = await service.ready()
    expect(await serversOf(data_dir)).toEqual(servers)
    expect(await statusOf(`${url}/api/v1/me`, key)).toBe(200)
    expect(keysIn(service.stdout())).toEqual([])
  })

  test('the next start recovers after both were killed', async () => {
    const [pid = 0] = await serversOf(data_dir)
    service.signal('SIGKILL')
    process.kill(pid, 'SIGKILL')
    await service.exit()
    service = start()
    url = await service.ready()
    expect(await statusOf(`${url}/api/v1/me`, key)).toBe(200)
  })

  test('SIGINT ends it and its server, and a command that finds neither starts neither', async () => {
    await stop(service, 'SIGINT')
    expect(await json<Row[]>('workspace', 'list')).toHaveLength(1)
    expect(await serversOf(data_dir)).toEqual([])
  })

  test('two commands at once on a stopped directory both work, and leave no server', async () => {
    const names = ['First', 'Second', 'Third']
    const made = await Promise.all(
      names.map((name) => runParley(['workspace', 'create', name, '--json', '--data-dir', data_dir])),
    )
    expect(made.map(({ stdout }) => (JSON.parse(stdout) as Row).name)).toEqual(names)
    expect(await serversOf(data_dir)).toEqual([])
    expect(await json<Row[]>('workspace', 'list')).toHaveLength(4)
    expect(await json('audit', 'verify')).toMatchObject({ ok: true })
  })

  test('SIGTERM ends it too, and a later start prints no key again', async () => {
    service = start()
    url = await service.ready()
    expect(await statusOf(`${url}/api/v1/me`, key)).toBe(200)
    const { stdout } = await stop(service, 'SIGTERM')
    expect(keysIn(stdout)).toEqual([])
  })

  test('leaves no server behind when it is stopped while it is still starting', async () => {
    service = start()
    await until('the server is there', hangMs, async () => (await serversOf(data_dir)).length > 0)
    service.signal('SIGTERM')
    const { code, stderr } = await service.exit()
    // The signal may also arrive when all is ready, and then the shutdown is clean.
    if (code !== 0) expect([code, stderr]).toEqual([1, 'Stopped by SIGTERM before it was ready.\n'])
    expect(await serversOf(data_dir)).toEqual([])
  })
})

/** As if the machine's own Node were an older one: `bin/parley.js` then runs everything in a child process. */
const olderNode =
  "--import=data:text/javascript,Object.defineProperty(process.versions,'node',{value:'20.1.0'})"

test.runIf(process.platform === 'linux')(
  'a killed launcher on an older Node takes the service and its server with it',
  async () => {
    const directory = join(home, 'launched')
    const args = ['start', '--port', '0', '--data-dir', directory]
    const launcher = spawnParley(args, {}, join(import.meta.dirname, '..', 'bin', 'parley.js'), [olderNode])
    const url = await launcher.ready()
    launcher.signal('SIGKILL')
    // The service writes to the launcher's pipes, so this also waits for its end.
    const { stdout } = await launcher.exit()
    expect(stdout).toMatch(/"msg":"stopped"\}\n$/)
    await expect(fetch(`${url}/healthz`)).rejects.toThrow()
    expect(await serversOf(directory)).toEqual([])
  },
)

describe('a directory in an unusual place', () => {
  const works = async (directory: string) => {
    // The path is too long for a socket, which is then in the system's temporary folder; here that is ours.
    const gate = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await runVerb(['gate', ...args, '--json', '--data-dir', directory], {
        TMPDIR: home,
      })
      expect([code, stderr]).toEqual([0, ''])
      return JSON.parse(stdout) as Row[]
    }
    expect(await gate('enable', 'crm')).toMatchObject([{ name: 'crm', enabled: true, changed: true }])
    expect((await gate('list')).filter(({ enabled }) => enabled).map(({ name }) => name)).toEqual(['crm'])
    expect(await serversOf(directory)).toEqual([])
  }

  test.runIf(process.getuid?.() === 0)('works inside one that only root may enter', async () => {
    const closed = join(home, 'closed')
    await mkdir(closed, { mode: 0o700 })
    await works(join(closed, 'data'))
  })

  test('works under a path longer than a socket may have, with spaces and quotes in it', async () => {
    await works(join(home, `it's "deep" ${'x'.repeat(60)}`, 'y'.repeat(60), 'data'))
  })
})

describe('what an operator gets wrong', () => {
  test('a bad configuration names every fault at once, exit 1', async () => {
    const { code, stderr, stdout } = await runParley(['start', '--data-dir', join(home, 'never')], {
      DATABASE_URL: 'mysql://hunter2@localhost',
      PARLEY_RATE_LIMIT: 'many',
      PARLEY_CLOCK: 'sundial',
      PARLEY_LOG_LEVL: 'info',
    })
    expect([code, stdout]).toEqual([1, ''])
    const lines = stderr.trim().split('\n')
    expect(lines[0]).toBe('Parley cannot start with this configuration:')
    for (const name of [
      'DATABASE_URL',
      'PARLEY_RATE_LIMIT',
      'PARLEY_CLOCK',
      'PARLEY_LOG_LEVL',
      'PARLEY_SECRET',
    ]) {
      expect(
        lines.filter((line) => line.startsWith(`  - ${name} `)),
        name,
      ).toHaveLength(1)
    }
    expect(stderr).not.toContain('hunter2')
    expect(await readdir(home)).not.toContain('never')
  })

  test('a taken port gives a sentence, exit 1, and no server left', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const address = taken.address()
    const port = String(typeof address === 'object' && address ? address.port : 0)
    const { code, stderr } = await runParley(['start', '--port', port, '--data-dir', data_dir])
    taken.close()
    expect([code, stderr]).toEqual([
      1,
      `Port ${port} is in use, perhaps by another Parley. Choose another port with --port, or stop the process that uses it.\n`,
    ])
    expect(await serversOf(data_dir)).toEqual([])
  })

  test('an unknown thing gives a sentence, exit 1, nothing on stdout', async () => {
    const command = ['gate', 'enable', 'rest', 'nonsense', '--json', '--data-dir', data_dir]
    const { code, stdout, stderr } = await runParley(command)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^There is no gate "nonsense"\. .*\n$/)
  })

  test.each([
    ['an unknown verb', ['steal']],
    ['an invalid port', ['start', '--port', '65536']],
    [
      'an invalid date',
      [
        'key',
        'create',
        '--expires',
        '2024-02-30',
        '--workspace',
        'x',
        '--user',
        'x',
        '--name',
        'x',
        '--scopes',
        'read',
      ],
    ],
  ])('exit 2 for %s, before anything is started', async (_, args) => {
    const { code, stdout, stderr } = await runParley([...args, '--data-dir', join(home, 'never')])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^error: /)
    expect(await readdir(home)).not.toContain('never')
  })
})

describe('help', () => {
  test('exit 0, on stdout', async () => {
    const { code, stdout, stderr } = await runParley(['key', 'create', '--help'])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^Usage: parley/)
  })
})
